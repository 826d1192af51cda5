"""Growth of regret with the number of slots: the fitted exponent, with an interval over runs.

If regret grows like :math:`T^p`, the fitted slope of its logarithm is p, and regret per slot vanishes if p < 1. A
policy whose steps depend on the horizon has to be run anew for each (`fitted_growth`); of others several horizons are
read off one run (`regret_growth`). If it grows like ln t, as ESDP's Theorem 2 has it, every doubling of t adds the same
amount (`RegretGrowth.per_doubling` stays level) and the exponent falls towards 0; if it grows like a power t^p, every
doubling adds 2^p times the one before.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from marketsched.mechanisms.arrays import float_array, read_only
from marketsched.mechanisms.errors import InvalidParameterError
from marketsched.mechanisms.legal import OpenShare, legal

_Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class GrowthFit:
    """The exponent with which something grows with the horizon, fitted run by run.

    Attributes
    ----------
    exponents : ndarray of float, shape (n_runs,)
        Slope of the logarithm over the logarithm of the horizon, least squares, one per run; read-only.
    low, high : float
        Confidence interval of their mean (Student's t over runs).
    confidence : float
        Its level.

    Examples
    --------
    >>> fit = fitted_growth([100, 400], [[10.0, 20.0], [8.0, 16.0]])
    >>> fit.exponent, fit.confidence
    (0.49999999999999767, 0.95)
    """

    exponents: _Array
    low: float
    high: float
    confidence: float

    @property
    def exponent(self) -> float:
        """Mean over runs."""
        return float(self.exponents.mean())


@dataclass(frozen=True, slots=True)
class _RegretGrowth:
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


@legal
def fitted_growth(horizons: ArrayLike, regrets: ArrayLike, *, confidence: OpenShare = 0.95) -> GrowthFit:
    """Fit the exponent with which regret grows with the horizon, with an interval over runs.

    Parameters
    ----------
    horizons : array_like of float, shape (n_horizons,)
        Slots, > 0, at least two different ones.
    regrets : array_like of float, shape (n_runs, n_horizons)
        Regret of every run at every horizon, > 0; at least two independent runs.
    confidence : float
        Level of the interval, in (0, 1).

    Raises
    ------
    InvalidParameterError
        If an argument is not so. A regret of zero or less has no logarithm, and that is the finding:
        the policy is no worse than the best fixed allocation there.

    Examples
    --------
    >>> fit = fitted_growth([100, 400], [[10.0, 20.0], [8.0, 16.0], [8.0, 32.0]])
    >>> fit.exponents, round(fit.exponent, 3), round(fit.low, 3), round(fit.high, 3)
    (array([0.5, 0.5, 1. ]), 0.667, -0.05, 1.384)
    """
    slots = float_array("horizons", horizons, (None,), lowest=0.0)
    values = float_array("regrets", regrets, (None, slots.size))
    if np.unique(slots).size < 2 or slots.min() <= 0.0:
        raise InvalidParameterError(f"horizons = {slots.tolist()}: expected at least two different ones, all > 0")
    if values.shape[0] < 2:
        raise InvalidParameterError(f"regrets has shape {values.shape}: expected at least two runs, for an interval")
    if values.min() <= 0.0:
        run, place = (int(i) for i in np.argwhere(values <= 0.0)[0])
        raise InvalidParameterError(
            f"regrets[{run}, {place}] = {values[run, place]}: expected > 0, what is not positive has no growth"
        )
    exponents, half = _fitted(slots, values, confidence)
    read_only(exponents)
    return GrowthFit(exponents, float(exponents.mean()) - half, float(exponents.mean()) + half, confidence)


@legal
def regret_growth(regret: ArrayLike, confidence: OpenShare = 0.95) -> _RegretGrowth:
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
    exponents, half = _fitted(slots[late], summed[:, late], confidence)
    mean = float(exponents.mean())
    doublings = np.diff(summed, axis=1).mean(axis=0)
    return _RegretGrowth(slots, summed, mean, (mean - half, mean + half), doublings)


def _fitted(slots: NDArray[np.int64] | _Array, values: _Array, level: float) -> tuple[_Array, float]:
    """Return the slope of log values over log slots of every run, and half the interval of its mean (Student's t)."""
    log_slots = np.log(slots) - np.log(slots).mean()
    exponents = np.log(values) @ log_slots / (log_slots @ log_slots)
    if exponents.size == 1:
        return exponents, np.inf
    spread = exponents.std(ddof=1) / np.sqrt(exponents.size)
    return exponents, float(special.stdtrit(exponents.size - 1, 0.5 + 0.5 * level) * spread)
