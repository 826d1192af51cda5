"""Simulated annealing over birth sequences: the search itself, as `marketsched.study.hard.adversary` runs it.

A quarter of the evaluations go to sequences drawn at random. An annealing run starts from each of the
hardest of them (and one from the instance that was given), a longer one goes on from the best of all,
and the last evaluations take out jobs that make no difference. Temperatures are those of the logarithm
of the score: a share of the score that is given up now and then.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Literal, NamedTuple

import numpy as np

from marketsched.study.hard.birth_sequences import BirthSequence, random_sequence, whole_draw
from marketsched.study.hard.instance_trial import Trial
from marketsched.study.hard.sequence_changes import Changes

HOT, COLD = 0.02, 0.001  # temperatures of the logarithm of the score, first and last
DRAWING, EXPLORING, DEEPENING = 0.25, 0.5, 0.9  # shares of the evaluations after which each of these is over

Progress = Callable[[int, int], None]  # instances evaluated, evaluations in all
Stopped = Literal["steps", "seconds", "interrupt"]


class SearchLength(NamedTuple):
    """How long to search."""

    steps: int
    restarts: int
    seconds: float
    max_jobs: int


class Search:
    """The annealing runs of one search."""

    def __init__(self, trial: Trial, changes: Changes, plan: SearchLength, progress: Progress | None) -> None:
        self.trial, self.plan = trial, plan
        self.first: BirthSequence | None = None
        self.finalists: dict[BirthSequence, float] = {}  # the best of each restart, and its score
        self.history: list[float] = []
        self.accepted = 0
        self.stopped: Stopped = "steps"
        self._changes, self._progress = changes, progress
        self._began = time.perf_counter()

    @property
    def seconds(self) -> float:
        """Time since the search began."""
        return time.perf_counter() - self._began

    def run(self, first: BirthSequence | None, rng: np.random.Generator) -> None:
        """Anneal from each start, then on from the best of them; an interruption keeps the best so far.

        Raises
        ------
        KeyboardInterrupt
            If it comes before anything was earned.
        """
        steps, n = self.plan.steps, self.plan.restarts
        drawing, *streams, last = rng.spawn(n + 2)
        try:
            for i, ((start, score), stream) in enumerate(zip(self._starts(first, drawing), streams, strict=False)):
                share = DRAWING + (EXPLORING - DRAWING) * (i + 1) / n
                self._anneal(start, score, share * steps, stream)
            self._anneal(self._best, self.finalists[self._best], DEEPENING * steps, last)
            self._prune(steps, last)
        except KeyboardInterrupt:
            if not any(self.finalists.values()):
                raise  # nothing to show
            self.stopped = "interrupt"

    @property
    def _best(self) -> BirthSequence:
        return max(self.finalists, key=self.finalists.__getitem__)

    def _starts(self, first: BirthSequence | None, rng: np.random.Generator) -> list[tuple[BirthSequence, float]]:
        """Return where to start, and its score: what was given, then what was drawn, hardest first."""
        given: list[tuple[BirthSequence, float]] = []
        if first is not None:
            given.append((first, self._score(first)))
            self._enter(*given[0])
        drawn: list[tuple[BirthSequence, float]] = []
        while self._goes_on(DRAWING * self.plan.steps):
            n_jobs = whole_draw(rng, max(1, self.plan.max_jobs // 3), self.plan.max_jobs)
            sequence = random_sequence(self.trial.limits, n_jobs, rng)
            drawn.append((sequence, self._score(sequence)))
            self._enter(*drawn[-1])
        return given + sorted(drawn, key=lambda pair: -pair[1])

    def _score(self, sequence: BirthSequence) -> float:
        """Play a sequence, and note what it scores."""
        score = self.trial(sequence).score
        if self.first is None:
            self.first = sequence
        self.history.append(max(score, self.history[-1] if self.history else 0.0))
        if self._progress is not None:
            self._progress(len(self.history), self.plan.steps)
        return score

    def _goes_on(self, end: float) -> bool:
        """Return True if evaluations are left; the first is always made."""
        if self.history and self.seconds >= self.plan.seconds:
            self.stopped = "seconds"
        return not self.history or (len(self.history) < end and self.stopped == "steps")

    def _enter(self, sequence: BirthSequence, score: float, instead: BirthSequence | None = None) -> None:
        """Make a sequence a finalist, instead of another one; only the hardest few stay."""
        if instead is not None:
            self.finalists.pop(instead, None)
        self.finalists[sequence] = score
        if len(self.finalists) > self.plan.restarts:
            del self.finalists[min(self.finalists, key=self.finalists.__getitem__)]

    def _anneal(self, start: BirthSequence, score: float, end: float, rng: np.random.Generator) -> None:
        """Search from ``start`` until ``end`` instances have been evaluated in all; the best is a finalist."""
        began = len(self.history)
        current, best, highest = start, start, score
        while self._goes_on(end):
            temperature = HOT * (COLD / HOT) ** ((len(self.history) - began) / (end - began))
            other = self._changes(current, rng)
            found = self._score(other)
            if found >= score or rng.random() < (found / score) ** (1 / temperature):
                self.accepted += other != current
                current, score = other, found
            if found > highest:
                self._enter(other, found, instead=best)
                best, highest = other, found

    def _prune(self, end: float, rng: np.random.Generator) -> None:
        """Take jobs out of the best instance that make it no harder: what is left is easier to read."""
        best = self._best
        for i in sorted(rng.permutation(len(best)).tolist(), reverse=True):
            if len(best) == 1 or not self._goes_on(end):
                break
            less = best[:i] + best[i + 1 :]
            found = self._score(less)
            if found >= self.finalists[best]:
                self._enter(less, found, instead=best)
                best = less
