r"""An interval for the mean of bounded variables that holds at every stopping time.

For independent x with mean :math:`\mu`, all at least ``low``, and any fraction :math:`0 \le c < 1`,

.. math:: K_n(\mu) = \prod_{t \le n} \Bigl(1 + c\,\frac{x_t - \mu}{\mu - low}\Bigr)

is the capital of a gambler who bets, from 1 credit on, that the mean is above :math:`\mu`: the game
is fair, so the capital ever reaches :math:`1/\delta` with probability at most :math:`\delta` (Ville). The
same is true of the average over several fractions. Means that would have made the gambler that rich
are ruled out; the capital falls in :math:`\mu`, so what is left lies above one number, the lower bound
([WSR24]_, Section 4, with constant bets). The upper bound is the lower one of -x.

Why not Student's interval: gains are often 0, or the same, in nearly every world, and rarely large.
A rare loss that has not been seen yet makes Student's interval as narrow as it is wrong; this one
knows what it cannot exclude, uses the variance where it is small, and lets the sample grow until
the answer is clear, or time is up.

References
----------
.. [WSR24] Waudby-Smith, Ramdas: Estimating Means of Bounded Random Variables by Betting, Journal of
   the Royal Statistical Society B 86 (2024).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from marketsched.mechanisms.checks import finite_parameter
from marketsched.mechanisms.errors import InvalidParameterError

FRACTIONS = 0.99 * 2.0 ** -np.arange(11)  # bold gamblers for tiny variances, timid ones for wide ones
HALVINGS = 60


def mean_interval(x: ArrayLike, low: float, high: float, confidence: float) -> tuple[float, float]:
    """Return an interval that contains the mean with probability ``confidence``.

    Parameters
    ----------
    x : array_like of float, shape (n,)
        Independent values; n may depend on the values seen before.
    low, high : float
        What no value can leave.
    confidence : float
        In (0, 1); each side has half of the rest.

    Raises
    ------
    InvalidParameterError
        If a value is outside ``[low, high]``, or a number out of range.

    Examples
    --------
    A thousand gains of 1, where a loss of 20 was possible each time:

    >>> low, high = mean_interval(np.ones(1000), -20.0, 10.0, 0.99)
    >>> round(low, 2), round(high, 2)
    (0.84, 1.07)
    """
    values = np.asarray(x, dtype=np.float64).ravel()
    low, high = finite_parameter("low", low, "(-inf, inf)"), finite_parameter("high", high, "(-inf, inf)")
    failure = (1 - finite_parameter("confidence", confidence, "(0, 1)")) / 2
    if values.size and not (low <= values.min() and values.max() <= high):
        raise InvalidParameterError(f"values in [{values.min()}, {values.max()}]: expected them in [{low}, {high}]")
    distinct, counts = np.unique(values, return_counts=True)
    return _lower(distinct, counts, low, failure), -_lower(-distinct, counts, -high, failure)


def _lower(values: NDArray[np.float64], counts: NDArray[np.int64], low: float, failure: float) -> float:
    """Return the lower bound; values have weights ``counts``."""
    n = int(counts.sum())
    top = float(values @ counts) / n if n else low
    if top <= low:
        return low
    bottom = low
    for _ in range(HALVINGS):
        middle = (bottom + top) / 2
        if middle <= low or _log_capital(values, counts, low, middle) >= math.log(1 / failure):
            bottom = middle  # ruled out
        else:
            top = middle
    return bottom


def _log_capital(values: NDArray[np.float64], counts: NDArray[np.int64], low: float, mean: float) -> float:
    """Return the logarithm of the gamblers' average capital if the mean is ``mean``."""
    stakes = np.log1p(FRACTIONS[:, None] * ((values - mean) / (mean - low))[None, :]) @ counts
    most = float(stakes.max())
    return most + math.log(float(np.exp(stakes - most).mean()))
