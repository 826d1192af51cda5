"""Markets that promise nothing before a job arrives: what first-come and the auctions of every round share.

Such a market takes a report, hands back a plan without a start, and serves the job once it is ready.
Here is the bookkeeping of the protocol; who is served when, and what it pays, is a subclass's.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Generic, TypeVar

from marketsched.mechanisms.checks import finite_parameter, whole_parameter
from marketsched.mechanisms.errors import EventError
from marketsched.mechanisms.mechanism import Event, EventKind, JobId, LaunchPlan
from marketsched.mechanisms.reports import check_report, last_useful_completion
from marketsched.mechanisms.sow import Signal, StatementOfWork

TOLERANCE = 1e-12  # an expected surplus, or a bid, has to exceed it, as in launch plans
NOT_YET = 0  # a round that is still open


class WaitingJob:
    """A job from submission until it is gone."""

    __slots__ = ("arrival", "job", "order", "sow", "start")

    def __init__(self, job: JobId, order: int, sow: StatementOfWork) -> None:
        self.job, self.order, self.sow = job, order, sow
        self.arrival = NOT_YET
        self.start = NOT_YET  # booked or actual first round


J = TypeVar("J", bound=WaitingJob)


class ArrivalMarket(ABC, Generic[J]):
    """The protocol of a mechanism, but for clearing a round and charging.

    Parameters
    ----------
    capacity, horizon : int
        C, nodes; T, last round.
    max_concurrency, max_duration : int
        Largest report accepted, nodes and rounds.
    max_value : float
        Largest value accepted, credits.
    max_delay : int
        S: completions at birth + S or later are worth nothing.

    Raises
    ------
    InvalidParameterError
        If a parameter is out of range.
    """

    def __init__(
        self,
        capacity: int,
        horizon: int,
        *,
        max_concurrency: int,
        max_duration: int,
        max_value: float,
        max_delay: int,
    ) -> None:
        self.capacity = whole_parameter("capacity", capacity, 1)
        self._horizon = whole_parameter("horizon", horizon, 1)
        self.max_concurrency = whole_parameter("max_concurrency", max_concurrency, 1, self.capacity)
        self.max_duration = whole_parameter("max_duration", max_duration, 1)
        self.max_delay = whole_parameter("max_delay", max_delay, 1)
        self.max_value = finite_parameter("max_value", max_value, "(0, inf)")
        self._round = 1
        self._jobs: dict[JobId, J | None] = {}  # every job ever submitted; None: gone
        self._arrived: list[J] = []  # in the current round
        self._running: dict[JobId, J] = {}

    @abstractmethod
    def _ticket(self, job: JobId, order: int, sow: StatementOfWork) -> J:
        """Return the state of a job that was just submitted, as the ``order``-th."""

    @abstractmethod
    def _foresee(self, x: J, signal: Signal) -> None:
        """Note what a job that has just arrived may expect of each start from now on."""

    @property
    def round(self) -> int:
        """The current round; ``horizon + 1`` once the last one was cleared."""
        return self._round

    @property
    def horizon(self) -> int:
        """T, the last round."""
        return self._horizon

    @property
    def load(self) -> int:
        """Nodes of the jobs that ran in the round just cleared and have not ended."""
        return sum(x.sow.concurrency for x in self._running.values())

    def submit(self, job: JobId, sow: StatementOfWork) -> LaunchPlan:
        """Take a report born in the current round.

        Returns
        -------
        LaunchPlan
            One case per (arrival, signal) of the report, all without a start, and utility 0:
            nothing is promised before a job arrives.

        Raises
        ------
        EventError
            If the market is over, a job of this name was submitted before, the birth is not the
            current round, or a job has already arrived in it.
        InvalidReportError
            If the report is outside the announced limits.
        """
        self._check_open(f"submit of {job!r}")
        if job in self._jobs:
            raise EventError(f"submit of {job!r}: a job of this name was submitted before")
        if self._arrived:
            raise EventError(
                f"submit of {job!r} after an arrival of round {self._round}: expected all submissions first"
            )
        check_report(job, sow, self._round, self.max_concurrency, self.max_duration, self.max_value)
        self._jobs[job] = self._ticket(job, len(self._jobs), sow)
        cases = zip(sow.law.group_arrivals.tolist(), sow.law.group_signals, strict=True)
        return LaunchPlan(job, tuple((a, o, None) for a, o in cases), 0.0)

    def arrive(self, job: JobId, signal: Signal = None) -> None:
        """Observe that ``job`` is ready in the current round; it is served when the round is cleared.

        Raises
        ------
        EventError
            If the market is over, the job is unknown, or it arrived before.
        """
        self._check_open(f"arrive of {job!r}")
        if job not in self._jobs:
            raise EventError(f"arrive of {job!r}: expected a job submitted before")
        x = self._jobs[job]
        if x is None or x.arrival != NOT_YET:
            raise EventError(f"arrive of {job!r}: it arrived before")
        x.arrival = self._round
        self._foresee(x, signal)
        self._arrived.append(x)

    def close(self) -> list[Event]:
        """Remove every job still in the market after the last round, most recently submitted first.

        Raises
        ------
        EventError
            If rounds are left.
        """
        if self._round <= self._horizon:
            raise EventError(f"close in round {self._round}: expected all rounds to {self._horizon} cleared first")
        events = []
        for x in reversed([x for x in self._jobs.values() if x is not None]):
            kind = EventKind.EVICT if x.job in self._running else EventKind.CANCEL
            events.append(Event(self._horizon, kind, x.job))
            self._jobs[x.job] = None
        self._running.clear()
        return events

    def _cleared(self, dropped: list[J], overdue: list[J], started: list[J]) -> list[Event]:
        """End the round: drops and starts in order of submission, evictions in reverse order."""
        now = self._round
        for x in (*dropped, *overdue):
            self._jobs[x.job] = None
            self._running.pop(x.job, None)
        self._running.update((x.job, x) for x in started)
        self._arrived = []
        self._round = now + 1
        return [
            *(Event(now, EventKind.DROP, x.job) for x in sorted(dropped, key=lambda x: x.order)),
            *(Event(now, EventKind.EVICT, x.job) for x in sorted(overdue, key=lambda x: -x.order)),
            *(Event(now, EventKind.START, x.job) for x in started),
        ]

    def _completed(self, job: JobId) -> J:
        """Return the state of a job that ran its last round in the round just cleared; it is gone then.

        Raises
        ------
        EventError
            If the job is not running.
        """
        if job not in self._running:
            raise EventError(f"complete of {job!r}: it did not run in round {self._round - 1}")
        self._jobs[job] = None
        return self._running.pop(job)

    def _last_completion(self, sow: StatementOfWork) -> int:
        return last_useful_completion(sow, self.max_delay, self._horizon)

    def _check_open(self, what: str) -> None:
        """Raise if the last round was cleared."""
        if self._round > self._horizon:
            raise EventError(f"{what} in round {self._round}: expected at most the horizon {self._horizon}")
