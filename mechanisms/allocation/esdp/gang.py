"""Gang scheduling over channels with unknown utilities: the extension of Section 3.4 of the ESDP paper.

A job of port l has tasks; a *placement* e = (l, q, r) runs task q on server r. Placements on a server fit into its
capacities, a task is placed at most once (the paper does not say so, but counts tasks, not copies), and of a job's
tasks either none is placed or at least ``minimum[l]``. The paper asks every port for m_l tasks; read literally no slot
with more jobs than capacity would have a solution.

The dynamic program's table is that of `budgeted_kernels` with one more index: ``placed``, the tasks of the job at hand
that are placed already, counted up to its minimum. Capacity vectors run over (server, resource type) and multiply over
servers: for small clusters. Tasks are processed from the last of the last job to the first of the first. Each entry
holds a pair (unseen placements, gain of the others), compared in that order; -1 unseen placements: infeasible.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import ArrayLike, NDArray

from marketsched.mechanisms.allocation.esdp.budgeted import MEMORY_LIMIT, SelectionTable, check_table
from marketsched.mechanisms.allocation.esdp.channel_policy import Channels
from marketsched.mechanisms.allocation.esdp.esdp import Esdp
from marketsched.mechanisms.arrays import whole_array
from marketsched.mechanisms.errors import InvalidParameterError
from marketsched.mechanisms.legal import Memory, legal


class GangChannels(Channels):
    """Placements of tasks on servers.

    Parameters
    ----------
    requests : array_like of int, shape (N, K)
        Units of each resource type a placement takes on its server, where it alone fits.
    capacities : array_like of int, shape (R, K)
        Units there are on each server.
    ports, tasks, servers : array_like of int, shape (N,)
        Port, task within the port's job, and server of each placement, from 0; no two are the same.
    minimum : array_like of int, shape (L,)
        m_l: fewest tasks of a job that may run, 0 or 1 for no such rule.

    Examples
    --------
    >>> gang = GangChannels([[1], [1]], [[2]], [0, 0], [0, 1], [0, 0], [2])
    >>> print(gang.violation(np.array([True, False]), np.array([True])))
    port 0 has 1 tasks placed: expected none or at least 2
    """

    def __init__(
        self,
        requests: ArrayLike,
        capacities: ArrayLike,
        ports: ArrayLike,
        tasks: ArrayLike,
        servers: ArrayLike,
        minimum: ArrayLike,
    ) -> None:
        there = whole_array("capacities", capacities, (None, None))
        self.minimum = whole_array("minimum", minimum, (None,))
        super().__init__(requests, there.sum(axis=0), ports, n_ports=len(self.minimum))
        self.server_capacities = there
        self.tasks = whole_array("tasks", tasks, (self.n_channels,))
        self.servers = whole_array("servers", servers, (self.n_channels,))
        if (self.servers >= len(there)).any():
            raise InvalidParameterError(f"servers has {self.servers.max()}: expected numbers below {len(there)}")
        above = np.argwhere(self.requests > there[self.servers])
        if above.size:
            e, k = (int(i) for i in above[0])
            raise InvalidParameterError(
                f"requests[{e}, {k}] = {self.requests[e, k]} is above the {there[self.servers[e], k]} of server "
                f"{self.servers[e]}: expected requests that fit on their server alone"
            )
        places = np.stack((self.ports, self.tasks, self.servers), axis=1)
        if len(np.unique(places, axis=0)) < self.n_channels:
            raise InvalidParameterError("two placements agree in port, task and server: expected each once")
        pairs = np.unique(places[:, :2], axis=0)
        n_tasks = np.bincount(pairs[:, 0], minlength=self.n_ports)
        short = np.flatnonzero(self.minimum > n_tasks)
        if short.size:
            port = int(short[0])
            raise InvalidParameterError(
                f"minimum[{port}] = {self.minimum[port]}: expected at most the port's {n_tasks[port]} tasks"
            )
        for array in (self.server_capacities, self.tasks, self.servers, self.minimum):
            array.setflags(write=False)

    def fits(self, selected: NDArray[np.bool_]) -> bool:
        """Return whether a selection breaks no rule, arrivals aside."""
        return self.violation(selected, np.ones(self.n_ports, dtype=np.bool_)) is None

    def violation(self, selected: NDArray[np.bool_], arrivals: NDArray[np.bool_]) -> str | None:
        """Return which rule a selection breaks, and where, or None."""
        used = np.zeros_like(self.server_capacities)
        np.add.at(used, self.servers[selected], self.requests[selected])
        above = np.argwhere(used > self.server_capacities)
        if above.size:
            r, k = above[0]
            return f"server {r} gives {used[r, k]} of type {k}: expected at most {self.server_capacities[r, k]}"
        pairs, times = np.unique(self.ports[selected] + 1j * self.tasks[selected], return_counts=True)
        if (times > 1).any():
            twice = pairs[np.argmax(times)]
            return f"task {int(twice.imag)} of port {int(twice.real)} is placed {times.max()} times: expected once"
        placed = np.bincount(self.ports[selected], minlength=self.n_ports)
        few = np.flatnonzero((placed > 0) & (placed < self.minimum))
        if few.size:
            port = few[0]
            return f"port {port} has {placed[port]} tasks placed: expected none or at least {self.minimum[port]}"
        absent = np.flatnonzero((placed > 0) & ~arrivals)
        return f"port {absent[0]} has no job: expected no task placed" if absent.size else None

    def problem(self, memory_limit: Memory = MEMORY_LIMIT) -> GangProblem:
        """Return the budgeted problems over these placements."""
        return GangProblem(self, memory_limit=memory_limit)


class Placements(NamedTuple):
    """Placements in order of (job, task, server), and what choosing one adds."""

    values: NDArray[np.int64]  # (n,), towards the budget s
    unseen: NDArray[np.int64]  # (n,), 1: never used so far, 0: used
    gains: NDArray[np.float64]  # (n,), variances; 0 of unseen ones
    requests: NDArray[np.int64]  # (n, n_types), units of each resource type
    servers: NDArray[np.int64]  # (n,)
    offsets: NDArray[np.int64]  # (n,), by how much it lowers the number of the capacity vector


class Tasks(NamedTuple):
    """The tasks, in the same order."""

    firsts: NDArray[np.int64]  # (n_tasks + 1,): task q has placements firsts[q] .. firsts[q + 1] - 1
    jobs: NDArray[np.int64]  # (n_tasks,)
    caps: NDArray[np.int64]  # (n_jobs,), fewest tasks of the job that may run; 0: no minimum above one


class GangProblem:
    """The budgeted problems over placements, for all s at once, in tables of at most ``memory_limit`` bytes."""

    @legal
    def __init__(self, channels: GangChannels, *, memory_limit: Memory = MEMORY_LIMIT) -> None:
        self.memory_limit = memory_limit
        order = np.lexsort((channels.servers, channels.tasks, channels.ports))
        self._order = order
        self._n_channels = channels.n_channels
        self._requests, self._servers = channels.requests[order], channels.servers[order]
        self._ports = channels.ports[order]
        task_keys = np.stack((self._ports, channels.tasks[order]), axis=1)
        new = np.concatenate(([True], (task_keys[1:] != task_keys[:-1]).any(axis=1)))
        self._task = np.cumsum(new) - 1  # of each placement, in order
        self._caps = np.where(channels.minimum > 1, channels.minimum, 0)
        # No job needs more of a server than all its placements ask for together.
        wanted = np.zeros_like(channels.server_capacities)
        np.add.at(wanted, self._servers, self._requests)
        self._sizes = np.minimum(channels.server_capacities, wanted).ravel() + 1
        sizes = [int(n) for n in self._sizes]
        self.n_cells = math.prod(sizes)
        check_table(self.n_cells * 16, self.memory_limit, 1, self._sizes - 1)
        self._strides = np.array([math.prod(sizes[i + 1 :]) for i in range(len(sizes))], dtype=np.int64)
        blocks = self._strides.reshape(channels.server_capacities.shape)
        self._offsets = (self._requests * blocks[self._servers]).sum(axis=1)

    def solve(
        self,
        values: NDArray[np.int64],
        variances: NDArray[np.float64],
        s_max: int,
        *,
        unseen: NDArray[np.bool_] | None = None,
        among: NDArray[np.bool_] | None = None,
    ) -> SelectionTable:
        """Return the table for s = 0 .. s_max; parameters and errors as in `BudgetedProblem.solve`."""
        check_table(16 * (s_max + 1), self.memory_limit, s_max + 1, self._sizes[:0])  # the optima themselves
        kept = np.ones(len(self._order), dtype=np.bool_) if among is None else among[self._order]
        channels = self._order[kept]
        counted = np.minimum(values[channels], s_max)
        hidden = np.zeros(len(channels), dtype=np.int64) if unseen is None else unseen[channels].astype(np.int64)
        gains = np.where(hidden > 0, 0.0, variances[channels])
        tasks, firsts = np.unique(self._task[kept], return_index=True)
        largest = int(np.maximum.reduceat(counted, firsts).sum()) if len(channels) else 0
        n_sums = min(s_max, largest) + 1
        jobs = self._ports[kept][firsts]
        rows = int(self._caps[jobs].max(initial=0)) + 1
        needed = rows * self.n_cells * n_sums * (12 + 2 * len(tasks))
        check_table(needed, self.memory_limit, n_sums, self._sizes - 1)
        counts = np.full((rows, self.n_cells, n_sums), -1, dtype=np.int32)
        best = np.zeros(counts.shape)
        decisions = np.zeros((len(tasks), *counts.shape), dtype=np.int16)
        edges = np.append(firsts, len(channels))
        offsets, requests, servers = self._offsets[kept], self._requests[kept], self._servers[kept]
        path = (Placements(counted, hidden, gains, requests, servers, offsets), Tasks(edges, jobs, self._caps))
        _gang_table_kernel(*path, self._sizes, self._strides, counts, best, decisions)

        def read(s: int, marked: NDArray[np.bool_]) -> None:
            _gang_select_kernel(*path, decisions, s, marked)

        unseen_of = counts[0, -1].astype(np.int64)
        return SelectionTable(s_max, best[0, -1].copy(), unseen_of, channels, self._n_channels, read)


class GangEsdp(Esdp):
    """ESDP for jobs whose tasks run all or nothing; rules are those of `Esdp`, ``alpha`` a share of all placements.

    Examples
    --------
    >>> gang = GangChannels([[1], [1], [1]], [[1], [1]], [0, 0, 1], [0, 1, 0], [0, 1, 0], [2, 1])
    >>> GangEsdp(gang).allocate([True, True])
    array([ True,  True, False])
    """

    def __init__(self, channels: GangChannels, **rules: Any) -> None:
        super().__init__(channels, **rules)
        self.name = f"gang {self.name}"


@njit(cache=True)
def _gang_table_kernel(placements, tasks, sizes, strides, counts, best, decisions):  # type: ignore[no-untyped-def]
    """Fill the tables; what is left in ``counts[0]`` and ``best[0]`` are the optima of all jobs.

    ``decisions[q, placed, cell, s]`` is 0 if task q is not placed, else one plus the placement's number within it.
    """
    values, unseen, gains, requests, servers, offsets = placements
    firsts, jobs, caps = tasks
    n_cells, n_sums = counts.shape[1], counts.shape[2]
    fitting = np.empty(values.size, np.int64)
    counts[0, :, 0] = 0
    for q in range(jobs.size - 1, -1, -1):
        cap = caps[jobs[q]]
        if q == jobs.size - 1 or jobs[q + 1] != jobs[q]:
            for placed in range(1, cap + 1):
                for cell in range(n_cells):
                    for s in range(n_sums):
                        counts[placed, cell, s] = counts[0, cell, s] if placed == cap else -1
                        best[placed, cell, s] = best[0, cell, s]
        for placed in range(cap + 1):
            after = min(placed + 1, cap)
            for cell in range(n_cells - 1, -1, -1):
                n_fitting = 0
                for p in range(firsts[q], firsts[q + 1]):
                    if _fits(cell, requests, p, servers[p], sizes, strides):
                        fitting[n_fitting] = p
                        n_fitting += 1
                for s in range(n_sums - 1, -1, -1):
                    count, value, choice = counts[placed, cell, s], best[placed, cell, s], 0
                    for i in range(n_fitting):
                        p = fitting[i]
                        source, rest = cell - offsets[p], max(s - values[p], 0)
                        with_it = counts[after, source, rest]
                        if with_it < 0:
                            continue
                        with_it += unseen[p]
                        gained = best[after, source, rest] + gains[p]
                        if with_it > count or (with_it == count and gained > value):
                            count, value, choice = with_it, gained, p - firsts[q] + 1
                    counts[placed, cell, s], best[placed, cell, s] = count, value
                    decisions[q, placed, cell, s] = choice


@njit(cache=True)
def _fits(cell, requests, p, server, sizes, strides):  # type: ignore[no-untyped-def]
    """Return whether placement ``p`` fits into the capacity vector ``cell``."""
    n_types = requests.shape[1]
    for k in range(n_types):
        at = server * n_types + k
        if (cell // strides[at]) % sizes[at] < requests[p, k]:
            return False
    return True


@njit(cache=True)
def _gang_select_kernel(placements, tasks, decisions, s, chosen):  # type: ignore[no-untyped-def]
    """Mark in ``chosen`` the placements that attain the optimum of budget ``s`` with all capacity."""
    firsts, jobs, caps = tasks
    placed, cell = 0, decisions.shape[2] - 1
    for q in range(jobs.size):
        if q > 0 and jobs[q] != jobs[q - 1]:
            placed = 0
        choice = decisions[q, placed, cell, s]
        if choice > 0:
            p = firsts[q] + choice - 1
            chosen[p] = True
            cell -= placements.offsets[p]
            s = max(s - placements.values[p], 0)
            placed = min(placed + 1, caps[jobs[q]])
