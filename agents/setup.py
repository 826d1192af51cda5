"""The setup of a market run as plain data: jobs, a mechanism, limits and the owners' strategies."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol, runtime_checkable

import numpy as np

from marketsched.agents.job import Job
from marketsched.agents.job_table import JobTable, table_of
from marketsched.agents.lies import PublicInformation, Strategy, Truthful
from marketsched.agents.lies.strategy import looks
from marketsched.mechanisms.columns import NEVER
from marketsched.mechanisms.errors import InvalidParameterError
from marketsched.mechanisms.forwarding import as_mechanism
from marketsched.mechanisms.legal import Count, Positive, check_fields
from marketsched.mechanisms.mechanism import Mechanism
from marketsched.mechanisms.resources.cluster import Cluster


@dataclass(frozen=True)
class MarketSetup:
    """Everything a :class:`~marketsched.agents.market.Market` needs.

    Parameters
    ----------
    name : str
        Name of the run.
    jobs : sequence of Job
        The workload. Jobs born in the same round submit in this order.
    mechanism : Mechanism
        A fresh mechanism, in round 1. It keeps the state of the run; a second `Market` of the setup has a copy.
    capacity : int
        C, nodes.
    horizon : int
        T, the last round that is played.
    max_delay : int
        S, rounds: a completion at ``>= birth + max_delay`` is worth 0 to its owner.
    resubmit : bool
        True: an owner whose job was dropped because what happened lies outside its own law submits
        once more in the next round, now knowing the job, under the name ``"<name>+"``.
    strategy : Strategy, or function of a Job that returns one
        How owners report.
    round_seconds : float, optional
        Length of a round in seconds, for time axes; None: rounds have no unit.
    notes : mapping
        Notes of the workload: text or numbers by name.

    Raises
    ------
    InvalidParameterError
        If two jobs share a name, a job arrives before its birth, or the mechanism is not fresh or ends before
        ``horizon``.

    Examples
    --------
    >>> from marketsched.agents.market_run import MarketRun
    >>> from marketsched.mechanisms import DeadlineValue, FirstCome, StatementOfWork
    >>> truth = StatementOfWork(1, 2, DeadlineValue(9.0, 6), [(2, 3, 1.0)])
    >>> market = FirstCome(2, 9, 0.5, max_concurrency=2, max_duration=4, max_value=9.0, max_delay=9)
    >>> setup = MarketSetup("one job", [Job("nightly", "ann", truth, 2, 3)], market, capacity=2, horizon=9, max_delay=9)
    >>> MarketRun(setup).run().outcome["welfare"]
    9.0
    """

    name: str
    jobs: Sequence[Job]
    mechanism: Mechanism
    capacity: Count
    horizon: Count
    max_delay: Count
    resubmit: bool = False
    strategy: Strategy | Callable[[Job], Strategy] = field(default_factory=Truthful)
    round_seconds: Positive | None = None
    notes: Mapping[str, str | int | float] = field(default_factory=dict)
    unplayed: list[Mechanism] = field(default_factory=list, init=False, repr=False, compare=False)  # for later markets

    def __post_init__(self) -> None:
        object.__setattr__(self, "mechanism", as_mechanism(self.mechanism))
        check_fields(self)
        if self.mechanism.round != 1:
            raise InvalidParameterError(
                f"the mechanism of {self.name!r} is in round {self.mechanism.round}: expected a fresh one, in round 1"
            )
        _ = self.public  # or it ends too early
        self._check_jobs()

    @cached_property
    def table(self) -> JobTable:
        """The jobs as a table."""
        return table_of(self.jobs)

    def _check_jobs(self) -> None:
        jobs = self.table
        names = set(jobs.names)
        if len(names) < len(jobs):
            seen: set[str] = set()
            twice = next(name for name in jobs.names if name in seen or seen.add(name))  # type: ignore[func-returns-value]
            raise InvalidParameterError(f"two jobs are named {twice!r}: expected distinct names")
        early = np.flatnonzero((jobs.arrivals != NEVER) & (jobs.arrivals < jobs.births))
        if early.size:
            job = jobs[int(early[0])]
            raise InvalidParameterError(
                f"job {job.name!r} arrives in round {job.arrival}: expected not before its birth {job.truth.birth}"
            )
        short = np.flatnonzero(jobs.durations < 1)
        if short.size:
            job = jobs[int(short[0])]
            raise InvalidParameterError(f"job {job.name!r} has duration {job.duration}: expected at least 1 round")
        clash = next((name for name in jobs.names if name + "+" in names), None) if self.resubmit else None
        if clash is not None:
            raise InvalidParameterError(
                f"jobs {clash!r} and {clash + '+'!r}: the second name is kept for a resubmission of the first"
            )

    def strategy_of(self, job: Job) -> Strategy:
        """Return the strategy of the owner of ``job``."""
        return self.strategy(job) if self.differ else self.strategy  # type: ignore[operator, return-value]

    @property
    def differ(self) -> bool:
        """Whether each owner has a strategy of its own."""
        # hasattr, not isinstance: checking against a protocol costs several microseconds a job.
        return not hasattr(self.strategy, "report")

    @cached_property
    def strategies(self) -> list[Strategy] | None:
        """The strategy of each job's owner, if they differ; a setup is played once, and so are these."""
        return [self.strategy_of(job) for job in self.jobs] if self.differ else None

    @cached_property
    def cluster(self) -> Cluster | None:
        """The cluster of a market whose jobs have shapes; None: its nodes are identical."""
        found = self.mechanism.cluster
        return found if found is not None and any(job.truth.shapes for job in self.jobs) else None

    @property
    def looks(self) -> bool:
        """Whether an owner looks at the market (`agents.lies.strategy.looks`): its reports are not known beforehand."""
        if self.strategies is None:
            return looks(self.strategy)
        return any(map(looks, self.strategies))

    @property
    def public(self) -> PublicInformation:
        """Public information before reports; limits that the mechanism does not announce are None."""
        return PublicInformation.of(self.mechanism, self.capacity, self.horizon, self.max_delay)


@runtime_checkable
class SetupSource(Protocol):
    """A scenario: it builds a fresh setup from a random generator."""

    def setup(self, rng: np.random.Generator) -> MarketSetup:
        """Return the setup of one run, all of its randomness drawn from ``rng``."""
        ...
