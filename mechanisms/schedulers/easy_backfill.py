"""EASY backfilling: jobs start in the order of the queue; one that fits may pass without delaying the first of it."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from marketsched.mechanisms.auctions.waiting_job import NOT_YET, WaitingJob
from marketsched.mechanisms.law import Signal
from marketsched.mechanisms.legal import legal
from marketsched.mechanisms.mechanism import JobId, Standing
from marketsched.mechanisms.schedulers.backfilling import backfilled
from marketsched.mechanisms.schedulers.queue_orders import Line, Order
from marketsched.mechanisms.schedulers.queue_scheduler import QueueScheduler


class EasyQueue(QueueScheduler):
    """A queue with a reservation for its head (`backfilling.backfilled`); a subclass says in `ranked` who comes first.

    Parameters are those of `QueueScheduler`.
    """

    def serve(self, waiting: Sequence[WaitingJob]) -> list[int | None]:
        """Start who is first in the queue, and who may pass."""
        queue = self.ranked(waiting)
        queue = [i for i in queue if not self._hopeless(waiting[i])]
        found: list[int | None] = [None] * len(waiting)
        for i in queue:
            found[i] = NOT_YET
        free = self.capacity - self.load
        if free and queue:
            sizes = [(waiting[i].width, waiting[i].agreed) for i in queue]
            for i, now in zip(queue, backfilled(sizes, free, self._ends(), self.round), strict=True):
                found[i] = self.round if now else NOT_YET
        return found

    @abstractmethod
    def ranked(self, waiting: Sequence[WaitingJob]) -> list[int]:
        """Return the places of waiting jobs in the order of the queue."""


class EasyBackfill(EasyQueue):
    """EASY backfilling with wall times as announced (`backfilling.backfilled` has the rule and its sources).

    Not truthful: a wall time below the true one, where nothing is stopped at it, lets a job pass others, more so in a
    queue ordered by them; values are not looked at but for when they end.

    Parameters
    ----------
    capacity, horizon, max_concurrency, max_duration, max_value, max_delay, kill, drop_hopeless, stop_at_deadline
        As of `QueueScheduler`.
    order : {"arrival", "request", "class"}
        Who comes first: who arrived first, who requested the shortest wall time, or, of three queues, the urgent one,
        the middle one, then the patient one (`queue_orders`); equal ones by arrival.
    classes : mapping of JobId to int, optional
        Known classes of jobs, 0 (patient) and up; others are thirds of the wall times. Of a log a scenario gives them:
        the log's queues or priorities, or, where it has none, those that values were drawn by (its notes say which).

    Raises
    ------
    InvalidParameterError
        If a class is no whole number >= 0.

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

    @legal
    def __init__(
        self,
        capacity: int,
        horizon: int,
        *,
        order: Order = "arrival",
        classes: Mapping[Any, Any] | None = None,
        **queue: Any,
    ) -> None:
        super().__init__(capacity, horizon, **queue)
        self._line = Line(order, self.max_duration, classes)
        self._keys: dict[JobId, int] = {}  # of the jobs that have arrived: smaller ones come first

    @staticmethod
    def wants_classes(order: str = "arrival", **_: object) -> bool:
        """Tell whether these parameters need the classes of jobs."""
        return order == "class"

    def foresee(self, x: WaitingJob, signal: Signal) -> None:
        """Note the job's place in the queue, too."""
        super().foresee(x, signal)
        if self._line.order != "arrival":
            self._keys[x.job] = self._line.place_of(x.job, x.agreed)

    def serve(self, waiting: Sequence[WaitingJob]) -> list[int | None]:
        """Start who is first in the queue, and who may pass; then the round's wall times count."""
        found = super().serve(waiting)
        self._line.learn(x.agreed for x in waiting if x.arrival == self.round)
        return found

    def ranked(self, waiting: Sequence[WaitingJob]) -> list[int]:
        """Return the places of waiting jobs in the order of the queue."""
        if self._line.order == "arrival":
            return list(range(len(waiting)))
        return sorted(range(len(waiting)), key=lambda i: self._keys[waiting[i].job])

    def _leave(self, x: WaitingJob) -> None:
        super()._leave(x)
        self._keys.pop(x.job, None)
