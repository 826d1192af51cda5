"""Runs of recurring jobs as a table: what is known of a run is that of the first one, moved to another birth."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from marketsched.agents.job import Job, TagsButOne
from marketsched.agents.job_table import JobTable
from marketsched.mechanisms.columns import NEVER, JobColumns
from marketsched.mechanisms.signals import Signals
from marketsched.mechanisms.sow import StatementOfWork
from marketsched.mechanisms.values import DeadlineValue

Law = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]  # waits, durations, probabilities

MOST_KEPT = 20_000  # jobs of a market whose objects are kept, some 500 bytes each


@dataclass(frozen=True, eq=False)
class Recurring:
    """The recurring jobs, one entry each."""

    prefix: str  # of their names and owners; then comes the number
    births: NDArray[np.int64]  # of the first run, rounds
    nodes: NDArray[np.int64]
    laws: list[Law]  # that differ: rounds from the birth to the arrival, and of the run
    law_of: NDArray[np.int64]  # which of them each has
    values: NDArray[np.float64]  # credits until the deadline
    deadlines: NDArray[np.int64]  # of the first run, a completion time
    tags: dict[str, NDArray[np.generic] | None]  # shown with each run after ``group``; None: its deadline

    def drawn(self, groups: NDArray[np.int64], rng: np.random.Generator) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Draw waits and durations of runs of these recurring jobs, rounds; one number of ``rng`` for each."""
        numbers, laws = rng.random(groups.size), self.law_of[groups]
        waits, durations = np.empty(groups.size, np.int64), np.empty(groups.size, np.int64)
        runs = np.split(np.argsort(laws, kind="stable"), np.cumsum(np.bincount(laws, minlength=len(self.laws)))[:-1])
        for (of_law, rounds, probabilities), own in zip(self.laws, runs, strict=True):
            point = np.searchsorted(np.cumsum(probabilities), numbers[own], side="right")
            point = np.minimum(point, rounds.size - 1)  # the sum may end a little below 1
            waits[own], durations[own] = of_law[point], rounds[point]
        return waits, durations


class RecurringRuns(JobTable):
    """Runs of recurring jobs in order of birth.

    Parameters
    ----------
    of : Recurring
        The recurring jobs.
    groups, numbers : ndarray of int, shape (n_jobs,)
        Which of them each run is of, and the run's number in its name.
    births, arrivals, durations : ndarray of int, shape (n_jobs,)
        Rounds.
    revealed : bool
        Whether durations are seen at arrival.
    """

    def __init__(
        self,
        of: Recurring,
        groups: NDArray[np.int64],
        numbers: NDArray[np.int64],
        births: NDArray[np.int64],
        arrivals: NDArray[np.int64],
        durations: NDArray[np.int64],
        *,
        revealed: bool,
    ) -> None:
        self._of, self._groups, self._numbers, self._revealed = of, groups, numbers, revealed
        self._births, self._arrivals, self._durations = births, arrivals, durations
        for column in (groups, numbers, births, arrivals, durations):
            column.flags.writeable = False

    def __reduce__(self) -> tuple[Any, ...]:
        columns = (self._groups, self._numbers, self._births, self._arrivals, self._durations)
        return _rebuilt, (self._of, *columns, self._revealed)

    @property
    def births(self) -> NDArray[np.int64]:
        """Rounds of birth."""
        return self._births

    @property
    def arrivals(self) -> NDArray[np.int64]:
        """Rounds of arrival; 0: never."""
        return self._arrivals

    @property
    def durations(self) -> NDArray[np.int64]:
        """Rounds that the work really takes."""
        return self._durations

    @cached_property
    def widths(self) -> NDArray[np.int64]:
        """Nodes needed."""
        return self._of.nodes[self._groups]

    @cached_property
    def names(self) -> list[str]:
        """Names of the jobs."""
        prefix, runs = self._of.prefix, zip(self._groups.tolist(), self._numbers.tolist(), strict=True)
        return [f"{prefix}{g}-r{number}" for g, number in runs]

    @cached_property
    def owners(self) -> list[str]:
        """Names of their owners."""
        names = [f"{self._of.prefix}{g}" for g in range(self._of.births.size)]
        return [names[g] for g in self._groups.tolist()]

    @property
    def tags(self) -> tuple[str, ...]:
        """Names of the tags."""
        return ("group", *self._of.tags)

    def tag(self, name: str, part: slice) -> Any:
        """Return a column of a tag."""
        groups = self._groups[part]
        if name == "group":
            return self.owners[part]
        of_groups = self._of.tags[name]
        if of_groups is None:
            return self._deadlines[part]
        if of_groups.dtype.kind == "U":
            words = of_groups.tolist()
            return [words[g] for g in groups.tolist()]
        return of_groups[groups]

    @property
    def revealed(self) -> bool:
        """Whether signals determine durations in every report."""
        return self._revealed

    @property
    def signals(self) -> Signals:
        """What a whole number that is seen at arrival is."""
        return "durations"

    def _columns(self, max_delay: int) -> JobColumns:
        n, values = len(self), self._of.values[self._groups]
        shortest, longest = (self._durations, self._durations) if self._revealed else self._announced()
        most = max(int(durations.max()) for _, durations, _ in self._of.laws)
        return JobColumns(
            self._births,
            self._arrivals,
            self._durations,
            self.widths,
            np.full(n, self._revealed),
            longest,
            shortest,
            np.arange(n + 1),
            values,
            self._deadlines,
            np.where(values > 0, self._deadlines, 0),
            max_delay,
            (int(self.widths.max(initial=0)), most, float(values.max(initial=0.0))),
        )

    @cached_property
    def _deadlines(self) -> NDArray[np.int64]:
        """The last completion time of value of each run."""
        return self._of.deadlines[self._groups] + self._births - self._of.births[self._groups]

    def _announced(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the shortest and the longest duration of each run's law, given its arrival."""
        laws, waits = self._of.law_of[self._groups], self._arrivals - self._births
        kinds, kind_of = np.unique(np.column_stack([laws, waits]), axis=0, return_inverse=True)
        ends = np.empty((len(kinds), 2), np.int64)
        for i, (law, wait) in enumerate(kinds.tolist()):
            of_law, durations, _ = self._of.laws[law]
            own = durations[of_law == wait]
            ends[i] = own.min(), own.max()
        shortest, longest = ends[kind_of.ravel()].T
        return shortest.copy(), longest.copy()

    @cached_property
    def _firsts(self) -> dict[int, StatementOfWork]:
        return {}

    def _first(self, g: int) -> StatementOfWork:
        """Return the statement of the first run of a recurring job."""
        if g not in self._firsts:
            of = self._of
            curve = DeadlineValue(float(of.values[g]), int(of.deadlines[g]))
            birth, (waits, durations, probabilities) = int(of.births[g]), of.laws[of.law_of[g]]
            law = (birth + waits, durations, probabilities)
            self._firsts[g] = StatementOfWork.from_arrays(birth, int(of.nodes[g]), curve, *law, revealed=self._revealed)
        return self._firsts[g]

    @cached_property
    def _shared(self) -> dict[int, dict[str, object]]:
        return {}

    def _job(self, place: int) -> Job:
        """Return one run; of a small market it is made once, as searches for lies look at each many times."""
        if len(self) > MOST_KEPT:
            return self._made(place)
        if place not in self._kept:
            self._kept[place] = self._made(place)
        return self._kept[place]

    @cached_property
    def _kept(self) -> dict[int, Job]:
        return {}

    def _made(self, place: int) -> Job:
        g, birth, deadline = int(self._groups[place]), int(self._births[place]), int(self._deadlines[place])
        name = f"{self._of.prefix}{g}"
        if g not in self._shared:
            tags = {tag: 0 if each is None else each[g].item() for tag, each in self._of.tags.items()}
            self._shared[g] = {"group": name, **tags}
        truth = self._first(g).moved(birth, DeadlineValue(float(self._of.values[g]), deadline))
        arrival, duration = int(self._arrivals[place]), int(self._durations[place])
        return Job(
            f"{name}-r{self._numbers[place]}",
            name,
            truth,
            None if arrival == NEVER else arrival,
            duration,
            duration if self._revealed else None,
            TagsButOne(self._shared[g], "deadline", deadline),
        )


def _rebuilt(*fields: Any) -> RecurringRuns:
    """Unpickle."""
    return RecurringRuns(*fields[:-1], revealed=fields[-1])
