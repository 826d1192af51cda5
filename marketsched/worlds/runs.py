"""Runs that share laws, as a table: what is announced of a run is a law of its kind, moved to its birth."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from marketsched.agents.job import Job
from marketsched.agents.job_table import JobTable
from marketsched.mechanisms.columns import DurationLaws, JobColumns, ReportedLaws
from marketsched.mechanisms.signals import Signals
from marketsched.mechanisms.sow import StatementOfWork
from marketsched.mechanisms.values import DeadlineValue

Law = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]  # waits, durations, probabilities

MOST_KEPT = 20_000  # jobs of a market whose objects are kept, some 500 bytes each


class RunColumns(NamedTuple):
    """One row a run, in order of birth; arrays have shape (n_jobs,)."""

    births: NDArray[np.int64]  # rounds
    arrivals: NDArray[np.int64]  # rounds
    durations: NDArray[np.int64]  # rounds that it really takes
    widths: NDArray[np.int64]  # nodes
    values: NDArray[np.float64]  # credits until the deadline
    deadlines: NDArray[np.int64]  # a completion time
    law_of: NDArray[np.int64]  # which of the laws is announced


class Runs(JobTable):
    """Runs that all arrive, and whose values hold until a deadline; a subclass says names, owners and tags.

    Parameters
    ----------
    runs : RunColumns
        The runs.
    laws : sequence of Law
        The laws that differ: rounds from the birth to the arrival, rounds of the run, and probabilities.
    revealed : bool
        Whether durations are seen at arrival.
    checkpoint : int, optional
        Of each statement, see `StatementOfWork`.
    """

    def __init__(self, runs: RunColumns, laws: Sequence[Law], *, revealed: bool, checkpoint: int | None = None) -> None:
        self._runs, self._laws, self._revealed, self._checkpoint = runs, laws, revealed, checkpoint
        for column in runs:
            column.flags.writeable = False

    @property
    def births(self) -> NDArray[np.int64]:
        """Rounds of birth."""
        return self._runs.births

    @property
    def arrivals(self) -> NDArray[np.int64]:
        """Rounds of arrival."""
        return self._runs.arrivals

    @property
    def durations(self) -> NDArray[np.int64]:
        """Rounds that the work really takes."""
        return self._runs.durations

    @property
    def widths(self) -> NDArray[np.int64]:
        """Nodes needed."""
        return self._runs.widths

    @cached_property
    def checkpoints(self) -> NDArray[np.int64]:
        """Rounds of its work after which it is saved, each time; 0: never."""
        return np.full(len(self), self._checkpoint or 0)

    @property
    def revealed(self) -> bool:
        """Whether signals determine durations in every report."""
        return self._revealed

    @property
    def signals(self) -> Signals:
        """What a whole number that is seen at arrival is."""
        return "durations"

    @cached_property
    def last_completions(self) -> NDArray[np.int64]:
        """The last completion of each run that is worth more than nothing; 0: there is none."""
        return np.where(self._runs.values > 0, self._runs.deadlines, 0)

    @cached_property
    def longest(self) -> int:
        """The longest duration of any law, rounds."""
        return max((int(durations.max()) for _, durations, _ in self._laws), default=0)

    def _columns(self, max_delay: int) -> JobColumns:
        n, runs = len(self), self._runs
        shortest, wall_times = (runs.durations, runs.durations) if self._revealed else self._announced_ends()
        return JobColumns(
            runs.births,
            runs.arrivals,
            runs.durations,
            runs.widths,
            np.full(n, self._revealed),
            wall_times,
            shortest,
            np.arange(n + 1),
            runs.values,
            runs.deadlines,
            self.last_completions,
            runs.values,
            np.ones(n, np.bool_),
            np.full(n, -1),
            self.checkpoints,
            max_delay,
            (int(runs.widths.max(initial=0)), self.longest, float(runs.values.max(initial=0.0))),
            self._duration_laws,
            self._reported_laws,
            lambda: self.owners,
            lambda: self.names,
        )

    @cached_property
    def _cases(self) -> tuple[list[tuple[int, int]], NDArray[np.int64]]:
        """The pairs of a law and a wait that occur, and which of them each run is."""
        waits = self._runs.arrivals - self._runs.births
        most = int(waits.max(initial=0)) + 1
        kinds, kind_of = np.unique(self._runs.law_of * most + waits, return_inverse=True)
        return [divmod(kind, most) for kind in kinds.tolist()], kind_of

    def _announced_ends(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the shortest and the longest duration of each run's law, given its arrival."""
        cases, case_of = self._cases
        ends = np.empty((len(cases), 2), np.int64)
        for i, (law, wait) in enumerate(cases):
            waits, durations, _ = self._laws[law]
            own = durations[waits == wait]
            ends[i] = own.min(), own.max()
        shortest, longest = ends[case_of].T
        return shortest.copy(), longest.copy()

    def _duration_laws(self) -> DurationLaws:
        """Return the law of each run's duration, given its arrival, and its duration where that is seen."""
        if self._revealed:
            durations, kind_of = np.unique(self._runs.durations, return_inverse=True)
            return DurationLaws.each([(durations[i : i + 1], np.ones(1)) for i in range(durations.size)], kind_of)
        cases, case_of = self._cases
        return DurationLaws.each([_given(self._laws[law], wait) for law, wait in cases], case_of)

    def _reported_laws(self) -> ReportedLaws:
        """Return the joint laws, and the case of its own that happens to each run."""
        curve = DeadlineValue(0.0, 1)
        laws = [
            StatementOfWork.from_arrays(1, 1, curve, 1 + waits, durations, probabilities, revealed=self._revealed).law
            for waits, durations, probabilities in self._laws
        ]
        found = ReportedLaws.each([(1, law) for law in laws], self._runs.law_of, np.full(len(self), -1))
        waits = self._runs.arrivals - self._runs.births
        seen = self._runs.durations if self._revealed else np.zeros(len(self), np.int64)
        order = np.argsort(found.of, kind="stable")
        ends = np.cumsum(np.bincount(found.of, minlength=len(laws)))
        for law, own in zip(laws, np.split(order, ends[:-1]), strict=True):
            at = law.offsets[:-1]
            cases = np.stack([law.arrivals[at] - 1, law.durations[at] if self._revealed else 0 * at])
            span = 1 + max(int(cases.max()), int(waits[own].max(initial=0)), int(seen[own].max(initial=0)))
            keys, wanted = cases[0] * span + cases[1], waits[own] * span + seen[own]
            place = np.minimum(np.searchsorted(keys, wanted), keys.size - 1)
            found.happens[own] = np.where(keys[place] == wanted, place, -1)
        return found

    @cached_property
    def _firsts(self) -> dict[tuple[int, int], StatementOfWork]:
        return {}

    def _statement(self, place: int, birth: int) -> StatementOfWork:
        """Return the true statement of a run: that of the first one of its law and nodes, moved to its birth."""
        curve = DeadlineValue(float(self._runs.values[place]), int(self._runs.deadlines[place]))
        kind = int(self._runs.law_of[place]), int(self._runs.widths[place])
        if kind not in self._firsts:
            waits, durations, probabilities = self._laws[kind[0]]
            law = (1 + waits, durations, probabilities)
            self._firsts[kind] = StatementOfWork.from_arrays(
                1, kind[1], curve, *law, revealed=self._revealed, checkpoint=self._checkpoint
            )
        return self._firsts[kind].moved(birth, curve)

    @abstractmethod
    def _name(self, place: int) -> tuple[str, str]:
        """Return name and owner of a run."""

    @abstractmethod
    def _tags(self, place: int) -> Mapping[str, Any]:
        """Return the tags of a run."""

    @cached_property
    def _kept(self) -> dict[int, Job]:
        return {}

    def _job(self, place: int) -> Job:
        """Return one run; of a small market it is made once, as searches for lies look at each many times."""
        if len(self) > MOST_KEPT:
            return self._made(place)
        if place not in self._kept:
            self._kept[place] = self._made(place)
        return self._kept[place]

    def _made(self, place: int) -> Job:
        runs = self._runs
        birth, arrival, duration = int(runs.births[place]), int(runs.arrivals[place]), int(runs.durations[place])
        return Job(
            *self._name(place),
            self._statement(place, birth),
            arrival,
            duration,
            duration if self._revealed else None,
            self._tags(place),
        )


def _given(law: Law, wait: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return durations and probabilities of a law's points with this wait."""
    waits, durations, probabilities = law
    own = waits == wait
    return durations[own], probabilities[own]
