r"""From failure counts to bounds of the regret: the best response over all misreports, and its band.

.. math:: \text{regret} = \max_{c'} \sum_{(a,o)} \max_s \; E[X_{a,o}(s, c') - X_{a,o}(L(a,o), c)],

with X the realised utility of a case and L the truthful plan. An upper bound of every difference in
the maximum gives one of the regret. Two kinds hold, and the smaller one counts:

* *granted*: the start is taken to be worth :math:`\sum P\,(V-\pi)^+`, as if it failed only where that
  helps the owner. What is left to bound is the truthful utility of the case, once for all starts: the
  better bound where hardly anything fails;
* *counted*: the paired difference (`marketsched.truthfulness.certificates.paired`), a pair of bounds for each start:
  the better one elsewhere, independently of the mechanism's estimates.

The truthful utility is also bounded for a pool of cases as a whole: those whose starts are all better
granted by the mechanism's own estimates, which know nothing of the fresh paths. The probabilities of error
add up: half of what is allowed goes to the truthful utilities (half of that to the pool as a whole, half
by case), a quarter to counted starts, and a quarter to the lower end of the sandwich.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from marketsched.truthfulness.certificates.alternatives import Alternatives
from marketsched.truthfulness.certificates.bands import lower_means, upper_means
from marketsched.truthfulness.certificates.paired import Comparison, FailureCounts, share

FOR_LOWER_END, FOR_COUNTED, FOR_TRUTH = 0.25, 0.25, 0.5


class BestResponse(NamedTuple):
    """A best response: a concurrency, as an index, and the column of each case."""

    gain: float  # over the truth, credits
    width: int
    columns: NDArray[np.int64]  # (n_cases,)


def best_responses(options: Alternatives, utilities: NDArray[np.float64]) -> list[BestResponse]:
    """Return the best open starts for each concurrency, the best first.

    For the true concurrency the truthful start of a case stays unless another one is better.

    ``utilities`` are those of `Alternatives.utilities`, credits, shape (n_widths, n_cases, n_starts + 1).
    """
    gains = np.where(options.open, utilities - options.truthful(utilities)[:, np.newaxis], -np.inf)
    return _best_columns(options, gains)


def _best_columns(options: Alternatives, gains: NDArray[np.float64]) -> list[BestResponse]:
    cases = np.arange(options.chosen.size)
    gains[0, cases, options.chosen] = 0.0
    columns = gains.argmax(axis=2)  # (n_widths, n_cases)
    best = np.take_along_axis(gains, columns[:, :, np.newaxis], axis=2)[:, :, 0]
    columns[0] = np.where(best[0] > 0, columns[0], options.chosen)
    plans = [BestResponse(float(best[w].sum()), w, columns[w]) for w in range(columns.shape[0])]
    return sorted(plans, key=lambda plan: -plan.gain)


def regret_ceiling(options: Alternatives, compared: Comparison, counts: FailureCounts, failure: float) -> float:
    """Return a number that the true regret exceeds with probability at most three quarters of ``failure``.

    ``failure`` is the probability of error of the whole sandwich; ``compared`` and ``counts`` are from fresh paths.
    """
    weights = options.law.probabilities[:, np.newaxis]
    granted = np.where(options.open, options.by_case(weights * np.maximum(options.net, 0.0)), -np.inf)
    pool = _pool(options, granted, counts.samples, failure)
    floors, pooled_floor = _truthful_floors(options, counts, FOR_TRUTH * failure, pool)
    best = _case_ceilings(options, compared, granted - floors[:, np.newaxis], failure)
    # On no path is the truthful start of a case worth more than it is granted, so none of these terms is negative.
    whole = granted.max(axis=2)[:, pool].sum(axis=1) - pooled_floor
    totals = best[:, ~pool].sum(axis=1) + np.minimum(best[:, pool].sum(axis=1), whole)
    return float(totals.max())


def plan_floor(compared: Comparison, is_open: NDArray[np.bool_], plan: BestResponse, failure: float) -> float:
    """Return a number that the true gain of ``plan`` falls short of with probability at most a quarter of ``failure``.

    It holds for all plans at once, so the plan may be chosen after looking at the paths.
    """
    cells = np.full(plan.columns.size, plan.width), np.arange(plan.columns.size), plan.columns
    return float(compared.bounds(cells, _lower_end(is_open, failure), upper=False).sum())


def likely_plans(options: Alternatives, compared: Comparison, failure: float) -> list[BestResponse]:
    """Return for each concurrency the plan whose gain is surest, the best first; ``gain`` is a rough lower end."""
    floors = np.full(options.open.shape, -np.inf)
    floors[options.open] = compared.bounds(options.open, _lower_end(options.open, failure), upper=False, rough=True)
    return _best_columns(options, floors)


def _lower_end(is_open: NDArray[np.bool_], failure: float) -> float:
    return FOR_LOWER_END * failure / (2 * int(is_open.sum()))


def _each_counted(options: Alternatives, failure: float) -> float:
    return FOR_COUNTED * failure / (2 * int(options.open.sum()))


def _pool(options: Alternatives, granted: NDArray[np.float64], samples: int, failure: float) -> NDArray[np.bool_]:
    """Return for which cases, by the mechanism's estimates, granting all starts gives little away, (n_cases,).

    Little is what the bounds of a counted start could not resolve; or a start could not beat the truth.
    """
    size = options.by_case(options.law.probabilities[:, np.newaxis] * np.abs(options.net))
    prior = options.utilities(options.estimates)
    truthful = options.truthful(prior)[:, np.newaxis]
    given_away = granted - prior > -np.log(_each_counted(options, failure)) / samples * size
    return np.asarray(~(options.open & given_away & (granted > truthful)).any(axis=(0, 2)))


def _truthful_floors(
    options: Alternatives, counts: FailureCounts, failure: float, pool: NDArray[np.bool_]
) -> tuple[NDArray[np.float64], float]:
    """Return lower bounds of the truthful utility of each case, and of that of all cases in the pool together.

    Half of ``failure`` is for either. A failing launch costs its V - pi where that is positive, and helps
    where it is negative; both sums are means of bounded variables.
    """
    anchors = options.anchors
    runs, launched = anchors >= 0, np.maximum(anchors, 0)
    net, failing = np.zeros(anchors.size), np.zeros(anchors.size)
    if options.n_starts:
        net = np.where(runs, options.net[0, np.arange(anchors.size), launched], 0.0) * options.law.probabilities
        failing = counts.failing[0, options.lengths, launched] / counts.samples
    of_points = np.stack([np.maximum(net, 0.0), np.maximum(-net, 0.0)])
    worth = np.add.reduceat(of_points, options.law.offsets[:-1], axis=1)  # (2, n_cases): where positive, negative
    spoilt = np.add.reduceat(failing * of_points, options.law.offsets[:-1], axis=1)
    whole = _utility_floors(
        worth[:, pool].sum(1, keepdims=True), spoilt[:, pool].sum(1, keepdims=True), counts, failure
    )
    return _utility_floors(worth, spoilt, counts, failure), float(whole[0])


def _utility_floors(
    worth: NDArray[np.float64], spoilt: NDArray[np.float64], counts: FailureCounts, failure: float
) -> NDArray[np.float64]:
    """Return lower bounds of utilities: ``worth`` if nothing fails, and the mean of what failing takes of it.

    The first rows are what is won, the second what is lost; all bounds together take half of ``failure``.
    """
    each = failure / 2 / max(1, int((worth > 0).sum()))
    taken = worth[0] * upper_means(share(spoilt[0], worth[0]), counts.samples, each)
    spared = worth[1] * lower_means(share(spoilt[1], worth[1]), counts.samples, each)
    return np.asarray(worth[0] - taken - worth[1] + spared)


def _case_ceilings(
    options: Alternatives, compared: Comparison, granted: NDArray[np.float64], failure: float
) -> NDArray[np.float64]:
    """Return upper bounds of what each case can gain, (n_widths, n_cases); ``granted``: bounds of one kind.

    The rough bounds of the other kind come first. Only where they could decide are they made exact: below
    the granted one, and above what is gained by the estimates of some start, which no bound is below.
    """
    is_open, each = options.open, _each_counted(options, failure)
    bounds = np.full(is_open.shape, -np.inf)
    bounds[is_open] = np.minimum(granted[is_open], compared.bounds(is_open, each, upper=True, rough=True))
    bounds[0, np.arange(options.chosen.size), options.chosen] = 0.0  # the truth itself
    estimates = np.where(is_open, compared.base + compared.plus - compared.minus, -np.inf)
    close = is_open & (bounds < granted) & (bounds > estimates.max(axis=2, keepdims=True))
    close[0, np.arange(options.chosen.size), options.chosen] = False
    bounds[close] = np.minimum(bounds[close], compared.bounds(close, each, upper=True))
    return np.asarray(bounds.max(axis=2))
