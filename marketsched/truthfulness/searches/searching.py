"""The search for profitable lies: any mechanism that follows the protocol, as a black box.

Four phases, with shares of one budget. A coarse *race* over all families and some pairs, all on the
same worlds, in which the worse half drops out whenever the number of worlds doubles. An *optimiser*
for the numbers of the best ones: SciPy's DIRECT, which needs no derivatives, copes with the jumps and
plateaus that utilities have, and is deterministic. A *final* race of what it has found, on more
worlds. Then the few winners are *scored* on fresh worlds,
because the best of many looks better than it is: paired gains, an interval that holds at every
stopping time (:mod:`marketsched.truthfulness.searches.betting`), and the confidence shared among the winners.

The gain found is a lower bound of the regret; a search without a finding proves nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import Bounds, direct

from marketsched.agents.lies import Combination, Misreport
from marketsched.mechanisms.errors import InvalidParameterError, InvalidReportError, MechanismFault
from marketsched.mechanisms.legal import Amount, Finite, OpenShare, Seed, Whole, legal
from marketsched.truthfulness.searches.evaluation import (
    Budget,
    BudgetSpent,
    Candidate,
    Evaluator,
    Failure,
    MechanismDraws,
    TruthFails,
    inside_part,
    prepared,
)
from marketsched.truthfulness.searches.families import Family, default_families, interleaved, paired
from marketsched.truthfulness.searches.findings import Deviation, Deviations, Tried
from marketsched.truthfulness.searches.scoring import Scores
from marketsched.truthfulness.situations.situation import Situation

FIRST, MOST, MOST_FINAL = 8, 512, 16_384  # worlds of the first heat of a race, of its last, and of the final's last
KEPT = 8  # candidates that are never dropped from a race
IN_FINAL = 32  # candidates
EVALUATIONS = 48  # of the optimiser, per number
FINALISTS = (3, 2)  # inside and outside the model
SHARES = {"race": 0.35, "pairs": 0.45, "optimise": 0.6, "final": 0.75, "score": 1.0}  # up to the end of each phase

OWN_SOURCE = "two plays of one world end differently: the mechanism draws from a source of its own"

Progress = Callable[[str, int, float], None]  # phase, plays so far, share of the budget spent


@legal
def search(
    situation: Situation,
    *,
    budget_seconds: float | None = 30.0,
    max_plays: int | None = None,
    confidence: OpenShare = 0.99,
    tolerance: Amount = 0.0,
    seed: Seed = 0,
    families: Iterable[Any] | None = None,
    progress: Progress | None = None,
    keep_interrupted: bool = False,
) -> Deviations:
    """Look for misreports that pay.

    Parameters
    ----------
    situation : Situation
        The owner, and the market of truthful others.
    budget_seconds : float or None
        Most seconds; a play that has begun is finished. They begin when the market is in the owner's situation and
        the truth has been played once, so kernels are compiled.
    max_plays : int or None
        Most plays. With ``budget_seconds=None`` the result is the same for the same seed. One of the
        two is needed.
    confidence : float
        With this probability all intervals contain the true gains, in (0, 1).
    tolerance : float
        Gains up to it do not count, credits.
    seed : int
        Root of all worlds.
    families : iterable of Family, Misreport, or object with report(truth, public), optional
        The lies to try; by default `default_families`.
    progress : function of (str, int, float), optional
        Called now and then with the phase, the plays, and the share of the budget spent.
    keep_interrupted : bool
        On Ctrl-C return the results so far instead of raising ``KeyboardInterrupt``.

    Returns
    -------
    Deviations
        A list, best first: confirmed ones before others. Empty if nothing seems to pay.

    Raises
    ------
    InvalidReportError
        If the truth itself is outside the announced limits.

    Examples
    --------
    >>> from marketsched import situation_of
    >>> situation = situation_of("stochastic-mix", 0, nobody_later=True)
    >>> list(search(situation, budget_seconds=None, max_plays=20))  # no lie found that pays
    []
    """
    if budget_seconds is None and max_plays is None:
        raise InvalidParameterError("budget_seconds and max_plays are both None: expected one of them")
    if budget_seconds is not None:
        Finite("(0, inf)").check("budget_seconds", budget_seconds)
    if max_plays is not None:
        Whole(1).check("max_plays", max_plays)
    found = Deviations(max_plays=max_plays, budget_seconds=budget_seconds)
    try:
        situation.check(situation.truth)
    except InvalidReportError:
        raise
    except Exception as error:  # the factory runs the user's own code
        found.failures.append(Failure("the mechanism cannot be built", f"{type(error).__name__}: {error}"))
        return found
    situation.stage.warm_up()
    budget = Budget(max_plays, budget_seconds)
    hunt = _Hunt(situation, seed, tolerance, budget, found, progress)
    scores = Scores(hunt.evaluator, [], confidence, tolerance)
    try:
        finalists = hunt.finalists(hunt.run(families))
        scores = Scores(hunt.evaluator, finalists, confidence, tolerance)
        budget.allow(SHARES["score"])
        scores.play(hunt.failed, lambda: hunt.tell("score"))
    except TruthFails as error:
        found.failures.insert(0, Failure("reports the truth", str(error)))
        found.truth_fails = str(error)
        scores = Scores(hunt.evaluator, [], confidence, tolerance)
    except KeyboardInterrupt:
        if not keep_interrupted:
            raise
        found.interrupted = True
        if not scores.finalists:
            best = hunt.finalists(hunt.ranked(hunt.candidates.values()))
            scores = Scores(hunt.evaluator, best, confidence, tolerance)
    return hunt.close(scores.deviations())


class _Hunt:
    def __init__(
        self,
        situation: Situation,
        seed: int,
        tolerance: float,
        budget: Budget,
        found: Deviations,
        progress: Progress | None,
    ) -> None:
        self.situation, self.seed, self.budget, self.found = situation, seed, budget, found
        self.tolerance = tolerance
        self.evaluator = Evaluator(situation, seed, budget)
        self.candidates: dict[Hashable, Candidate] = {}
        self._progress = progress

    def run(self, families: Iterable[Any] | None) -> list[Candidate]:
        """Return the candidates, best first."""
        s = self.situation
        chosen = (
            default_families(s.truth, s.public)
            if families is None
            else [Family.of(i, given) for i, given in enumerate(families)]
        )
        first = [c for family, member in interleaved(chosen) if (c := self._candidate(family.name, member))]
        self.budget.allow(SHARES["race"])
        self.evaluator.enumerate(first[:1])
        try:
            return self._hunt(first)
        except MechanismDraws:  # only under some reports: begin again with drawn worlds
            for candidate in first:
                candidate.gains.clear()
            self.candidates = {c.key: c for c in first}
            self.evaluator = Evaluator(s, self.seed, self.budget)
            return self._hunt(first)

    def _hunt(self, first: list[Candidate]) -> list[Candidate]:
        best = self._race("race", first)
        pairs = [c for m in paired(self.heads(best, 4)) if (c := self._candidate("pairs", m))]
        best = self._race("pairs", best + pairs)
        best = self.ranked(best + self._optimised(best))
        # The optimiser has taken the best of many on the same worlds: more worlds tell them apart.
        paying = [c for c in best if self.evaluator.estimate(c) > self.tolerance][:IN_FINAL]
        worlds = max((len(c.gains) for c in paying), default=FIRST)
        final = self._race("final", paying, worlds, MOST_FINAL)
        return final + [c for c in best if c not in final]

    def _candidate(self, family: str, misreport: Misreport) -> Candidate | None:
        """Return the candidate of a misreport unless it is illegal, faulty, the truth, or there already."""
        made = prepared(self.situation, family, misreport)
        if isinstance(made, Failure):
            self.found.failures.append(made)
        elif made is None:
            self.found.illegal += 1
        elif made.key != self.evaluator.truth.key and made.key not in self.candidates:
            self.candidates[made.key] = made
            return made
        return None

    def _race(self, phase: str, candidates: list[Candidate], n: int = FIRST, most: int = MOST) -> list[Candidate]:
        """Return the candidates that are left, best first; the worse half goes whenever worlds double."""
        self.budget.allow(SHARES[phase])
        alive = list(candidates)
        if self.evaluator.weights is not None:
            n = self.evaluator.weights.size
        try:
            while alive:
                for place in range(n):
                    alive = [c for c in alive if self._played(c, place + 1)]
                    self.tell(phase)
                if self.evaluator.exact or n >= most:
                    break
                alive = self.ranked(alive)[: max(KEPT, (len(alive) + 1) // 2)]
                n *= 2
        except BudgetSpent:
            pass
        return self.ranked([c for c in alive if c.gains])

    def _optimised(self, best: list[Candidate]) -> list[Candidate]:
        """Return what the optimiser finds, from the best of each kind."""
        self.budget.allow(SHARES["optimise"])
        found: list[Candidate] = []
        ranges = []
        for head in self.heads(best, FINALISTS[0], True) + self.heads(best, 1, False):
            bounds = head.bounds(self.situation.truth, self.situation.public)
            ranges.append((head, {name: pair for name, pair in bounds.items() if pair[1] > pair[0]}))
        numbers = sum(len(own) for _, own in ranges)
        if not numbers or not best:
            return []
        worlds = min(max(self.budget.affordable() // (EVALUATIONS * numbers), 2 * FIRST), MOST_FINAL)
        if self.evaluator.weights is not None:
            worlds = self.evaluator.weights.size
        for head, own in ranges:
            found += self._optimise(head, own, worlds) if own else []
        return found

    def _optimise(self, head: Misreport, ranges: Mapping[str, tuple[float, float]], worlds: int) -> list[Candidate]:
        made: list[Candidate] = []
        caught: list[BaseException] = []

        def loss(x: NDArray[np.float64]) -> float:
            if caught:
                return 0.0  # what was raised in the compiled optimiser is raised again after it
            try:
                candidate = self._at(head, dict(zip(ranges, x.tolist(), strict=True)), made)
                played = candidate is not None and self._played(candidate, worlds)
                return -self.evaluator.estimate(candidate) if candidate is not None and played else 0.0
            except BaseException as error:
                caught.append(error)
                return 0.0

        low, high = zip(*ranges.values(), strict=True)
        direct(loss, Bounds(low, high), maxfun=EVALUATIONS * len(ranges), maxiter=1000)
        if caught and not isinstance(caught[0], BudgetSpent):
            raise caught[0]
        self.tell("optimise")
        return [c for c in made if len(c.gains) >= worlds]

    def _at(self, head: Misreport, values: Mapping[str, float], made: list[Candidate]) -> Candidate | None:
        """Return the candidate of ``head`` with other numbers, always the same for the same report."""
        candidate = prepared(self.situation, head.kind, head.with_values(values))
        if not isinstance(candidate, Candidate) or candidate.key == self.evaluator.truth.key:
            return None
        if candidate.key not in self.candidates:
            self.candidates[candidate.key] = candidate
            made.append(candidate)
        return self.candidates[candidate.key]

    def _played(self, candidate: Candidate, n: int) -> bool:
        """Play a candidate up to world ``n``; False: it fails, which is noted."""
        if candidate.failure is not None:
            return False
        try:
            self.evaluator.gains(candidate, n)
        except (MechanismFault, InvalidReportError):
            self.failed(candidate)
            return False
        return True

    def failed(self, candidate: Candidate) -> None:
        """Note that a candidate fails; if it is the truth that does, give up."""
        if self.evaluator.truth.failure is not None:
            raise TruthFails(self.evaluator.truth.failure)
        words = candidate.misreport.words(self.situation.truth)
        self.found.failures.append(Failure(words, str(candidate.failure)))
        candidate.gains.clear()

    def ranked(self, candidates: Iterable[Candidate]) -> list[Candidate]:
        """Best mean first; of those that look the same, the smallest lie before all others, the rest behind."""
        s, estimate = self.situation, self.evaluator.estimate
        order = sorted(dict.fromkeys(candidates), key=lambda c: (-estimate(c), c.misreport.distance(s.truth, s.public)))
        seen: set[tuple[float, ...]] = set()
        heads: list[Candidate] = []
        repeats: list[Candidate] = []
        for candidate in order:
            look = tuple(candidate.gains)
            (repeats if look in seen else heads).append(candidate)
            seen.add(look)
        return heads + repeats

    def heads(self, best: Iterable[Candidate], most: int, inside_model: bool | None = None) -> list[Misreport]:
        """Return the best misreports of different kinds."""
        heads: dict[frozenset[str], Misreport] = {}
        for candidate in best:
            m = candidate.misreport
            # A combination behind one of its parts has nothing to add.
            if inside_model in (None, m.inside_model) and not any(kinds <= _kinds(m) for kinds in heads):
                heads[_kinds(m)] = m
        return list(heads.values())[:most]

    def finalists(self, best: Sequence[Candidate]) -> list[Candidate]:
        """Return who is scored: of those that seem to pay the best of each kind, inside and outside the model."""
        chosen: list[Candidate] = []
        for inside, most in zip((True, False), FINALISTS, strict=True):
            paying = [
                c for c in best if c.misreport.inside_model is inside and self.evaluator.estimate(c) > self.tolerance
            ]
            heads = list({_kinds(c.misreport): c for c in reversed(paying)}.values())[::-1]
            # A combination that gains no more than one of its parts says nothing new.
            telling: list[Candidate] = []
            for c in sorted(heads, key=lambda c: best.index(c)):
                if not any(self._says_as_much(part, c) for part in heads) and not any(_alike(c, t) for t in telling):
                    telling.append(c)
            chosen += telling[:most]
        self.budget.allow(SHARES["score"])
        return list({c.key: c for c in map(self._inside, chosen)}.values())

    def _inside(self, candidate: Candidate) -> Candidate:
        """Return the inside lie of a combination that gains no more than it: its outside part changes nothing."""
        part = inside_part(candidate.misreport)
        made = None if part is None else prepared(self.situation, candidate.family, part)
        if not isinstance(made, Candidate):
            return candidate
        made = self.candidates.get(made.key, made)
        try:
            self.evaluator.gains(made, len(candidate.gains))
        except (BudgetSpent, MechanismFault, InvalidReportError, MechanismDraws):
            return candidate
        if self.evaluator.estimate(made) < self.evaluator.estimate(candidate) - 1e-12:
            return candidate
        self.candidates[made.key] = made
        return made

    def _says_as_much(self, part: Candidate, candidate: Candidate) -> bool:
        if not _kinds(part.misreport) < _kinds(candidate.misreport):
            return False
        if self.evaluator.exact:
            return self.evaluator.estimate(part) >= self.evaluator.estimate(candidate) - 1e-12
        n = min(len(part.gains), len(candidate.gains))  # the same worlds: means over others differ by luck
        return n > 0 and sum(part.gains[:n]) >= sum(candidate.gains[:n]) - 1e-12 * n

    def tell(self, phase: str) -> None:
        if self._progress is not None:
            self._progress(phase, self.budget.plays, min(1.0, self.budget.used))

    def close(self, deviations: Iterable[Deviation]) -> Deviations:
        found, s, evaluator = self.found, self.situation, self.evaluator
        found[:] = deviations
        for c in self.candidates.values():
            if c.gains and math.isfinite(gain := evaluator.estimate(c)):
                m = c.misreport
                size = m.distance(s.truth, s.public)
                found.tried.append(Tried(m.words(s.truth), c.family, m, size, gain, len(c.gains), m.inside_model))
            elif c.failure is None:
                found.untried += 1
        if not s.stage.repeatable:
            found.failures.append(Failure("reports the truth", OWN_SOURCE))
        found.plays, found.seconds, found.exact = self.budget.plays, self.budget.seconds, evaluator.exact
        found.truthful = evaluator.truthful
        return found


def _alike(one: Candidate, other: Candidate) -> bool:
    """Tell whether two lies gained the same in all worlds in which both were played."""
    n = min(len(one.gains), len(other.gains))
    return n > 0 and one.gains[:n] == other.gains[:n]


def _kinds(misreport: Misreport) -> frozenset[str]:
    parts = misreport.parts if isinstance(misreport, Combination) else (misreport,)
    return frozenset(part.kind or repr(part) for part in parts)
