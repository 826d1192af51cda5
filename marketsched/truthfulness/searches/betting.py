r"""An interval for the mean of bounded variables that holds at every stopping time.

For independent x with mean :math:`\mu`, all at least ``low``, and any fraction :math:`0 \le c < 1`,

.. math:: K_n(\mu) = \prod_{t \le n} \Bigl(1 + c\,\frac{x_t - \mu}{\mu - low}\Bigr)

is the capital of a gambler who bets, from 1 credit on, that the mean is above :math:`\mu`: the game
is fair, so the capital ever reaches :math:`1/\delta` with probability at most :math:`\delta` (Ville). The
same is true of the average over several fractions. Means that would have made the gambler that rich
are ruled out; the capital falls in :math:`\mu`, so what is left lies above one number, the lower bound
([WSR24]_, Section 4, with constant bets). The upper bound is the lower one of -x.

`lower_end` adds a gambler who learns: its stake follows the mean and the variance of the values so far, and it bets
on the mean being above one number that is named beforehand ([WSR24]_, Section 4.3). One half of the capital is its own.
For that number it needs fewer values; the order of the values then counts.

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

from marketsched.mechanisms.arrays import inner
from marketsched.mechanisms.errors import InvalidParameterError
from marketsched.mechanisms.legal import OpenShare, legal

BOLDEST = 0.75  # of what may be lost at most: the largest adaptive stake
FRACTIONS = 0.99 * 2.0 ** -np.arange(11)  # bold gamblers for tiny variances, timid ones for wide ones
HALVINGS = 60
CHANCE, RESAMPLED, POWER_HALVINGS = 0.9, 100, 12  # of what `detectable` says


@legal
def mean_interval(x: ArrayLike, low: float, high: float, confidence: OpenShare) -> tuple[float, float]:
    """Return an interval that contains the mean with probability ``confidence``.

    ``x`` has shape (n,): independent values in [``low``, ``high``], and n may depend on the values seen before. Of
    1 - ``confidence``, in (0, 1), each side has half. InvalidParameterError: a value is not in that range.

    Examples
    --------
    A thousand gains of 1, where a loss of 20 was possible each time:

    >>> low, high = mean_interval(np.ones(1000), -20.0, 10.0, 0.99)
    >>> round(low, 2), round(high, 2)
    (0.84, 1.07)
    """
    values = np.asarray(x, dtype=np.float64).ravel()
    failure = (1 - confidence) / 2
    if values.size and not (low <= values.min() and values.max() <= high):
        raise InvalidParameterError(f"values in [{values.min()}, {values.max()}]: expected them in [{low}, {high}]")
    distinct, counts = np.unique(values, return_counts=True)
    return _lower(distinct, counts, low, failure), -_lower(-distinct, counts, -high, failure)


def _lower(values: NDArray[np.float64], counts: NDArray[np.int64], low: float, failure: float) -> float:
    """Return the lower bound; values have weights ``counts``."""
    n = int(counts.sum())
    top = float(inner(values, counts)) / n if n else low
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
    each = np.log1p(FRACTIONS[:, None] * ((values - mean) / (mean - low))[None, :])
    stakes = inner(each, counts)
    most = float(stakes.max())
    return most + math.log(float(np.exp(stakes - most).mean()))


@legal
def lower_end(x: ArrayLike, low: float, failure: OpenShare, at: float = 0.0) -> float:
    """Return a lower limit of the mean with probability ``1 - failure``, by bets that aim at ``at``.

    ``x`` has shape (n,): independent values >= ``low`` in the order in which they came; n may depend on the values seen
    before. ``failure`` is in (0, 1), ``at`` above ``low``: whether the mean exceeds it is what the stakes are best for.
    InvalidParameterError: a value is below ``low``.

    Examples
    --------
    Fifty gains of 1, where a loss of 5 was possible each time, show that the mean is positive; ten do not:

    >>> lower_end([1.0] * 50, -5.0, 0.01) > 0
    True
    >>> lower_end([1.0] * 10, -5.0, 0.01) > 0
    False
    """
    values = np.asarray(x, dtype=np.float64).ravel()
    if values.size and values.min() < low:
        raise InvalidParameterError(f"values from {values.min()} on: expected none below {low}")
    if not values.size or at <= low:
        return low
    stakes = adaptive_stakes(values[None, :], low, at)[0]
    bottom, top = low, float(values.mean())
    if top <= low:
        return low
    for _ in range(HALVINGS):
        middle = (bottom + top) / 2
        if middle <= low or _grown(values, stakes, low, middle) >= math.log(1 / failure):
            bottom = middle
        else:
            top = middle
    return bottom


def exceeds(x: NDArray[np.float64], low: float, failure: float, at: float = 0.0) -> NDArray[np.bool_]:
    """Tell of each row whether its values have at any time shown that their mean exceeds ``at``; shape (n_rows,).

    ``x`` has shape (n_rows, n), in order, none below ``low``; the rest is as for `lower_end`.
    """
    if not x.shape[1]:
        return np.zeros(x.shape[0], dtype=bool)
    own = np.cumsum(np.log1p(adaptive_stakes(x, low, at) * (x - at)), axis=1)
    fixed = np.log1p(FRACTIONS[:, None, None] * ((x - at) / (at - low))[None])
    fixed = np.logaddexp.reduce(np.cumsum(fixed, axis=2), axis=0) - math.log(FRACTIONS.size)
    return np.asarray((np.logaddexp(own, fixed) - math.log(2)).max(axis=1) >= math.log(1 / failure))


def detectable(x: ArrayLike, low: float, failure: float, at: float = 0.0) -> float:
    """Return the mean that values spread like these would have shown to exceed ``at`` with probability `CHANCE`.

    Values are drawn again from those given, moved so that their mean is the one asked for. inf: there are fewer than
    two, or no mean up to the largest loss would have been shown. Arguments: as of `lower_end`.
    """
    values = np.asarray(x, dtype=np.float64).ravel()
    if values.size < 2:
        return math.inf
    picks = np.random.default_rng([0x90E4, values.size]).integers(values.size, size=(RESAMPLED, values.size))
    spread = (values - values.mean())[picks]
    low = min(low, float(spread.min()))

    def shown(mean: float) -> bool:
        return float(exceeds(spread + mean, low, failure, at).mean()) >= CHANCE

    bottom, top = at, at - low
    if not shown(top):
        return math.inf
    for _ in range(POWER_HALVINGS):
        middle = (bottom + top) / 2
        bottom, top = (bottom, middle) if shown(middle) else (middle, top)
    return top


def worlds_left(x: ArrayLike, low: float, failure: float, at: float = 0.0) -> float:
    """Return after about how many more values bets show that the mean exceeds ``at``, if values go on like these.

    The best constant stake for the mean and variance so far, taken with the doubt of `adaptive_stakes`, makes capital
    grow by some factor with each value. inf: it does not grow, or there are no values. Arguments: as of `lower_end`.
    """
    over = np.asarray(x, dtype=np.float64).ravel() - at
    if not over.size or at <= low:
        return math.inf
    n = over.size + 1
    excess = float(over.sum()) / n
    second = (((at - low) / 4) ** 2 + float(inner(over, over))) / n
    stake = min(excess / second, BOLDEST / (at - low + max(excess, 0.0)))
    growth = stake * excess - stake**2 * second / 2
    return max(1.0, math.log(2 / failure) / growth - over.size) if stake > 0 and growth > 0 else math.inf


def adaptive_stakes(x: NDArray[np.float64], low: float, at: float) -> NDArray[np.float64]:
    """Return the stake on each value of each row, which depends only on earlier values; shape of ``x``.

    The stake (m - at) / (s^2 + (m - at)^2), with mean m and variance s^2 so far, makes capital grow fastest for small
    bets. Before the first value they are ``at``, and the square of a quarter of what may be lost.
    """
    n = np.arange(1, x.shape[1] + 1)
    before = np.concatenate([np.zeros((x.shape[0], 1)), np.cumsum(x - at, axis=1)[:, :-1]], axis=1)
    squares = np.concatenate([np.zeros((x.shape[0], 1)), np.cumsum((x - at) ** 2, axis=1)[:, :-1]], axis=1)
    excess = before / n
    second = (((at - low) / 4) ** 2 + squares) / n  # = s^2 + (m - at)^2
    most = BOLDEST / (at - low + np.maximum(excess, 0.0))
    return np.asarray(np.clip(excess / second, 0.0, most))


def _grown(values: NDArray[np.float64], stakes: NDArray[np.float64], low: float, mean: float) -> float:
    """Return the logarithm of the capital, half of it adaptive, if the mean is ``mean``."""
    factors = 1 + stakes * (values - mean)
    own = -math.inf if (factors <= 0).any() else float(np.log(factors).sum())
    distinct, counts = np.unique(values, return_counts=True)
    return float(np.logaddexp(own, _log_capital(distinct, counts, low, mean))) - math.log(2)
