"""A lie of one owner in fresh worlds: its gains over the truth, and what they show.

Gains are paired: truth and lie in the same world. What a gain can be at the least follows from the largest payment,
which is taken to be the highest value that is reported (no job pays more than its reported value); if a larger one is
seen, V_max takes its place, and above that nothing is confirmed. A rule that fines rarely and much may break this
unseen: the sentence of a confirmed lie therefore states the payment that was taken for granted.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cached_property

import numpy as np

from marketsched.agents.conduct import Conduct, plain
from marketsched.mechanisms.errors import InvalidReportError, MechanismFault
from marketsched.truthfulness.searches.betting import detectable, lower_end, mean_interval, worlds_left
from marketsched.truthfulness.searches.evaluation import ROUNDING, Budget, BudgetSpent, Candidate
from marketsched.truthfulness.searches.findings import FEW, Deviation
from marketsched.truthfulness.situations.owner_at_hand import OwnerAtHand
from marketsched.truthfulness.situations.true_owners import Played
from marketsched.truthfulness.situations.worlds import Worlds

RACE, SCORE = range(2)  # what worlds are for; those of different purposes never meet
RACED_FAILURE = 0.0025  # chance that is left to the lower end of a lie in the race
DECIDABLE = 100  # worlds of a score before it may end
LOOK_EVERY = 50  # worlds
MOST = 20_000  # worlds of a score: a gain so near to the tolerance stays open
CHUNK = 12  # worlds at least before it is asked again whether a lie is decided
PRECISE = 0.8  # of the mean gain: what the lower end should reach, if the budget allows


class Truth:
    """The truth of one owner in fresh worlds, played once in each; ``seed`` is the root of the worlds."""

    def __init__(self, owner: OwnerAtHand, seed: int) -> None:
        self.owner, self.seed = owner, seed
        self.conduct = plain(owner.truth, owner.truth.concurrency)
        self.value = max(owner.truth.value.highest, 1e-9)  # credits
        self.largest_payment = 0.0  # seen so far, credits
        self.failure = ""  # why it cannot be played
        self._utilities: dict[int, float] = {}
        self._seeds: dict[int, list[int]] = {RACE: [], SCORE: []}
        self._rngs = [np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(k,))) for k in (RACE, SCORE)]

    def world(self, purpose: int, place: int) -> int:
        """Return the seed of a world."""
        seeds = self._seeds[purpose]
        while len(seeds) <= place:
            seeds.append(int(self._rngs[purpose].integers(2**63)))
        return seeds[place]

    def play(self, conduct: Conduct, world: int, budget: Budget) -> Played:
        """Play a conduct; errors as of `Worlds.play`, and `BudgetSpent`."""
        budget.take()
        try:
            return self._worlds.play(conduct, world)
        except (MechanismFault, InvalidReportError):
            raise
        except Exception as error:  # a user's own misreport may raise anything
            raise MechanismFault(f"{type(error).__name__}: {error}") from error

    def utility(self, world: int, budget: Budget) -> float:
        """Return what the truth brings in a world, credits; errors as of `play`, noted as ``failure``."""
        if world not in self._utilities:
            try:
                played = self.play(self.conduct, world, budget)
            except (MechanismFault, InvalidReportError) as error:
                self.failure = str(error)
                raise
            self.largest_payment = max(self.largest_payment, played.payment)
            self._utilities[world] = played.utility
        return self._utilities[world]

    @cached_property
    def _worlds(self) -> Worlds:
        _ = self.owner.truthful  # which finds out whether what the mechanism calls booked is
        return Worlds(self.owner)


class Trial:
    """A lie in the worlds of a race, and then in those of its score; gains up to ``tolerance``, credits, do not count.

    ``confidence`` is that of the interval of the score.
    """

    def __init__(self, truth: Truth, candidate: Candidate, tolerance: float) -> None:
        self.truth, self.candidate, self.tolerance = truth, candidate, tolerance
        self.confidence = 0.0
        self.raced: list[float] = []
        self.gains: list[float] = []
        self.largest_payment = 0.0  # seen so far, credits

    def gain(self, purpose: int, place: int, budget: Budget) -> float:
        """Return the gain in one world; less than rounding counts as 0. Errors as of `Truth.play`."""
        world = self.truth.world(purpose, place)
        truth = self.truth.utility(world, budget)
        played = self.truth.play(self.candidate.conduct, world, budget)
        self.largest_payment = max(self.largest_payment, played.payment)
        gain = played.utility - truth
        return gain if abs(gain) > ROUNDING * (1 + abs(truth)) else 0.0

    def race(self, n: int, budget: Budget) -> None:
        """Play up to ``n`` worlds of the race; errors as of `Truth.play`."""
        while len(self.raced) < n:
            self.raced.append(self.gain(RACE, len(self.raced), budget))

    @property
    def rank(self) -> tuple[float, float]:
        """Worlds that it would take to confirm it; of those that seem not to pay the best mean first."""
        if not self.raced:
            return math.inf, math.inf
        low = min(-self.truth.value - max(self.candidate.conduct.highest_value, 0.0), *self.raced)
        left = worlds_left(self.raced, low, RACED_FAILURE, self.tolerance)
        return left, -float(np.mean(self.raced)) / self.truth.value

    def score(self, most: int, budget: Budget, tell: Callable[[], None] = lambda: None) -> None:
        """Play worlds of the score until all is decided, the budget is spent, or ``most`` are played.

        Intervals hold at every stopping time, so further plays keep their confidence. Errors as of `Truth.play`.
        """
        try:
            while len(self.gains) < most:
                self.gains.append(self.gain(SCORE, len(self.gains), budget))
                tell()
                n = len(self.gains)
                if n >= DECIDABLE and n % LOOK_EVERY == 0 and self._decided:
                    return
        except BudgetSpent:
            return

    @property
    def left(self) -> float | None:
        """After how many more worlds it is decided; None: it is, or is played no more.

        It is open if it seems to pay, unconfirmed, or has gained in fewer than `FEW` worlds.
        """
        known = self.deviation
        few = known.n_fresh < FEW and known.gain_mean > self.tolerance and not known.confirmed
        if len(self.gains) >= MOST or not known.inside_model or not (known.seems or few):
            return None
        return worlds_left(self.gains, self._lowest, self._failure, self.tolerance)

    def go_on(self, budget: Budget) -> None:
        """Play `CHUNK` more worlds, or a quarter more, or until the budget is spent."""
        n = len(self.gains)
        self.score(min(n + max(CHUNK, n // 4), MOST), budget)

    @property
    def detectable(self) -> float:
        """The mean gain that the worlds of the score would have confirmed, as a share of the value."""
        return detectable(self.gains, self._lowest, self._failure, self.tolerance) / self.truth.value

    @property
    def deviation(self) -> Deviation:
        """The results."""
        owner, misreport, n = self.truth.owner, self.candidate.misreport, len(self.gains)
        low, high = self._interval
        return Deviation(
            job=owner.name,
            worth=owner.truth.value.highest,
            misreport=misreport,
            words=misreport.words(owner.truth),
            size=misreport.distance(owner.truth, owner.public),
            gain_mean=float(np.mean(self.gains or self.raced)),
            gain_low=low,
            gain_high=high,
            confidence=self.confidence,
            seed=self.truth.seed,
            n_fresh=n,
            largest_payment=self._granted,
            inside_model=misreport.inside_model,
            tolerance=self.tolerance,
            confirmed=low > self.tolerance,
            error=float(np.std(self.gains, ddof=1)) / math.sqrt(n) if n > 1 else math.nan,
        )

    @property
    def _decided(self) -> bool:
        low, high = self._interval
        return high <= self.tolerance or (low > self.tolerance and low >= PRECISE * float(np.mean(self.gains)))

    @property
    def _granted(self) -> float:
        """The largest payment under the lie that is taken for granted."""
        payment = max(self.candidate.conduct.highest_value, 0.0)
        most = self.truth.owner.public.max_value or 0.0
        return payment if self.largest_payment <= payment else max(self.largest_payment, most)

    @property
    def _lowest(self) -> float:
        """What a gain can be at the least."""
        return min([-self._granted - self.truth.owner.truth.value.highest, *self.gains])

    @property
    def _failure(self) -> float:
        """The chance left to each end of the interval."""
        return (1 - self.confidence) / 2

    @property
    def _interval(self) -> tuple[float, float]:
        gains, low, highest = self.gains, self._lowest, self.truth.owner.truth.value.highest
        high = max([highest + max(highest, self.truth.largest_payment), *gains])
        most = self.truth.owner.public.max_value
        beyond = most is not None and self.largest_payment > max(most, self.candidate.conduct.highest_value)
        if beyond or low < -self._granted - highest - ROUNDING * (1 - low):
            return -math.inf, high  # what was taken for granted does not hold
        _, upper = mean_interval(gains, low, high, self.confidence)
        return lower_end(gains, low, self._failure, max(self.tolerance, low + ROUNDING)), upper
