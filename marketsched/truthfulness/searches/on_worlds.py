"""Lies on fresh worlds, for what one market cannot decide: rules that draw, and promises that hold on average alone.

A world is all that is still open at the owner's turn: the outcomes of all jobs, its own included, and the mechanism's
draws. Truth and lie are played in the same worlds, with the same draws, so that what is common to both cancels. Few
lies of few owners begin: those that did best in the market at hand, and those that a certificate names. In each heat
those stay that bets would show to pay soonest, if gains go on as they are (:mod:`..betting`). The best is then scored
on worlds of its own, and goes on for as long as it seems to pay and is not confirmed; then the next one has its turn,
with half of the error probability that is left.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from marketsched.agents.lies import Misreport
from marketsched.mechanisms.errors import InvalidReportError, MechanismFault
from marketsched.truthfulness.searches.betting import detectable, worlds_left
from marketsched.truthfulness.searches.evaluation import (
    Budget,
    BudgetSpent,
    Candidate,
    Evaluator,
    MechanismDraws,
    TruthFails,
    prepared,
)
from marketsched.truthfulness.searches.findings import Deviation
from marketsched.truthfulness.searches.scoring import Score
from marketsched.truthfulness.situations.situation import Situation

HEATS = ((1, 1 << 30), (3, 40), (8, 12), (24, 6), (64, 3))  # worlds after each, and how many lies play in it
SCORED = 3  # lies of a race
AT_A_TIME = 24  # owners in a race, at most; the next ones follow if plays are left
FIRST_HEAT = 0.7  # of the plays of a race, at most
RACING = 0.45  # of the plays, at most
LEAST = 350  # fresh worlds of a lie, whatever it seems: a gain of a few per cent of the value would then be confirmed
HOPELESS = 2.0  # times the plays that are left: a lie that seems to need more worlds is given up


@dataclass(frozen=True, repr=False)
class Claim:
    """A lie of one owner that was scored on worlds of its own."""

    situation: Situation
    deviation: Deviation  # the lie, its gain, and whether that is confirmed
    truthful: float | None  # mean utility of the truth in the race's worlds, credits; None: not played there
    detectable: float  # the mean gain that would have been confirmed with 90 % chance, share of the value; inf: none

    @property
    def job(self) -> str:
        """Name of the owner's job."""
        return self.situation.name

    def __repr__(self) -> str:
        """Return the job, the lie and its gain."""
        return f"Claim({self.job!r}, {self.deviation.words!r}, {self.deviation.gain_mean:g})"


@dataclass
class OnWorlds:
    """The results: lies that were scored, in the order of the race; of all that were played job, size and gain.

    ``truth_fails`` has the reasons why the truth of an owner could not be played, by job.
    """

    claims: list[Claim] = field(default_factory=list)
    tried: list[tuple[str, float, float]] = field(default_factory=list)
    truth_fails: dict[str, str] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)
    plays: int = 0

    @property
    def confirmed(self) -> list[Claim]:
        """The lies that surely pay, largest sure gain first."""
        found = [claim for claim in self.claims if claim.deviation.confirmed]
        return sorted(found, key=lambda claim: -claim.deviation.gain_low)


@dataclass(eq=False)
class _Runner:
    """A lie in the race; `Score` has what its gain can be at the least, and whether it seems to pay."""

    evaluator: Evaluator
    candidate: Candidate
    tolerance: float

    @property
    def value(self) -> float:
        return max(self.evaluator.situation.truth.value.highest, 1e-9)

    @property
    def rank(self) -> tuple[float, float]:
        """Worlds that it would take to confirm it; of those that seem not to pay the best mean first."""
        gains = self.candidate.gains
        if not gains:
            return math.inf, math.inf
        low = min(-self.value - max(self.candidate.conduct.highest_value, 0.0), *gains)
        return worlds_left(gains, low, 0.0025, self.tolerance), -float(np.mean(gains)) / self.value

    @property
    def promising(self) -> bool:
        """Whether it gained on average so far."""
        return math.isfinite(self.rank[0])


def lies_on_worlds(
    situations: Sequence[Situation],
    lies: Mapping[str, Sequence[Misreport]],
    budget: Budget,
    more: Budget,
    *,
    confidence: float = 0.99,
    tolerance: float = 0.0,
    seed: int = 0,
    tell: Callable[[], None] = lambda: None,
) -> OnWorlds:
    """Play lies on fresh worlds, and score the best.

    ``situations`` has one of each owner, ``lies`` are by job, illegal ones left out. ``budget`` is for the race and the
    scores, ``more`` is spent only while a lie seems to pay and is not confirmed. With probability ``confidence`` no lie
    that is confirmed fails to pay; gains up to ``tolerance``, credits, do not count. ``tell`` is called now and then.
    """
    found, failure = OnWorlds(), (1 - confidence) / 2
    together, left = _at_a_time(lies, budget), list(situations)
    while left and not found.confirmed and budget.used < 1.0:
        races = budget.used + RACING * (1 - budget.used)
        budget.allow(races)
        runners: list[_Runner] = []
        while left and not any(runner.promising for runner in runners) and (not runners or budget.used < races):
            group, left = left[:together], left[together:]
            runners += _race(_runners(group, lies, budget, tolerance, seed, found), found, tell)
        budget.allow(1.0)
        for runner in sorted(runners, key=lambda runner: runner.rank)[:SCORED]:
            if found.confirmed or budget.used >= 1.0:
                break
            claim = _scored(runner, budget, more, 1 - failure, found, tell)
            failure /= 2
            if claim is not None:
                found.claims.append(claim)
    found.plays = budget.plays + more.plays
    return found


def _at_a_time(lies: Mapping[str, Sequence[Misreport]], budget: Budget) -> int:
    """Return how many owners race together: as many as the race has plays for in the worlds of its first heat."""
    if budget.plays_left is None or not lies:
        return AT_A_TIME
    plays = HEATS[0][0] * (1 + max(map(len, lies.values())))
    return max(1, min(AT_A_TIME, int(FIRST_HEAT * RACING * budget.plays_left / plays)))


def _runners(
    situations: Sequence[Situation],
    lies: Mapping[str, Sequence[Misreport]],
    budget: Budget,
    tolerance: float,
    seed: int,
    found: OnWorlds,
) -> list[_Runner]:
    runners: list[_Runner] = []
    for situation in situations:
        evaluator = Evaluator(situation, seed, budget)
        made = [prepared(situation, lie) for lie in lies.get(situation.name, ())]
        own = {c.key: c for c in made if isinstance(c, Candidate) and c.key != evaluator.truth.key}
        runners += [_Runner(evaluator, candidate, tolerance) for candidate in own.values()]
    return runners


def _race(runners: list[_Runner], found: OnWorlds, tell: Callable[[], None]) -> list[_Runner]:
    """Return the lies, those that would be confirmed soonest first."""
    all_of_them, alive, before = list(runners), list(runners), 0
    try:
        for worlds, most in HEATS:
            alive = sorted(alive, key=lambda runner: runner.rank)[:most] if before else alive
            for n in range(before + 1, worlds + 1):
                for runner in list(alive):
                    if not _played(runner, n, found):
                        alive.remove(runner)
                        all_of_them.remove(runner)
                tell()
            before = worlds
    except BudgetSpent:
        pass
    for runner in all_of_them:
        candidate, s = runner.candidate, runner.evaluator.situation
        gain = runner.evaluator.estimate(candidate)
        if math.isfinite(gain):
            found.tried.append((s.name, candidate.misreport.distance(s.truth, s.public), gain))
    order = sorted(alive, key=lambda runner: runner.rank)
    return order + sorted((r for r in all_of_them if r not in alive), key=lambda runner: runner.rank)


def _played(runner: _Runner, n: int, found: OnWorlds) -> bool:
    """Play a lie up to world ``n``; False: it fails."""
    evaluator, candidate = runner.evaluator, runner.candidate
    try:
        evaluator.gains(candidate, n)
    except (MechanismFault, InvalidReportError) as error:
        if evaluator.truth.failure is not None:
            found.truth_fails[evaluator.situation.name] = evaluator.truth.failure
        else:
            found.failures.append(f"{evaluator.situation.name} {candidate.misreport!r}: {error}")
        return False
    return True


def _scored(
    runner: _Runner, budget: Budget, more: Budget, confidence: float, found: OnWorlds, tell: Callable[[], None]
) -> Claim | None:
    """Score a lie on worlds of its own, and play on while it seems to pay; None: it fails."""
    if not runner.candidate.gains:
        return None
    runner.evaluator.budget = budget
    try:
        runner = _in_all_worlds(runner) or runner
        evaluator, candidate = runner.evaluator, runner.candidate
        score = Score(evaluator, candidate, confidence, runner.tolerance)
        score.play(LEAST, tell)
        while (worlds := score.left()) is not None and more.used < 1.0:
            left = more.plays_left
            if left is not None and 2 * worlds > HOPELESS * left:
                break
            own = more.rest()
            score.go_on(own)
            more.plays += own.plays
            budget.cut |= own.cut
            tell()
    except TruthFails as error:
        found.truth_fails[runner.evaluator.situation.name] = str(error)
        return None
    if score.failed:
        found.failures.append(str(candidate.failure))
        return None
    power = math.nan if evaluator.exact else score.detectable(detectable) / runner.value
    return Claim(evaluator.situation, score.deviation(), evaluator.truthful, power)


def _in_all_worlds(runner: _Runner) -> _Runner | None:
    """Return a lie played in every world, if they are few and the mechanism draws nothing: its gain is then exact.

    Raises TruthFails if the truth cannot be played.
    """
    raced, lie = runner.evaluator, runner.candidate
    evaluator = Evaluator(raced.situation, raced.seed, raced.budget)
    candidate = Candidate(lie.misreport, lie.conduct)
    evaluator.enumerate([candidate])
    if evaluator.weights is None:
        return None
    try:
        evaluator.gains(candidate, evaluator.weights.size)
    except (BudgetSpent, MechanismDraws, MechanismFault, InvalidReportError):
        return None
    return _Runner(evaluator, candidate, runner.tolerance)
