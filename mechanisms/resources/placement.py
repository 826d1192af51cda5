r"""Which nodes and devices a booking gets: `first`, `best`, `worst` fit, or least fragmentation (`fgd`).

A rule runs after the job has chosen, so it may look at everything. Tasks are placed one by one on the node of lowest
score among those with room for one more, the node of lowest number among equals; tasks are equal, so every order
finds room for all of them. Scores come from what is least free over the booked rounds:

* first: the node's number alone;
* best: least left by the task, summed over resources as shares of the node, devices counted twice; worst: most left;
* fgd: how much the task adds to the node's fragments, the parts of devices that a task drawn from past arrivals could
  not use, expected (Weng et al., Beware of Fragmentation, ATC 2023, section 3).

On a node a task gets the devices with least left that suffice, of lowest number among equals.
"""

from __future__ import annotations

from collections import Counter
from typing import Literal

import numpy as np
from numba import njit
from numpy.typing import NDArray

from marketsched.mechanisms.resources.calendars import Placed, Room, Wanted
from marketsched.mechanisms.resources.cluster import Cluster, Layout

Rule = Literal["first", "best", "worst", "fgd"]
RULES: tuple[Rule, ...] = ("first", "best", "worst", "fgd")
MOST_TYPES = 60  # of tasks that fragments are judged by, the most frequent: of openb's 151 they are 96 %


class TaskTypes:
    """The requests of past tasks, and their frequencies: fragments are judged by the most frequent demands."""

    def __init__(self, n_resources: int) -> None:
        self._counts: Counter[tuple[int, ...]] = Counter()
        self._n, self._frequent = n_resources, (np.zeros((0, n_resources), dtype=np.int64), np.zeros(0))
        self._old = False

    def add(self, demand: NDArray[np.int64], tasks: int = 1) -> None:
        """Note tasks of one demand, in parts."""
        self._counts[tuple(demand.tolist())] += tasks
        self._old = True

    @property
    def frequent(self) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """The most frequent demands, shape (n_types, n_resources), and their shares, shape (n_types,)."""
        if self._old:
            often = sorted(self._counts.items(), key=lambda item: (-item[1], item[0]))[:MOST_TYPES]
            counts = np.array([count for _, count in often], dtype=np.float64)
            demands = np.array([demand for demand, _ in often], dtype=np.int64).reshape(len(often), self._n)
            self._frequent, self._old = (demands, counts / counts.sum()), False
        return self._frequent


def place(rule: Rule, room: Room, wanted: Wanted, cluster: Cluster, types: TaskTypes) -> Placed:
    """Place the tasks of a booking for which the test found room, unchanged; ``types`` are past tasks, for `fgd`."""
    return Placed(
        *_placed_kernel(RULES.index(rule), wanted.tasks, wanted.demand, tuple(room), cluster.layout, types.frequent)
    )


def fragments(
    free: NDArray[np.int64], devices: NDArray[np.int64], layout: Layout, types: TaskTypes
) -> NDArray[np.float64]:
    """Return, of what is free of each pool's devices, the share that a task of these types could not use, expected.

    ``free``, shape (n_nodes, n_resources), are free parts, of devices the sum; ``devices``, shape (n_devices,), those
    of each. Shape (n_pools, n_resources), NaN of resources that are no devices, of pools without a free one, and
    without any types.
    """
    found: NDArray[np.float64] = _pool_fragments_kernel(free, devices, layout, types.frequent)
    return found


@njit(cache=True)
def _pool_fragments_kernel(free, devices, layout, types):  # type: ignore[no-untyped-def]
    """Return the share of the free devices of each pool and resource that a random task cannot use, expected."""
    demands, shares = types
    found = np.full(layout.pool_size.shape, np.nan)
    for k in range(layout.device_parts.size):
        if layout.device_parts[k] == 0 or shares.size == 0:
            continue
        for g in range(layout.pool_size.shape[0]):
            lost, whole = 0.0, 0
            for x in range(layout.pool_begin[g], layout.pool_begin[g + 1]):
                own = devices[layout.device_begin[x, k] : layout.device_begin[x, k + 1]]
                of = np.full(own.size, k)
                whole += own.sum()
                lost += _fragments_kernel(free[x], own, of, layout.device_parts, demands, shares)
            if whole > 0:
                found[g, k] = lost / whole
    return found


@njit(cache=True)
def _fragments_kernel(free, devices, kinds, device_parts, demands, shares):  # type: ignore[no-untyped-def]
    """Return the parts of one node's devices that a random task cannot use, expected."""
    found = 0.0
    for a in range(shares.size):
        whole, small, usable = 0, 0, True
        for k in range(free.size):
            need = demands[a, k]
            if device_parts[k] == 0:
                usable = usable and free[k] >= need
                continue
            fit, unit = 0, min(need, device_parts[k])
            for y in range(devices.size):
                if kinds[y] == k:
                    whole += devices[y]
                    if need > 0 and devices[y] >= unit:
                        fit += 1
                    else:
                        small += devices[y]
            usable = usable and (need == 0 or fit * unit >= need)
        found += shares[a] * (small if usable else whole)
    return found


@njit(cache=True)
def _take_kernel(demand, free, devices, kinds, device_parts, taken):  # type: ignore[no-untyped-def]
    """Take one task off a node, and add what its devices give to ``taken``."""
    for k in range(demand.size):
        need = demand[k]
        free[k] -= need
        if need == 0 or device_parts[k] == 0:
            continue
        unit = min(need, device_parts[k])
        for _ in range(need // unit):
            best = -1
            for y in range(devices.size):
                if kinds[y] == k and devices[y] >= unit and (best < 0 or devices[y] < devices[best]):
                    best = y
            devices[best] -= unit
            taken[best] += unit


@njit(cache=True)
def _score_kernel(rule, demand, free, devices, kinds, size, device_parts, demands, shares, after, rest, taken):  # type: ignore[no-untyped-def]
    """Return the score of a node for one more task: the lower, the better."""
    if rule == 0:
        return 0.0
    if rule == 3:
        for k in range(free.size):  # as a slice the copy takes seconds to compile, for the text of an error
            after[k] = free[k]
        for k in range(devices.size):
            rest[k] = devices[k]
        _take_kernel(demand, after, rest, kinds, device_parts, taken)
        before = _fragments_kernel(free, devices, kinds, device_parts, demands, shares)
        return _fragments_kernel(after, rest, kinds, device_parts, demands, shares) - before
    left = 0.0
    for k in range(demand.size):
        if size[k] > 0:
            left += (2.0 if device_parts[k] > 0 else 1.0) * (free[k] - demand[k]) / size[k]
    return left if rule == 1 else -left


@njit(cache=True)
def _place_kernel(rule, n, demand, room, free, devices, kinds, size, device_parts, demands, shares):  # type: ignore[no-untyped-def]
    """Return the tasks on each node, and the parts taken of each of its devices; ``free`` and ``devices`` change."""
    m = room.size
    counts, parts = np.zeros(m, np.int64), np.zeros(devices.shape, np.int64)
    after, rest = np.empty(free.shape[1], np.int64), np.empty(devices.shape[1], np.int64)
    unused = np.zeros(devices.shape[1], np.int64)
    scores = np.empty(m)
    for i in range(m):
        scores[i] = _score_kernel(
            rule, demand, free[i], devices[i], kinds[i], size[i], device_parts, demands, shares, after, rest, unused
        )
    for _ in range(n):
        best = -1
        for i in range(m):
            if counts[i] < room[i] and (best < 0 or scores[i] < scores[best] - 1e-12):
                best = i
        _take_kernel(demand, free[best], devices[best], kinds[best], device_parts, parts[best])
        counts[best] += 1
        if counts[best] < room[best]:
            scores[best] = _score_kernel(
                rule, demand, free[best], devices[best], kinds[best], size[best], device_parts, demands, shares,
                after, rest, unused,
            )  # fmt: skip
    return counts, parts


@njit(cache=True)
def _placed_kernel(rule, n, demand, room, layout, types):  # type: ignore[no-untyped-def]
    """Return the fields of `Placed` for ``n`` tasks in a `Room`, whose arrays are not changed."""
    of, fit, free, devices, kinds, first = room
    counts, taken = _place_kernel(
        rule, n, demand, fit, free.copy(), devices.copy(), kinds, layout.size[of], layout.device_parts, *types
    )
    used = np.flatnonzero(counts)
    rows, columns = np.nonzero(taken)
    parts = np.empty(rows.size, np.int64)
    for i in range(rows.size):
        parts[i] = taken[rows[i], columns[i]]
    return of[used], counts[used], first[rows] + columns, parts
