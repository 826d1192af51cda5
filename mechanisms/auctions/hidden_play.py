"""First come, first served over columns, with durations that show at the end of the run, or at its arrival."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from marketsched.mechanisms.auctions.earliest_start import earliest_start_kernel
from marketsched.mechanisms.auctions.hidden_turn import surplus_kernel, turn_kernel
from marketsched.mechanisms.columns import JobColumns, Outcomes
from marketsched.mechanisms.limits import MarketLimits


class _Jobs(NamedTuple):
    """What the kernel reads of jobs; see `JobColumns` and `DurationLaws`."""

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


class _State(NamedTuple):
    """What is known between two rounds."""

    free: NDArray[np.int64]  # (T,), nodes that are not booked
    waiting: NDArray[np.int64]  # (n,), rows of those that wait, in order of (arrival, submission)
    counts: NDArray[np.int64]  # (2,): how many wait, and how many have arrived
    patience: NDArray[np.int64]  # (n,), the last round in which a start now is worth it and the best; -1: looked up
    ending: NDArray[np.int64]  # (T + 2,), by round: the last row whose nodes are free from it on
    before: NDArray[np.int64]  # (n,), the row that ends with it


class HiddenPlay:
    """A market of `FirstCome` in which some durations are hidden, played many rounds at a time.

    Parameters
    ----------
    jobs : JobColumns
        All jobs.
    limits : MarketLimits
        Of the market.
    price : float
        Credits per node and round.
    stop_at_deadline : bool
        As of `FirstCome`.
    """

    def __init__(self, jobs: JobColumns, limits: MarketLimits, price: float, *, stop_at_deadline: bool) -> None:
        horizon, order, useful = limits.horizon, jobs.by_arrival[0], jobs.useful(limits.max_delay, limits.horizon)
        laws = (np.zeros(jobs.n, np.int64), np.zeros(1, np.int64), np.zeros(0, np.int64), np.zeros(0))
        columns = (jobs.arrivals, jobs.durations, jobs.widths, jobs.revealed, jobs.begins, jobs.values, jobs.lasts)
        self._jobs = _Jobs(order, *columns, useful, *(laws if jobs.revealed.all() else jobs.laws))
        self._state = _State(
            free=np.full(horizon, limits.capacity, np.int64),
            waiting=np.empty(jobs.n, np.int64),
            counts=np.zeros(2, np.int64),
            patience=np.full(jobs.n, -1),
            ending=np.full(horizon + 2, -1),
            before=np.full(jobs.n, -1),
        )
        self._price, self._longest, self._stop = price, limits.max_duration, stop_at_deadline

    def advance(self, first: int, until: int, outcomes: Outcomes) -> None:
        """Play rounds ``first .. until``."""
        found = (outcomes.starts, outcomes.left, outcomes.endings, outcomes.payments)
        _play_kernel(self._jobs, self._state, *found, self._price, self._longest, self._stop, first, until)


@njit(cache=True)
def _play_kernel(  # type: ignore[no-untyped-def]
    jobs, state, starts, left, endings, payments, price, longest, stop_at_deadline, first, until
):
    """Go through rounds ``first .. until``; fill starts, rounds of leaving, endings (`Ending`) and payments."""
    free, waiting, counts, horizon = state.free, state.waiting, state.counts, state.free.size
    for now in range(first, until + 1):
        j = state.ending[now]
        while j >= 0:
            booked = jobs.durations[j] if jobs.revealed[j] else longest
            free[now - 1 : starts[j] + booked - 1] += jobs.widths[j]
            j = state.before[j]
        n_waiting, coming = counts[0], counts[1]
        while coming < jobs.order.size and jobs.arrivals[jobs.order[coming]] == now:
            j = jobs.order[coming]
            if not jobs.revealed[j]:
                state.patience[j] = _patience_kernel(jobs, j, price, horizon + 1)
            waiting[n_waiting] = j
            n_waiting, coming = n_waiting + 1, coming + 1
        counts[1] = coming
        still, room = 0, -1  # nodes free for the longest run from now on; -1: not looked up
        for i in range(n_waiting):
            j = waiting[i]
            if jobs.revealed[j]:
                start = _revealed_start_kernel(jobs, j, free, price, longest)
                booked, held_from, room = jobs.durations[j], start, -1
            else:
                if room < 0:
                    room = free[now - 1 : now - 1 + longest].min()
                start = _hidden_start_kernel(jobs, j, state.patience[j], free, room, now, price, longest)
                booked, held_from = longest, now
                room = room - jobs.widths[j] if start == now else room if start <= 0 else -1
            if start == 0:
                waiting[still] = j
                still += 1
            elif start < 0:
                left[j], endings[j] = now, 1  # Ending.DROPPED
            else:
                starts[j] = start
                free[held_from - 1 : start + booked - 1] -= jobs.widths[j]
                free_from = _run_kernel(
                    jobs, j, start, booked, price, stop_at_deadline, horizon, left, endings, payments
                )
                if free_from <= horizon:
                    state.before[j], state.ending[free_from] = state.ending[free_from], j
        counts[0] = still


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
    steps, cost = (jobs.values[begin:end], jobs.lasts[begin:end]), price * jobs.widths[j] * duration
    found = earliest_start_kernel(free, jobs.widths[j], jobs.arrivals[j], duration, *steps, jobs.useful[j], cost)
    return found if found > 0 else -1


@njit(cache=True)
def _hidden_start_kernel(jobs, j, patience, free, room, now, price, longest):  # type: ignore[no-untyped-def]
    """Return the start of a job of hidden duration; 0: it waits, -1: it leaves."""
    if patience >= 0:
        return -1 if now > patience else now if room >= jobs.widths[j] else 0
    surplus = _surplus_of(jobs, j, now, price, free.size + 1)
    return turn_kernel(surplus, free, now, jobs.widths[j], longest)


@njit(cache=True)
def _patience_kernel(jobs, j, price, end):  # type: ignore[no-untyped-def]
    """Return the last round in which a start now is worth it; -1: a later start may be better than one before."""
    arrival = jobs.arrivals[j]
    surplus, last = _surplus_of(jobs, j, arrival, price, end), arrival - 1
    for k in range(surplus.size):
        if k and surplus[k] > surplus[k - 1]:
            return -1
        if surplus[k] > 1e-12:  # TOLERANCE: a kernel uses nothing outside it
            last = arrival + k
    return last


@njit(cache=True)
def _surplus_of(jobs, j, first, price, end):  # type: ignore[no-untyped-def]
    """Return what starts in rounds ``first, first + 1, ...`` are expected to bring, less what they are to pay."""
    law = slice(jobs.offsets[jobs.law_of[j]], jobs.offsets[jobs.law_of[j] + 1])
    curve = slice(jobs.begins[j], jobs.begins[j + 1])
    durations, weights = jobs.law_durations[law], jobs.law_weights[law]
    cost = price * jobs.widths[j]
    return surplus_kernel(durations, weights, jobs.values[curve], jobs.lasts[curve], first, jobs.useful[j], end, cost)
