"""The bookkeeping of the protocol that every mechanism of the package shares: names, rounds, limits.

In each round: submissions, then arrivals, then the round is cleared, then completions. What breaks this order is
refused here, before anything is changed; who is served, and what it pays, is for the mechanisms.
"""

from __future__ import annotations

from operator import attrgetter
from typing import Any

from marketsched.mechanisms.errors import EventError, InvalidReportError
from marketsched.mechanisms.law import Signal
from marketsched.mechanisms.legal import is_hashable
from marketsched.mechanisms.limits import MarketLimits
from marketsched.mechanisms.mechanism import JobId, Mechanism
from marketsched.mechanisms.sow import StatementOfWork


def _size(name: str) -> Any:
    return property(attrgetter(f"limits.{name}"))


class Rounds(Mechanism):
    """The rounds of one market, its sizes (`MarketLimits`), and the names of its jobs; they can be read, not set."""

    def __init__(self, limits: MarketLimits) -> None:
        self.limits = limits
        self._round = 1
        self._submissions = 0
        self._names: set[JobId] = set()  # of every job ever submitted, but those that are forgotten
        self._ready: set[JobId] = set()  # those of them that arrived
        self._any_arrival = False  # in the current round

    @property
    def round(self) -> int:  # type: ignore[override]
        """The current round; ``horizon + 1`` once the last one was cleared."""
        return self._round

    horizon: int = _size("horizon")
    capacity: int = _size("capacity")
    max_concurrency: int = _size("max_concurrency")
    max_duration: int = _size("max_duration")
    max_value: float = _size("max_value")
    max_delay: int = _size("max_delay")

    def forget(self, job: JobId) -> None:
        """Let go of the name of a job that has left the market and will not be named again."""
        self._names.discard(job)
        self._ready.discard(job)

    def _enter(self, job: JobId) -> int:
        """Note the name of a job that is submitted; return the number of its submission, from 0 on."""
        self._names.add(job)
        self._submissions += 1
        return self._submissions - 1

    def _check_open(self, what: str) -> None:
        """Raise if the last round was cleared."""
        if self._round > self.horizon:
            raise EventError(f"{what} in round {self._round}", legal=f"at most the horizon {self.horizon}")

    def _check_submission(self, job: JobId, sow: StatementOfWork) -> None:
        """Raise if the job cannot be submitted now, or its report is outside the announced limits."""
        if not is_hashable(job):
            raise InvalidReportError(place="job", value=job, legal="a hashable name")
        self._check_open(f"submit of {job!r}")
        if job in self._names:
            raise EventError(f"submit of {job!r}: a job of this name was submitted before")
        if self._any_arrival:
            raise EventError(
                f"submit of {job!r} after an arrival of round {self._round}", legal="all submissions first"
            )
        self.limits.check_report(job, sow, self._round)

    def _take_arrival(self, job: JobId, signal: Signal) -> None:
        """Note an arrival of the current round, or raise if it cannot be."""
        self._check_open(f"arrive of {job!r}")
        if not is_hashable(job) or job not in self._names:
            raise EventError(f"arrive of {job!r}", legal="a job submitted before")
        if job in self._ready:
            raise EventError(f"arrive of {job!r}: it arrived before")
        if not is_hashable(signal):
            raise EventError(f"arrive of {job!r}: signal = {signal!r}", legal="a hashable signal")
        self._ready.add(job)
        self._any_arrival = True

    def _did_not_run(self, job: JobId) -> EventError:
        """Return the error of a completion of a job that does not run."""
        return EventError(f"complete of {job!r}: it did not run in round {self._round - 1}")

    def _check_closing(self) -> None:
        """Raise if rounds are left."""
        if self._round <= self.horizon:
            raise EventError(f"close in round {self._round}", legal=f"all rounds to {self.horizon} cleared first")
