"""Plays of a search, cut to what the owner's report can change; they end as whole plays do, bit by bit.

A *whole* play (`Stage.play`) begins at the owner's turn and goes on until its last statement has left the market.
A search makes thousands of them, of which most rounds are the same again and again:

* **Before the arrival.** Many mechanisms look at a report only once its job has arrived. All rounds up to the arrival
  are then played once in each world, with the truth, and a lie goes on from a copy in which it stands in the place of
  the truth. Nobody is taken at his word for that: the statement that is submitted notes whether anything of it is
  read, and a lie takes this way only if its submission leaves the mechanism, byte by byte, as that of the truth does.
  Only where there is a history: all worlds then begin in the same state.
* **After the booking.** A mechanism may say that nothing can change start and payment of a job any more (``booked``,
  see `Mechanism`). The play then ends. Before that is believed, some plays of the truth are made to their end, too.

What does not hold these conditions is played whole.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Any

from marketsched.agents.conduct import Attempt, Conduct, plain
from marketsched.agents.loop import NEVER, Fate, MarketLoop, play
from marketsched.mechanisms.errors import InvalidReportError, MechanismFault
from marketsched.mechanisms.mechanism import Event
from marketsched.mechanisms.sow import StatementOfWork
from marketsched.truthfulness.situations.guarded_market import (
    GuardedMarket,
    MechanismParts,
    Snapshot,
    no_collection,
    parts_of,
    snapshot,
)
from marketsched.truthfulness.situations.kept_markets import FromMarket, KeptMarkets
from marketsched.truthfulness.situations.plays import Everybody, Played, Stage, World

if TYPE_CHECKING:
    from marketsched.truthfulness.situations.situation import Situation

COMPARED = 3  # worlds in which the truth is played to the end as well
AMONG = 32  # worlds among which they are looked for
GIVEN_UP = 3  # worlds in which the report was read before the arrival: no other is tried
ASKED = 8  # lies that are looked at; if none of them leaves the mechanism as the truth does, no other is


class WatchedStatement(StatementOfWork):
    """A statement that notes what is read of it."""

    __slots__ = ("read",)
    read: list[str]

    @classmethod
    def of(cls, sow: StatementOfWork) -> WatchedStatement:
        """Return a watched statement that says the same; its law is an object of its own."""
        made = cls.__new__(cls)
        object.__setattr__(made, "read", [])
        made._store(sow.birth, sow.concurrency, sow.value, sow.law._replace())
        return made

    def __getattribute__(self, name: str) -> Any:
        if name not in ("read", "_store"):
            object.__getattribute__(self, "read").append(name)
        return object.__getattribute__(self, name)


class _WatchedAttempt(Attempt):
    """Forgets what was read of its statement up to the end of the submission."""

    def __init__(self, watched: WatchedStatement, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._watched = watched

    def act(self, market: MarketLoop) -> None:
        """Submit what is due in this round."""
        due = any(statement.round == market.now for statement in self._to_submit)
        super().act(market)
        if due:
            self._watched.read.clear()


class _UntilBooked(Everybody):
    """The owner is over as soon as all is booked that it waits for."""

    def __init__(self, last: int, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._last = last

    def hear(self, events: Sequence[Event], market: MarketLoop) -> None:
        """Tell the owner, and ask what is booked."""
        super().hear(events, market)
        if not self.owner.over:
            self.owner.settle(market, self._last)


@dataclass(frozen=True)
class _Arrival(FromMarket):
    """A market in the owner's round of arrival, all submissions made; None: it cannot be played from here."""

    market: Snapshot | None
    truth: tuple[int, int] = (0, 0)  # the watched statement and its law, by id; the snapshot holds them


class ShortPlays:
    """Short plays of one situation.

    Parameters
    ----------
    situation : Situation
        What is played.
    """

    def __init__(self, situation: Situation) -> None:
        self.situation = situation
        self._truth = plain(situation.truth, situation.truth.concurrency)
        self._arrivals: KeptMarkets[int, _Arrival] = KeptMarkets()
        self._read_early = 0
        self._alike: dict[Hashable, bool] = {}
        self._any_alike = self._asked = False  # the latter: since the truth was played last

    @property
    def _stage(self) -> Stage:
        return self.situation.stage

    def play(self, conduct: Conduct, world: World) -> Played:
        """Play the owner's conduct in a world; as `Stage.play`, with the same end, and the same errors."""
        return self._play(conduct, world, settling=self.settles)

    @cached_property
    def settles(self) -> bool:
        """True if the mechanism says what is booked, and what it said came true in a few worlds."""
        stage = self._stage
        try:
            worlds = [world for world in map(stage.world, range(AMONG)) if world.owner.arrival is not None]
            if not worlds or not says_what_is_booked(stage.at_turn(worlds[0])):
                return False
            pairs = [
                (self._play(self._truth, world, settling=True), stage.play(self._truth, world))
                for world in islice(worlds, COMPARED)
            ]
        except (MechanismFault, InvalidReportError):
            return False  # comes up again when the truth is played
        return all(short[:3] == whole[:3] for short, whole in pairs)

    def _play(self, conduct: Conduct, world: World, *, settling: bool) -> Played:
        if world.owner.arrival is None:
            return self._stage.play(conduct, world)
        with no_collection():
            fate = self._whole_job(conduct, world)
            arrival = self._arrival(world) if fate is not None and self._is_alike(conduct) else None
            if fate is not None and arrival is not None and arrival.market is not None:
                return self._from_arrival(conduct, fate, world, arrival, settling)
            if not settling:
                return self._stage.play(conduct, world)
            return self._stage.play(conduct, world, lambda *given: _UntilBooked(self.situation.horizon, *given))

    def _whole_job(self, conduct: Conduct, world: World) -> Fate | None:
        """Return what happens to the one statement of a conduct that speaks at birth; None: of any other conduct."""
        if self.situation.history is None or len(conduct.statements) != 1:
            return None
        one, truth = conduct.statements[0], self.situation.truth
        ordinary = (one.round, one.nodes, one.name, one.identity) == (truth.birth, truth.concurrency, "", "")
        if not ordinary or not one.counts or one.after is not None or callable(one.report):
            return None
        fate = one.part(world.owner)
        return fate if fate is not None and fate.arrival == world.owner.arrival else None

    # -- before the arrival ------------------------------------------------------------------------

    def _is_alike(self, conduct: Conduct) -> bool:
        """Tell whether submitting the report leaves the mechanism as submitting the truth does, but for the report."""
        if conduct.key == self._truth.key:  # a copy at its arrival is worth making if lies will go on from it, too
            asked, self._asked = self._asked, False
            return asked and self._any_alike
        if not self._any_alike and len(self._alike) >= ASKED:
            return False
        if conduct.key not in self._alike:
            mine = self._submitted(conduct)
            report: Any = conduct.statements[0].report
            self._alike[conduct.key] = (
                mine is not None
                and self._after_truth is not None
                and mine.same_but_for(self._after_truth, report, self.situation.truth)
            )
            self._any_alike |= self._alike[conduct.key]
        self._asked |= self._alike[conduct.key]
        return self._alike[conduct.key]

    @cached_property
    def _after_truth(self) -> MechanismParts | None:
        return self._submitted(self._truth)

    def _submitted(self, conduct: Conduct) -> MechanismParts | None:
        """Return the mechanism after the owner's submission at its turn; None: it refuses, draws, or cannot tell."""
        s = self.situation
        market = self._stage.at_turn(self._stage.world(0))
        try:
            Attempt(conduct, s.name, NEVER, s.owner).act(market)
            return None if market.drew else parts_of(market.mechanism)
        except Exception:  # whatever it is, the whole play meets it again
            return None

    def _arrival(self, world: World) -> _Arrival | None:
        if self._read_early >= GIVEN_UP:
            return None
        if world.picks is not None:
            return None  # worlds that are enumerated are few, and have no seed
        return self._arrivals.get(world.seed) or self._arrivals.keep(world.seed, self._played_to_arrival(world))

    def _played_to_arrival(self, world: World) -> _Arrival:
        s, watched = self.situation, WatchedStatement.of(self.situation.truth)
        conduct = Conduct(plain(watched, s.truth.concurrency).statements, self._truth.key)
        assert world.owner.arrival is not None
        if world.owner.arrival > s.horizon:
            return _Arrival(None)
        attempt = _WatchedAttempt(watched, conduct, s.name, world.owner, s.owner)
        owners = Everybody(self._stage, world, attempt, s.n_ahead)
        try:
            market = self._stage.at_turn(world)
            play(market, owners, world.owner.arrival - 1)
            owners.act(market)
        except (MechanismFault, InvalidReportError):
            return _Arrival(None)  # comes up again in a whole play
        if watched.read or attempt.over:
            self._read_early += bool(watched.read)
            return _Arrival(None)
        return _Arrival(snapshot(market), (id(watched), id(watched.law)))

    def _from_arrival(self, conduct: Conduct, fate: Fate, world: World, arrival: _Arrival, settling: bool) -> Played:
        """Play on from the arrival, with what the owner reports in the place of the truth."""
        s, report = self.situation, conduct.statements[0].report
        assert isinstance(report, StatementOfWork) and arrival.market is not None
        market = arrival.market.copy(dict(zip(arrival.truth, (report, report.law), strict=True)))
        market.entries[s.name].fate = fate
        attempt = Attempt(conduct, s.name, fate, s.owner)
        attempt.resume()
        owners = Everybody(self._stage, world, attempt, 0)
        if settling:
            owners = _UntilBooked(s.horizon, self._stage, world, attempt, 0)
        owners.hear(market.clear(), market)
        if not owners.over:
            play(market, owners, s.horizon)
        return Played(s.worth(attempt.completion), attempt.payment, attempt.completion, market.drew)


def says_what_is_booked(market: GuardedMarket) -> bool:
    """Tell whether the class of the mechanism says so itself: one that builds on another may book otherwise."""
    return "booked" in vars(type(market.mechanism))
