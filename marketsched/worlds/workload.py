"""A workload: the jobs of a market, and the limits announced before any of them is known."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np

from marketsched.agents.job import Job
from marketsched.mechanisms.checks import finite_parameter
from marketsched.mechanisms.errors import InvalidParameterError
from marketsched.mechanisms.randomness import generator_of
from marketsched.mechanisms.ranges import Positive, checked
from marketsched.mechanisms.sow import StatementOfWork
from marketsched.mechanisms.statement_law import StatementLaw, statement_laws
from marketsched.mechanisms.values import DeadlineValue
from marketsched.worlds.prediction import History, PredictionRule, predict

if TYPE_CHECKING:
    import pandas as pd

LOG_COLUMNS = ("submit_s", "run_s", "processors", "user", "executable")


@dataclass(frozen=True)
class Workload:
    """Jobs, and the constants of the market they are made for.

    Parameters
    ----------
    name : str
        What it is called.
    jobs : tuple of Job
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
        Modelling choices and what they amount to, by name: text or numbers.
    laws : tuple of StatementLaw, optional
        What was known in advance of each job that could have appeared, also of those that did not;
        None: the workload does not say.

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
    jobs: tuple[Job, ...] = field(repr=False)
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

    def __post_init__(self) -> None:
        if self.laws is not None:
            object.__setattr__(self, "laws", tuple(statement_laws(self.laws)))
        object.__setattr__(self, "notes", MappingProxyType(dict(self.notes)))

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
        )

    @classmethod
    @checked
    def from_log(
        cls,
        log: pd.DataFrame,
        *,
        rng: np.random.Generator | int | None = None,
        name: str = "log",
        days: Positive = 1.0,
        load: Positive = 1.2,
        rule: PredictionRule | None = None,
    ) -> Workload:
        """Return the market of the last ``days`` of a log, each run predicted from earlier ones of its user's program.

        Parameters
        ----------
        log : DataFrame
            One row per run: ``submit_s, run_s`` (seconds), ``processors``, ``user``, ``executable``. A user's
            executable is one recurring job; runs without length or processors do not count.
        rng : Generator or int, optional
            Draws what no log says: credits per node-round (log-normal) and slack (2 to 12 rounds) of each job.
        name : str
            What the workload is called.
        days, load : float
            Length of the market, and its work as a share of what its nodes can do; there are at least twice the
            nodes of the widest job.
        rule : PredictionRule, optional
            How runs are predicted, and how long a round is.

        Raises
        ------
        InvalidParameterError
            If a column is missing, or no run of these days can be predicted.
        """
        missing = [column for column in LOG_COLUMNS if column not in log]
        if missing:
            raise InvalidParameterError(f"no column {', '.join(missing)}", place="log", legal=", ".join(LOG_COLUMNS))
        rule, draws = rule or PredictionRule(), generator_of(rng)
        runs = log[(log["run_s"] > 0) & (log["processors"] > 0)].sort_values("submit_s", kind="stable")
        origin = float(runs["submit_s"].max()) - days * 86_400.0
        jobs = [
            job
            for (user, executable), own in runs.groupby(["user", "executable"])
            for job in _recurring(f"{user}-{executable}", str(user), own, origin, rule, draws)
        ]
        require(bool(jobs), f"no run of the last {days:g} days has {rule.min_gaps + 1} earlier ones of its job")
        jobs.sort(key=lambda job: job.truth.birth)
        rounds = math.ceil(days * 86_400.0 / rule.round_seconds)
        widest = max(job.truth.concurrency for job in jobs)
        work = sum(job.truth.concurrency * job.duration for job in jobs)
        return cls(
            name,
            tuple(jobs),
            capacity=max(2 * widest, round(work / rounds / load)),
            birth_rounds=max(rounds, max(job.truth.birth for job in jobs)),
            horizon=max(job.truth.value.last for job in jobs) + rule.max_duration,
            max_concurrency=widest,
            max_duration=rule.max_duration,
            max_value=max(job.truth.value.highest for job in jobs),
            max_delay=1 + max(job.truth.value.last - job.truth.birth for job in jobs),
            round_seconds=rule.round_seconds,
            notes={"source": "a log; what runs are worth, and by when, is drawn", "statements": len(jobs)},
        )

    @property
    def work(self) -> int:
        """Node-rounds that the jobs really need."""
        return sum(job.truth.concurrency * job.duration for job in self.jobs if job.arrival is not None)

    @property
    def load(self) -> float:
        """Node-rounds that the jobs really need, as a share of those on sale while jobs are born."""
        return self.work / (self.capacity * self.birth_rounds)

    def capacity_at(self, load: float) -> int:
        """Return the nodes, at least 1, on which these jobs come closest to a load.

        That is the load a run reports: the work over the node-rounds until the last birth.

        Raises
        ------
        InvalidParameterError
            If the load is not above 0.
        """
        load = finite_parameter("load", load, "(0, inf)")
        return max(1, round(self.work / (load * max((job.truth.birth for job in self.jobs), default=1))))

    @property
    def peak(self) -> float:
        """Most nodes busy at once if every job started at its arrival, as a share of the capacity."""
        real = [(job.arrival, job.duration, job.truth.concurrency) for job in self.jobs if job.arrival is not None]
        if not real:
            return 0.0
        arrivals, durations, nodes = np.array(real, dtype=np.int64).T
        change = np.zeros(int((arrivals + durations).max()) + 1)
        np.add.at(change, arrivals, nodes)
        np.subtract.at(change, arrivals + durations, nodes)
        return float(change.cumsum().max() / self.capacity)


def _recurring(
    name: str, owner: str, runs: pd.DataFrame, origin: float, rule: PredictionRule, rng: np.random.Generator
) -> Iterator[Job]:
    """Yield the runs of one recurring job from ``origin`` on that can be predicted."""
    submits, seconds = runs["submit_s"].tolist(), runs["run_s"].tolist()
    rounds = [rule.rounds_of(each) for each in seconds]
    past = History(submits, [s + r for s, r in zip(submits, seconds, strict=True)], rounds)
    density, slack, nodes = float(rng.lognormal(1, 0.7)), int(rng.integers(2, 13)), int(runs["processors"].median())
    for i, submit in enumerate(submits):
        told = predict(past, i, rule, origin) if submit >= origin else None
        if told is None or told.birth < 1:
            continue
        worth = DeadlineValue(density * nodes * told.duration.mean, told.expected + told.duration.quantile(0.9) + slack)
        truth = StatementOfWork.from_arrays(told.birth, nodes, worth, told.arrivals, told.durations, told.probabilities)
        arrival = int((submit - origin) // rule.round_seconds) + 1
        yield Job(f"{name}-{i}", owner, truth, arrival, rounds[i], rounds[i])


def certain_laws(workload: Workload) -> list[StatementLaw]:
    """Return one law per job, under which its true statement of work is known for certain.

    The most favourable knowledge there can be: what a mechanism earns with it bounds what it would
    earn with laws that leave something open. (What really happens is still drawn from each
    statement's own law.)
    """
    return [StatementLaw.of(job.truth) for job in workload.jobs]


def require(condition: bool, message: str) -> None:
    """Raise ``InvalidParameterError(message)`` unless ``condition`` holds."""
    if not condition:
        raise InvalidParameterError(message)
