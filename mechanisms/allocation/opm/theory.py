"""Parameters of the OPM paper's theorems, as functions of the instance."""

from __future__ import annotations

import math

from marketsched.mechanisms.checks import finite_parameter, whole_parameter
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
