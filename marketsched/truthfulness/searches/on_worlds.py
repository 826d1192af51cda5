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
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from marketsched.agents.lies import Misreport
from marketsched.mechanisms.errors import InvalidReportError, MechanismFault
from marketsched.truthfulness.searches.evaluation import Budget, BudgetSpent, Candidate, prepared
from marketsched.truthfulness.searches.findings import Deviation
from marketsched.truthfulness.searches.trials import Trial, Truth
from marketsched.truthfulness.situations.owner_at_hand import OwnerAtHand

HEATS = ((1, 1 << 30), (3, 40), (8, 12), (24, 6), (64, 3))  # worlds after each, and how many lies play in it
SCORED = 3  # lies of a race
AT_A_TIME = 24  # owners in a race, at most; the next ones follow if plays are left
FIRST_HEAT = 0.7  # of the plays of a race, at most
RACING = 0.45  # of the plays, at most
LEAST = 350  # fresh worlds of a lie, whatever it seems: a gain of a few per cent of the value would then be confirmed
HOPELESS = 2.0  # times the plays that are left: a lie that seems to need more worlds is given up


@dataclass
class OnWorlds:
    """The results: lies that were scored, in the order of the race; of all that were played job, words, size and gain.

    ``truth_fails`` has the reasons why the truth of an owner could not be played, by job.
    """

    claims: list[Deviation] = field(default_factory=list)
    tried: list[tuple[str, str, float, float]] = field(default_factory=list)
    truth_fails: dict[str, str] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)
    plays: int = 0

    @property
    def confirmed(self) -> list[Deviation]:
        """The lies that surely pay, largest sure gain first."""
        return sorted((lie for lie in self.claims if lie.confirmed), key=lambda lie: -lie.gain_low)


def lies_on_worlds(
    owners: Sequence[OwnerAtHand],
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

    ``lies`` are by job, illegal ones left out. ``budget`` is for the race and the scores, ``more`` is spent only while
    a lie seems to pay and is not confirmed. With probability ``confidence`` no lie that is confirmed fails to pay;
    gains up to ``tolerance``, credits, do not count. ``tell`` is called now and then.
    """
    found, failure = OnWorlds(), (1 - confidence) / 2
    together, left = _at_a_time(lies, budget), list(owners)
    while left and not found.confirmed and budget.used < 1.0:
        races = budget.used + RACING * (1 - budget.used)
        budget.allow(races)
        trials: list[Trial] = []
        while left and not any(math.isfinite(t.rank[0]) for t in trials) and (not trials or budget.used < races):
            group, left = left[:together], left[together:]
            trials += _race(_trials(group, lies, tolerance, seed), budget, found, tell)
        budget.allow(1.0)
        for trial in sorted(trials, key=lambda trial: trial.rank)[:SCORED]:
            if found.confirmed or budget.used >= 1.0:
                break
            trial.confidence = 1 - failure
            failure /= 2
            if trial.raced and _goes(partial(_score, trial, budget, more, tell), trial, found):
                found.claims.append(replace(trial.deviation, detectable=trial.detectable))
    found.plays = budget.plays + more.plays
    return found


def _at_a_time(lies: Mapping[str, Sequence[Misreport]], budget: Budget) -> int:
    """Return how many owners race together: as many as the race has plays for in the worlds of its first heat."""
    if budget.plays_left is None or not lies:
        return AT_A_TIME
    plays = HEATS[0][0] * (1 + max(map(len, lies.values())))
    return max(1, min(AT_A_TIME, int(FIRST_HEAT * RACING * budget.plays_left / plays)))


def _trials(
    owners: Sequence[OwnerAtHand], lies: Mapping[str, Sequence[Misreport]], tolerance: float, seed: int
) -> list[Trial]:
    """Return the lies that can be played, each once."""
    trials: list[Trial] = []
    for owner in owners:
        truth = Truth(owner, seed)
        made = [prepared(owner, lie) for lie in lies.get(owner.name, ())]
        own = {c.conduct.key: c for c in made if isinstance(c, Candidate) and c.conduct.key != owner.truth}
        trials += [Trial(truth, candidate, tolerance) for candidate in own.values()]
    return trials


def _race(trials: list[Trial], budget: Budget, found: OnWorlds, tell: Callable[[], None]) -> list[Trial]:
    """Return the lies, those that would be confirmed soonest first."""
    alive, before = list(trials), 0
    try:
        for worlds, most in HEATS:
            alive = sorted(alive, key=lambda trial: trial.rank)[:most] if before else alive
            for n in range(before + 1, worlds + 1):
                for trial in list(alive):
                    if not _goes(partial(trial.race, n, budget), trial, found):
                        alive.remove(trial)
                        trials.remove(trial)
                tell()
            before = worlds
    except BudgetSpent:
        pass
    for trial in trials:
        if trial.raced:
            owner, lie = trial.truth.owner, trial.candidate.misreport
            size = lie.distance(owner.truth, owner.public)
            found.tried.append((owner.name, lie.words(owner.truth), size, float(np.mean(trial.raced))))
    return sorted(trials, key=lambda trial: (trial not in alive, trial.rank))


def _score(trial: Trial, budget: Budget, more: Budget, tell: Callable[[], None]) -> None:
    """Score a lie on worlds of its own, and play on while it seems to pay."""
    trial.score(LEAST, budget, tell)
    while (worlds := trial.left) is not None and more.used < 1.0:
        if more.plays_left is not None and 2 * worlds > HOPELESS * more.plays_left:
            break
        trial.go_on(more)
        budget.cut |= more.cut
        tell()


def _goes(play: Callable[[], None], trial: Trial, found: OnWorlds) -> bool:
    """Play a lie on; False: it fails, or the truth does, which is noted."""
    try:
        play()
    except (MechanismFault, InvalidReportError) as error:
        owner, failure = trial.truth.owner, trial.truth.failure
        if failure:
            found.truth_fails[owner.name] = failure
        else:
            found.failures.append(f"{owner.name} {trial.candidate.misreport!r}: {error}")
        return False
    return True
