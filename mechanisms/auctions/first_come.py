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

from marketsched.mechanisms.auctions.arrival_market import NOT_YET, TOLERANCE, ArrivalMarket, WaitingJob
from marketsched.mechanisms.checks import finite_parameter
from marketsched.mechanisms.mechanism import Event, EventKind, JobId
from marketsched.mechanisms.sow import Signal, StatementOfWork


class _Job(WaitingJob):
    """A job, and what it has booked or waits for."""

    __slots__ = ("length", "surplus")

    def __init__(self, job: JobId, order: int, sow: StatementOfWork) -> None:
        super().__init__(job, order, sow)
        self.length = 0  # rounds booked
        self.surplus: NDArray[np.float64] | None = None  # hidden: expected, of starts from arrival on


class FirstCome(ArrivalMarket[_Job]):
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
        limits = {"max_concurrency": max_concurrency, "max_duration": max_duration, "max_delay": max_delay}
        super().__init__(capacity, horizon, max_value=max_value, **limits)
        self.price = finite_parameter("price", price)
        self._free = np.full(self._horizon, self.capacity, dtype=np.int64)  # nodes not booked, by round
        self._waiting: list[_Job] = []  # durations hidden, in order of arrival
        self._starting: defaultdict[int, list[_Job]] = defaultdict(list)  # bookings by first round

    def slot_prices(self, first: int, count: int) -> NDArray[np.float64]:
        """Return the price of rounds ``first .. first + count - 1``, credits per node: all the same."""
        return np.full(count, self.price)

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
        self._waiting = waiting
        return self._cleared(dropped, overdue, sorted(self._starting.pop(now, ()), key=lambda x: x.order))

    def complete(self, job: JobId) -> Event:
        """Observe that ``job`` ran its last round in the round just cleared; charge it.

        Raises
        ------
        EventError
            If the job is not running.
        """
        x = self._completed(job)
        used = self._round - x.start
        self._free[self._round - 1 : x.start + x.length - 1] += x.sow.concurrency  # earlier than booked
        return Event(self._round - 1, EventKind.COMPLETE, job, self._round, self.price * x.sow.concurrency * used)

    def _ticket(self, job: JobId, order: int, sow: StatementOfWork) -> _Job:
        return _Job(job, order, sow)

    def _foresee(self, x: _Job, signal: Signal) -> None:
        """Note how long the job will take, or what each start is expected to bring."""
        duration = _revealed_duration(x.sow, signal)
        if duration is None:
            x.length, x.surplus = self.max_duration, self._expected_surplus(x.sow, signal)
        else:
            x.length = duration

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
