"""Where the state of online gradient ascent lies, and how a pass runs over it: along columns, or across them.

Both states offer the same: ``put`` a channel array, ``run`` the pass over some blocks, ``show`` the channel
array. The cut into blocks is fixed by the cluster, so sums do not depend on who runs which block.
"""

from __future__ import annotations

from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from marketsched.mechanisms.allocation.cluster import BipartiteCluster
from marketsched.mechanisms.allocation.gains import LINEAR, LOG, POLY, RECIPROCAL
from marketsched.mechanisms.allocation.lane_kernels import LANES, lane_kernel
from marketsched.mechanisms.allocation.oga_kernels import pass_kernel
from marketsched.mechanisms.allocation.projection import column_limits

BLOCKS: Final = 16  # at most; as many threads are of use
GROUPS_PER_BLOCK: Final = 24  # at least, in lanes: a smaller pass is over before a second thread wakes
NARROW: Final = 24  # up to so many ports of an instance, columns lie in lanes
_NUMBERS: Final = 7  # of a lane's gain: a, b, p0, p1, p2, p3, and the overhead

Numbers = NDArray[np.float64]


class State(Protocol):
    """What `oga.OgaSched` needs of a state."""

    sums: Numbers  # (n_blocks, 3, n_types * n_ports): amounts, squares of slopes, of slopes less overhead

    def put(self, flat: Numbers) -> None:
        """Take over a channel array; slopes and sums are right after the next `run` of all blocks."""

    def run(self, first: int, last: int, moves: Numbers, cuts: Numbers) -> None:
        """Take the step that the tables say in blocks ``first`` to ``last``, the latter excluded."""

    def show(self) -> Numbers:
        """Return the amounts as a read-only channel array, good until the next `run`."""


def state_of(cluster: BipartiteCluster) -> State:
    """Return the faster state for a cluster."""
    widest = int(np.diff(cluster.layout.offsets).max())
    return LaneState(cluster) if widest <= NARROW else ColumnState(cluster)


class ColumnState:
    """The state as a channel array; the pass runs along columns (see `oga_kernels`)."""

    def __init__(self, cluster: BipartiteCluster) -> None:
        layout = cluster.layout
        n_blocks = min(BLOCKS, cluster.n_instances)
        shares = np.arange(n_blocks + 1) * layout.n_channels / n_blocks
        blocks = np.searchsorted(layout.offsets[:-1], shares)
        blocks[0], blocks[-1] = 0, cluster.n_instances
        self._places = tuple(x.astype(np.uint64) for x in (blocks, layout.offsets, layout.ports))
        given = column_limits(cluster.bounds, cluster.capacities.ravel(), layout.columns)
        self._limits = (given.limits, given.scales, given.caps)
        self._gains = (cluster.gain.ravel(), cluster.alpha.ravel(), cluster.overhead)
        self._y, self._slopes = np.zeros(layout.size), np.zeros(layout.size)
        self.sums: Numbers = np.zeros((n_blocks, 3, cluster.n_types * cluster.n_ports))

    def put(self, flat: Numbers) -> None:
        """See `State`."""
        self._y[:] = flat

    def run(self, first: int, last: int, moves: Numbers, cuts: Numbers) -> None:
        """See `State`."""
        pass_kernel(first, last, *self._places, *self._limits, *self._gains, self._y, self._slopes, moves, cuts, self.sums)

    def show(self) -> Numbers:
        """See `State`."""
        return _read_only(self._y)


class LaneState:
    """The state in groups of columns of one type, column beside column (see `lane_kernels`).

    Columns are ordered by type, by gain and by number of ports, so that a group seldom mixes gains and
    has few empty rows.
    """

    def __init__(self, cluster: BipartiteCluster) -> None:
        self._layout = layout = cluster.layout
        lanes, n_types = int(LANES), cluster.n_types
        degrees = np.diff(layout.offsets)
        members, group_type, group_rows = [], [], []
        for k in range(n_types):
            order = np.lexsort((degrees, cluster.gain[:, k]))
            order = order[degrees[order] > 0]
            for begin in range(0, order.size, lanes):
                members.append(order[begin : begin + lanes])
                group_type.append(k)
                group_rows.append(degrees[members[-1]].max() + 1 & ~1)  # even
        rows = np.array(group_rows, dtype=np.int64)
        begins = np.concatenate(([0], np.cumsum(rows * lanes)))
        n_groups, size = len(members), int(begins[-1])
        roots = np.zeros(n_groups, dtype=np.int64)
        caps, forms = np.ones((n_groups, 2, lanes)), np.zeros((n_groups, _NUMBERS, lanes))
        forms[:, 2] = 1.0  # an empty lane has slope 0
        self._place = np.empty(layout.size, dtype=np.int64)
        for group, (k, instances) in enumerate(zip(group_type, members, strict=True)):
            here = slice(0, instances.size)
            capacity = cluster.capacities[instances, k]
            caps[group, :, here] = capacity, (rows[group] + 4) * 2.0**-52 * capacity
            codes = cluster.gain[instances, k]
            roots[group] = (codes == POLY).any()
            forms[group, :, here] = _slope_numbers(codes, cluster.alpha[instances, k], cluster.overhead[k])
            for lane, r in enumerate(instances):
                column = layout.columns[r * n_types + k]
                self._place[column : column + degrees[r]] = begins[group] + lane + lanes * np.arange(degrees[r])
        limits, ports = np.zeros(size), np.full(size, cluster.n_ports)
        limits[self._place] = column_limits(cluster.bounds, cluster.capacities.ravel(), layout.columns).limits
        owners = np.broadcast_to(np.arange(cluster.n_ports)[:, None], (cluster.n_ports, n_types)).astype(np.float64)
        ports[self._place] = layout.spread_ports(owners).astype(np.int64)
        alike = bool((degrees == cluster.n_ports).all())
        n_blocks = int(np.clip(n_groups // GROUPS_PER_BLOCK, 1, BLOCKS))
        self._given = (
            np.linspace(0, n_groups, n_blocks + 1).astype(np.uint64),
            np.stack((np.array(group_type), begins[:-1], rows, roots), axis=1).astype(np.uint64),
            ports[: 0 if alike else size].astype(np.uint64),
            limits,
            caps.ravel(),
            forms.ravel(),
        )
        self._y, self._slopes = np.zeros(size), np.zeros(size)
        self._n_ports = np.uint64(cluster.n_ports)
        self._flat = np.zeros(layout.size)
        self._current = True
        self.sums: Numbers = np.zeros((n_blocks, 3, n_types * cluster.n_ports))

    def put(self, flat: Numbers) -> None:
        """See `State`."""
        self._y[self._place] = flat
        self._current = False

    def run(self, first: int, last: int, moves: Numbers, cuts: Numbers) -> None:
        """See `State`."""
        self._current = False
        lane_kernel(
            first, last, *self._given, self._y, self._slopes, moves, cuts, self.sums, self._n_ports
        )

    def show(self) -> Numbers:
        """See `State`."""
        if not self._current:
            np.take(self._y, self._place, out=self._flat, mode="clip")
            self._current = True
        return _read_only(self._flat)


def _slope_numbers(codes: NDArray[np.int8], alpha: Numbers, beta: float) -> Numbers:
    """Return the seven numbers of each lane, shape (7, n); see `lane_kernels`."""
    numbers = np.zeros((_NUMBERS, codes.size))
    numbers[0] = np.choose(codes, [alpha, alpha, np.ones_like(alpha), 0.5 * alpha])
    numbers[1] = np.where(codes == RECIPROCAL, alpha, 1.0)
    for row, code in ((2, LINEAR), (3, LOG), (4, RECIPROCAL), (5, POLY)):
        numbers[row] = codes == code
    numbers[6] = beta
    return numbers


def _read_only(array: Numbers) -> Numbers:
    view = array.view()
    view.flags.writeable = False
    return view
