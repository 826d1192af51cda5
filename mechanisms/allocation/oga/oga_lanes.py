"""Memory layout of online gradient ascent: columns of one type side by side, in groups of lanes.

Columns are ordered by type, by gain and by number of ports, so that a group seldom mixes gains and has few
empty rows. Groups are cut into blocks once, whichever thread runs which block; every block has sums of its own.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from marketsched.mechanisms.allocation.oga.cluster import BipartiteCluster
from marketsched.mechanisms.allocation.oga.gains import LINEAR, LOG, POLY, RECIPROCAL
from marketsched.mechanisms.allocation.oga.oga_kernels import LANES, Columns
from marketsched.mechanisms.arrays import read_only

BLOCKS: Final = 16  # of a cluster that is cut at all; as many threads are of use
SHARED: Final = 1 << 15  # places; the pass over a smaller cluster is over before a second thread wakes

_FORMS: Final = np.array([0, 1, 1, 2])  # of each gain's slope: constant, a quotient, one with a root

Numbers = NDArray[np.float64]
Places = NDArray[np.uint64]


class LaneState:
    """Amounts, slopes and sums of a cluster in lanes (see the module), and other inputs of the kernels.

    ``amounts`` and ``slopes`` are padded; ``sums``, shape (n_blocks, 3 * n_types * n_ports), are those of each block,
    by type and port: amounts, squares of slopes, squares of slopes less overhead; ``columns`` says which column lies
    where.
    """

    def __init__(self, cluster: BipartiteCluster) -> None:
        layout, n_types, lanes = cluster.layout, cluster.n_types, int(LANES)
        degrees = np.diff(layout.offsets)
        types, members = _cut_groups(cluster, degrees)
        rows = np.array([degrees[group].max() + 1 & ~1 for group in members], dtype=np.int64)  # even
        begins = np.concatenate(([0], np.cumsum(rows * lanes)))
        size, n_groups = int(begins[-1]), len(members)
        self._place = np.empty(layout.size, dtype=np.int64)
        numbers = _aligned(n_groups * 8 * lanes).reshape(n_groups, 8, lanes)
        numbers[:, 2] = 1.0  # an empty lane has slope 0
        for group, (k, instances) in enumerate(zip(types, members, strict=True)):
            numbers[group, :, : instances.size] = _numbers(cluster, k, instances)
            for lane, r in enumerate(instances):
                column = layout.columns[r * n_types + k]
                self._place[column : column + degrees[r]] = begins[group] + lane + lanes * np.arange(degrees[r])
        limits, ports = _aligned(size), np.full(size, cluster.n_ports)
        limits[self._place] = np.minimum(cluster.bounds, layout.spread_instances(cluster.capacities))
        ports[self._place] = layout.spread_ports(np.repeat(np.arange(cluster.n_ports)[:, None], n_types, axis=1))
        forms = [_FORMS[cluster.gain[group, k]].max() for k, group in zip(types, members, strict=True)]
        n_blocks = 1 if size < SHARED else min(BLOCKS, n_groups)
        blocks: Places = np.searchsorted(begins[:-1], np.arange(n_blocks + 1) * (size / n_blocks)).astype(np.uint64)
        blocks[-1] = n_groups
        groups: Places = np.stack((types, begins[:-1], rows, forms), axis=1).astype(np.uint64)
        alike = bool((degrees == cluster.n_ports).all())
        ports = ports[: 0 if alike else size].astype(np.uint64)
        self.columns = Columns(blocks, groups, ports, limits, numbers.ravel())
        self.amounts, self.slopes = _aligned(size), _aligned(size)
        self._scratch = lanes * int(3 + 6 * rows.max())
        self.sums = np.zeros((n_blocks, 3 * n_types * cluster.n_ports))
        self._flat = np.zeros(layout.size)

    def scratch(self) -> Numbers:
        """Return the memory that a thread needs for the pass."""
        return _aligned(self._scratch)

    def put(self, flat: Numbers) -> None:
        """Take over the amounts of a channel array; slopes and sums are right after the next pass."""
        self.amounts[self._place] = flat

    def channels(self) -> Numbers:
        """Return the amounts as a read-only channel array, which the next call of this method changes."""
        np.take(self.amounts, self._place, out=self._flat, mode="clip")  # the places are legal; "raise" would copy
        view = self._flat.view()
        read_only(view)
        return view


def _cut_groups(cluster: BipartiteCluster, degrees: NDArray[np.int64]) -> tuple[list[int], list[NDArray[np.int64]]]:
    """Return the type and the instances of each group."""
    types, members = [], []
    for k in range(cluster.n_types):
        order = np.lexsort((degrees, cluster.gain[:, k]))
        order = order[degrees[order] > 0]
        for begin in range(0, order.size, int(LANES)):
            types.append(k)
            members.append(order[begin : begin + int(LANES)])
    return types, members


def _numbers(cluster: BipartiteCluster, k: int, instances: NDArray[np.int64]) -> Numbers:
    """Return the eight numbers of each lane, shape (8, n); see `oga_kernels`."""
    codes, alpha = cluster.gain[instances, k], cluster.alpha[instances, k]
    numbers = np.zeros((8, codes.size))
    numbers[0] = np.choose(codes, [alpha, alpha, np.ones_like(alpha), 0.5 * alpha])
    numbers[1] = np.where(codes == RECIPROCAL, alpha, 1.0)
    for row, code in ((2, LINEAR), (3, LOG), (4, RECIPROCAL), (5, POLY)):
        numbers[row] = codes == code
    numbers[6], numbers[7] = cluster.overhead[k], cluster.capacities[instances, k]
    return numbers


def _aligned(size: int) -> Numbers:
    """Return zeros that begin where a line of the cache does: a row of lanes then never straddles two."""
    numbers = np.zeros(size + 7)
    begin = -numbers.ctypes.data // 8 % 8
    return numbers[begin : begin + size]
