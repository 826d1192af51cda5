"""Birth sequences: the small markets that a search for hard instances goes through.

A sequence is a tuple of job sketches in order of birth; those of one round submit in the order they
stand in. A sketch keeps its times relative to its birth, so that moving the birth moves the whole
job. Every sketch stays within the model: values in {0} u [1, V_max] that do not increase and are 0
from birth + S on, at most c_max nodes and D_max rounds, and some completion by T + 1 that is worth
something. Durations are revealed at arrival.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise
from typing import Annotated, Any

import numpy as np

from marketsched.agents.job import Job
from marketsched.config.job_list import drawn_point
from marketsched.config.sow_codec import sow_to_json
from marketsched.mechanisms.errors import InvalidParameterError
from marketsched.mechanisms.legal import Finite, Whole
from marketsched.mechanisms.limits import LAST_ROUND, MarketLimits, NodeCount, RoundCount
from marketsched.mechanisms.sow import StatementOfWork
from marketsched.mechanisms.values import DeadlineValue, TableValue

DIGITS = 3  # significant digits of a value, so that a person can read what was found


@dataclass(frozen=True)
class InstanceLimits(MarketLimits):
    """Limits of every instance of a search; the defaults are small enough for exact optima.

    Parameters and errors as of `marketsched.mechanisms.limits.MarketLimits`, and besides ``max_delay`` >= 2, or
    nothing is ever worth anything, and ``max_value`` >= 1.
    """

    capacity: NodeCount = 12
    horizon: RoundCount = 24
    max_concurrency: NodeCount = 2
    max_duration: RoundCount = 4
    max_value: Annotated[float, Finite("[1, inf)")] = 16.0
    max_delay: Annotated[int, Whole(2, LAST_ROUND)] = 12

    def value(self, x: float) -> float:
        """Return ``x`` rounded to a few digits, inside [1, V_max]."""
        return min(max(float(f"{x:.{DIGITS}g}"), 1.0), self.max_value)


@dataclass(frozen=True, slots=True)
class JobSketch:
    """One job; ``points`` and ``steps`` count rounds from the birth.

    ``points`` holds (rounds until arrival, duration, probability), one point of probability 1 for a
    certain job. ``steps`` holds (last completion, value): the job is worth the value of the first
    step that its completion does not exceed; later and cheaper steps follow.
    """

    birth: int
    width: int
    points: tuple[tuple[int, int, float], ...]
    steps: tuple[tuple[int, float], ...]

    @property
    def shape(self) -> tuple[Any, ...]:
        """All but the birth."""
        return (self.width, self.points, self.steps)

    @property
    def certain(self) -> bool:
        """True if arrival and duration are known in advance."""
        return len(self.points) == 1

    @property
    def soonest(self) -> int:
        """The earliest completion there can be, from the birth."""
        return min(lead + d for lead, d, _ in self.points)


BirthSequence = tuple[JobSketch, ...]  # in order of birth


def is_legal(sketch: JobSketch, limits: InstanceLimits) -> bool:
    """Return True if a sketch is within the model of the module."""
    untils, values = [until for until, _ in sketch.steps], [value for _, value in sketch.steps]
    return (
        1 <= sketch.birth <= limits.horizon
        and 1 <= sketch.width <= limits.max_concurrency
        and all(lead >= 0 and 1 <= d <= limits.max_duration and 0 < p <= 1 for lead, d, p in sketch.points)
        and len({point[:2] for point in sketch.points}) == len(sketch.points)
        and sum(p for _, _, p in sketch.points) <= 1 + 1e-12
        and all(1 <= value <= limits.max_value for value in values)
        and all(later > sooner for sooner, later in pairwise(untils))
        and all(later < sooner for sooner, later in pairwise(values))
        and bool(untils)
        and sketch.soonest <= untils[-1] <= limits.max_delay - 1
        and sketch.birth + sketch.soonest <= limits.horizon + 1
    )


@lru_cache(maxsize=16384)
def statement(sketch: JobSketch) -> StatementOfWork:
    """Return the statement of work that a sketch stands for."""
    birth, (until, value), *later = sketch.birth, *sketch.steps
    curve: DeadlineValue | TableValue = DeadlineValue(value, birth + until)
    if later:
        table = {birth + f: value for f in range(sketch.soonest, until + 1)}
        for (begin, _), (end, worth) in pairwise(sketch.steps):
            table |= {birth + f: worth for f in range(max(begin + 1, sketch.soonest), end + 1)}
        curve = TableValue(table)
    rows = [(birth + lead, duration, p) for lead, duration, p in sketch.points]
    return StatementOfWork(birth, sketch.width, curve, rows)


def realised_jobs(sequence: BirthSequence, draws: Sequence[float]) -> list[Job]:
    """Return the jobs of a sequence; ``draws`` in [0, 1), one per job, decide what happens to the uncertain ones."""
    jobs = []
    for i, (sketch, u) in enumerate(zip(sequence, draws, strict=True)):
        truth = statement(sketch)
        if sketch.certain and sketch.points[0][2] == 1.0:
            lead, duration, _ = sketch.points[0]
            jobs.append(Job(f"J{i + 1}", "owner", truth, sketch.birth + lead, duration, duration))
            continue
        point = drawn_point(truth.requirements, u)
        happens = (None, 1, None) if point is None else (point.arrival, point.duration, point.signal)
        jobs.append(Job(f"J{i + 1}", "owner", truth, *happens))
    return jobs


def entries(sequence: BirthSequence) -> list[dict[str, Any]]:
    """Return a sequence as the job entries of a scenario file; the uncertain ones are drawn by every run."""
    rows = []
    for i, sketch in enumerate(sequence):
        row = {"name": f"J{i + 1}", "birth": sketch.birth, **sow_to_json(statement(sketch))}
        if sketch.certain and sketch.points[0][2] == 1.0:
            lead, duration, _ = sketch.points[0]
            row |= {"arrival": sketch.birth + lead, "duration": duration}
        rows.append(row)
    return rows


def sketched(job: Job, limits: InstanceLimits, *, keep_law: bool) -> JobSketch | None:
    """Return the sketch of a job: of its law, or (``keep_law`` False) of what really happens; None: never arrives.

    Raises
    ------
    InvalidParameterError
        If the job is outside the model: it cannot be a start of the search.
    """
    truth, birth = job.truth, job.truth.birth
    if keep_law:
        if not truth.revealed:
            raise InvalidParameterError(f"job {job.name!r} hides its duration: expected durations revealed at arrival")
        points = tuple((r.arrival - birth, r.duration, r.probability) for r in truth.requirements if r.probability > 0)
    elif job.arrival is None:
        return None
    else:
        points = ((job.arrival - birth, job.duration, 1.0),)
    soonest = min(lead + d for lead, d, _ in points)
    n = min(truth.value.last, birth + limits.max_delay - 1) - birth - soonest + 1
    worth = truth.value.table(birth + soonest, max(n, 0)).tolist()
    steps: list[tuple[int, float]] = []
    for f, value in enumerate(worth, start=soonest):
        if steps and value == steps[-1][1]:
            steps.pop()
        steps.append((f, value))
    sketch = JobSketch(birth, truth.concurrency, points, tuple(steps))
    if not is_legal(sketch, limits):
        raise InvalidParameterError(
            f"job {job.name!r}: expected at most {limits.max_concurrency} nodes and {limits.max_duration} rounds, and "
            f"values in [1, {limits.max_value:g}] that do not increase, some of them before birth + {limits.max_delay}"
        )
    return sketch


def random_sketch(limits: InstanceLimits, rng: np.random.Generator) -> JobSketch:
    """Draw a certain job: half of them can wait, and low, high and middle values are alike in number."""
    while True:
        duration, lead = whole_draw(rng, 1, limits.max_duration), whole_draw(rng, 0, 2) * int(rng.random() < 0.3)
        birth, soonest = whole_draw(rng, 1, limits.horizon), lead + duration
        until = soonest if rng.random() < 0.5 else whole_draw(rng, soonest, max(soonest, limits.max_delay - 1))
        kind = rng.integers(3)
        value = (1.0, limits.max_value, limits.value(limits.max_value ** rng.random()))[kind]
        sketch = JobSketch(
            birth, whole_draw(rng, 1, limits.max_concurrency), ((lead, duration, 1.0),), ((until, value),)
        )
        if is_legal(sketch, limits):
            return sketch


def random_sequence(limits: InstanceLimits, n_jobs: int, rng: np.random.Generator) -> BirthSequence:
    """Draw ``n_jobs`` jobs of two to five shapes; jobs of one shape are born together, or in a row."""
    kinds = [random_sketch(limits, rng) for _ in range(whole_draw(rng, 2, 5))]
    apart = [whole_draw(rng, 1, 3) if rng.random() < 0.3 else 0 for _ in kinds]
    sketches = []
    for i in range(n_jobs):
        k = i % len(kinds)
        sketch = replace(kinds[k], birth=kinds[k].birth + apart[k] * (i // len(kinds)))
        sketches.append(sketch if is_legal(sketch, limits) else kinds[k])
    return in_order(sketches)


def in_order(sketches: Iterable[JobSketch]) -> BirthSequence:
    """Return sketches as a sequence; those born together stay in the order they stand in."""
    return tuple(sorted(sketches, key=lambda sketch: sketch.birth))


def whole_draw(rng: np.random.Generator, lowest: int, highest: int) -> int:
    """Draw a whole number in [lowest, highest]."""
    return int(rng.integers(lowest, highest + 1))
