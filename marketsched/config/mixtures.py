"""Jobs given as finite mixtures of statements of work: the workload of kind ``mixtures``.

What is known in advance of each job is a law over the statement it will report. A run draws each
job's statement from this law, and then what really happens from the statement's own law, jobs
independent of each other. Births belong to the job, not to the draw, and jobs of one round submit
in the order of the file, whatever they have drawn: the order of submissions is fixed in advance, as
Lemma E.3 needs it (gap G5).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from os import PathLike
from typing import Annotated, Any, Literal, Self

import numpy as np
from pydantic import (
    Field,
    SerializerFunctionWrapHandler,
    StrictBool,
    model_serializer,
    model_validator,
)

from marketsched.agents.job import Job
from marketsched.config.job_list import ListedMarket, drawn_point
from marketsched.config.sow_codec import NO_LIMITS, ReportLimits, sow_from_json
from marketsched.config.strict_yaml import Name, Strict
from marketsched.mechanisms.errors import InvalidParameterError, InvalidReportError, placed
from marketsched.mechanisms.law import Requirement
from marketsched.mechanisms.legal import Amount, Count, Share, Whole
from marketsched.mechanisms.sow import StatementOfWork
from marketsched.mechanisms.statement_law import MASS_TOLERANCE, StatementLaw
from marketsched.mechanisms.values import DeadlineValue, FallingValue, LinearValue, TableValue, ValueCurve
from marketsched.worlds.workload import Workload

MOST_COPIES = 100_000

_STATEMENT = ("concurrency", "value", "requirements")


class _StatementCase(Strict):
    """One case of a mixture: with ``probability`` the job reports this statement, or does not appear.

    A statement has ``concurrency``, ``value`` and ``requirements``, in the form of the replay
    contract; ``nothing: true`` instead says that the job does not appear.
    """

    probability: Share
    nothing: StrictBool = False
    concurrency: Any = None
    value: Any = None
    requirements: Any = None

    @model_validator(mode="after")
    def _statement_or_nothing(self) -> Self:
        for name in _STATEMENT:
            given = name in self.model_fields_set
            if self.nothing and given:
                raise InvalidReportError("beside nothing: true", place=name, legal="the probability alone")
            if not self.nothing and not given:
                raise InvalidReportError("is missing", place=name, legal=f"{', '.join(_STATEMENT)}, or nothing: true")
        return self

    @model_serializer(mode="wrap")
    def _as_written(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return {key: value for key, value in handler(self).items() if key in self.model_fields_set}

    def statement(self, birth: int, limits: ReportLimits = NO_LIMITS) -> StatementOfWork | None:
        """Return the statement of work; None: the job does not appear."""
        if self.nothing:
            return None
        return sow_from_json(birth, {name: getattr(self, name) for name in _STATEMENT}, limits)


class _MixtureEntry(Strict):
    """One job, or ``copies`` independent ones, one every ``every`` rounds (0.5: two in each round).

    Birth, arrivals and value curves are those of the first copy; copy i is everything moved by
    ``floor((i - 1) * every)`` rounds. Copies of ``nightly`` are called
    ``nightly-1``, ``nightly-2``, ...; a single job keeps its name. The owner, if not named, has the
    name of the entry. Draws are those of the entry's place in the file, or of the text ``stream``.
    """

    name: Name
    owner: Name | None = None
    birth: Count
    copies: Annotated[int, Whole(1, MOST_COPIES)] = 1
    every: Amount = 0.0
    stream: Name | None = None
    statements: Annotated[tuple[_StatementCase, ...], Field(min_length=1)]

    @model_validator(mode="after")
    def _adds_up_to_one(self) -> Self:
        if all(case.nothing for case in self.statements):
            raise InvalidParameterError("nothing but nothing", legal="at least one statement of work").at("statements")
        total = math.fsum(case.probability for case in self.statements)
        if abs(total - 1) > MASS_TOLERANCE:
            raise InvalidParameterError(
                f"probabilities add up to {total:.12g}",
                legal="1 (of a job that may not appear, one case is {probability: ..., nothing: true})",
            ).at("statements")
        return self

    @property
    def names(self) -> Iterator[str]:
        """Names of the jobs."""
        return (self.name if self.copies == 1 else f"{self.name}-{k}" for k in range(1, self.copies + 1))

    def seed(self, place: int) -> list[int]:
        """Return what makes the draws of this entry, at this place of the file; 256 is no byte of a text."""
        return [256, place] if self.stream is None else list(self.stream.encode())

    @property
    def last_birth(self) -> int:
        """Birth round of the last copy."""
        return self.birth + self.delay(self.copies)

    def delay(self, copy: int) -> int:
        """Return by how many rounds copy 1, 2, ... comes later than the first (1e-9: 100 * 0.29 is 29)."""
        return math.floor((copy - 1) * self.every + 1e-9)

    def check(self, limits: ReportLimits, horizon: int) -> None:
        """Raise an error of the family if the entry is malformed or beyond the market's limits."""
        if self.last_birth > horizon:
            legal = f"births up to the horizon {horizon}"
            if self.birth > horizon:
                raise InvalidParameterError(place="birth", value=self.birth, legal=legal)
            last = f"the last is born in round {self.last_birth}"
            raise InvalidParameterError(last, place="copies", value=self.copies, legal=legal)
        for i, case in enumerate(self.statements):
            with placed(f"statements[{i}]"):
                case.statement(self.birth, limits)

    def laws(self) -> list[StatementLaw]:
        """Return the law of each copy; its cases are in the order of the file."""
        first = [(case.statement(self.birth), case.probability) for case in self.statements]
        return [
            StatementLaw([(None if sow is None else moved(sow, self.delay(k)), p) for sow, p in first])
            for k in range(1, self.copies + 1)
        ]


class Mixtures(ListedMarket):
    """A market of jobs whose statements of work are drawn from known laws."""

    kind: Literal["mixtures"]
    jobs: Annotated[tuple[_MixtureEntry, ...], Field(min_length=1)]

    @model_validator(mode="after")
    def _within_limits(self) -> Self:
        seen: set[str] = set()
        for i, entry in enumerate(self.jobs):
            for name in entry.names:
                if name in seen:
                    copy = "" if name == entry.name else f"copy {name!r}"
                    place = f"jobs[{i}].name"
                    raise InvalidParameterError(copy, place=place, value=entry.name, legal="a name of its own")
                seen.add(name)
            with placed(f"jobs[{i}]"):
                entry.check(self.limits, self.horizon)
        return self

    def build(self, rng: np.random.Generator, data: str | PathLike[str] | None) -> Workload:
        """Return the workload of one draw; ``data`` is not used.

        Jobs that draw ``nothing`` are not among its jobs; its laws are those of all jobs, in order of
        submission. Each job draws from its own stream, identified by its entry's place in the file, or ``stream``, and
        the number of the copy: no name moves its draws, and no other entry but by what it moves.
        """
        root = rng.integers(2**63, size=2).tolist()
        everything = [
            (entry, [*root, *entry.seed(place), k], name, law)
            for place, entry in enumerate(self.jobs)
            for k, (name, law) in enumerate(zip(entry.names, entry.laws(), strict=True), start=1)
        ]
        everything.sort(key=lambda job: job[3].birth)  # stable: of one round, in the order of the file
        jobs = [_draw(entry, name, law, np.random.default_rng(seed)) for entry, seed, name, law in everything]
        appeared = [job for job in jobs if job is not None]
        return self.workload(
            appeared,
            [law for *_, law in everything],
            {
                "source": "no data: mixtures of statements written out in the scenario",
                "jobs that could appear": len(jobs),
                "statements": len(appeared),
            },
        )


def moved(sow: StatementOfWork, rounds: int) -> StatementOfWork:
    """Return ``sow`` with birth, arrivals and value curve ``rounds`` rounds later.

    Examples
    --------
    >>> moved(StatementOfWork(1, 2, DeadlineValue(5.0, 4), [(2, 1, 1.0)]), 3).requirements
    (Requirement(arrival=5, duration=1, probability=1.0, signal=1),)
    """
    points = [Requirement(r.arrival + rounds, r.duration, r.probability, r.signal) for r in sow.requirements]
    value = _moved_value(sow.value, rounds)
    return StatementOfWork(sow.birth + rounds, sow.concurrency, value, points, **sow.terms)


def _moved_value(value: ValueCurve, rounds: int) -> ValueCurve:
    if isinstance(value, DeadlineValue):
        return replace(value, deadline=value.deadline + rounds)
    if isinstance(value, LinearValue | FallingValue):
        return replace(value, start=value.start + rounds, deadline=value.deadline + rounds)
    if isinstance(value, TableValue):
        return TableValue({time + rounds: worth for time, worth in value.values.items()})
    raise InvalidReportError(f"value = {value!r}: expected a curve that a scenario file can hold")


def _draw(entry: _MixtureEntry, name: str, law: StatementLaw, rng: np.random.Generator) -> Job | None:
    """Draw what a job reports and what really happens; None: it does not appear."""
    truth, u = law.sample(rng), float(rng.random())
    if truth is None:
        return None
    case = next(i for i, (sow, _) in enumerate(law.cases) if sow is truth)
    tags = {"group": entry.name, "statement": case}
    owner = entry.name if entry.owner is None else entry.owner
    happens = drawn_point(truth.requirements, u)
    if happens is None:
        return Job(name, owner, truth, None, 1, tags=tags)
    return Job(name, owner, truth, happens.arrival, happens.duration, happens.signal, tags)
