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
from functools import cached_property
from os import PathLike
from typing import Any

from marketsched.agents.job import Job
from marketsched.agents.lies import PublicInformation
from marketsched.agents.playing import play
from marketsched.agents.setup import MarketSetup
from marketsched.config.scenario import Scenario
from marketsched.mechanisms.columns import Turn
from marketsched.mechanisms.randomness import checked_seed
from marketsched.truthfulness.situations.guarded_market import (
    Factory,
    GuardedMarket,
    no_collection,
    snapshot,
)
from marketsched.truthfulness.situations.owner_at_hand import OwnerAtHand
from marketsched.truthfulness.situations.played_owners import Recorded
from marketsched.truthfulness.situations.scenario_mechanism import mechanism_of
from marketsched.truthfulness.situations.short_ways import plans_tell, trusted, turns_of
from marketsched.truthfulness.situations.streams import stream_of_run
from marketsched.truthfulness.situations.true_owners import (
    Births,
    Played,
    Reached,
    TrueOwners,
    UntilServed,
    UpTo,
    born_by_round,
)
from marketsched.worlds.workload import Workload

KEPT_BYTES = 256_000_000  # of markets at the turns of owners


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
    >>> from marketsched.agents.conduct import plain
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
        self.born: Births = born_by_round(jobs)
        self.settles = "booked" in vars(type(fresh.mechanism))  # one that builds on another class may book otherwise
        self.shortens = True  # until a short way ends otherwise than the whole play
        own = trusted(fresh.mechanism)
        self.restates = own and fresh.mechanism.reads_reports == "arrival"
        self.alone = own and fresh.mechanism.later_jobs_change_nothing
        self.by_plan = own and plans_tell(fresh.mechanism)
        self.turns: dict[str, Turn] = {}  # of the owners that were asked for, at their arrivals
        self.ended: dict[Hashable, Played | Exception] = {}  # plays that were made elsewhere
        self._examined: list[str] = []

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
        market, owners = self.fresh(), Recorded(self.setup, self.born)
        with no_collection():
            play(market, owners, self.setup.horizon)
        missing = Played(0.0, 0.0, None, market.drew)
        return {job.name: owners.got.get(job.name, missing) for job in self.setup.jobs}

    def menus_of(self, names: Collection[str]) -> dict[str, object]:
        """Return the menus that some jobs of true reports face at arrival, in a play of its own; not of all: some none.

        Mechanisms that keep no menus at arrival have none. Errors as of `GuardedMarket`.
        """
        market = self.fresh()
        if not market.mechanism.posts_menus_at_arrival:
            return {}
        market.mechanism.keep_menus(names)
        owners = UntilServed(self.setup, self.born, names)
        with no_collection():
            play(market, owners, self.setup.horizon)
        return owners.menus

    def owners(self, names: Collection[str], most_bytes: int = KEPT_BYTES) -> list[OwnerAtHand]:
        """Return the owners of these jobs at their turns, in order of birth; fewer if copies would take more bytes.

        Errors as of `GuardedMarket`.
        """
        recorder = _Keeping(self, frozenset(names), most_bytes)
        with no_collection():
            play(self.fresh(), recorder, self.setup.horizon)
        self._examined = [owner.name for owner in recorder.found]
        self.__dict__.pop("menus", None)
        self.turns |= self._turns_of(self._examined)
        return recorder.found

    def _turns_of(self, names: Collection[str]) -> dict[str, Turn]:
        """Return the turns of these owners, if the mechanism books and shows them; a fault comes up in a play."""
        try:
            return turns_of(self.setup, self.fresh().mechanism, names) if self.settles else {}
        except Exception:  # of a mechanism's own code: anything may come
            return {}

    @cached_property
    def menus(self) -> dict[str, object]:
        """What all owners that were asked for last face at arrival; one play shows it, see `menus_of`."""
        return self.menus_of(self._examined)

    def at_turn(self, name: str) -> GuardedMarket:
        """Return the market at the turn of one owner, played anew from its first round."""
        market = self.fresh()
        with suppress(Reached):
            play(market, UpTo(self.setup, self.born, name), self.setup.horizon)
        return market


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
            if self._left > 0:
                kept = snapshot(market)
                self._left -= 0 if kept is None else kept.size
                self.found.append(OwnerAtHand(self._market, job, place + 1, kept))
        super().submit(job, market, place)
