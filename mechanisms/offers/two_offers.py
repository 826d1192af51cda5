r"""Two offers: regular nodes that are never taken away, and spare ones at a fifth of the rate, with announced odds.

A job whose duration is hidden is offered two classes of service when it arrives:

* *regular*: R credits per node and round, paid on completion; it takes idle nodes, and nodes of spare runs, and is
  never evicted;
* *spare*: R / 5; it runs on what is left. When another job takes its nodes the run is lost, nothing is paid for it,
  and the job starts again when there is room (`requeue`).

With each it chooses a patience, which sets its place in the queue and the round in which it leaves, and costs more the
shorter it is (`patience`). It gets the entry (class and patience) of largest announced value, if that exceeds 1e-12;
of equal ones the most patient, then the spare one. Entry and rate are kept. A round:

1. who can bring nothing any more, or has waited as long as it agreed to, is stopped, or leaves (`departures`);
2. rates are posted, from jobs that have left and widths that came before (`rates`);
3. arrivals choose (`menu`): expected waits from nodes and entries of those present (`waits`), odds from what became of
   jobs that stood alike (`announced`);
4. nodes are taken back and runs start (`service`).

Of what a present job reported, only its nodes move any other job (with `counts_saved` also its checkpoints): so, its
entry and these given, no report moves its path, and inside an entry the truth about value, law and deadline is optimal
ex post. Between the entries it is optimal if the announced odds are believed (docs/mathematics.md). Payment is on
completion alone, at most the value. A job whose duration is revealed gets an entry of the calendar of
`marketsched.mechanisms.bid_price`; regular jobs then start where their nodes are free for ``max_duration`` rounds
beside what is booked, and spare runs make room for what is booked.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from marketsched.mechanisms.auctions.arrival_market import Moved
from marketsched.mechanisms.auctions.waiting_job import WaitingJob
from marketsched.mechanisms.bid_price.bid_price import BidPrice
from marketsched.mechanisms.columns import NEVER, JobColumns
from marketsched.mechanisms.errors import InvalidParameterError
from marketsched.mechanisms.law import Signal
from marketsched.mechanisms.legal import Share, legal
from marketsched.mechanisms.mechanism import EventKind, JobId, Standing, Truthful
from marketsched.mechanisms.offers.announced import check_falling, falling, preferred, report_of
from marketsched.mechanisms.offers.departures import LATE_ODDS, announced_and_happened
from marketsched.mechanisms.offers.hidden_jobs import HiddenJobs
from marketsched.mechanisms.offers.present import REGULAR, SPARE
from marketsched.mechanisms.offers.waits import AHEAD
from marketsched.mechanisms.signals import observed_duration
from marketsched.mechanisms.sow import StatementOfWork
from marketsched.mechanisms.unit import Unit


@dataclass(slots=True, eq=False)
class Taken:
    """The entry that a job has taken."""

    row: int  # of `Present`
    offer: int  # SPARE or REGULAR
    rate: float  # credits per node and round, locked


class TwoOffers(BidPrice):
    """Two offers at posted rates with announced odds (see the module for the rules).

    Parameters
    ----------
    requeue : bool
        Whether a run that is taken back leaves its job in the queue. False: the job is lost with it.
    spare : bool
        False: regular nodes alone are offered, in order of arrival, without a choice of patience. Nothing then depends
        on odds being believed. A job whose report says that it cannot restart (``restarts=False``) is offered regular
        nodes alone in any case.
    counts_saved : bool
        Whether limits of evictions and expected waits count what checkpoints save, as jobs state them; then it can pay
        to hide them. False: as if all was lost, so that no job's checkpoint moves another job. A run that is taken back
        keeps its saved work in either case.
    late_odds : float
        Odds that a regular job is in time although its expected wait is too long, before one has tried; from the 50th
        job that leaves on, and .05 until then. What seems hopeless is not tried: with .05 it would stay so.
    capacity, horizon, max_concurrency, max_duration, max_value, max_delay
        The sizes of the market, as `MarketLimits`.
    forecast, laws, history, lags, lag_hours, round_seconds, buckets, bucket_seed, scenarios, ahead, steps, step, slack
        Of `BidPrice`, as are ``slack_gain``, ``slack_ramp`` and ``rng``; they matter for jobs of
        revealed duration.

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
        "a job that asks for more nodes than it needs may start sooner, one that names a later deadline may choose "
        "more patience, which costs less; with counts_saved, one that hides its checkpoints may keep its nodes; "
        "spare runs may be taken back",
        "jobs that have left",
        "given its nodes and its offer (class and patience), truth is best for each job, whatever happens, and in the "
        "choice between the offers that its deadline allows it is best if the announced odds are believed",
        but="more nodes than needed, a later deadline, and odds that are not believed",
    )

    @legal
    def __init__(
        self,
        *sizes: Any,
        requeue: bool = True,
        spare: bool = True,
        counts_saved: bool = False,
        late_odds: Share = LATE_ODDS,
        **calendar: Any,
    ) -> None:
        if "hidden_order" in calendar:
            raise InvalidParameterError(place="hidden_order", value=calendar["hidden_order"], legal="nothing: no queue")
        super().__init__(*sizes, **calendar)
        self.takes_back = spare
        self._requeue = requeue
        unit = Unit.of(calendar.get("round_seconds"))
        self._ahead = unit.whole(AHEAD)
        rules = {"spare": spare, "requeue": requeue, "counts_saved": counts_saved}
        self._hidden = HiddenJobs(self.capacity, self.max_duration, late_odds, unit, **rules)
        self._in_row: dict[int, WaitingJob] = {}
        self._books = False  # whether a job of revealed duration has arrived: then regular runs are booked, too

    @property
    def load(self) -> int:
        """Nodes of the jobs that ran in the round just cleared and have not ended."""
        return super().load + sum(self._hidden.held)

    def slot_prices(self, first: int, count: int) -> NDArray[np.float64]:
        """Return the price of rounds, credits per node: the regular rate, unless durations are revealed."""
        return super().slot_prices(first, count) if self._books else np.full(count, self._hidden.rates.posted[REGULAR])

    def statistics(self) -> dict[str, float]:
        """Return the rates, odds as announced and observed (of jobs, and weighted by value), and evictions."""
        found, hidden = super().statistics() if self._books else {}, self._hidden
        found |= announced_and_happened(hidden.rates.posted, hidden.figures)
        return found | {"requeues": float(hidden.lost[0]), "node_rounds_lost": float(hidden.lost[1])}

    def _check_submission(self, job: JobId, sow: StatementOfWork) -> None:
        """Refuse values that rise, too: a run is never delayed until it is worth more."""
        super()._check_submission(job, sow)
        if not sow.revealed:
            check_falling(job, sow)

    def accepts(self, jobs: JobColumns) -> bool:
        """Tell whether every report would be accepted: unless durations show, no value rises."""
        there = jobs.arrivals != NEVER
        return super().accepts(jobs) and (bool(jobs.revealed[there].all()) or falling(jobs))

    def foresee(self, x: WaitingJob, signal: Signal) -> None:
        """Record the value of each start where the duration shows; else the job chooses when the round is cleared."""
        if self._shows(x):
            super().foresee(x, signal)
            self._begin_to_book()
        else:
            x.limit = self.max_duration

    def _shows(self, x: WaitingJob) -> bool:
        return observed_duration(x.signal, self._signals) is not None

    def clear(self) -> list[Moved]:
        """Clear the current round and move to the next; return what leaves, runs that are taken back, then starts."""
        now = self._round
        came = sorted((x for x in self._arrived if not self._shows(x)), key=lambda x: x.order)
        self._arrived = [x for x in self._arrived if self._shows(x)]
        moved = self._depart(now)
        if self._books:
            moved += super().clear()
        else:
            self._round, self._any_arrival = now + 1, False
        for x in came:
            if not self._choose(x, now):
                self._leave(x)
                moved.append((x, EventKind.DROP, 0.0))
        moved += self._serve(now)
        moved.sort(key=lambda each: each[1] is EventKind.START)
        return moved

    def unchanged_until(self) -> int:
        """Return a round before which nothing moves if no job comes or ends; none is promised once runs are booked."""
        return self._round if self._books else self._hidden.unchanged_until(self._round)

    def pass_rounds(self, until: int, ahead: int = 1) -> NDArray[np.float64]:
        """Post the rates of the rounds before ``until``; return the regular rate that stood in each, (n, ahead)."""
        prices = self._hidden.rates.post(self._round, self._hidden.learnt, until - self._round)
        self._round, self._any_arrival = until, False
        return np.repeat(prices[:, None], ahead, axis=1)

    def runs(self, x: WaitingJob) -> bool:
        """Tell whether a job runs."""
        return x.start > 0 if isinstance(x.agreed, Taken) else super().runs(x)

    def ran(self, x: WaitingJob) -> bool:
        """Tell whether a job runs, or did before its run was taken back."""
        if not isinstance(x.agreed, Taken):
            return super().ran(x)
        return x.start > 0 or bool(self._hidden.present.jobs["ran"][x.agreed.row])

    def end(self, x: WaitingJob) -> float:
        """Let a run end that ran its last round in the one just cleared; return its payment, credits."""
        if not isinstance(x.agreed, Taken):
            return super().end(x)
        payment = self._hidden.complete(x.agreed.row, self._round)
        self._end_run(x, self._round)
        self._leave(x)
        return payment

    def booked(self, job: JobId, duration: int | None) -> tuple[int, float | None] | None:
        """Return start and payment of a job that runs so long, once they are sure: never of a spare run."""
        x = self._jobs.get(job)
        if x is None or not isinstance(x.agreed, Taken):
            return super().booked(job, duration) if x is not None and x.start else None
        if x.agreed.offer == SPARE or not x.start:
            return None
        end = min(int(self._hidden.present.jobs["stop"][x.agreed.row]), self.horizon + 1)
        if not duration or x.start + duration > end:
            return x.start, None
        return x.start, x.agreed.rate * x.width * duration

    def _owed(self, x: WaitingJob, used: int) -> float:
        if not isinstance(x.agreed, Taken):
            return super()._owed(x, used)
        return 0.0 if x.agreed.offer == SPARE else x.agreed.rate * x.width * used

    # -- one round ------------------------------------------------------------------------------------------

    def _depart(self, now: int) -> list[Moved]:
        """Remove the jobs that can bring nothing any more, and learn from all that have left."""
        moved: list[Moved] = []
        for row, start, ran in self._hidden.begin_round(now):
            x = self._in_row[row]
            if start:
                self._end_run(x, now)
            self._leave(x)
            moved.append((x, EventKind.EVICT if ran else EventKind.DROP, 0.0))
        for row in self._hidden.gone:
            del self._in_row[row]
        return moved

    def _choose(self, x: WaitingJob, now: int) -> bool:
        """Let a job that has arrived take the entry it likes best; return whether it takes one."""
        self._hidden.counts(x.width)
        report = report_of(x)
        keep = self._menus is not None and self._kept(x.job)
        if report is None and not keep:
            return False
        menu = self._hidden.menu(now, self._unbooked)
        if self._menus is not None and keep:
            self._menus[x.job] = menu.kept()
        if report is None:
            return False
        entries = menu.entries(report)
        chosen = self._preferred(x, entries.values)
        if chosen is None:
            return False
        row = self._hidden.take(report, menu, entries, chosen)
        taken = self._hidden.present.jobs[row]
        x.agreed = Taken(row, int(taken["offer"]), float(taken["rate"]))
        self._in_row[row] = x
        return True

    def _preferred(self, x: WaitingJob, values: NDArray[np.float64]) -> tuple[int, int] | None:
        """Return the entry that a job takes of those announced to it, see `announced.preferred`."""
        return preferred(values, self._hidden.first_offer(x.restarts))

    def _serve(self, now: int) -> list[Moved]:
        """Take nodes back and start runs."""
        held = self._hidden.held
        room = self.capacity - held[REGULAR]
        free = room
        if self._books:
            free, room = int(self._free[now - 1]), int(self._free[now - 1 : now - 1 + self.max_duration].min())
        taken, started = self._hidden.serve(now, free - held[SPARE], room)
        moved: list[Moved] = []
        for row, _ in taken:
            x = self._in_row[row]
            self._end_run(x, now)
            if not self._requeue:
                self._leave(x)
            moved.append((x, EventKind.REQUEUE if self._requeue else EventKind.EVICT, 0.0))
        for row in started:
            x = self._in_row[row]
            x.start = now
            self._book(x, now, -1)
            moved.append((x, EventKind.START, 0.0))
        return moved

    def _end_run(self, x: WaitingJob, now: int) -> None:
        """Note that a run has ended before round ``now``."""
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
            self._free[now - 1 : x.start + self.max_duration - 1] += sign * x.width

    def _unbooked(self, now: int) -> NDArray[np.int64] | int:
        """Return the nodes of the coming rounds that no job of revealed duration has, shape (ahead,), or all."""
        if not self._books:
            return self.capacity
        found = np.full(self._ahead, self.capacity)
        known = self._free[now - 1 : now - 1 + self._ahead]
        found[: known.size] = known
        for x in self._in_row.values():
            if x.start and x.agreed.offer == REGULAR:
                found[: max(0, min(known.size, x.start + self.max_duration - now))] += x.width
        return found

    def _run_on(self, supply: NDArray[np.float64]) -> None:
        """Count each regular run, booked for max_duration, as long as runs of its width usually go on."""
        now, n, hidden = self._round, supply.size, self._hidden
        for row, x in self._in_row.items():
            if x.start and x.agreed.offer == REGULAR:
                age, usual = now - x.start, float(hidden.learnt.usual_rounds[hidden.present.jobs["band"][row]])
                supply[: max(0, min(n, self.max_duration - age))] += x.width
                supply[: max(0, min(n, round(max(1.0, usual - age, 0.5 * age))))] -= x.width
