"""EASY backfilling: first come, first served; a job that fits may pass without delaying the first in the queue."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from marketsched.mechanisms.auctions.arrival_market import NOT_YET, WaitingJob
from marketsched.mechanisms.columns import JobColumns, Outcomes
from marketsched.mechanisms.mechanism import Standing
from marketsched.mechanisms.schedulers.backfilling import EASY, backfilled
from marketsched.mechanisms.schedulers.queue_scheduler import QueueScheduler


class EasyBackfill(QueueScheduler):
    """EASY backfilling with wall times as announced (`backfilling.backfilled` has the rule and its sources).

    Not truthful: a wall time below the true one, where nothing is stopped at it, lets a job pass others; values are
    not looked at but for when they end.

    Examples
    --------
    >>> from marketsched.mechanisms import DeadlineValue, StatementOfWork
    >>> market = EasyBackfill(2, 20, max_concurrency=2, max_duration=5, max_value=9.0, max_delay=15)
    >>> for name, nodes, rounds in (("A", 1, 3), ("B", 2, 2), ("C", 1, 3), ("D", 1, 2)):
    ...     plan = market.submit(name, StatementOfWork(1, nodes, DeadlineValue(4.0, 15), [(1, rounds, 1.0)]))
    >>> for name, rounds in zip("ABCD", (3, 2, 3, 2)):
    ...     market.arrive(name, rounds)
    >>> [event.job for event in market.advance()]  # B would fit in round 4, and C does not delay that
    ['A', 'C']
    """

    free_of_charge: ClassVar[bool] = True
    standing: ClassVar[Standing] = Standing(
        "baseline",
        "no prices; the first in the queue is never delayed by those behind it",
        "wall times in the reports",
    )

    def serve(self, waiting: Sequence[WaitingJob]) -> list[int | None]:
        """Start who is first in the queue, and who may pass."""
        queue = self.order(waiting)
        queue = [i for i in queue if not self._hopeless(waiting[i])]
        found: list[int | None] = [None] * len(waiting)
        for i in queue:
            found[i] = NOT_YET
        free = self.capacity - self.load
        if free and queue:
            sizes = [(waiting[i].sow.concurrency, waiting[i].agreed) for i in queue]
            for i, now in zip(queue, backfilled(sizes, free, self._ends(), self.round), strict=True):
                found[i] = self.round if now else NOT_YET
        return found

    def play(self, jobs: JobColumns, outcomes: Outcomes, until: int) -> bool:
        """Play many rounds at once; see `Mechanism.play`."""
        return self._play_queue(EasyBackfill, EASY, jobs, outcomes, until)

    def order(self, waiting: Sequence[WaitingJob]) -> list[int]:
        """Return the places of waiting jobs in the order of the queue: first come, first served."""
        return list(range(len(waiting)))
