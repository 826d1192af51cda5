"""Jobs with shapes written out one by one in a scenario file: the workload of kind ``cluster-jobs``."""

from __future__ import annotations

from os import PathLike
from typing import Annotated, Any, Literal, Self

import numpy as np
from pydantic import Field, model_validator

from marketsched.agents.job import Job
from marketsched.config.cluster_section import ClusterSection, shapes_from_data
from marketsched.config.job_list import late_values
from marketsched.config.sections import WorkloadSection
from marketsched.config.sow_codec import value_from_json
from marketsched.config.strict_yaml import Name, Strict
from marketsched.mechanisms.errors import InvalidReportError, placed
from marketsched.mechanisms.legal import Count, Positive, Whole
from marketsched.mechanisms.resources.cluster import Cluster
from marketsched.mechanisms.sow import StatementOfWork
from marketsched.worlds.workload import Workload


class ShapedEntry(Strict):
    """One job: its value, its arrival, and the shapes in which it can run.

    ``revealed`` says whether the platform sees at arrival which case of the law it is; which one it is, is drawn.
    """

    name: Name
    owner: Annotated[str, Field(max_length=200)] = "owner"
    birth: Count
    arrival: Annotated[int, Whole(1)]
    value: Any
    shapes: Any
    revealed: bool = True

    def statement(self, cluster: Cluster, max_duration: int, max_value: float) -> StatementOfWork:
        """Return the true statement of work.

        Raises
        ------
        InvalidReportError
            If a field is malformed, outside the limits of the market, or a shape fits nowhere.
        """
        value = value_from_json(self.value)
        if value.highest > max_value:
            raise InvalidReportError(place="value", value=value.highest, legal=f"values in [0, {max_value!r}]")
        shapes, law = shapes_from_data(self.shapes, cluster, max_duration)
        return StatementOfWork.of_shapes(self.birth, value, self.arrival, shapes, law, revealed=self.revealed)


class ClusterJobs(WorkloadSection):
    """A market of a few jobs on a cluster, written out."""

    kind: Literal["cluster-jobs"]
    cluster: ClusterSection
    horizon: Count
    max_duration: Count
    max_value: Positive
    max_delay: Count
    round_seconds: Positive | None = None
    jobs: Annotated[tuple[ShapedEntry, ...], Field(min_length=1)]

    @model_validator(mode="after")
    def _within_limits(self) -> Self:
        cluster, seen = self.cluster.cluster(), set[str]()
        for i, entry in enumerate(self.jobs):
            if entry.name in seen:
                raise InvalidReportError(place=f"jobs[{i}].name", value=entry.name, legal="a name of its own")
            seen.add(entry.name)
            with placed(f"jobs[{i}]"):
                entry.statement(cluster, self.max_duration, self.max_value)
        return self

    def build(self, rng: np.random.Generator, data: str | PathLike[str] | None) -> Workload:
        """Return the workload; which case of its law a job turns out to be is drawn from ``rng``."""
        cluster, jobs = self.cluster.cluster(), []
        for entry in sorted(self.jobs, key=lambda entry: entry.birth):
            sow = entry.statement(cluster, self.max_duration, self.max_value)
            u, law = float(rng.random()), sow.law
            case = min(int(np.searchsorted(np.cumsum(law.probabilities), u, side="right")), law.durations.size - 1)
            duration = int(law.durations[case])
            signal = duration if entry.revealed else None
            jobs.append(Job(entry.name, entry.owner, sow, entry.arrival, duration, signal))
        return Workload(
            self.kind,
            tuple(jobs),
            capacity=cluster.nodes,
            birth_rounds=self.horizon,
            horizon=self.horizon,
            max_concurrency=max(shape.tasks for job in jobs for shape in job.truth.shapes),
            max_duration=self.max_duration,
            max_value=self.max_value,
            max_delay=self.max_delay,
            round_seconds=self.round_seconds,
            notes=late_values(jobs, self.max_delay),
            cluster=cluster,
        )
