"""Jobs written out one by one in a scenario file: the workload of kind ``jobs``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Annotated, Any, ClassVar, Literal, Self

import numpy as np
from pydantic import Field, SerializerFunctionWrapHandler, StrictBool, model_serializer, model_validator

from marketsched.agents.job import Job
from marketsched.config.sections import WorkloadSection
from marketsched.config.sow_codec import LAST_ROUND, NO_LIMITS, ReportLimits, signals_left_out, sow_from_json
from marketsched.config.strict_yaml import Name, Strict
from marketsched.mechanisms.errors import InvalidReportError, placed
from marketsched.mechanisms.law import Requirement, Signal
from marketsched.mechanisms.legal import Count, Maybe, Positive, Whole
from marketsched.mechanisms.sow import StatementOfWork
from marketsched.mechanisms.statement_law import StatementLaw
from marketsched.worlds.workload import Workload


def drawn_point(points: Sequence[Requirement], u: float, *, certain: bool = False) -> Requirement | None:
    """Return the point of a law that a number drawn from [0, 1) picks; None: the missing mass.

    ``certain``: one of the points is known to happen, so that their probabilities are scaled to 1.
    """
    weights = np.cumsum([point.probability for point in points])
    total = weights[-1] if certain else max(1.0, weights[-1])
    place = int(np.searchsorted(weights, u * total, side="right"))
    return points[place] if place < len(points) else None


def late_values(jobs: Sequence[Job], max_delay: int) -> dict[str, str]:
    """Return a warning of the values that `max_delay` cuts off, as the notes of a workload have it; {} without any."""
    ends = [(job.truth.birth + max_delay - 1, job.truth.value.last, job.name) for job in jobs]
    if not (late := [(last, end, name) for end, last, name in ends if end < last < LAST_ROUND]):
        return {}
    last, end, name = max(late)
    said = f"{len(late):,} of {len(jobs):,} jobs have a value beyond max_delay = {max_delay}, {name} up to {last}"
    return {"warnings": f"{said}: it counts up to {end} alone"}


class JobEntry(Strict):
    """One job: the owner's true statement of work, and what really happens.

    ``arrival: null`` says that the job never arrives. Where ``arrival`` and ``duration`` are left
    out, what happens is drawn from the job's own law; where ``duration`` alone is left out, from
    its law given the arrival. ``signal`` is needed only if the law does not tell it.
    """

    name: Name
    owner: Annotated[str, Field(max_length=200)] = "owner"
    birth: Count
    concurrency: Any
    value: Any
    requirements: Any
    arrival: Annotated[int | None, Maybe(Whole(1))] = None
    duration: Annotated[int | None, Maybe(Whole(1))] = None
    signal: int | float | str | None = None
    restarts: StrictBool = True
    patience: Annotated[int | None, Maybe(Whole(0))] = None
    checkpoint: Any = None

    @model_serializer(mode="wrap")
    def _as_written(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        # An arrival that is left out and one that is null mean different things.
        return {key: value for key, value in handler(self).items() if key in self.model_fields_set}

    def _happens(self, field: str) -> bool:
        return field in self.model_fields_set

    def check(self, limits: ReportLimits) -> None:
        """Raise ``InvalidReportError`` if the entry is malformed or beyond the market's limits."""
        truth = self.statement(limits)
        if self.arrival is not None and self.arrival < truth.birth:
            raise InvalidReportError(place="arrival", value=self.arrival, legal=f"not before the birth {truth.birth}")
        if self._happens("duration") and not self._happens("arrival"):
            raise InvalidReportError("duration without arrival: expected both, or arrival alone, or neither")
        drawn = self.arrival is not None and not self._happens("duration")
        if drawn and not (truth.law.probabilities[truth.law.arrivals == self.arrival] > 0).any():
            raise InvalidReportError(
                f"is missing, and requirements give none for arrival {self.arrival}",
                place="duration",
                legal="one of them",
            )

    def statement(self, limits: ReportLimits = NO_LIMITS) -> StatementOfWork:
        """Return the true statement of work."""
        return sow_from_json(self.birth, self._fields(), limits)

    def _fields(self) -> dict[str, Any]:
        said = {"concurrency": self.concurrency, "value": self.value, "requirements": self.requirements}
        return {**said, "restarts": self.restarts, "patience": self.patience, "checkpoint": self.checkpoint}

    def job(self, rng: np.random.Generator) -> Job:
        """Return the job; missing values of the entry are drawn from ``rng``.

        One number is drawn whatever the entry says, so that one entry does not move the others.
        """
        truth, u = self.statement(), float(rng.random())
        if self._happens("arrival") and self.arrival is None:
            return Job(self.name, self.owner, truth, None, self.duration or 1)
        if self._happens("duration") and self.duration is not None:
            return Job(self.name, self.owner, truth, self.arrival, self.duration, self._signal(truth))
        points = [r for r in truth.requirements if self.arrival in (None, r.arrival)]
        drawn = drawn_point(points, u, certain=self.arrival is not None)
        if drawn is None:
            return Job(self.name, self.owner, truth, None, 1)
        return Job(self.name, self.owner, truth, drawn.arrival, drawn.duration, drawn.signal)

    def _signal(self, truth: StatementOfWork) -> Signal:
        if self._happens("signal"):
            return self.signal
        if signals_left_out(self._fields()):
            return self.duration
        signals = {r.signal for r in truth.requirements if (r.arrival, r.duration) == (self.arrival, self.duration)}
        return signals.pop() if len(signals) == 1 else None


class ListedMarket(WorkloadSection):
    """A market whose jobs are written out in the scenario file: what both kinds of list have."""

    capacity: Count
    horizon: Count
    max_concurrency: Count
    max_duration: Count
    max_value: Positive
    max_delay: Count
    round_seconds: Positive | None = None

    @property
    def limits(self) -> ReportLimits:
        """The largest report that this market takes."""
        return ReportLimits(min(self.max_concurrency, self.capacity), self.max_duration, self.max_value)

    def workload(
        self,
        jobs: Sequence[Job],
        laws: Sequence[StatementLaw] | None = None,
        notes: Mapping[str, str | int | float] | None = None,
    ) -> Workload:
        """Return the workload of these jobs, which are in order of submission."""
        return Workload(
            self.kind,
            tuple(jobs),
            capacity=self.capacity,
            birth_rounds=self.horizon,
            horizon=self.horizon,
            max_concurrency=self.max_concurrency,
            max_duration=self.max_duration,
            max_value=self.max_value,
            max_delay=self.max_delay,
            round_seconds=self.round_seconds,
            notes={**late_values(jobs, self.max_delay), **(notes or {})},
            laws=None if laws is None else tuple(laws),
        )


class JobList(ListedMarket):
    """A market of a few jobs, written out."""

    elsewhere: ClassVar[Mapping[str, str]] = {"cluster": "the workload of kind cluster-jobs"}
    kind: Literal["jobs"]
    jobs: Annotated[tuple[JobEntry, ...], Field(min_length=1)]

    @model_validator(mode="after")
    def _within_limits(self) -> Self:
        seen: set[str] = set()
        for i, entry in enumerate(self.jobs):
            if entry.name in seen:
                raise InvalidReportError(place=f"jobs[{i}].name", value=entry.name, legal="a name of its own")
            seen.add(entry.name)
            with placed(f"jobs[{i}]"):
                entry.check(self.limits)
        return self

    def build(self, rng: np.random.Generator, data: str | PathLike[str] | None) -> Workload:
        """Return the workload; missing values of entries are drawn from ``rng``, ``data`` is not used."""
        return self.workload(sorted((entry.job(rng) for entry in self.jobs), key=lambda job: job.truth.birth))
