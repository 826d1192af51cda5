"""Plays that end as soon as all is booked that the owner waits for; they end as whole plays do, bit by bit.

A *whole* play (`Stage.play`) goes on until the owner's last statement has left the market. A mechanism may say that
nothing can change start and payment of a job any more (``booked``, see `Mechanism`); the play then ends. Before that is
believed, some plays of the truth are made to their end, too. Where the plan tells the end (`short_ways`), no
round is played; every 32nd of these plays is made as well.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from contextlib import suppress
from functools import cached_property, partial
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from marketsched.agents.conduct import Conduct, plain
from marketsched.agents.loop import MarketLoop
from marketsched.mechanisms.errors import InvalidReportError, MechanismFault
from marketsched.mechanisms.mechanism import Event
from marketsched.truthfulness.situations.described import Described
from marketsched.truthfulness.situations.guarded_market import GuardedMarket
from marketsched.truthfulness.situations.plays import Everybody, Played, Stage, World
from marketsched.truthfulness.situations.short_ways import ByPlan, only_statement, plans_tell, trusted

KEPT_WORLDS = 4096  # of which it is known what the others want
PLAYED_WHOLE = 32  # one play of so many
COMPARED = 3  # worlds in which the truth is played to the end as well
AMONG = 32  # worlds among which they are looked for


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


class ShortPlays:
    """Short plays of one situation, and the stage where it is played whole."""

    def __init__(self, situation: Described, stage: Stage) -> None:
        self.situation = situation
        self._stage = stage
        self._wanted: dict[Hashable, NDArray[np.int64] | None] = {}
        self._planned_plays = 0  # plays that a plan answered
        self.plans_hold = True  # until a whole play ends otherwise

    def play(self, conduct: Conduct, world: World) -> Played:
        """Play the owner's conduct in a world; as `Stage.play`, with the same end, and the same errors."""
        found = self._planned(conduct, world) if self.plans_hold else None
        if found is not None and self._planned_plays % PLAYED_WHOLE:
            return found
        whole = self._played(conduct, world)
        self.plans_hold = self.plans_hold and (found is None or found == whole)
        return whole

    def _played(self, conduct: Conduct, world: World) -> Played:
        return self._settling(conduct, world) if self.settles else self._stage.play(conduct, world)

    def _planned(self, conduct: Conduct, world: World) -> Played | None:
        """Return the end that follows from the plan of a conduct of one statement; None: it is to be played."""
        statement = only_statement(conduct, self.situation.truth)
        if statement is None or self._ways is None or world.owner.arrival is None:
            return None
        of_world = world.seed if world.picks is None else world.key
        if of_world not in self._wanted:
            if len(self._wanted) >= KEPT_WORLDS:
                self._wanted.clear()
            self._wanted[of_world] = self._ways.wanted(self._stage.fates(world))
        wanted = self._wanted[of_world]
        ends = None if wanted is None else self._ways.ends(statement, world.owner, conduct.key, wanted)
        if ends is None:
            return None
        self._planned_plays += 1
        completion, payment = ends
        return Played(self.situation.worth(completion), payment, completion, drew=False)

    @cached_property
    def _ways(self) -> ByPlan | None:
        """What reports bring by their plans alone; None: the market has no history, or later jobs, or another rule."""
        s = self.situation
        if s.history is None or not s.nobody_later:
            return None
        with suppress(MechanismFault):  # which comes up again when the truth is played
            market = self._stage.at_turn(self._stage.world(0))
            if trusted(market.mechanism) and plans_tell(market.mechanism):
                return ByPlan(market, s.name, s.horizon, s.max_delay)
        return None

    def _settling(self, conduct: Conduct, world: World) -> Played:
        return self._stage.play(conduct, world, partial(_UntilBooked, self.situation.horizon))

    @cached_property
    def settles(self) -> bool:
        """True if the mechanism announces bookings, and they came true in a few worlds."""
        stage, truth = self._stage, plain(self.situation.truth, self.situation.truth.concurrency)
        try:
            worlds = [world for world in map(stage.world, range(AMONG)) if world.owner.arrival is not None]
            if not worlds or not says_what_is_booked(stage.at_turn(worlds[0])):
                return False
            pairs = [(self._settling(truth, world), stage.play(truth, world)) for world in islice(worlds, COMPARED)]
        except (MechanismFault, InvalidReportError):
            return False  # comes up again when the truth is played
        return all(short[:3] == whole[:3] for short, whole in pairs)


def says_what_is_booked(market: GuardedMarket) -> bool:
    """Tell whether the class of the mechanism says so itself: one that builds on another may book otherwise."""
    return "booked" in vars(type(market.mechanism))
