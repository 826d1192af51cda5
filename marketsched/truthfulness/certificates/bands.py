r"""Confidence bounds for means of bounded variables, and for shares: what certificates rest on.

For independent variables in [0, 1] with mean :math:`\mu` and sample mean :math:`\bar Y` of n values,

.. math:: \Pr[\bar Y \le q] \le e^{-n\,kl(q, \mu)} \; (q \le \mu), \qquad
   kl(q, \mu) = q \ln\frac{q}{\mu} + (1-q) \ln\frac{1-q}{1-\mu},

and the same for :math:`\bar Y \ge q \ge \mu` ([Hoe63]_, Theorem 1). So each of

.. math:: \max\{\mu \ge \bar Y : kl(\bar Y, \mu) \le \ln(1/\delta)/n\}, \qquad
   \min\{\mu \le \bar Y : kl(\bar Y, \mu) \le \ln(1/\delta)/n\}

holds with probability :math:`1-\delta`, whatever the distribution. Near 0, where failures live, the
first is :math:`\bar Y + \sqrt{2 \bar Y x} + O(x)` with :math:`x = \ln(1/\delta)/n`: no variance needs to
be estimated, and a mean of 0 gives :math:`1 - \delta^{1/n}`, which is exact. Several bounds hold
together if their :math:`\delta` add up (Bonferroni).

References
----------
.. [Hoe63] Hoeffding: Probability Inequalities for Sums of Bounded Random Variables, JASA 58 (1963).
.. [CP34] Clopper, Pearson: The Use of Confidence or Fiducial Limits Illustrated in the Case of the
   Binomial, Biometrika 26 (1934).
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
from numba import njit
from numpy.typing import ArrayLike, NDArray

from marketsched.mechanisms.errors import InvalidParameterError
from marketsched.mechanisms.legal import Amount, Count, Finite, OpenShare, Whole, legal

HALVINGS = 50  # of an interval that is at most a few times as wide as the answer


def upper_means(means: ArrayLike, samples: int, failure: float) -> NDArray[np.float64]:
    r"""Return an upper bound of the true mean for each mean of ``samples`` independent values in [0, 1], in its shape.

    ``failure`` is :math:`\delta` of each bound, in (0, 1).

    Examples
    --------
    No failure among 299 says with 95 % confidence that fewer than 1 % fail:

    >>> float(upper_means(0.0, 299, 0.05).round(4))
    0.01
    """
    return _bounds(means, math.log(1 / failure) / samples, upper=True)


def lower_means(means: ArrayLike, samples: int, failure: float) -> NDArray[np.float64]:
    """Return a lower bound of the true mean for each sample mean; parameters as `upper_means`."""
    return _bounds(means, math.log(1 / failure) / samples, upper=False)


def rough_upper_means(means: NDArray[np.float64], samples: int, failure: float) -> NDArray[np.float64]:
    r"""Return what `upper_means` is at most, by :math:`kl(q, \mu) \ge (\mu - q)^2 / (2 \mu)`: fast, for choosing."""
    distance = math.log(1 / failure) / samples
    return np.asarray(np.minimum(1.0, means + distance + np.sqrt(distance * (distance + 2.0 * means))))


def rough_lower_means(means: NDArray[np.float64], samples: int, failure: float) -> NDArray[np.float64]:
    """Return what `lower_means` is at least; see `rough_upper_means`."""
    return np.asarray(np.maximum(0.0, means - np.sqrt(2.0 * means * math.log(1 / failure) / samples)))


@legal
def share_at_least(successes: int, trials: Count, confidence: OpenShare) -> float:
    """Return the lower Clopper-Pearson bound of a probability.

    It is one-sided, of a ``confidence`` in (0, 1), from counts of independent ``trials`` >= 1.

    Examples
    --------
    459 owners of 459 within the tolerance: at least 99 % are, at 99 % confidence.

    >>> share_at_least(459, 459, 0.99) >= 0.99 > share_at_least(458, 458, 0.99)
    True
    """
    from scipy.special import betaincinv

    successes = Whole(0, trials).check("successes", successes)
    if successes == 0:
        return 0.0
    return float(betaincinv(successes, trials - successes + 1, 1 - confidence))


@legal
def certify_population(bounds: Iterable[float], tolerance: Amount, confidence: float = 0.99) -> float:
    """Return the share of owners that gain at most ``tolerance`` credits by any misreport, at least.

    ``bounds`` are sure upper ends of the regrets of owners drawn at random, credits: each of them independently, or one
    from each of as many equal parts of the population, as `certify_owners` draws them (no exceedance is no likelier
    then). ``confidence``, in (0, 1), is that of the statement. If the bounds hold with probability c alone, an owner
    whose gain is above the tolerance has a larger bound, or one that does not hold: 1 - c is to be taken off.

    Examples
    --------
    >>> certify_population([0.0] * 459, tolerance=0.01) >= 0.99
    True
    """
    found = [Finite("(-inf, inf)").check(f"bounds[{i}]", bound) for i, bound in enumerate(bounds)]
    if not found:
        raise InvalidParameterError("bounds is empty: expected at least one owner")
    return share_at_least(sum(bound <= tolerance for bound in found), len(found), confidence)


def _bounds(means: ArrayLike, distance: float, *, upper: bool) -> NDArray[np.float64]:
    given = np.asarray(means, dtype=np.float64)
    flat = np.clip(given.ravel(), 0.0, 1.0)  # sums of products may leave [0, 1] by a rounding
    found = np.empty_like(flat)
    _bounds_kernel(flat, distance, upper, found)
    return found.reshape(given.shape)


@njit(cache=True)
def _bounds_kernel(means, distance, upper, found):  # type: ignore[no-untyped-def]
    """Bisect kl(mean, q) = distance on the side of q that is asked for; end on the safe side."""
    for i in range(means.size):
        p = means[i]
        if upper:
            inside, outside = p, min(1.0, p + distance + np.sqrt(distance * (distance + 2.0 * p)))
        else:
            inside, outside = p, max(0.0, p - np.sqrt(2.0 * p * distance))
        if p == 0.0:
            outside = -np.expm1(-distance) if upper else 0.0
        elif p == 1.0:
            outside = 1.0 if upper else np.exp(-distance)
        else:
            for _ in range(HALVINGS):
                q = 0.5 * (inside + outside)
                if q <= 0.0 or q >= 1.0:
                    break
                if p * np.log(p / q) + (1.0 - p) * np.log((1.0 - p) / (1.0 - q)) > distance:
                    outside = q
                else:
                    inside = q
        found[i] = outside
