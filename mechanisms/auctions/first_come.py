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
from numpy.typing import NDArray

from marketsched.mechanisms.arrays import grown
from marketsched.mechanisms.auctions.arrival_market import ArrivalMarket
from marketsched.mechanisms.auctions.first_come_kernels import earliest_start_kernel, first_come_kernel
from marketsched.mechanisms.auctions.hidden_play import HiddenPlay
from marketsched.mechanisms.auctions.hidden_turn import (
    BY_DEFAULT,
    best_stops,
    expected_surplus,
    last_completion,
    start_at_turn,
)
from marketsched.mechanisms.auctions.turns import ArrivalTurn
from marketsched.mechanisms.auctions.waiting_job import WaitingJob
from marketsched.mechanisms.columns import JobColumns, Outcomes, follows
from marketsched.mechanisms.law import Signal
from marketsched.mechanisms.legal import Amount, legal
from marketsched.mechanisms.mechanism import JobId, Standing, Truthful
from marketsched.mechanisms.promises import state_promises
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
        "proved",
        "no job is evicted for another",
        "a flat price; the best one is known only in hindsight",
        BY_DEFAULT,
        lie="a nearer deadline or a larger value",
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
        self._hidden: HiddenPlay | None = None  # of a market that the kernel plays
        self._keep_calendar()

    def slot_prices(self, first: int, count: int) -> NDArray[np.float64]:
        """Return the price of rounds ``first .. first + count - 1``, credits per node: all the same."""
        return np.full(count, self.price)

    def play(self, jobs: JobColumns, outcomes: Outcomes, until: int) -> bool:
        """Play many rounds at once, by a kernel unless runs are stopped at a loss; see `Mechanism.play`."""
        seen = jobs.revealed.all()
        compiled = seen or not (self.stop_at_loss or (self.signals == "labels" and jobs.revealed.any()))
        if self._played is not None or not (compiled and follows(self, FirstCome)):
            return super().play(jobs, outcomes, until)
        if self._submissions or not self.accepts(jobs):
            return False
        if seen and self.signals == "durations":
            self._play_revealed(jobs, outcomes, until)
        else:
            if self._hidden is None:
                rule = {"stop_at_deadline": self.stop_at_deadline}
                self._hidden = HiddenPlay(jobs, self.limits, self.price, **rule)
            self._hidden.advance(self.round, until, outcomes)
        outcomes.prices[self.round - 1 : until] = self.price
        if outcomes.surface is not None:
            outcomes.surface[self.round - 1 : until] = self.price
        self._round = until + 1
        return True

    def _play_revealed(self, jobs: JobColumns, outcomes: Outcomes, until: int) -> None:
        """Play rounds in which every start is decided at the arrival."""
        self._free = grown(self._free, self.horizon, self.horizon, self.capacity, "the calendar")
        rows = jobs.arriving(self.round, until)
        self._serve_rows(rows, jobs, outcomes)
        served = rows[outcomes.starts[rows] > 0]
        outcomes.payments[served] = self.price * jobs.widths[served] * jobs.durations[served]
        outcomes.close_bookings(rows, jobs)

    def turn(self, jobs: JobColumns, outcomes: Outcomes, before: NDArray[np.int64]) -> ArrivalTurn | None:
        """Return the turn of a job that arrives in the current round, durations revealed; see `Mechanism.turn`."""
        if self.signals != "durations" or not jobs.revealed.all():
            return None
        here = copy.copy(self)
        here._free = self._free.copy()
        here._serve_rows(before, jobs, outcomes)
        return ArrivalTurn(here, here._start, here._owed)

    def _serve_rows(self, rows: NDArray[np.int64], jobs: JobColumns, outcomes: Outcomes) -> None:
        """Serve arrivals of revealed durations, in this order."""
        columns = (jobs.arrivals, jobs.durations, jobs.widths, jobs.begins, jobs.values, jobs.lasts)
        useful = np.where(jobs.durations <= self.max_duration, jobs.useful(self.max_delay, self.horizon), 0)
        first_come_kernel(rows, *columns, useful, self.price, self._free, outcomes.starts)

    def foresee(self, x: WaitingJob, signal: Signal) -> None:
        """Record the job's duration, or the expected utility of each start."""
        duration = observed_duration(signal, self.signals)
        x.limit = self.max_duration if duration is None else duration
        x.mean = float(x.limit)
        if duration is None:
            x.worth = self._expected_surplus(x)

    def serve(self, waiting: Sequence[WaitingJob]) -> list[int | None]:
        """Give each job in turn its start, book its nodes, or let it wait."""
        self._keep_calendar()
        starts = []
        for x in waiting:
            start = self._start(x)
            if start:
                held_from = start if x.worth is None else self.round
                self._free[held_from - 1 : start - 1 + x.limit] -= x.width
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
        return last_completion(x.sow.value, law, x.start, rounds, last, self.price * x.width)

    def charge_stopped(self, x: WaitingJob, used: int) -> float:
        """Charge the rounds used by a run of hidden duration, with ``stop_at_loss``."""
        return self._owed(x, used) if self.stop_at_loss and x.worth is not None else 0.0

    def give_back(self, x: WaitingJob) -> None:
        """Free bookings beyond the end."""
        self._free[self.round - 1 : x.start + x.limit - 1] += x.width

    def booked(self, job: JobId, duration: int | None) -> tuple[int, float | None] | None:
        """Return start and payment of a job that runs so long, once it has its start; None before."""
        return self._kept_booking(job, duration, self._owed)

    def _owed(self, x: WaitingJob, used: int) -> float:
        return self.price * x.width * used

    def _keep_calendar(self) -> None:
        """Let the calendar hold every round that this one's decisions can touch."""
        end = self.round + self.max_delay + 2 * self.max_duration + 1
        self._free = grown(self._free, end, self.horizon, self.capacity, "the calendar")

    def _start(self, x: WaitingJob) -> int | None:
        """Return the start that ``x`` gets now; NOT_YET: it waits; None: it never will."""
        width, now = x.width, self.round
        if x.worth is None:
            last = x.useful
            if last < now + x.limit or x.limit > self.max_duration:
                return None
            values, lasts = x.steps(now + x.limit, last)
            cost = self.price * width * x.limit
            steps = (values, lasts, 0, values.size)
            return int(earliest_start_kernel(self._free, width, now, x.limit, *steps, last, cost)) or None
        surplus = x.worth[now - x.arrival :]
        return start_at_turn(surplus, int(surplus.argmax()) if surplus.size else 0, self._free, now, width, x.limit)

    def _expected_surplus(self, x: WaitingJob) -> NDArray[np.float64]:
        """Return expected value minus expected payment of starts now, now + 1, ...; durations hidden."""
        now, cost, law = self.round, self.price * x.width, x.law
        x.agreed, x.mean = law, law.mean
        if not law.durations.size:
            return np.zeros(0)
        if self.stop_at_loss:
            found = best_stops(x.sow.value, law, now, super().last_completion(x), self.horizon + 1, cost)
            x.agreed = law, found.rounds
            return found.surplus
        return expected_surplus(x.sow.value, law, now, super().last_completion(x), self.horizon + 1, cost)
