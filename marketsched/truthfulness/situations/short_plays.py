"""Plays that end as soon as all is booked that the owner waits for; they end as whole plays do, bit by bit.

A *whole* play (`Stage.play`) goes on until the owner's last statement has left the market. A mechanism may say that
nothing can change start and payment of a job any more (``booked``, see `Mechanism`); the play then ends. Before that is
believed, some plays of the truth are made to their end, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property, partial
from itertools import islice
from typing import Any

from marketsched.agents.conduct import Conduct, plain
from marketsched.agents.loop import MarketLoop
from marketsched.mechanisms.errors import InvalidReportError, MechanismFault
from marketsched.mechanisms.mechanism import Event
from marketsched.truthfulness.situations.described import Described
from marketsched.truthfulness.situations.guarded_market import GuardedMarket
from marketsched.truthfulness.situations.plays import Everybody, Played, Stage, World

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

    def play(self, conduct: Conduct, world: World) -> Played:
        """Play the owner's conduct in a world; as `Stage.play`, with the same end, and the same errors."""
        return self._settling(conduct, world) if self.settles else self._stage.play(conduct, world)

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
