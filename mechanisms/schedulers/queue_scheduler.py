"""The base of schedulers with a queue: announced wall times, stops at them, and hopeless jobs.

The wall time of a job is the longest duration that its report has for its arrival (the duration itself where
signals are durations); it is taken as announced. There are no payments.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from marketsched.mechanisms.auctions.arrival_market import ArrivalMarket, WaitingJob
from marketsched.mechanisms.law import Signal
from marketsched.mechanisms.legal import legal
from marketsched.mechanisms.mechanism import JobId
from marketsched.mechanisms.signals import observed_duration
from marketsched.mechanisms.sow import StatementOfWork


class QueueScheduler(ArrivalMarket):
    """A scheduler of jobs by their wall times, at no price; a subclass says in `serve` who starts.

    Parameters
    ----------
    capacity, horizon, max_concurrency, max_duration, max_value, max_delay
        The sizes of the market, as `MarketLimits`.
    kill : bool
        True: a job that has run for its wall time is evicted, as Slurm does by default. False: it may run for
        ``max_duration`` rounds, and counts as about to end once its wall time is over.
    drop_hopeless : bool
        True: a waiting job that could no longer end while it is worth anything, even if it took the shortest time
        announced, is dropped, as by Slurm's ``--deadline``. False: it waits until it starts.
    stop_at_deadline : bool
        True: a run is stopped once no completion could be worth anything. False: it goes on.

    Attributes
    ----------
    reserved : dict
        The first round that a waiting job was last promised, by schedulers that promise one.
    """

    free_of_charge: ClassVar[bool] = True

    @legal
    def __init__(
        self,
        capacity: int,
        horizon: int,
        *,
        kill: bool = True,
        drop_hopeless: bool = True,
        stop_at_deadline: bool = True,
        **sizes: Any,
    ) -> None:
        super().__init__(capacity, horizon, stop_at_deadline=stop_at_deadline, **sizes)
        self.kill, self.drop_hopeless = kill, drop_hopeless
        self.reserved: dict[JobId, int] = {}

    def foresee(self, x: WaitingJob, signal: Signal) -> None:
        """Note the wall time (``agreed``), the rounds the job may run, and the last start that could be worth it."""
        durations = self._announced(x, signal)
        wall_time = min(int(durations.max()), self.max_duration)
        x.agreed, x.limit = wall_time, wall_time if self.kill else self.max_duration
        x.last_start = self.limits.last_useful_completion(x.sow) - int(durations.min())

    def charge(self, x: WaitingJob) -> float:
        """Return 0: there are no prices."""
        return 0.0

    def _announced(self, x: WaitingJob, signal: Signal) -> NDArray[np.int64]:
        """Return the durations that the report has, given what is known at arrival."""
        revealed, law = announced_duration(x.sow, signal), x.sow.law
        return law.durations[law.points_of(self.round, signal)] if revealed is None else np.array([revealed])

    def _hopeless(self, x: WaitingJob) -> bool:
        return self.drop_hopeless and self.round > x.last_start

    def _ends(self) -> list[tuple[int, int]]:
        """Return (first round without it, nodes) of every running job, by wall time."""
        soon = self.round + 1
        return [(max(x.start + x.agreed, soon), x.sow.concurrency) for x in self._running.values()]


def announced_duration(sow: StatementOfWork, signal: Signal) -> int | None:
    """Return the duration if the report takes signals for durations; the arrival may be one that it excludes."""
    return observed_duration(signal) if sow.law.group_signals == tuple(sow.durations.tolist()) else None


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
    starts = [False] * len(queue)
    busy = list(ends)
    place = 0
    while place < len(queue) and queue[place][0] <= free:
        nodes, length = queue[place]
        starts[place] = True
        free -= nodes
        busy.append((now + length, nodes))
        place += 1
    if place == len(queue) or free == 0:
        return starts
    reserved, left_over = _reservation(queue[place][0], free, busy, now)
    for i in range(place + 1, len(queue)):
        nodes, length = queue[i]
        if nodes > free:
            continue
        if now + length > reserved:
            if nodes > left_over:
                continue
            left_over -= nodes
        starts[i] = True
        free -= nodes
        if not free:
            break
    return starts


def _reservation(nodes: int, free: int, busy: list[tuple[int, int]], now: int) -> tuple[int, int]:
    """Return the first round in which so many nodes are free, and how many are left over then."""
    at = now
    for end, width in sorted(busy):
        if free >= nodes and end > at:
            break
        at, free = end, free + width
    return at, free - nodes
