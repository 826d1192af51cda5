"""The owner of one job as a Mesa agent, and a named owner with all of its jobs as another."""

from __future__ import annotations

import mesa

from marketsched.agents.job import Job
from marketsched.agents.lies import Strategy
from marketsched.agents.mesa_agent import MarketAgent
from marketsched.agents.owner_state import OwnerState


class JobOwner(OwnerState, MarketAgent):
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
        The name of the current statement in the market: the job's name, ``"<name>+"`` once it is
        submitted again.
    report : StatementOfWork or None
        The last submission; None before.
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

    def __init__(self, model: mesa.Model, job: Job, index: int, strategy: Strategy, max_delay: int) -> None:
        MarketAgent.__init__(self, model, index + 1)
        OwnerState.__init__(self, job, index, strategy, max_delay)

    def leave(self) -> None:
        """Leave the market, and the model, for good."""
        super().leave()
        self.remove()


class NamedOwner(MarketAgent):
    """An owner for the whole market, whatever jobs of it there are: what a `DataCollector` follows.

    Attributes
    ----------
    name : str
        Its name in the workload.
    jobs : list of JobOwner
        Those of its jobs that it has submitted.

    Examples
    --------
    See `Market`.
    """

    def __init__(self, model: mesa.Model, unique_id: int, name: str) -> None:
        super().__init__(model, unique_id)
        self.name = name
        self.jobs: list[JobOwner] = []

    @property
    def active(self) -> int:
        """Jobs that wait or run."""
        return sum(not job.finished for job in self.jobs)

    @property
    def value(self) -> float:
        """Realised so far, credits."""
        return sum(job.value for job in self.jobs)

    @property
    def payment(self) -> float:
        """Paid so far, credits."""
        return sum(job.payment for job in self.jobs)

    @property
    def utility(self) -> float:
        """Value minus payment, credits."""
        return self.value - self.payment
