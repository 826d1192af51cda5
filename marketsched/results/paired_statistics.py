"""Ratios of means over paired runs, with bootstrap intervals.

A competitive ratio compares expectations: E[OPT] / E[welfare]. Its estimate is the ratio of the two
means over the runs, never the mean of the runs' ratios, and runs are drawn anew in pairs.
"""

from __future__ import annotations

import warnings
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from marketsched.mechanisms.errors import InvalidParameterError

RESAMPLES = 9999
SMALLEST = 8  # runs from which on the bias-corrected and accelerated interval is used


class Estimate(NamedTuple):
    """A ratio of means, and the ends of its interval; NaN where there is none."""

    value: float
    low: float
    high: float


def ratio_of_means(
    above: ArrayLike, below: ArrayLike, *, confidence: float = 0.95, rng: np.random.Generator | int | None = None
) -> Estimate:
    """Return ``mean(above) / mean(below)`` over paired runs, with a bootstrap interval.

    Parameters
    ----------
    above, below : array_like of float, shape (n_runs,)
        Run by run.
    confidence : float
        Of the interval, in (0, 1).
    rng : Generator or int, optional
        Draws the resamples.

    Returns
    -------
    Estimate
        ``value`` is infinite if nothing was earned below. The interval is bias-corrected and
        accelerated (BCa) from 8 runs on; with fewer, or where BCa is not defined because leaving out
        a run changes nothing, it is the percentile one. Runs that do not differ at all give a point,
        and a single run gives none.

    Raises
    ------
    InvalidParameterError
        If there is no run, or the two differ in length.
    """
    pairs = np.stack(np.broadcast_arrays(np.asarray(above, dtype=np.float64), np.asarray(below, dtype=np.float64)))
    if pairs.ndim != 2 or pairs.shape[1] == 0 or np.shape(above) != np.shape(below):
        raise InvalidParameterError(
            f"{np.shape(above)} and {np.shape(below)} runs: expected the same number, at least 1"
        )
    value = float(_ratio(*pairs))
    if pairs.shape[1] == 1 or not np.isfinite(value):
        return Estimate(value, np.nan, np.nan)
    if (pairs == pairs[:, :1]).all():
        return Estimate(value, value, value)
    generator = np.random.default_rng(rng)
    for method in ("BCa", "percentile") if pairs.shape[1] >= SMALLEST else ("percentile",):
        with warnings.catch_warnings():
            warnings.simplefilter(
                "ignore"
            )  # a degenerate distribution is told by NaN, and then the other method is used
            found = stats.bootstrap(
                tuple(pairs),
                _ratio,
                paired=True,
                vectorized=True,
                n_resamples=RESAMPLES,
                confidence_level=confidence,
                method=method,
                rng=generator,
            ).confidence_interval
        if np.isfinite([found.low, found.high]).all():
            break
    return Estimate(value, float(found.low), float(found.high))


def _ratio(above: NDArray[np.float64], below: NDArray[np.float64], axis: int = -1) -> NDArray[np.float64]:
    means = np.mean(above, axis=axis), np.mean(below, axis=axis)
    infinite = np.full(np.shape(means[0]), np.inf)
    return np.asarray(np.divide(*means, out=infinite, where=means[1] > 0))
