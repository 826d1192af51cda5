r"""How often launches fail, and two plans on the same paths: the gain of a start over the truthful one, path by path.

On one path let :math:`F_a, F_t \in \{0, 1\}` say whether the alternative and the truthful launch of a
point (a, d, o) fail, and let :math:`w_a, w_t` be value minus price of the two. The point's realised
difference :math:`(1-F_a) w_a - (1-F_t) w_t` takes one value for each of the four pairs of failures. One pair
is expected: that of the mechanism's estimates, rounded to 0 or 1, which know nothing of these paths. The
difference is then its value at that pair, plus a deviation that is 0 unless something else happens;
the positive and the negative part of the deviation, summed over the points of a case with their
probabilities, are bounded and non-negative. Both launches failing together, as in an overload they do,
is one pair like any other, so what they share cancels.

The means of the parts follow from three counts for each pair of launches, so every path is read once.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from marketsched.mechanisms.posted.failure_table import Launches
from marketsched.mechanisms.posted.inspection import Inspection
from marketsched.truthfulness.certificates.alternatives import Alternatives
from marketsched.truthfulness.certificates.bands import lower_means, rough_lower_means, rough_upper_means, upper_means

FEW_OUTCOMES = 20_000  # joint outcomes of the earlier jobs up to which enumerating costs less than drawing
AT_ONCE = 16_384  # paths drawn at a time, so that memory does not grow with their number

Selection = tuple[NDArray[np.int64], ...] | NDArray[np.bool_]


class FailureCounts(NamedTuple):
    """How often launches fail on fresh paths."""

    samples: int
    failing: NDArray[np.int64]  # (n_widths, n_durations, n_starts), paths
    together: NDArray[np.int64]  # (n_widths, n_points, n_starts), paths on which the truthful launch fails, too

    def shares(self) -> NDArray[np.float64]:
        """Return the share of failing paths, shape (n_widths, n_durations, n_starts)."""
        return self.failing / self.samples


def exact_failures(view: Inspection, options: Alternatives) -> NDArray[np.float64]:
    """Return the true failure probabilities of all launches, shape (n_widths, n_durations, n_starts).

    Raises TooLargeError if there are too many joint outcomes of the earlier jobs.
    """
    ahead = options.first_start - view.now
    columns = options.durations - 1
    longest = int(options.durations[-1])
    tables = [view.exact_failures(int(c), ahead + options.n_starts, longest) for c in options.concurrencies]
    return np.stack([table[ahead:, columns].T for table in tables])


def count_failures(view: Inspection, options: Alternatives, samples: int, rng: np.random.Generator) -> FailureCounts:
    """Count failures of all launches on ``samples`` fresh paths, alone and together with the truthful launch."""
    failing = np.zeros((options.concurrencies.size, options.durations.size, options.n_starts), dtype=np.int64)
    together = np.zeros(options.net.shape, dtype=np.int64)
    launches = Launches(options.durations, options.anchors, options.lengths)
    for drawn in range(0, samples, AT_ONCE):
        paths = view.fresh_paths(min(AT_ONCE, samples - drawn), rng)
        alone, both = paths.joint_counts(options.concurrencies, options.first_start, options.n_starts, launches)
        failing += alone
        together += both
    return FailureCounts(samples, failing, together)


class Truthful(NamedTuple):
    """The truthful launch of each point (a, d, o) of the law, arrays (n_points,)."""

    anchors: NDArray[np.int64]  # its start as a column, -1: not run
    nets: NDArray[np.float64]  # value minus price, credits; 0: not run
    expected: NDArray[np.bool_]  # whether the mechanism expects it to fail
    failing: NDArray[np.int64]  # paths on which it fails


class Comparison(NamedTuple):
    """Each start against the truthful one: ``base + plus - minus``, arrays (n_widths, n_cases, n_starts + 1), credits.

    ``plus`` and ``minus`` are sample means of variables between 0 and ``plus_range``, ``minus_range``.
    """

    samples: int
    base: NDArray[np.float64]  # the difference if all goes as expected
    plus: NDArray[np.float64]
    minus: NDArray[np.float64]
    plus_range: NDArray[np.float64]
    minus_range: NDArray[np.float64]

    def bounds(self, chosen: Selection, failure: float, *, upper: bool, rough: bool = False) -> NDArray[np.float64]:
        """Return bounds of the chosen true differences; each takes two bounds of ``failure``.

        They are from above with ``upper``, else from below; ``rough`` ones are at most (from below: at least) the exact
        ones, and fast, for choosing.
        """
        highest, lowest = (rough_upper_means, rough_lower_means) if rough else (upper_means, lower_means)
        rising, falling = (highest, lowest) if upper else (lowest, highest)
        rises = share(self.plus[chosen], self.plus_range[chosen])  # as means of variables in [0, 1]
        falls = share(self.minus[chosen], self.minus_range[chosen])
        return np.asarray(
            self.base[chosen]
            + self.plus_range[chosen] * rising(rises, self.samples, failure)
            - self.minus_range[chosen] * falling(falls, self.samples, failure)
        )


def share(mean: NDArray[np.float64], largest: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return ``mean / largest``, and 0 where nothing can happen."""
    return np.divide(mean, largest, out=np.zeros_like(mean), where=largest > 0)


def compare(options: Alternatives, counts: FailureCounts) -> Comparison:
    """Compare every open start with the truthful one of its case, by failures counted on fresh paths."""
    anchors = options.anchors
    launched = np.maximum(anchors, 0)
    points = np.arange(anchors.size)
    runs = anchors >= 0
    nets = np.where(runs, options.net[0, points, launched], 0.0) if options.n_starts else np.zeros(anchors.size)
    failures, expected = np.zeros_like(anchors), np.zeros(anchors.size, dtype=np.bool_)
    if options.n_starts:
        failures = counts.failing[0, options.lengths, launched] * runs
        expected = (options.estimates[0, options.lengths, launched] > 0.5) & runs
    truthful = Truthful(anchors, nets, expected, failures)
    found = Comparison(counts.samples, *(np.zeros(options.open.shape) for _ in range(5)))
    _compare_kernel(
        options.law.offsets, options.law.probabilities, options.lengths, options.net, options.open,
        options.estimates > 0.5, truthful, counts, found,
    )  # fmt: skip
    return found


@njit(cache=True)
def _compare_kernel(offsets, weights, lengths, net, is_open, expected, truthful, counts, found):  # type: ignore[no-untyped-def]
    """Fill the five tables of a `Comparison` for open starts; the last column is not running.

    ``truthful`` is a `Truthful`, ``counts`` a `FailureCounts` on the same paths.

    The pairs of failures are (none, the other, the truthful one, both). A launch in the same round on as
    many nodes never differs from the truthful one, and one on more nodes never survives it.
    """
    samples, base, plus, minus, plus_range, minus_range = found
    n_widths, n_cases, n_columns = base.shape
    values = np.zeros(4)
    paths = np.zeros(4)
    for w in range(n_widths):
        for g in range(n_cases):
            for i in range(n_columns):
                if not is_open[w, g, i]:
                    continue
                for k in range(offsets[g], offsets[g + 1]):
                    worth, fails, both, other_expected = 0.0, 0, 0, False
                    if i < n_columns - 1:
                        worth, fails = net[w, k, i], counts.failing[w, lengths[k], i]
                        both = counts.together[w, k, i]
                        other_expected = expected[w, lengths[k], i]
                    guess = (2 if truthful.expected[k] else 0) + (1 if other_expected else 0)
                    own = truthful.nets[k]
                    values[0], values[1], values[2], values[3] = worth - own, -own, worth, 0.0
                    paths[1], paths[2], paths[3] = fails - both, truthful.failing[k] - both, both
                    paths[0] = samples - paths[1] - paths[2] - paths[3]
                    most, least = 0.0, 0.0
                    for pair in range(4):
                        deviation = values[pair] - values[guess]
                        if i != truthful.anchors[k] or pair == 0 or pair == 3 or (pair == 1 and w > 0):
                            most, least = max(most, deviation), min(least, deviation)
                        if deviation > 0.0:
                            plus[w, g, i] += weights[k] * deviation * paths[pair] / samples
                        else:
                            minus[w, g, i] -= weights[k] * deviation * paths[pair] / samples
                    base[w, g, i] += weights[k] * values[guess]
                    plus_range[w, g, i] += weights[k] * most
                    minus_range[w, g, i] -= weights[k] * least
