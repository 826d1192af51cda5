"""Jobs of a log with their requests, on a cluster that is written out: the workload ``sacct-shapes``.

A log of Slurm, of PBS, of pods or of Alibaba's services tells when a job came, how long it ran, and cores, memory and
GPUs of each of its nodes (`marketsched.worlds.logs.requests`), which are the tasks of its one shape. The kinds it
accepts are that of its GPUs' type, else those named in its constraints or by its partition, else all; capitals or small
letters do not matter. *Made up*, and named in the notes: that it takes as long on every kind, values (log-normal of
deviation .8 about one credit a round for a thousandth of the cluster, by the largest share it takes), and deadlines (a
delay of twice its duration, two hours at least).
"""

from __future__ import annotations

import math
import re
from contextlib import suppress
from os import PathLike
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from marketsched.agents.job import Job
from marketsched.config.cluster_section import ClusterSection
from marketsched.config.sections import WorkloadSection
from marketsched.mechanisms.errors import InvalidParameterError, InvalidReportError
from marketsched.mechanisms.legal import Count, Positive, PositiveShare
from marketsched.mechanisms.resources.cluster import Cluster
from marketsched.mechanisms.resources.shapes import Options, Shape, options_of
from marketsched.mechanisms.sow import StatementOfWork
from marketsched.mechanisms.values import DeadlineValue
from marketsched.worlds.logs.columns import UTC, AnyZone
from marketsched.worlds.logs.formats import find_log
from marketsched.worlds.logs.requests import requests_table
from marketsched.worlds.workload import Workload

VALUE_SPREAD, DELAY_S = 0.8, 7_200.0
RESOURCES = ("cpu", "memory", "gpu")


class _Fitting(NamedTuple):
    """A job that fits the cluster."""

    row: int  # of the table
    factor: float  # of its value
    duration: int  # rounds
    shape: Shape
    options: Options


class RequestedShapes(WorkloadSection):
    """A log with requests, as jobs with shapes.

    ``cluster`` has resources of the names ``cpu`` (cores), ``memory`` (GiB) and ``gpu``; those that it lacks are left
    out of what jobs need. Of more than ``most_jobs`` the last are taken, and of these each with the chance ``kept``, so
    that a part of a log fits a part of its cluster; runs are cut to ``max_duration`` rounds.

    With ``load`` all gaps between arrivals are scaled, so that the rounds of the GPUs requested (of the resource that
    is scarcest, on a cluster without GPUs) are that part of those there until the last birth.

    ``valued_on`` are the amounts of a cluster whose thousandth is worth a credit a round, by resource; by default those
    of ``cluster``. Where clusters are compared they have to be the same, else the same job is worth less on more nodes:
    a change of ``workload.cluster`` keeps those of the file (`marketsched.config.scenario_file`).
    """

    kind: Literal["sacct-shapes"]
    path: str
    cluster: ClusterSection
    round_seconds: Positive = 600.0
    most_jobs: Count = 10_000
    max_duration: Count = 288
    kept: PositiveShare = 1.0
    load: Positive | None = None
    valued_on: dict[str, Positive] | None = None
    zone: Annotated[str, AnyZone()] = UTC

    def table(self, data: str | PathLike[str] | None) -> tuple[pd.DataFrame, dict[str, int]]:
        """Return the jobs of the file, and the rows left out by the reason; errors as of `requests_table`."""
        return requests_table(find_log(self.path, data), self.zone)

    def build(self, rng: np.random.Generator, data: str | PathLike[str] | None) -> Workload:
        """Return the workload; values are drawn from ``rng``, after what is kept."""
        cluster = self.cluster.cluster()
        whole = self._valued_on(cluster)
        table, counted = self.table(data)
        if len(table) > self.most_jobs:
            counted[f"jobs left out: before the last {self.most_jobs:,} (most_jobs)"] = len(table) - self.most_jobs
        table = table.iloc[-self.most_jobs :]
        if self.kept < 1:
            table = table[rng.random(len(table)) < self.kept]
        draws = np.exp(VALUE_SPREAD * rng.standard_normal(len(table)))
        found = self._fitting(table, draws, cluster)
        if not found:
            raise InvalidParameterError(
                "no job of the file fits the cluster", place="workload.cluster", legal="one that does"
            )
        jobs = []
        for each, birth in zip(found, self._births(table, found, cluster), strict=True):
            d, name, record = each.duration, table.index[each.row], table.iloc[each.row]
            delay = max(2 * d, math.ceil(DELAY_S / self.round_seconds))
            value = DeadlineValue(each.factor * d * 1000 * _share(each.options, whole), birth + d + delay)
            truth = StatementOfWork.of_shapes(birth, value, birth, [each.shape])
            tags = {"class": record["partition"], **({"id": record["id"]} if record["id"] else {})}
            jobs.append(Job(f"run-{name}", record["user"] or f"run-{name}", truth, birth, d, d, tags))
        misfits = len(table) - len(found)
        cut = int((np.ceil(table["run_s"] / self.round_seconds) > self.max_duration).sum())
        more = {
            "jobs left out: no nodes of a kind they accept hold them": misfits,
            f"runs cut to {self.max_duration:,} rounds (max_duration)": cut,
        }
        return self._workload(jobs, cluster, counted | {what: n for what, n in more.items() if n})

    def _valued_on(self, cluster: Cluster) -> NDArray[np.float64]:
        """Return the amounts whose thousandth is worth a credit a round, in parts, shape (n_resources,)."""
        sizes: NDArray[np.float64] = np.maximum(cluster.layout.pool_size.sum(axis=0), 1.0)
        if self.valued_on is None:
            return sizes
        parts = {resource.name: resource.parts for resource in cluster.resources}
        for name, amount in self.valued_on.items():
            if name not in parts:
                legal = f"amounts of {', '.join(parts)}"
                raise InvalidParameterError(place=f"workload.valued_on.{name}", value=amount, legal=legal)
        given = np.array([self.valued_on.get(name, 0.0) * each for name, each in parts.items()])
        sizes[given > 0] = given[given > 0]
        return sizes

    def _fitting(self, table: pd.DataFrame, draws: NDArray[np.float64], cluster: Cluster) -> list[_Fitting]:
        """Return the jobs that fit somewhere."""
        found = []
        rounds = np.minimum(self.max_duration, np.ceil(table["run_s"] / self.round_seconds)).astype(int).tolist()
        for row, (record, d) in enumerate(zip(table.to_dict("records"), rounds, strict=True)):
            shape = _shape_of(record, d, cluster)
            if shape is not None:
                with suppress(InvalidReportError):
                    found.append(_Fitting(row, float(draws[row]), d, shape, options_of([shape], cluster)))
        return found

    def _births(self, table: pd.DataFrame, found: list[_Fitting], cluster: Cluster) -> list[int]:
        """Return the rounds in which the jobs are born; with ``load`` as close as it asks."""
        submitted = table["submit_s"].to_numpy()
        since = submitted[[each.row for each in found]] - submitted[0]
        if self.load is not None:
            asked = np.sum([each.options.total[0] * each.duration for each in found], axis=0)
            sizes, devices = cluster.layout.pool_size.sum(axis=0), cluster.layout.device_parts > 0
            counted = devices if (asked[devices] > 0).any() else sizes > 0
            rounds = float((asked[counted] / sizes[counted]).max()) / self.load
            since = since * (rounds * self.round_seconds / max(float(since.max()), 1.0))
        births: list[int] = (since // self.round_seconds).astype(int).tolist()
        return [birth + 1 for birth in births]

    def _workload(self, jobs: list[Job], cluster: Cluster, counted: dict[str, int]) -> Workload:
        return Workload(
            self.kind,
            tuple(jobs),
            capacity=cluster.nodes,
            birth_rounds=max(job.truth.birth for job in jobs),
            horizon=max(job.truth.value.last for job in jobs),
            max_concurrency=max(job.truth.concurrency for job in jobs),
            max_duration=max(job.duration for job in jobs),
            max_value=max(job.truth.value.highest for job in jobs),
            max_delay=1 + max(job.truth.value.last - job.truth.birth for job in jobs),
            round_seconds=self.round_seconds,
            notes={
                "source": f"requests in a log, {self.path}",
                **counted,
                **({"jobs kept, a draw": len(jobs)} if self.kept < 1 else {}),
                **({"arrivals": f"closer or farther apart, for a load of {self.load:g}"} if self.load else {}),
                "durations": "as they were, the same on every kind (made up): durations are revealed",
                "values (made up)": f"log-normal (deviation 0.8) about a credit a round for {self._thousandth()}",
                "deadlines (made up)": "a delay of twice the run, two hours at least",
            },
            cluster=cluster,
        )

    def _thousandth(self) -> str:
        """Say what is worth a credit a round."""
        amounts = [f"{name} {amount:g}" for name, amount in (self.valued_on or {}).items()]
        return f"a thousandth of {', '.join(amounts) or 'the cluster'}"


def _shape_of(row: dict[Any, Any], duration: int, cluster: Cluster) -> Shape | None:
    """Return the shape of a job; None: what it accepts is not there, or it needs nothing that the cluster has."""
    parts = {resource.name: resource for resource in cluster.resources}
    each: dict[str, float] = {}
    for name in RESOURCES:
        if name in parts and row[name] > 0:
            whole = math.ceil(round(row[name] * parts[name].parts, 6))
            each[name] = whole / parts[name].parts
    text = row["gpu_type"] or row["constraints"]
    named = {text.lower()} if row["gpu_type"] else set(re.split(r"[|&,\[\]\s]+", text.lower()))
    kinds = [kind for kind in cluster.kinds if kind.lower() in named]
    if not kinds and row["gpu_type"]:
        return None
    own = [kind for kind in cluster.kinds if kind.lower() == row["partition"].lower()]
    kinds = kinds or own or list(cluster.kinds)
    return Shape(each, dict.fromkeys(kinds, (duration,)), tasks=int(row["tasks"]), per_node=1) if each else None


def _share(options: Options, whole: NDArray[np.float64]) -> float:
    """Return the largest share of these amounts, in parts, that a job takes."""
    return float((options.total[0] / whole).max())
