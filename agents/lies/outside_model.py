"""Late submissions (gap G2), which no theorem covers: a lie about the time of a report, not about the report."""

from __future__ import annotations

from dataclasses import dataclass

from marketsched.agents.lies.base import Misreport, count_of, whole
from marketsched.agents.lies.strategy import PublicInformation
from marketsched.agents.lies.values import value_until
from marketsched.mechanisms.errors import InvalidReportError
from marketsched.mechanisms.law import Requirement
from marketsched.mechanisms.sow import StatementOfWork


@dataclass(frozen=True)
class DelaySubmission(Misreport):
    """The owner keeps quiet for ``k`` rounds after birth, then reports honestly (gap G2).

    Not a misreport of the statement, but of its time. Arrivals before the late submission are
    reported as arriving with it, which is what the platform will see; the law is not conditioned on
    what the owner learned while waiting. Values at completions ``>= true birth + max_delay`` stay 0.
    Size: ``k / S``, both in rounds.

    Examples
    --------
    >>> from marketsched.mechanisms import DeadlineValue
    >>> truth = StatementOfWork(1, 1, DeadlineValue(4.0, 9), [(1, 2, 0.25), (2, 2, 0.25), (6, 2, 0.5)])
    >>> late = DelaySubmission(3).report(truth, PublicInformation(8, 20, 10))
    >>> late.birth, late.law.arrivals.tolist(), late.law.probabilities.tolist()
    (4, [4, 6], [0.5, 0.5])
    """

    k: int = whole("delay", 0)

    kind = "delay-submission"
    inside_model = False
    label = "rounds of silence"
    telling = 6

    @property
    def delay(self) -> int:
        """The rounds between birth and submission: what the market asks a strategy for."""
        return self.k

    def report(self, truth: StatementOfWork, public: PublicInformation) -> StatementOfWork:
        """Return ``truth`` as reported ``k`` rounds after its birth; equal points merge."""
        if self.k == 0:
            return truth
        birth = truth.birth + self.k
        points = [Requirement(max(r.arrival, birth), r.duration, r.probability, r.signal) for r in truth.requirements]
        value = value_until(truth, truth.birth + public.max_delay - 1, public)
        return StatementOfWork(birth, truth.concurrency, value, points, truth.shapes, **truth.terms)

    def check(self, truth: StatementOfWork, public: PublicInformation) -> None:
        """Refuse a submission after the last round."""
        if truth.birth + self.k > public.horizon:
            raise InvalidReportError(f"submission in round {truth.birth + self.k}: expected one of the market")

    def distance(self, truth: StatementOfWork, public: PublicInformation) -> float:
        return self.k / public.max_delay

    def words(self, truth: StatementOfWork) -> str:
        return f"submits {count_of(self.k, 'round')} late"
