"""The gain of each candidate over the truth in a situation, world by world, within a budget.

Worlds come in one fixed order, the same for all candidates. Where they can be counted (certain
arrivals, a few jobs) and the mechanism draws nothing, they are enumerated with their probabilities:
then every gain is exact, and if there is one world, one play decides. Otherwise they are drawn from
seeds, and equal plays (the same report in the same world, by a mechanism that draws nothing) are made
once.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from marketsched.agents.conduct import Conduct, plain
from marketsched.agents.lies import Misreport, PublicInformation, Truthful
from marketsched.mechanisms.errors import InvalidReportError, MarketschedError, MechanismFault
from marketsched.mechanisms.sow import StatementOfWork
from marketsched.truthfulness.searches.processor import processor_seconds
from marketsched.truthfulness.situations.plays import Played, World
from marketsched.truthfulness.situations.situation import Situation

MOST_WORLDS = 256  # that are enumerated
ROUNDING = 1e-9  # of the truth's utility and 1 credit: smaller gains are none
WORTH_ENUMERATING = 4  # candidates that the budget must take through all worlds, or worlds are drawn
REMEMBERED = 500_000  # plays

SEARCH, FRESH = range(2)  # seeds of a search


class BudgetSpent(Exception):
    """The share of the budget that a phase may use is spent (control flow, no error)."""


class MechanismDraws(Exception):
    """The mechanism draws where it did not before: its worlds cannot be enumerated (control flow)."""


class TruthFails(Exception):
    """The mechanism fails under the truth: there is nothing to compare with (control flow)."""


class Budget:
    """Plays (None: any number; equal ones that are not made again do not count), and seconds of the processor.

    Seconds are those of this process and its workers since the budget was made; None: any number.
    """

    def __init__(self, plays: int | None, seconds: float | None) -> None:
        self.most_plays, self.most_seconds = plays, seconds
        self.plays = 0
        self._asked = 0  # plays that were asked for, those already made included
        self._begin = processor_seconds()
        self._share = 1.0
        self.cut = False  # seconds ended a phase

    @property
    def seconds(self) -> float:
        """Seconds of the processor so far."""
        return processor_seconds() - self._begin

    @property
    def used(self) -> float:
        """The share that is spent, of plays or of seconds, whichever is more."""
        plays = 0.0 if self.most_plays is None else self.plays / self.most_plays if self.most_plays else 1.0
        seconds = 0.0 if self.most_seconds is None else self.seconds / self.most_seconds
        return max(plays, seconds)

    @property
    def out_of_time(self) -> bool:
        """Whether the seconds of the phase are spent."""
        over = self.most_seconds is not None and self.seconds >= self._share * self.most_seconds
        self.cut |= over
        return over

    @property
    def plays_left(self) -> int | None:
        """Plays that the phase may still make; None: they are not counted."""
        return None if self.most_plays is None else max(0, math.ceil(self._share * self.most_plays) - self.plays)

    def allow(self, share: float) -> None:
        """Let the next phase go on until this share of all is spent."""
        self._share = share

    def take(self) -> None:
        """Count one play, or raise `BudgetSpent`."""
        self.check()
        self.plays += 1

    def check(self) -> None:
        """Raise `BudgetSpent` if the phase has had its share."""
        self._asked += 1
        if self.used >= self._share:
            _ = self.out_of_time
            raise BudgetSpent

    def rest(self) -> Budget:
        """Return a budget of its own of all that is left."""
        return Budget(
            None if self.most_plays is None else max(0, self.most_plays - self.plays),
            None if self.most_seconds is None else max(1e-6, self.most_seconds - self.seconds),
        )

    def affordable(self) -> int:
        """Return how many plays are left in this phase, at the rate so far."""
        used = self.used
        return int(self._asked * max(0.0, self._share - used) / used) if used > 0 else 0


@dataclass(frozen=True)
class Failure:
    """A candidate that could not be compared: the lie, and the reason."""

    words: str
    reason: str


@dataclass(eq=False)
class Candidate:
    """A misreport, and its gains so far."""

    misreport: Misreport
    conduct: Conduct
    gains: list[float] = field(default_factory=list)  # by world, in the order of the search
    largest_payment: float = 0.0  # seen so far, credits
    failure: str | None = None

    @property
    def key(self) -> Hashable:
        """Equal for candidates that do the same."""
        return self.conduct.key


class Evaluator:
    """Gains over the truth in a situation, world by world, within a budget; ``seed`` is the root of the worlds."""

    def __init__(self, situation: Situation, seed: int, budget: Budget) -> None:
        self.situation = situation
        self.budget = budget
        self.seed = seed
        self.truth = Candidate(Truthful(), plain(situation.truth, situation.truth.concurrency))
        self._memory: dict[tuple[Hashable, tuple[int, ...]], Played] = {}
        self._true: dict[int, float] = {}  # the truth's utility, by place of the world
        self._worlds: list[World] = []
        self.weights: NDArray[np.float64] | None = None  # of the enumerated worlds; None: worlds are drawn
        self._seeds = _seeds(seed, SEARCH)

    def enumerate(self, first: Iterable[Candidate]) -> None:
        """Find out whether all worlds can be gone through: few of them, within the budget, and no draws.

        ``first`` are candidates to look at; should the mechanism draw later, `gain` still notices.
        """
        listed = self.situation.stage.worlds(MOST_WORLDS)
        if listed is None:
            return
        for candidate in [self.truth, *first]:
            for world in (listed[0][0], listed[-1][0]):
                try:
                    drew = self._play(candidate, world).drew
                except BudgetSpent:
                    return
                except (MechanismFault, InvalidReportError):
                    if self.truth.failure is not None:
                        raise TruthFails(self.truth.failure) from None
                    return
                if drew:
                    return
        if len(listed) > 1 and len(listed) * WORTH_ENUMERATING > self.budget.affordable():
            return  # the budget would end before the first candidates have been through all worlds
        self._worlds = [world for world, _ in listed]
        self.weights = np.array([weight for _, weight in listed])

    @property
    def exact(self) -> bool:
        """True if gains are exact expectations."""
        return self.weights is not None

    def estimate(self, candidate: Candidate) -> float:
        """Return the mean gain so far, or the expectation, if worlds are enumerated; -inf: nothing is known."""
        if not candidate.gains or (self.weights is not None and len(candidate.gains) < self.weights.size):
            return -math.inf
        gains = np.array(candidate.gains)
        if self.weights is None:
            return float(gains.mean())
        expected = float(gains @ self.weights)  # where gains and losses cancel, the sum leaves a rounding
        return expected if abs(expected) > ROUNDING * (1 + float(np.abs(gains).max())) else 0.0

    @property
    def truthful(self) -> float | None:
        """Mean utility of the truth over the worlds of the search; None: it was never played."""
        utilities = [u for place, u in sorted(self._true.items()) if place >= 0]
        if not utilities:
            return None
        whole = self.weights is not None and len(utilities) == self.weights.size
        return float(np.average(utilities, weights=self.weights if whole else None))

    def gains(self, candidate: Candidate, n: int) -> list[float]:
        """Return the gains in the first ``n`` worlds.

        Raises BudgetSpent if the budget ends before, results so far are kept; MechanismFault or InvalidReportError
        if a play of the candidate, or of the truth, fails, now or before.
        """
        while len(candidate.gains) < n:
            place = len(candidate.gains)
            candidate.gains.append(self.gain(candidate, self._world(place), place))
        return candidate.gains[:n]

    def gain(self, candidate: Candidate, world: World, place: int) -> float:
        """Return the gain in one world, whose number is ``place``; less than rounding counts as 0."""
        if place not in self._true:
            played = self._play(self.truth, world)
            self.truth.largest_payment = max(self.truth.largest_payment, played.payment)
            self._true[place] = played.utility
        played = self._play(candidate, world)
        candidate.largest_payment = max(candidate.largest_payment, played.payment)
        gain = played.utility - self._true[place]
        return gain if abs(gain) > ROUNDING * (1 + abs(self._true[place])) else 0.0

    def fresh(self) -> Iterator[tuple[int, World]]:
        """Go through worlds that the search has not seen, with numbers of their own."""
        for k, seed in enumerate(_seeds(self.seed, FRESH)):
            yield -1 - k, self.situation.stage.world(seed)

    def _world(self, place: int) -> World:
        while len(self._worlds) <= place:
            self._worlds.append(self.situation.stage.world(next(self._seeds)))
        return self._worlds[place]

    def _play(self, candidate: Candidate, world: World) -> Played:
        key = None if world.key is None else (candidate.key, world.key)
        if key is not None and key in self._memory:
            self.budget.check()
            return self._memory[key]
        self.budget.take()
        try:
            played = self.situation.short_plays.play(candidate.conduct, world)
        except (MechanismFault, InvalidReportError) as error:
            candidate.failure = str(error)
            raise
        except Exception as error:  # a user's own misreport may raise anything
            candidate.failure = f"{type(error).__name__}: {error}"
            raise MechanismFault(candidate.failure) from error
        if self.weights is not None and played.drew:
            raise MechanismDraws
        if key is not None and not played.drew and len(self._memory) < REMEMBERED:
            self._memory[key] = played
        return played


class Reporter(Protocol):
    """An owner who may lie: its true statement, the public information, and the check of reports."""

    @property
    def truth(self) -> StatementOfWork:
        """Its true statement."""
        ...

    @property
    def public(self) -> PublicInformation:
        """Sizes, and the limits that the mechanism announces."""
        ...

    def check(self, report: StatementOfWork) -> None:
        """Raise InvalidReportError if a report breaks the mechanism's limits."""
        ...


def prepared(situation: Reporter, misreport: Misreport) -> Candidate | Failure | None:
    """Return a Candidate, a Failure if the mechanism cannot play it, or None if the report is not legal.

    None is for misreports of the package alone: a user's own one that is illegal for this truth is named.
    """
    try:
        truth, public = situation.truth, situation.public
        conduct = misreport.conduct(truth, truth, public)
        for statement in conduct.statements:
            situation.check(statement.report)
        return Candidate(misreport, conduct)
    except InvalidReportError as error:
        own = not misreport.kind
        return Failure(_words(misreport, situation), str(error)) if own else None
    except Exception as error:
        what = str(error) if isinstance(error, MarketschedError) else f"{type(error).__name__}: {error}"
        return Failure(_words(misreport, situation), what)


def _words(misreport: Misreport, situation: Reporter) -> str:
    try:
        return misreport.words(situation.truth)
    except Exception:  # a user's own words
        return repr(misreport)


def _seeds(seed: int, purpose: int) -> Iterator[int]:
    """Yield seeds of worlds, for ever; those of different purposes never meet."""
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(purpose,)))
    while True:
        yield int(rng.integers(2**63))
