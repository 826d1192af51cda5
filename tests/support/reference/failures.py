"""Failure probabilities from their definition: every joint outcome, played forward under LIFO.

Equation numbers are those of docs/mathematics.md: (5) is the definition, (6) the same
through the free capacity left by the earlier jobs, which the market of ``reference.market`` uses.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import NamedTuple


class Run(NamedTuple):
    """One job in one outcome: ``concurrency`` nodes in rounds ``start .. start + duration - 1``."""

    concurrency: int
    start: int | None  # None: it never runs
    duration: int

    def occupies(self, t: int) -> bool:
        """Say whether the job would execute in round ``t``."""
        return self.start is not None and self.start <= t < self.start + self.duration


class Residual(NamedTuple):
    """What an earlier job may still do: its nodes, and ``(probability, start or None, duration)``."""

    concurrency: int
    outcomes: tuple[tuple[float, int | None, int], ...]


def joint_outcomes(jobs: Sequence[Residual]) -> Iterator[tuple[float, list[Run]]]:
    """Yield every joint outcome of independent jobs, with its probability."""
    for combination in product(*(job.outcomes for job in jobs)):
        probability = 1.0
        runs = []
        for job, (p, start, duration) in zip(jobs, combination, strict=True):
            probability *= p
            runs.append(Run(job.concurrency, start, duration))
        yield probability, runs


def simulate(
    runs: Sequence[Run], first: int, last: int, capacity: int, eviction: str
) -> tuple[dict[int, int], set[int]]:
    """Play rounds ``first .. last`` of Algorithm 1 with known runs, in order of submission.

    Returns the load of each round before anybody is removed in it, and the indices of the jobs that
    completed by round ``last``.
    """
    active = list(range(len(runs)))
    loads: dict[int, int] = {}
    completed: set[int] = set()
    for t in range(first, last + 1):
        counted = [i for i in active if runs[i].occupies(t)]
        load = sum(runs[i].concurrency for i in counted)
        loads[t] = load
        while load > capacity:
            newest = max(active if eviction == "all" else counted)
            active.remove(newest)
            if newest in counted:
                counted.remove(newest)
                load -= runs[newest].concurrency
        for i in counted:
            start = runs[i].start
            assert start is not None
            if start + runs[i].duration - 1 == t:
                completed.add(i)
                active.remove(i)
    return loads, completed


@dataclass
class FailureTable:
    """Failure probabilities of a job submitted in round ``now``, after ``jobs``, by (6).

    The earlier jobs are played forward once for each joint outcome; the newcomer is the first to
    go, so it is enough to compare its demand with what they leave.
    """

    now: int
    horizon: int
    capacity: int
    eviction: str
    paths: list[tuple[float, dict[int, int]]]

    @classmethod
    def of(cls, jobs: Sequence[Residual], *, now: int, horizon: int, capacity: int, eviction: str) -> FailureTable:
        """Play every joint outcome of ``jobs``."""
        paths = []
        for probability, runs in joint_outcomes(jobs):
            loads, _ = simulate(runs, now, horizon, capacity, eviction)
            paths.append((probability, loads))
        return cls(now, horizon, capacity, eviction, paths)

    def fails(self, loads: dict[int, int], start: int, concurrency: int, duration: int) -> bool:
        """Return (6) on one path; under ``running`` an overload before the start does no harm."""
        if start + duration - 1 > self.horizon:
            return True
        free = {t: self.capacity - load for t, load in loads.items()}
        if self.eviction == "all" and any(free[t] < 0 for t in range(self.now, start)):
            return True
        return any(free[t] < concurrency for t in range(start, start + duration))

    def failure(self, start: int, concurrency: int, duration: int) -> float:
        """Return f(s, c, d)."""
        return sum(p for p, loads in self.paths if self.fails(loads, start, concurrency, duration))
