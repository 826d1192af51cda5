r"""Gang scheduling over channels with unknown utilities: the extension of Section 3.4 of the ESDP paper.

A job of port l has tasks; a *placement* e = (l, q, r) runs task q on server r. Decision x in {0, 1}^N
over placements, with

* ``sum of requests of the placements on server r <= capacities[r]``, per resource type,
* at most one placement of each task (the paper does not say so, but counts tasks, not copies),
* all or nothing: of a job's tasks either none is placed or at least ``minimum[l]``.

The paper writes ``sum x >= m_l`` for every port; read literally no slot with more jobs than capacity
would have a solution, and "only when all tasks are scheduled, the job could be launched" says what is
meant. Statistics, scaling and choice are those of ESDP; the budgeted problems are solved exactly by a
dynamic program over (task, tasks placed of its job, s, capacities of all servers). Capacity vectors
multiply over servers, so this is for small clusters: `TooLargeError` says so before memory is taken.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from marketsched.mechanisms.allocation.esdp.budgeted_problem import MEMORY_LIMIT, check_memory, choose_budget
from marketsched.mechanisms.allocation.esdp.channel_statistics import ScaledStatistics
from marketsched.mechanisms.allocation.esdp.esdp import EsdpPolicy
from marketsched.mechanisms.allocation.esdp.gang_channels import GangChannels
from marketsched.mechanisms.allocation.esdp.gang_kernels import _gang_select_kernel, _gang_table_kernel
from marketsched.mechanisms.allocation.esdp.schedules import Sequence
from marketsched.mechanisms.checks import float_array, whole_parameter


class GangProblem:
    """The budgeted problems over placements, for all s at once.

    Parameters
    ----------
    channels : GangChannels
        Rules.
    memory_limit : int
        Bytes a table may take.
    """

    def __init__(self, channels: GangChannels, *, memory_limit: int = MEMORY_LIMIT) -> None:
        self.memory_limit = whole_parameter("memory_limit", memory_limit, 1)
        order = np.lexsort((channels.servers, channels.tasks, channels.ports))
        self._order = order
        self._n_channels = channels.n_channels
        self._requests, self._servers = channels.requests[order], channels.servers[order]
        self._ports = channels.ports[order]
        task_keys = np.stack((self._ports, channels.tasks[order]), axis=1)
        new = np.concatenate(([True], (task_keys[1:] != task_keys[:-1]).any(axis=1)))
        self._task = np.cumsum(new) - 1  # of each placement, in order
        self._caps = np.where(channels.minimum > 1, channels.minimum, 0)
        # Nobody needs more of a server than all its placements ask for together.
        wanted = np.zeros_like(channels.server_capacities)
        np.add.at(wanted, self._servers, self._requests)
        self._sizes = np.minimum(channels.server_capacities, wanted).ravel() + 1
        sizes = [int(n) for n in self._sizes]
        self.n_cells = math.prod(sizes)
        check_memory(self.n_cells * 16, self.memory_limit, 1, self._sizes - 1)
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
    ) -> GangTable:
        """Return the table for s = 0 .. s_max; parameters as in `BudgetedProblem.solve`.

        Raises
        ------
        TooLargeError
            If the table would not fit into ``memory_limit``.
        """
        check_memory(16 * (s_max + 1), self.memory_limit, s_max + 1, self._sizes[:0])  # the optima themselves
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
        check_memory(needed, self.memory_limit, n_sums, self._sizes - 1)
        counts = np.full((rows, self.n_cells, n_sums), -1, dtype=np.int32)
        best = np.zeros(counts.shape)
        decisions = np.zeros((len(tasks), *counts.shape), dtype=np.int16)
        edges = np.append(firsts, len(channels))
        offsets, requests, servers = self._offsets[kept], self._requests[kept], self._servers[kept]
        space = (requests, servers, offsets, self._sizes, self._strides)
        _gang_table_kernel(counted, hidden, gains, *space, edges, jobs, self._caps, counts, best, decisions)
        path = (counted, offsets, edges, jobs, self._caps, decisions)
        return GangTable(counts[0, -1].astype(np.int64), best[0, -1].copy(), s_max, self._n_channels, channels, path)


class GangTable:
    """The optima of all budgets, and the decisions that lead to their selections.

    Attributes
    ----------
    finite : array of float, shape (s_max + 1,)
        Sum of finite variances of the optimum; -inf where no selection reaches s.
    unseen : array of int, shape (s_max + 1,)
        Unseen placements in the optimum; -1 where no selection reaches s.
    """

    def __init__(
        self,
        unseen: NDArray[np.int64],
        finite: NDArray[np.float64],
        s_max: int,
        n_channels: int,
        channels: NDArray[np.intp],
        path: tuple[NDArray[np.generic], ...],
    ) -> None:
        beyond = s_max + 1 - len(unseen)
        self.unseen = np.concatenate((unseen, np.full(beyond, -1, dtype=np.int64)))
        self.finite = np.where(self.unseen >= 0, np.concatenate((finite, np.zeros(beyond))), -np.inf)
        self._n_channels, self._channels, self._path = n_channels, channels, path

    def choice(self) -> int:
        """Return the budget s of ESDP (21); see `choose_budget`."""
        return choose_budget(self.finite, self.unseen)

    def selection(self, s: int) -> NDArray[np.bool_]:
        """Return the selection that attains the optimum of ``s``, shape (N,); none if s is infeasible."""
        chosen = np.zeros(self._n_channels, dtype=np.bool_)
        if self.unseen[s] >= 0:
            marked = np.zeros(len(self._channels), dtype=np.bool_)
            counted, offsets, firsts, jobs, caps, decisions = self._path
            _gang_select_kernel(counted, offsets, firsts, jobs, caps, decisions, decisions.shape[2] - 1, s, marked)
            chosen[self._channels] = marked
        return chosen


class GangEsdp(EsdpPolicy):
    """ESDP for jobs whose tasks run all or nothing.

    Parameters
    ----------
    channels : GangChannels
        Placements and rules.
    alpha, slack, exploration, arrivals, memory_limit
        As in `Esdp`; ``alpha`` is a share of all placements.

    Raises
    ------
    InvalidParameterError, UnknownNameError, TooLargeError
        As in `Esdp`.

    Examples
    --------
    >>> gang = GangChannels([[1], [1], [1]], [[1], [1]], [0, 0, 1], [0, 1, 0], [0, 1, 0], [2, 1])
    >>> GangEsdp(gang).allocate([True, True])
    array([ True,  True, False])
    """

    def __init__(
        self,
        channels: GangChannels,
        alpha: float = 0.5,
        slack: str | Sequence = "paper",
        exploration: str | Sequence = "paper",
        arrivals: str = "zero",
        *,
        memory_limit: int = MEMORY_LIMIT,
    ) -> None:
        super().__init__(channels, alpha, slack, exploration, arrivals)
        self.name = f"gang {self.name}"
        self._problem = GangProblem(channels, memory_limit=memory_limit)

    def _best(self, scaled: ScaledStatistics, s_max: int, among: NDArray[np.bool_] | None) -> NDArray[np.bool_]:
        table = self._problem.solve(scaled.values, scaled.variances, s_max, unseen=scaled.unseen, among=among)
        return table.selection(table.choice())


class GangOracle:
    """The best gang selection for known means.

    Parameters
    ----------
    channels : GangChannels
        Placements and rules.
    means : array_like of float, shape (N,)
        True mean utilities, >= 0.
    memory_limit : int
        Bytes the dynamic program may take.
    """

    def __init__(self, channels: GangChannels, means: ArrayLike, *, memory_limit: int = MEMORY_LIMIT) -> None:
        self.channels = channels
        self.means = float_array("means", means, (channels.n_channels,), lowest=0.0).copy()
        self._problem = GangProblem(channels, memory_limit=memory_limit)
        self._known: dict[bytes, float] = {}

    def selection(self, arrivals: ArrayLike) -> NDArray[np.bool_]:
        """Return the best placements for the ports that have a job, shape (N,)."""
        none = np.zeros(self.channels.n_channels, dtype=np.int64)
        return self._problem.solve(none, self.means, 0, among=self.channels.present(arrivals)).selection(0)

    def value(self, arrivals: NDArray[np.bool_]) -> float:
        """Return the largest expected utility for the ports that have a job."""
        key = arrivals.tobytes()
        if key not in self._known:
            self._known[key] = float(self.means[self.selection(arrivals)].sum())
        return self._known[key]
