"""The owner of one job: it holds the truth, decides its report, and counts its own utility."""

from __future__ import annotations

from marketsched.agents.job import Job
from marketsched.agents.lies import PublicInformation, Strategy
from marketsched.agents.resubmission import second_statement
from marketsched.mechanisms.mechanism import Event, EventKind, LaunchPlan
from marketsched.mechanisms.sow import StatementOfWork


class OwnerState:
    """All of `marketsched.agents.owner.JobOwner`, whose attributes it has, but its place in a Mesa model."""

    def __init__(self, job: Job, index: int, strategy: Strategy, max_delay: int) -> None:
        self.job = job
        self.index = index  # place in the workload
        self.truth = job.truth
        self.strategy = strategy
        self.name = job.name
        self._last_of_value = job.truth.birth + max_delay - 1
        self.report: StatementOfWork | None = None
        self.plan: LaunchPlan | None = None
        self.start: int | None = None
        self.finished = False
        self.value = 0.0
        self.payment = 0.0

    @property
    def utility(self) -> float:
        """Realised value minus payment, credits."""
        return self.value - self.payment

    def declare(self, public: PublicInformation) -> StatementOfWork:
        """Decide what to report, and remember it."""
        self.report = self.strategy.report(self.truth, public)
        return self.report

    @property
    def resubmitted(self) -> bool:
        """True once the owner submits its job again."""
        return self.truth is not self.job.truth

    def reconsider(self, now: int, public: PublicInformation) -> bool:
        """After a drop, decide whether to submit again in round ``now``; if so, know the job that is there.

        An owner comes back once, with the statement of `second_statement`, which is called ``"<name>+"``.
        """
        known = None if self.resubmitted else second_statement(self.job, now, public)
        if known is None:
            return False
        self.truth = known
        self.name = self.job.name + "+"
        self.report = self.plan = None
        self.finished = False
        return True

    def worth(self, completion: int) -> float:
        """Return the true value of ``completion``, credits; 0 from ``birth + max_delay`` on."""
        return float(self.job.truth.value(completion)) if completion <= self._last_of_value else 0.0

    def observe(self, event: Event) -> None:
        """Take note of a public event about this job."""
        if not event.kind.leaves:
            self.start = event.round if event.kind is EventKind.START else None
            return
        self.finished, self.payment = True, event.payment
        if event.kind is EventKind.COMPLETE and event.completion is not None:
            self.value = event.worth * self.worth(event.completion)

    def leave(self) -> None:
        """Leave the market for good; a strategy with ``see`` gets this owner, one with ``hear`` its utility."""
        see = getattr(self.strategy, "see", None)
        if see is not None:
            see(self)
        hear = getattr(self.strategy, "hear", None)
        if hear is not None:
            hear(self.utility)
