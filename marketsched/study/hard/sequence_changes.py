"""How a search changes birth sequences: every change leads to another sequence within the model.

Single jobs are added, taken out, multiplied, moved and edited, or all jobs of one shape together: the
instances that are hard have few kinds of jobs and many of each.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from marketsched.study.hard.birth_sequences import (
    BirthSequence,
    InstanceLimits,
    JobSketch,
    in_order,
    is_legal,
    random_sketch,
    whole_draw,
)

MOST_RANDOM = 6  # jobs with a law of several points: exact oracles enumerate their joint outcomes
TRIES = 20  # changes tried before a sequence is given back as it is
MOST_COPIES = 12  # of a job in one change

Edit = Callable[[JobSketch, InstanceLimits, np.random.Generator], JobSketch]


class Changes:
    """The moves of the search: each gives another sequence within the limits.

    Parameters
    ----------
    limits : MarketLimits
        Limits of every sequence.
    max_jobs : int
        Most jobs of a sequence.
    random_jobs : bool
        True: jobs may get laws of two points, at most ``MOST_RANDOM`` jobs of a sequence.
    """

    def __init__(self, limits: InstanceLimits, max_jobs: int, *, random_jobs: bool) -> None:
        self.limits, self.max_jobs = limits, max_jobs
        edits = [_other_width, _other_duration, _other_value, _other_value, _other_deadline, _other_steps, _other_lead]
        self._edits = [*edits, _other_law, _other_law] if random_jobs else edits
        whole = [self._add, self._add, self._remove, self._remove, self._replicate, self._move, self._swap, self._adopt]
        self._moves: list[Callable[[BirthSequence, np.random.Generator], BirthSequence | None]] = [
            *whole,
            *[self._edit] * 8,
        ]

    def __call__(self, sequence: BirthSequence, rng: np.random.Generator) -> BirthSequence:
        """Return ``sequence`` after one change; unchanged if none of a few tried was possible."""
        for _ in range(TRIES):
            found = self._moves[rng.integers(len(self._moves))](sequence, rng)
            if found is None or found == sequence or not 0 < len(found) <= self.max_jobs:
                continue
            if sum(not sketch.certain for sketch in found) <= MOST_RANDOM:
                return found
        return sequence

    def _add(self, sequence: BirthSequence, rng: np.random.Generator) -> BirthSequence:
        sketches = list(sequence)
        sketches.insert(whole_draw(rng, 0, len(sketches)), random_sketch(self.limits, rng))
        return in_order(sketches)

    def _remove(self, sequence: BirthSequence, rng: np.random.Generator) -> BirthSequence:
        gone = self._some(sequence, rng)
        return tuple(sketch for i, sketch in enumerate(sequence) if i not in gone)

    def _replicate(self, sequence: BirthSequence, rng: np.random.Generator) -> BirthSequence:
        i, room = rng.integers(len(sequence)), self.max_jobs - len(sequence)
        copies = whole_draw(rng, 1, max(1, min(room, MOST_COPIES)))
        return sequence[:i] + (sequence[i],) * copies + sequence[i:]

    def _move(self, sequence: BirthSequence, rng: np.random.Generator) -> BirthSequence | None:
        """Change the birth of a job, or of all its twins."""
        by = int(rng.choice([-3, -2, -1, 1, 2, 3])) if rng.random() < 0.7 else whole_draw(rng, -9, 9)
        return self._changed(sequence, rng, lambda sketch: replace(sketch, birth=sketch.birth + by))

    def _swap(self, sequence: BirthSequence, rng: np.random.Generator) -> BirthSequence:
        """Exchange two jobs: their order if they are born together, else their births, too."""
        i, j = rng.integers(len(sequence), size=2)
        sketches = list(sequence)
        sketches[i], sketches[j] = (
            replace(sequence[j], birth=sequence[i].birth),
            replace(sequence[i], birth=sequence[j].birth),
        )
        legal = all(is_legal(sketch, self.limits) for sketch in (sketches[i], sketches[j]))
        return tuple(sketches) if legal else sequence

    def _adopt(self, sequence: BirthSequence, rng: np.random.Generator) -> BirthSequence | None:
        """Make a job like another one."""
        model = sequence[rng.integers(len(sequence))]
        return self._changed(sequence, rng, lambda sketch: replace(model, birth=sketch.birth))

    def _edit(self, sequence: BirthSequence, rng: np.random.Generator) -> BirthSequence | None:
        edit = self._edits[rng.integers(len(self._edits))]
        seed = int(rng.integers(2**32))  # all twins change alike
        return self._changed(sequence, rng, lambda sketch: edit(sketch, self.limits, np.random.default_rng(seed)))

    def _some(self, sequence: BirthSequence, rng: np.random.Generator) -> set[int]:
        """Choose a job; every other time with all jobs of its shape, or those of them born with it."""
        i = int(rng.integers(len(sequence)))
        chosen, kind = sequence[i], rng.random()
        if kind < 0.5:
            return {i}
        if kind < 0.75:
            return {j for j, sketch in enumerate(sequence) if sketch == chosen}
        return {j for j, sketch in enumerate(sequence) if sketch.shape == chosen.shape}

    def _changed(
        self, sequence: BirthSequence, rng: np.random.Generator, change: Callable[[JobSketch], JobSketch]
    ) -> BirthSequence | None:
        """Apply ``change`` to some jobs; None if it leads out of the model."""
        some = self._some(sequence, rng)
        sketches = [change(sketch) if i in some else sketch for i, sketch in enumerate(sequence)]
        return in_order(sketches) if all(is_legal(sketches[i], self.limits) for i in some) else None


def _shifted(sketch: JobSketch, points: tuple[tuple[int, int, float], ...], keep_slack: bool) -> JobSketch:
    """Return a sketch with other points; its deadlines move along if ``keep_slack``."""
    other = replace(sketch, points=points)
    by = other.soonest - sketch.soonest if keep_slack else 0
    return replace(other, steps=tuple((until + by, value) for until, value in sketch.steps))


def _other_width(sketch: JobSketch, limits: InstanceLimits, rng: np.random.Generator) -> JobSketch:
    return replace(sketch, width=whole_draw(rng, 1, limits.max_concurrency))


def _other_duration(sketch: JobSketch, limits: InstanceLimits, rng: np.random.Generator) -> JobSketch:
    k, d = rng.integers(len(sketch.points)), whole_draw(rng, 1, limits.max_duration)
    points = tuple((lead, d if i == k else old, p) for i, (lead, old, p) in enumerate(sketch.points))
    return _shifted(sketch, points, rng.random() < 0.7)


def _other_lead(sketch: JobSketch, limits: InstanceLimits, rng: np.random.Generator) -> JobSketch:
    k, lead = rng.integers(len(sketch.points)), whole_draw(rng, 0, min(4, limits.max_delay - 2))
    points = tuple((lead if i == k else old, d, p) for i, (old, d, p) in enumerate(sketch.points))
    return _shifted(sketch, points, rng.random() < 0.7)


def _other_value(sketch: JobSketch, limits: InstanceLimits, rng: np.random.Generator) -> JobSketch:
    kind, k = rng.random(), int(rng.integers(len(sketch.steps)))
    old = sketch.steps[k][1]
    new = 1.0 if kind < 0.2 else limits.max_value if kind < 0.4 else limits.value(old * np.exp(0.4 * rng.normal()))
    return replace(sketch, steps=tuple((u, new if i == k else value) for i, (u, value) in enumerate(sketch.steps)))


def _other_deadline(sketch: JobSketch, limits: InstanceLimits, rng: np.random.Generator) -> JobSketch:
    kind, k = rng.random(), int(rng.integers(len(sketch.steps)))
    old = sketch.steps[k][0]
    new = sketch.soonest if kind < 0.3 else old + int(rng.choice([-1, 1])) if kind < 0.6 else 0
    new = new or whole_draw(rng, sketch.soonest, max(sketch.soonest, limits.max_delay - 1))
    return replace(sketch, steps=tuple((new if i == k else u, value) for i, (u, value) in enumerate(sketch.steps)))


def _other_steps(sketch: JobSketch, limits: InstanceLimits, rng: np.random.Generator) -> JobSketch:
    """Leave one step, or add a second one of less value behind it."""
    until, value = sketch.steps[0]
    if len(sketch.steps) > 1:
        return replace(sketch, steps=((until, value),))
    later = whole_draw(rng, until + 1, max(until + 1, limits.max_delay - 1))
    return replace(sketch, steps=((until, value), (later, limits.value(value ** rng.random()))))


def _other_law(sketch: JobSketch, limits: InstanceLimits, rng: np.random.Generator) -> JobSketch:
    """Make a law of two points certain, or a certain job one of two points."""
    lead, duration, _ = sketch.points[rng.integers(len(sketch.points))]
    if not sketch.certain:
        return replace(sketch, points=((lead, duration, 1.0),))
    p = float(rng.choice([0.25, 0.5, 0.75]))
    other = (lead + whole_draw(rng, 0, 3), whole_draw(rng, 1, limits.max_duration), 1 - p)
    return replace(sketch, points=((lead, duration, p), other))
