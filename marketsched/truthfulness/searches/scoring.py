"""The score of a lie on fresh worlds, played until it is clear whether it pays, and how much.

Gains are paired: truth and lie in the same fresh world. What a gain can be at the least follows from the largest
payment, which is taken to be the highest value that is reported (no job pays more than its reported value); if a
larger one is seen, V_max takes its place, and above that nothing is confirmed. A rule that fines rarely and much may
break this unseen: the sentence of a confirmed lie therefore states the payment that was taken for granted.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from marketsched.mechanisms.errors import InvalidReportError, MechanismFault
from marketsched.truthfulness.searches.betting import lower_end, mean_interval, worlds_left
from marketsched.truthfulness.searches.evaluation import ROUNDING, Budget, BudgetSpent, Candidate, Evaluator, TruthFails
from marketsched.truthfulness.searches.findings import FEW, Deviation

LEAST = 100  # fresh worlds, if the budget allows
MOST = 20_000  # fresh worlds: a gain so near to the tolerance stays open
LOOK_EVERY = 50  # worlds
CHUNK = 12  # worlds at least before it is asked again whether the lie is decided
PRECISE = 0.8  # of the mean gain: what the lower end should reach, if the budget allows


class Score:
    """Fresh gains of a lie, with an interval of this ``confidence``; gains up to ``tolerance``, credits, do not count.

    Where the worlds of ``evaluator`` are enumerated, there is nothing left to score. ``failed``: the mechanism fails
    under the lie or under the truth, and nothing can be compared.
    """

    def __init__(self, evaluator: Evaluator, candidate: Candidate, confidence: float, tolerance: float) -> None:
        self.evaluator, self.candidate = evaluator, candidate
        self.confidence, self.tolerance = confidence, tolerance
        self.failed = False
        self._gains: list[float] = []

    def play(self, most: int = MOST, tell: Callable[[], None] = lambda: None) -> None:
        """Play until all is decided, the budget is spent, or ``most`` worlds are played.

        Raises TruthFails if the mechanism fails under the truth.
        """
        if self.evaluator.exact:
            return
        gains = self._gains
        try:
            for n, (place, world) in enumerate(self.evaluator.fresh(), start=1):
                if n > most:
                    return
                if n > len(gains):
                    gains.append(self.evaluator.gain(self.candidate, world, place))
                    if n >= LEAST and n % LOOK_EVERY == 0 and self._decided():
                        return
                tell()
        except BudgetSpent:
            return
        except (MechanismFault, InvalidReportError):
            self.failed = True
            if self.evaluator.truth.failure is not None:
                raise TruthFails(self.evaluator.truth.failure) from None

    def left(self) -> float | None:
        """Return after how many more worlds the lie is decided; None: it is, or can be played no more."""
        if self.failed or len(self._gains) >= MOST or not self.open:
            return None
        return worlds_left(self._gains, self._lowest, self._failure, self.tolerance)

    def go_on(self, budget: Budget) -> None:
        """Play `CHUNK` more worlds, or a quarter more, or until another budget is spent.

        Intervals hold at every stopping time, so further plays keep their confidence.
        """
        self.evaluator.budget = budget
        n = len(self._gains)
        self.play(min(n + max(CHUNK, n // 4), MOST))

    @property
    def open(self) -> bool:
        """Whether a lie inside the model seems to pay, unconfirmed, or has gained in fewer than `FEW` worlds."""
        if self.evaluator.exact or not self.candidate.misreport.inside_model:
            return False
        known = self.deviation()
        few = known.n_fresh < FEW and known.gain_mean > self.tolerance
        return known.seems or (few and not known.confirmed)

    def detectable(self, of: Callable[..., float]) -> float:
        """Return the mean gain that these worlds would have confirmed, by a function like `detectable`."""
        return of(self._gains, self._lowest, self._failure, self.tolerance)

    def deviation(self) -> Deviation:
        """Return the results."""
        evaluator, gains, misreport = self.evaluator, self._gains, self.candidate.misreport
        s = evaluator.situation
        low = high = mean = evaluator.estimate(self.candidate)
        n, error = len(self.candidate.gains), math.nan
        if not evaluator.exact:
            low, high = self._interval()
            mean, n = float(np.mean(gains)) if gains else mean, len(gains)
            error = float(np.std(gains, ddof=1)) / math.sqrt(n) if n > 1 else math.nan
        return Deviation(
            misreport,
            misreport.words(s.truth),
            misreport.distance(s.truth, s.public),
            mean,
            low,
            high,
            self.confidence,
            evaluator.seed,
            evaluator.exact,
            n,
            self._range[2],
            misreport.inside_model,
            self.tolerance,
            low > self.tolerance,
            error,
        )

    def _decided(self) -> bool:
        low, high = self._interval()
        return high <= self.tolerance or (low > self.tolerance and low >= PRECISE * float(np.mean(self._gains)))

    @property
    def _range(self) -> tuple[float, float, float]:
        """What a gain can be, and the largest payment that is taken for granted."""
        s, candidate = self.evaluator.situation, self.candidate
        highest = s.truth.value.highest
        payment = max(candidate.conduct.highest_value, 0.0)
        if candidate.largest_payment > payment:
            payment = max(candidate.largest_payment, s.public.max_value or 0.0)
        truthful = max(highest, self.evaluator.truth.largest_payment)
        return -payment - highest, highest + truthful, payment

    @property
    def _lowest(self) -> float:
        """What a gain can be at the least."""
        return min([self._range[0], *self._gains])

    @property
    def _failure(self) -> float:
        """The chance left to each end of an interval."""
        return (1 - self.confidence) / 2

    def _interval(self) -> tuple[float, float]:
        gains, low, candidate = self._gains, self._lowest, self.candidate
        high = max([self._range[1], *gains])
        most = self.evaluator.situation.public.max_value
        beyond = most is not None and candidate.largest_payment > max(most, candidate.conduct.highest_value)
        if beyond or low < self._range[0] - ROUNDING * (1 - low):
            return -math.inf, high  # what was taken for granted does not hold
        _, highest = mean_interval(gains, low, high, 1 - 2 * self._failure)
        return lower_end(gains, low, self._failure, max(self.tolerance, low + ROUNDING)), highest
