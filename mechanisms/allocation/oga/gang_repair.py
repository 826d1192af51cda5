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

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from marketsched.mechanisms.allocation.oga.cluster import TOLERANCE, BipartiteCluster


class GangLayout(NamedTuple):
    """Where the channels of tasks lie, and to which ports they belong; tasks are ordered by port."""

    requirements: NDArray[np.float64]  # (n_tasks, n_types)
    share: float  # of each requirement that a task must get to count; 0: anything at all
    first_task: NDArray[np.int64]  # (n_ports + 1,): port l has tasks first_task[l] .. first_task[l + 1] - 1
    minimum: NDArray[np.int64]  # (n_ports,), fewest tasks that run
    by_task: NDArray[np.int64]  # (n_channels,), channels task by task, of each by instance
    offsets: NDArray[np.int64]  # (n_tasks + 1,), where the channels of each task begin there
    places: NDArray[np.int64]  # (n_channels, n_types) and (n_channels,): as in `ChannelLayout`, of tasks
    instances: NDArray[np.int64]


def missing_shares(flat: NDArray[np.float64], gangs: GangLayout) -> NDArray[np.float64]:
    """Return 0 for each task of a channel array that counts as scheduled, else the largest share that it lacks."""
    lacking = np.empty(len(gangs.requirements))
    _lacking_kernel(flat, TOLERANCE, gangs, lacking)
    return lacking


def repair_gangs(flat: NDArray[np.float64], tasks: BipartiteCluster, gangs: GangLayout) -> NDArray[np.float64]:
    """Return a copy of a channel array, legal for ``tasks``, that keeps the all-or-nothing rule (see the module)."""
    repaired = np.maximum(flat, 0.0)
    free = np.maximum(tasks.capacities - tasks.used(repaired), 0.0)
    _repair_kernel(repaired, free, missing_shares(repaired, gangs), gangs)
    return repaired


@njit(cache=True)
def _lacking_kernel(flat, tolerance, gangs, lacking):  # type: ignore[no-untyped-def]
    """Fill ``lacking``: 0 if a task counts as scheduled, else the largest share of a type that it lacks."""
    for task in range(lacking.size):
        worst, anything = 0.0, False
        for k in range(gangs.requirements.shape[1]):
            held = 0.0
            for c in range(gangs.offsets[task], gangs.offsets[task + 1]):
                held += flat[gangs.places[gangs.by_task[c], k]]
            anything = anything or held > 0.0
            need = gangs.share * gangs.requirements[task, k]
            if held < need * (1.0 - tolerance):
                worst = max(worst, 1.0 - held / need)
        lacking[task] = worst if anything else 1.0


@njit(cache=True)
def _repair_kernel(flat, free, lacking, gangs):  # type: ignore[no-untyped-def]
    """Change ``flat`` in place so that every port has its minimum of tasks or nothing; draw on ``free``."""
    first_task, n_ports = gangs.first_task, gangs.minimum.size
    missing = np.zeros(n_ports, dtype=np.int64)
    for port in range(n_ports):
        missing[port], held = gangs.minimum[port], 0.0
        for task in range(first_task[port], first_task[port + 1]):
            if lacking[task] <= 0.0:
                missing[port] -= 1
                held = 1.0
            else:
                held += _give_back(task, flat, free, gangs)
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
            if _serve(task, flat, free, gangs):
                missing[port] -= 1
            else:
                _give_back(task, flat, free, gangs)
        if missing[port] > 0:
            for task in range(first_task[port], first_task[port + 1]):
                _give_back(task, flat, free, gangs)
        missing[port] = 0


@njit(cache=True)
def _give_back(task, flat, free, gangs):  # type: ignore[no-untyped-def]
    """Take everything from a task; return how much it was."""
    amount = 0.0
    for c in range(gangs.offsets[task], gangs.offsets[task + 1]):
        channel = gangs.by_task[c]
        for k in range(free.shape[1]):
            place = gangs.places[channel, k]
            free[gangs.instances[channel], k] += flat[place]
            amount += flat[place]
            flat[place] = 0.0
    return amount


@njit(cache=True)
def _serve(task, flat, free, gangs):  # type: ignore[no-untyped-def]
    """Give a task that has nothing what counts, first fit; return whether it got it."""
    enough, anything = True, False
    for k in range(free.shape[1]):
        wanted = gangs.requirements[task, k]
        need = wanted * (gangs.share if gangs.share > 0.0 else 1.0)
        for c in range(gangs.offsets[task], gangs.offsets[task + 1]):
            channel = gangs.by_task[c]
            r = gangs.instances[channel]
            amount = min(need, free[r, k])
            if amount > 0.0:
                flat[gangs.places[channel, k]] = amount
                free[r, k] -= amount
                need -= amount
                anything = True
        if gangs.share > 0.0 and need > 1e-12 * wanted:
            enough = False
    return enough and anything
