"""Scoring lies on fresh worlds, until it is clear whether they pay, and how much.

Gains are paired: truth and lie in the same fresh world. What a gain can be at the least follows from the largest
payment, which is taken to be the highest value that is reported (no job pays more than its reported value); if a
larger one is seen, V_max takes its place, and above that nothing is confirmed. A rule that fines rarely and much may
break this unseen: the sentence of a confirmed lie therefore states the payment that was taken for granted.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence

import numpy as np

from marketsched.agents.lies import Misreport
from marketsched.mechanisms.errors import InvalidReportError, MechanismFault
from marketsched.truthfulness.searches.betting import lower_end, mean_interval, worlds_left
from marketsched.truthfulness.searches.evaluation import (
    ROUNDING,
    Budget,
    BudgetSpent,
    Candidate,
    Evaluator,
    MechanismDraws,
    TruthFails,
    prepared,
)
from marketsched.truthfulness.searches.findings import FEW, Deviation
from marketsched.truthfulness.situations.situation import Situation

LEAST = 100  # fresh worlds, if the budget allows
MOST = 20_000  # fresh worlds: a gain so near to the tolerance stays open
LOOK_EVERY = 50  # worlds
CHUNK = 12  # worlds at least for the lie that is decided soonest, before it is asked again which one is
PRECISE = 0.8  # of the mean gain: what the lower end should reach, if the budget allows


class Scores:
    """Fresh gains of a few candidates.

    Parameters
    ----------
    evaluator : Evaluator
        Plays; if its worlds are enumerated, there is nothing left to score.
    finalists : sequence of Candidate
        The error probability is divided among them.
    confidence, tolerance : float
        As for `search`.
    shared : int, optional
        Among how many intervals the rest of the confidence is shared; by default one per finalist.
    """

    def __init__(
        self,
        evaluator: Evaluator,
        finalists: Sequence[Candidate],
        confidence: float,
        tolerance: float,
        shared: int | None = None,
    ) -> None:
        self.evaluator = evaluator
        self.finalists = list(finalists)
        self.confidence, self.tolerance = confidence, tolerance
        self.shared = max(1, len(self.finalists)) if shared is None else shared
        self._gains: dict[Hashable, list[float]] = {c.key: [] for c in self.finalists}
        self._spent = 0  # plays of budgets before the one at hand

    def play(self, failed: Callable[[Candidate], None], progress: Callable[[], None], most: int = MOST) -> None:
        """Play on until all is decided, the budget is spent, or ``most`` worlds are played.

        ``failed`` is called with a candidate that fails, which is then no finalist any more.
        """
        self._play([] if self.evaluator.exact else list(self.finalists), failed, progress, most)

    def soonest(self) -> tuple[float, Candidate] | None:
        """Return the lie that seems to pay, or may, and is decided soonest, behind the worlds that takes.

        None: no lie is open.
        """
        found = [
            (worlds_left(gains, self._lowest(candidate), self._failure, self.tolerance), candidate)
            for candidate in self.finalists
            if len(gains := self._gains[candidate.key]) < MOST and self.open(candidate)
        ]
        return min(found, key=lambda pair: pair[0], default=None)

    def go_on(self, candidate: Candidate, budget: Budget) -> None:
        """Play a lie in `CHUNK` more worlds, or a quarter more, or until another budget is spent.

        Intervals hold at every stopping time, so further plays keep their confidence.
        """
        self._spent += self.evaluator.budget.plays
        self.evaluator.budget = budget
        n = len(self._gains[candidate.key])
        most = min(n + max(CHUNK, n // 4), MOST)
        try:
            self._play([candidate], lambda failed: None, lambda: None, most)
        except TruthFails:
            self.finalists.clear()

    def open(self, candidate: Candidate) -> bool:
        """Tell whether a lie inside the model seems to pay, unconfirmed, or has gained in fewer than `FEW` worlds."""
        if self.evaluator.exact or not candidate.misreport.inside_model:
            return False
        known = self.deviation(candidate)
        few = known.n_fresh < FEW and known.gain_mean > self.tolerance
        return known.seems or (few and not known.confirmed)

    def _play(
        self, open_ones: list[Candidate], failed: Callable[[Candidate], None], progress: Callable[[], None], most: int
    ) -> None:
        try:
            for n, (place, world) in enumerate(self.evaluator.fresh(), start=1):
                if not open_ones or n > most:
                    return
                due = [c for c in open_ones if len(self._gains[c.key]) < n]
                for candidate in due:
                    try:
                        self._gains[candidate.key].append(self.evaluator.gain(candidate, world, place))
                    except (MechanismFault, InvalidReportError):
                        open_ones.remove(candidate)
                        self.finalists.remove(candidate)
                        failed(candidate)
                if due and n >= LEAST and n % LOOK_EVERY == 0:
                    open_ones = [c for c in open_ones if not self._decided(c)]
                progress()
        except BudgetSpent:
            return

    def _decided(self, candidate: Candidate) -> bool:
        low, high = self._interval(candidate)
        mean = float(np.mean(self._gains[candidate.key]))
        return high <= self.tolerance or (low > self.tolerance and low >= PRECISE * mean)

    def _range(self, candidate: Candidate) -> tuple[float, float, float]:
        """Return what a gain can be, and the largest payment that is taken for granted."""
        s = self.evaluator.situation
        highest = s.truth.value.highest
        payment = max(candidate.conduct.highest_value, 0.0)
        if candidate.largest_payment > payment:
            payment = max(candidate.largest_payment, s.public.max_value or 0.0)
        truthful = max(highest, self.evaluator.truth.largest_payment)
        return -payment - highest, highest + truthful, payment

    def _pays_beyond(self, candidate: Candidate) -> bool:
        """Tell whether a payment was seen above every value that may be reported."""
        most = self.evaluator.situation.public.max_value
        return most is not None and candidate.largest_payment > max(most, candidate.conduct.highest_value)

    def _lowest(self, candidate: Candidate) -> float:
        """Return what a gain can be at the least."""
        return min([self._range(candidate)[0], *self._gains[candidate.key]])

    def detectable(self, candidate: Candidate, of: Callable[..., float]) -> float:
        """Return the mean gain that the worlds of a candidate would have confirmed, by a function like `detectable`."""
        return of(self._gains[candidate.key], self._lowest(candidate), self._failure, self.tolerance)

    @property
    def _failure(self) -> float:
        """The chance left to each end of an interval."""
        return (1 - self.confidence) / self.shared / 2

    def _interval(self, candidate: Candidate) -> tuple[float, float]:
        gains, low = self._gains[candidate.key], self._lowest(candidate)
        high = max([self._range(candidate)[1], *gains])
        if low < self._range(candidate)[0] - ROUNDING * (1 - low) or self._pays_beyond(candidate):
            return -math.inf, high  # what was taken for granted does not hold
        _, highest = mean_interval(gains, low, high, 1 - 2 * self._failure)
        return lower_end(gains, low, self._failure, max(self.tolerance, low + ROUNDING)), highest

    def deviation(self, candidate: Candidate) -> Deviation:
        """Return the results of a finalist."""
        evaluator, gains = self.evaluator, self._gains[candidate.key]
        s, misreport = evaluator.situation, candidate.misreport
        mean = evaluator.estimate(candidate)
        n = len(candidate.gains)
        low = high = mean
        if not evaluator.exact:
            low, high = self._interval(candidate)
            mean, n = float(np.mean(gains)) if gains else mean, len(gains)
        return Deviation(
            misreport,
            misreport.words(s.truth),
            candidate.family,
            misreport.distance(s.truth, s.public),
            mean,
            low,
            high,
            self.confidence,
            self.shared,
            evaluator.seed,
            evaluator.exact,
            n,
            self._range(candidate)[2],
            misreport.inside_model,
            self.tolerance,
            low > self.tolerance,
            self._spent + evaluator.budget.plays,
            evaluator.budget.seconds,
            float(np.std(gains, ddof=1)) / math.sqrt(len(gains))
            if len(gains) > 1 and not evaluator.exact
            else math.nan,
        )

    def deviations(self) -> list[Deviation]:
        """Return all finalists: confirmed ones first, then by mean gain, then the smaller lie."""
        found = [self.deviation(c) for c in self.finalists]
        return sorted(found, key=lambda d: (not d.confirmed, -d.gain_mean, d.size))


def score(
    situation: Situation,
    misreport: Misreport,
    *,
    confidence: float = 0.99,
    tolerance: float = 0.0,
    seed: int = 0,
    budget_seconds: float | None = 30.0,
    max_plays: int | None = None,
    worlds: int = MOST,
    family: str = "given",
) -> Deviation:
    """Score one given misreport.

    Parameters
    ----------
    situation, confidence, tolerance, seed, budget_seconds, max_plays
        As for `search`.
    misreport : Misreport
        The owner's lie.
    worlds : int
        Most worlds; fewer if it is clear before whether it pays.
    family : str
        What to note as its family.

    Raises
    ------
    InvalidReportError
        If the report is not legal here, or the mechanism refuses it.
    MechanismFault
        If the mechanism fails.

    Examples
    --------
    >>> from marketsched.agents.lies import ScaleValue
    >>> from marketsched.mechanisms import DeadlineValue, StatementOfWork, get_mechanism
    >>> limits = dict(max_concurrency=1, max_duration=1, max_value=9.0, max_delay=4)
    >>> market = lambda rng: get_mechanism("pay-as-bid", capacity=1, horizon=4, **limits)
    >>> truth, rival = (StatementOfWork(1, 1, DeadlineValue(value, 2), [(1, 1, 1.0)]) for value in (8.0, 3.0))
    >>> situation = Situation(market, truth, [rival], capacity=1, horizon=4, max_delay=4)
    >>> lie = score(situation, ScaleValue(0.5))
    >>> lie.words, lie.gain_mean, lie.exact
    ('reports 0.5 of its value', 4.0, True)
    """
    made = prepared(situation, family, misreport)
    if not isinstance(made, Candidate):
        situation.check(situation.truth)
        reason = "the report is not legal in this market" if made is None else made.reason
        raise InvalidReportError(f"{misreport!r}: {reason}")
    evaluator = Evaluator(situation, seed, Budget(max_plays, budget_seconds))
    try:
        evaluator.enumerate([made])
    except TruthFails as error:
        raise MechanismFault(f"the truth: {error}") from error
    if evaluator.weights is not None:
        try:
            evaluator.gains(made, evaluator.weights.size)
        except (BudgetSpent, MechanismDraws):
            made.gains.clear()
            evaluator.weights = None
    scores = Scores(evaluator, [made], confidence, tolerance)
    scores.play(_raise, lambda: None, worlds)
    return scores.deviation(made)


def _raise(candidate: Candidate) -> None:
    raise MechanismFault(f"{candidate.misreport!r}: {candidate.failure}")
