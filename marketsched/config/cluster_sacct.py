"""Jobs of a Slurm cluster with their requests, on a cluster that is written out: the workload ``sacct-shapes``.

What ``sacct`` tells: when a job came, how long it ran, and cores, memory and GPUs of each of its nodes, which are the
tasks of its one shape. The kinds it accepts are that of its GPUs' type, else those named in its constraints or by its
partition, else all. *Made up*, and named in the notes: that it takes as long on every kind, values (log-normal of
deviation .8 about one credit a round for a thousandth of the cluster, by the largest share it takes), and deadlines (a
delay of twice its duration, two hours at least).
"""

from __future__ import annotations

import math
import re
from os import PathLike
from typing import Any, Literal

import numpy as np
import pandas as pd

from marketsched.agents.job import Job
from marketsched.config.cluster_section import ClusterSection
from marketsched.config.sections import WorkloadSection
from marketsched.mechanisms.errors import InvalidParameterError, InvalidReportError
from marketsched.mechanisms.legal import Count, Positive
from marketsched.mechanisms.resources.cluster import Cluster
from marketsched.mechanisms.resources.shapes import Options, Shape, options_of
from marketsched.mechanisms.sow import StatementOfWork
from marketsched.mechanisms.values import DeadlineValue
from marketsched.worlds.logs.formats import find_log
from marketsched.worlds.logs.tres import tres_table
from marketsched.worlds.workload import Workload

VALUE_SPREAD, DELAY_S = 0.8, 7_200.0
RESOURCES = ("cpu", "memory", "gpu")


class SacctShapes(WorkloadSection):
    """A file of ``sacct`` as jobs with shapes.

    ``cluster`` has resources of the names ``cpu`` (cores), ``memory`` (GiB) and ``gpu``; those that it lacks are left
    out of what jobs need. Of more than ``most_jobs`` the last are taken; runs are cut to ``max_duration`` rounds.
    """

    kind: Literal["sacct-shapes"]
    path: str
    cluster: ClusterSection
    round_seconds: Positive = 600.0
    most_jobs: Count = 10_000
    max_duration: Count = 288

    def build(self, rng: np.random.Generator, data: str | PathLike[str] | None) -> Workload:
        """Return the workload; values are drawn from ``rng``."""
        cluster = self.cluster.cluster()
        table, counted = tres_table(find_log(self.path, data))
        table = table.iloc[-self.most_jobs :]
        draws = np.exp(VALUE_SPREAD * rng.standard_normal(len(table)))
        begin, jobs, misfits = float(table["submit_s"].iloc[0]), list[Job](), 0
        for (i, row), factor in zip(table.iterrows(), draws.tolist(), strict=True):
            d = min(self.max_duration, math.ceil(row["run_s"] / self.round_seconds))
            shape = _shape_of(row, d, cluster)
            try:
                options = options_of([shape], cluster) if shape is not None else None
            except InvalidReportError:
                options = None
            if shape is None or options is None:
                misfits += 1
                continue
            birth = int((row["submit_s"] - begin) // self.round_seconds) + 1
            delay = max(2 * d, math.ceil(DELAY_S / self.round_seconds))
            value = DeadlineValue(factor * d * 1000 * _share(options, cluster), birth + d + delay)
            truth = StatementOfWork.of_shapes(birth, value, birth, [shape])
            tags = {"class": row["partition"]}
            jobs.append(Job(f"run-{i}", row["user"] or f"run-{i}", truth, birth, d, d, tags))
        if not jobs:
            raise InvalidParameterError(
                "no job of the file fits the cluster", place="workload.cluster", legal="one that does"
            )
        last = max(job.truth.value.last for job in jobs)
        return Workload(
            self.kind,
            tuple(jobs),
            capacity=cluster.nodes,
            birth_rounds=max(job.truth.birth for job in jobs),
            horizon=last,
            max_concurrency=max(job.truth.concurrency for job in jobs),
            max_duration=max(job.duration for job in jobs),
            max_value=max(job.truth.value.highest for job in jobs),
            max_delay=1 + max(job.truth.value.last - job.truth.birth for job in jobs),
            round_seconds=self.round_seconds,
            notes={
                "source": f"sacct's output, {self.path}",
                **counted,
                **({"jobs left out: no nodes of a kind they accept hold them": misfits} if misfits else {}),
                "durations": "as they were, the same on every kind (made up): durations are revealed",
                "values (made up)": "log-normal (deviation 0.8) about a credit a round for a thousandth of the cluster",
                "deadlines (made up)": "a delay of twice the run, two hours at least",
            },
            cluster=cluster,
        )


def _shape_of(row: pd.Series[Any], duration: int, cluster: Cluster) -> Shape | None:
    """Return the shape of a job; None: what it accepts is not there, or it needs nothing that the cluster has."""
    parts = {resource.name: resource for resource in cluster.resources}
    each: dict[str, float] = {}
    for name in RESOURCES:
        if name in parts and row[name] > 0:
            whole = math.ceil(round(row[name] * parts[name].parts, 6))
            each[name] = whole / parts[name].parts
    named = {row["gpu_type"]} if row["gpu_type"] else set(re.split(r"[|&,\[\]\s]+", row["constraints"]))
    kinds = [kind for kind in cluster.kinds if kind in named]
    if not kinds and row["gpu_type"]:
        return None
    kinds = kinds or [kind for kind in cluster.kinds if kind == row["partition"]] or list(cluster.kinds)
    return Shape(each, dict.fromkeys(kinds, (duration,)), tasks=int(row["tasks"]), per_node=1) if each else None


def _share(options: Options, cluster: Cluster) -> float:
    """Return the largest share of the whole cluster that a job takes."""
    total = np.maximum(cluster.layout.pool_size.sum(axis=0), 1)
    return float((options.total[0] / total).max())
