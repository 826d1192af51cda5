"""A log of jobs played through a real Slurm, and beside it by the schedulers of this package that are like it."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import pandas as pd

from marketsched.mechanisms.legal import Positive, legal
from marketsched.mechanisms.schedulers.backfilling import backfilled
from marketsched.mechanisms.schedulers.conservative_backfill import ConservativeBackfill
from marketsched.mechanisms.schedulers.easy_backfill import EasyBackfill
from marketsched.slurm.cluster import OneHostCluster
from marketsched.slurm.gate import SlurmRun, play_in_slurm, wall_time
from marketsched.slurm.port import played
from marketsched.worlds.workload import Workload

SCHEDULERS = {"easy-backfill": EasyBackfill, "conservative-backfill": ConservativeBackfill}
RESERVING = {"head": 1, "all": 0}  # value of bf_job_part_count_reserve
SCHEDULING = (  # the loops as often as they can be, every job looked at, plans as far ahead as they may go
    "sched_interval=1,bf_interval=1,bf_continue,bf_max_job_test=10000,default_queue_depth=10000,bf_window=43200"
)


@dataclass(frozen=True)
class Beside:
    """A log in Slurm and beside it.

    Parameters
    ----------
    run : SlurmRun
        What Slurm did; its frame has a column for each of `SCHEDULERS`, the round in which that starts the job.
    nodes : int
        How many there were.

    Examples
    --------
    See `beside_slurm`, which returns one.
    """

    run: SlurmRun = field(repr=False)
    nodes: int

    def equal(self, scheduler: str) -> int:
        """Return how many jobs start in the same round as in Slurm."""
        return int((self.run.frame["start"] == self.run.frame[scheduler]).sum())

    def decisions(self) -> tuple[int, int]:
        """Return in how many rounds a job waited, and in how many of them Slurm did as EASY backfilling does.

        Each round is looked at by itself, with what ran and waited in Slurm, so that one difference makes no others.
        """
        frame, nodes = self.run.frame, self.nodes
        end = frame["start"] + frame["wall_time"]
        left = frame["start"] + frame[["duration", "wall_time"]].min(axis=1)
        rounds = equal = 0
        for now in range(int(frame["arrival"].min()), int(frame["start"].max()) + 1):
            queue = frame[(frame["arrival"] <= now) & (frame["start"] >= now)]
            running = (frame["start"] < now) & (left > now)
            if not queue.empty:
                sizes = list(zip(queue["nodes"].tolist(), queue["wall_time"].tolist(), strict=True))
                ends = zip(end[running].tolist(), frame["nodes"][running].tolist(), strict=True)
                free = nodes - int(frame["nodes"][running].sum())
                rounds += 1
                equal += backfilled(sizes, free, ends, now) == (queue["start"] == now).tolist()
        return rounds, equal

    def waits(self) -> pd.Series[float]:
        """Return mean waits in rounds, ``slurm`` and the schedulers."""
        frame = self.run.frame
        columns = {"slurm": "start", **{name: name for name in SCHEDULERS}}
        return pd.Series({name: float((frame[column] - frame["arrival"]).mean()) for name, column in columns.items()})


@legal
def beside_slurm(
    workload: Workload,
    *,
    reserving: Literal["head", "all"] = "head",
    counting: Literal["nodes", "licenses"] = "nodes",
    rate: Positive = 300.0,
    folder: Path | None = None,
) -> Beside:
    """Play a workload through a Slurm of its own on this machine, and by `SCHEDULERS`.

    Parameters
    ----------
    workload : Workload
        Of a log: its capacity is the number of nodes.
    counting : "nodes" or "licenses"
        The jobs' resource: nodes of the cluster, which have names, or licenses, which are counted (``bf_licenses``).
    reserving : "head" or "all"
        For whom Slurm's backfilling reserves nodes: for the first in the queue, as EASY backfilling does
        (``bf_job_part_count_reserve=1``), or for every job, Slurm's default.
    rate : float
        How fast Slurm's clock runs. A round takes 600 / rate seconds; an idle machine keeps up with 600.
    folder : Path, optional
        For Slurm's files; None: one that is removed.

    Raises
    ------
    SlurmError
        If Slurm is not installed, or does not start.

    Examples
    --------
    >>> from marketsched.worlds import workload_of_log
    >>> beside = beside_slurm(workload_of_log(log, rng=1, days=0.1))  # doctest: +SKIP
    >>> beside.equal("easy-backfill")  # jobs that start in the same round  # doctest: +SKIP
    """
    licenses = counting == "licenses"
    settings = {"SchedulerParameters": f"{SCHEDULING},bf_job_part_count_reserve={RESERVING[reserving]}"}
    if licenses:
        settings["SchedulerParameters"] += ",bf_licenses"
        settings["Licenses"] = f"node:{workload.capacity}"
    with tempfile.TemporaryDirectory(prefix="slurm-") as own:
        place = Path(own) if folder is None else folder
        with OneHostCluster(place, workload.capacity + 2 * licenses, rate=rate, settings=settings) as cluster:
            run = play_in_slurm(workload.jobs, cluster, counting=counting)
    for name in SCHEDULERS:
        run.frame[name] = run.frame["job"].map(starts_of(name, workload))
    return Beside(run, workload.capacity)


def starts_of(scheduler: str, workload: Workload) -> dict[str, int]:
    """Return the round in which each job starts under one of `SCHEDULERS`, where no job is dropped."""
    jobs = workload.jobs
    last = workload.horizon + sum(min(job.duration, wall_time(job)) for job in jobs)
    market = SCHEDULERS[scheduler](
        workload.capacity,
        last + workload.max_delay,
        max_concurrency=workload.max_concurrency,
        max_duration=workload.max_duration,
        max_value=workload.max_value,
        max_delay=workload.max_delay,
        kill=True,
        grace=0,
        drop_hopeless=False,
        stop_at_deadline=False,
    )
    return {name: start for name, (start, _) in played(market, jobs).items()}
