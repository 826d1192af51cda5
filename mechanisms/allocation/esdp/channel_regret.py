"""Regret of policies over channels, and how it grows: like ln T, as ESDP's Theorem 2 has it, or faster.

Regret up to slot t is the sum of (largest expected utility - expected utility of what was used), ESDP
(6): expected, so that the noise of the utilities does not hide it. If it grows like ln t, every
doubling of t adds the same amount (`RegretGrowth.per_doubling` stays level) and the fitted exponent of
t falls towards 0; if it grows like a power t^p, every doubling adds 2^p times the one before.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import stdtrit

from marketsched.mechanisms.checks import finite_parameter, float_array
from marketsched.mechanisms.errors import InvalidParameterError


@dataclass(frozen=True, slots=True)
class RegretGrowth:
    """How regret grew, over n runs.

    Attributes
    ----------
    slots : array of int, shape (m,)
        Slots T, T/2, T/4, ... in ascending order.
    regret : array of float, shape (n, m)
        Regret up to each of them.
    exponent : float
        p of the fit regret ~ t^p over the second half of the doublings, mean over runs.
    exponent_interval : tuple of two float
        Confidence interval of its mean over runs (Student's t); (-inf, inf) for a single run.
    per_doubling : array of float, shape (m - 1,)
        Regret added from one slot of `slots` to the next, mean over runs: level if it grows like ln t.
    """

    slots: NDArray[np.int64]
    regret: NDArray[np.float64]
    exponent: float
    exponent_interval: tuple[float, float]
    per_doubling: NDArray[np.float64]


def regret_growth(regret: ArrayLike, confidence: float = 0.95) -> RegretGrowth:
    """Fit how regret grows.

    Parameters
    ----------
    regret : array_like of float, shape (n, T)
        Regret of every slot (not summed up), one row per run, >= 0 up to rounding; T >= 8.
    confidence : float
        Of the interval, in (0, 1).

    Returns
    -------
    RegretGrowth
        Fits and figures.

    Raises
    ------
    InvalidParameterError
        If there is no run, fewer than eight slots, a slot's regret is negative, or a run has none at all
        up to half of its first doubling used (a growth of nothing cannot be fitted).

    Examples
    --------
    >>> growth = regret_growth([1.0 / np.arange(1, 1025)])
    >>> growth.exponent < 0.2, growth.per_doubling[-3:].round(2)
    (True, array([0.69, 0.69, 0.69]))
    >>> round(regret_growth(np.ones((2, 64))).exponent, 6)
    1.0
    """
    per_slot = float_array("regret", regret, (None, None), lowest=-1e-9)
    level = finite_parameter("confidence", confidence, "(0, 1)")
    n_runs, n_slots = per_slot.shape
    if n_runs == 0 or n_slots < 8:
        raise InvalidParameterError(f"regret has shape {per_slot.shape}: expected at least one run of eight slots")
    halvings = int(np.log2(n_slots))
    slots = np.unique(n_slots // 2 ** np.arange(halvings + 1))
    summed = np.cumsum(np.maximum(per_slot, 0.0), axis=1)[:, slots - 1]
    late = slice(len(slots) // 2, None)
    if (summed[:, late] <= 0.0).any():
        raise InvalidParameterError(
            f"a run has no regret up to slot {slots[late][0]}: expected some, or there is no growth to fit"
        )
    x = np.log(slots[late])
    exponents = np.polyfit(x, np.log(summed[:, late]).T, 1)[0]
    low, high = -np.inf, np.inf
    if n_runs > 1:
        half = stdtrit(n_runs - 1, 0.5 + level / 2.0) * exponents.std(ddof=1) / np.sqrt(n_runs)
        low, high = float(exponents.mean() - half), float(exponents.mean() + half)
    doublings = np.diff(summed, axis=1).mean(axis=0)
    return RegretGrowth(slots, summed, float(exponents.mean()), (low, high), doublings)
