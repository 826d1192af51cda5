"""First come, first served at a flat price: the usual baseline.

A job is served when it arrives, in order of (arrival round, order of submission); no job makes
room for a later, more valuable one, and none is ever evicted, except by the contract (a job that
outlives what it may run) and at the horizon. Forecasts of arrivals are not used.

* *Duration revealed* (the signal is the duration): the job books the earliest start at which its
  nodes are free for its whole duration and its value exceeds ``price * concurrency * duration``;
  without such a start it is dropped. A booking is never moved.
* *Duration hidden*: the job waits in order of arrival. Its turn is the first round in which its
  nodes are free for ``max_duration`` rounds (so that it never has to be stopped for a booking). It then gets the
  start that is expected to bring it most, by its own law given arrival and signal: this round, unless the value
  rises or the horizon cuts long runs off (`hidden_turn`); its nodes are kept until then. A wide job that does not fit
  may be overtaken. A job is dropped once no later start could pay.

The signal that the platform observes decides which case applies, never the report.

A job pays ``price * concurrency * (rounds used)`` when it completes, and nothing otherwise. With
revealed durations no false value gains anything: the earliest free start is the best one there is.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from numba import njit
from numpy.typing import NDArray

from marketsched.mechanisms.auctions.arrival_market import ArrivalMarket, WaitingJob
from marketsched.mechanisms.auctions.hidden_turn import (
    BY_DEFAULT,
    best_stops,
    charged_rounds,
    duration_law,
    last_completion,
    start_at_turn,
    state_promises,
)
from marketsched.mechanisms.auctions.turns import ArrivalTurn
from marketsched.mechanisms.columns import JobColumns, Outcomes, follows, steps_of
from marketsched.mechanisms.growing import grown
from marketsched.mechanisms.law import Signal
from marketsched.mechanisms.legal import Amount, legal
from marketsched.mechanisms.mechanism import JobId, Standing, Truthful
from marketsched.mechanisms.signals import Signals, observed_duration


class FirstCome(ArrivalMarket):
    """First come, first served at a flat price, as a mechanism (see the module for the rules).

    Parameters
    ----------
    capacity, horizon, max_concurrency, max_duration, max_value, max_delay
        The sizes of the market, as `MarketLimits`.
    price : float
        Credits per node and round, >= 0.
    stop_at_deadline : bool
        Whether a run is stopped once no completion could be worth anything by its report.
    stop_at_loss : bool
        Whether a run of hidden duration is stopped where that is best for its owner by its report, and then pays for
        the rounds it used: then truth is the best report (docs/mathematics.md).
    signals : {"durations", "labels"}
        What a whole number that the platform sees at arrival is: the duration, or a label (it is then hidden).

    Examples
    --------
    >>> from marketsched.mechanisms import DeadlineValue, StatementOfWork
    >>> market = FirstCome(1, 9, price=0.5, max_concurrency=1, max_duration=3, max_value=9.0, max_delay=9)
    >>> plan = market.submit("A", StatementOfWork(1, 1, DeadlineValue(4.0, 5), [(1, 2, 1.0)]))
    >>> market.arrive("A", 2)
    >>> [event.kind.value for _ in range(2) for event in market.advance()], market.complete("A").payment
    (['start'], 1.0)
    """

    truthful: ClassVar[Truthful] = "ex post"
    truthful_hidden: ClassVar[Truthful] = "none"
    standing: ClassVar[Standing] = Standing(
        "proved", "no job is evicted for another", "a flat price; the best one is known only in hindsight", BY_DEFAULT
    )

    @legal
    def __init__(
        self,
        capacity: int,
        horizon: int,
        price: Amount = 0.0,
        *,
        max_concurrency: int,
        max_duration: int,
        max_value: float,
        max_delay: int,
        stop_at_deadline: bool = True,
        stop_at_loss: bool = False,
        signals: Signals = "durations",
    ) -> None:
        sizes = {"max_concurrency": max_concurrency, "max_duration": max_duration, "max_delay": max_delay}
        super().__init__(
            capacity, horizon, max_value=max_value, **sizes, stop_at_deadline=stop_at_deadline or stop_at_loss
        )
        self.price, self.signals = price, signals
        self.stop_at_loss = stop_at_loss
        state_promises(self, FirstCome, stop_at_deadline, stop_at_loss)
        self._free = np.zeros(0, dtype=np.int64)  # nodes not booked, by round
        self._keep_calendar()

    def slot_prices(self, first: int, count: int) -> NDArray[np.float64]:
        """Return the price of rounds ``first .. first + count - 1``, credits per node: all the same."""
        return np.full(count, self.price)

    def play(self, jobs: JobColumns, outcomes: Outcomes, until: int) -> bool:
        """Play many rounds at once, where all durations are revealed; see `Mechanism.play`."""
        plays = follows(self, FirstCome) and not self._submissions and jobs.within(self.limits)
        if not (plays and self.signals == "durations" and jobs.revealed.all()):
            return False
        self._free = grown(self._free, self.horizon, self.horizon, self.capacity, "the calendar")
        rows = jobs.arriving(self.round, until)
        self._serve_rows(rows, jobs, outcomes)
        served = rows[outcomes.starts[rows] > 0]
        outcomes.payments[served] = self.price * jobs.widths[served] * jobs.durations[served]
        outcomes.close_bookings(rows, jobs)
        outcomes.prices[self.round - 1 : until] = self.price
        if outcomes.surface is not None:
            outcomes.surface[self.round - 1 : until] = self.price
        self._round = until + 1
        return True

    def turn(self, jobs: JobColumns, outcomes: Outcomes, before: NDArray[np.int64]) -> ArrivalTurn:
        """Return the turn of a job that arrives in the current round; see `Mechanism.turn`."""
        here = copy.copy(self)
        here._free = self._free.copy()
        here._serve_rows(before, jobs, outcomes)
        return ArrivalTurn(here, here._start, here._owed)

    def _serve_rows(self, rows: NDArray[np.int64], jobs: JobColumns, outcomes: Outcomes) -> None:
        """Serve arrivals of revealed durations, in this order."""
        columns = (jobs.arrivals, jobs.durations, jobs.widths, jobs.begins, jobs.values, jobs.lasts)
        useful = np.where(jobs.durations <= self.max_duration, jobs.useful(self.limits), 0)
        first_come_kernel(rows, *columns, useful, self.price, self._free, outcomes.starts)

    def foresee(self, x: WaitingJob, signal: Signal) -> None:
        """Record the job's duration, or the expected utility of each start."""
        duration = observed_duration(signal, self.signals)
        x.limit = self.max_duration if duration is None else duration
        x.mean = float(x.limit)
        if duration is None:
            x.worth = self._expected_surplus(x, signal)

    def serve(self, waiting: Sequence[WaitingJob]) -> list[int | None]:
        """Give each job in turn its start, book its nodes, or let it wait."""
        self._keep_calendar()
        starts = []
        for x in waiting:
            start = self._start(x)
            if start:
                held_from = start if x.worth is None else self.round
                self._free[held_from - 1 : start - 1 + x.limit] -= x.sow.concurrency
            starts.append(start)
        return starts

    def charge(self, x: WaitingJob) -> float:
        """Free bookings beyond the end, and charge the rounds used."""
        self.give_back(x)
        return self._owed(x, self.round - x.start)

    def last_completion(self, x: WaitingJob) -> int:
        """Return the completion time after which a run is stopped: with ``stop_at_loss`` the best for its owner."""
        if x.worth is None or not self.stop_at_loss:
            return super().last_completion(x)
        law, stops = x.agreed
        last, rounds = super().last_completion(x), int(stops[x.start - x.arrival])
        return last_completion(x.sow.value, law, x.start, rounds, last, self.price * x.sow.concurrency)

    def charge_stopped(self, x: WaitingJob, used: int) -> float:
        """Charge the rounds used by a run of hidden duration, with ``stop_at_loss``."""
        return self._owed(x, used) if self.stop_at_loss and x.worth is not None else 0.0

    def give_back(self, x: WaitingJob) -> None:
        """Free bookings beyond the end."""
        self._free[self.round - 1 : x.start + x.limit - 1] += x.sow.concurrency

    def booked(self, job: JobId, duration: int | None) -> tuple[int, float | None] | None:
        """Return start and payment of a job that runs so long, once it has its start; None before."""
        return self._kept_booking(job, duration, self._owed)

    def _owed(self, x: WaitingJob, used: int) -> float:
        return self.price * x.sow.concurrency * used

    def _keep_calendar(self) -> None:
        """Let the calendar hold every round that this one's decisions can touch."""
        end = self.round + self.max_delay + 2 * self.max_duration + 1
        self._free = grown(self._free, end, self.horizon, self.capacity, "the calendar")

    def _start(self, x: WaitingJob) -> int | None:
        """Return the start that ``x`` gets now; NOT_YET: it waits; None: it never will."""
        width, now = x.sow.concurrency, self.round
        if x.worth is None:
            last = self.limits.last_useful_completion(x.sow)
            if last < now + x.limit or x.limit > self.max_duration:
                return None
            values, lasts = steps_of(x.sow.value, now + x.limit, last)
            cost = self.price * width * x.limit
            return int(_earliest_start_kernel(self._free, width, now, x.limit, values, lasts, last, cost)) or None
        return start_at_turn(x.worth[now - x.arrival :], self._free, now, width, x.limit)

    def _expected_surplus(self, x: WaitingJob, signal: Signal) -> NDArray[np.float64]:
        """Return expected value minus expected payment of starts now, now + 1, ...; durations hidden."""
        now, cost, law = self.round, self.price * x.sow.concurrency, duration_law(x.sow, self.round, signal)
        x.agreed, x.mean = law, law.mean
        if not law.durations.size:
            return np.zeros(0)
        if self.stop_at_loss:
            found = best_stops(x.sow.value, law, now, super().last_completion(x), self.horizon + 1, cost)
            x.agreed = law, found.rounds
            return found.surplus
        worth = self._expected(x, x.sow.law.points_of(now, signal))
        return worth - cost * charged_rounds(law, now, worth.size, self.horizon + 1)


@njit(cache=True)
def _earliest_start_kernel(free, width, first, duration, values, lasts, last, cost):  # type: ignore[no-untyped-def]
    """Return the earliest start >= ``first`` with room whose completion is worth more than ``cost``; else 0.

    ``free[r - 1]`` are the nodes free in round r; ``values`` and ``lasts`` the steps of the value curve, of which
    completions up to ``last`` count.
    """
    worth_it = 0  # the last completion that is worth it
    for k in range(values.size):
        if values[k] > cost:
            worth_it = min(lasts[k], last)
    step, since = 0, first  # all rounds since..t have room
    for t in range(first, worth_it):
        if free[t - 1] < width:
            since = t + 1
        elif t - since + 1 >= duration:
            while lasts[step] < t + 1:
                step += 1
            if values[step] > cost:
                return t - duration + 1
    return 0


@njit(cache=True)
def first_come_kernel(  # type: ignore[no-untyped-def]
    rows, arrivals, durations, widths, begins, values, lasts, useful, price, free, starts
):
    """Serve jobs of known durations in this order; fill ``starts``, draw ``free`` down in place.

    Returns the value of their completions and their payments, added up.
    """
    welfare, revenue = 0.0, 0.0
    for j in rows:
        width, duration, begin, end = widths[j], durations[j], begins[j], begins[j + 1]
        cost = price * width * duration
        start = _earliest_start_kernel(
            free, width, arrivals[j], duration, values[begin:end], lasts[begin:end], useful[j], cost
        )
        if start > 0:
            starts[j] = start
            step = begin
            while lasts[step] < start + duration:
                step += 1
            welfare += values[step]
            revenue += cost
            for t in range(start, start + duration):
                free[t - 1] -= width
    return welfare, revenue
