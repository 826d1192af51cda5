"""A market that is held every day anew: the same owners, each day with jobs of that day.

A *day* is a whole market, from its first round to its horizon: what jobs the owners have, and what happens to them. It
depends on no report, so a day can be played again with another report of one owner and everything else as it was: what
comes out is a *counterfactual* utility, the thing that full information learners see and that regret is made of. A
replay begins where the owner has its turn, on a copy of the market as it was then.

Owners submit once, at birth; a job that is dropped does not come back here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from marketsched.agents.job import Job
from marketsched.agents.learning import ReportMenu, value_menu
from marketsched.agents.lies import PublicInformation, Strategy, submission_delay
from marketsched.agents.loop import MarketLoop
from marketsched.agents.playing import play
from marketsched.agents.setup import MarketSetup
from marketsched.mechanisms.errors import InvalidParameterError
from marketsched.mechanisms.legal import Count, Whole, check_fields
from marketsched.mechanisms.mechanism import Event
from marketsched.mechanisms.randomness import Rng, generator_of
from marketsched.mechanisms.realised import RealisedJobs
from marketsched.mechanisms.sow import StatementOfWork
from marketsched.play.optimum import Bracket, optimum_bracket
from marketsched.truthfulness.situations.guarded_market import Factory, GuardedMarket, Snapshot, no_collection, snapshot
from marketsched.truthfulness.situations.lotteries import fate_of


@dataclass(frozen=True)
class Day:
    """One day: its jobs in order of submission, and the seed of the mechanism's own draws."""

    number: int  # equal numbers: the same day
    jobs: tuple[Job, ...] = field(repr=False)
    seed: int


class DayOutcome(NamedTuple):
    """How a day went."""

    utilities: NDArray[np.float64]  # (n_owners,), credits: true value less payments of the owner's jobs
    welfare: float  # credits, true values
    revenue: float  # credits


class PlayedDay(NamedTuple):
    """A day as it was played, from which it can be played otherwise."""

    day: Day
    reports: tuple[StatementOfWork, ...]  # job by job
    outcome: DayOutcome
    turns: Mapping[int, Snapshot | None]  # the market before an owner's first submission, by place of that job


@dataclass(frozen=True, eq=False)
class RepeatedMarket:
    """A market held day after day.

    Parameters
    ----------
    name : str
        Its name.
    factory : function of Generator
        Builds the mechanism of a day, fresh.
    draw : function of Generator
        Returns the jobs of a day; the same owners may have other jobs, or none, on another day.
    owners : tuple of str
        All owners that may have a job.
    capacity, horizon, max_delay : int
        C (nodes), T (rounds) and S (rounds).
    menu : ReportMenu
        The reports among which regret is measured, and learners choose.
    days : int, optional
        Number of different days: they are drawn once, and then one of them for every episode; 1: always the same
        market. None: every episode is a day of its own.
    nobody_later : bool
        True: an owner's fate does not depend on who submits after it (LIFO), so replays leave them
        out. The caller's word; for a mechanism of which it is not true, replays would be wrong.

    Raises
    ------
    InvalidParameterError
        If an owner is named twice.

    Examples
    --------
    >>> from marketsched import contested_market
    >>> market = contested_market("pay-as-bid", n_owners=3, capacity=1)
    >>> first, second = market.schedule(2, 7)
    >>> market.owners, first.number, second.number
    (('owner-1', 'owner-2', 'owner-3'), 0, 1)
    """

    name: str
    factory: Factory = field(repr=False)
    draw: Callable[[np.random.Generator], Sequence[Job]] = field(repr=False)
    owners: tuple[str, ...]
    capacity: Count = field(kw_only=True)
    horizon: Count = field(kw_only=True)
    max_delay: Count = field(kw_only=True)
    menu: ReportMenu = field(default_factory=value_menu, kw_only=True)
    days: Count | None = field(default=None, kw_only=True)
    nobody_later: bool = field(default=False, kw_only=True)

    def __post_init__(self) -> None:
        check_fields(self)
        object.__setattr__(self, "owners", tuple(self.owners))
        if not self.owners or len(set(self.owners)) < len(self.owners):
            raise InvalidParameterError(f"owners = {self.owners!r}: expected distinct names, at least one")

    @cached_property
    def public(self) -> PublicInformation:
        """Public information before reports; limits that the mechanism does not announce are None."""
        mechanism = self.factory(np.random.default_rng(0))
        return PublicInformation.of(mechanism, self.capacity, self.horizon, self.max_delay)

    # -- days --------------------------------------------------------------------------------------

    def schedule(self, episodes: int, rng: Rng) -> Iterator[Day]:
        """Draw the days of ``episodes`` episodes, one after the other.

        A longer schedule of the same stream begins with the shorter one.
        """
        rng = generator_of(rng)
        days_rng, order_rng = rng.spawn(2)
        pool = [] if self.days is None else [self._day(i, days_rng) for i in range(self.days)]
        for episode in range(Whole(1).check("episodes", episodes)):
            yield pool[int(order_rng.integers(len(pool)))] if pool else self._day(episode, days_rng)

    def _day(self, number: int, rng: np.random.Generator) -> Day:
        jobs_rng, seed_rng = rng.spawn(2)
        jobs = sorted(self.draw(jobs_rng), key=lambda job: job.truth.birth)  # stable: in order of submission
        known = set(self.owners)
        for job in jobs:
            if job.owner not in known:
                raise InvalidParameterError(f"job {job.name!r} belongs to {job.owner!r}: expected one of the owners")
        if len({job.name for job in jobs}) < len(jobs):
            raise InvalidParameterError(f"day {number}: two jobs have one name: expected distinct names")
        return Day(number, tuple(jobs), int(seed_rng.integers(2**63)))

    def setup(self, rng: Rng) -> MarketSetup:
        """Return a day drawn from ``rng`` as a market for `MarketRun`, `Market` or an environment; all report truly."""
        day = self._day(0, generator_of(rng))
        mechanism = self.factory(np.random.default_rng(day.seed))
        return MarketSetup(self.name, day.jobs, mechanism, self.capacity, self.horizon, self.max_delay)

    def reports(self, day: Day, strategies: Mapping[str, Strategy]) -> tuple[StatementOfWork, ...]:
        """Return the reports of a day, job by job; owners that are not in ``strategies`` are truthful."""
        return tuple(self._report(job, strategies.get(job.owner)) for job in day.jobs)

    def _report(self, job: Job, strategy: Strategy | None) -> StatementOfWork:
        if strategy is None:
            return job.truth
        if submission_delay(strategy):
            raise InvalidParameterError(f"{strategy!r} submits late: expected reports at birth in a repeated market")
        return strategy.report(job.truth, self.public)

    def bound(self, day: Day, *, seconds: float = 5.0) -> Bracket:
        """Return bounds on the welfare of the day's best schedule in hindsight, as `optimum_bracket`."""
        jobs = [(job.truth, job.arrival, job.duration) for job in day.jobs]
        longest = self.public.max_duration
        realised = RealisedJobs.build(jobs, horizon=self.horizon, max_delay=self.max_delay, max_duration=longest)
        return optimum_bracket(realised, self.capacity, seconds=seconds)

    # -- plays -------------------------------------------------------------------------------------

    def play(self, day: Day, reports: Sequence[StatementOfWork], *, turns: bool = False) -> PlayedDay:
        """Play a day, with the reports of its jobs in the order of `reports`.

        With ``turns`` it keeps what `counterfactuals` need. Raises InvalidReportError if the mechanism refuses a
        report, and MechanismFault if it raises anything else or breaks the protocol.
        """
        kept: dict[int, Snapshot | None] = {place[0]: None for place in self._places(day).values()} if turns else {}
        events = self._play_on(self._opened(day), day, tuple(reports), 0, len(day.jobs), kept=kept)
        numbers = {owner: i for i, owner in enumerate(self.owners)}
        utilities, welfare, revenue = np.zeros(len(self.owners)), 0.0, 0.0
        for job, value, payment in self._earnings(day, events):
            utilities[numbers[job.owner]] += value - payment
            welfare, revenue = welfare + value, revenue + payment
        return PlayedDay(day, tuple(reports), DayOutcome(utilities, welfare, revenue), kept)

    def counterfactuals(self, played: PlayedDay, owner: str) -> NDArray[np.float64]:
        """Return what ``owner`` earns by each report of the menu, others' as they were: credits, shape (n_actions,)."""
        day, places = played.day, self._places(played.day).get(owner, [])
        if not places:
            return np.zeros(len(self.menu))
        actual = tuple(played.reports[place] for place in places)
        known = {actual: float(played.outcome.utilities[self.owners.index(owner)])}
        utilities = np.empty(len(self.menu))
        for k, strategy in enumerate(self.menu.strategies):
            own = tuple(self._report(day.jobs[place], strategy) for place in places)
            if own not in known:  # lies that say the same are played once
                known[own] = self._played_otherwise(played, places, own)
            utilities[k] = known[own]
        return utilities

    def _played_otherwise(self, played: PlayedDay, places: list[int], own: Sequence[StatementOfWork]) -> float:
        """Return the utility of the owner of the jobs at ``places``, had it reported ``own``."""
        day, reports, first = played.day, list(played.reports), places[0]
        for place, report in zip(places, own, strict=True):
            reports[place] = report
        turn = played.turns.get(first)
        last = places[-1] + 1 if self.nobody_later else len(day.jobs)
        watched = {day.jobs[place].name for place in places}
        with no_collection():
            if turn is None:  # the mechanism does not pickle, or the turn was not kept
                events = self._play_on(self._opened(day), day, reports, 0, last, watched=watched)
            else:
                events = self._play_on(turn.copy(), day, reports, first, last, watched=watched)
        return sum(v - p for job, v, p in self._earnings(day, events) if job.name in watched)

    def _play_on(
        self,
        market: GuardedMarket,
        day: Day,
        reports: Sequence[StatementOfWork],
        place: int,
        last: int,
        *,
        watched: set[str] | None = None,
        kept: dict[int, Snapshot | None] | None = None,
    ) -> list[Event]:
        """Play from the submission of job ``place`` to the end, or until all ``watched`` jobs have left the market."""
        owners = _DayOwners(day, reports, place, last, watched, {} if kept is None else kept)
        return play(market, owners, self.horizon)

    def _opened(self, day: Day) -> GuardedMarket:
        return GuardedMarket(self.factory, np.random.default_rng(day.seed), self.capacity)

    def _earnings(self, day: Day, events: Sequence[Event]) -> Iterator[tuple[Job, float, float]]:
        """Go through true value and payment of what has left the market."""
        jobs = {job.name: job for job in day.jobs}
        for event in events:
            if not event.kind.leaves:
                continue
            job, value = jobs[str(event.job)], 0.0
            if event.completion is not None and event.completion < job.truth.birth + self.max_delay:
                value = float(job.truth.value(event.completion))
            yield job, value, event.payment

    def _places(self, day: Day) -> dict[str, list[int]]:
        places: dict[str, list[int]] = {}
        for place, job in enumerate(day.jobs):
            places.setdefault(job.owner, []).append(place)
        return places


class _DayOwners:
    """The owners of a day from the submission of job ``place`` on, as far as job ``last``."""

    def __init__(
        self,
        day: Day,
        reports: Sequence[StatementOfWork],
        place: int,
        last: int,
        watched: set[str] | None,
        kept: dict[int, Snapshot | None],
    ) -> None:
        self._jobs, self._reports, self._place, self._last = day.jobs, reports, place, last
        self._left = None if watched is None else set(watched)  # of the watched jobs, those in the market
        self._kept = kept  # receives the market before the submissions it names
        self.over = False

    def act(self, market: Any) -> None:
        """Submit the jobs born in this round."""
        while self._place < self._last and self._jobs[self._place].truth.birth == market.now:
            if self._place in self._kept:
                self._kept[self._place] = snapshot(market)
            job = self._jobs[self._place]
            market.submit(
                job.name, self._reports[self._place], fate_of(job), job.truth.concurrency, owner=job.owner, own=True
            )
            self._place += 1

    def hear(self, events: Sequence[Event], market: MarketLoop) -> None:
        """Note who has left the market."""
        if self._left is not None:
            self._left.difference_update(str(event.job) for event in events if event.kind.leaves)
        self.over = self._left == set() or (self._place >= self._last and not market.entries)
