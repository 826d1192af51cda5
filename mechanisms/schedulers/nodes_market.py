"""Markets that start jobs on nodes which are free now, for durations that may be hidden: nothing is booked ahead.

A run lasts until it is done, or until its end would be worth nothing; what a start is worth is expected over the law of
the report. A job that waits is dropped once not even its shortest run would be worth anything. Who is tried when is a
subclass's.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Generic, TypeVar

from marketsched.mechanisms.auctions.waiting_job import NOT_YET, WaitingJob
from marketsched.mechanisms.law import Signal
from marketsched.mechanisms.legal import is_hashable
from marketsched.mechanisms.mechanism import Event, EventKind, JobId
from marketsched.mechanisms.resources.bookings import Booking
from marketsched.mechanisms.resources.calendars import Placed
from marketsched.mechanisms.resources.cluster_market import ClusterMarket
from marketsched.mechanisms.resources.known import Known, known_at_arrival
from marketsched.mechanisms.resources.nodes import Nodes
from marketsched.mechanisms.schedulers.advance_market import AdvanceMarket
from marketsched.mechanisms.schedulers.node_jobs import NodeJob

J = TypeVar("J", bound=NodeJob)


class NodesMarket(ClusterMarket, AdvanceMarket, Generic[J]):
    """What such markets share; parameters as of `ClusterMarket`."""

    def __init__(self, *sizes: Any, **more: Any) -> None:
        super().__init__(*sizes, **more)
        self.nodes = Nodes(self.cluster)
        self._present: dict[JobId, J] = {}  # in order of arrival
        self._turn = 0

    @property
    def load(self) -> int:
        """Tasks of the jobs that ran in the round just cleared and have not ended."""
        return sum(each.x.sow.concurrency for each in self._present.values() if each.run is not None)

    def booking(self, job: JobId) -> Booking | None:
        """Return the booking of a running job of a cluster; None: nothing, or identical nodes."""
        each = self._present.get(job)
        return None if each is None or self.limits.cluster is None else each.booking

    def nodes_in_use(self) -> int | None:
        """Return on how many nodes something runs. None on identical nodes, where widths add up."""
        return None if self.limits.cluster is None else self.nodes.in_use()

    def foresee(self, x: WaitingJob, signal: Signal) -> None:
        """Note how the job can run, and what it is to its owner."""
        known = known_at_arrival(x.sow, self.cluster, self._round, signal, self.limits, self._signals)
        x.limit = self.limits.last_useful_completion(x.sow)
        x.last_start = x.limit - int(known.lengths.min(initial=x.limit + 1))
        x.agreed = self._present_of(x, known)

    def complete(self, job: JobId) -> Event:
        """Observe that ``job`` ran its last round in the round just cleared. Errors as of the base."""
        each = self._present.get(job) if is_hashable(job) else None
        if each is None or each.run is None:
            return super().complete(job)
        payment = self._completed(each, self._round - each.run.start)
        self._end_run(each)
        self._leave(each.x)
        return Event(self._round - 1, EventKind.COMPLETE, job, self._round, payment)

    def close(self) -> list[Event]:
        """Remove every job still in the market after the last round. Errors as of `ArrivalMarket`."""
        ran = {job for job, each in self._present.items() if each.run is not None or each.ran}
        events = super().close()
        return [Event(e.round, EventKind.EVICT if e.job in ran else e.kind, e.job) for e in events]

    # -- what subclasses say --------------------------------------------------------------------------------

    def _present_of(self, x: WaitingJob, known: Known) -> J:
        """Return a job at its arrival."""
        raise NotImplementedError

    def _comes(self, each: J, stays: bool) -> None:
        """Note a job that arrives, and whether it stays or is dropped at once."""

    def _stays(self, each: J, now: int) -> bool:
        """Tell whether a job that arrives is worth a wait."""
        return now <= each.x.last_start and each.means.size > 0

    def _completed(self, each: J, used: int) -> float:
        """Note that a job is done, after so many rounds of its run; return what it pays."""
        return 0.0

    def _gave_up(self, each: J) -> None:
        """Note that a job has left undone."""

    def _over(self, each: J, now: int) -> bool:
        """Tell whether a job can bring nothing any more."""
        if each.run is None or each.booking is None:
            return now > each.x.last_start
        return now >= each.run.start + each.booking.length

    def _booked_rounds(self, each: J, row: int, now: int) -> int:
        """Return how many rounds a run that starts now is booked for."""
        return each.booked_rounds(row, now)

    def _started(self, each: J, now: int) -> None:
        """Note a start."""

    # -- one round ------------------------------------------------------------------------------------------

    def _depart(self, now: int) -> list[Event]:
        """Remove the jobs that can bring nothing any more."""
        events: list[Event] = []
        for each in list(self._present.values()):
            run = each.run
            if self._over(each, now):
                kind = EventKind.EVICT if run is not None or each.ran else EventKind.DROP
                if run is not None:
                    self._end_run(each)
                self._leave(each.x)
                self._gave_up(each)
                events.append(Event(now, kind, each.x.job))
        return events

    def _admit(self, now: int) -> list[Event]:
        """Let the arrivals of the round wait; drop those that come too late."""
        events = []
        for x in sorted(self._arrived, key=lambda x: x.order):
            each: J = x.agreed
            stays = self._stays(each, now)
            self._comes(each, stays)
            if not stays:
                self._leave(x)
                events.append(Event(now, EventKind.DROP, x.job))
                continue
            self._turn += 1
            each.turn = self._turn
            self._present[x.job] = each
        self._arrived = []
        return events

    def _start(self, each: J, rows: Iterable[int], now: int, events: list[Event]) -> bool:
        """Start a job with one of these options if one has room; tell whether it did."""
        found = self.nodes.best((row, each.wants[row]) for row in rows)
        if found is not None:
            self._begin(each, *found, now, events)
        return found is not None

    def _begin(self, each: J, row: int, placed: Placed, now: int, events: list[Event]) -> None:
        """Start a job with an option, on a place that is free."""
        self.nodes.begin(each, row, placed, now, self._booked_rounds(each, row, now))
        self._note_start(each, now, events)

    def _note_start(self, each: J, now: int, events: list[Event]) -> None:
        each.x.start = now
        self._started(each, now)
        events.append(Event(now, EventKind.START, each.x.job))

    def _end_run(self, each: NodeJob) -> None:
        self.nodes.end(each)
        each.x.start = NOT_YET

    def _requeue(self, each: J, now: int, events: list[Event]) -> None:
        """Preempt a run: the job stays, and may start again."""
        each.ran += 1
        self._end_run(each)
        events.append(Event(now, EventKind.REQUEUE, each.x.job))

    def _leave(self, x: WaitingJob) -> None:
        each = self._present.pop(x.job, None)
        if each is not None and each.run is not None:
            self._end_run(each)
        super()._leave(x)
