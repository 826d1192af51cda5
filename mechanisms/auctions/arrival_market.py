"""The base class of mechanisms that promise nothing before a job arrives, and serve it from then on.

Such a market takes a report, hands back a plan without a start, and serves the job once it is ready.
Here is the bookkeeping of the protocol; who is served when, and what it pays, is a subclass's.
"""

from __future__ import annotations

from abc import abstractmethod
from collections import defaultdict
from collections.abc import Callable, Hashable, Sequence
from itertools import repeat
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from marketsched.mechanisms.auctions.rows_play import RowsPlay
from marketsched.mechanisms.auctions.waiting_job import NOT_YET, WaitingJob
from marketsched.mechanisms.columns import JobColumns, Outcomes
from marketsched.mechanisms.errors import EventError, InvalidReportError
from marketsched.mechanisms.law import Signal
from marketsched.mechanisms.legal import Positive, is_hashable
from marketsched.mechanisms.limits import MarketLimits, NodeCount, RoundCount
from marketsched.mechanisms.mechanism import Event, EventKind, JobId, LaunchPlan, Offer
from marketsched.mechanisms.rounds import Rounds
from marketsched.mechanisms.sow import StatementOfWork

TOLERANCE = 1e-12  # an expected surplus, or a bid, has to exceed it, as in launch plans


Moved = tuple[WaitingJob, EventKind, float]  # what the clearing of a round did to a job, and what that pays, credits

PROTOCOL = ("submit", "arrive", "advance", "complete", "close")  # what a class that is played by rows leaves as it is


class ArrivalMarket(Rounds):
    """A mechanism that serves jobs from their arrival on: all of the protocol but the rule itself.

    A subclass defines in `foresee` the needs of a job that has just arrived, in `serve` the starts, and in `charge`
    the payments.

    Parameters
    ----------
    capacity, horizon, max_concurrency, max_duration, max_value, max_delay
        The sizes of the market, as `MarketLimits`.
    stop_at_deadline : bool
        Whether a run is stopped once no completion could bring its owner anything by its report (`last_completion`).

    Examples
    --------
    Free nodes go to the next job, for a fixed fee; a job that finds none is turned away:

    >>> from marketsched.mechanisms import ArrivalMarket, DeadlineValue
    >>> class TurnedAway(ArrivalMarket):
    ...     def foresee(self, x, signal):
    ...         x.limit = self.max_duration
    ...     def serve(self, waiting):
    ...         free, starts = self.capacity - self.load, []
    ...         for x in waiting:
    ...             starts.append(self.round if x.width <= free else None)
    ...             free -= x.width if starts[-1] else 0
    ...         return starts
    ...     def charge(self, x):
    ...         return 1.0
    >>> market = TurnedAway(1, 9, max_concurrency=1, max_duration=3, max_value=9.0, max_delay=9)
    >>> for name in "AB":
    ...     plan = market.submit(name, StatementOfWork(1, 1, DeadlineValue(4.0, 5), [(1, 1, 1.0)]))
    >>> for name in "AB":
    ...     market.arrive(name, 1)
    >>> [(event.kind.value, event.job) for event in market.advance()], market.complete("A").payment
    ([('drop', 'B'), ('start', 'A')], 1.0)
    """

    reads_reports: ClassVar[Literal["submission", "arrival"]] = "arrival"

    def __init__(
        self,
        capacity: NodeCount,
        horizon: RoundCount,
        *,
        max_concurrency: NodeCount,
        max_duration: RoundCount,
        max_value: Positive,
        max_delay: RoundCount,
        stop_at_deadline: bool = False,
    ) -> None:
        super().__init__(MarketLimits(capacity, horizon, max_concurrency, max_duration, max_value, max_delay))
        self.stop_at_deadline = stop_at_deadline
        self._jobs: dict[JobId, WaitingJob] = {}  # those still in the market, in order of submission
        self._arrived: list[WaitingJob] = []  # in the current round
        self._waiting: list[WaitingJob] = []  # ready and without a start, in order of (arrival, submission)
        self._booked: defaultdict[int, list[WaitingJob]] = defaultdict(list)  # by first round
        self._running: dict[JobId, WaitingJob] = {}
        self._ending: defaultdict[int, list[WaitingJob]] = defaultdict(list)  # by the round that evicts them
        self._stopped: list[WaitingJob] = []  # running jobs that `serve` stops in the current round
        self._requeued: list[WaitingJob] = []  # and those whose run it takes back
        self._played: RowsPlay | None = None  # of a market that is played by rows

    @abstractmethod
    def foresee(self, x: WaitingJob, signal: Signal) -> None:
        """Record the needs of a job that has just arrived: its ``limit``, and what starts are worth to it."""

    @abstractmethod
    def serve(self, waiting: Sequence[WaitingJob]) -> Sequence[int | None]:
        """Return by waiting job, in order of (arrival, submission), what becomes of it as the round is cleared.

        Its first round, this one or later; 0 (`waiting_job.NOT_YET`): it waits on; None: it is dropped.
        """

    @abstractmethod
    def charge(self, x: WaitingJob) -> float:
        """Return the payment of a job that ran its last round in the round just cleared, credits."""

    @property
    def load(self) -> int:
        """Nodes of the jobs that ran in the round just cleared and have not ended."""
        return sum(x.width for x in self._running.values())

    def submit(self, job: JobId, sow: StatementOfWork, owner: Hashable = None) -> LaunchPlan:
        """Take a report born in the current round; without an ``owner`` the job is an owner of its own.

        The plan has one case per (arrival, signal) of the report, all without a start, and utility 0: nothing is
        promised before a job arrives. EventError if the market is over, a job of this name was submitted before, the
        birth is not the current round, or a job has already arrived in it; InvalidReportError if the report is outside
        the announced limits, or the owner has no hashable name.
        """
        self._check_submission(job, sow)
        if not is_hashable(owner):
            raise InvalidReportError(place="owner", value=owner, legal="a hashable name", source=f"job {job!r}")
        self.enter(WaitingJob(job, self._enter(job), sow, owner))
        return _NothingPlanned(job, sow)

    def quote(self, job: JobId, sow: StatementOfWork) -> Offer:
        """Return the plan that `submit` would return; nothing has a price before the job arrives. Errors as there."""
        self._check_submission(job, sow)
        return Offer(_NothingPlanned(job, sow))

    def restate(self, job: JobId, sow: StatementOfWork) -> None:
        """Put another report in the place of one whose job has not arrived; see `Mechanism.restate`."""
        x = self._jobs.get(job)
        if x is None or x.arrival != NOT_YET:
            raise EventError(f"restate {job!r}: expected a job that was submitted and has not arrived")
        self.limits.check_report(job, sow, x.sow.birth)
        x.restate(sow)

    def arrive(self, job: JobId, signal: Signal = None) -> None:
        """Observe that ``job`` is ready in the current round; it is served when the round is cleared.

        EventError if the market is over, the job is unknown, or it arrived before.
        """
        self._take_arrival(job, signal)
        x = self._jobs[job]
        self.come(x, signal, self.limits.last_useful_completion(x.sow))

    def enter(self, x: WaitingJob) -> None:
        """Let a job be in the market that was submitted in the current round."""
        self._jobs[x.job] = x

    def come(self, x: WaitingJob, signal: Signal, useful: int) -> None:
        """Let a job be ready in the current round; ``useful`` is its last completion worth anything."""
        self.foresee(x.come(self._round, signal, useful), signal)
        self._arrived.append(x)

    def advance(self) -> list[Event]:
        """Clear the current round and move to the next; return drops, evictions, then starts.

        A job that has run for all the rounds it may is evicted. EventError if the last round was cleared before.
        """
        self._check_open("advance")
        now = self._round
        return [Event(now, kind, x.job, payment=payment) for x, kind, payment in self.clear()]

    def clear(self) -> list[Moved]:
        """Clear the current round and move to the next, as `advance` does that checks whether there is one."""
        now = self._round
        overdue = [x for x in self._ending.pop(now, ()) if self._running.get(x.job) is x]
        for x in overdue:
            self._leave(x)  # its nodes are on offer
            self.give_back(x)
        waiting = self._waiting + sorted(self._arrived, key=_order)
        dropped, self._waiting, self._arrived = list[WaitingJob](), [], []
        for x, start in zip(waiting, self.serve(waiting), strict=True):
            if start is None:
                (overdue if self.ran(x) else dropped).append(x)
                self._leave(x)
            elif start == NOT_YET:
                self._waiting.append(x)
            else:
                x.start = start
                self._booked[start].append(x)
        overdue += self._stopped
        requeued, self._stopped, self._requeued = self._requeued, [], []
        if requeued:
            self._waiting = sorted(self._waiting + requeued, key=lambda x: (x.arrival, x.order))
        started = sorted(self._booked.pop(now, ()), key=_order)
        for x in started:
            self._running[x.job] = x
            self._ending[self._stop(x)].append(x)
        overdue.sort(key=_order, reverse=True)
        moved = [
            *((x, EventKind.DROP, 0.0) for x in sorted(dropped, key=_order)),
            *((x, EventKind.EVICT, self.charge_stopped(x, now - x.start)) for x in overdue),
            *((x, EventKind.REQUEUE, 0.0) for x in requeued),
            *((x, EventKind.START, 0.0) for x in started),
        ]
        self._round, self._any_arrival = now + 1, False
        return moved

    def unchanged_until(self) -> int:
        """Return a round before which nothing moves if no job comes or ends; by default the current one: no promise.

        The promise: from the current round on none is dropped, stopped, started or taken back before that round.
        """
        return self._round

    def pass_rounds(self, until: int, ahead: int = 1) -> NDArray[np.float64] | None:
        """Let the rounds before ``until`` go by, of which `unchanged_until` says that nothing moves in them.

        Returns the prices of each round and of those ``ahead`` as they stood in it, credits per node and round; None:
        the rule has none.
        """
        first, self._round, self._any_arrival = self._round, until, False
        prices = self.slot_prices(first, until - first + ahead - 1)
        return None if prices is None else sliding_window_view(prices, ahead)

    def end(self, x: WaitingJob) -> float:
        """Let a run end that ran its last round in the one just cleared; return its payment, credits."""
        self._leave(x)
        return self.charge(x)

    def runs(self, x: WaitingJob) -> bool:
        """Tell whether a job runs."""
        return self._running.get(x.job) is x

    def ran(self, x: WaitingJob) -> bool:
        """Tell whether a job runs, or did before its run was taken back."""
        return self.runs(x)

    def complete(self, job: JobId) -> Event:
        """Observe that ``job`` ran its last round in the round just cleared, and charge it; else EventError."""
        x = self._jobs.get(job) if is_hashable(job) else None
        if x is None or not self.runs(x):
            raise self._did_not_run(job)
        return Event(self._round - 1, EventKind.COMPLETE, job, self._round, self.end(x))

    def close(self) -> list[Event]:
        """Remove every job left after the last round, most recently submitted first; EventError if rounds are left."""
        self._check_closing()
        events = [
            Event(self.horizon, kind, x.job, payment=self.charge_unfinished(x))
            for x in reversed(self._jobs.values())
            for kind in (EventKind.EVICT if self.ran(x) else EventKind.CANCEL,)
        ]
        for x in list(reversed(self._jobs.values())):
            self._leave(x)
        return events

    def play(self, jobs: JobColumns, outcomes: Outcomes, until: int) -> bool:
        """Play many rounds at once by `foresee`, `serve` and `charge`, for jobs that are rows; see `Mechanism.play`.

        False where the rule has calls of the protocol of its own, or a report would be refused.
        """
        if self._played is None:
            own = any(getattr(type(self), name) is not getattr(ArrivalMarket, name) for name in PROTOCOL)
            if own or self._submissions or vars(self).keys() & set(PROTOCOL) or not self.accepts(jobs):
                return False
            self._played = self._rows_play(jobs)
        self._played.advance(self.round, until, outcomes)
        return True

    def accepts(self, jobs: JobColumns) -> bool:
        """Tell whether every report would be accepted, and can be read in its row."""
        if not jobs.within(self.limits):
            return False
        if self.limits.cluster is None:
            return True
        from marketsched.mechanisms.resources.whole_market import all_fit  # identical nodes need none of it

        return not self.takes_back and all_fit(jobs, self.limits)

    def _rows_play(self, jobs: JobColumns) -> RowsPlay:
        if self.limits.cluster is None:
            return RowsPlay(self, jobs)
        from marketsched.mechanisms.resources.whole_market import ClusterPlay  # as above

        return ClusterPlay(self, jobs)

    def _kept_booking(
        self, job: JobId, duration: int | None, owed: Callable[[WaitingJob, int], float]
    ) -> tuple[int, float | None] | None:
        """Return what `booked` of `Mechanism` does, for a mechanism that never takes a start back.

        ``owed(x, used)`` is what the job ``x`` pays for so many rounds. A run that is stopped at a price is played.
        """
        x = self._jobs.get(job)
        return None if x is None or x.start == NOT_YET else self.booking_of(x, duration, owed)

    def booking_of(
        self, x: WaitingJob, duration: int | None, owed: Callable[[WaitingJob, int], float]
    ) -> tuple[int, float | None] | None:
        """Return the same for a job that has its start."""
        if not duration or x.start + duration > min(self._stop(x), self.horizon + 1):
            return (x.start, None) if not self.charge_stopped(x, 1) else None
        return x.start, owed(x, duration)

    def owed(self, job: JobId, rounds: int) -> float | None:
        """Return what a running job would pay if it completed after so many rounds, credits; None: it does not run."""
        x = self._running.get(job)
        return None if x is None else self._owed(x, rounds)

    def _owed(self, x: WaitingJob, used: int) -> float:
        """Return the payment of a run of so many rounds, where it is known beforehand: by default 0."""
        return 0.0

    def charge_stopped(self, x: WaitingJob, used: int) -> float:
        """Return the payment of a run that is stopped after ``used`` rounds, credits: by default nothing."""
        return 0.0

    def charge_unfinished(self, x: WaitingJob) -> float:
        """Return the payment of a job that is left after the last round, credits: by default nothing."""
        return 0.0

    def give_back(self, x: WaitingJob) -> None:
        """Free the bookings of an ended run from this round on; by default there are none."""

    def _stop(self, x: WaitingJob) -> int:
        """Return the round in which the run of a job is stopped."""
        end = x.start + x.limit
        if self.stop_at_deadline:
            end = min(end, self.last_completion(x))
        return max(end, x.start + 1)

    def last_completion(self, x: WaitingJob) -> int:
        """Return the completion time after which a run that has started is stopped: by default its last of value."""
        return x.useful

    def stop(self, x: WaitingJob) -> None:
        """Evict a running job, for use in `serve`: its nodes are on offer in this round."""
        self._leave(x)
        self._stopped.append(x)

    def requeue(self, x: WaitingJob) -> None:
        """Take the run of a job back, for use in `serve`: its nodes are on offer in this round, and it waits again."""
        self._ending[self._stop(x)].remove(x)
        del self._running[x.job]
        x.start = NOT_YET
        self._requeued.append(x)

    def _leave(self, x: WaitingJob) -> None:
        del self._jobs[x.job]
        self._running.pop(x.job, None)


class _NothingPlanned(LaunchPlan):
    """No start in any case of a report. Hardly anybody looks at the cases, so they are listed when somebody does."""

    __slots__ = ("_sow",)

    def __init__(self, job: JobId, sow: StatementOfWork) -> None:
        for name, value in (("job", job), ("estimated_utility", 0.0), ("_sow", sow)):
            object.__setattr__(self, name, value)

    @property
    def starts(self) -> tuple[tuple[int, Signal, int | None], ...]:
        law = self._sow.law  # type: ignore[attr-defined]
        return tuple(zip(law.group_arrivals.tolist(), law.group_signals, repeat(None), strict=False))

    def __reduce__(self) -> tuple[Any, ...]:
        return LaunchPlan, (self.job, self.starts, self.estimated_utility)


def _order(x: WaitingJob) -> int:
    return x.order
