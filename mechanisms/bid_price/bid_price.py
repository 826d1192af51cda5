r"""Bid prices: a job that has arrived faces a menu of starts at prices that its report cannot move.

The field calls it bid-price control (Talluri and van Ryzin 1998), re-solved in every round (Jasin and
Kumar 2012); here it is posted as a menu of starts. At the beginning of each round with arrivals:

1. scenarios of what is to come (`forecast`), from arrivals of earlier rounds, yesterday's among them where there is a
   log (`past`), or from public laws;
2. one vector of prices for all of them (`curve`, `dual`), with some nodes kept back (`slack`); with ``buckets`` one
   for each bucket of owners, made from what the owners of the other buckets reported;
3. *durations revealed*: in order of arrival, each job gets its favourite entry of the calendar
   (`entries`), booked for good, and pays what was quoted when it completes;
   *durations hidden*: the mean price of the coming 24 rounds is locked as the rate R of all arrivals of
   the round; jobs wait in a `queue`, at its turn one starts when its c nodes are free, and leaves when
   no start can bring it anything; it pays R c times the rounds used.

A statement is used for nothing before its job has arrived, and menu, calendar and queue then come from
earlier arrivals alone, so a report only selects: with revealed durations the truth gets the best entry
of a menu that no report of one's own changes (for a larger declared width entries vanish and prices
rise; with a smaller one the job cannot run). Per job, regret is 0 up to 1e-12, ex post, whatever others do.
With hidden durations no report moves one's own first turn, nor R, and what is best from then on is chosen.
No job is evicted, but one that outlives ``max_duration``, or the duration that the platform saw.

What the theorem leaves open: an owner's *past* jobs teach the prices (with buckets only through the
calendar), and *when* to declare an arrival (docs/mathematics.md, Bid prices, numbers the equations).

References
----------
.. [TVR98] Talluri, van Ryzin: An Analysis of Bid-Price Controls for Network Revenue Management,
   Management Science 44 (1998) 1577-1593.
.. [JK12] Jasin, Kumar: A Re-Solving Heuristic with Bounded Revenue Loss for Network Revenue Management
   with Customer Choice, Mathematics of Operations Research 37 (2012) 313-345.
"""

from __future__ import annotations

import copy
from collections.abc import Hashable, Iterable, Sequence
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from marketsched.mechanisms.arrays import grown
from marketsched.mechanisms.auctions.hidden_turn import (
    BY_DEFAULT,
    best_stops,
    charged_rounds,
    favourites,
    last_completion,
)
from marketsched.mechanisms.auctions.turns import ArrivalTurn
from marketsched.mechanisms.auctions.waiting_job import NOT_YET, WaitingJob
from marketsched.mechanisms.bid_price.curve import Curve, Slack, bucket_of
from marketsched.mechanisms.bid_price.entries import ArrivalMenu, LockedRate, best_entry, entry_price
from marketsched.mechanisms.bid_price.forecast import Forecast, FromHistory, FromLaws, check_sources, lags_in_rounds
from marketsched.mechanisms.bid_price.kept_menus import KeptMenus
from marketsched.mechanisms.bid_price.past import AnyPast, PastLog
from marketsched.mechanisms.bid_price.queue import Queued, foresee, serve_queue
from marketsched.mechanisms.bid_price.returning import Returning
from marketsched.mechanisms.columns import NEVER, JobColumns, Outcomes
from marketsched.mechanisms.law import Signal
from marketsched.mechanisms.legal import Amount, Count, Finite, ListOf, Maybe, Positive, Seed, Whole, legal
from marketsched.mechanisms.mechanism import JobId, Standing, Truthful
from marketsched.mechanisms.promises import state_promises
from marketsched.mechanisms.signals import Signals
from marketsched.mechanisms.statement_law import StatementLaw, statement_laws

LONGEST_WINDOW = 10_000  # rounds ahead: the tables of a step grow with it
RATE_WINDOW = 24  # rounds whose mean price is the rate of hidden durations
MOST_BUCKETS = 64


class BidPrice(KeptMenus):
    """Sell node time at arrival, at prices estimated from past arrivals or from public laws.

    A price estimates the value of a node to later jobs. A start costs the sum of the prices of its rounds. An arrived
    job gets the start with the highest surplus (value less price) by its own report, or none, and pays the announced
    price when it completes. A report does not change its own prices. If durations are hidden, jobs wait in a queue,
    each at one rate that is announced at its arrival (docs/mathematics.md, Bid prices).

    Parameters
    ----------
    capacity, horizon, max_concurrency, max_duration, max_value, max_delay
        The sizes of the market, as `MarketLimits`.
    forecast : "history" or "laws"
        Source of the scenarios of later arrivals: arrivals of earlier rounds, or draws of public laws.
    laws : iterable of StatementLaw, optional
        Of all jobs, where ``forecast`` is "laws".
    history : PastLog, optional
        From history: arrivals before round 1, so that lags can reach back from the first round on. In a scenario the
        folder of a finished run, or a workload (docs/scenarios.md).
    lags : sequence of int, optional
        From history: how many rounds ago the arrivals of each scenario came; by default 48, 72, 96 and 120.
    lag_hours : sequence of float, optional
        The same in hours, in place of ``lags``: as many whole rounds of the market's own, at least one.
    round_seconds : float, optional
        Length of a round, for ``lag_hours``; None: not known, five minutes.
    recurring : bool
        From history: whether owners who come at even intervals are expected at their next ones, in place of the lags.
    buckets : int
        Number of groups of owners; each has prices of its own, from the reports of the other groups (a descent each).
    bucket_seed : int
        Public; determines owners' buckets.
    scenarios : int
        From laws: number of draws.
    ahead : int
        H: prices are made for the current round and H more.
    tail : bool
        Whether a later round costs the mean of the last 24; else nothing.
    steps : int, optional
        Subgradient steps in a round; by default 20 from history, 10 from laws.
    step : float
        Length of the first step, in mean values per node-round.
    slack, slack_gain, slack_ramp : float, float, int
        See `Slack`.
    hidden_order : "strict" or "sealed"
        Of jobs whose durations are hidden: see `queue`.
    stop_at_deadline, stop_at_loss : bool
        When runs of hidden durations are stopped, as in `FirstCome`.
    signals : {"durations", "labels"}
        Meaning of a whole number observed at arrival: the duration, or a label (the duration is then hidden).
    rng : Generator, int or None
        Draws the scenarios from the laws; nothing else is random.

    Raises
    ------
    InvalidParameterError
        If laws are missing or not wanted, or the history is of another market.

    Examples
    --------
    >>> from marketsched.mechanisms import DeadlineValue, StatementOfWork
    >>> market = BidPrice(1, 9, max_concurrency=1, max_duration=3, max_value=9.0, max_delay=9)
    >>> plan = market.submit("A", StatementOfWork(1, 1, DeadlineValue(4.0, 5), [(1, 2, 1.0)]))
    >>> market.arrive("A", 2)
    >>> [event.kind.value for _ in range(2) for event in market.advance()], market.complete("A").payment
    (['start'], 0.0)
    """

    truthful: ClassVar[Truthful] = "ex post"
    truthful_hidden: ClassVar[Truthful] = "none"
    hidden_alone: ClassVar[bool] = True
    standing: ClassVar[Standing] = Standing(
        "proved",
        "no job is evicted for another",
        "arrivals so far; better: laws, or yesterday's log",
        BY_DEFAULT + ", if no job reveals its own",
        lie="a nearer deadline or a larger value",
    )
    certified_as: ClassVar[str] = "a menu at arrival, from which a report selects, and whose entry it pays"

    @legal
    def __init__(
        self,
        *sizes: Any,
        forecast: Literal["history", "laws"] = "history",
        laws: Iterable[StatementLaw] | None = None,
        history: Annotated[Any, AnyPast()] = None,
        lags: Annotated[Sequence[int] | None, Maybe(ListOf(Whole(1)))] = None,
        lag_hours: Annotated[Sequence[float] | None, Maybe(ListOf(Finite("(0, inf)")))] = None,
        round_seconds: Annotated[float | None, Maybe(Finite("(0, inf)"))] = None,
        recurring: bool = False,
        buckets: Annotated[int, Whole(1, MOST_BUCKETS)] = 1,
        bucket_seed: Seed = 0,
        scenarios: Count = 4,
        ahead: Annotated[int, Whole(1, LONGEST_WINDOW)] = 96,
        tail: bool = False,
        steps: Annotated[int | None, Maybe(Whole(1))] = None,
        step: Positive = 0.4,
        slack: Annotated[float, Finite("[0, 0.3]")] = 0.15,
        slack_gain: Amount = 0.003,
        slack_ramp: Annotated[int, Whole(0)] = 8,
        hidden_order: Literal["strict", "sealed"] = "strict",
        stop_at_deadline: bool = True,
        stop_at_loss: bool = False,
        signals: Signals = "durations",
        rng: np.random.Generator | int | None = None,
        **more: Any,
    ) -> None:
        super().__init__(*sizes, stop_at_deadline=stop_at_deadline or stop_at_loss, **more)
        self.stop_at_loss = stop_at_loss
        state_promises(self, BidPrice, stop_at_deadline, stop_at_loss)
        check_sources(forecast, laws, history, self.limits)
        source: Forecast
        if laws is None:
            in_rounds = lags_in_rounds(lags, lag_hours, round_seconds)
            source = FromHistory(in_rounds, 0 if history is None else history.rounds)
        else:
            last = self.limits.last_useful_completion
            source = FromLaws(statement_laws(laws), scenarios, last, self.max_duration, np.random.default_rng(rng))
        self._order, self._bucket_seed, self._signals = hidden_order, bucket_seed, signals
        self._curves = [
            Curve(
                source, Slack(slack, slack_gain, slack_ramp), capacity=self.capacity, horizon=self.horizon,
                ahead=ahead, step=step, steps=source.steps if steps is None else steps,
                tail=self.max_delay + self.max_duration if tail else 0,
                returning=Returning() if recurring and source.samples_the_past else None,
            )
            for _ in range(buckets)
        ]  # fmt: skip
        self._bucket_of: dict[Hashable, int] = {}
        self._n_seen = 0  # arrivals, those of the history included
        self._reach = self.max_delay + self.max_duration + ahead + 1  # rounds ahead that a step looks at
        self._free = np.zeros(0, dtype=np.int64)  # nodes not booked, by round
        self._keep_calendar()
        if history is not None:
            self._learn_history(history)

    @staticmethod
    def wants_laws(forecast: str = "history", **_: object) -> bool:
        """Tell whether these parameters need the laws of the market."""
        return forecast == "laws"

    def slot_prices(self, first: int, count: int) -> NDArray[np.float64]:
        """Return the price of rounds ``first .. first + count - 1``, credits per node, as last announced.

        With buckets it is the mean of theirs.
        """
        found: NDArray[np.float64] = np.mean([curve.slot_prices(first, count) for curve in self._curves], axis=0)
        return found

    def statistics(self) -> dict[str, float]:
        """Return the share of nodes that is kept back by now; with buckets, the mean of theirs."""
        return {"slack": sum(curve.slack.share for curve in self._curves) / len(self._curves)}

    def bucket_of(self, owner: Hashable) -> int:
        """Return the bucket of an owner, from 0: a hash of the public seed and the owner's name."""
        if len(self._curves) == 1:
            return 0
        if owner not in self._bucket_of:
            self._bucket_of[owner] = bucket_of(owner, len(self._curves), self._bucket_seed)
        return self._bucket_of[owner]

    def turn(self, jobs: JobColumns, outcomes: Outcomes, before: NDArray[np.int64]) -> ArrivalTurn | None:
        """Return the turn of a job that arrives in the current round, see `Mechanism.turn`; None: some are hidden."""
        shown = jobs.revealed[jobs.arrivals != NEVER].all() and self._signals == "durations"
        if not shown or self._menus is not None or len(self._curves) > 1 or self._curves[0].expects_owners:
            return None
        here, useful = copy.copy(self), jobs.useful(self.max_delay, self.horizon)
        here._free, here._curves = self._free.copy(), [copy.copy(self._curves[0])]
        here._keep_calendar()
        here._make_prices(())
        for row in before.tolist():
            x = WaitingJob.of_row(jobs, row, row, row).come(self._round, jobs.seen(row), int(useful[row]))
            here.foresee(x, x.signal)
            start = here._serve_one(x)
            if start:
                here._free[start - 1 : start - 1 + x.limit] -= x.width
        return ArrivalTurn(here, here._serve_one, here._owed)

    def _serve_one(self, x: WaitingJob) -> int | None:
        """Give a job its favourite entry, without booking it."""
        return self._favourite(x, self._curves[0])[0] or None

    def foresee(self, x: WaitingJob, signal: Signal) -> None:
        """Record the value of each start from now on; the signal decides, not the form of the report."""
        foresee(x, self.max_duration, self._signals)

    def serve(self, waiting: Sequence[WaitingJob]) -> list[int | None]:
        """Announce the prices of the round, give every arrival its favourite entry, and start who waits."""
        self._keep_calendar()
        now, arrived = self.round, [x for x in waiting if x.arrival == self.round]
        if arrived:
            self._make_prices([x for x in waiting if x.arrival < now])
        starts = self._serve_revealed([x for x in arrived if not isinstance(x.agreed, Queued)])
        starts |= self._serve_hidden([x for x in waiting if isinstance(x.agreed, Queued)])
        for curve in self._curves:
            curve.slack.round_over(now, float(curve.slot_prices(now, 1)[0] * self._free[now - 1]))
        self._learn(arrived)
        for x in arrived:
            if not isinstance(x.agreed, Queued):
                x.worth = None  # not used again
        self._note_departures(waiting, starts)
        return [starts[x.job] for x in waiting]

    def unchanged_until(self) -> int:
        """Return a round before which nothing moves if no job comes or ends: nobody who waits finds its nodes free."""
        idle, until = self._free[self._round - 1], min((*self._booked, *self._ending), default=self.horizon + 1)
        for x in self._waiting:
            if idle >= x.width:
                return self._round
            until = min(until, x.arrival + x.agreed.lasting)
        return until

    def pass_rounds(self, until: int, ahead: int = 1) -> NDArray[np.float64] | None:
        """Let the rounds before ``until`` go by; their idle nodes move the share that is kept back."""
        first, self._round = self._round, until - 1
        self._keep_calendar()
        idle = self._free[first - 1 : until - 1]
        for curve in self._curves:
            curve.slack.rounds_over(first, curve.slot_prices(first, idle.size) * idle)
        self._round = first
        return super().pass_rounds(until, ahead)

    def charge(self, x: WaitingJob) -> float:
        """Free bookings beyond the end, and charge the quoted prices of the rounds used."""
        self.give_back(x)
        return self._owed(x, self.round - x.start)

    def last_completion(self, x: WaitingJob) -> int:
        """Return the completion time after which a run is stopped: with ``stop_at_loss`` the best for its owner."""
        last, agreed = super().last_completion(x), x.agreed
        if not isinstance(agreed, Queued) or agreed.stops is None:
            return last
        rounds, cost = int(agreed.stops[x.start - x.arrival]), agreed.rate * x.width
        return last_completion(x.sow.value, agreed.law, x.start, rounds, last, cost)

    def charge_stopped(self, x: WaitingJob, used: int) -> float:
        """Charge the rounds used by a run of hidden duration, with ``stop_at_loss``."""
        return self._owed(x, used) if isinstance(x.agreed, Queued) and x.agreed.stops is not None else 0.0

    def give_back(self, x: WaitingJob) -> None:
        """Free bookings beyond the end."""
        self._free[self.round - 1 : x.start + x.limit - 1] += x.width

    def booked(self, job: JobId, duration: int | None) -> tuple[int, float | None] | None:
        """Return start and payment of a job that runs so long, once it has its start; None before."""
        return self._kept_booking(job, duration, self._owed)

    def _owed(self, x: WaitingJob, used: int) -> float:
        if isinstance(x.agreed, Queued):
            return x.agreed.rate * x.width * used
        return entry_price(x.agreed, x.start, x.width, x.start, used)

    def _keep_calendar(self) -> None:
        """Let the calendar hold every round that this one's decisions can touch."""
        end = self.round + self._reach
        self._free = grown(self._free, end, self.horizon, self.capacity, "the calendar")

    def _make_prices(self, queue: Sequence[WaitingJob]) -> None:
        """Announce the prices of the current round and those ahead; no report of a job that arrives in it is used."""
        for curve in self._curves:
            curve.announce(self._round, self._free, self._run_on, queue, self._share_of(curve))

    # -- service --------------------------------------------------------------------------------------------

    def _serve_revealed(self, arrived: Sequence[WaitingJob]) -> dict[JobId, int | None]:
        """Give each arrival its favourite entry, in order of submission, and book it."""
        now, starts = self.round, {}
        lost, heard = [0.0] * len(self._curves), [False] * len(self._curves)
        for x in arrived:
            width, own = x.width, self._curves[self.bucket_of(x.owner)]
            assert x.worth is not None
            if self._menus is not None and self._kept(x.job):
                self._menus[x.job] = ArrivalMenu(now, self._free[now - 1 :].copy(), own.prefix)
            for b, curve in self._listeners(x.owner):
                if curve is not own:
                    lost[b], heard[b] = lost[b] + curve.surplus_lost(self._free, now, x, x.worth), True
            start, surplus, best = self._favourite(x, own)
            if len(self._curves) == 1:
                lost[0], heard[0] = lost[0] + (best - surplus), True
            starts[x.job] = start or None
            if start:
                self._free[start - 1 : start - 1 + x.limit] -= width
        for b, curve in enumerate(self._curves):
            if heard[b]:
                curve.slack.arrivals_served(lost[b] * self._share_of(curve))
        return starts

    def _favourite(self, x: WaitingJob, curve: Curve) -> tuple[int, float, float]:
        """Return the favourite entry of an arrival, as `best_entry` does, and note its prices for `charge`."""
        now = self.round
        assert x.worth is not None
        start, surplus, best = best_entry(self._free, curve.prefix, now, x.width, x.limit, x.worth)
        if start:
            x.agreed = curve.prefix[min(start - now, curve.prefix.size - 1) :][: x.limit + 1].copy()
            x.agreed.flags.writeable = False  # copies of the market share it
        return start, surplus, best

    def _serve_hidden(self, queue: Sequence[WaitingJob]) -> dict[JobId, int | None]:
        """Lock the rate of those who have just arrived, and offer nodes to the queue."""
        now = self.round
        rates = [float(curve.slot_prices(now, RATE_WINDOW).mean()) for curve in self._curves] if queue else []
        for x in queue:
            if x.arrival == now:
                x.agreed.rate = rates[self.bucket_of(x.owner)]
                x.agreed.surplus = self._surplus(x)
                x.agreed.favourites = favourites(x.agreed.surplus)
                if self._menus is not None and self._kept(x.job):
                    self._menus[x.job] = LockedRate(now, x.agreed.rate)
        return serve_queue(queue, self._free, now, self._order)

    def _surplus(self, x: WaitingJob) -> NDArray[np.float64]:
        """Return what starts from the arrival of a job on are expected to bring at its locked rate, credits."""
        law, cost = x.agreed.law, x.agreed.rate * x.width
        if self.stop_at_loss:
            last, end = super().last_completion(x), self.horizon + 1
            surplus, x.agreed.stops = best_stops(x.sow.value, law, x.arrival, last, end, cost)
            return surplus
        assert x.worth is not None
        return x.worth - float(cost) * charged_rounds(law, x.arrival, x.worth.size, self.horizon + 1)

    def _run_on(self, supply: NDArray[np.float64]) -> None:
        """Count each running job of hidden duration, booked for max_duration, as long as it is expected to run."""
        now, n = self._round, supply.size
        for x in self._running.values():
            if isinstance(x.agreed, Queued):
                age, residuals = now - x.start, x.agreed.residuals
                supply[: max(0, min(n, x.limit - age))] += x.width
                left = float(residuals[min(age, residuals.size - 1)])
                whole = min(n, int(left))
                supply[:whole] -= x.width
                if whole < n:
                    supply[whole] -= x.width * (left - int(left))

    # -- what teaches the prices ----------------------------------------------------------------------------

    def _listeners(self, owner: Hashable) -> list[tuple[int, Curve]]:
        """Return the curves that an owner's reports teach, and their numbers: all but its own, or the only one."""
        numbered = list(enumerate(self._curves))
        return numbered if len(numbered) == 1 else [each for each in numbered if each[0] != self.bucket_of(owner)]

    def _share_of(self, curve: Curve) -> float:
        """Return how many arrivals there were for each one that a curve has learnt from."""
        return self._n_seen / curve.past.n if curve.past.n else 1.0

    def _learn(self, arrived: Sequence[WaitingJob]) -> None:
        """Take the arrivals of this round into the past: from now on they may teach."""
        self._n_seen += len(arrived)
        alone = len(self._curves) == 1 and not self._curves[0].expects_owners
        if alone and arrived and not any(isinstance(x.agreed, Queued) for x in arrived):
            self._curves[0].learn_together(arrived, self.round)
            return
        for x in arrived:
            assert x.worth is not None
            sealed = self._order == "sealed" and x.width > 1
            for _, curve in self._listeners(x.owner):
                if isinstance(x.agreed, Queued):
                    curve.learn_queued(x, sealed)
                else:
                    curve.learn(x.owner, self.round, x.mean, x.width, x.worth)

    def _note_departures(self, waiting: Sequence[WaitingJob], starts: dict[JobId, int | None]) -> None:
        for x in waiting:
            if isinstance(x.agreed, Queued) and starts[x.job] != NOT_YET:
                for _, curve in self._listeners(x.owner):
                    curve.left_queue(x, self.round - x.arrival)

    def _learn_history(self, history: PastLog) -> None:
        """Take yesterday's arrivals into the past, its last round as round 0."""
        arrivals = [each for each in history.arrivals if each.arrival <= history.rounds]
        for each in sorted(arrivals, key=lambda each: each.arrival):
            useful = history.limits.last_useful_completion(each.sow)
            x = WaitingJob(None, 0, each.sow, each.owner).come(each.arrival, each.signal, useful)
            foresee(x, history.limits.max_duration, self._signals)
            assert x.worth is not None
            for _, curve in self._listeners(each.owner):
                curve.learn(each.owner, each.arrival - history.rounds, x.mean, x.width, x.worth)
        self._n_seen += len(arrivals)
