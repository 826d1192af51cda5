r"""Calendars of nodes and devices, the exact test whether a booking fits, and the booking.

For every node and round: the parts of each resource that are free, and of each device. Equal tasks are counted, not
packed. Over the rounds of a booking let f_k be the least that is free of a divisible resource k on node x, and let a
task need a_k of it; a task that needs q whole devices, or a share of one::

    tasks(x) = min( m, floor(f_k / a_k) for each divisible k with a_k > 0,
                    floor(devices free throughout / q),
                    sum over devices of floor(least free parts / share) )

n tasks fit into a pool exactly if the counts of its nodes add up to n. So what fits a larger demand, more tasks or
more rounds fits a smaller one as well, and a menu of all that fits makes no false report pay.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from marketsched.mechanisms.memory import check_memory
from marketsched.mechanisms.resources.cluster import Cluster

KEPT_WINDOWS = 2  # windows of rounds in memory: the further, the less often the arrays are moved


class Wanted(NamedTuple):
    """A request for a booking: equal tasks in one pool, at the same time."""

    pool: int
    tasks: int
    per_node: int  # the most tasks on one node
    demand: NDArray[np.int64]  # (n_resources,), of one task, in parts


class Requests(NamedTuple):
    """Requests for bookings, a row each, as in `Wanted`."""

    pools: NDArray[np.int64]  # (n,)
    tasks: NDArray[np.int64]  # (n,)
    per_node: NDArray[np.int64]  # (n,), the most tasks on one node
    demands: NDArray[np.int64]  # (n, n_resources), of one task, in parts


class Free(NamedTuple):
    """What is free, in parts, as kernels read and change it."""

    nodes: NDArray[np.int32]  # (n_nodes, n_resources, n_rounds)
    devices: NDArray[np.int32]  # (n_devices, n_rounds)
    pools: NDArray[np.int64]  # (n_pools, n_resources, n_rounds), sums over nodes


class Placed(NamedTuple):
    """Where tasks are: node by node, with the amount of each device."""

    nodes: NDArray[np.int64]  # (m,), different ones
    tasks: NDArray[np.int64]  # (m,), how many on each
    devices: NDArray[np.int64]  # (p,), numbers of devices, different ones
    parts: NDArray[np.int64]  # (p,), parts taken of each


class Room(NamedTuple):
    """The free resources of a pool's nodes over some rounds, for placement rules."""

    nodes: NDArray[np.int64]  # (m,), those with room for at least one task
    tasks: NDArray[np.int64]  # (m,), how many each could take
    free: NDArray[np.int64]  # (m, n_resources), least free parts throughout; of devices the sum of their least
    devices: NDArray[np.int64]  # (m, n_devices at most on a node), least free parts of each
    kinds: NDArray[np.int64]  # (m, n_devices at most on a node), the resource that a device is of; -1: there is none
    first: NDArray[np.int64]  # (m,), number of the first device of the node


class Calendars:
    """The free resources of a cluster, by node, device and round; at first all of it.

    Only rounds from the current one on are kept, so that memory does not grow with the horizon: 4 bytes for each node,
    resource and round, and for each device and round. Anything can be booked in the current round and ``reach - 1``
    more. TooLargeError if there is no memory for them.
    """

    def __init__(self, cluster: Cluster, reach: int) -> None:
        self.cluster, self.first, self._reach = cluster, 1, reach  # first: the earliest round that is kept
        layout = cluster.layout
        rounds, devices = KEPT_WINDOWS * reach, int(layout.device_begin[-1, -1])
        size = 4.0 * rounds * (layout.size.size + devices) + 8.0 * rounds * layout.pool_size.size
        check_memory(f"calendars of {layout.size.shape[0]} nodes and {rounds} rounds", size, "a smaller max_delay")
        nodes = np.repeat(layout.size[:, :, None], rounds, axis=2).astype(np.int32)
        of_device = np.empty(devices, dtype=np.int32)
        for x, k in np.argwhere(np.diff(layout.device_begin, axis=1) > 0):
            of_device[layout.device_begin[x, k] : layout.device_begin[x, k + 1]] = layout.device_parts[k]
        pools = np.repeat(layout.pool_size[:, :, None], rounds, axis=2)
        self.free = Free(nodes, np.repeat(of_device[:, None], rounds, axis=1), pools)  # of rounds first, first + 1, ...

    def move_to(self, now: int) -> None:
        """Let the calendars hold every round in which something can be booked in round ``now``."""
        free, devices, pools = self.free
        rounds, gone = free.shape[2], now - self.first
        if gone + self._reach <= rounds:
            return
        layout, kept = self.cluster.layout, max(0, rounds - gone)
        for array in self.free:
            array[..., :kept] = array[..., rounds - kept :].copy()
        free[:, :, kept:] = layout.size[:, :, None]
        pools[:, :, kept:] = layout.pool_size[:, :, None]
        for x, k in np.argwhere(np.diff(layout.device_begin, axis=1) > 0):
            devices[layout.device_begin[x, k] : layout.device_begin[x, k + 1], kept:] = layout.device_parts[k]
        self.first = now

    def copy(self, start: int, to: int) -> None:
        """Let round ``to`` be as round ``start`` is."""
        for array in self.free:
            array[..., to - self.first] = array[..., start - self.first]

    def pool_free(self, now: int, count: int) -> NDArray[np.int64]:
        """Return the free resources of each pool in rounds ``now, ...``, parts, shape (n_pools, n_resources, count)."""
        begin = now - self.first
        return self.free.pools[:, :, begin : begin + count]

    def state(self, now: int, count: int) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Return copies of what nodes, and devices, have free in rounds ``now, now + 1, ...``, in parts.

        Shapes (n_nodes, n_resources, count) and (n_devices, count).
        """
        rounds = slice(now - self.first, now - self.first + count)
        return self.free.nodes[:, :, rounds].copy(), self.free.devices[:, rounds].copy()

    def first_that_fits(
        self,
        starts: NDArray[np.int64],
        lengths: NDArray[np.int64],
        rows: NDArray[np.int64],
        requests: Requests,
    ) -> int:
        """Return the index of the first booking of a list for which a placement exists; -1 if there is none.

        ``starts`` and ``lengths``, rounds, and ``rows`` of ``requests``, which each asks for, have shape (n,).
        """
        return int(
            _first_that_fits_kernel(self.free, self.cluster.layout, starts - self.first, lengths, rows, requests)
        )

    def fits(self, wanted: Wanted, start: int, length: int) -> bool:
        """Return True if a placement exists in rounds ``start .. start + length - 1``."""
        zero = np.zeros(1, dtype=np.int64)
        request = Requests(zero + wanted.pool, zero + wanted.tasks, zero + wanted.per_node, wanted.demand[None])
        return self.first_that_fits(zero + start, zero + length, zero, request) == 0

    def room(self, wanted: Wanted, start: int, length: int) -> Room:
        """Return the nodes of the pool that can take a task in these rounds, and their resources free throughout."""
        begin = start - self.first
        return Room(
            *_room_kernel(
                self.free, self.cluster.layout, wanted.pool, begin, begin + length, wanted.demand, wanted.per_node
            )
        )

    def book(self, wanted: Wanted, placed: Placed, start: int, length: int) -> None:
        """Subtract a placement from rounds ``start .. start + length - 1``."""
        self._change(wanted, placed, start, start + length, -1)

    def release(self, wanted: Wanted, placed: Placed, start: int, end: int) -> None:
        """Return the resources of a placement in rounds ``start .. end - 1``."""
        self._change(wanted, placed, start, end, 1)

    def _change(self, wanted: Wanted, placed: Placed, start: int, end: int, sign: int) -> None:
        begin, behind = max(0, start - self.first), min(self.free.nodes.shape[2], max(0, end - self.first))
        _change_kernel(self.free, wanted.pool, wanted.demand, placed, begin, behind, sign)


@njit(cache=True)
def _change_kernel(calendar, pool, demand, placed, begin, end, sign):  # type: ignore[no-untyped-def]
    """Add a placement to what is free in columns ``begin .. end - 1``, or take it off."""
    free, devices, pool_free = calendar
    nodes, tasks, numbers, parts = placed
    for i in range(nodes.size):
        for k in range(demand.size):
            amount = sign * tasks[i] * demand[k]
            for t in range(begin, end):
                free[nodes[i], k, t] += amount
                pool_free[pool, k, t] += amount
    for i in range(numbers.size):
        for t in range(begin, end):
            devices[numbers[i], t] += sign * parts[i]


@njit(cache=True)
def _tasks_kernel(free, devices, device_begin, device_parts, x, begin, end, demand, most):  # type: ignore[no-untyped-def]
    """Return how many equal tasks node ``x`` can take throughout columns ``begin .. end - 1``, at most ``most``."""
    found = most
    for k in range(demand.size):
        need = demand[k]
        if need == 0:
            continue
        parts = device_parts[k]
        if parts == 0 or need >= parts:  # of whole devices the sum is a first, quick test
            enough = found * need
            for t in range(begin, end):
                if free[x, k, t] < enough:
                    found = free[x, k, t] // need
                    enough = found * need
                    if found == 0:
                        return 0
        if parts == 0:
            continue
        fit = 0
        for y in range(device_begin[x, k], device_begin[x, k + 1]):
            least = parts
            for t in range(begin, end):
                if devices[y, t] < least:
                    least = devices[y, t]
                    if least < min(need, parts):
                        break
            fit += (1 if least == parts else 0) if need >= parts else least // need
        found = min(found, fit * parts // need if need >= parts else fit)
        if found == 0:
            return 0
    return found


@njit(cache=True)
def _first_that_fits_kernel(calendar, layout, starts, lengths, rows, requests):  # type: ignore[no-untyped-def]
    """Ask the sums of the pool first, then count the tasks that its nodes hold until there are enough."""
    free, devices, pool_free = calendar
    device_begin, device_parts, pool_begin = layout.device_begin, layout.device_parts, layout.pool_begin
    pools, tasks, per_node, demands = requests
    for i in range(starts.size):
        j, begin, end = rows[i], starts[i], starts[i] + lengths[i]
        g, enough = pools[j], True
        for k in range(demands.shape[1]):
            total = tasks[j] * demands[j, k]
            if total > 0:
                for t in range(begin, end):
                    if pool_free[g, k, t] < total:
                        enough = False
                        break
                if not enough:
                    break
        if not enough:
            continue
        left = tasks[j]
        for x in range(pool_begin[g], pool_begin[g + 1]):
            most = min(left, per_node[j])
            left -= _tasks_kernel(free, devices, device_begin, device_parts, x, begin, end, demands[j], most)
            if left == 0:
                return i
    return -1


@njit(cache=True)
def _room_kernel(calendar, layout, pool, begin, end, demand, most):  # type: ignore[no-untyped-def]
    """Return the columns of `Room` for the nodes of a pool."""
    free, devices, device_begin, device_parts = (
        calendar.nodes,
        calendar.devices,
        layout.device_begin,
        layout.device_parts,
    )
    first, last, n_devices = layout.pool_begin[pool], layout.pool_begin[pool + 1], layout.most_devices[pool]
    nodes, tasks = np.empty(last - first, np.int64), np.empty(last - first, np.int64)
    m = 0
    for x in range(first, last):
        fit = _tasks_kernel(free, devices, device_begin, device_parts, x, begin, end, demand, most)
        if fit > 0:
            nodes[m], tasks[m] = x, fit
            m += 1
    nodes, tasks = nodes[:m].copy(), tasks[:m].copy()
    least = np.empty((m, demand.size), np.int64)
    of_devices, kinds = np.zeros((m, n_devices), np.int64), np.full((m, n_devices), -1, np.int64)
    firsts = np.empty(m, np.int64)
    for i in range(m):
        x = nodes[i]
        firsts[i] = device_begin[x, 0]
        for k in range(demand.size):
            if device_parts[k] == 0:
                low = free[x, k, begin]
                for t in range(begin + 1, end):
                    low = min(low, free[x, k, t])
                least[i, k] = low
                continue
            least[i, k] = 0
            for y in range(device_begin[x, k], device_begin[x, k + 1]):
                low = devices[y, begin]
                for t in range(begin + 1, end):
                    low = min(low, devices[y, t])
                of_devices[i, y - firsts[i]], kinds[i, y - firsts[i]] = low, k
                least[i, k] += low
    return nodes, tasks, least, of_devices, kinds, firsts
