"""Parameters and bounds of the OPM paper's theorems, as functions of the instance.

Constants that the paper hides in O(.) are not made up here: `fit_bound` leaves out the O(1) of
OPM (23), and `regret_scale` is the function inside O(.) of OPM (24) and (101), to compare growth with.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from marketsched.mechanisms.checks import finite_parameter, float_array, whole_parameter
from marketsched.mechanisms.errors import InvalidParameterError


def exploration(n_machines: int, horizon: int, confidence: float) -> float:
    """Return gamma = ln(M T / delta) of Theorems 2 and 3.

    Raises
    ------
    InvalidParameterError
        If a parameter is out of range.
    """
    m, slots = whole_parameter("n_machines", n_machines, 1), whole_parameter("horizon", horizon, 1)
    return math.log(m * slots / finite_parameter("confidence", confidence, "(0, 1)"))


def theory_steps(n_machines: int, horizon: int) -> tuple[float, float]:
    """Return (alpha, mu) = (1 / (2 sqrt(T)), sqrt(T) / M) of Theorems 2 and 3: primal and dual step.

    Raises
    ------
    InvalidParameterError
        If a parameter is out of range.
    """
    m, slots = whole_parameter("n_machines", n_machines, 1), whole_parameter("horizon", horizon, 1)
    return 0.5 / math.sqrt(slots), math.sqrt(slots) / m


def theory_slack(budget: float, n_machines: int, horizon: int) -> float:
    """Return epsilon = 8 / (rho^2 T) with rho = B / (M T), of Theorem 2 (a single job).

    Raises
    ------
    InvalidParameterError
        If a parameter is out of range, or epsilon would be 1 or more: the theorem is then empty.
    """
    share = finite_parameter("budget", budget, "(0, inf)") / (n_machines * horizon)
    slack = 8.0 / (share * share * horizon)
    if slack >= 1.0:
        need = math.floor(8.0 / (share * share)) + 1
        raise InvalidParameterError(
            f"horizon = {horizon}: expected at least {need} at this budget per machine and slot ({share:g}), "
            "or a slack of your own"
        )
    return slack


def fit_bound(budgets: ArrayLike, durations: ArrayLike, n_machines: int, confidence: float) -> float:
    """Return the bound OPM (74) on Fit_T, for prices of at most 1.

    Parameters
    ----------
    budgets, durations : array_like of float, shape (N,)
        B_j and d_j - a_j (slots).
    n_machines : int
        M.
    confidence : float
        delta: the bound holds with probability 1 - delta.

    Raises
    ------
    InvalidParameterError
        If an array or parameter is out of range.
    """
    total = float_array("budgets", budgets, (None,), lowest=0.0)
    per_slot = total / float_array("durations", durations, total.shape, lowest=1.0)
    m = whole_parameter("n_machines", n_machines, 1)
    chance = math.log(1.0 / finite_parameter("confidence", confidence, "(0, 1)")) * math.sqrt(total.sum())
    largest, smallest, root = float(per_slot.max()), float(per_slot.min()), math.sqrt(total.size)
    if smallest <= 0.0:
        raise InvalidParameterError("budgets: expected every one > 0")
    return chance + root * m * (m + largest) / smallest


def regret_scale(
    horizons: ArrayLike, n_machines: int, confidence: float
) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Return M sqrt(T ln(M T / delta)) for every T: how the regret may grow by OPM (24) and Corollary 1.

    Raises
    ------
    InvalidParameterError
        If an array or parameter is out of range.
    """
    slots = float_array("horizons", horizons, (None,), lowest=1.0)
    delta = finite_parameter("confidence", confidence, "(0, 1)")
    m = whole_parameter("n_machines", n_machines, 1)
    scale: np.ndarray[tuple[int], np.dtype[np.float64]] = m * np.sqrt(slots * np.log(m * slots / delta))
    return scale
