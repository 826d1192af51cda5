"""The owner of one job: holds the truth, decides what to report, and counts its own utility."""

from __future__ import annotations

from typing import TYPE_CHECKING

import mesa

from marketsched.agents.job import Job
from marketsched.agents.lies import PublicInformation, Strategy
from marketsched.agents.resubmission import second_statement
from marketsched.mechanisms.mechanism import Event, EventKind, LaunchPlan
from marketsched.mechanisms.sow import StatementOfWork

if TYPE_CHECKING:
    from marketsched.agents.market import Market


class JobOwner(mesa.Agent):
    r"""Owner of one job.

    Utility is value minus payment, :math:`u_j = V_j(f_j) - \pi_j` ([BLLMSW22]_, Section 2), with
    the *true* value curve at the *real* completion time; a job that does not complete has value 0
    and pays 0.

    Attributes
    ----------
    job : Job
        The job, and what really happens to it.
    truth : StatementOfWork
        The true statement of work: that of ``job``, or after a surprise the point mass the owner
        then knows (see :meth:`reconsider`).
    strategy : Strategy
        Makes the report from the truth.
    name : str
        What the current statement is called in the market: the job's name, ``"<name>+"`` once it is
        submitted again.
    report : StatementOfWork or None
        What was last submitted; None before.
    plan : LaunchPlan or None
        The mechanism's answer to it.
    value, payment, utility : float
        Realised, in credits; 0 until the job completes.
    start : int or None
        First round of the run.

    Examples
    --------
    >>> from marketsched import Market, Scenario
    >>> market = Market(Scenario.load("stochastic-mix"), 7)
    >>> result = market.run()
    >>> first = result.jobs.iloc[0]
    >>> bool(first["utility"] == first["value"] - first["payment"])
    True
    """

    def __init__(self, model: Market, job: Job, index: int, strategy: Strategy, max_delay: int) -> None:
        # As `mesa.Agent.__init__`, with its public parts alone: that of 3.3 also enters the model in a table of the
        # class for ever, so that no market would be freed.
        self.model, self.unique_id, self.pos = model, index + 1, None
        model.register_agent(self)
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
        if event.kind is EventKind.START:
            self.start = event.round
            return
        self.finished = True
        if event.kind is EventKind.COMPLETE and event.completion is not None:
            self.value = self.worth(event.completion)
            self.payment = event.payment

    def leave(self) -> None:
        """Leave the market for good; a strategy that learns (it has ``hear``) is told the utility."""
        hear = getattr(self.strategy, "hear", None)
        if hear is not None:
            hear(self.utility)
        self.remove()
