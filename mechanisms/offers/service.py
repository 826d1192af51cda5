r"""Allocation of nodes: regular jobs first, spare jobs on the rest, and the limit on evictions.

1. A waiting regular job, in order of arrival, starts if it fits into idle nodes.
2. One that does not fit collects spare runs, the latest arrival first, until there is room; those that turn out not
   to be needed are left out again, the earliest arrival first. It takes their nodes only if what they lose is not
   more than the usual work that waits, for itself and twice for the regular jobs behind it:

   .. math:: \sum_i c_i e_i \le b \bigl(c_j \bar m(c_j) + 2 \sum_k c_k \bar m(c_k)\bigr),

   with e_i the rounds that run i has run. Otherwise it waits, and blocks no other.
3. Spare jobs, waiting or running, in order of arrival: one that does not fit takes the nodes of spare runs that
   arrived after it, or, if spare jobs are ``passing`` each other, waits.

Nodes, classes, turns and starts of those present decide, and usual rounds of those that have left: no other report.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from marketsched.mechanisms.offers.present import Present

PATIENCE = 1.5  # b


def serve(
    present: Present,
    now: int,
    idle: int,
    room: int,
    usual_rounds: NDArray[np.float64],
    *,
    requeue: bool,
    passing: bool,
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Take nodes back and start runs in round ``now``.

    Parameters
    ----------
    present : Present
        Changed: ``start`` of both, and ``state`` of those that are lost.
    now : int
        The round.
    idle : int
        Unused nodes; negative: so many have to be taken back for jobs that are booked.
    room : int
        Nodes that regular jobs could start on if no spare job ran.
    usual_rounds : ndarray, shape (5,)
        By band of widths.
    requeue : bool
        False: runs that are taken back are lost, and their jobs with them.
    passing : bool
        Whether spare jobs leave spare runs alone.

    Returns
    -------
    taken, started : ndarray of int
        Rows, in the order in which it happened; a run that was taken back may be followed by another in this round.
    """
    taken, started = np.empty(present.n, dtype=np.int64), np.empty(present.n, dtype=np.int64)
    n_taken, n_started = _serve_kernel(
        present.jobs, present.turn, present.n, now, idle, room, usual_rounds, PATIENCE, requeue, passing, taken, started
    )
    return taken[:n_taken], started[:n_started]


@njit(cache=True)
def _collect_kernel(jobs, turn, n, first, missing, chosen):  # type: ignore[no-untyped-def]
    """Choose spare runs of turns ``first .. n - 1`` with ``missing`` nodes; return how many, 0 if they do not do."""
    offer, width, start, state = jobs["offer"], jobs["width"], jobs["start"], jobs["state"]
    count, have = 0, 0
    for i in range(n - 1, first - 1, -1):
        j = turn[i]
        if offer[j] == 0 and start[j] > 0 and state[j] == 0:
            chosen[count] = j
            count += 1
            have += width[j]
            if have >= missing:
                break
    if have < missing:
        return 0
    needed = 0
    for k in range(count - 1, -1, -1):  # the earliest arrival first
        if have - width[chosen[k]] >= missing:
            have -= width[chosen[k]]
            chosen[k] = -1
    for k in range(count):
        if chosen[k] >= 0:
            chosen[needed] = chosen[k]
            needed += 1
    return needed


@njit(cache=True)
def _serve_kernel(  # type: ignore[no-untyped-def]
    jobs, turn, n, now, idle, room, usual_rounds, patience, requeue, passing, taken, started
):
    """Fill ``taken`` and ``started``; return how many of each."""
    offer, width, start, state = jobs["offer"], jobs["width"], jobs["start"], jobs["state"]
    band, ran = jobs["band"], jobs["ran"]
    chosen = np.empty(n, dtype=np.int64)
    behind = np.zeros(n + 1)  # usual work of the regular jobs that wait at turn i and after it
    n_taken, n_started, j = 0, 0, 0
    for i in range(n - 1, -1, -1):
        j = turn[i]
        waits = offer[j] == 1 and start[j] == 0
        behind[i] = behind[i + 1] + (width[j] * usual_rounds[band[j]] if waits else 0.0)
    for turn_of in range(-1, 2 * n):  # -1: jobs that are booked; then regular jobs, then spare ones
        i = turn_of if turn_of < n else turn_of - n
        spare = turn_of >= n
        first, missing = 0, -idle
        if turn_of >= 0:
            j = turn[i]
            if offer[j] != (0 if spare else 1) or start[j] > 0 or state[j] != 0:
                continue
            missing = width[j] - idle
            if spare:
                first = i + 1
            elif width[j] > room:
                continue
        if missing > 0:
            if spare and passing:
                continue
            count = _collect_kernel(jobs, turn, n, first, missing, chosen)
            if count == 0:
                continue
            if turn_of >= 0 and not spare:
                lost = 0
                for k in range(count):
                    lost += width[chosen[k]] * (now - start[chosen[k]])
                if lost > patience * (width[j] * usual_rounds[band[j]] + 2.0 * behind[i + 1]):
                    continue
            for k in range(count):
                victim = chosen[k]
                idle += width[victim]
                start[victim] = 0
                ran[victim] += 1
                if not requeue:
                    state[victim] = 2
                taken[n_taken] = victim
                n_taken += 1
        if turn_of >= 0:
            start[j] = now
            idle -= width[j]
            if not spare:
                room -= width[j]
            started[n_started] = j
            n_started += 1
    return n_taken, n_started
