"""The smallest lie of a kind that still pays.

Parts of a combination are left out, then all numbers are brought towards the truth together, then
each on its own, as far as the gain stays above the tolerance on the worlds of the search; the result
is scored on fresh worlds. Halving finds the end of the stretch of paying lies it begins in: a still
smaller lie that pays after a gap is not looked for.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from marketsched.agents.lies import Combination, Misreport
from marketsched.mechanisms.errors import InvalidReportError, MechanismFault
from marketsched.mechanisms.randomness import checked_seed
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
from marketsched.truthfulness.searches.scoring import Scores
from marketsched.truthfulness.situations.situation import Situation

HALVINGS = 14
WORLDS = 400  # on which a smaller lie has to pay before it is scored
ATTEMPTS = 4  # lies that are scored: the smallest, and larger ones if it is not confirmed
ERRORS = 2.5  # standard errors by which the gain must lie above the tolerance on the worlds of the search


def shrink(
    situation: Situation,
    deviation: Deviation,
    *,
    budget_seconds: float | None = 30.0,
    max_plays: int | None = None,
    seed: int | None = None,
) -> Deviation:
    """Return the smallest lie of the same kind that is still confirmed to pay.

    Parameters
    ----------
    situation : Situation
        Where it was found.
    deviation : Deviation
        A finding of `search`; its confidence and tolerance are kept.
    budget_seconds, max_plays
        As for `search`.
    seed : int, optional
        Root of the worlds; by default the next one after that of the search.

    Returns
    -------
    Deviation
        ``deviation`` itself if it is not confirmed, or no smaller lie is.

    Examples
    --------
    >>> from marketsched.agents.lies import ScaleValue
    >>> from marketsched.truthfulness import score
    >>> from marketsched.mechanisms import DeadlineValue, StatementOfWork, get_mechanism
    >>> limits = dict(max_concurrency=1, max_duration=1, max_value=9.0, max_delay=4)
    >>> market = lambda rng: get_mechanism("pay-as-bid", capacity=1, horizon=4, **limits)
    >>> truth, rival = (StatementOfWork(1, 1, DeadlineValue(value, 2), [(1, 1, 1.0)]) for value in (8.0, 3.0))
    >>> situation = Situation(market, truth, [rival], capacity=1, horizon=4, max_delay=4)
    >>> lie = score(situation, ScaleValue(0.5), tolerance=1.0)
    >>> shrink(situation, lie, max_plays=200, budget_seconds=None).gain_mean > 1.0
    True
    """
    if not deviation.confirmed:
        return deviation
    seed = deviation.seed + 1 if seed is None else checked_seed(seed)
    budget = Budget(max_plays, budget_seconds)
    shrinker = _Shrinker(situation, deviation, Evaluator(situation, seed, budget))
    try:
        return shrinker.run()
    except MechanismDraws:
        shrinker = _Shrinker(situation, deviation, Evaluator(situation, seed, budget))
        return shrinker.run(enumerate_worlds=False)


class _Shrinker:
    def __init__(self, situation: Situation, deviation: Deviation, evaluator: Evaluator) -> None:
        self.situation, self.original, self.evaluator = situation, deviation, evaluator
        self._paying: list[Candidate] = []  # smaller and smaller
        self._known: dict[object, bool] = {}

    def run(self, *, enumerate_worlds: bool = True) -> Deviation:
        self.evaluator.budget.allow(0.6)
        try:
            if enumerate_worlds:
                begin = prepared(self.situation, self.original.family, self.original.misreport)
                self.evaluator.enumerate([begin] if isinstance(begin, Candidate) else [])
            self._descend(self.original.misreport)
        except (BudgetSpent, TruthFails):
            pass
        self.evaluator.budget.allow(1.0)
        smaller = sorted(
            (c for c in self._paying if self._size(c.misreport) < self.original.size),
            key=lambda c: self._size(c.misreport),
        )
        # The smallest first; should it not be confirmed, larger and larger ones.
        places = np.linspace(0, len(smaller) - 1, ATTEMPTS).round().astype(int).tolist() if smaller else []
        attempts = [smaller[place] for place in dict.fromkeys(places)]
        for candidate in attempts:
            scores = Scores(
                self.evaluator, [candidate], self.original.confidence, self.original.tolerance, len(attempts)
            )
            scores.play(lambda _: None, lambda: None)
            found = scores.deviation(candidate)
            if found.confirmed and scores.finalists:
                return found
        return self.original

    def _descend(self, misreport: Misreport) -> None:
        """Make the lie smaller in every way there is, as long as it pays."""
        misreport = self._without_parts(misreport)
        misreport = self._halved(misreport, None)
        for name in _numbers(misreport):
            misreport = self._halved(misreport, name)

    def _without_parts(self, misreport: Misreport) -> Misreport:
        if isinstance(misreport, Combination):
            for place in range(len(misreport.parts)):
                left = misreport.parts[:place] + misreport.parts[place + 1 :]
                fewer = left[0] if len(left) == 1 else replace(misreport, parts=left)
                if self._pays(fewer):
                    return self._without_parts(fewer)
        return misreport

    def _halved(self, misreport: Misreport, name: str | None) -> Misreport:
        """Bring all numbers (or one) towards the truth by halving; return the smallest lie that pays."""
        low, high = 0.0, 1.0
        best = misreport
        for _ in range(HALVINGS):
            middle = (low + high) / 2
            nearer = misreport.toward_truth(middle, name)
            if nearer != best and self._pays(nearer):
                high, best = middle, nearer
            elif nearer == best:
                high = middle
            else:
                low = middle
        return best

    def _pays(self, misreport: Misreport) -> bool:
        """Tell whether the gain is clearly above the tolerance on the worlds of the search."""
        candidate = prepared(self.situation, self.original.family, misreport)
        if not isinstance(candidate, Candidate) or candidate.key == self.evaluator.truth.key:
            return False
        if candidate.key not in self._known:
            n = WORLDS if self.evaluator.weights is None else self.evaluator.weights.size
            try:
                self.evaluator.gains(candidate, n)
            except (MechanismFault, InvalidReportError):
                return False
            margin = 0.0 if self.evaluator.exact else ERRORS * float(np.std(candidate.gains)) / math.sqrt(n)
            pays = self.evaluator.estimate(candidate) - margin > self.original.tolerance
            self._known[candidate.key] = pays
            if pays:
                self._paying.append(candidate)
        return self._known[candidate.key]

    def _size(self, misreport: Misreport) -> float:
        return misreport.distance(self.situation.truth, self.situation.public)


def _numbers(misreport: Misreport) -> list[str]:
    """Return the names of the numbers that can be brought to the truth, if there are several."""
    names = list(misreport.neutral)
    return names if len(names) > 1 else []
