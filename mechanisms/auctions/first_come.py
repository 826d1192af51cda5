"""First come, first served at a flat price: what a user would compare a mechanism with.

A job is served when it arrives, in order of (arrival round, order of submission); nobody makes
room for a later, more valuable job, and nobody is ever evicted, except by the contract (a job that
outlives what it may run) and at the horizon. Forecasts of arrivals are not used.

* *Duration revealed* (the signal is the duration): the job books the earliest start at which its
  nodes are free for its whole duration and its value exceeds ``price * concurrency * duration``;
  without such a start it is dropped. A booking is never moved.
* *Duration hidden*: the job waits in order of arrival. It starts in the first round in which its
  nodes are free for ``max_duration`` rounds (so that it never has to be stopped for a booking) and
  its expected value, by its own law given arrival and signal, exceeds its expected payment. A wide
  job that does not fit may be overtaken. It is dropped once no later start could pay.

A job pays ``price * concurrency * (rounds used)`` when it completes, and nothing otherwise. With
revealed durations no false value gains anything: the earliest free start is the best one there is.
"""

from __future__ import annotations

from collections import defaultdict

import numpy as np
from numpy.typing import NDArray

from marketsched.mechanisms.checks import finite_parameter, whole_parameter
from marketsched.mechanisms.errors import EventError
from marketsched.mechanisms.mechanism import Event, EventKind, JobId, LaunchPlan
from marketsched.mechanisms.realised import NEVER
from marketsched.mechanisms.reports import check_report, last_useful_completion
from marketsched.mechanisms.sow import Signal, StatementOfWork

NOT_YET = 0  # a start that is still open
TOLERANCE = 1e-12  # an expected surplus has to exceed it, as in launch plans


class _Job:
    """A job from submission until it is gone."""

    __slots__ = ("arrival", "job", "length", "order", "sow", "start", "surplus")

    def __init__(self, job: JobId, order: int, sow: StatementOfWork) -> None:
        self.job, self.order, self.sow = job, order, sow
        self.arrival = NEVER
        self.start = NOT_YET  # booked or actual first round
        self.length = 0  # rounds booked
        self.surplus: NDArray[np.float64] | None = None  # hidden: expected, of starts from arrival on


class FirstCome:
    """First come, first served at a flat price, as a mechanism (see the module for the rules).

    Parameters
    ----------
    capacity : int
        C, nodes.
    horizon : int
        T, last round.
    price : float
        Credits per node and round, >= 0.
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

    Examples
    --------
    >>> from marketsched.mechanisms.values import DeadlineValue
    >>> market = FirstCome(1, 9, price=0.5, max_concurrency=1, max_duration=3, max_value=9.0, max_delay=9)
    >>> plan = market.submit("A", StatementOfWork(1, 1, DeadlineValue(4.0, 5), [(1, 2, 1.0)]))
    >>> market.arrive("A", 2)
    >>> [event.kind.value for _ in range(2) for event in market.advance()], market.complete("A").payment
    (['start'], 1.0)
    """

    def __init__(
        self,
        capacity: int,
        horizon: int,
        price: float = 0.0,
        *,
        max_concurrency: int,
        max_duration: int,
        max_value: float,
        max_delay: int,
    ) -> None:
        self.capacity = whole_parameter("capacity", capacity, 1)
        self._horizon = whole_parameter("horizon", horizon, 1)
        self.price = finite_parameter("price", price)
        self.max_concurrency = whole_parameter("max_concurrency", max_concurrency, 1, self.capacity)
        self.max_duration = whole_parameter("max_duration", max_duration, 1)
        self.max_delay = whole_parameter("max_delay", max_delay, 1)
        self.max_value = finite_parameter("max_value", max_value, "(0, inf)")
        self._round = 1
        self._closed = False
        self._jobs: dict[JobId, _Job | None] = {}  # every job ever submitted; None: gone
        self._free = np.full(self._horizon, self.capacity, dtype=np.int64)  # nodes not booked, by round
        self._arrived: list[_Job] = []  # in the current round
        self._waiting: list[_Job] = []  # durations hidden, in order of arrival
        self._starting: defaultdict[int, list[_Job]] = defaultdict(list)  # bookings by first round
        self._running: dict[JobId, _Job] = {}

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

    def slot_prices(self, first: int, count: int) -> NDArray[np.float64]:
        """Return the price of rounds ``first .. first + count - 1``, credits per node: all the same."""
        return np.full(count, self.price)

    def submit(self, job: JobId, sow: StatementOfWork) -> LaunchPlan:
        """Take a report born in the current round.

        Returns
        -------
        LaunchPlan
            One case per (arrival, signal) of the report, all without a start, and utility 0:
            first-come promises nothing before a job arrives.

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
        self._jobs[job] = _Job(job, len(self._jobs), sow)
        cases = zip(sow.law.group_arrivals.tolist(), sow.law.group_signals, strict=True)
        return LaunchPlan(job, tuple((a, o, None) for a, o in cases), 0.0)

    def arrive(self, job: JobId, signal: Signal = None) -> None:
        """Observe that ``job`` became ready in the current round; it is served when the round is cleared.

        Raises
        ------
        EventError
            If the market is over, the job is unknown, or it arrived before.
        """
        self._check_open(f"arrive of {job!r}")
        if job not in self._jobs:
            raise EventError(f"arrive of {job!r}: expected a job submitted before")
        state = self._jobs[job]
        if state is None or state.arrival != NEVER:
            raise EventError(f"arrive of {job!r}: it arrived before")
        state.arrival = self._round
        duration = _revealed_duration(state.sow, signal)
        if duration is None:
            state.length, state.surplus = self.max_duration, self._expected_surplus(state.sow, signal)
        else:
            state.length = duration
        self._arrived.append(state)

    def advance(self) -> list[Event]:
        """Clear the current round and move to the next; return drops, evictions, then starts.

        Raises
        ------
        EventError
            If the last round was cleared before.
        """
        self._check_open("advance")
        now = self._round
        overdue = [x for x in self._running.values() if x.start + x.length <= now]
        dropped, waiting = [], []
        self._arrived.sort(key=lambda x: x.order)
        for x in self._waiting + self._arrived:
            start = self._serve(x)
            if start is None:
                dropped.append(x)
            elif start == NOT_YET:
                waiting.append(x)
            else:
                self._starting[start].append(x)
        self._waiting, self._arrived = waiting, []
        starts = sorted(self._starting.pop(now, ()), key=lambda x: x.order)
        events = [Event(now, EventKind.DROP, x.job) for x in sorted(dropped, key=lambda x: x.order)]
        events += [Event(now, EventKind.EVICT, x.job) for x in sorted(overdue, key=lambda x: -x.order)]
        events += [Event(now, EventKind.START, x.job) for x in starts]
        for x in dropped + overdue:
            self._jobs[x.job] = None
            self._running.pop(x.job, None)
        self._running.update((x.job, x) for x in starts)
        self._round += 1
        return events

    def complete(self, job: JobId) -> Event:
        """Observe that ``job`` ran its last round in the round just cleared; charge it.

        Raises
        ------
        EventError
            If the job is not running.
        """
        if job not in self._running:
            raise EventError(f"complete of {job!r}: it did not run in round {self._round - 1}")
        x = self._running.pop(job)
        self._jobs[job] = None
        used = self._round - x.start
        self._free[self._round - 1 : x.start + x.length - 1] += x.sow.concurrency  # earlier than booked
        return Event(self._round - 1, EventKind.COMPLETE, job, self._round, self.price * x.sow.concurrency * used)

    def close(self) -> list[Event]:
        """Remove every job still in the market after the last round, most recently submitted first.

        Raises
        ------
        EventError
            If rounds are left.
        """
        if self._round <= self._horizon:
            raise EventError(f"close in round {self._round}: expected all rounds to {self._horizon} cleared first")
        left = [] if self._closed else [x for x in self._jobs.values() if x is not None]
        events = []
        for x in reversed(left):
            kind = EventKind.EVICT if x.job in self._running else EventKind.CANCEL
            events.append(Event(self._horizon, kind, x.job))
            self._jobs[x.job] = None
        self._running.clear()
        self._closed = True
        return events

    def _check_open(self, what: str) -> None:
        """Raise if the last round was cleared."""
        if self._round > self._horizon:
            raise EventError(f"{what} in round {self._round}: expected at most the horizon {self._horizon}")

    def _last_completion(self, sow: StatementOfWork) -> int:
        return last_useful_completion(sow, self.max_delay, self._horizon)

    def _serve(self, x: _Job) -> int | None:
        """Return the start that ``x`` gets now, its nodes booked; NOT_YET: it waits; None: it never will."""
        width, now = x.sow.concurrency, self._round
        if x.surplus is None:
            n_starts = self._last_completion(x.sow) - x.length - now + 1
            if n_starts < 1 or x.length > self.max_duration:
                return None
            values = x.sow.value.table(now + x.length, n_starts)
            found = self._earliest_start(width, x.length, values)
            if found is None:
                return None
            start = found
        else:
            coming = x.surplus[now - x.arrival :]
            if not (coming > TOLERANCE).any():
                return None
            if coming[0] <= TOLERANCE or (self._free[now - 1 : now - 1 + x.length] < width).any():
                return NOT_YET
            start = now
        x.start = start
        self._free[start - 1 : start - 1 + x.length] -= width
        return start

    def _earliest_start(self, width: int, length: int, values: NDArray[np.float64]) -> int | None:
        """Return the earliest start with room for ``length`` rounds; ``values`` are those of starts now, ...."""
        now = self._round
        full = np.zeros(values.size + length, dtype=np.int64)  # rounds without room before now, now + 1, ...
        np.cumsum(self._free[now - 1 : now - 1 + values.size + length - 1] < width, out=full[1:])
        good = (full[length:] == full[: values.size]) & (values > self.price * width * length)
        first = int(good.argmax())
        return now + first if good[first] else None

    def _expected_surplus(self, sow: StatementOfWork, signal: Signal) -> NDArray[np.float64]:
        """Return expected value minus expected payment of starts now, now + 1, ...; durations hidden."""
        law = sow.law
        group = law.group_of(self._round, signal)
        # A case that the report excludes: what it says of durations at large is all there is.
        points = slice(None) if group is None else slice(law.offsets[group], law.offsets[group + 1])
        durations, weights = law.durations[points], law.probabilities[points]
        mass = weights.sum()
        last = self._last_completion(sow)
        n_starts = max(0, last - int(durations.min()) - self._round + 1)
        if n_starts == 0 or mass <= 0:
            return np.zeros(0)
        surplus = np.full(n_starts, -self.price * sow.concurrency * float(weights @ durations) / mass)
        for d, weight in zip(durations.tolist(), weights.tolist(), strict=True):
            n = max(0, last - d - self._round + 1)
            surplus[:n] += weight / mass * sow.value.table(self._round + d, n)
        return surplus


def _revealed_duration(sow: StatementOfWork, signal: Signal) -> int | None:
    """Return the duration if signals are durations in this report; the arrival may be one it excludes."""
    whole = signal.is_integer() if isinstance(signal, float) else isinstance(signal, (int, np.integer))
    if not whole or isinstance(signal, bool):
        return None
    length, law = int(signal), sow.law  # type: ignore[call-overload]
    announced = sow.revealed and law.group_signals == tuple(law.durations.tolist())
    return length if announced and length >= 1 else None
