"""The base class of mechanisms that promise nothing before a job arrives, and serve it from then on.

Such a market takes a report, hands back a plan without a start, and serves the job once it is ready.
Here is the bookkeeping of the protocol; who is served when, and what it pays, is a subclass's.
"""

from __future__ import annotations

from abc import abstractmethod
from collections import defaultdict
from collections.abc import Callable, Hashable, Sequence
from itertools import repeat
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from marketsched.mechanisms.columns import JobColumns, follows
from marketsched.mechanisms.errors import EventError, InvalidReportError
from marketsched.mechanisms.law import Signal
from marketsched.mechanisms.legal import is_hashable
from marketsched.mechanisms.limits import MarketLimits
from marketsched.mechanisms.mechanism import Event, EventKind, JobId, LaunchPlan, Offer
from marketsched.mechanisms.rounds import Rounds
from marketsched.mechanisms.sow import StatementOfWork

TOLERANCE = 1e-12  # an expected surplus, or a bid, has to exceed it, as in launch plans
NOT_YET = 0  # a round that is still open


class WaitingJob:
    """A job from submission until it is gone.

    Attributes
    ----------
    job, order, sow, owner
        Its name, the number of its submission, its report, and whose it is: where that is not known, its own. In a
        market that is played as columns the report stands in them: a job has no ``sow``, its number is its row, and so
        is its name, but where the rule reads names.
    width : int
        Nodes.
    arrival, start : int
        Rounds, `NOT_YET` until they are known; a start may be booked ahead.
    limit : int
        The most rounds it may run; then it is evicted.
    mean : float
        Expected duration, rounds.
    last_start : int
        The last round in which a start can be worth anything, of markets that note it.
    worth : ndarray of float or None
        What starts in rounds ``arrival``, ``arrival + 1``, ... are expected to bring, credits.
    agreed : object
        What `serve` noted for `charge`.
    """

    __slots__ = (
        "agreed", "arrival", "job", "last_start", "limit", "mean", "order", "owner", "sow", "start", "useful", "width",
        "worth",
    )  # fmt: skip

    def __init__(self, job: JobId, order: int, sow: StatementOfWork, owner: Hashable = None) -> None:
        self.job, self.order, self.sow, self.width = job, order, sow, sow.concurrency
        self.owner = job if owner is None else owner
        self.arrival = self.start = self.last_start = NOT_YET
        self.limit, self.mean = 0, 0.0
        self.worth: NDArray[np.float64] | None = None
        self.useful: int | None = None  # of a row, the last completion worth anything
        self.agreed: Any = None

    @classmethod
    def of_row(cls, row: int, jobs: JobColumns, useful: int, owner: Hashable) -> WaitingJob:
        """Return the job of a row, which arrives now; ``useful`` is its last completion worth anything."""
        x = cls.__new__(cls)
        x.job = x.order = row
        x.owner, x.width, x.arrival, x.useful = owner, int(jobs.widths[row]), int(jobs.arrivals[row]), useful
        x.start = x.last_start = NOT_YET
        x.limit, x.mean, x.worth, x.agreed = 0, 0.0, None, None
        return x


class Cleared(NamedTuple):
    """What the clearing of a round did; all in order of submission, runs that are stopped backwards."""

    dropped: list[WaitingJob]
    stopped: list[tuple[WaitingJob, float]]  # with what they pay, credits
    started: list[WaitingJob]


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
        capacity: int,
        horizon: int,
        *,
        max_concurrency: int,
        max_duration: int,
        max_value: float,
        max_delay: int,
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
        self.by_rows: Any = None  # of a market that is played as columns, see `rows_play`
        self.by_name = False  # whether its rule reads the names of jobs

    @abstractmethod
    def foresee(self, x: WaitingJob, signal: Signal) -> None:
        """Record the needs of a job that has just arrived: its ``limit``, and what starts are worth to it."""

    @abstractmethod
    def serve(self, waiting: Sequence[WaitingJob]) -> Sequence[int | None]:
        """Return what becomes of each waiting job when the current round is cleared.

        Parameters
        ----------
        waiting : sequence of WaitingJob
            Ready jobs without a start, in order of (arrival, submission).

        Returns
        -------
        sequence of int or None
            Its first round, this one or later; `NOT_YET`: it waits on; None: it is dropped.
        """

    @abstractmethod
    def charge(self, x: WaitingJob) -> float:
        """Return the payment of a job that ran its last round in the round just cleared, credits."""

    @property
    def load(self) -> int:
        """Nodes of the jobs that ran in the round just cleared and have not ended."""
        return sum(x.width for x in self._running.values())

    def submit(self, job: JobId, sow: StatementOfWork, owner: Hashable = None) -> LaunchPlan:
        """Take a report born in the current round.

        Parameters
        ----------
        job : hashable
            Its name.
        sow : StatementOfWork
            The report.
        owner : hashable, optional
            Whose job it is; None: an owner of its own.

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
            If the report is outside the announced limits, or the owner has no hashable name.
        """
        self._check_submission(job, sow)
        if not is_hashable(owner):
            raise InvalidReportError(place="owner", value=owner, legal="a hashable name", source=f"job {job!r}")
        self._jobs[job] = WaitingJob(job, self._enter(job), sow, owner)
        return _NothingPlanned(job, sow)

    def quote(self, job: JobId, sow: StatementOfWork) -> Offer:
        """Return the plan that `submit` would return; nothing has a price before the job arrives. Errors as there."""
        self._check_submission(job, sow)
        return Offer(_NothingPlanned(job, sow))

    def restate(self, job: JobId, sow: StatementOfWork) -> None:
        """Put another report in the place of one whose job has not arrived.

        Raises
        ------
        EventError
            If the job is not in the market, or has arrived.
        InvalidReportError
            If the report is outside the announced limits.
        """
        x = self._jobs.get(job)
        if x is None or x.arrival != NOT_YET:
            raise EventError(f"restate {job!r}: expected a job that was submitted and has not arrived")
        self.limits.check_report(job, sow, x.sow.birth)
        x.sow, x.width = sow, sow.concurrency

    def arrive(self, job: JobId, signal: Signal = None) -> None:
        """Observe that ``job`` is ready in the current round; it is served when the round is cleared.

        Raises
        ------
        EventError
            If the market is over, the job is unknown, or it arrived before.
        """
        self._take_arrival(job, signal)
        x = self._jobs[job]
        x.arrival = self._round
        self.foresee(x, signal)
        self._arrived.append(x)

    def advance(self) -> list[Event]:
        """Clear the current round and move to the next; return drops, evictions, then starts.

        A job that has run for all the rounds it may is evicted.

        Raises
        ------
        EventError
            If the last round was cleared before.
        """
        self._check_open("advance")
        now, cleared = self._round, self.clear()
        return [
            *(Event(now, EventKind.DROP, x.job) for x in cleared.dropped),
            *(Event(now, EventKind.EVICT, x.job, payment=payment) for x, payment in cleared.stopped),
            *(Event(now, EventKind.START, x.job) for x in cleared.started),
        ]

    def clear(self) -> Cleared:
        """Clear the current round, as `advance` does that checks whether there is one."""
        now = self._round
        overdue = [x for x in self._ending.pop(now, ()) if self._running.get(x.job) is x]
        for x in overdue:
            self._leave(x)  # its nodes are on offer
            self.give_back(x)
        waiting = self._waiting + sorted(self._arrived, key=_order)
        dropped, self._waiting, self._arrived = [], [], []
        for x, start in zip(waiting, self.serve(waiting), strict=True):
            if start is None:
                dropped.append(x)
                self._leave(x)
            elif start == NOT_YET:
                self._waiting.append(x)
            else:
                x.start = start
                self._booked[start].append(x)
        overdue += self._stopped
        self._stopped = []
        started = sorted(self._booked.pop(now, ()), key=_order)
        for x in started:
            self._running[x.job] = x
            self._ending[self._stop(x)].append(x)
        overdue.sort(key=_order, reverse=True)
        stopped = [(x, self.charge_stopped(x, now - x.start)) for x in overdue]
        self._round, self._any_arrival = now + 1, False
        return Cleared(sorted(dropped, key=_order), stopped, started)

    def arrive_row(self, x: WaitingJob, jobs: JobColumns) -> None:
        """Let a job of a row arrive, as `arrive` does with one that has a name."""
        self._jobs[x.job] = x
        self.foresee_row(x, jobs)
        self._arrived.append(x)

    def foresee_row(self, x: WaitingJob, jobs: JobColumns) -> None:
        """Record what `foresee` does for a job whose report stands in the row ``x.job`` of columns."""
        raise NotImplementedError(f"{type(self).__name__} plays no markets as columns")

    def complete_row(self, x: WaitingJob) -> float:
        """Let a run end that ran its last round in the one just cleared; return its payment."""
        self._leave(x)
        return self.charge(x)

    def runs(self, x: WaitingJob) -> bool:
        """Tell whether a job runs."""
        return self._running.get(x.job) is x

    def complete(self, job: JobId) -> Event:
        """Observe that ``job`` ran its last round in the round just cleared; charge it.

        Raises
        ------
        EventError
            If the job is not running.
        """
        x = self._that_ran(job, self._running)
        return Event(self._round - 1, EventKind.COMPLETE, job, self._round, self.complete_row(x))

    def close(self) -> list[Event]:
        """Remove every job still in the market after the last round, most recently submitted first.

        Raises
        ------
        EventError
            If rounds are left.
        """
        self._check_closing()
        left = list(reversed(self._jobs.values()))
        kinds = [EventKind.EVICT if x.job in self._running else EventKind.CANCEL for x in left]
        for x in left:
            self._leave(x)
        return [Event(self.horizon, kind, x.job) for kind, x in zip(kinds, left, strict=True)]

    def can_play(self, home: type[ArrivalMarket], jobs: JobColumns) -> bool:
        """Tell whether `play` of the class ``home`` may play these jobs: by its rule, from the first on."""
        return follows(self, home) and not self._submissions and jobs.within(self.limits)

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
        return self._useful(x)

    def _useful(self, x: WaitingJob) -> int:
        """Return the last completion that is worth anything."""
        return self.limits.last_useful_completion(x.sow) if x.useful is None else x.useful

    def stop(self, x: WaitingJob) -> None:
        """Evict a running job, for use in `serve`: its nodes are on offer in this round."""
        self._leave(x)
        self._stopped.append(x)

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
