"""All or nothing: which tasks count as scheduled, and how an allocation is made to keep the rule.

The repair changes an allocation that is legal but for the all-or-nothing rule, and never makes it illegal:

1. Tasks that get something, but too little to count, give it back.
2. Ports with enough scheduled tasks stay as they are, and so do ports that had nothing at all.
3. The other ports follow in order of how few tasks they lack (the first of equals). Their missing
   tasks, those that came nearest first, are given what counts from free capacity, instance by
   instance. A port that still lacks one afterwards gives everything back.

What step 3 frees is offered to the ports that come later, not to earlier ones.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numba import njit
from numpy.typing import NDArray

from marketsched.mechanisms.allocation.oga.cluster import TOLERANCE, BipartiteCluster


@dataclass(frozen=True, slots=True)
class GangLayout:
    """Where the channels of tasks lie, and to which ports they belong.

    Attributes
    ----------
    requirements : ndarray of float, shape (n_tasks, n_types)
    first_task : ndarray of int64, shape (n_ports + 1,)
        Tasks of port l are first_task[l] to first_task[l + 1], the latter excluded.
    minimum_tasks : ndarray of int64, shape (n_ports,)
    task_share : float
    by_task, task_offsets : ndarray of int64, shapes (n_channels,) and (n_tasks + 1,)
        Channels of task q, by instance: by_task[task_offsets[q]:task_offsets[q + 1]].
    places, instances : ndarray of int64
        As in `ChannelLayout`, for tasks.
    merge_starts, merge_sizes : ndarray of int64
        Runs of a channel array of tasks that are one entry of the channel array of ports.
    """

    requirements: NDArray[np.float64]
    first_task: NDArray[np.int64]
    minimum_tasks: NDArray[np.int64]
    task_share: float
    by_task: NDArray[np.int64]
    task_offsets: NDArray[np.int64]
    places: NDArray[np.int64]
    instances: NDArray[np.int64]
    merge_starts: NDArray[np.int64]
    merge_sizes: NDArray[np.int64]

    @classmethod
    def of(
        cls,
        relaxed: BipartiteCluster,
        task_ports: NDArray[np.int64],
        minimum_tasks: NDArray[np.int64],
        task_share: float,
    ) -> GangLayout:
        """Return the layout of a cluster of tasks that are ordered by port."""
        layout = relaxed.layout
        owner, where = np.empty(layout.size, dtype=np.int64), np.empty(layout.size, dtype=np.int64)
        owner[layout.places] = task_ports[layout.ports][:, None]
        where[layout.places] = layout.instances[:, None] * layout.n_types + np.arange(layout.n_types)
        starts = np.flatnonzero(np.r_[True, (np.diff(owner) != 0) | (np.diff(where) != 0)])
        return cls(
            requirements=relaxed.requirements,
            first_task=np.searchsorted(task_ports, np.arange(len(minimum_tasks) + 1)).astype(np.int64),
            minimum_tasks=minimum_tasks,
            task_share=task_share,
            by_task=np.argsort(layout.ports, kind="stable").astype(np.int64),
            task_offsets=np.searchsorted(np.sort(layout.ports), np.arange(relaxed.n_ports + 1)).astype(np.int64),
            places=layout.places,
            instances=layout.instances,
            merge_starts=starts.astype(np.int64),
            merge_sizes=np.diff(np.r_[starts, layout.size]).astype(np.int64),
        )


def scheduled_tasks(flat: NDArray[np.float64], layout: GangLayout) -> NDArray[np.bool_]:
    """Return which tasks of a channel array get enough to count, shape (n_tasks,)."""
    lacking = np.empty(len(layout.requirements))
    _lacking_kernel(
        flat,
        layout.requirements,
        layout.task_share,
        TOLERANCE,
        layout.by_task,
        layout.task_offsets,
        layout.places,
        lacking,
    )
    return lacking <= 0.0


def repair_gangs(flat: NDArray[np.float64], relaxed: BipartiteCluster, layout: GangLayout) -> NDArray[np.float64]:
    """Return a copy of a channel array that keeps the all-or-nothing rule (see the module).

    Parameters
    ----------
    flat : ndarray of float, shape (relaxed.layout.size,)
        Legal for ``relaxed``; not changed.
    relaxed : BipartiteCluster
        The cluster of tasks.
    layout : GangLayout

    Returns
    -------
    ndarray of float, shape (relaxed.layout.size,)
    """
    repaired = np.maximum(flat, 0.0)
    free = np.maximum(relaxed.capacities - relaxed.used(repaired), 0.0)
    lacking = np.empty(relaxed.n_ports)
    by_task, offsets, places = layout.by_task, layout.task_offsets, layout.places
    _lacking_kernel(repaired, layout.requirements, layout.task_share, TOLERANCE, by_task, offsets, places, lacking)
    _repair_kernel(
        repaired,
        free,
        lacking,
        layout.requirements,
        layout.task_share,
        by_task,
        offsets,
        places,
        layout.instances,
        layout.first_task,
        layout.minimum_tasks,
    )
    return repaired


@njit(cache=True)
def _lacking_kernel(flat, requirements, share, tolerance, by_task, offsets, places, lacking):  # type: ignore[no-untyped-def]
    """Fill ``lacking``: 0 if a task counts as scheduled, else the largest share of a type that it lacks."""
    n_types = requirements.shape[1]
    for task in range(lacking.size):
        worst, anything = 0.0, False
        for k in range(n_types):
            held = 0.0
            for c in range(offsets[task], offsets[task + 1]):
                held += flat[places[by_task[c], k]]
            anything = anything or held > 0.0
            need = share * requirements[task, k]
            if held < need * (1.0 - tolerance):
                worst = max(worst, 1.0 - held / need)
        lacking[task] = worst if anything else 1.0


@njit(cache=True)
def _repair_kernel(  # type: ignore[no-untyped-def]
    flat, free, lacking, requirements, share, by_task, offsets, places, instances, first_task, minimum
):
    """Change ``flat`` in place so that every port has its minimum of tasks or nothing; draw on ``free``."""
    n_ports = minimum.size
    missing = np.zeros(n_ports, dtype=np.int64)
    for port in range(n_ports):
        missing[port], held = minimum[port], 0.0
        for task in range(first_task[port], first_task[port + 1]):
            if lacking[task] <= 0.0:
                missing[port] -= 1
                held = 1.0
            else:
                held += _give_back(task, flat, free, by_task, offsets, places, instances)
        if held == 0.0:
            missing[port] = 0
    while True:
        port = -1
        for other in range(n_ports):
            if missing[other] > 0 and (port < 0 or missing[other] < missing[port]):
                port = other
        if port < 0:
            break
        while missing[port] > 0:
            task = -1
            for other in range(first_task[port], first_task[port + 1]):
                if lacking[other] > 0.0 and (task < 0 or lacking[other] < lacking[task]):
                    task = other
            if task < 0:
                break
            lacking[task] = 0.0  # looked at
            if _serve(task, flat, free, requirements[task], share, by_task, offsets, places, instances):
                missing[port] -= 1
            else:
                _give_back(task, flat, free, by_task, offsets, places, instances)
        if missing[port] > 0:
            for task in range(first_task[port], first_task[port + 1]):
                _give_back(task, flat, free, by_task, offsets, places, instances)
        missing[port] = 0


@njit(cache=True)
def _give_back(task, flat, free, by_task, offsets, places, instances):  # type: ignore[no-untyped-def]
    """Take everything from a task; return how much it was."""
    amount = 0.0
    for c in range(offsets[task], offsets[task + 1]):
        for k in range(free.shape[1]):
            place = places[by_task[c], k]
            free[instances[by_task[c]], k] += flat[place]
            amount += flat[place]
            flat[place] = 0.0
    return amount


@njit(cache=True)
def _serve(task, flat, free, requirement, share, by_task, offsets, places, instances):  # type: ignore[no-untyped-def]
    """Give a task that has nothing what counts, first fit; return whether it got it."""
    enough, anything = True, False
    for k in range(requirement.size):
        need = requirement[k] * (share if share > 0.0 else 1.0)
        for c in range(offsets[task], offsets[task + 1]):
            r = instances[by_task[c]]
            amount = min(need, free[r, k])
            if amount > 0.0:
                flat[places[by_task[c], k]] = amount
                free[r, k] -= amount
                need -= amount
                anything = True
        if share > 0.0 and need > 1e-12 * requirement[k]:
            enough = False
    return enough and anything
