"""Fresh worlds of an owner at its turn to submit: what is open then is drawn again, the mechanism's draws included.

The past stays as it was in the market at hand. Drawn again are what is left of the laws of the jobs in the market,
given what was seen (docs/mathematics.md, Section 3), the laws of the owner's job and of those submitted later, and what
the mechanism draws from then on. An integer seed is one world, with one stream for each purpose, and no report moves
any of them: truth and lie are compared in the same world, so that what is common to both cancels. Gains are those at
one history, as the theorem and its certificate mean them (Section 4).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from marketsched.agents.conduct import Conduct
from marketsched.agents.job import Job
from marketsched.agents.loop import Fate
from marketsched.truthfulness.situations.guarded_market import no_collection
from marketsched.truthfulness.situations.lotteries import Lottery, of_arrived, of_statement, of_waiting
from marketsched.truthfulness.situations.owner_at_hand import OwnerAtHand
from marketsched.truthfulness.situations.streams import MECHANISM, OTHERS, OWNER, stream
from marketsched.truthfulness.situations.true_owners import NOTHING, Played


@dataclass(frozen=True)
class World:
    """What happens in one world to the job of the owner, and to those in the market at its turn, by name."""

    seed: int
    own: Fate
    others: Mapping[str, Fate]
    numbers: list[float]  # in [0, 1), one for each job but the owner's; it picks from the job's law
    wanted: NDArray[np.int64] | None  # nodes that others want in each round, see `ByPlan`


class Worlds:
    """Plays of one owner in fresh worlds.

    Examples
    --------
    >>> from marketsched.agents.conduct import plain
    >>> from marketsched.truthfulness.situations.market_at_hand import MarketAtHand
    >>> market = MarketAtHand.of("stochastic-mix")
    >>> (owner,) = market.owners([market.setup.jobs[0].name])
    >>> worlds = Worlds(owner)
    >>> worlds.play(plain(owner.truth, owner.truth.concurrency), seed=0).utility > 0
    True
    """

    def __init__(self, owner: OwnerAtHand) -> None:
        self._owner = owner
        jobs = [job.name for job in owner.market.setup.jobs if job is not owner.job]
        self._number = {name: i for i, name in enumerate(jobs)}
        self._own, self._later = of_statement(owner.truth), dict[str, Lottery]()
        self._world: World | None = None  # the last one: many lies share it

    @cached_property
    def _open(self) -> dict[str, Lottery]:
        """What may still happen to the jobs that are in the market at the owner's turn, by name."""
        market = self._owner.at_turn()
        now, longest = market.now, self._owner.market.public.max_duration or 1
        return {
            name: of_arrived(entry.sow, entry.fate, entry.start, now, longest)
            if entry.arrived
            else of_waiting(entry.sow, now)
            for name, entry in market.entries.items()
        }

    def world(self, seed: int) -> World:
        """Return the world of a seed."""
        if self._world is None or self._world.seed != seed:
            own = self._own.outcomes[self._own.pick(float(stream(seed, OWNER).random()))][1]
            numbers = stream(seed, OTHERS).random(len(self._number)).tolist()
            others = {
                name: lottery.outcomes[lottery.pick(numbers[self._number[name.removesuffix("+")]])][1]
                for name, lottery in self._open.items()
            }
            ways = self._owner.ways
            self._world = World(seed, own, others, numbers, None if ways is None else ways.wanted(others))
        return self._world

    def play(self, conduct: Conduct, seed: int) -> Played:
        """Play a conduct of the owner in the world of ``seed``, by a short way where there is one.

        Raises InvalidReportError if the mechanism refuses a report, MechanismFault if it is at fault.
        """
        world, owner = self.world(seed), self._owner
        if world.own.arrival is None and not conduct.withdraws:
            return NOTHING
        planned = owner.planned(conduct, world.own, world.wanted)
        if planned is not None and not owner.plays_whole():
            return planned
        with no_collection():
            market = owner.at_turn()
            market.foretell(world.others)
            # Else a lie that makes the mechanism draw once more or less would pay, or not, by the luck of one stream.
            market.redraw(stream(seed, MECHANISM))
            hand = owner.market
            ways: dict[str, Any] = {"settles": hand.settles, "alone": hand.alone and hand.shortens}
            whole = owner.plays.whole(market, conduct, world.own, **ways, redrawn=partial(self._redrawn, world))
        hand.shortens = hand.shortens and (planned is None or planned[:3] == whole[:3])
        return whole

    def _redrawn(self, world: World, job: Job) -> Job:
        """Return a job as it is in a world; those that left the market before the owner's turn are as they were."""
        fate = world.others.get(job.name)
        if fate is None and job.truth.birth >= self._owner.truth.birth and job.name in self._number:
            if job.name not in self._later:
                self._later[job.name] = of_statement(job.truth)
            lottery = self._later[job.name]
            fate = lottery.outcomes[lottery.pick(world.numbers[self._number[job.name]])][1]
        return job if fate is None else Job(job.name, job.owner, job.truth, fate.arrival, fate.duration, fate.signal)
