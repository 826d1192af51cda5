r"""The best fixed allocation: the benchmark of regret, with a certified gap.

Against arrivals that come to :math:`n_l` jobs of port :math:`l`, the best that one allocation can earn is

.. math:: \max_{y \in \mathcal{Y}} \sum_l n_l \Bigl[\sum_{r,k} f_r^k(y_{(l,r)}^k)
          - \max_k \beta_k \sum_r y_{(l,r)}^k\Bigr] ,

the :math:`Q(y^*)` in the regret of the OgaSched paper (its (6)). It is concave, not smooth, and large: 600,000
variables at the paper's large size. It is solved as a saddle (`fixed_kernels`) by the primal-dual method of [CP11]_
with steps per variable [PC11]_, restarts and a pace adapted at each of them [PDLP]_. The overhead couples a port's
amounts only through their sums per type; with steps in proportion to the range of each amount some tens to hundreds of
passes suffice.

The value is that of a feasible allocation. For any weights on types that sum to one per port, the weighted mean of the
overheads is at most their maximum, and the best allocation under it can be found exactly, column by column: its value
is the upper bound.

References
----------
.. [CP11] Chambolle, Pock: A First-Order Primal-Dual Algorithm for Convex Problems with Applications
   to Imaging, J. Math. Imaging Vis. 40, 2011.
.. [PC11] Pock, Chambolle: Diagonal Preconditioning for First Order Primal-Dual Algorithms in Convex
   Optimization, ICCV 2011.
.. [PDLP] Applegate, Diaz, Hinder, Lu, Lubin, O'Donoghue, Schudy: Practical Large-Scale Linear
   Programming using Primal-Dual Hybrid Gradient, NeurIPS 2021.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from marketsched.mechanisms.allocation.oga.fixed_kernels import (
    Point,
    Problem,
    primal_dual_kernel,
    typical_ranges_kernel,
    upper_bound_kernel,
    weighted_gain_kernel,
)
from marketsched.mechanisms.arrays import float_array, inner, read_only
from marketsched.mechanisms.errors import SolverError
from marketsched.mechanisms.legal import Count, OpenShare, legal

if TYPE_CHECKING:
    from marketsched.mechanisms.allocation.oga.cluster import BipartiteCluster

_Array = NDArray[np.float64]

NEGLIGIBLE = 1e-6  # of the gain without overhead: a smaller best value counts as this much where the gap is judged

_ROUNDS = 10  # steps between two looks at the gap
_SHARE = 0.1  # of the overhead: amounts whose slope is below it are out of the useful range
_PATIENCE = (30, 0.2)  # steps without success until a restart: at least, and as a share of all steps so far
_DETOURS = (1.0, 6.0, 1.0 / 6.0)  # paces tried, in turn, while there is no success


@dataclass(frozen=True, slots=True, eq=False)
class FixedAllocation:
    """An allocation :math:`y^*`, best for given arrivals up to a certified gap.

    Examples
    --------
    See `best_fixed_allocation`, which returns it.
    """

    allocation: _Array  # (n_ports, n_instances, n_types), feasible; read-only
    value: float  # its reward over all arrivals
    gap: float  # no feasible allocation earns more than ``value + gap``
    iterations: int  # primal-dual steps done

    @property
    def upper(self) -> float:
        """The upper bound on the value of every feasible allocation."""
        return self.value + self.gap


@legal
def best_fixed_allocation(
    cluster: BipartiteCluster, arrival_counts: ArrayLike, *, tolerance: OpenShare = 1e-3, max_iterations: Count = 20_000
) -> FixedAllocation:
    r"""Return the fixed allocation that earns most over given arrivals, with its certified gap.

    The same bits for the same arguments. At L = 10, R = 128, K = 6 it takes some hundredths of a
    second, at L = 100, R = 1024 some seconds, with about eight channel arrays of memory.

    Parameters
    ----------
    cluster : BipartiteCluster
    arrival_counts : array_like of float, shape (n_ports,)
        :math:`n_l \ge 0`: jobs of each port over all slots; rates serve as well.
    tolerance : float
        Largest gap, as a share of the value. Where the value is less than a millionth of
        what the gains alone could be, as a share of that millionth (there the best may be nothing).
    max_iterations : int
        Primal-dual steps allowed; SolverError if the gap is still larger then.

    Examples
    --------
    Two ports share one instance; the second comes more often, and 4 - 3 devices are left to the first.

    >>> from marketsched.mechanisms.allocation import BipartiteCluster
    >>> cluster = BipartiteCluster([[2.0], [3.0]], [[4.0]], [[True], [True]], "linear", 1.0, 0.25)
    >>> best = best_fixed_allocation(cluster, [10, 20])
    >>> best.allocation[:, 0, 0].round(6), round(best.value, 6), best.gap < 0.06
    (array([1., 3.]), 52.5, True)
    """
    counts = _counts(cluster, arrival_counts)
    scale = float(counts.max())
    search = _Search(cluster, counts / scale if scale > 0.0 else counts)
    floor = NEGLIGIBLE * search.bound(np.zeros_like(search.point.weights))
    while search.upper - search.value > tolerance * max(search.value, floor):
        if search.iterations >= max_iterations:
            reached = (search.upper - search.value) / max(search.value, floor)
            raise SolverError(
                f"best fixed allocation: gap {reached:.1e} after {search.iterations} iterations: expected at most "
                f"{tolerance:g}; allow more iterations or a larger tolerance"
            )
        search.advance(min(_ROUNDS, max_iterations - search.iterations))
    return search.result(scale)


class _Search:
    """The state of the primal-dual method, in counts scaled to at most 1 (see the module)."""

    def __init__(self, cluster: BipartiteCluster, counts: _Array) -> None:
        self._cluster, self._counts, self._problem = cluster, counts, _problem(cluster)
        shape = (cluster.n_ports, cluster.n_types)
        self._steps, self._dual_steps = _step_sizes(cluster, counts, self._problem)
        size = cluster.layout.size
        self.point = Point(np.zeros(size), np.full(shape, 1.0 / cluster.n_types), np.zeros(shape))
        self._prices = np.zeros(cluster.capacities.shape)
        self._sums = Point(np.zeros(size), np.zeros(shape), np.zeros(shape))
        self._summed = 0
        self._pace = self._base = 1.0
        self._failures = 0
        self._start = (self.point.flat.copy(), self.point.weights.copy(), np.inf)  # of this period: point and gap
        self.iterations = 0
        self.value, self._best = 0.0, self.point.flat.copy()  # the empty allocation is feasible
        self.upper = self.bound(self.point.weights)

    def bound(self, weights: _Array) -> float:
        """Return the exact upper bound at these weights."""
        return float(upper_bound_kernel(weights, self._counts, self._problem))

    def advance(self, rounds: int) -> None:
        """Do some steps, look at the last point and at the mean point of the period, and restart if it is time."""
        primal_dual_kernel(
            rounds, self._pace, self.point, self._prices, self._sums, self._steps, self._dual_steps, self._counts,
            self._problem
        )  # fmt: skip
        self.iterations += rounds
        self._summed += rounds
        mean = Point(*(array / self._summed for array in self._sums))
        gap_last, gap_mean = self._look(self.point), self._look(mean)
        if gap_mean < gap_last:
            self._restart_if_due(gap_mean, mean)
        else:
            self._restart_if_due(gap_last, self.point)

    def _look(self, point: Point) -> float:
        """Return the gap of a point; keep its halves if they are the best so far."""
        gain = weighted_gain_kernel(point.flat, self._counts, self._problem)
        value = float(gain - inner(self._counts, (self._problem.betas * point.totals).max(axis=1)))
        upper = self.bound(point.weights)
        if value > self.value:
            self.value = value
            self._best[:] = point.flat
        self.upper = min(self.upper, upper)
        return upper - value

    def _restart_if_due(self, gap: float, point: Point) -> None:
        """Start a new period from ``point`` when the gap has fallen enough, or has not for too long."""
        flat, weights, gap_before = self._start
        long = self._summed >= 0.36 * self.iterations
        success = gap <= 0.2 * gap_before or (long and gap <= 0.8 * gap_before)
        if not success and self._summed < max(_PATIENCE[0], _PATIENCE[1] * self.iterations):
            return
        for array, new in zip(self.point, point, strict=True):
            array[:] = new
        self._failures = 0 if success else self._failures + 1
        self._adapt_pace(flat, weights, success)
        flat[:], weights[:] = self.point.flat, self.point.weights
        self._start = (flat, weights, gap)
        self._summed = 0
        for array in self._sums:
            array[:] = 0.0

    def _adapt_pace(self, flat: _Array, weights: _Array, success: bool) -> None:
        """Balance how far allocation and weights moved in the period; without success, try other paces in turn."""
        turn = self._failures % len(_DETOURS)
        if success or turn == 1:
            now = self._pace if success else self._base
            moved = (
                np.sqrt(_length(self.point.flat - flat, self._steps)),
                np.sqrt(_length(self.point.weights - weights, self._dual_steps)),
            )
            if max(moved) > 0.0:
                ratio = moved[0] / moved[1] if moved[1] > 0.0 else np.inf  # the weights stood still: hurry
                self._base = now**0.3 * float(np.clip(ratio, now * 1e-4, now * 1e4)) ** 0.7
        self._pace = self._base * _DETOURS[turn]

    def result(self, scale: float) -> FixedAllocation:
        """Return the best point found, in the caller's counts."""
        allocation = self._cluster.layout.to_dense(self._best)
        read_only(allocation)
        gap = max(0.0, self.upper - self.value)  # below zero by rounding alone
        return FixedAllocation(allocation, scale * self.value, scale * gap, self.iterations)


def _counts(cluster: BipartiteCluster, arrival_counts: ArrayLike) -> _Array:
    return float_array("arrival_counts", arrival_counts, (cluster.n_ports,), lowest=0.0)


def _problem(cluster: BipartiteCluster) -> Problem:
    """Return what every kernel takes."""
    layout = cluster.layout
    return Problem(
        cluster.bounds, layout.ports, layout.offsets, cluster.capacities, cluster.gain, cluster.alpha, cluster.overhead
    )


def _step_sizes(cluster: BipartiteCluster, counts: _Array, problem: Problem) -> tuple[_Array, _Array]:
    """Return steps of amounts and of weights: largest for which the method converges, in proportion to ranges.

    The sums per port and type are the only coupling, each amount in one of them; a step of the weight
    times the squared coefficient times the sum of the amounts' steps may be 1 (Lemma 2 of [PC11]_).
    """
    layout = cluster.layout
    ranges = np.empty(layout.size)
    typical_ranges_kernel(ranges, _SHARE, problem)
    reach = np.zeros((cluster.n_ports, cluster.n_types))
    np.add.at(reach, layout.ports, ranges[layout.places])
    used = np.maximum(counts, 1e-9)  # a port without arrivals earns nothing; only division by zero is avoided
    steps = ranges * layout.spread_ports(np.repeat((counts > 0.0) / used, cluster.n_types).reshape(reach.shape))
    largest = max(float(cluster.overhead.max()), 1e-9)
    betas = np.maximum(cluster.overhead, 1e-3 * largest)  # a smaller step than allowed is as good
    reach = np.where(reach > 0.0, reach, 1.0)
    return steps, 1.0 / (used[:, None] * betas**2 * reach)


def _length(change: _Array, steps: _Array) -> float:
    """Return the squared length of a change in the metric of the steps; what has no step cannot change."""
    return float(np.sum(np.divide(change**2, steps, out=np.zeros_like(change), where=steps > 0.0)))
