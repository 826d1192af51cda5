"""First come, first served, compiled: all kernels of the rule, which call no other, and the jobs that they read.

Known durations: the earliest start that is worth its cost. Hidden ones: the expected surplus of each start, the turn of
a job, and markets of both, many rounds at a time. The state is that of `hidden_play`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from marketsched.mechanisms.columns import DurationLaws, JobColumns
from marketsched.mechanisms.limits import MarketLimits

MANY = 2**62  # nodes: more than any job takes
# What the state counts: rows of who waits from .. to, arrivals, jobs that wait without a last round, the least width;
# whether no run begins later than it is decided, and all durations are hidden, and then the nodes that are free.
BEGIN, END, ARRIVED, UNSURE, LEAST, AT_ONCE, IDLE = range(7)


class _Jobs(NamedTuple):
    """What kernels read of jobs; see `JobColumns` and `DurationLaws`."""

    order: NDArray[np.int64]  # those that arrive, in order of (arrival, submission)
    arrivals: NDArray[np.int64]
    durations: NDArray[np.int64]
    widths: NDArray[np.int64]
    revealed: NDArray[np.bool_]
    begins: NDArray[np.int64]
    values: NDArray[np.float64]
    lasts: NDArray[np.int64]
    useful: NDArray[np.int64]
    law_of: NDArray[np.int64]
    offsets: NDArray[np.int64]
    law_durations: NDArray[np.int64]
    law_weights: NDArray[np.float64]


def kernel_jobs(jobs: JobColumns, limits: MarketLimits, laws: DurationLaws) -> _Jobs:
    """Return what kernels read of the jobs of a market, with the laws of those whose durations are hidden."""
    columns = (jobs.arrivals, jobs.durations, jobs.widths, jobs.revealed, jobs.begins, jobs.values, jobs.lasts)
    return _Jobs(jobs.by_arrival[0], *columns, jobs.useful(limits.max_delay, limits.horizon), *laws)


@njit(cache=True)
def earliest_start_kernel(  # type: ignore[no-untyped-def]
    free, width, first, duration, values, lasts, begin, end, last, cost
):
    """Return the earliest start >= ``first`` with room whose completion is worth more than ``cost``; else 0.

    ``free[r - 1]`` are the nodes free in round r; ``values`` and ``lasts`` hold the value curve as steps
    ``begin .. end - 1``, of which completions up to ``last`` count.
    """
    worth_it = 0  # the last completion that is worth it
    for k in range(begin, end):
        if values[k] > cost:
            worth_it = min(lasts[k], last)
    step, since = begin, first  # all rounds since..t have room
    for t in range(first, worth_it):
        if free[t - 1] < width:
            since = t + 1
        elif t - since + 1 >= duration:
            while lasts[step] < t + 1:
                step += 1
            if values[step] > cost:
                return t - duration + 1
    return 0


@njit(cache=True)
def first_come_kernel(  # type: ignore[no-untyped-def]
    rows, arrivals, durations, widths, begins, values, lasts, useful, price, free, starts
):
    """Serve jobs of known durations in this order; fill ``starts``, draw ``free`` down in place.

    Returns the value of their completions and their payments, added up.
    """
    welfare, revenue = 0.0, 0.0
    for j in rows:
        width, duration, begin, end = widths[j], durations[j], begins[j], begins[j + 1]
        cost = price * width * duration
        start = earliest_start_kernel(free, width, arrivals[j], duration, values, lasts, begin, end, useful[j], cost)
        if start > 0:
            starts[j] = start
            step = begin
            while lasts[step] < start + duration:
                step += 1
            welfare += values[step]
            revenue += cost
            for t in range(start, start + duration):
                free[t - 1] -= width
    return welfare, revenue


@njit(cache=True)
def worth_kernel(durations, weights, values, lasts, first, last):  # type: ignore[no-untyped-def]
    """Return the expected value of starts ``first, first + 1, ...`` whose shortest run completes by ``last``."""
    if not durations.size:
        return np.zeros(0)
    worth = np.zeros(max(0, last - durations[0] - first + 1))
    for i in range(durations.size):
        step = 0
        for k in range(min(worth.size, last - durations[i] - first + 1)):
            while lasts[step] < first + k + durations[i]:
                step += 1
            worth[k] += weights[i] * values[step]
    return worth


@njit(cache=True)
def surplus_kernel(durations, weights, values, lasts, first, last, end, cost):  # type: ignore[no-untyped-def]
    """Return `expected_surplus` of a curve of steps: up to ``lasts[k]`` it is worth ``values[k]``, at ``last`` too."""
    surplus = worth_kernel(durations, weights, values, lasts, first, last)
    if not surplus.size:
        return surplus
    charged = charged_kernel(durations, weights, first, surplus.size, end)
    for k in range(surplus.size):
        surplus[k] -= cost * charged[k]
    return surplus


@njit(cache=True)
def charged_kernel(durations, weights, first, n_starts, last):  # type: ignore[no-untyped-def]
    """Return `charged_rounds`; all sums from the shortest duration on."""
    mean = 0.0
    for i in range(durations.size):
        mean += weights[i] * durations[i]
    found = np.full(n_starts, mean)
    longest = durations[-1] if durations.size else 0
    for k in range(max(0, last + 1 - longest - first), n_starts):
        found[k] = 0.0
        for i in range(durations.size):
            if first + k + durations[i] <= last:
                found[k] += weights[i] * durations[i]
    return found


@njit(cache=True)
def favourites_kernel(surplus):  # type: ignore[no-untyped-def]
    """Return for each start the first of the best ones from it on, shape as of ``surplus``."""
    found = np.arange(surplus.size)
    for k in range(surplus.size - 2, -1, -1):
        if surplus[found[k + 1]] > surplus[k]:
            found[k] = found[k + 1]
    return found


@njit(cache=True)
def turn_kernel(surplus, best, free, now, width, limit):  # type: ignore[no-untyped-def]
    """Return `start_at_turn`, where ``best`` is the favourite of all; 0 for a turn that is not yet, -1 for no start."""
    if not surplus.size or surplus[best] <= 1e-12:  # TOLERANCE: a kernel uses nothing outside it
        return -1
    room = 0  # rounds from now on with room
    while room < best + limit and now - 1 + room < free.size and free[now - 1 + room] >= width:
        room += 1
    full = min(best + limit, free.size - now + 1)
    if room == full:  # nothing is in its way
        return now + best
    if room < min(limit, full):
        return 0
    best = surplus[: room - limit + 1].argmax()  # a booking lies before the best start ends
    return now + best if surplus[best] > 1e-12 else 0


@njit(cache=True)
def play_kernel(  # type: ignore[no-untyped-def]
    jobs, state, starts, left, endings, payments, price, longest, stop_at_deadline, first, until
):
    """Go through rounds ``first .. until``; fill starts, rounds of leaving, endings (`Ending`) and payments.

    Of those that wait, in rows ``begin .. end - 1`` of ``state.waiting``, each round looks at the first ones, until
    fewer nodes are free than any of them needs; who has waited too long is found later, and left when it left.
    Free nodes grow when a run ends, so that nobody who waits starts before one does.
    """
    free, waiting, counts, horizon = state.free, state.waiting, state.counts, state.free.size
    if first == 1:
        counts[AT_ONCE], counts[IDLE] = _at_once_kernel(jobs, price, horizon + 1), free[0]
    for now in range(first, until + 1):
        j = state.ending[now]
        nobody_comes = counts[ARRIVED] == jobs.order.size or jobs.arrivals[jobs.order[counts[ARRIVED]]] > now
        if j < 0 and nobody_comes and counts[UNSURE] == 0 and now > first:
            continue
        while j >= 0:
            booked = jobs.durations[j] if jobs.revealed[j] else longest
            _take_kernel(free, counts, now, starts[j] + booked, -jobs.widths[j])
            j = state.before[j]
        begin, old = counts[BEGIN], counts[END]
        end = _arrive_kernel(jobs, state, now, price)
        room, i, seen, new = -1, begin, begin, old  # nodes free for the longest run from now on; -1: not looked up
        while i < end:
            if i < old and counts[UNSURE] == 0 and 0 <= room < counts[LEAST]:  # of the others none could start
                i = old
                continue
            j = waiting[i]
            if jobs.revealed[j]:
                start = _revealed_start_kernel(jobs, j, free, price, longest)
                booked, held_from, room = jobs.durations[j], start, -1
            else:
                if room < 0:
                    room = counts[IDLE] if counts[AT_ONCE] else free[now - 1 : now - 1 + longest].min()
                start = _hidden_start_kernel(jobs, j, state.patience[j], free, room, now, price, longest)
                booked, held_from = longest, now
                room = room - jobs.widths[j] if start == now else room if start <= 0 else -1
            i += 1
            if i <= old:
                seen = i
            if start == 0:
                # Those of old that stay are put together at the front, new ones behind the last of old.
                place = begin if i <= old else new
                waiting[place] = j
                begin, new = (begin + 1, new) if i <= old else (begin, new + 1)
                continue
            counts[UNSURE] -= not jobs.revealed[j] and state.patience[j] < 0
            if start < 0:
                left[j] = now if jobs.revealed[j] or state.patience[j] < 0 else state.patience[j] + 1
                endings[j] = 1  # Ending.DROPPED
                continue
            starts[j] = start
            _take_kernel(free, counts, held_from, start + booked, jobs.widths[j])
            free_from = _run_kernel(jobs, j, start, booked, price, stop_at_deadline, horizon, left, endings, payments)
            if free_from <= horizon:
                state.before[j], state.ending[free_from] = state.ending[free_from], j
        _close_gap_kernel(jobs, state, begin, seen, old, new)
    _leave_kernel(jobs, state, until, left, endings)


@njit(cache=True)
def _take_kernel(free, counts, begin, end, width):  # type: ignore[no-untyped-def]
    """Book nodes of rounds ``begin .. end - 1``; where every run begins at once a number stands for the calendar."""
    if counts[AT_ONCE]:
        counts[IDLE] -= width
    else:
        free[begin - 1 : end - 1] -= width


@njit(cache=True)
def _at_once_kernel(jobs, price, end):  # type: ignore[no-untyped-def]
    """Tell whether all durations are hidden, and every job likes no start better than one before."""
    for j in jobs.order:
        if jobs.revealed[j] or _patience_kernel(jobs, j, price, end) < 0:
            return 0
    return 1


@njit(cache=True)
def _arrive_kernel(jobs, state, now, price):  # type: ignore[no-untyped-def]
    """Put those that arrive behind those that wait; return the end of both."""
    end, coming = state.counts[END], state.counts[ARRIVED]
    while coming < jobs.order.size and jobs.arrivals[jobs.order[coming]] == now:
        j = jobs.order[coming]
        if not jobs.revealed[j]:
            state.patience[j] = _patience_kernel(jobs, j, price, state.free.size + 1)
            state.counts[UNSURE] += state.patience[j] < 0
        state.waiting[end] = j
        end, coming = end + 1, coming + 1
    state.counts[ARRIVED] = coming
    return end


@njit(cache=True)
def _close_gap_kernel(jobs, state, stayed, seen, old, new):  # type: ignore[no-untyped-def]
    """Move the rows that were seen and stay, ``counts[BEGIN] .. stayed - 1``, up to those from ``seen`` on.

    ``old .. new - 1`` are those that came and stay.
    """
    counts, waiting = state.counts, state.waiting
    begin, shift = counts[BEGIN], seen - stayed
    if shift:
        for i in range(stayed - 1, begin - 1, -1):
            waiting[i + shift] = waiting[i]
    counts[BEGIN], counts[END] = begin + shift, new
    whole = seen == old  # all were looked at: the least width is that of who stays
    if whole:
        counts[LEAST] = MANY
    for i in range(counts[BEGIN] if whole else old, new):
        counts[LEAST] = min(counts[LEAST], jobs.widths[waiting[i]])


@njit(cache=True)
def _leave_kernel(jobs, state, until, left, endings):  # type: ignore[no-untyped-def]
    """Let go who has waited too long in round ``until``."""
    counts, waiting = state.counts, state.waiting
    still = counts[BEGIN]
    for i in range(counts[BEGIN], counts[END]):
        j = waiting[i]
        if 0 <= state.patience[j] < until:
            left[j], endings[j] = state.patience[j] + 1, 1  # Ending.DROPPED
        else:
            waiting[still] = j
            still += 1
    counts[END] = still


@njit(cache=True)
def _run_kernel(jobs, j, start, booked, price, stop_at_deadline, horizon, left, endings, payments):  # type: ignore[no-untyped-def]
    """Note how a run ends that starts in this round; return the round from which on its nodes are free."""
    end, stop = start + jobs.durations[j], start + booked
    if stop_at_deadline:
        stop = min(stop, jobs.useful[j])
    stop = max(stop, start + 1)
    if end <= min(stop, horizon + 1):
        left[j], endings[j] = end - 1, 4  # Ending.COMPLETED
        payments[j] = price * jobs.widths[j] * jobs.durations[j]
    elif stop < end and stop <= horizon:
        left[j], endings[j] = stop, 3  # Ending.EVICTED
    return min(end, stop)


@njit(cache=True)
def _revealed_start_kernel(jobs, j, free, price, longest):  # type: ignore[no-untyped-def]
    """Return the start of a job of known duration, which is decided at its arrival; -1: none."""
    duration, begin, end = jobs.durations[j], jobs.begins[j], jobs.begins[j + 1]
    if duration > longest:
        return -1
    width = jobs.widths[j]
    found = earliest_start_kernel(
        free,
        width,
        jobs.arrivals[j],
        duration,
        jobs.values,
        jobs.lasts,
        begin,
        end,
        jobs.useful[j],
        price * width * duration,
    )
    return found if found > 0 else -1


@njit(cache=True)
def _hidden_start_kernel(jobs, j, patience, free, room, now, price, longest):  # type: ignore[no-untyped-def]
    """Return the start of a job of hidden duration; 0: it waits, -1: it leaves."""
    if patience >= 0:
        return -1 if now > patience else now if room >= jobs.widths[j] else 0
    surplus = _surplus_of(jobs, j, now, price, free.size + 1)
    return turn_kernel(surplus, surplus.argmax() if surplus.size else 0, free, now, jobs.widths[j], longest)


@njit(cache=True)
def _patience_kernel(jobs, j, price, end):  # type: ignore[no-untyped-def]
    """Return the last round in which a start now is worth it; -1: a later start may be better than one before.

    The surplus changes only where a duration of the law falls into another step of the curve, or behind the end.
    """
    law = slice(jobs.offsets[jobs.law_of[j]], jobs.offsets[jobs.law_of[j] + 1])
    curve = slice(jobs.begins[j], jobs.begins[j + 1])
    durations, weights = jobs.law_durations[law], jobs.law_weights[law]
    values, lasts, useful = jobs.values[curve], jobs.lasts[curve], jobs.useful[j]
    cost, start, last = price * jobs.widths[j], jobs.arrivals[j], jobs.arrivals[j] - 1
    before, behind = np.inf, useful - durations[0] + 1 if durations.size else start
    while start < behind:
        worth, charged, change = 0.0, 0.0, behind
        for i in range(durations.size):
            done = start + durations[i]
            if done <= useful:
                step = np.searchsorted(lasts, done)
                worth += weights[i] * values[step]
                change = min(change, start + min(lasts[step], useful) - done + 1)
            if done <= end:
                charged += weights[i] * durations[i]
                change = min(change, start + end - done + 1)
        surplus = worth - cost * charged
        if surplus > before:
            return -1
        if surplus > 1e-12:  # TOLERANCE: a kernel uses nothing outside it
            last = change - 1
        before, start = surplus, change
    return last


@njit(cache=True)
def _surplus_of(jobs, j, first, price, end):  # type: ignore[no-untyped-def]
    """Return what starts in rounds ``first, first + 1, ...`` are expected to bring, less what they are to pay."""
    law = slice(jobs.offsets[jobs.law_of[j]], jobs.offsets[jobs.law_of[j] + 1])
    curve = slice(jobs.begins[j], jobs.begins[j + 1])
    durations, weights = jobs.law_durations[law], jobs.law_weights[law]
    cost = price * jobs.widths[j]
    return surplus_kernel(durations, weights, jobs.values[curve], jobs.lasts[curve], first, jobs.useful[j], end, cost)


@njit(cache=True)
def density_kernel(jobs, longest, end):  # type: ignore[no-untyped-def]
    """Return the ends of `_announced_density_ends`."""
    order, arrivals, durations, widths, revealed, begins, values, lasts, useful, law_of, offsets, days, chances = jobs
    least, most = np.inf, 0.0
    one, certain = np.ones(1), np.empty(1, np.int64)
    for j in order:
        certain[0] = durations[j]
        law = slice(offsets[law_of[j]], offsets[law_of[j] + 1])
        own, weights = (certain, one) if revealed[j] else (days[law], chances[law])
        if arrivals[j] >= end or (revealed[j] and durations[j] > longest):
            continue
        curve = slice(begins[j], begins[j + 1])
        worth = surplus_kernel(own, weights, values[curve], lasts[curve], arrivals[j], useful[j], end, 0.0)
        work = widths[j] * (own * weights).sum()
        for each in worth:
            if each > 0:
                least, most = min(least, each / work), max(most, each / work)
    return least, most
