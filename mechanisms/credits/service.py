r"""Nodes for a round: regular runs pay for it, regular jobs start in order of arrival, free ones on what is left.

1. A regular run pays a credit a node. One whose owner cannot pay goes on as free run.
2. A waiting regular job whose owner can pay a round starts, and pays, if it fits into idle nodes. If not, it collects
   free runs, the latest arrival first, until there is room; those that turn out not to be needed are left out again.
   It takes their nodes if they lose no more than

   .. math:: \sum_i c_i e_i \le b \max(1, A/C)^3 (c \bar m(c) + 2 \sum_{j'} c' \bar m(c')),

   with j' the regular jobs that wait behind it, e_i the rounds that run i has run, b = 1.5; or if it has been regular
   for X rounds. One that does not fit blocks no other.
3. Free jobs are tried in the order of `turns`, and start where they fit; they take no nodes from anybody. The first
   that does not fit keeps the nodes that it will have first, if runs last as usual: free jobs behind it start on
   others, or if they are usually over by then. Otherwise narrow ones would pass a wide one for ever.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from marketsched.mechanisms.credits.purses import CREDIT, Purses
from marketsched.mechanisms.offers.present import Rows

MOST_LOST = 1.5  # b


def prepay(present: Rows, purses: Purses) -> int:
    """Let the regular runs pay for a round; return how many go on as free runs because their owner cannot."""
    found: int = prepay_kernel(present.in_turn, purses.balances, CREDIT)
    return found


def serve_regular(
    present: Rows, now: int, idle: int, purses: Purses, usual_rounds: NDArray[np.float64], load: float, patience: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Take nodes back and start regular runs in round ``now``; return the rows taken and started, in order.

    ``purses`` pay for runs that start; ``load`` is A / C, ``patience`` X in rounds, ``usual_rounds`` by band of widths.
    """
    taken, started = np.empty(present.n, dtype=np.int64), np.empty(present.n, dtype=np.int64)
    limit = MOST_LOST * max(1.0, load) ** 3
    n_taken, n_started = _regular_kernel(
        present.in_turn, now, idle, purses.balances, CREDIT, usual_rounds, limit, patience, taken, started
    )
    return taken[:n_taken], started[:n_started]


def serve_free(
    present: Rows, now: int, idle: int, queue: NDArray[np.int64], usual_rounds: NDArray[np.float64], reserves: bool
) -> NDArray[np.int64]:
    """Start free jobs on idle nodes, in the order of ``queue`` (rows); return the rows of those that start.

    ``reserves``: for the first that does not fit; ``usual_rounds`` by band of widths.
    """
    started = np.empty(queue.size, dtype=np.int64)
    return started[: _free_kernel(present.in_turn, queue, now, idle, usual_rounds, reserves, started)]


@njit(cache=True)
def prepay_kernel(present, balances, credit):  # type: ignore[no-untyped-def]
    """Let the regular runs pay for a round; return how many cannot, and go on as free runs."""
    (jobs, turn), (held, spent) = present, balances
    start, since, width, owner, paid = jobs["start"], jobs["since"], jobs["width"], jobs["owner"], jobs["paid"]
    without = 0
    for i in range(turn.size):
        j = turn[i]
        if start[j] == 0 or since[j] == 0:
            continue
        cost = width[j] * credit
        if held[owner[j]] >= cost:
            held[owner[j]] -= cost
            spent[owner[j]] += cost
            paid[j] += cost
        else:
            since[j] = 0
            without += 1
    return without


@njit(cache=True)
def _collect_kernel(present, missing, chosen):  # type: ignore[no-untyped-def]
    """Choose free runs with ``missing`` nodes; return how many, 0 if they do not do."""
    jobs, turn = present
    width, start, since = jobs["width"], jobs["start"], jobs["since"]
    count, have = 0, 0
    for i in range(turn.size - 1, -1, -1):
        j = turn[i]
        if start[j] > 0 and since[j] == 0:
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
def _regular_kernel(  # type: ignore[no-untyped-def]
    present, now, idle, balances, credit, usual_rounds, limit, patience, taken, started
):
    """Fill ``taken`` and ``started``; return how many of each."""
    (jobs, turn), (held, spent) = present, balances
    start, since, width, owner, band = jobs["start"], jobs["since"], jobs["width"], jobs["owner"], jobs["band"]
    ran, unpaid, paid = jobs["ran"], jobs["unpaid"], jobs["paid"]
    n_taken, n_started, behind = 0, 0, 0.0
    chosen = np.empty(turn.size, dtype=np.int64)
    for i in range(turn.size):
        j = turn[i]
        if since[j] > 0 and start[j] == 0:
            behind += width[j] * usual_rounds[band[j]]
    for i in range(turn.size):
        j = turn[i]
        if since[j] == 0 or start[j] > 0:
            continue
        own = width[j] * usual_rounds[band[j]]
        behind -= own
        waited, cost = now - since[j], width[j] * credit
        if held[owner[j]] < cost:
            if waited >= patience:
                unpaid[j] += 1
            continue
        if width[j] > idle:
            count = _collect_kernel(present, width[j] - idle, chosen)
            if count == 0:
                continue
            if waited < patience:
                lost = 0
                for k in range(count):
                    lost += width[chosen[k]] * (now - start[chosen[k]])
                if lost > limit * (own + 2.0 * max(0.0, behind)):
                    continue
            for k in range(count):
                victim = chosen[k]
                idle += width[victim]
                start[victim] = 0
                ran[victim] += 1
                taken[n_taken] = victim
                n_taken += 1
        start[j] = now
        idle -= width[j]
        held[owner[j]] -= cost
        spent[owner[j]] += cost
        paid[j] += cost
        started[n_started] = j
        n_started += 1
    return n_taken, n_started


@njit(cache=True)
def _free_kernel(present, queue, now, idle, usual_rounds, reserves, started):  # type: ignore[no-untyped-def]
    jobs, turn = present
    start, width, band = jobs["start"], jobs["width"], jobs["band"]
    n_started, reserved, left = 0, -1, 0
    for j in queue:
        if width[j] > idle:
            if reserves and reserved < 0:
                reserved, left = _reservation_kernel(jobs, turn, now, idle, width[j], usual_rounds)
            continue
        if 0 <= reserved < max(1.0, usual_rounds[band[j]]):
            if width[j] > left:
                continue
            left -= width[j]
        start[j] = now
        idle -= width[j]
        started[n_started] = j
        n_started += 1
        if idle == 0:
            break
    return n_started


@njit(cache=True)
def _reservation_kernel(jobs, turn, now, idle, width, usual_rounds):  # type: ignore[no-untyped-def]
    """Return after how many rounds so many nodes are usually idle, and how many more are then.

    A run lasts as its band usually does, but half as long again as it has at least.
    """
    rest, nodes, n = np.empty(turn.size), np.empty(turn.size, np.int64), 0
    for i in range(turn.size):
        j = turn[i]
        if jobs["start"][j] > 0 and jobs["state"][j] == 0:
            ran = now - jobs["start"][j]
            rest[n], nodes[n] = max(1.0, 0.5 * ran, usual_rounds[jobs["band"][j]] - ran), jobs["width"][j]
            n += 1
    order, i = np.argsort(rest[:n]), 0
    while i < n and idle < width:
        idle += nodes[order[i]]
        i += 1
    until = rest[order[i - 1]] if i else 0.0
    while i < n and rest[order[i]] == until:
        idle += nodes[order[i]]
        i += 1
    return until, max(0, idle - width)
