r"""The posted rates per node and round, computed from departed jobs and the widths of arrivals.

The offered load, in nodes, is the mean over past rounds (.99 a quarter of an hour) of what arrived, as long as usual:

.. math:: A = E[\textstyle\sum_j c_j \bar m(c_j) \kappa].

The threshold :math:`\theta` is the first density of remembered jobs, from the highest down, at which the work of those
above reaches the share ``part`` C / A of all work. The regular rate is

.. math:: R = \text{factor} \cdot \theta, \quad\text{within the 20 \% and the 45 \% quantile of the densities;}

spare nodes cost a fifth of it. Rates are 0 until ten jobs have left, and change in every second round.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from marketsched.mechanisms.offers.departures import Odds

SPARE_PART = 0.2  # of the regular rate
QUANTILES = (0.2, 0.45)
FEWEST = 10  # departures before anything costs
KEPT = 0.99  # of the offered load, a quarter of an hour


class OfferedLoad:
    """The mean over past rounds of the node-rounds that arrive, at the usual length of their widths.

    ``kept`` is the part of the past that counts a round later. ``sums``, shape (3,): what was offered and the rounds it
    came in, both fade; and what has arrived in this round.
    """

    def __init__(self, capacity: int, kept: float = KEPT) -> None:
        self.capacity, self.kept = capacity, kept
        self.sums = np.zeros(3)

    @property
    def share(self) -> float:
        """A / C, 0 before the first round."""
        return float(_share_kernel(self.sums, self.capacity))

    def arrives(self, width: float, usual_rounds: float, kappa: float) -> None:
        """Count a job that arrives; it enters from the next round on."""
        self.sums[2] += width * usual_rounds * kappa

    def pass_rounds(self, count: int = 1) -> None:
        """Let so many rounds begin."""
        for _ in range(count):
            _fade_kernel(self.sums, self.kept)


class Rates:
    """The posted rates of a market (spare, regular), credits per node and round, and its load A / C.

    ``part`` and ``factor`` say how the threshold is found, and what share of it is asked for.
    """

    def __init__(self, capacity: int, part: float, factor: float, kept: float = KEPT) -> None:
        self._part, self._factor, self._offered = part, factor, OfferedLoad(capacity, kept)
        self._order = np.zeros(0, dtype=np.int64)  # of remembered jobs, from the highest density down
        self.posted = (0.0, 0.0)

    @property
    def load(self) -> float:
        """Offered load as a share of the machine; 0 before the first round."""
        return self._offered.share

    def arrives(self, width: float, usual_rounds: float, kappa: float) -> None:
        """Count a job that arrives; it enters rates from the next round on."""
        self._offered.arrives(width, usual_rounds, kappa)

    def post(self, first: int, learnt: Odds, count: int = 1) -> NDArray[np.float64]:
        """Set the rates of rounds from ``first`` on; return the regular rate that stood before each, shape (count,)."""
        densities, works = learnt.remembered
        if self._order.size < densities.size:
            self._order = np.concatenate([self._order, np.arange(self._order.size, densities.size)])
        offered, known, before = self._offered, learnt.departures >= FEWEST, np.empty(count)
        rules = (self._part * float(works.sum()), self._factor, *QUANTILES)
        regular = _post_kernel(
            first, offered.sums, offered.capacity, offered.kept, densities, works, self._order, known, rules,
            self.posted[1], before,
        )  # fmt: skip
        if regular != self.posted[1]:
            self.posted = (SPARE_PART * regular, regular)
        return before


@njit(cache=True)
def _fade_kernel(sums, kept):  # type: ignore[no-untyped-def]
    """Let a round begin."""
    sums[0] = kept * sums[0] + sums[2]
    sums[1] = kept * sums[1] + 1.0
    sums[2] = 0.0


@njit(cache=True)
def _share_kernel(sums, capacity):  # type: ignore[no-untyped-def]
    return sums[0] / max(1e-9, sums[1]) / capacity


@njit(cache=True)
def _post_kernel(  # type: ignore[no-untyped-def]
    first, sums, capacity, kept, densities, works, order, known, rules, regular, before
):
    """Fill the regular rate that stands before each round; return the one after them."""
    part, factor, low, high = rules
    for i in range(before.size):
        before[i] = regular
        _fade_kernel(sums, kept)
        if known and (first + i) % 2 == 0:
            most = part / max(1e-9, _share_kernel(sums, capacity))
            threshold, least, largest = _threshold_kernel(densities, works, order, most, low, high)
            regular = min(max(factor * threshold, least), largest)
    return regular


@njit(cache=True)
def _falling_kernel(densities, order):  # type: ignore[no-untyped-def]
    """Sort ``order`` by falling density, equal ones by place; fast because it is nearly sorted in each round."""
    for i in range(1, order.size):
        job, k = order[i], i - 1
        v = densities[job]
        while k >= 0 and (densities[order[k]] < v or (densities[order[k]] == v and order[k] > job)):
            order[k + 1] = order[k]
            k -= 1
        order[k + 1] = job


@njit(cache=True)
def _quantile_kernel(densities, order, share):  # type: ignore[no-untyped-def]
    """Return a quantile as ``numpy.quantile`` does, to the last bit."""
    last = order.size - 1
    place = share * last
    below = int(place)
    t = place - below
    a, b = densities[order[last - below]], densities[order[last - min(below + 1, last)]]
    return a + (b - a) * t if t < 0.5 else b - (b - a) * (1.0 - t)


@njit(cache=True)
def _threshold_kernel(densities, works, order, most, low, high):  # type: ignore[no-untyped-def]
    """Return the density at which the work of those above exceeds ``most``, and two quantiles."""
    _falling_kernel(densities, order)
    above, job = 0.0, 0
    for job in order:
        above += works[job]
        if above > most:
            break
    return densities[job], _quantile_kernel(densities, order, low), _quantile_kernel(densities, order, high)
