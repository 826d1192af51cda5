r"""Clusters whose jobs have several tasks that run together or not at all (section 3.5 of the OgaSched paper).

A job of port :math:`l` has tasks :math:`q`, each with its own requirements :math:`a_l^{q,k}`, and runs only if at least
:math:`m_l` of its tasks are scheduled; it earns what a port with their sum :math:`Y_{(l,r)}^k` would earn. Without the
all-or-nothing rule every :math:`0 \le Y \le \sum_q a_l^q` can be had: the relaxed problem is a `BipartiteCluster` whose
ports ask for the sums of their tasks (`GangCluster.merged`). What it achieves at best bounds every gang allocation.

Two points the paper leaves open. *Scheduled*: the paper counts a task that gets anything at all; with ``task_share`` =
s > 0 a task counts only if it gets, over all its instances, at least s times its requirement of every type, and a task
that does not count gets nothing. *For all ports*: the paper asks every port for :math:`m_l` scheduled tasks, which
small clusters cannot give; here a port either has them or gets nothing at all.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from marketsched.mechanisms.allocation.oga.cluster import BipartiteCluster
from marketsched.mechanisms.allocation.oga.gang_repair import GangLayout, missing_shares, repair_gangs
from marketsched.mechanisms.arrays import bool_array, check_shape, float_array, read_only
from marketsched.mechanisms.errors import InvalidParameterError
from marketsched.mechanisms.legal import Share, Whole, legal


class GangCluster:
    r"""A cluster whose jobs have tasks (see the module). Allocations are channel arrays of ``relaxed``.

    Parameters
    ----------
    tasks : sequence of array_like of float, each of shape (Q_l, n_types)
        :math:`a_l^{q,k} \ge 0`: for each port the requirements of its tasks, devices per instance.
    minimum_tasks : array_like of int, shape (n_ports,)
        :math:`m_l` in [1, Q_l].
    capacities, channels, gain, alpha, overhead
        As in `BipartiteCluster`.
    task_share : float
        The share of its request that a task must get to count as scheduled; 0: anything at all.

    Attributes
    ----------
    relaxed : BipartiteCluster
        Its ports are the tasks, port by port: what may be allocated but for the all-or-nothing rule.
        (Its rewards are not the jobs': use those of this class.)
    merged : BipartiteCluster
        Its ports are the jobs' ports with the sums of their tasks: the relaxed problem.
    task_ports : ndarray of int64, shape (n_tasks,)
        Port of each task.

    Examples
    --------
    >>> gang = GangCluster([[[2.0], [2.0]]], [[3.0]], [[True]], [2], "linear", 1.0, 0.5)
    >>> gang.repair(np.array([2.0, 0.0]))  # the second task gets the rest
    array([2., 1.])
    >>> gang.channel_rewards([1], np.array([2.0, 1.0]))
    (array([3.]), array([1.5]))
    """

    @legal
    def __init__(
        self,
        tasks: Sequence[ArrayLike],
        capacities: ArrayLike,
        channels: ArrayLike,
        minimum_tasks: ArrayLike,
        gain: str | ArrayLike,
        alpha: ArrayLike,
        overhead: ArrayLike,
        *,
        task_share: Share = 0.0,
    ) -> None:
        parts = _task_arrays(tasks)
        sizes = np.array([len(part) for part in parts])
        merged = np.array([part.sum(axis=0) for part in parts])
        self.merged = BipartiteCluster(merged, capacities, channels, gain, alpha, overhead)
        self.task_ports: NDArray[np.int64] = read_only(np.repeat(np.arange(len(parts)), sizes).astype(np.int64))
        links = bool_array("channels", channels, self.merged.channels.shape)[self.task_ports]
        self.relaxed = BipartiteCluster(np.concatenate(parts), capacities, links, gain, alpha, overhead)
        self.minimum_tasks = _minimum(minimum_tasks, sizes)
        self.task_share = task_share
        self.n_ports, self.n_tasks = self.merged.n_ports, self.relaxed.n_ports

    def __repr__(self) -> str:
        return f"GangCluster({self.n_tasks} tasks of {self.n_ports} ports, {self.relaxed.n_instances} instances)"

    @cached_property
    def gang_layout(self) -> GangLayout:
        """How the channels of tasks lie in memory."""
        layout = self.relaxed.layout
        return GangLayout(
            requirements=self.relaxed.requirements,
            share=self.task_share,
            first_task=np.searchsorted(self.task_ports, np.arange(self.n_ports + 1)).astype(np.int64),
            minimum=self.minimum_tasks,
            by_task=np.argsort(layout.ports, kind="stable").astype(np.int64),
            offsets=np.searchsorted(np.sort(layout.ports), np.arange(self.n_tasks + 1)).astype(np.int64),
            places=layout.places,
            instances=layout.instances,
        )

    @cached_property
    def _runs(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Where each entry of a channel array of ports begins among the tasks', and how many of theirs it sums up."""
        layout = self.relaxed.layout
        owner, where = np.empty(layout.size, dtype=np.int64), np.empty(layout.size, dtype=np.int64)
        owner[layout.places] = self.task_ports[layout.ports][:, None]
        where[layout.places] = layout.instances[:, None] * layout.n_types + np.arange(layout.n_types)
        starts = np.flatnonzero(np.r_[True, (np.diff(owner) != 0) | (np.diff(where) != 0)])
        return starts.astype(np.int64), np.diff(np.r_[starts, layout.size]).astype(np.int64)

    def channel_rewards(
        self, arrivals: ArrayLike, flat: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return gain and overhead per port, each of shape (n_ports,); as `BipartiteCluster.channel_rewards`."""
        return self.merged.channel_rewards(arrivals, self.merge(flat))

    def merge(self, flat: NDArray[np.float64]) -> NDArray[np.float64]:
        r"""Return the channel array :math:`Y` of ports."""
        return np.add.reduceat(flat, self._runs[0])

    def spread(self, flat: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the channel array of tasks in which every task has its port's entry."""
        return np.repeat(flat, self._runs[1])

    def split(self, flat: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return a channel array of ports divided among their tasks, in proportion to requirements.

        An allocation legal for `merged` is then legal for `relaxed`.
        """
        asked = self.spread(self.merged.bounds)
        return np.divide(self.spread(flat) * self.relaxed.bounds, asked, out=np.zeros_like(asked), where=asked > 0.0)

    def scheduled(self, flat: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Return which tasks get enough to count as scheduled, shape (n_tasks,)."""
        return missing_shares(flat, self.gang_layout) <= 0.0

    def launched(self, flat: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Return which ports have enough scheduled tasks to run, shape (n_ports,)."""
        count = np.bincount(self.task_ports[self.scheduled(flat)], minlength=self.n_ports)
        return np.asarray(count >= self.minimum_tasks)

    def repair(self, flat: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return a repaired copy of an allocation that is legal for `relaxed`; see `gang_repair`."""
        return repair_gangs(flat, self.relaxed, self.gang_layout)

    def check_gangs(self, flat: NDArray[np.float64]) -> None:
        """Raise InvalidParameterError unless an allocation keeps the all-or-nothing rule."""
        scheduled = self.scheduled(flat)
        held = np.zeros(self.n_tasks, dtype=np.bool_)
        layout = self.relaxed.layout
        held[layout.ports[(flat[layout.places] != 0.0).any(axis=1)]] = True
        stray = np.flatnonzero(held & ~scheduled)
        if stray.size:
            raise InvalidParameterError(
                f"allocation gives task {stray[0]} of port {self.task_ports[stray[0]]} less than it needs: expected "
                f"nothing, or {self.task_share:g} of every requirement"
            )
        count = np.bincount(self.task_ports[scheduled], minlength=self.n_ports)
        short = np.flatnonzero((count > 0) & (count < self.minimum_tasks))
        if short.size:
            raise InvalidParameterError(
                f"allocation schedules {count[short[0]]} tasks of port {short[0]}: expected none, or at least "
                f"{self.minimum_tasks[short[0]]}"
            )


def _task_arrays(tasks: Sequence[ArrayLike]) -> list[NDArray[np.float64]]:
    """Return the requirements of each port's tasks, or say what is wrong."""
    if not len(tasks):
        raise InvalidParameterError("tasks is empty: expected the tasks of at least one port")
    parts = [float_array(f"tasks[{port}]", part, (None, None), lowest=0.0) for port, part in enumerate(tasks)]
    for port, part in enumerate(parts):
        if not part.size:
            raise InvalidParameterError(f"tasks[{port}] has shape {part.shape}: expected at least one task")
        check_shape(f"tasks[{port}]", part.shape, (None, parts[0].shape[1]))
    return parts


def _minimum(minimum_tasks: ArrayLike, sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return m_l, read-only, each in [1, Q_l]."""
    given = np.asarray(minimum_tasks)
    check_shape("minimum_tasks", given.shape, sizes.shape)
    pairs = zip(given.tolist(), sizes.tolist(), strict=True)
    minimum = [Whole(1, q).check(f"minimum_tasks[{port}]", m) for port, (m, q) in enumerate(pairs)]
    return read_only(np.array(minimum, dtype=np.int64))
