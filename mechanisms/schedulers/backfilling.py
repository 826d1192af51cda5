"""Backfilling: who of a queue starts now, EASY or with reservations for all."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numba import njit
from numpy.typing import NDArray


def backfilled(queue: Sequence[tuple[int, int]], free: int, ends: Iterable[tuple[int, int]], now: int) -> list[bool]:
    """Say who of a queue starts now under EASY backfilling.

    Jobs start in their order as long as they fit. The first that does not, the head, has a reservation: the first
    round in which, by wall times, it fits beside what runs. Behind it a job starts if it fits now, and
    either ends by then or takes nodes that the head leaves over.

    Parameters
    ----------
    queue : sequence of (int, int)
        Nodes and wall time (rounds) of each job.
    free : int
        Unused nodes in round ``now``.
    ends : iterable of (int, int)
        First round without it, after ``now``, and nodes of each running job.
    now : int
        The round.

    References
    ----------
    D. Lifka, *The ANL/IBM SP scheduling system*, JSSPP 1995; A. Mu'alem and D. Feitelson, *Utilization,
    predictability, workloads, and user runtime estimates in scheduling the IBM SP2 with backfilling*, TPDS 2001.

    Examples
    --------
    Two of four nodes are free until round 5; the head needs three. A job of 4 rounds may pass, one of 5 rounds only
    on the node that is left over:

    >>> backfilled([(3, 9), (1, 5), (1, 5), (1, 4)], 2, [(5, 2)], 1)
    [False, True, False, True]
    """
    sizes = np.array(queue, dtype=np.int64).reshape(-1, 2)
    later = np.array(list(ends), dtype=np.int64).reshape(-1, 2)
    rounds = np.maximum(later[:, 0] - now, 1)
    freed = np.zeros(1 + max(rounds.max(initial=1), sizes[:, 1].max(initial=1)), np.int64)
    np.add.at(freed, rounds, later[:, 1])
    starts = np.zeros(len(queue), np.bool_)
    backfill_kernel(sizes[:, 0].copy(), sizes[:, 1].copy(), free, freed, 0, starts)
    return list(starts.tolist())


@njit(cache=True)
def backfill_kernel(widths, lengths, free, freed, now, starts):  # type: ignore[no-untyped-def]
    """Set ``starts`` for each job of a queue that starts in round ``now``; return the nodes left.

    ``freed[t]`` are the nodes that become free in round t by wall times; those of jobs that start are added.
    """
    place = 0
    while place < widths.size and widths[place] <= free:
        starts[place] = True
        free -= widths[place]
        freed[now + lengths[place]] += widths[place]
        place += 1
    if place == widths.size or free == 0:
        return free
    reserved, then = now, free  # for the head: the first round in which it fits, and the nodes free in it
    while then < widths[place] and reserved + 1 < freed.size:
        reserved += 1
        then += freed[reserved]
    left_over = then - widths[place]
    for i in range(place + 1, widths.size):
        if widths[i] > free:
            continue
        if now + lengths[i] > reserved:
            if widths[i] > left_over:
                continue
            left_over -= widths[i]
        starts[i] = True
        free -= widths[i]
        freed[now + lengths[i]] += widths[i]
        if free == 0:
            break
    return free


@njit(cache=True)
def plan_kernel(
    free: NDArray[np.int64],
    widths: NDArray[np.int64],
    lengths: NDArray[np.int64],
    latest: NDArray[np.int64],
    planned: NDArray[np.int64],
) -> NDArray[np.int64]:
    """Return the earliest start of each job in turn, rounds from now on, or -1 if none is up to ``latest``.

    ``planned`` are the starts that were promised, -1: none; ``free`` is changed.
    """
    starts = np.full(widths.size, -1, dtype=np.int64)
    for i in range(widths.size):
        if planned[i] >= 0:
            free[planned[i] : planned[i] + lengths[i]] -= widths[i]
    for i in range(widths.size):
        if planned[i] >= 0:
            free[planned[i] : planned[i] + lengths[i]] += widths[i]
        run = 0  # rounds in a row with enough nodes, up to t
        for t in range(min(free.size, latest[i] + lengths[i])):
            run = run + 1 if free[t] >= widths[i] else 0
            if run == lengths[i]:
                starts[i] = t + 1 - run
                free[t + 1 - run : t + 1] -= widths[i]
                break
    return starts
