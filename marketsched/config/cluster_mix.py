"""Jobs drawn from a few sorts, each with its shapes, on a cluster: the workload of kind ``cluster-mix``."""

from __future__ import annotations

import math
from os import PathLike
from typing import Annotated, Any, Literal, Self

import numpy as np
from pydantic import Field, model_validator

from marketsched.agents.job import Job
from marketsched.config.cluster_section import ClusterSection, shapes_from_data
from marketsched.config.sections import WorkloadSection
from marketsched.config.strict_yaml import Name, Strict
from marketsched.mechanisms.errors import placed
from marketsched.mechanisms.legal import Amount, Count, Natural, Positive
from marketsched.mechanisms.resources.shapes import Shape
from marketsched.mechanisms.sow import StatementOfWork
from marketsched.mechanisms.statement_law import StatementLaw
from marketsched.mechanisms.values import DeadlineValue, LinearValue
from marketsched.worlds.workload import KNOWN_DRAWS, Workload, laws_of_draws

LONGEST = 100_000  # rounds of a run
STRETCH = 3.0  # no run is longer than so many times what its sort says, no value larger than so many deviations
STREAMS = 6  # of draws: how many jobs, sorts, durations, values, owners, and other draws that are known in advance


class JobSort(Strict):
    """Jobs of one sort: their shapes and values.

    ``shapes`` as in ``cluster_section``, with one duration for each kind; a job's durations are those times a factor of
    its own (log-normal, mean 1). ``value`` is the mean in credits; ``patience`` the rounds that a job can wait, and
    ``fades`` whether its value falls to 0 over them or stays until then.
    """

    name: Name
    share: Positive = 1.0
    value: Positive
    value_spread: Amount = 0.8
    duration_spread: Amount = 0.5
    patience: Natural = 24
    fades: bool = False
    shapes: Any


class ClusterMix(WorkloadSection):
    """Jobs that arrive at random with a given mean per round, each of a sort drawn by the sorts' shares.

    Laws known in advance are other draws by the same rules.
    """

    kind: Literal["cluster-mix"]
    cluster: ClusterSection
    sorts: Annotated[tuple[JobSort, ...], Field(min_length=1)]
    per_round: Positive
    rounds: Count = 288
    owners: Count = 20
    round_seconds: Positive | None = None

    @model_validator(mode="after")
    def _shapes_fit(self) -> Self:
        cluster = self.cluster.cluster()
        for i, sort in enumerate(self.sorts):
            with placed(f"sorts[{i}]"):
                shapes_from_data(sort.shapes, cluster, LONGEST)
        return self

    def build(self, rng: np.random.Generator, data: str | PathLike[str] | None) -> Workload:
        """Return the workload; one stream each is spawned for arrivals, sorts, durations, values and owners."""
        cluster = self.cluster.cluster()
        shapes = [shapes_from_data(sort.shapes, cluster, LONGEST)[0] for sort in self.sorts]
        longest = [max(d for shape in some for each in shape.on.values() for d in each) for some in shapes]
        return Workload(
            self.kind,
            tuple(self._jobs(shapes, rng)),
            capacity=cluster.nodes,
            birth_rounds=self.rounds,
            horizon=self.rounds + self._max_delay(longest),
            max_concurrency=max(shape.tasks for some in shapes for shape in some),
            max_duration=math.ceil(STRETCH * max(longest)),
            max_value=max(_largest(sort) for sort in self.sorts),
            max_delay=self._max_delay(longest),
            round_seconds=self.round_seconds,
            notes={"sorts": ", ".join(sort.name for sort in self.sorts), "jobs a round": self.per_round},
            cluster=cluster,
        )

    def statement_laws(
        self, workload: Workload, rng: np.random.Generator, data: str | PathLike[str] | None
    ) -> list[StatementLaw]:
        """Return the laws known in advance: other draws; ``rng`` as `build` gets it."""
        cluster = self.cluster.cluster()
        shapes = [shapes_from_data(sort.shapes, cluster, LONGEST)[0] for sort in self.sorts]
        others = rng.spawn(STREAMS)[STREAMS - 1].spawn(KNOWN_DRAWS)
        return laws_of_draws(self._jobs(shapes, other) for other in others)

    def _max_delay(self, longest: list[int]) -> int:
        waits = (sort.patience + math.ceil(STRETCH * d) for sort, d in zip(self.sorts, longest, strict=True))
        return max(waits) + 2

    def _jobs(self, shapes: list[tuple[Shape, ...]], rng: np.random.Generator) -> list[Job]:
        arrivals, sorts, durations, values, owners = rng.spawn(STREAMS)[: STREAMS - 1]
        births = np.repeat(np.arange(1, self.rounds + 1), arrivals.poisson(self.per_round, self.rounds))
        shares = np.array([sort.share for sort in self.sorts])
        jobs = []
        for i, birth in enumerate(births.tolist()):
            j = int(sorts.choice(shares.size, p=shares / shares.sum()))
            sort = self.sorts[j]
            factor = min(STRETCH, _log_normal(durations, sort.duration_spread))
            own = tuple(_stretched(shape, factor) for shape in shapes[j])
            top = min(_largest(sort), factor * sort.value * _log_normal(values, sort.value_spread))
            earliest = birth + min(d for shape in own for each in shape.on.values() for d in each)
            last = earliest + sort.patience
            fading = sort.fades and sort.patience > 0
            curve = LinearValue(top, earliest, top / sort.patience, last) if fading else DeadlineValue(top, last)
            sow = StatementOfWork.of_shapes(birth, curve, birth, own)
            duration, owner = sow.requirements[0].duration, f"owner-{int(owners.integers(self.owners))}"
            jobs.append(Job(f"{sort.name}-{i}", owner, sow, birth, duration, duration, {"class": sort.name}))
        return jobs


def _log_normal(rng: np.random.Generator, spread: float) -> float:
    """Draw a factor of mean 1."""
    return math.exp(spread * float(rng.standard_normal()) - spread * spread / 2)


def _largest(sort: JobSort) -> float:
    return STRETCH * sort.value * math.exp(STRETCH * sort.value_spread)


def _stretched(shape: Shape, factor: float) -> Shape:
    on = {kind: tuple(max(1, round(factor * d)) for d in durations) for kind, durations in shape.on.items()}
    return Shape(shape.each, on, shape.tasks, shape.per_node, shape.worth)
