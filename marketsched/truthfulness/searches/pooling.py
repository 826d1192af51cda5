"""Fixed lies over many owners and worlds: the mean gain of a single owner with this report.

In each world all fates are drawn anew from the jobs' true laws, and the mechanism's stream with them. A few owners are
drawn, and each of a few lies is played for each of them, all others true. The unit is the world: the mean over its
owners of the gain, in shares of the highest value of the owner's job. Owners of one world share its luck, worlds share
nothing. Lies that lose so far leave, so that worlds go to what seems to pay, until it is decided or the budget ends.

A lie is *confirmed* if bets on its mean gain being above the tolerance win (:mod:`..betting`). What a gain can be at
the least is taken for granted as in `Scores`: no job pays more than it reports to be worth, unless one was seen to.

`power` is the gain that such a search can detect: the mean gain that, with the spread between worlds that was seen,
it would have confirmed with 90 % chance.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from marketsched.agents.lies import Misreport
from marketsched.mechanisms.errors import InvalidReportError, MechanismFault
from marketsched.truthfulness.searches.betting import exceeds, lower_end
from marketsched.truthfulness.searches.evaluation import Budget, BudgetSpent, Candidate, prepared
from marketsched.truthfulness.searches.findings import FEW, seems_positive
from marketsched.truthfulness.searches.plays_ahead import Held, PlaysAhead
from marketsched.truthfulness.searches.screened import SCREENED, Screened
from marketsched.truthfulness.searches.screening import drawn_owners
from marketsched.truthfulness.situations.market_at_hand import MarketAtHand

POOLED = 3  # lies
OWNERS = 6  # of each world
WORLDS = 200  # at most
LOOK_AT = (8, 16, 32, 64, 128)  # worlds, after which lies that lose leave
CHANCE = 0.9  # with which `power` would have been confirmed
RESAMPLED = 200
HALVINGS = 14
Lies = tuple[Misreport, ...]


@dataclass
class Pooled:
    """The mean gain of a fixed lie, in shares of the value of a job.

    ``means`` has one number for each world; ``owners`` counts those played, ``gained`` those that gained.
    """

    lie: Misreport
    failure: float
    tolerance: float = 0.0  # share of a value
    means: list[float] = field(default_factory=list)
    owners: int = 0
    gained: int = 0
    lowest: float = -1.0  # what a gain can be at the least: the job's value, and what the lie may pay
    credits: float = 0.0  # sum of the gains
    among: int = 1  # lies

    @property
    def mean(self) -> float:
        """Mean gain, share of a value."""
        return float(np.mean(self.means)) if self.means else float("nan")

    @property
    def error(self) -> float:
        """Standard error of the mean, with the world as the unit."""
        return float(np.std(self.means, ddof=1) / np.sqrt(len(self.means))) if len(self.means) > 1 else float("nan")

    @property
    def confirmed(self) -> bool:
        """Whether the mean gain is surely above the tolerance."""
        return bool(exceeds(np.array([self.means]), self.lowest, self.failure, self.tolerance)[0])

    @property
    def low(self) -> float:
        """The lower confidence limit of the mean gain."""
        return lower_end(self.means, self.lowest, self.failure, self.tolerance)

    @property
    def seems(self) -> bool:
        """Whether it seems to pay, and is not confirmed."""
        if len(self.means) < FEW or self.confirmed:
            return False
        return seems_positive(self.mean - self.tolerance, self.error, len(self.means), self.among)

    def power(self, seed: int = 0) -> float:
        """Return the mean gain, share of a value, that these worlds would have confirmed with `CHANCE`.

        Worlds are drawn again from those seen, moved so that their mean is the gain; inf: not even the largest gain.
        """
        means = np.array(self.means)
        if means.size < 2:
            return float("inf")
        picks = np.random.default_rng([0x90E4, seed]).integers(means.size, size=(RESAMPLED, means.size))
        spread = (means - means.mean())[picks]
        low = min(self.lowest, float(spread.min()))

        def confirmed(gain: float) -> float:
            return float(exceeds(spread + gain, low, self.failure, self.tolerance).mean())

        bottom, top = self.tolerance, 1.0 - low
        if confirmed(top) < CHANCE:
            return float("inf")
        for _ in range(HALVINGS):
            middle = (bottom + top) / 2
            bottom, top = (bottom, middle) if confirmed(middle) >= CHANCE else (middle, top)
        return top


def promoted(screened: Screened, most: int = POOLED) -> list[Misreport]:
    """Return the fixed lies that gained most on average in the market at hand, as shares of the values."""
    shares: dict[int, list[float]] = {}
    for g in screened.gains:
        value = g.owner.truth.value.highest
        if g.misreport in SCREENED and value > 0:
            shares.setdefault(SCREENED.index(g.misreport), []).append(g.gain / value)
    order = sorted(shares, key=lambda i: -float(np.mean(shares[i])))
    return [SCREENED[i] for i in order[:most]]


def pooled_lies(
    market: MarketAtHand,
    lies: Sequence[Misreport],
    budget: Budget,
    *,
    confidence: float = 0.99,
    tolerance: float = 0.0,
    seed: int = 0,
    tell: Callable[[float], None] = lambda share: None,
    ahead: PlaysAhead | None = None,
) -> list[Pooled]:
    """Play fixed lies over owners and worlds until all are decided or the budget ends.

    Parameters
    ----------
    market : MarketAtHand
        Whose true statements are kept.
    lies : sequence of Misreport
        The error probability is divided among them.
    budget : Budget
        Plays and seconds.
    confidence : float
        With this probability none of the lies that are confirmed fails to pay, in (0, 1).
    tolerance : float
        Gains up to this share of a value do not count.
    seed : int
        Of the worlds.
    tell : function of float
        Called with the share of the budget that is spent.
    ahead : PlaysAhead, optional
        Plays worlds in advance; None: nothing does.

    Returns
    -------
    list of Pooled
        In the order of ``lies``.

    Raises
    ------
    MechanismFault
        If the mechanism fails under the truth.
    """
    failure = (1 - confidence) / max(1, len(lies))
    found = [Pooled(lie, failure, tolerance, among=len(lies)) for lie in lies]
    seeds = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(0xB001,)))
    alive = list(found)
    worlds = [int(seeds.integers(2**62)) for _ in range(WORLDS)]
    made: dict[int, World] = {}  # by seed, for the lies that are alive
    try:
        for world, own in enumerate(worlds, 1):
            if not alive:
                break
            asked = tuple(p.lie for p in alive)
            if own not in made and ahead is not None:
                made = _made_ahead(ahead, worlds[world - 1 : _next_look(world)], asked, budget)
            if own in made:
                for _ in range(made[own].plays):
                    budget.take()
            _add(made.get(own) or played_world(market.redrawn(own), asked, budget.take), alive)
            tell(budget.used)
            if world in LOOK_AT:
                alive = [p for p in alive if not p.confirmed]
                rising = [p for p in alive if p.mean > tolerance]
                alive = rising or alive
    except BudgetSpent:
        pass
    return found


def _next_look(world: int) -> int:
    """Return the world after which lies may leave next."""
    return next((at for at in LOOK_AT if at >= world), WORLDS)


def _made_ahead(ahead: PlaysAhead, seeds: Sequence[int], lies: Lies, budget: Budget) -> dict[int, World]:
    """Return worlds that workers have played, as many as the plays that are left allow at least."""
    left = budget.plays_left
    most = len(seeds) if left is None else -(-left // (1 + len(lies) * OWNERS))
    asked = [Asked(seed, lies) for seed in seeds[:most]]
    found = {}
    for one, ended in ahead.many(world_at, asked, budget, at_a_time=1):
        if isinstance(ended, Exception):
            break
        found[one.seed] = ended
    return found


class Asked(NamedTuple):
    """A world to play: its seed, and the lies."""

    seed: int
    lies: Lies


class World(NamedTuple):
    """The results of one world: plays, and of each lie what its owners gained (shares) and its lowest gain."""

    plays: int
    gains: list[NDArray[np.float64]]
    lowest: list[float]


def world_at(held: Held, asked: Asked) -> World:
    """Play a world where a worker holds the market."""
    return played_world(held.market.redrawn(asked.seed), asked.lies)


def played_world(market: MarketAtHand, lies: Lies, take: Callable[[], None] = lambda: None) -> World:
    """Play each lie for a few owners of one world, and call ``take`` before each play.

    Raises MechanismFault if the mechanism fails under the truth.
    """
    names = drawn_owners(market, OWNERS, market.seed)
    take()
    plays = 1
    owners = [owner for owner in market.owners(names) if owner.truth.value.highest > 0]
    gains: list[NDArray[np.float64]] = []
    lowest = []
    for lie in lies:
        shares, low = [], 0.0
        for owner in owners:
            made = prepared(owner, "pooled", lie)
            if not isinstance(made, Candidate) or made.conduct.key == owner.truth:
                continue
            take()
            plays += 1
            value = owner.truth.value.highest
            try:
                played = owner.play(made.conduct)
            except (MechanismFault, InvalidReportError):
                continue
            reported = max(made.conduct.highest_value, 0.0)
            most = reported if played.payment <= reported else max(played.payment, owner.public.max_value or 0.0)
            low = min(low, -1.0 - most / value)
            shares.append((played.utility - market.outcomes[owner.name].utility) / value)
        gains.append(np.array(shares))
        lowest.append(low)
    return World(plays, gains, lowest)


def _add(world: World, lies: Sequence[Pooled]) -> None:
    """Add one world to each lie."""
    for pooled, shares, low in zip(lies, world.gains, world.lowest, strict=True):
        pooled.lowest = min(pooled.lowest, low)
        if shares.size:
            pooled.means.append(float(shares.mean()))
            pooled.owners += shares.size
            pooled.gained += int((shares > 1e-9).sum())
