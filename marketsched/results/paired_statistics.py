"""Means and ratios of means over paired runs, with intervals that hold when losses are rare, too.

A competitive ratio compares expectations: E[OPT] / E[welfare]. Its estimate is the ratio of the two
means over the runs, never the mean of the runs' ratios; so are shares of the bound and their differences
(`share_of_means`). The interval of a ratio is Fieller's: the ratios r at which
Student's interval of the mean of ``above - r below`` holds 0. Where these differences are skewed, as losses
are that are mostly small and now and then large, Student's interval ends too early on the side of the long
tail: that end is moved outwards, as far as Hall's transformation of t [Hall92]_ says; no end is moved inwards.
No such interval covers unseen losses: where every run loses a little and one in twenty loses nearly all, ten
runs show as a rule the little alone, and agree. Where the worst case is known, as for the ratio of an optimum to what
was earned, the interval therefore always covers what may have been missed, too: the largest probability of an event
that none of the runs shows (Clopper and Pearson), times the most that it could change. Where it is not known, such as
for differences, nothing covers that. `what_may_be_missed` says in words how much it is, and docs/intervals.md
has the coverage of every interval, measured. Nor does anything cover that unseen runs are larger than all that were
seen.

References
----------
.. [Hall92] P. Hall: On the removal of skewness by transformation, Journal of the Royal Statistical Society B 54
   (1992).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special  # `scipy.stats` gives the same, and takes several times as long to import

from marketsched.mechanisms.errors import InvalidParameterError

CONFIDENCE = 0.95
FEW = 3  # runs with a large loss from which on their sizes tell what a loss can be
SAME = 1e-12  # of the value of a run: smaller losses are rounding


class Spread(NamedTuple):
    """Mean, standard deviation, range and t interval of the mean over seeds; NaN where there is none."""

    mean: float
    deviation: float
    least: float
    most: float
    low: float
    high: float


def spread(values: ArrayLike, confidence: float = CONFIDENCE) -> Spread:
    """Return the spread of one figure over seeds.

    Parameters
    ----------
    values : array_like of float, shape (n_seeds,)
        NaN where a seed has no such figure: left out.
    confidence : float
        Of the interval of the mean (Student's t), in (0, 1).

    Examples
    --------
    >>> [round(x, 3) for x in spread([1.0, 1.2, 1.1])]
    [1.1, 0.1, 1.0, 1.2, 0.852, 1.348]
    """
    x = np.asarray(values, dtype=np.float64)
    x = x[np.isfinite(x)]
    if x.size == 0:
        return Spread(*[np.nan] * 6)
    mean, least, most = float(x.mean()), float(x.min()), float(x.max())
    if x.size == 1:
        return Spread(mean, np.nan, least, most, np.nan, np.nan)
    deviation = float(x.std(ddof=1))
    half = float(student_half(deviation, x.size, confidence))
    return Spread(mean, deviation, least, most, mean - half, mean + half)


def student_half(deviation: Any, n_seeds: Any, confidence: float = CONFIDENCE) -> Any:
    """Return half the width of Student's interval of a mean, of numbers or tables; NaN where there is no deviation."""
    return special.stdtrit(np.maximum(n_seeds - 1, 1), (1 + confidence) / 2) * deviation / np.sqrt(n_seeds)


class Estimate(NamedTuple):
    """A ratio of means, and the ends of its interval; NaN where there is none."""

    value: float
    low: float
    high: float


def share_of_means(part: ArrayLike, whole: ArrayLike, confidence: float = CONFIDENCE) -> Estimate:
    """Return ``mean(part) / mean(whole)`` over paired runs, with a symmetric interval: parts may be differences.

    Parameters
    ----------
    part, whole : array_like of float, shape (n_runs,)
        Run by run. Runs whose ``whole`` is 0 have nothing to share, and are left out.
    confidence : float
        Of the interval, in (0, 1): Student's, of what each run adds to the share (``part - share whole`` over the mean
        ``whole``). Where all wholes are equal it is that of the mean of the runs' shares.

    Examples
    --------
    >>> [round(x, 3) for x in share_of_means([1.0, 3.0, 2.0], [10.0, 20.0, 10.0])]
    [0.15, 0.057, 0.243]
    """
    parts, wholes = np.asarray(part, dtype=np.float64), np.asarray(whole, dtype=np.float64)
    there = (wholes > 0.0) & np.isfinite(parts)
    parts, wholes = parts[there], wholes[there]
    if not parts.size:
        return Estimate(np.nan, np.nan, np.nan)
    share = float(parts.sum() / wholes.sum())
    own = spread((parts - share * wholes) / wholes.mean(), confidence)  # of mean 0
    half = (own.high - own.low) / 2.0
    return Estimate(share, share - half, share + half)


def ratio_of_means(
    above: ArrayLike, below: ArrayLike, *, confidence: float = CONFIDENCE, least: float | None = None
) -> Estimate:
    """Return ``mean(above) / mean(below)`` over paired runs, with an interval.

    Parameters
    ----------
    above, below : array_like of float, shape (n_runs,)
        Run by run.
    confidence : float
        Of the interval, in (0, 1).
    least : float, optional
        A lower limit of ``above / below`` in every run, such as 1 of an optimum over earned welfare: a run
        in which it is larger has a loss, which is at most all of ``above``.

    Returns
    -------
    Estimate
        ``value`` is infinite if nothing was earned below. The interval is Fieller's, wider where runs are
        skewed. With ``least`` it also covers that all of ``below`` is missing in runs of the largest probability p
        that may have been missed, and that losses as large as the largest come as often as may be, where fewer than
        3 runs have one half as large. Without ``least``, and if all runs have the same ratio, one end covers that in a
        run of probability p all of ``above`` is missing, the other that all of ``below`` is. A single run has no
        interval, nor have runs whose mean ``below`` may be 0; with ``least`` these have no upper end.

    Raises
    ------
    InvalidParameterError
        If there is no run, or the two differ in length.

    Examples
    --------
    >>> [round(x, 3) for x in ratio_of_means([12.0, 9.0, 11.0, 10.0], [10.0, 8.0, 9.0, 9.0], least=1.0)]
    [1.167, 1.072, 2.467]
    >>> [round(x, 3) for x in ratio_of_means([10.0] * 20, [10.0] * 20, least=1.0)]  # no loss in 20 runs
    [1.0, 1.0, 1.162]
    """
    pairs = np.stack(np.broadcast_arrays(np.asarray(above, dtype=np.float64), np.asarray(below, dtype=np.float64)))
    if pairs.ndim != 2 or pairs.shape[1] == 0 or np.shape(above) != np.shape(below):
        raise InvalidParameterError(
            f"{np.shape(above)} and {np.shape(below)} runs", legal="the same number, at least 1"
        )
    top, base = (float(x) for x in pairs.mean(axis=1))
    if base <= 0.0:
        return Estimate(np.inf, np.nan, np.nan)
    value, n_runs = top / base, pairs.shape[1]
    if n_runs == 1:
        return Estimate(value, np.nan, np.nan)
    low, high = _ends(pairs, value, confidence)
    if least is not None:
        if np.isnan(high):  # the mean below may be 0, and then the ratio has no end
            low, high = least, np.inf
        high = max(high, value / (1.0 - _largest_probability(0, n_runs, confidence)), _rare(pairs, least, confidence))
        return Estimate(value, max(min(low, value), least), high)
    if not _differ(pairs, value).any():
        rest = 1.0 - _largest_probability(0, n_runs, (1.0 + confidence) / 2.0)
        return Estimate(value, value * rest, value / rest)
    return Estimate(value, low, high)


def what_may_be_missed(n_runs: int, confidence: float = CONFIDENCE) -> str:
    """Return in words how often something may happen that none of ``n_runs`` runs shows.

    Examples
    --------
    >>> what_may_be_missed(20)
    'what 1 run in 8 does may be in none of 20'
    """
    one_in = int(np.ceil(1.0 / _largest_probability(0, n_runs, confidence)))
    return f"what 1 run in {one_in} does may be in none of {n_runs}"


def losses_seen(above: ArrayLike, below: ArrayLike, least: float = 1.0) -> int:
    """Return in how many paired runs ``above`` is more than ``least`` times ``below``, beyond rounding."""
    return int(_differ(np.stack([np.asarray(above, float), np.asarray(below, float)]), least).sum())


def _differ(pairs: NDArray[np.float64], ratio: float) -> NDArray[np.bool_]:
    differ: NDArray[np.bool_] = np.abs(pairs[0] - ratio * pairs[1]) > SAME * np.maximum(
        np.abs(pairs[0]), np.abs(ratio * pairs[1])
    )
    return differ


def _ends(pairs: NDArray[np.float64], ratio: float, confidence: float) -> tuple[float, float]:
    """Return the ends of the interval: Fieller's, each moved away from the ratio as skewness asks for; or NaN."""
    n_runs = pairs.shape[1]
    quantile = float(special.stdtrit(n_runs - 1, (1.0 + confidence) / 2.0))
    low, high = _fieller(pairs, quantile)
    skew = _skewness(pairs, ratio) / np.sqrt(n_runs)
    downwards, upwards = (max(1.0, abs(_untransformed(y, skew)) / quantile) for y in (quantile, -quantile))
    return ratio - (ratio - low) * downwards, ratio + (high - ratio) * upwards


def _skewness(pairs: NDArray[np.float64], ratio: float) -> float:
    """Return the skewness of ``above - ratio below``, corrected for the number of runs; 0 if only rounding differs."""
    n_runs = pairs.shape[1]
    if n_runs < 3 or not _differ(pairs, ratio).any():
        return 0.0
    rest = pairs[0] - ratio * pairs[1]
    rest = rest - rest.mean()
    return float(np.sqrt(n_runs * (n_runs - 1)) / (n_runs - 2) * (rest**3).mean() / (rest**2).mean() ** 1.5)


def _untransformed(y: float, skew: float) -> float:
    """Return the t that Hall's transformation ``t + s t^2 / 3 + s^2 t^3 / 27 + s / 6`` takes to ``y``."""
    if abs(skew) < SAME:
        return y
    return 3.0 * (float(np.cbrt(1.0 + skew * (y - skew / 6.0))) - 1.0) / skew


def _fieller(pairs: NDArray[np.float64], quantile: float) -> tuple[float, float]:
    """Return the ratios at which t is this quantile from 0, either way; NaN if the mean below may be 0."""
    top, base = pairs.mean(axis=1)
    (v_top, shared), (_, v_base) = quantile**2 / pairs.shape[1] * np.cov(pairs)
    square = base**2 - v_base
    if square <= 0.0:
        return np.nan, np.nan
    middle = top * base - shared
    reach = np.sqrt(max(middle**2 - square * (top**2 - v_top), 0.0))
    return float((middle - reach) / square), float((middle + reach) / square)


def _rare(pairs: NDArray[np.float64], least: float, confidence: float) -> float:
    """Return up to where the ratio may be if few losses were as large as the largest; ``-inf`` if enough were."""
    above, below = pairs
    losses = above - least * below
    most = float(losses.max())
    if not _differ(pairs, least).any():
        return -np.inf
    large = losses >= most / 2.0
    if large.sum() >= FEW:
        return -np.inf
    others = float(losses[~large].sum()) / above.size
    left = float(above.mean()) - others - _largest_probability(int(large.sum()), above.size, confidence) * most
    return least * float(above.mean()) / left if left > 0.0 else np.inf


def _largest_probability(seen: int, n_runs: int, confidence: float) -> float:
    """Return Clopper and Pearson's upper end for an event that was ``seen`` in so many of ``n_runs``."""
    return float(special.betaincinv(seen + 1, n_runs - seen, confidence)) if seen < n_runs else 1.0


def ratio(above: float, below: float) -> float:
    """Return ``above / below`` if both are positive, else NaN."""
    return above / below if above > 0 and below > 0 else np.nan
