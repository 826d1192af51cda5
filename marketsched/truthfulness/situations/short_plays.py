"""Plays of a search, cut to what the owner's report can change; they end as whole plays do, bit by bit.

A *whole* play (`Stage.play`) begins at the owner's turn and goes on until its last statement has left the market.
A search makes thousands of them, and most of their rounds are the same:

* **Before the arrival.** Many mechanisms look at a report only once its job has arrived, and state it
  (``reads_reports``, see `Mechanism`). All rounds up to the arrival are then played once in each world, with the truth,
  and a lie continues from a copy in which it replaces the truth (``restate``). Before that is believed,
  a few lies are played whole, too, and later every lie that is scored is, in one world (`holds`): a rule that reads one
  report in a thousand at submission passes the first of these and not the second. Of such a rule the search may miss a
  lie; none is confirmed. Only where there is a history: all worlds then begin in the same state.
* **After the booking.** A mechanism may say that nothing can change start and payment of a job any more (``booked``,
  see `Mechanism`). The play then ends. Before that is believed, some plays of the truth are made to their end, too.

What does not hold these conditions is played whole. Whatever is confirmed is so by what was played; the market at hand
(`MarketAtHand`) begins at the owner's turn in each play.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Any

from marketsched.agents.conduct import Attempt, Conduct, plain
from marketsched.agents.lies import InflateConcurrency, Misreport, ScaleDuration, ScaleValue, ShiftDeadline
from marketsched.agents.loop import Fate, MarketLoop, play
from marketsched.mechanisms.errors import InvalidReportError, MechanismFault
from marketsched.mechanisms.mechanism import Event
from marketsched.mechanisms.sow import StatementOfWork
from marketsched.truthfulness.situations.described import Described
from marketsched.truthfulness.situations.guarded_market import (
    GuardedMarket,
    Snapshot,
    no_collection,
    snapshot,
)
from marketsched.truthfulness.situations.kept_markets import FromMarket, KeptMarkets
from marketsched.truthfulness.situations.plays import Everybody, Played, Stage, World

COMPARED = 3  # worlds in which the truth is played to the end as well
AMONG = 32  # worlds among which they are looked for
HELD_TO_IT: tuple[tuple[Misreport, ...], ...] = (  # lies that are played whole as well, in so many worlds
    (ScaleValue(0.5), ScaleDuration(0.5)),
    (ScaleValue(1.5), InflateConcurrency(1)),
    (ScaleValue(0.75), ShiftDeadline(2)),
)


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


class ShortPlays:
    """Short plays of one situation.

    Parameters
    ----------
    situation : Described
        The situation.
    stage : Stage
        Where it is played whole.
    """

    def __init__(self, situation: Described, stage: Stage) -> None:
        self.situation = situation
        self._stage = stage
        self._truth = plain(situation.truth, situation.truth.concurrency)
        self._arrivals: KeptMarkets[int, _Arrival] = KeptMarkets()
        self._lied = False  # since the truth was played last

    def play(self, conduct: Conduct, world: World) -> Played:
        """Play the owner's conduct in a world; as `Stage.play`, with the same end, and the same errors."""
        return self._play(conduct, world, settling=self.settles)

    @cached_property
    def settles(self) -> bool:
        """True if the mechanism announces bookings, and they came true in a few worlds."""
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
            fate = self._whole_job(conduct, world) if self._worth_a_copy(conduct) and self.waits else None
            arrival = None if fate is None else self._arrival(world)
            if fate is None or arrival is None or arrival.market is None:
                return self._from_turn(conduct, world, settling)
            return self._from_arrival(conduct, fate, world, arrival, settling)

    def _from_turn(self, conduct: Conduct, world: World, settling: bool) -> Played:
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

    def holds(self, conduct: Conduct, world: World) -> bool:
        """Play a conduct from the arrival and whole; return False, and play all whole from now on, if that differs.

        True where it is played whole anyway. Faults of the mechanism come up when it is played.
        """
        if world.owner.arrival is None or not self.waits:
            return True
        try:
            with no_collection():
                fate = self._whole_job(conduct, world)
                arrival = None if fate is None else self._arrival(world)
                if fate is None or arrival is None or arrival.market is None:
                    return True
                short = self._from_arrival(conduct, fate, world, arrival, False)
                self.waits = short == self._stage.play(conduct, world)
        except (MechanismFault, InvalidReportError):
            self.waits = False
        return self.waits

    # -- before the arrival ------------------------------------------------------------------------

    def _worth_a_copy(self, conduct: Conduct) -> bool:
        """Return False for a truth that no lie has followed: a copy at its arrival is made for lies to go on from."""
        lied, self._lied = self._lied, conduct.key != self._truth.key
        return lied or self._lied

    @cached_property
    def waits(self) -> bool:
        """True if the mechanism states that it reads reports at arrival, and was seen to in a few plays of lies."""
        s, stage = self.situation, self._stage
        if s.history is None:
            return False
        try:
            worlds = [world for world in map(stage.world, range(AMONG)) if world.owner.arrival is not None]
            if not worlds or stage.at_turn(worlds[0]).mechanism.reads_reports != "arrival":
                return False
            return all(self._same_both_ways(lies, world) for lies, world in zip(HELD_TO_IT, worlds, strict=False))
        except (MechanismFault, InvalidReportError):
            return False  # comes up again in a whole play

    def _same_both_ways(self, lies: Sequence[Misreport], world: World) -> bool:
        """Tell whether lies end the same when they are played whole and from the arrival; illegal ones are left out."""
        s, arrival = self.situation, self._played_to_arrival(world)
        for lie in lies if arrival.market is not None else ():
            try:
                report = lie.report(s.truth, s.public)
                s.check(report)
            except InvalidReportError:
                continue
            conduct = plain(report, s.truth.concurrency)
            fate = self._whole_job(conduct, world)
            if fate is None or report == s.truth:
                continue
            if self._from_arrival(conduct, fate, world, arrival, False) != self._stage.play(conduct, world):
                return False
        return True

    def _arrival(self, world: World) -> _Arrival | None:
        if world.picks is not None:
            return None  # worlds that are enumerated are few, and have no seed
        return self._arrivals.get(world.seed) or self._arrivals.keep(world.seed, self._played_to_arrival(world))

    def _played_to_arrival(self, world: World) -> _Arrival:
        s = self.situation
        assert world.owner.arrival is not None
        if world.owner.arrival > s.horizon:
            return _Arrival(None)
        attempt = Attempt(self._truth, s.name, world.owner, s.owner, s.truth)
        owners = Everybody(self._stage, world, attempt, s.n_ahead)
        try:
            market = self._stage.at_turn(world)
            play(market, owners, world.owner.arrival - 1)
            owners.act(market)
        except (MechanismFault, InvalidReportError):
            return _Arrival(None)  # comes up again in a whole play
        return _Arrival(None if attempt.over else snapshot(market))

    def _from_arrival(self, conduct: Conduct, fate: Fate, world: World, arrival: _Arrival, settling: bool) -> Played:
        """Play on from the arrival, with what the owner reports in the place of the truth."""
        s, report = self.situation, conduct.statements[0].report
        assert isinstance(report, StatementOfWork) and arrival.market is not None
        market = arrival.market.copy()
        market.restate(s.name, report)
        market.entries[s.name].fate = fate
        attempt = Attempt(conduct, s.name, fate, s.owner, s.truth)
        attempt.resume()
        owners = Everybody(self._stage, world, attempt, 0)
        if settling:
            owners = _UntilBooked(s.horizon, self._stage, world, attempt, 0)
        owners.hear(market.clear(), market)
        if not owners.over:
            play(market, owners, s.horizon)
        return Played(attempt.worth * s.worth(attempt.completion), attempt.payment, attempt.completion, market.drew)


def says_what_is_booked(market: GuardedMarket) -> bool:
    """Tell whether the class of the mechanism says so itself: one that builds on another may book otherwise."""
    return "booked" in vars(type(market.mechanism))
