r"""Bid prices on a cluster: jobs choose among shapes, kinds of nodes, starts and lengths at prices they cannot move.

The rules of `marketsched.mechanisms.bid_price`, for several resources. At the beginning of each round with arrivals:

1. one price for each pool, resource and coming round, from the joint dual of all scenarios (`prices`, `dual`);
2. in order of arrival, each job gets its favourite of all entries for which a placement exists (`menus`, `calendars`);
3. the entry's tasks are placed by a public rule (`placement`), for good: no job is moved or stopped early;
4. at the end of its run the job pays what was quoted for the rounds it used, and frees the rest. A run that is not done
   at the end of its booking is stopped there, and pays for all of it.

A report is used for nothing before its job's arrival, and prices and calendars then come from others alone, so it only
selects. What it selects is of use if the tasks of a true shape can run inside it; then the booked nodes are themselves
a placement of that shape, so the test being exact it is on the menu as well, and prices being linear it costs no more.
Where the duration is hidden, the shape is chosen before it shows (`bookings`), a booking is worth what its shape is
expected to bring less what it is expected to pay, stopped runs included, and the same holds on average over the job's
own duration. So for every job the truth is best, exactly, whatever others do: values, deadlines, shapes left out or
invented, kinds, widths, demands and durations.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from marketsched.mechanisms.auctions.waiting_job import WaitingJob
from marketsched.mechanisms.bid_price.bid_price import LONGEST_WINDOW
from marketsched.mechanisms.bid_price.curve import Slack
from marketsched.mechanisms.bid_price.forecast import FromHistory, check_sources, lags_in_rounds
from marketsched.mechanisms.bid_price.kept_menus import KeptMenus
from marketsched.mechanisms.bid_price.past import AnyPast, PastLog
from marketsched.mechanisms.law import Signal
from marketsched.mechanisms.legal import Amount, Count, Finite, ListOf, Maybe, Positive, Share, Whole, legal
from marketsched.mechanisms.mechanism import JobId, Standing, Truthful
from marketsched.mechanisms.promises import CHARGES_STOPS
from marketsched.mechanisms.resources.bookings import Booking
from marketsched.mechanisms.resources.calendars import Calendars
from marketsched.mechanisms.resources.cluster_market import ClusterMarket
from marketsched.mechanisms.resources.known import Known, known_at_arrival
from marketsched.mechanisms.resources.menus import ClusterMenu
from marketsched.mechanisms.resources.placement import Rule, TaskTypes
from marketsched.mechanisms.resources.prices import (
    ClusterPrices,
    ShapesForecast,
    ShapesOfLaws,
    ShapesOfThePast,
    window_of,
)
from marketsched.mechanisms.resources.service import Terms, book_favourite
from marketsched.mechanisms.statement_law import StatementLaw, statement_laws

STOPPED = "a run that outlasts its booking pays for the rounds that it held"
GAIN_OF_ONE_POOL = 0.003  # of the slack rule, which does not suit several pools: some favourite is always taken


class ClusterBidPrice(KeptMenus, ClusterMarket):
    """Menus at arrival on a cluster, at bid prices (see the module for the rules).

    Parameters
    ----------
    capacity, horizon, max_concurrency, max_duration, max_value, max_delay, cluster, signals
        As of `ClusterMarket`.
    forecast, laws, history, lags, lag_hours, round_seconds, scenarios, step, rng
        As of `BidPrice`.
    ahead : int, optional
        H: prices are made for the current round and H more. Starts behind them would be free, and so it is by default
        as long as jobs are patient (`window_of`).
    steps : int
        Subgradient steps in a round.
    slack, slack_gain, slack_ramp : float, float, int
        See `Slack`; by default the share stays as it is unless there is one pool with one resource.
    placement : {"fgd", "best", "first", "worst"}
        Which nodes a booking gets, see `placement`.
    tail : bool, optional
        Whether the price goes on behind the H rounds, at the mean of the last 24. By default it does with laws or a
        history.
    phi : float
        Share of the price of booked rounds that is paid for those not used.

    Raises
    ------
    InvalidParameterError
        If laws are missing or not wanted, or the history is of another market.

    Examples
    --------
    >>> from marketsched.mechanisms import DeadlineValue, StatementOfWork
    >>> from marketsched.mechanisms.resources.cluster import Cluster, NodeGroup, Resource
    >>> from marketsched.mechanisms.resources.shapes import Shape
    >>> gpu = Resource("gpu", parts=1000, device=True)
    >>> cluster = Cluster((gpu,), [NodeGroup("a", "a100", 1, {"gpu": 8}), NodeGroup("v", "v100", 2, {"gpu": 4})])
    >>> sizes = {"max_concurrency": 4, "max_duration": 9, "max_value": 99.0, "max_delay": 30}
    >>> market = ClusterBidPrice(3, 40, cluster=cluster, **sizes)
    >>> shapes = [Shape({"gpu": 8}, {"a100": 4}), Shape({"gpu": 4}, {"v100": 6}, tasks=2, per_node=1)]
    >>> for name in "AB":
    ...     plan = market.submit(name, StatementOfWork.of_shapes(1, DeadlineValue(9.0, 8), 1, shapes))
    >>> for name in "AB":
    ...     market.arrive(name, 4)
    >>> [str(event.kind) for event in market.advance()], market.booking("A").kind, market.booking("B").kind
    (['start', 'start'], 'a100', 'v100')
    """

    truthful: ClassVar[Truthful] = "ex post"
    truthful_hidden: ClassVar[Truthful] = "in expectation"
    standing: ClassVar[Standing] = Standing(
        "proved",
        "in values, shapes, kinds, demands and durations; no job is moved or evicted for another",
        "a cluster, or identical nodes; arrivals so far; better: public laws, or yesterday's log",
    )
    does_not_claim: ClassVar[Mapping[str, str]] = dict.fromkeys(CHARGES_STOPS, STOPPED)
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
        scenarios: Count = 4,
        ahead: Annotated[int | None, Maybe(Whole(1, LONGEST_WINDOW))] = None,
        steps: Count = 10,
        step: Positive = 0.4,
        slack: Annotated[float, Finite("[0, 0.3]")] = 0.15,
        slack_gain: Amount | None = None,
        slack_ramp: Annotated[int, Whole(0)] = 8,
        placement: Rule = "fgd",
        tail: bool | None = None,
        phi: Share = 0.0,
        rng: np.random.Generator | int | None = None,
        **more: Any,
    ) -> None:
        super().__init__(*sizes, **more)
        check_sources(forecast, laws, history, self.limits)
        past: PastLog | None = history
        source: ShapesForecast
        if laws is None:
            in_rounds = lags_in_rounds(lags, lag_hours, round_seconds)
            source = ShapesOfThePast(FromHistory(in_rounds, 0 if past is None else past.rounds))
        else:
            drawn_by = np.random.default_rng(rng)
            source = ShapesOfLaws(statement_laws(laws), scenarios, self.cluster, self.limits, drawn_by)
        goes_on = (laws is not None or past is not None) if tail is None else tail
        if slack_gain is None:
            slack_gain = GAIN_OF_ONE_POOL if self.cluster.layout.pool_size.size == 1 else 0.0
        ahead = min(window_of(self.max_delay), LONGEST_WINDOW) if ahead is None else ahead
        self._prices = ClusterPrices(
            source, Slack(slack, slack_gain, slack_ramp), self.cluster, horizon=self.horizon, ahead=ahead,
            tail=self.max_duration if goes_on else 0, step=step, steps=steps,
        )  # fmt: skip
        self._rule, self._phi = placement, phi
        self._types = TaskTypes(len(self.cluster.resources))
        self._reach = max(self.max_delay + self.max_duration, ahead) + 1
        self._calendars = Calendars(self.cluster, self._reach)
        self._known: dict[JobId, Known] = {}  # of this round's arrivals
        self._in_use = 0
        if past is not None:
            self._learn_history(past)

    @staticmethod
    def wants_laws(forecast: str = "history", **_: object) -> bool:
        """Tell whether these parameters need the laws of the market."""
        return forecast == "laws"

    @property
    def load(self) -> int:
        """Nodes on which something ran in the round just cleared; on identical nodes, those of all jobs."""
        return super().load if self.limits.cluster is None else self._in_use

    def nodes_in_use(self) -> int | None:
        """Return `load`: several jobs may share a node. None on identical nodes, where widths add up."""
        return None if self.limits.cluster is None else self._in_use

    def pool_prices(self, first: int, count: int) -> NDArray[np.float64]:
        """Return the prices of rounds ``first, first + 1, ...``, credits per part, as last announced.

        Shape (n_pools, n_resources, count); 0 outside the rounds that have a price of their own.
        """
        prices = self._prices.prices
        found = np.zeros((*prices.shape[:2], count))
        low = max(0, first - self._prices.first)
        known = prices[:, :, low : max(0, first - self._prices.first + count)]
        found[:, :, : known.shape[2]] = known
        return found

    def slot_prices(self, first: int, count: int) -> NDArray[np.float64]:
        """Return the price of an average node in rounds ``first, first + 1, ...``, credits, shape (count,)."""
        sold = self.cluster.layout.pool_size[:, :, None] * self.pool_prices(first, count)
        average: NDArray[np.float64] = sold.sum(axis=(0, 1)) / self.cluster.nodes
        return average

    def statistics(self) -> dict[str, float]:
        """Return the share of every pool that is kept back by now."""
        return {"slack": self._prices.slack.share}

    def foresee(self, x: WaitingJob, signal: Signal) -> None:
        """Note where the job can run, for how long, and what completions are worth."""
        self._known[x.job] = known_at_arrival(x.sow, self.cluster, self.round, signal, self.limits, self._signals)

    def serve(self, waiting: Sequence[WaitingJob]) -> list[int | None]:
        """Announce the prices of the round, and give every arrival its favourite entry, placed and booked."""
        now = self.round
        self._calendars.move_to(now)
        if waiting:
            self._prices.announce(now, self._calendars)
        lost = [self._serve_one(x, self._known[x.job]) for x in waiting]
        if waiting:
            self._prices.slack.arrivals_served(sum(lost))
        self._prices.slack.round_over(now, self._prices.idle_worth(now, self._calendars))
        for x in waiting:  # from the next round on they may teach
            self._prices.learn(now, self._known[x.job])
            options = self._known[x.job].options
            for row in np.unique(options.shape, return_index=True)[1]:  # of each shape that can run
                self._types.add(options.demand[row], int(options.tasks[row]))
        self._known.clear()
        busy = self._calendars.state(now, 1)[0][:, :, 0] < self.cluster.layout.size
        self._in_use = int(busy.any(axis=1).sum())
        return [x.start or None for x in waiting]

    def booking(self, job: JobId) -> Booking | None:
        """Return the booking of a job of a cluster; None: nothing yet, or identical nodes."""
        x = self._jobs.get(job)
        return x.agreed if x is not None and self.limits.cluster is not None else None

    def booked(self, job: JobId, duration: int | None) -> tuple[int, float | None] | None:
        """Return start and payment of a job that runs so long, once it has its start; None before."""
        return self._kept_booking(job, duration, self._owed)

    def _owed(self, x: WaitingJob, used: int) -> float:
        return float(x.agreed.owed(used))

    def charge(self, x: WaitingJob) -> float:
        """Free bookings beyond the end, and charge the quoted prices of the rounds used."""
        self.give_back(x)
        return self._owed(x, self.round - x.start)

    def charge_stopped(self, x: WaitingJob, used: int) -> float:
        """Charge the rounds that a run held until the end of its booking, at which it is stopped.

        Of a job with shapes the platform sees the same as a completion that is worth nothing, which `charge` charges.
        """
        return self._owed(x, used)

    def charge_unfinished(self, x: WaitingJob) -> float:
        """Charge a run whose booking ends with the last round."""
        return self.charge_stopped(x, self.round - x.start) if self.runs(x) else 0.0

    def give_back(self, x: WaitingJob) -> None:
        """Free bookings beyond the end."""
        agreed: Booking = x.agreed
        self._calendars.release(agreed.wanted, agreed.placed, self.round, agreed.start + agreed.length)

    def _serve_one(self, x: WaitingJob, known: Known) -> float:
        """Book the favourite entry of one arrival; return what it lost since the cluster is not empty, credits."""
        now, prefix = self.round, self._prices.prefix
        if self._menus is not None and self._kept(x.job):
            self._menus[x.job] = ClusterMenu(now, prefix, *self._calendars.state(now, self._reach), self._phi)
        terms = Terms(now, prefix, self.horizon - now + 1, self._phi, self._rule)
        lost, agreed = book_favourite(known, terms, self._calendars, self._types)
        if agreed is not None:
            x.agreed, x.start, x.limit = agreed, agreed.start, agreed.length
        return lost

    def _learn_history(self, past: PastLog) -> None:
        """Take yesterday's arrivals into the past, its last round as round 0."""
        for each in sorted((a for a in past.arrivals if a.arrival <= past.rounds), key=lambda a: a.arrival):
            known = known_at_arrival(each.sow, self.cluster, each.arrival, each.signal, past.limits, self._signals)
            self._prices.learn(each.arrival - past.rounds, known)
