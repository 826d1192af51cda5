r"""Allocation of nodes: regular jobs first, spare jobs on the rest, and the limit on evictions.

Of each class the job with the smallest arrival + patience goes first, then who arrived first.

1. A waiting job starts if it fits into idle nodes. One that does not fit blocks no other.
2. A regular job that does not fit collects spare runs, those that began last first, until there is room; those that
   turn out not to be needed are left out again, those that began first before others. It takes their nodes only if what
   they lose is not more than a part of its own usual work,

   .. math:: \sum_i c_i e_i \le b \, c_j \bar m(c_j),

   with e_i the rounds that run i would lose, b = .75: those that it has run, or those since its last checkpoint, if its
   job states one. Who began last has least to lose.
3. A spare job takes nodes under the same limit, but only from spare runs whose latest start lies more than 8 hours
   behind its own.

Nodes, classes, patience, checkpoints, turns and starts of those present decide, and usual rounds of those that have
left: no other report.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from marketsched.mechanisms.offers.present import Present

MOST_LOST = 0.75  # b: with 1.5 evictions destroyed up to a sixth of the busy node time
APART = (
    32  # quarters of an hour between the latest starts of a spare job and of a spare run that it may take nodes from
)


def serve(
    present: Present,
    now: int,
    idle: int,
    room: int,
    usual_rounds: NDArray[np.float64],
    *,
    requeue: bool,
    apart: int = APART,
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Take nodes back and start runs in round ``now``; return the rows taken and started, in order.

    A run that was taken back may be followed by another of its job in this round; without ``requeue`` it is lost, and
    its job with it. Negative ``idle`` nodes have to be taken back for jobs that are booked; on ``room`` nodes regular
    jobs could start if no spare job ran; ``usual_rounds`` are by band of widths, and ``apart`` the rounds of point 3
    above.
    """
    taken, started = np.empty(present.n, dtype=np.int64), np.empty(present.n, dtype=np.int64)
    n_taken, n_started = _serve_kernel(
        present.jobs, present.queue(), present.victims(), now, idle, room, usual_rounds, MOST_LOST, apart, requeue,
        taken, started,
    )  # fmt: skip
    return taken[:n_taken], started[:n_started]


@njit(cache=True)
def _collect_kernel(jobs, victims, after, missing, chosen):  # type: ignore[no-untyped-def]
    """Choose spare runs with ``missing`` nodes whose latest starts lie behind ``after``.

    Returns how many, 0 if they do not do.
    """
    width, start, latest = jobs["width"], jobs["start"], jobs["latest"]
    count, have = 0, 0
    for j in victims:
        if start[j] > 0 and latest[j] > after:  # it has not been taken back in this round
            chosen[count] = j
            count += 1
            have += width[j]
            if have >= missing:
                break
    if have < missing:
        return 0
    needed = 0
    for k in range(count - 1, -1, -1):  # who began first
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
    jobs, queue, victims, now, idle, room, usual_rounds, limit, apart, requeue, taken, started
):
    """Fill ``taken`` and ``started``; return how many of each."""
    offer, width, start, state = jobs["offer"], jobs["width"], jobs["start"], jobs["state"]
    band, ran, latest, every = jobs["band"], jobs["ran"], jobs["latest"], jobs["every"]
    n, n_taken, n_started, j = queue.size, 0, 0, 0
    chosen = np.empty(victims.size, dtype=np.int64)
    for place in range(-1, n):  # -1: jobs that are booked; then regular jobs, then spare ones
        spare, after, missing = False, -1, -idle
        if place >= 0:
            j = queue[place]
            spare = offer[j] == 0
            if start[j] > 0 or state[j] != 0 or (not spare and width[j] > room):
                continue
            missing = width[j] - idle
            if spare:
                after = latest[j] + apart
        if missing > 0:
            count = _collect_kernel(jobs, victims, after, missing, chosen)
            if count == 0:
                continue
            if place >= 0:
                lost = 0
                for k in range(count):
                    victim = chosen[k]
                    ago = now - start[victim]
                    lost += width[victim] * (ago % every[victim] if every[victim] > 0 else ago)
                if lost > limit * width[j] * usual_rounds[band[j]]:
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
        if place >= 0:
            start[j] = now
            idle -= width[j]
            if not spare:
                room -= width[j]
            started[n_started] = j
            n_started += 1
    return n_taken, n_started
