"""The base of schedulers with a queue: announced wall times, stops behind them, and hopeless jobs.

The wall time of a job is the longest duration that its report has for its arrival (the duration itself where
signals are durations); it is taken as announced. There are no payments.
"""

from __future__ import annotations

import math
from bisect import bisect
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import Annotated, Any, ClassVar

from marketsched.mechanisms.auctions.arrival_market import ArrivalMarket
from marketsched.mechanisms.auctions.waiting_job import NOT_YET, WaitingJob
from marketsched.mechanisms.law import Signal
from marketsched.mechanisms.legal import Finite, Maybe, Natural, Positive, legal
from marketsched.mechanisms.mechanism import JobId
from marketsched.mechanisms.schedulers.room import Reserve, Room
from marketsched.mechanisms.unit import Unit


class QueueScheduler(ArrivalMarket):
    """A scheduler of jobs by their wall times, at no price; a subclass says in `serve` who starts.

    Parameters
    ----------
    capacity, horizon, max_concurrency, max_duration, max_value, max_delay
        The sizes of the market, as `MarketLimits`.
    kill : bool
        True: a job that has run for its wall time and ``grace`` is evicted, as by Slurm. False: it may run for
        ``max_duration`` rounds, as the runs of a log do, which were cut short where that was so. In both cases it
        counts as about to end once its wall time is over.
    grace : int, optional
        Rounds beyond the wall time before a job is evicted, as Slurm's ``OverTimeLimit``; None: a quarter of an hour.
        Slurm's own default is 0 minutes, but a run ends there up to half a minute (``KillWait``) after its limit was
        seen to be over, and rounds are whole.
    drop_hopeless : bool
        True: a waiting job that could no longer end while it is worth anything, even if it took the shortest time
        announced, is dropped, as by Slurm's ``--deadline``. False: it waits until it starts.
    stop_at_deadline : bool
        True: a run is stopped once no completion could be worth anything. False: it goes on.
    round_seconds : float, optional
        Length of a round; None: a quarter of an hour.
    """

    free_of_charge: ClassVar[bool] = True

    @legal
    def __init__(
        self,
        *sizes: Any,
        kill: bool = False,
        grace: Natural | None = None,
        drop_hopeless: bool = True,
        stop_at_deadline: bool = True,
        round_seconds: Annotated[float | None, Maybe(Finite("(0, inf)"))] = None,
        **more: Any,
    ) -> None:
        super().__init__(*sizes, **more)
        self.stop_at_deadline = stop_at_deadline
        self.kill, self.drop_hopeless, self.unit = kill, drop_hopeless, Unit.of(round_seconds)
        self.grace = self.unit.whole(1) if grace is None else grace

    def foresee(self, x: WaitingJob, signal: Signal) -> None:
        """Note the wall time (``agreed``), the rounds the job may run, and the last start that could be worth it."""
        shortest, longest = x.announced
        x.agreed = min(longest, self.max_duration)
        x.limit = min(x.agreed + self.grace, self.max_duration) if self.kill else self.max_duration
        x.last_start = x.useful - shortest

    def charge(self, x: WaitingJob) -> float:
        """Return 0: there are no prices."""
        return 0.0

    def _hopeless(self, x: WaitingJob) -> bool:
        return self.drop_hopeless and self.round > x.last_start


class OrderedQueue(QueueScheduler):
    """A queue that tries its jobs in an order; a subclass may say in `ranked` which.

    Parameters
    ----------
    capacity, horizon, max_concurrency, max_duration, max_value, max_delay, kill, grace, drop_hopeless, stop_at_deadline
        As of `QueueScheduler`.
    reserve : {"none", "head", "all", "strict"} or int
        For how many of the first jobs that do not fit nodes are reserved (`room`); strict: nobody passes them.
    most_overtaken : float, optional
        Hours: once runs of later arrivals have kept a job waiting for so long, it goes first, and no later arrival
        starts before it. Nobody is then overtaken for longer than this and the longest run. None: without end.
    """

    @legal
    def __init__(
        self,
        *sizes: Any,
        reserve: Reserve = "head",
        most_overtaken: Positive | None = None,
        **queue: Any,
    ) -> None:
        super().__init__(*sizes, **queue)
        self.reserve = reserve
        self._most = None if most_overtaken is None else math.ceil(4 * most_overtaken * self.unit.rounds)
        self._overtaken: Counter[JobId] = Counter()  # rounds, of jobs that wait

    def serve(self, waiting: Sequence[WaitingJob]) -> list[int | None]:
        """Start whom the room of this round takes."""
        found = [None if self._hopeless(x) else NOT_YET for x in waiting]
        room = Room(self.capacity - self.load, self._ends, self.reserve, self.max_duration)
        order = self.ranked(waiting) if any(x.width <= room.free for x in waiting) else ()
        if self._most is not None:
            late = (i for i, x in enumerate(waiting) if found[i] is not None and self._overtaken[x.job] >= self._most)
            if (first := next(late, None)) is not None:
                order = [first, *(i for i in order if i < first)]  # those behind it in ``waiting`` came later
        for i in order:
            if found[i] is not None and room.takes(waiting[i].width, waiting[i].agreed):
                found[i] = self.round
            if not room.free:
                break
        if self._most is not None:
            self._count_overtaken(waiting, found)
        return found

    def _count_overtaken(self, waiting: Sequence[WaitingJob], found: Sequence[int | None]) -> None:
        """Count the round for all who would fit if no later arrival ran."""
        started = [x for x, start in zip(waiting, found, strict=True) if start]
        runs = sorted((x.arrival, x.order, x.width) for x in (*self._running.values(), *started))
        held = [0, *accumulate(width for *_, width in runs)]  # by the first runs to have come
        for x, start in zip(waiting, found, strict=True):
            left = self.capacity - x.width
            if start == NOT_YET and held[bisect(runs, (x.arrival, x.order, 0))] <= left < held[-1]:
                self._overtaken[x.job] += 1

    def _leave(self, x: WaitingJob) -> None:
        super()._leave(x)
        self._overtaken.pop(x.job, None)

    def unchanged_until(self) -> int:
        """Return a round before which nothing moves if no job comes or ends: nobody who waits fits."""
        free, never = self.capacity - self.load, self.horizon + 1
        if self._most is not None or any(x.width <= free for x in self._waiting):
            return self._round
        hopeless = min((x.last_start + 1 for x in self._waiting), default=never) if self.drop_hopeless else never
        return min(hopeless, min(self._ending, default=never))

    def ranked(self, waiting: Sequence[WaitingJob]) -> Iterable[int]:
        """Return the places of waiting jobs in the order in which they are tried: by default that of arrival."""
        return range(len(waiting))

    def _ends(self) -> list[tuple[int, int]]:
        """Return rounds left by wall time, at least 1, and nodes of every run."""
        return [(max(x.start + x.agreed - self.round, 1), x.width) for x in self._running.values()]
