r"""Two offers: regular nodes that are never taken away, and spare ones at a fifth of the rate, with announced odds.

A job whose duration is hidden is offered two classes of service when it arrives:

* *regular*: R credits per node and round, paid on completion; it takes idle nodes, and nodes of spare runs, and is
  never evicted;
* *spare*: R / 5; it runs on what is left. When a regular job takes its nodes the run is lost, nothing is paid for it,
  and the job starts again when there is room (`requeue`).

It gets the offer of larger announced value, if that exceeds 1e-12, and keeps class and rate. A round:

1. who can bring nothing any more is stopped, or leaves (`departures`);
2. rates are posted, from jobs that have left and widths that came before (`rates`);
3. arrivals choose: expected waits from nodes and classes of those present (`waits`), odds from what became of jobs that
   stood alike (`announced`);
4. nodes are taken back and runs start (`service`).

Of what a present job reported, only its nodes move any other job: so, its class and its nodes given, no report moves
its path, and inside an offer the truth is optimal ex post. Between the offers it is optimal if the announced odds are
believed (docs/mathematics.md). Payment is on completion alone, at most the value. A job whose duration is revealed gets
an entry of the calendar of `marketsched.mechanisms.bid_price`; regular jobs then start where their nodes are free for
``max_duration`` rounds beside what is booked, and spare runs make room for what is booked.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from marketsched.mechanisms.auctions.arrival_market import TOLERANCE, WaitingJob
from marketsched.mechanisms.bid_price.bid_price import BidPrice
from marketsched.mechanisms.errors import InvalidParameterError, InvalidReportError
from marketsched.mechanisms.law import Signal
from marketsched.mechanisms.legal import Share, is_hashable, legal
from marketsched.mechanisms.mechanism import Event, EventKind, JobId, Standing, Truthful
from marketsched.mechanisms.offers.announced import Report, Stairs, announced_values, cell_of, last_worth, stairs_of
from marketsched.mechanisms.offers.departures import LATE_ODDS, Learnt
from marketsched.mechanisms.offers.menu import TwoOffersMenu
from marketsched.mechanisms.offers.present import DONE, HERE, REGULAR, SPARE, Present, band_of
from marketsched.mechanisms.offers.rates import Rates
from marketsched.mechanisms.offers.service import PATIENCE, serve
from marketsched.mechanisms.offers.waits import AHEAD, Calendars, expected_waits
from marketsched.mechanisms.signals import observed_duration
from marketsched.mechanisms.sow import StatementOfWork
from marketsched.mechanisms.values import TableValue

BOTH = (0.5, 0.9)  # part and factor of the threshold that rates are made of
REGULAR_ALONE = (0.7, 0.65)


@dataclass(slots=True, eq=False)
class Taken:
    """The offer that a job has taken."""

    row: int  # of `Present`
    offer: int  # SPARE or REGULAR
    rate: float  # credits per node and round, locked
    chance: float  # announced, to be completed while it is worth anything
    stairs: Stairs
    last: int  # the last completion worth anything


class TwoOffers(BidPrice):
    """Two offers at posted rates with announced odds (see the module for the rules).

    Parameters
    ----------
    requeue : bool
        Whether a run that is taken back leaves its job in the queue. False: the job is lost with it.
    spare : bool
        False: regular nodes alone are offered. Nothing then depends on odds being believed. A job whose report says
        that it cannot restart (``restarts=False``) is offered them alone in any case.
    spare_order : "arrival" or "passing"
        Whether an earlier spare job takes nodes of later ones' runs, or waits until nodes are idle.
    late_odds : float
        Odds that a regular job is in time although its expected wait is too long, before one has tried; from the 50th
        job that leaves on, and .05 until then. What seems hopeless is not tried: with .05 it would stay so.
    capacity, horizon, max_concurrency, max_duration, max_value, max_delay
        The sizes of the market, as `MarketLimits`.
    forecast, laws, history, lags, lag_hours, round_seconds, buckets, bucket_seed, scenarios, ahead, steps, step, slack
        Of `BidPrice`, as are ``slack_gain``, ``slack_ramp``, ``keep_menus`` and ``rng``; they matter for jobs of
        revealed duration.

    Raises
    ------
    InvalidParameterError
        If a parameter is out of range.

    Examples
    --------
    >>> from marketsched.mechanisms import DeadlineValue, StatementOfWork
    >>> market = TwoOffers(1, 9, max_concurrency=1, max_duration=3, max_value=9.0, max_delay=9)
    >>> plan = market.submit("A", StatementOfWork(1, 1, DeadlineValue(4.0, 5), [(1, 2, 1.0, None)]))
    >>> market.arrive("A")
    >>> [event.kind.value for _ in range(2) for event in market.advance()], market.complete("A").payment
    (['start'], 0.0)
    """

    truthful: ClassVar[Truthful] = "ex post"
    truthful_hidden: ClassVar[Truthful] = "none"
    standing: ClassVar[Standing] = Standing(
        "proved",
        "a job that asks for more nodes than it needs may start sooner; spare runs may be taken back",
        "jobs that have left",
        "given its nodes and its offer, truth is best for each job, whatever happens, and in the choice between the "
        "offers it is best if the announced odds are believed",
    )

    @legal
    def __init__(
        self,
        capacity: int,
        horizon: int,
        *,
        requeue: bool = True,
        spare: bool = True,
        spare_order: Literal["arrival", "passing"] = "arrival",
        late_odds: Share = LATE_ODDS,
        **calendar: Any,
    ) -> None:
        if "hidden_order" in calendar:
            raise InvalidParameterError(place="hidden_order", value=calendar["hidden_order"], legal="nothing: no queue")
        super().__init__(capacity, horizon, **calendar)
        self.takes_back = spare
        self._requeue, self._spare, self._passing = requeue, spare, spare_order == "passing"
        self._present, self._learnt = Present(), Learnt(late_odds)
        self._rates = Rates(self.capacity, *(BOTH if spare else REGULAR_ALONE))
        self._calendars, self._stale = Calendars(), True  # until they are filled for the arrivals of a round
        self._came: list[tuple[WaitingJob, Signal]] = []  # of hidden duration, in the current round
        self._in_row: dict[int, WaitingJob] = {}
        self._held = [0, 0]  # nodes of spare and regular runs
        self._books = False  # whether a job of revealed duration has arrived: then regular runs are booked, too
        self._figures = np.zeros((2, 3))  # per offer: jobs that have left, announced chances, completed in time
        self._lost = [0, 0]  # runs taken back, and their node-rounds

    @property
    def load(self) -> int:
        """Nodes of the jobs that ran in the round just cleared and have not ended."""
        return super().load + sum(self._held)

    def slot_prices(self, first: int, count: int) -> NDArray[np.float64]:
        """Return the price of rounds, credits per node: the regular rate, unless durations are revealed."""
        return super().slot_prices(first, count) if self._books else np.full(count, self._rates.posted[REGULAR])

    def statistics(self) -> dict[str, float]:
        """Return the rates, odds as announced and observed, and evictions."""
        found = super().statistics() if self._books else {}
        for k, name in ((REGULAR, "regular"), (SPARE, "spare")):
            left, announced, happened = self._figures[k].tolist()
            found |= {f"{name}_rate": self._rates.posted[k], f"{name}_jobs": left}
            found |= {f"{name}_announced": announced / max(1.0, left), f"{name}_happened": happened / max(1.0, left)}
        return found | {"requeues": float(self._lost[0]), "node_rounds_lost": float(self._lost[1])}

    def _check_submission(self, job: JobId, sow: StatementOfWork) -> None:
        """Refuse values that rise, too: a run is never delayed until it is worth more."""
        super()._check_submission(job, sow)
        if sow.revealed or not isinstance(sow.value, TableValue):
            return
        soonest = int((sow.law.arrivals + sow.law.durations).min())
        rises = sow.value.rises_at(soonest)
        if rises is not None:
            seen = {rises: float(sow.value(rises)), rises - 1: 0.0}
            legal = f"values that do not rise: of all completions from {soonest} on, the first in which the job can end"
            raise InvalidReportError(place="values", value=seen, legal=legal, source=f"job {job!r}")

    def arrive(self, job: JobId, signal: Signal = None) -> None:
        """Observe that ``job`` is ready in the current round; errors as of `ArrivalMarket`."""
        if observed_duration(signal, self._signals) is not None:
            super().arrive(job, signal)
            self._begin_to_book()
            return
        self._take_arrival(job, signal)
        x = self._jobs[job]
        x.arrival, x.limit = self._round, self.max_duration
        self._came.append((x, signal))

    def advance(self) -> list[Event]:
        """Clear the current round and move to the next; return what leaves, runs that are taken back, then starts.

        Raises
        ------
        EventError
            If the last round was cleared before.
        """
        self._check_open("advance")
        now = self._round
        events = self._depart(now)
        self._rates.post(now, self._learnt)
        if self._books:
            events += super().advance()
        else:
            self._round, self._any_arrival = now + 1, False
        self._came.sort(key=lambda each: each[0].order)
        self._stale = True
        for x, signal in self._came:
            if not self._choose(x, signal, now):
                self._leave(x)
                events.append(Event(now, EventKind.DROP, x.job))
        self._came = []
        events += self._serve(now)
        events.sort(key=lambda event: event.kind is EventKind.START)
        return events

    def complete(self, job: JobId) -> Event:
        """Observe that ``job`` ran its last round in the round just cleared; charge it. Errors as of the base."""
        x = self._jobs.get(job) if is_hashable(job) else None
        if x is None or not isinstance(x.agreed, Taken) or not x.start:
            return super().complete(job)
        now, taken, used = self._round, x.agreed, self._round - x.start
        row = self._present.jobs[taken.row]
        row["state"], row["used"], row["in_time"] = DONE, used, now <= taken.last
        self._end_run(x, now)
        self._leave(x)
        return Event(now - 1, EventKind.COMPLETE, job, now, taken.rate * x.sow.concurrency * used)

    def booked(self, job: JobId, duration: int | None) -> tuple[int, float | None] | None:
        """Return start and payment of a job that runs so long, once they are sure: never of a spare run."""
        x = self._jobs.get(job)
        if x is None or not isinstance(x.agreed, Taken):
            return super().booked(job, duration) if x is not None and x.start else None
        if x.agreed.offer == SPARE or not x.start:
            return None
        end = min(int(self._present.jobs["stop"][x.agreed.row]), self.horizon + 1)
        if not duration or x.start + duration > end:
            return x.start, None
        return x.start, x.agreed.rate * x.sow.concurrency * duration

    def _owed(self, x: WaitingJob, used: int) -> float:
        if not isinstance(x.agreed, Taken):
            return super()._owed(x, used)
        return 0.0 if x.agreed.offer == SPARE else x.agreed.rate * x.sow.concurrency * used

    def close(self) -> list[Event]:
        """Remove every job still in the market after the last round. Errors as of `ArrivalMarket`."""
        ran = {x.job for x in self._in_row.values() if x.start or self._present.jobs["ran"][x.agreed.row]}
        events = super().close()
        return [Event(e.round, EventKind.EVICT if e.job in ran else e.kind, e.job) for e in events]

    # -- one round ------------------------------------------------------------------------------------------

    def _depart(self, now: int) -> list[Event]:
        """Remove the jobs that can bring nothing any more, and learn from all that have left."""
        gone = self._learnt.departed(self._present, now).tolist()
        events, jobs = [], self._present.jobs
        for row in gone:
            x = self._in_row.pop(row)
            self._figures[x.agreed.offer] += (1.0, x.agreed.chance, jobs["state"][row] == DONE and jobs["in_time"][row])
            if jobs["state"][row] == HERE:
                kind = EventKind.EVICT if x.start or jobs["ran"][row] else EventKind.DROP
                if x.start:
                    self._end_run(x, now)
                self._leave(x)
                events.append(Event(now, kind, x.job))
        self._present.give_back(gone)
        return events

    def _choose(self, x: WaitingJob, signal: Signal, now: int) -> bool:
        """Let a job that has arrived take the offer it likes best; return whether it takes one."""
        width, learnt = x.sow.concurrency, self._learnt
        band = band_of(width, self.capacity)
        usual = float(learnt.usual_rounds[band])
        self._rates.arrives(width, usual, learnt.kappa)
        report, keep = self._report(x, signal, now), self._menus is not None and self._kept(x.job)
        if report is None and not keep:
            return False
        if self._stale:
            self._calendars.fill(self._present, now, self._unbooked(now), learnt.usual_rounds)
            self._stale = False
        if self._menus is not None and keep:
            odds, free, runs = learnt.odds.copy(), self._calendars.free.copy(), self._calendars.runs.copy()
            self._menus[x.job] = TwoOffersMenu(now, self._rates.posted, odds, free, runs)
        if report is None:
            return False
        most_lost = PATIENCE * width * usual
        waits = expected_waits(self._calendars.free, self._calendars.runs, width, report.mean, most_lost)
        values, chances = announced_values(learnt.odds, waits, self._rates.posted, report, now)
        offer = self._preferred(x, values)
        if offer is None:
            return False
        rate, room, length = self._rates.posted[offer], report.last - now, max(1, int(report.mean + 0.5))
        row = self._present.add(
            offer, width, band,
            last_start=last_worth(report.stairs, rate * width * report.shortest) - report.shortest,
            cell=cell_of(waits[offer], room, length), mean=report.mean,
            density=x.sow.value.highest / (width * report.mean),
        )  # fmt: skip
        x.agreed = Taken(row, offer, rate, chances[offer], report.stairs, report.last)
        self._in_row[row] = x
        if offer == SPARE:
            self._calendars.add_spare(width, usual)
        else:
            self._stale = True
        return True

    def _report(self, x: WaitingJob, signal: Signal, now: int) -> Report | None:
        """Return what a report says of a job that has arrived; None: no run of it can bring anything."""
        sow, law = x.sow, x.sow.law
        points = law.points_of(now, signal)
        durations, weights = law.durations[points], law.probabilities[points]
        mass, last = float(weights.sum()), self.limits.last_useful_completion(sow)
        shortest = int(durations[0] if len(law.offsets) == 2 else durations.min())  # rising within a case
        if mass <= 0 or now + shortest > last:
            return None
        weights = weights / mass
        stairs = stairs_of(sow, now + shortest, last)
        return Report(sow.concurrency, durations, weights, shortest, float(weights @ durations), stairs, last)

    def _preferred(self, x: WaitingJob, values: tuple[float, float]) -> int | None:
        """Return the offer of larger announced value, spare of equal ones; None: neither is worth taking."""
        offer = SPARE if self._spare and x.sow.restarts and values[SPARE] >= values[REGULAR] else REGULAR
        return offer if values[offer] > TOLERANCE else None

    def _serve(self, now: int) -> list[Event]:
        """Take nodes back and start runs; return the events."""
        room = self.capacity - self._held[REGULAR]
        free = room
        if self._books:
            free, room = int(self._free[now - 1]), int(self._free[now - 1 : now - 1 + self.max_duration].min())
        if not self._present.n:
            return []
        orders = {"requeue": self._requeue, "passing": self._passing}
        taken, started = serve(self._present, now, free - self._held[SPARE], room, self._learnt.usual_rounds, **orders)
        events = []
        for row in taken.tolist():
            x = self._in_row[row]
            self._lost[0] += 1
            self._lost[1] += x.sow.concurrency * (now - x.start)
            self._end_run(x, now)
            if not self._requeue:
                self._leave(x)
            events.append(Event(now, EventKind.REQUEUE if self._requeue else EventKind.EVICT, x.job))
        for row in started.tolist():
            x = self._in_row[row]
            x.start = now
            self._held[x.agreed.offer] += x.sow.concurrency
            self._present.jobs["stop"][row] = self._last_of(x)
            self._book(x, now, -1)
            events.append(Event(now, EventKind.START, x.job))
        return events

    def _last_of(self, x: WaitingJob) -> int:
        """Return the round in which the run of a job is stopped: no later completion would bring what it costs."""
        taken: Taken = x.agreed
        end = x.start + self.max_duration
        cost = taken.rate * x.sow.concurrency
        by: list[int] = [
            min(until, x.start + int(min(worth / cost, self.max_duration))) if cost > 0 else until
            for until, worth in zip(taken.stairs.until.tolist(), taken.stairs.worth.tolist(), strict=True)
        ]
        return max(x.start + 1, min(end, max(by)))

    def _end_run(self, x: WaitingJob, now: int) -> None:
        """Note that a run has ended before round ``now``."""
        self._held[x.agreed.offer] -= x.sow.concurrency
        self._book(x, now, +1)
        x.start = 0

    # -- beside jobs of revealed duration -------------------------------------------------------------------

    def _begin_to_book(self) -> None:
        """From the first revealed duration on regular runs are booked in the calendar."""
        if not self._books:
            self._books = True
            self._keep_calendar()
            for x in self._in_row.values():
                if x.start:
                    self._book(x, self._round, -1)

    def _book(self, x: WaitingJob, now: int, sign: int) -> None:
        """Take (-1) or give back (+1) the nodes of a regular run from round ``now`` on."""
        if self._books and x.agreed.offer == REGULAR:
            self._free[now - 1 : x.start + self.max_duration - 1] += sign * x.sow.concurrency

    def _unbooked(self, now: int) -> NDArray[np.int64] | int:
        """Return the nodes of the coming rounds that no job of revealed duration has, shape (AHEAD,), or all."""
        if not self._books:
            return self.capacity
        found = np.full(AHEAD, self.capacity)
        known = self._free[now - 1 : now - 1 + AHEAD]
        found[: known.size] = known
        for x in self._in_row.values():
            if x.start and x.agreed.offer == REGULAR:
                found[: max(0, min(known.size, x.start + self.max_duration - now))] += x.sow.concurrency
        return found

    def _run_on(self, supply: NDArray[np.float64]) -> None:
        """Count each regular run, booked for max_duration, as long as runs of its width usually go on."""
        now, n, jobs = self._round, supply.size, self._present.jobs
        for row, x in self._in_row.items():
            if x.start and x.agreed.offer == REGULAR:
                age, usual = now - x.start, float(self._learnt.usual_rounds[jobs["band"][row]])
                supply[: max(0, min(n, self.max_duration - age))] += x.sow.concurrency
                supply[: max(0, min(n, round(max(1.0, usual - age, 0.5 * age))))] -= x.sow.concurrency
