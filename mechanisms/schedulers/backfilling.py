"""Backfilling: who of a queue starts now, EASY or with reservations for all, and whole markets of such rounds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from marketsched.mechanisms.columns import JobColumns, Outcomes
from marketsched.mechanisms.limits import MarketLimits
from marketsched.mechanisms.schedulers.queue_orders import Line

EASY, CONSERVATIVE = 0, 1


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


class _Jobs(NamedTuple):
    """What the rounds read of jobs; see `JobColumns`.

    Wall times, longest runs and stops are within the limits of the market.
    """

    arrivals: NDArray[np.int64]  # (n,), rounds
    durations: NDArray[np.int64]  # (n,), rounds that the work really takes
    widths: NDArray[np.int64]  # (n,), nodes
    walls: NDArray[np.int64]  # (n,), wall times, rounds
    most: NDArray[np.int64]  # (n,), the longest run, rounds
    last_starts: NDArray[np.int64]  # (n,), the last round in which a start could be worth anything
    stops: NDArray[np.int64]  # (n,), the round in which a run is stopped
    keys: NDArray[np.int64]  # (n,), the order of the queue: smaller ones first


class _Releases(NamedTuple):
    """When nodes become free: by wall times, in truth, and as reserved."""

    freed: NDArray[np.int64]  # (T + longest wall time + 3,), nodes that become free by wall times, by round
    ending: NDArray[np.int64]  # (T + 2,), by round: the last job whose run is over before it; -1: none
    before: NDArray[np.int64]  # (n,), the job that ends with it; -1: none
    reserved: NDArray[np.int64]  # (n,), the round in which a start is reserved; 0: none


class _Outcomes(NamedTuple):
    """What the rounds fill of `Outcomes`."""

    starts: NDArray[np.int64]  # (n,), rounds
    left: NDArray[np.int64]  # (n,), rounds
    endings: NDArray[np.uint8]  # (n,), `Ending`


@dataclass(eq=False)
class QueuePlay:
    """A queue between two rounds.

    Parameters
    ----------
    jobs : JobColumns
        All jobs of the market.
    limits : MarketLimits
        Of it.
    rule : int
        `EASY` or `CONSERVATIVE`.
    kill, grace, drop_hopeless, stop_at_deadline
        As of `QueueScheduler`.
    line : Line
        The order of the queue.
    """

    jobs: JobColumns
    limits: MarketLimits
    rule: int
    kill: bool
    grace: int
    drop_hopeless: bool
    stop_at_deadline: bool
    line: Line

    def __post_init__(self) -> None:
        jobs, limits, n = self.jobs, self.limits, self.jobs.n
        walls, longest_run = np.minimum(jobs.wall_times, limits.max_duration), limits.max_duration
        most = np.minimum(walls + self.grace, longest_run) if self.kill else np.full(n, longest_run)
        useful = jobs.useful(limits.max_delay, limits.horizon)
        last_starts = useful - jobs.shortest if self.drop_hopeless else np.full(n, limits.horizon)
        stops = useful if self.stop_at_deadline else np.full(n, limits.horizon + longest_run + 1)
        keys = self.line.places(jobs, walls)
        self._jobs = _Jobs(jobs.arrivals, jobs.durations, jobs.widths, walls, most, last_starts, stops, keys)
        self._releases = _Releases(
            freed=np.zeros(limits.horizon + int(walls.max(initial=1)) + 3, np.int64),
            ending=np.full(limits.horizon + 2, -1),
            before=np.full(n, -1),
            reserved=np.zeros(n, np.int64),
        )
        self._queue = np.zeros(0, np.int64)
        self._free = limits.capacity

    def advance(self, first: int, until: int, outcomes: Outcomes) -> None:
        """Play rounds ``first .. until``; fill what becomes of the jobs that leave the queue in them."""
        rows = self.jobs.arriving(first, until)
        queue = np.concatenate([self._queue, np.zeros(rows.size, np.int64)])
        waiting, self._free = _rounds_kernel(
            self.rule, self.drop_hopeless, first, until, self._jobs, rows, queue, self._queue.size, self._free,
            self._releases, _Outcomes(outcomes.starts, outcomes.left, outcomes.endings),
        )  # fmt: skip
        self._queue = queue[:waiting].copy()


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


@njit(cache=True)
def _rounds_kernel(  # type: ignore[no-untyped-def]
    rule, drop_hopeless, first, until, jobs, rows, queue, waiting, free, releases, outcomes
):
    """Play the rounds; return how many wait, the first of ``queue``, and the free nodes."""
    arrivals, widths, walls, keys = jobs.arrivals, jobs.widths, jobs.walls, jobs.keys
    freed, ending, before = releases.freed, releases.ending, releases.before
    starts, left, endings = outcomes
    coming, horizon = 0, ending.size - 2
    for now in range(first, until + 1):
        free = _ended_kernel(now, free, jobs, releases, starts)
        while coming < rows.size and arrivals[rows[coming]] == now:
            waiting = _line_up_kernel(rows[coming], keys, queue, waiting)
            coming += 1
        if rule == 0 and drop_hopeless:
            waiting = _hopeful_kernel(now, queue, waiting, jobs.last_starts, outcomes)
        if waiting == 0 or (rule == 0 and free == 0):
            continue
        begins, drops = np.zeros(waiting, np.bool_), np.zeros(waiting, np.bool_)
        nodes, lengths = np.empty(waiting, np.int64), np.empty(waiting, np.int64)
        for i in range(waiting):
            nodes[i], lengths[i] = widths[queue[i]], walls[queue[i]]
        if rule == 0:
            backfill_kernel(nodes, lengths, free, freed, now, begins)
        else:
            _reserve_kernel(now, queue, nodes, lengths, free, releases, jobs.last_starts, begins, drops)
        still = 0
        for i in range(waiting):
            j = queue[i]
            if begins[i]:
                free -= widths[j]
                if rule == 1:
                    freed[now + walls[j]] += widths[j]
                starts[j] = now
                end = _begin_kernel(now, j, jobs, horizon, outcomes)
                if end <= horizon:
                    before[j], ending[end] = ending[end], j
            elif drops[i] and drop_hopeless:
                left[j], endings[j] = now, 1  # Ending.DROPPED
            else:
                queue[still] = j
                still += 1
        waiting = still
    return waiting, free


@njit(cache=True)
def _line_up_kernel(j, keys, queue, waiting):  # type: ignore[no-untyped-def]
    """Let a job join the queue behind those whose keys are not larger; return how many wait."""
    place = waiting
    while place > 0 and keys[queue[place - 1]] > keys[j]:
        queue[place] = queue[place - 1]
        place -= 1
    queue[place] = j
    return waiting + 1


@njit(cache=True)
def _ended_kernel(now, free, jobs, releases, starts):  # type: ignore[no-untyped-def]
    """Free the nodes of runs that are over before ``now``; those that outlive their wall times end a round later."""
    on_time, widths, freed = 0, jobs.widths, releases.freed
    j = releases.ending[now]
    while j >= 0:
        free += widths[j]
        promised = starts[j] + jobs.walls[j]
        if promised > now:
            freed[promised] -= widths[j]
        else:
            on_time += widths[j]
        j = releases.before[j]
    freed[now + 1] += freed[now] - on_time
    freed[now] = 0
    return free


@njit(cache=True)
def _hopeful_kernel(now, queue, waiting, last_starts, outcomes):  # type: ignore[no-untyped-def]
    """Drop who can no longer end in time; return how many are left in the queue."""
    still = 0
    for i in range(waiting):
        j = queue[i]
        if now > last_starts[j]:
            outcomes.left[j], outcomes.endings[j] = now, 1  # Ending.DROPPED
        else:
            queue[still] = j
            still += 1
    return still


@njit(cache=True)
def _begin_kernel(now, j, jobs, horizon, outcomes):  # type: ignore[no-untyped-def]
    """Note how a run that begins will end; return the first round without it."""
    duration, left, endings = jobs.durations[j], outcomes.left, outcomes.endings
    last = max(now + 1, min(now + jobs.most[j], jobs.stops[j]))
    if now + duration <= last:
        if now + duration - 1 <= horizon:
            left[j], endings[j] = now + duration - 1, 4  # Ending.COMPLETED
        return now + duration
    if last <= horizon:
        left[j], endings[j] = last, 3  # Ending.EVICTED
    return last


@njit(cache=True)
def _reserve_kernel(now, queue, nodes, lengths, free, releases, last_starts, begins, drops):  # type: ignore[no-untyped-def]
    """Plan the queue anew as conservative backfilling does: who starts now, and who has no start in time."""
    n, furthest, longest = nodes.size, 0, 0
    freed, reserved = releases.freed, releases.reserved
    latest, planned = np.empty(n, np.int64), np.empty(n, np.int64)
    for i in range(n):
        latest[i] = last_starts[queue[i]] - now
        planned[i] = reserved[queue[i]] - now if reserved[queue[i]] else -1
        furthest, longest = max(furthest, latest[i]), max(longest, lengths[i])
    room = np.empty(furthest + longest + 1, np.int64)
    for t in range(room.size):
        if t and now + t < freed.size:
            free += freed[now + t]
        room[t] = free
    found = plan_kernel(room, nodes, lengths, latest, planned)
    for i in range(n):
        begins[i], drops[i] = found[i] == 0, found[i] < 0
        reserved[queue[i]] = now + found[i] if found[i] > 0 else 0
