"""A workload: the jobs of a market, and the limits announced before any of them is known."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType

import numpy as np

from marketsched.agents.job import Job
from marketsched.agents.job_table import JobTable, table_of
from marketsched.mechanisms.columns import NEVER
from marketsched.mechanisms.errors import InvalidParameterError
from marketsched.mechanisms.legal import Positive, legal
from marketsched.mechanisms.resources.cluster import Cluster
from marketsched.mechanisms.statement_law import StatementLaw, statement_laws

KNOWN_DRAWS = 4  # other draws of a workload, where what is known in advance is made of them


@dataclass(frozen=True)
class Workload:
    """Jobs, and the constants of the market they are made for.

    Parameters
    ----------
    name : str
        Its name.
    jobs : sequence of Job
        In order of submission: by birth round, and inside a round as they are to submit.
    capacity : int
        C, nodes; the size the workload is meant for.
    birth_rounds : int
        Jobs are born in rounds ``1 .. birth_rounds``.
    horizon : int
        T, the last round: late enough for the last deadline.
    max_concurrency, max_duration, max_value, max_delay : number
        c_max (nodes), D_max (rounds), V_max (credits), S (rounds: every value curve is 0 from
        ``birth + max_delay`` on). Constants, fixed before any job is seen.
    round_seconds : float, optional
        Length of a round; None: rounds have no length.
    notes : mapping
        Modelling choices and their effects, by name: text or numbers.
    laws : tuple of StatementLaw, optional
        What was known in advance of each job that could have appeared, also of those that did not;
        None: the workload does not say.
    cluster : Cluster, optional
        The cluster, where nodes differ; jobs then have shapes, and ``capacity`` is its nodes.

    Raises
    ------
    InvalidParameterError
        If one of ``laws`` is not a law.

    Examples
    --------
    >>> from marketsched import synthetic_pipelines
    >>> workload = synthetic_pipelines(rng=7)
    >>> workload.capacity, workload.round_seconds, len(workload.jobs) == len({job.name for job in workload.jobs})
    (120, 300.0, True)
    """

    name: str
    jobs: Sequence[Job] = field(repr=False)
    capacity: int
    birth_rounds: int
    horizon: int
    max_concurrency: int
    max_duration: int
    max_value: float
    max_delay: int
    round_seconds: float | None
    notes: Mapping[str, str | int | float] = field(default_factory=dict, repr=False)
    laws: tuple[StatementLaw, ...] | None = field(default=None, repr=False)
    cluster: Cluster | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if self.laws is not None:
            object.__setattr__(self, "laws", tuple(statement_laws(self.laws)))
        object.__setattr__(self, "notes", MappingProxyType(dict(self.notes)))

    @property
    def of_log(self) -> bool:
        """Whether the jobs are recorded ones: the notes say by what rule they were taken, or from where."""
        return "rule" in self.notes or (self.cluster is not None and "source" in self.notes)

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle (a read-only view of a dict does not pickle by itself)."""
        fields = (self.capacity, self.birth_rounds, self.horizon, self.max_concurrency, self.max_duration)
        return Workload, (
            self.name,
            self.jobs,
            *fields,
            self.max_value,
            self.max_delay,
            self.round_seconds,
            dict(self.notes),
            self.laws,
            self.cluster,
        )

    @cached_property
    def table(self) -> JobTable:
        """The jobs as a table."""
        return table_of(self.jobs)

    @property
    def work(self) -> int:
        """Node-rounds that the jobs really need."""
        return self.table.work

    @property
    def load(self) -> float:
        """Node-rounds that the jobs really need, as a share of those on sale while jobs are born."""
        return self.work / (self.capacity * self.birth_rounds)

    @legal
    def capacity_at(self, load: Positive) -> int:
        """Return the nodes, at least 1, on which these jobs come closest to a load.

        That is the load a run reports: the work over the node-rounds until the last birth.
        """
        return max(1, round(self.work / (load * self.table.last_birth)))

    @property
    def classes(self) -> dict[str, int]:
        """The class of each job of which the workload knows one, by name: larger ones are more urgent."""
        jobs = table_of(self.jobs)
        if "class" not in jobs.tags:
            return {}
        pairs = zip(jobs.names, jobs.tag("class", slice(None)), strict=True)
        return {name: int(each) for name, each in pairs if isinstance(each, int | np.integer)}

    @property
    def owners(self) -> list[str]:
        """The owners of the jobs, each once, in the order of their first jobs."""
        return list(dict.fromkeys(self.table.owners))

    @property
    def shares_by_account(self) -> dict[str, float]:
        """Accounts of a log, which has some, as the upper level of a share tree: each, and each owner in it, one share.

        An owner of several accounts stands in the one of most of its jobs; {}: no account is known, or one alone.
        """
        if "account" not in self.table.tags:
            return {}
        pairs = Counter(zip(self.table.owners, self.table.tag("account", slice(None)), strict=True)).most_common()
        of = {
            owner: account.replace("/", ":") for (owner, account), _ in reversed(pairs) if account and "/" not in owner
        }
        accounts = {f"{account}/": 1.0 for account in of.values()}
        return accounts | {f"{account}/{owner}": 1.0 for owner, account in of.items()} if len(accounts) > 1 else {}

    def load_at(self, capacity: int) -> float:
        """Return the load of these jobs on ``capacity`` nodes, as `capacity_at` counts it."""
        return self.work / (capacity * self.table.last_birth)

    @property
    def peak(self) -> float:
        """Most nodes busy at once if every job started at its arrival, as a share of the capacity."""
        jobs = self.table
        there = jobs.arrivals != NEVER
        if not there.any():
            return 0.0
        arrivals, durations, nodes = jobs.arrivals[there], jobs.durations[there], jobs.widths[there]
        change = np.zeros(int((arrivals + durations).max()) + 1)
        np.add.at(change, arrivals, nodes)
        np.subtract.at(change, arrivals + durations, nodes)
        return float(change.cumsum().max() / self.capacity)


def laws_of_draws(draws: Iterable[Iterable[Job]]) -> list[StatementLaw]:
    """Return what is known of a market from `KNOWN_DRAWS` others by the same rules: of each job, that it may come."""
    chance = 1 / KNOWN_DRAWS
    return [StatementLaw([(job.truth, chance), (None, 1 - chance)]) for jobs in draws for job in jobs]


def certain_laws(workload: Workload) -> list[StatementLaw]:
    """Return one law per job, under which its true statement of work is known for certain.

    The most favourable knowledge there can be: what a mechanism earns with it bounds what it would earn with laws that
    leave something open. (What really happens is still drawn from each statement's own law.)
    """
    return [StatementLaw.of(job.truth) for job in workload.jobs]


def require(condition: bool, message: str) -> None:
    """Raise ``InvalidParameterError(message)`` unless ``condition`` holds."""
    if not condition:
        raise InvalidParameterError(message)
