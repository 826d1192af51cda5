"""Fixed lies over many owners and worlds: what an owner gains who is alone in reporting so, on average.

In each world all fates are drawn anew from the jobs' true laws, and the mechanism's stream with them. A few owners are
drawn, and each of a few lies is played for each of them, all others true. The unit is the world: the mean over its
owners of the gain, in shares of the highest value of the owner's job. Owners of one world share its luck, worlds share
nothing. Lies that lose so far leave, so that worlds go to what seems to pay, until it is decided or the budget ends.

A lie is *confirmed* if bets on its mean gain being above the tolerance win (:mod:`..betting`). What a gain can be at
the least is taken for granted as in `Scores`: no job pays more than it reports to be worth, unless one was seen to.

`power` says what such a search can find: the mean gain that, with the spread between worlds that was seen, it would
have confirmed with 90 % chance.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from marketsched.agents.lies import Misreport
from marketsched.mechanisms.errors import InvalidReportError, MechanismFault
from marketsched.truthfulness.searches.betting import exceeds, lower_end
from marketsched.truthfulness.searches.evaluation import Budget, BudgetSpent, Candidate, prepared
from marketsched.truthfulness.searches.findings import FEW, seems_positive
from marketsched.truthfulness.searches.screening import SCREENED, Screened, drawn_owners
from marketsched.truthfulness.situations.market_at_hand import MarketAtHand

POOLED = 3  # lies
OWNERS = 6  # of each world
WORLDS = 200  # at most
LOOK_AT = (8, 16, 32, 64, 128)  # worlds, after which lies that lose leave
CHANCE = 0.9  # with which `power` would have been confirmed
RESAMPLED = 200
HALVINGS = 14


@dataclass
class Pooled:
    """What a fixed lie gained on average, in shares of the value of a job.

    ``means`` has one number for each world; ``owners`` counts those played, ``gained`` those that gained.
    """

    lie: Misreport
    failure: float
    tolerance: float = 0.0  # share of a value
    means: list[float] = field(default_factory=list)
    owners: int = 0
    gained: int = 0
    lowest: float = -2.0  # what a gain can be at the least
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
        """What the mean gain surely exceeds."""
        return lower_end(self.means, self.lowest, self.failure, self.tolerance)

    @property
    def seems(self) -> bool:
        """Whether it seems to pay, and is not confirmed."""
        if len(self.means) < FEW or not self.error > 0 or self.confirmed:
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
) -> list[Pooled]:
    """Play fixed lies over owners and worlds until all are decided or the budget ends.

    Parameters
    ----------
    market : MarketAtHand
        Whose true statements are kept.
    lies : sequence of Misreport
        They share what the confidence leaves.
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
    try:
        for world in range(1, WORLDS + 1):
            if not alive:
                break
            _play_world(market.redrawn(int(seeds.integers(2**62))), alive, budget)
            tell(budget.used)
            if world in LOOK_AT:
                alive = [p for p in alive if not p.confirmed]
                rising = [p for p in alive if p.mean > tolerance]
                alive = rising or alive
    except BudgetSpent:
        pass
    return found


def _play_world(market: MarketAtHand, lies: Sequence[Pooled], budget: Budget) -> None:
    """Add one world to each lie; nothing is added if the budget ends within it."""
    names = drawn_owners(market, OWNERS, market.seed)
    budget.take()
    owners = [owner for owner in market.owners(names) if owner.truth.value.highest > 0]
    gains: list[NDArray[np.float64]] = []
    lowest = []
    for pooled in lies:
        shares, low = [], pooled.lowest
        for owner in owners:
            made = prepared(owner, "pooled", pooled.lie)
            if not isinstance(made, Candidate) or made.conduct.key == owner.truth:
                continue
            budget.take()
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
    for pooled, shares_of, low in zip(lies, gains, lowest, strict=True):
        pooled.lowest = low
        if shares_of.size:
            pooled.means.append(float(shares_of.mean()))
            pooled.owners += shares_of.size
            pooled.gained += int((shares_of > 1e-9).sum())
