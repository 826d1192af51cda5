"""Growth of regret with the number of slots: the fitted exponent, with an interval over runs.

If regret grows like :math:`T^p`, the fitted slope of its logarithm is p, and regret per slot vanishes if p < 1. A
policy whose steps depend on the horizon has to be run anew for each. If it grows like ln t, as ESDP's Theorem 2 has it,
every doubling of t adds the same amount and the exponent falls towards 0.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from marketsched.mechanisms.arrays import float_array, read_only
from marketsched.mechanisms.errors import InvalidParameterError
from marketsched.mechanisms.legal import OpenShare, legal


@dataclass(frozen=True, slots=True, eq=False)
class GrowthFit:
    """The exponent with which something grows with the horizon.

    ``exponents``, shape (n_runs,), are the slopes of its logarithm over that of the horizon, least squares, one per
    run; ``low`` and ``high`` the ends of the interval of their mean at ``confidence`` (Student's t over runs).
    """

    exponents: NDArray[np.float64]
    low: float
    high: float
    confidence: float

    @property
    def exponent(self) -> float:
        """Mean over runs."""
        return float(self.exponents.mean())


@legal
def fitted_growth(horizons: ArrayLike, regrets: ArrayLike, *, confidence: OpenShare = 0.95) -> GrowthFit:
    """Fit the exponent with which regret grows with the horizon, with an interval over runs.

    Parameters
    ----------
    horizons : array_like of float, shape (n_horizons,)
        Slots, > 0, at least two different ones.
    regrets : array_like of float, shape (n_runs, n_horizons)
        Of at least two independent runs. InvalidParameterError if one is not positive: it has no logarithm, and the
        policy is no worse than the best fixed allocation there.
    confidence : float
        Level of the interval.

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
    log_slots = np.log(slots) - np.log(slots).mean()
    exponents = read_only(np.log(values) @ log_slots / (log_slots @ log_slots))
    error = exponents.std(ddof=1) / np.sqrt(exponents.size)
    half = float(special.stdtrit(exponents.size - 1, 0.5 + 0.5 * confidence) * error)
    mean = float(exponents.mean())
    return GrowthFit(exponents, mean - half, mean + half, confidence)
