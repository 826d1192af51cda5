"""Jobs under one configuration of multifactor priority: on a real slurmctld, and by the port `FairShare`.

Both take the same jobs, accounts, weights and QOS, and both say in which round each job starts. Jobs take whole nodes
of one processor. Where jobs share a node, slurmctld 22.05.8 differs from the port: its backfilling plans with whole
nodes, so that a job that is to start on a part of one keeps all others from it that would still run then.
"""

from __future__ import annotations

import tempfile
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

from marketsched.agents.job import Job
from marketsched.mechanisms.legal import Amount, Count, Named, Positive, check_fields
from marketsched.mechanisms.schedulers.fair_share import RULES, FairShare
from marketsched.slurm.accounts import FAIR_SHARE, AccountingCluster
from marketsched.slurm.beside import RESERVING, SCHEDULING
from marketsched.slurm.commands import SlurmError
from marketsched.slurm.gate import PLAIN, ROUND_S, Asked, TooSlow, play_in_slurm
from marketsched.slurm.port import HORIZON, played, simple_job

SLOWEST = 30.0  # a clock so many times fast: twenty seconds a round


@dataclass(frozen=True, slots=True)
class Situation:
    """Submitted jobs, and their requests besides nodes and wall time.

    Parameters
    ----------
    jobs : tuple of Job
        In order of submission; the owner is the account.
    asked : mapping of str to Asked
        By name of the job.
    """

    jobs: tuple[Job, ...]
    asked: Mapping[str, Asked] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class OnSlurm:
    """Rounds in which jobs started by name, the version of Slurm, and how fast its clock ran."""

    starts: Mapping[str, int]
    version: str
    rate: float


@dataclass(frozen=True)
class FairShareCluster:
    """A cluster with accounts and fair share, as slurm.conf describes it.

    Parameters
    ----------
    nodes : int
        Of the cluster, of one processor each.
    shares : mapping of str to int
        By account, all of them at the top.
    rule : {"fair-tree", "classic"}
        Slurm's default, or ``PriorityFlags=NO_FAIR_TREE``.
    weight_age, weight_fair_share, weight_size, weight_qos : float
        ``PriorityWeight...``, >= 0.
    half_life_hours, max_age_hours : float
        ``PriorityDecayHalfLife`` and ``PriorityMaxAge``, above 0, where a round takes ten minutes.
    qos : mapping, optional
        Priority and usage factor by name, besides ``normal``.
    reserving : {"head", "all"}
        For whom slurmctld reserves nodes: the first in the queue (``bf_job_part_count_reserve=1``), as the port does
        in any case, or every job, Slurm's default.

    Examples
    --------
    >>> cluster = FairShareCluster(4, {"ann": 1, "bob": 1})
    >>> jobs = [simple_job(name, name, arrival=1, nodes=3, rounds=2) for name in ("ann", "bob")]
    >>> cluster.starts_on_port(Situation(tuple(jobs)))
    {'ann': 1, 'bob': 3}
    """

    nodes: Count
    shares: Mapping[str, int]
    rule: Annotated[str, Named(RULES)] = "fair-tree"
    weight_age: Amount = 1000.0
    weight_fair_share: Amount = 10_000.0
    weight_size: Amount = 1000.0
    weight_qos: Amount = 0.0
    half_life_hours: Positive = 168.0
    max_age_hours: Positive = 168.0
    qos: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    reserving: Annotated[str, Named(tuple(RESERVING))] = "head"

    def __post_init__(self) -> None:
        check_fields(self)

    def lines(self) -> dict[str, str]:
        """Return what slurm.conf says of it, by key."""
        found = {
            **FAIR_SHARE,
            "SchedulerParameters": f"{SCHEDULING},bf_job_part_count_reserve={RESERVING[self.reserving]}",
            "PriorityWeightAge": f"{self.weight_age:.0f}",
            "PriorityWeightFairshare": f"{self.weight_fair_share:.0f}",
            "PriorityWeightJobSize": f"{self.weight_size:.0f}",
            "PriorityWeightQOS": f"{self.weight_qos:.0f}",
            "PriorityDecayHalfLife": f"{max(1, round(self.half_life_hours * 60))}",
            "PriorityMaxAge": f"{max(1, round(self.max_age_hours * 60))}",
        }
        return found if self.rule == "fair-tree" else {**found, "PriorityFlags": "NO_FAIR_TREE"}

    def play_on_slurm(self, situation: Situation, *, rate: float, until: Collection[str] = ()) -> OnSlurm:
        """Return the round in which each job starts under a slurmctld of its own.

        Where this machine is too slow for the clock, so that seconds may have decided, the jobs are played again on a
        clock half as fast.

        Parameters
        ----------
        situation : Situation
            The jobs.
        rate : float
            How fast Slurm's clock runs, above 1.
        until : collection of str
            The play ends once these have started; empty: once all jobs are over.

        Raises
        ------
        SlurmError
            If Slurm, MariaDB or faketime is not installed or does not start, or this machine is too slow for a clock of
            `SLOWEST`.
        """
        while True:
            found = self._on_slurm_once(situation, rate, until)
            if found is not None:
                return found
            rate /= 2
            if rate < SLOWEST:
                raise SlurmError(
                    "rounds were decided by seconds", legal=f"a machine for a clock {SLOWEST:g} times fast"
                )

    def _on_slurm_once(self, situation: Situation, rate: float, until: Collection[str]) -> OnSlurm | None:
        accounts = {f"{name}/": share for name, share in self.shares.items()}
        with (
            tempfile.TemporaryDirectory(prefix="lie-") as folder,
            AccountingCluster(
                Path(folder), self.nodes, accounts=accounts, qos=self.qos, rate=rate, settings=self.lines()
            ) as cluster,
        ):
            try:
                run = play_in_slurm(situation.jobs, cluster, accounts=True, asked=situation.asked, until=until)
            except TooSlow:
                return None
            version = cluster.slurm.configuration().get("SLURM_VERSION", "unknown")
        if run.late:
            return None
        first = int(run.frame["start"].min()) - min(job.arrival or 0 for job in situation.jobs)
        starts = zip(run.frame["job"], run.frame["start"], strict=True)
        return OnSlurm({str(name): int(start) - first for name, start in starts}, version, rate)

    def starts_on_port(self, situation: Situation, until: Collection[str] = ()) -> dict[str, int]:
        """Return the same of the mechanism ``fair-share``; ``until`` as there."""
        sizes: dict[str, Any] = {
            "max_concurrency": self.nodes,
            "max_duration": HORIZON,
            "max_value": 1.0,
            "max_delay": HORIZON,
        }
        qualities = {name: {"priority": p, "usage_factor": u} for name, (p, u) in self.qos.items()}
        asked = {name: qualities[each.qos] for name, each in situation.asked.items() if each.qos}
        market = FairShare(
            self.nodes,
            HORIZON,
            rule=self.rule,
            shares={"root": 1, **self.shares},  # the user root has a share of its own
            qos=asked | {"root": {"priority": max((p for p, _ in self.qos.values()), default=0.0)}},
            weight_age=self.weight_age,
            weight_fair_share=self.weight_fair_share,
            weight_size=self.weight_size,
            weight_qos=self.weight_qos,
            half_life_hours=self.half_life_hours,
            max_age_hours=self.max_age_hours,
            round_seconds=float(ROUND_S),
            drop_hopeless=False,
            stop_at_deadline=False,
            **sizes,
        )
        jobs = [self._on_port(job, situation.asked.get(job.name, PLAIN)) for job in situation.jobs]
        return {name: start for name, (start, _) in played(market, jobs, until).items()}

    def _on_port(self, job: Job, asked: Asked) -> Job:
        """Return a job as the port takes it: a least wall time is the wall time, and what is submitted ahead waits."""
        if not asked.least:
            return job
        limit = max(asked.least, job.duration)
        return simple_job(job.name, job.owner, job.arrival or 1, job.truth.concurrency, job.duration, limit)
