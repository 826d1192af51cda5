r"""Bid prices: a job that has arrived faces a menu of starts at prices that its report cannot move.

The field calls it bid-price control (Talluri and van Ryzin 1998), re-solved in every round (Jasin and
Kumar 2012); here it is posted as a menu of starts. At the beginning of each round with arrivals:

1. scenarios of what is to come (`forecast`), from arrivals of earlier rounds or from public laws;
2. one vector of prices for all of them (`dual`), with some nodes kept back (`slack`);
3. *durations revealed*: in order of arrival, each job gets its favourite entry of the calendar
   (`entries`), booked for good, and pays what was quoted when it completes;
   *durations hidden*: the mean price of the coming 24 rounds is locked as the rate R of all arrivals of
   the round; jobs wait in strict order, the first one starts when its c nodes are free and leaves when
   E[V] > R c E[d] no longer holds; it pays R c times the rounds used.

A statement is used for nothing before its job has arrived, and menu, calendar and queue then come from
earlier arrivals alone, so a report only selects: with revealed durations the truth gets the best entry
of a menu that no report of one's own changes (for a larger declared width entries vanish and prices
rise; with a smaller one the job cannot run). Regret is 0 up to 1e-12, ex post, whatever others do.
With hidden durations V does not rise and R is locked, so the first turn with positive expected surplus
is the best one. Nobody is evicted, but a job that outlives ``max_duration``.

What the theorem leaves open: an owner's *past* jobs teach the prices, and *when* to declare an arrival
(docs/mathematics.md, Bid prices, which also numbers the equations).

References
----------
.. [TVR98] Talluri, van Ryzin: An Analysis of Bid-Price Controls for Network Revenue Management,
   Management Science 44 (1998) 1577-1593.
.. [JK12] Jasin, Kumar: A Re-Solving Heuristic with Bounded Revenue Loss for Network Revenue Management
   with Customer Choice, Mathematics of Operations Research 37 (2012) 313-345.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray

from marketsched.mechanisms.auctions.arrival_market import NOT_YET, ArrivalMarket, WaitingJob
from marketsched.mechanisms.bid_price.dual import dual_prices
from marketsched.mechanisms.bid_price.entries import TOLERANCE, ArrivalMenu, best_entry, entry_price
from marketsched.mechanisms.bid_price.forecast import Forecast, FromHistory, FromLaws, with_waiting
from marketsched.mechanisms.bid_price.slack import Slack
from marketsched.mechanisms.bid_price.tasks import TaskStore
from marketsched.mechanisms.errors import EventError, InvalidParameterError
from marketsched.mechanisms.mechanism import JobId
from marketsched.mechanisms.memory import check_memory
from marketsched.mechanisms.ranges import Amount, Count, Finite, ListOf, Maybe, Positive, Whole, checked
from marketsched.mechanisms.sow import Signal
from marketsched.mechanisms.statement_law import StatementLaw, statement_laws

LONGEST_WINDOW = 10_000  # rounds ahead: the tables of a step grow with it
RATE_WINDOW = 24  # rounds whose mean price is the rate of hidden durations


@dataclass(slots=True, eq=False)
class _Hidden:
    """What is noted of a job whose duration is hidden."""

    residuals: NDArray[np.float64]  # rounds left after 0, 1, ... rounds, on average
    rate: float = 0.0  # credits per node and round, locked when it arrived
    row: int = -1  # in the store of past arrivals


class BidPrice(ArrivalMarket):
    """Menus at arrival at bid prices (see the module for the rules).

    Parameters
    ----------
    capacity, horizon, max_concurrency, max_duration, max_value, max_delay
        The sizes of the market, as `MarketLimits`.
    forecast : "history" or "laws"
        Where scenarios come from: arrivals of earlier rounds, or draws of public laws.
    laws : iterable of StatementLaw, optional
        Of all jobs, where ``forecast`` is "laws".
    lags : sequence of int
        From history: how many rounds ago the arrivals of each scenario came.
    scenarios : int
        From laws: how many draws.
    ahead : int
        H: prices are made for the current round and H more; later ones are free.
    steps : int, optional
        Subgradient steps in a round; by default 10 from history, 5 from laws.
    step : float
        Length of the first step, in mean values per node-round.
    slack, slack_gain, slack_ramp : float, float, int
        See `Slack`.
    keep_menus : bool
        Keep what each job faces when it is served, for `menu_at_arrival`.
    rng : Generator, int or None
        Draws the scenarios from the laws; nothing else is random.

    Raises
    ------
    InvalidParameterError
        If a parameter is out of range, or laws are missing or not wanted.

    Examples
    --------
    >>> from marketsched.mechanisms import DeadlineValue, StatementOfWork
    >>> market = BidPrice(1, 9, max_concurrency=1, max_duration=3, max_value=9.0, max_delay=9)
    >>> plan = market.submit("A", StatementOfWork(1, 1, DeadlineValue(4.0, 5), [(1, 2, 1.0)]))
    >>> market.arrive("A", 2)
    >>> [event.kind.value for _ in range(2) for event in market.advance()], market.complete("A").payment
    (['start'], 0.0)
    """

    @checked
    def __init__(
        self,
        capacity: Count,
        horizon: Count,
        *,
        max_concurrency: Count,
        max_duration: Count,
        max_value: Positive,
        max_delay: Count,
        forecast: Literal["history", "laws"] = "history",
        laws: Iterable[StatementLaw] | None = None,
        lags: Annotated[Sequence[int], ListOf(Whole(1))] = (48, 72, 96, 120),
        scenarios: Count = 4,
        ahead: Annotated[int, Whole(1, LONGEST_WINDOW)] = 96,
        steps: Annotated[int | None, Maybe(Whole(1))] = None,
        step: Positive = 0.2,
        slack: Annotated[float, Finite("[0, 0.3]")] = 0.15,
        slack_gain: Amount = 0.003,
        slack_ramp: Annotated[int, Whole(0)] = 24,
        keep_menus: bool = False,
        rng: np.random.Generator | int | None = None,
    ) -> None:
        sizes = {"max_concurrency": max_concurrency, "max_duration": max_duration, "max_delay": max_delay}
        super().__init__(capacity, horizon, max_value=max_value, **sizes)
        if (laws is None) != (forecast == "history"):
            raise InvalidParameterError(
                f"forecast = {forecast!r} and {'no ' if laws is None else ''}laws: expected laws, one for each job, "
                "with forecast 'laws', and none with 'history'"
            )
        self._ahead, self._step = ahead, step
        self._slack = Slack(slack, slack_gain, slack_ramp)
        self._past = TaskStore()
        self._forecast: Forecast
        if laws is None:
            self._forecast = FromHistory(lags)
        else:
            last = self.limits.last_useful_completion
            self._forecast = FromLaws(statement_laws(laws), scenarios, last, max_duration, np.random.default_rng(rng))
        self._steps = self._forecast.steps if steps is None else steps
        check_memory(f"the calendar of {self.horizon} rounds", 3 * self.horizon * 8.0, "a smaller horizon")
        self._free = np.full(self.horizon, self.capacity, dtype=np.int64)  # nodes not booked, by round
        self._first = 1  # round of the first price below
        self._iterate = np.zeros(0)  # where the next descent begins
        self._prices = np.zeros(0)  # as announced
        self._prefix = np.zeros(1)
        self._density, self._n_densities = 0.0, 0  # value per node-round of an immediate start, added up
        self._menus: dict[JobId, ArrivalMenu] | None = {} if keep_menus else None

    @staticmethod
    def wants_laws(forecast: str = "history", **_: object) -> bool:
        """Tell whether these parameters need the laws of the market."""
        return forecast == "laws"

    def slot_prices(self, first: int, count: int) -> NDArray[np.float64]:
        """Return the price of rounds ``first .. first + count - 1``, credits per node, as last announced."""
        found = np.zeros(count)
        known = self._prices[max(0, first - self._first) : max(0, first - self._first + count)]
        found[: known.size] = known
        return found

    def menu_at_arrival(self, job: JobId) -> ArrivalMenu:
        """Return what ``job`` faced when it was served; durations revealed, and ``keep_menus`` chosen.

        Raises
        ------
        EventError
            If nothing was kept for the job.
        """
        if self._menus is None or job not in self._menus:
            raise EventError(f"menu of {job!r}: expected a job served with its duration revealed, and keep_menus=True")
        return self._menus[job]

    def statistics(self) -> dict[str, float]:
        """Return the share of nodes that is kept back by now."""
        return {"slack": self._slack.share}

    def foresee(self, x: WaitingJob, signal: Signal) -> None:
        """Note what each start from now on is worth; what the platform sees decides, not the form of the report."""
        duration = _observed_duration(signal)
        if duration is None:
            law, group = x.sow.law, x.sow.law.group_of(self.round, signal)
            # A case that the report excludes: what it says of durations at large is all there is.
            points = slice(None) if group is None else slice(law.offsets[group], law.offsets[group + 1])
            x.limit = self.max_duration
            x.mean, residuals = _mean_and_residuals(law.durations[points], law.probabilities[points], x.limit)
            x.worth = self._expected(x, points) if x.mean else np.zeros(0)
            x.agreed = _Hidden(residuals)
        else:
            x.limit, x.mean = duration, float(duration)
            n_starts = max(0, self.limits.last_useful_completion(x.sow) - duration - self.round + 1)
            x.worth = x.sow.value.table(self.round + duration, n_starts if duration <= self.max_duration else 0)

    def serve(self, waiting: Sequence[WaitingJob]) -> list[int | None]:
        """Announce the prices of the round, give every arrival its favourite entry, and start who waits."""
        now, arrived = self.round, [x for x in waiting if x.arrival == self.round]
        if arrived:
            self._make_prices([x for x in waiting if x.arrival < now])
        revealed = [x for x in arrived if not isinstance(x.agreed, _Hidden)]
        starts = self._serve_revealed(revealed)
        rate = float(self.slot_prices(now, RATE_WINDOW).mean())
        for x in arrived:
            if isinstance(x.agreed, _Hidden):
                x.agreed.rate = rate
        starts |= self._serve_hidden([x for x in waiting if isinstance(x.agreed, _Hidden)])
        self._slack.round_over(now, float(self.slot_prices(now, 1)[0] * self._free[now - 1]))
        self._learn(arrived)
        return [starts[x.job] for x in waiting]

    def charge(self, x: WaitingJob) -> float:
        """Free what was booked beyond the end, and charge what was quoted for the rounds used."""
        used, width = self.round - x.start, x.sow.concurrency
        self._free[self.round - 1 : x.start + x.limit - 1] += width
        if isinstance(x.agreed, _Hidden):
            return x.agreed.rate * width * used
        return entry_price(x.agreed, x.start, width, x.start, used)

    # -- prices ---------------------------------------------------------------------------------------------

    def _make_prices(self, waiting: Sequence[WaitingJob]) -> None:
        """Announce the prices of the current round and those ahead; nobody who arrives in it is heard."""
        now = self._round
        last = min(self.horizon, now + self._ahead)
        n = last - now + 1
        iterate = np.zeros(n)
        kept = self._iterate[now - self._first :][:n]
        iterate[: kept.size] = kept
        expected = self._forecast.expected(now, last, self._past)
        prices = np.zeros(n)
        if expected is not None:
            if waiting:
                rows = np.array([x.agreed.row for x in waiting], dtype=np.int64)
                arrivals = np.array([x.arrival for x in waiting], dtype=np.int64)
                expected = with_waiting(expected, self._past, rows, arrivals)
            prices = dual_prices(
                iterate, self._supply(n), self.capacity, expected.rows, expected.rounds - now, expected.weights,
                expected.tasks, steps=self._steps, step=self._step * self._mean_density(),
            )  # fmt: skip
        self._first, self._iterate, self._prices = now, iterate, prices
        self._prefix = np.concatenate([[0.0], np.cumsum(prices)])

    def _supply(self, n: int) -> NDArray[np.float64]:
        """Return the nodes that are left in each of the coming ``n`` rounds, less the slack."""
        now = self._round
        supply = self._free[now - 1 : now - 1 + n] - self.capacity * self._slack.of_window(n)
        for x in self._running.values():
            if isinstance(x.agreed, _Hidden):  # booked for max_duration; it is expected to run for less
                age, residuals = now - x.start, x.agreed.residuals
                supply[: max(0, min(n, x.limit - age))] += x.sow.concurrency
                left = float(residuals[min(age, residuals.size - 1)])
                whole = min(n, int(left))
                supply[:whole] -= x.sow.concurrency
                if whole < n:
                    supply[whole] -= x.sow.concurrency * (left - int(left))
        return supply

    def _mean_density(self) -> float:
        """Return rho, the mean value per node-round of past arrivals; 1 without any."""
        return self._density / self._n_densities if self._n_densities else 1.0

    def _learn(self, arrived: Sequence[WaitingJob]) -> None:
        """Take the arrivals of this round into the past: from now on they may teach."""
        for x in arrived:
            worth, width = x.worth if x.worth is not None else np.zeros(0), x.sow.concurrency
            if isinstance(x.agreed, _Hidden):
                x.agreed.row = self._past.n
            self._past.add(self.round, max(1, round(x.mean)), width, worth)
            if worth.size:
                self._density += float(worth.max()) / (width * x.mean)
                self._n_densities += 1

    # -- service --------------------------------------------------------------------------------------------

    def _serve_revealed(self, arrived: Sequence[WaitingJob]) -> dict[JobId, int | None]:
        """Give each arrival its favourite entry, in order of submission, and book it."""
        now, lost, starts = self.round, 0.0, {}
        for x in arrived:
            width, worth = x.sow.concurrency, x.worth if x.worth is not None else np.zeros(0)
            if self._menus is not None:
                self._menus[x.job] = ArrivalMenu(now, self._free[now - 1 :].copy(), self._prefix)
            start, surplus, best = best_entry(self._free, self._prefix, now, width, x.limit, worth)
            lost += best - surplus
            starts[x.job] = start or None
            if start:
                x.agreed = self._prefix[min(start - now, self._prefix.size - 1) :][: x.limit + 1]
                self._free[start - 1 : start - 1 + x.limit] -= width
        if arrived:
            self._slack.arrivals_served(lost)
        return starts

    def _serve_hidden(self, waiting: Sequence[WaitingJob]) -> dict[JobId, int | None]:
        """Start who waits, in strict order of arrival; who can no longer gain leaves."""
        now, blocked = self.round, False
        starts: dict[JobId, int | None] = {}
        for x in waiting:
            width, run = x.sow.concurrency, slice(now - 1, now - 1 + x.limit)
            worth = x.worth if x.worth is not None else np.zeros(0)
            surplus = worth[now - x.arrival :] - x.agreed.rate * width * x.mean
            if not (surplus > TOLERANCE).any():
                starts[x.job] = None
            elif blocked or surplus[0] <= TOLERANCE or (self._free[run] < width).any():
                blocked, starts[x.job] = True, NOT_YET
            else:
                starts[x.job] = now
                self._free[run] -= width
        return starts


def _observed_duration(signal: Signal) -> int | None:
    """Return the duration that the platform sees at arrival; None: it is hidden."""
    whole = isinstance(signal, (int, np.integer)) and not isinstance(signal, bool)
    return int(signal) if whole and signal >= 1 else None  # type: ignore[call-overload, operator]


def _mean_and_residuals(
    durations: NDArray[np.int64], weights: NDArray[np.float64], max_duration: int
) -> tuple[float, NDArray[np.float64]]:
    """Return the mean duration, and the mean of what is left after 0, 1, ... rounds, E[d - e | d > e].

    It is 1 where no longer run was foreseen; a law without mass has mean 0.
    """
    mass = np.bincount(durations, weights=weights, minlength=max_duration + 2)[: max_duration + 2]
    longer = np.cumsum(mass[::-1])[::-1][1:]  # of the runs beyond e, e = 0, 1, ...
    rounds = np.cumsum((mass * np.arange(mass.size))[::-1])[::-1][1:]
    ages, some = np.arange(longer.size), longer > 1e-12 * weights.sum()
    residuals = np.where(some, rounds / np.where(some, longer, 1.0) - ages, 1.0)
    return (float(weights @ durations) / float(weights.sum()) if weights.sum() > 0 else 0.0), residuals
