"""The market at hand: one world in which all chance is fixed, and one owner's report is changed.

Others' reports, all arrivals and durations, and the mechanism's own stream are those of one run (`run` with the same
scenario and seed plays it). Gains are exact here: it needs no interval, and is a counterexample to truth as a
best reply whatever happens (*ex post*). Where only the owner's own arrival and duration are drawn anew from its true
law, and all else stays, the mean over that law is exact as well: under a mechanism that
is truthful in expectation over the own fate no lie gains then.

The market is played once to its end. A second run keeps a copy of it at the turn of every owner examined;
each report is played on from such a copy until the owner's job has left the market, or is booked for good.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from os import PathLike
from typing import Any, NamedTuple

import numpy as np

from marketsched.agents.conduct import Attempt, Conduct, plain
from marketsched.agents.job import Job
from marketsched.agents.lies import PublicInformation
from marketsched.agents.loop import Fate
from marketsched.agents.playing import play
from marketsched.agents.setup import MarketSetup
from marketsched.config.scenario import Scenario
from marketsched.mechanisms.errors import MechanismFault
from marketsched.mechanisms.mechanism import Event, EventKind
from marketsched.mechanisms.randomness import checked_seed
from marketsched.mechanisms.sow import StatementOfWork
from marketsched.truthfulness.situations.described import check_announced
from marketsched.truthfulness.situations.guarded_market import (
    Factory,
    GuardedMarket,
    Snapshot,
    no_collection,
    snapshot,
)
from marketsched.truthfulness.situations.lotteries import drawn_again, fate_of, of_statement
from marketsched.truthfulness.situations.plays import Played
from marketsched.truthfulness.situations.promises import promise_of
from marketsched.truthfulness.situations.short_plays import says_what_is_booked
from marketsched.truthfulness.situations.situation import mechanism_of
from marketsched.truthfulness.situations.streams import stream_of_run
from marketsched.truthfulness.situations.true_owners import (
    Reached,
    TrueOwners,
    UntilServed,
    UpTo,
    born_by_round,
    worth,
)
from marketsched.worlds.workload import Workload

ANNOUNCED = 3  # laws of others that an owner may copy
KEPT_BYTES = 256_000_000  # of markets at the turns of owners
SAME = 1e-9  # of a utility, and 1 credit: what two ways to play one market may differ by

PLAYED_OTHERWISE = (
    "played again from the owner's turn, the market ends otherwise: the mechanism keeps state outside of itself, or "
    "draws from a source of its own"
)


class Fated(NamedTuple):
    """One case of an owner's own law: what happens to the job, and how likely that is."""

    fate: Fate
    probability: float


class MarketAtHand:
    """A market of true reports, and what single owners would have got by others.

    Parameters
    ----------
    factory : function of Generator
        Builds a fresh mechanism, whose own draws come from the generator.
    jobs : sequence of Job
        In order of submission, with what really happens to each.
    capacity, horizon, max_delay : int
        C (nodes), T (rounds), S (rounds).
    seed : int
        Of the run: the mechanism's stream is that of `run` with this seed.
    resubmit : bool
        As in `MarketSetup`.

    Raises
    ------
    MechanismFault
        If the mechanism cannot be built.
    InvalidParameterError
        As from `MarketSetup`.

    Examples
    --------
    >>> market = MarketAtHand.of("stochastic-mix")
    >>> (owner,) = market.owners([market.setup.jobs[0].name])
    >>> owner.play(plain(owner.truth, owner.truth.concurrency)).utility == owner.truthful.utility
    True
    """

    def __init__(
        self,
        factory: Factory,
        jobs: Sequence[Job],
        *,
        capacity: int,
        horizon: int,
        max_delay: int,
        seed: int = 0,
        resubmit: bool = False,
    ) -> None:
        self.factory, self.seed = factory, checked_seed(seed)
        fresh = GuardedMarket(factory, stream_of_run(self.seed), capacity)
        self.setup = MarketSetup(
            "the market at hand", jobs, fresh.mechanism, capacity=capacity, horizon=horizon, max_delay=max_delay,
            resubmit=resubmit,
        )  # fmt: skip
        self.public: PublicInformation = self.setup.public
        self.born: Mapping[int, Sequence[Job]] = born_by_round(jobs)
        self.settles = says_what_is_booked(fresh)
        self.ended: dict[Hashable, Played | Exception] = {}  # plays that were made elsewhere

    @classmethod
    def of(
        cls,
        scenario: Scenario | str | PathLike[str] | Mapping[str, Any],
        seed: int = 0,
        data: str | PathLike[str] | None = None,
        workload: Workload | None = None,
    ) -> MarketAtHand:
        """Return the market that `run` plays with this scenario and seed, all reports true.

        ``workload`` is that of the seed, if it was built before.
        """
        base = Scenario.of(scenario, kind="market")
        factory = mechanism_of(base, checked_seed(seed), data, workload)
        workload, choice = factory.workload, base.mechanism
        return cls(
            factory, workload.jobs, capacity=choice.capacity or workload.capacity,
            horizon=choice.horizon or workload.horizon, max_delay=choice.max_delay or workload.max_delay,
            seed=seed, resubmit=base.resubmit,
        )  # fmt: skip

    def redrawn(self, seed: int) -> MarketAtHand:
        """Return another world of the same true statements: all fates are drawn from them, the mechanism's stream too.

        Errors as of the constructor.
        """
        rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(0xFA7E,)))
        numbers = rng.random(len(self.setup.jobs)).tolist()
        jobs = [drawn_again(job, u) for job, u in zip(self.setup.jobs, numbers, strict=True)]
        sizes = {name: getattr(self.setup, name) for name in ("capacity", "horizon", "max_delay", "resubmit")}
        return MarketAtHand(self.factory, jobs, **sizes, seed=seed)

    def fresh(self) -> GuardedMarket:
        """Return the market before its first round."""
        return GuardedMarket(self.factory, stream_of_run(self.seed), self.setup.capacity)

    @cached_property
    def place_of(self) -> dict[str, int]:
        """The place of each job in the order of submission."""
        return {job.name: i for i, job in enumerate(self.setup.jobs)}

    @cached_property
    def outcomes(self) -> dict[str, Played]:
        """The outcome of every job under true reports, by name; errors as of `GuardedMarket`."""
        market, owners = self.fresh(), _Recorded(self.setup, self.born)
        with no_collection():
            play(market, owners, self.setup.horizon)
        missing = Played(0.0, 0.0, None, market.drew)
        return {job.name: owners.got.get(job.name, missing) for job in self.setup.jobs}

    def menu_of(self, name: str) -> object:
        """Return the menu that a job of a true report faces at arrival, in a play of its own; None: it faces none.

        Mechanisms that keep no menus at arrival have none. Errors as of `GuardedMarket`.
        """
        market = self.fresh()
        if not market.mechanism.posts_menus_at_arrival:
            return None
        market.mechanism.keep_menus([name])
        owners = UntilServed(self.setup, self.born, name)
        with no_collection():
            play(market, owners, self.setup.horizon)
        return owners.menu

    def owners(self, names: Collection[str], most_bytes: int = KEPT_BYTES) -> list[OwnerAtHand]:
        """Return the owners of these jobs at their turns, in order of birth; fewer if copies would take more bytes.

        Jobs that never arrive are left out. Errors as of `GuardedMarket`.
        """
        recorder = _Keeping(self, frozenset(names), most_bytes)
        with no_collection():
            play(self.fresh(), recorder, self.setup.horizon)
        return recorder.found

    def at_turn(self, name: str) -> GuardedMarket:
        """Return the market at the turn of one owner, played anew from its first round."""
        market = self.fresh()
        with suppress(Reached):
            play(market, UpTo(self.setup, self.born, name), self.setup.horizon)
        return market


@dataclass(eq=False)
class OwnerAtHand:
    """One owner at its turn to submit, in a market in which all chance is fixed.

    ``entered`` of the jobs born in its round are in the market, or its own. ``kept`` is None if the mechanism does
    not pickle: each play then begins in round 1. ``menu_ahead`` holds its menu if that was found elsewhere.
    """

    market: MarketAtHand
    job: Job
    entered: int
    kept: Snapshot | None
    menu_ahead: tuple[object] | None = None

    @property
    def name(self) -> str:
        """That of its job."""
        return self.job.name

    @property
    def truth(self) -> StatementOfWork:
        """Its true statement."""
        return self.job.truth

    @cached_property
    def public(self) -> PublicInformation:
        """Public information of owners, and what others have announced before: a few, of laws that differ."""
        place, found = self.market.place_of[self.name], dict[Any, StatementOfWork]()
        for job in reversed(self.market.setup.jobs[:place]):
            if not job.truth.shapes:
                found.setdefault(_from_birth(job.truth), job.truth)
            if len(found) > ANNOUNCED:
                break
        found.pop(_from_birth(self.truth), None)
        return replace(self.market.public, others=tuple(found.values())[:ANNOUNCED])

    @property
    def promise(self) -> str:
        """The mechanism's promise to jobs like this one, see `promise_of`."""
        return promise_of(self.market.setup.mechanism, self.truth)

    def check(self, report: StatementOfWork) -> None:
        """Raise InvalidReportError if a report breaks the mechanism's limits."""
        check_announced(self.name, report, self.public)

    @cached_property
    def truthful(self) -> Played:
        """How the truth ends, which the whole run has to confirm.

        Raises
        ------
        MechanismFault
            If the mechanism is at fault, or the market ends otherwise than in the whole run.
        """
        conduct, known = plain(self.truth, self.truth.concurrency), self.market.outcomes[self.name]
        played = self.play(conduct)
        if self.market.settles and not _same(played, known):
            self.market.settles = False  # what it calls booked is not
            played = self.play(conduct)
        if not _same(played, known):
            raise MechanismFault(PLAYED_OTHERWISE)
        return played

    def play(self, conduct: Conduct, fate: Fate | None = None) -> Played:
        """Play a conduct of the owner, with what really happens to its job, or with another fate.

        Raises
        ------
        InvalidReportError
            If the mechanism refuses a report.
        MechanismFault
            If the mechanism is at fault.
        """
        fate = fate_of(self.job) if fate is None else fate
        if fate.arrival is None and not conduct.withdraws:
            return Played(0.0, 0.0, None, drew=False)
        ended = self.market.ended.pop((self.name, conduct.key, fate, self.market.settles), None)
        if isinstance(ended, Exception):
            raise ended
        return ended or self._play(conduct, fate)

    def play_ended(self, conduct: Conduct, fate: Fate | None, ended: Played | Exception) -> None:
        """Take the result of a play made elsewhere, or its error: the next `play` of it is not made again."""
        fate = fate_of(self.job) if fate is None else fate
        self.market.ended[self.name, conduct.key, fate, self.market.settles] = ended

    def ended(self, conduct: Conduct) -> Played | Exception | None:
        """Return the result of an actual play made elsewhere; None: it was not made."""
        return self.market.ended.get((self.name, conduct.key, fate_of(self.job), self.market.settles))

    def _play(self, conduct: Conduct, fate: Fate) -> Played:
        setup = self.market.setup
        with no_collection():
            market = self.market.at_turn(self.name) if self.kept is None else self.kept.copy()
            market.watch()
            attempt = Attempt(conduct, self.name, fate, self.job.owner, self.truth)
            play(market, _OneLies(self.market, self.entered, attempt, self.name), setup.horizon)
        value = attempt.worth * worth(self.job, attempt.completion, setup)
        return Played(value, attempt.payment, attempt.completion, market.drew)

    @cached_property
    def menu(self) -> object:
        """What its job faces at arrival under the truth, see `MarketAtHand.menu_of`."""
        return self.market.menu_of(self.name) if self.menu_ahead is None else self.menu_ahead[0]

    @cached_property
    def own_law(self) -> list[Fated]:
        """All that may happen to the job by its true law, seen from its birth."""
        lottery = of_statement(self.truth)
        return [Fated(fate, p) for (_, fate), p in zip(lottery.outcomes, lottery.weights, strict=True)]

    @property
    def certain(self) -> bool:
        """Whether what happened is all that could."""
        return len(self.own_law) == 1 and self.own_law[0].fate == fate_of(self.job)


class _Recorded(TrueOwners):
    """All report truly; what each got is noted."""

    def __init__(self, setup: MarketSetup, born: Mapping[int, Sequence[Job]]) -> None:
        super().__init__(setup, born)
        self.got: dict[str, Played] = {}

    def hear(self, events: Sequence[Event], market: Any) -> None:
        super().hear(events, market)
        for event in events:
            if event.kind is not EventKind.START and event.job in self.by_name:
                done = event.completion if event.kind is EventKind.COMPLETE else None
                value = event.worth * worth(self.by_name[event.job], done, self._setup)
                self.got[event.job] = Played(value, event.payment, done, market.drew)


class _Keeping(TrueOwners):
    """All report truly; the market is kept at the turns of some of them, until enough bytes are."""

    def __init__(self, market: MarketAtHand, wanted: frozenset[str], most_bytes: int) -> None:
        super().__init__(market.setup, market.born)
        self._market, self._wanted, self._left = market, wanted, most_bytes
        self.found: list[OwnerAtHand] = []

    @property
    def over(self) -> bool:  # type: ignore[override]
        """True once all that is wanted was seen, or no byte is left."""
        return not self._wanted or self._left <= 0

    def submit(self, job: Job, market: Any, place: int) -> None:
        if job.name in self._wanted:
            self._wanted -= {job.name}
            if job.arrival is not None and self._left > 0:
                kept = snapshot(market)
                self._left -= 0 if kept is None else kept.size
                self.found.append(OwnerAtHand(self._market, job, place + 1, kept))
        super().submit(job, market, place)


class _OneLies(TrueOwners):
    """All others report truly, and one owner follows its conduct, until nothing can change what it gets."""

    def __init__(self, market: MarketAtHand, entered: int, attempt: Attempt, name: str) -> None:
        super().__init__(market.setup, market.born, entered)
        self._attempt, self._settles, self._name = attempt, market.settles, name

    @property
    def over(self) -> bool:  # type: ignore[override]
        """True once the owner's utility is settled."""
        return self._attempt.over

    def act(self, market: Any) -> None:
        """Submit what the owner submits, then what the others do."""
        self._attempt.act(market)
        super().act(market)

    def hear(self, events: Sequence[Event], market: Any) -> None:
        """Tell the owner, whose own job does not come back, and ask what is booked."""
        self._attempt.hear(events, market)
        super().hear([event for event in events if event.job != self._name], market)
        if self._settles and not self._attempt.over:
            self._attempt.settle(market, self._setup.horizon)


def _from_birth(sow: StatementOfWork) -> tuple[tuple[int, int, float], ...]:
    """Return the law of a statement, with arrivals counted from its birth."""
    return tuple((arrival - sow.birth, duration, p) for arrival, duration, p, _ in sow.law.points())


def _same(one: Played, other: Played) -> bool:
    near = abs(one.utility - other.utility) <= SAME * (1 + abs(other.utility))
    return one.completion == other.completion and near
