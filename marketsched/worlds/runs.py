"""Runs that share laws, as a table: what is announced of a run is a law of its kind, moved to its birth.

Of recurring jobs that is the law of the first run.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from marketsched.agents.job import Job
from marketsched.agents.job_table import JobTable
from marketsched.mechanisms.columns import DurationLaws, JobColumns, ReportedLaws
from marketsched.mechanisms.promises import Disclosure
from marketsched.mechanisms.signals import Signals
from marketsched.mechanisms.sow import StatementOfWork
from marketsched.mechanisms.values import DeadlineValue, FallingValue, falling_steps

Law = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]  # waits, durations, probabilities

MOST_KEPT = 20_000  # jobs of a market whose objects are kept, some 500 bytes each


class TagsButOne(Mapping[str, Any]):
    """Tags that many jobs share, all but ``own``: a dictionary for each would take more than all else of a job.

    ``shared`` has all tags in their order, and is never changed from here on.

    Examples
    --------
    >>> dict(TagsButOne({"band": "free", "deadline": None}, "deadline", 7))
    {'band': 'free', 'deadline': 7}
    """

    __slots__ = ("_own", "_shared", "_value")

    def __init__(self, shared: dict[str, Any], own: str, value: Any) -> None:
        self._shared, self._own, self._value = shared, own, value

    def __getitem__(self, tag: str) -> Any:
        return self._value if tag == self._own else self._shared[tag]

    def __iter__(self) -> Iterator[str]:
        return iter(self._shared)

    def __len__(self) -> int:
        return len(self._shared)

    def __repr__(self) -> str:
        return repr(dict(self))


class RunColumns(NamedTuple):
    """One row a run, in order of birth; arrays have shape (n_jobs,)."""

    births: NDArray[np.int64]  # rounds
    arrivals: NDArray[np.int64]  # rounds
    durations: NDArray[np.int64]  # rounds that it really takes
    widths: NDArray[np.int64]  # nodes
    values: NDArray[np.float64]  # credits until the deadline, or until the value falls
    deadlines: NDArray[np.int64]  # a completion time
    law_of: NDArray[np.int64]  # which of the laws is announced
    falls: NDArray[np.int64] | None = None  # the last completion of full value; None: all hold until their deadlines
    halves: NDArray[np.float64] | None = None  # rounds after which half of it is left, as `FallingValue`; 0: it holds


class Runs(JobTable):
    """Runs that all arrive, whose values hold until a deadline or fall; a subclass says names, owners and tags.

    ``laws`` are those that differ: rounds from the birth to the arrival, rounds of the run, and probabilities.
    """

    def __init__(self, runs: RunColumns, laws: Sequence[Law], *, revealed: bool, checkpoint: int | None = None) -> None:
        self._runs, self._laws, self._revealed, self._checkpoint = runs, laws, revealed, checkpoint
        for column in (each for each in runs if each is not None):
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
    def disclosure(self) -> Disclosure:
        """Whether all jobs reveal their durations, or none."""
        return "revealed" if self._revealed else "hidden"

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
        begins, values, lasts = self._steps
        return JobColumns(
            runs.births,
            runs.arrivals,
            runs.durations,
            runs.widths,
            np.full(n, self._revealed),
            wall_times,
            shortest,
            begins,
            values,
            lasts,
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
            lambda row: self._statement(row, int(runs.births[row])),
            lambda row: int(runs.durations[row]) if self._revealed else None,
        )

    @cached_property
    def _steps(self) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.int64]]:
        """Where the steps of each value begin, what they are worth, and their last completions."""
        runs = self._runs
        if runs.falls is None or runs.halves is None:
            return np.arange(len(self) + 1), runs.values, runs.deadlines
        return falling_steps(runs.values, runs.falls, runs.halves, runs.deadlines)

    def _curve(self, place: int) -> DeadlineValue | FallingValue:
        """Return the value of a run."""
        runs = self._runs
        value, deadline = float(runs.values[place]), int(runs.deadlines[place])
        if runs.falls is None or runs.halves is None or runs.halves[place] == 0:
            return DeadlineValue(value, deadline)
        return FallingValue(value, int(runs.falls[place]), float(runs.halves[place]), deadline)

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
        curve = self._curve(place)
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


class RecurringRuns(Runs):
    """Runs of recurring jobs in order of birth: the ``numbers[j]``-th of job ``groups[j]``."""

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
        self._of, self._groups, self._numbers = of, groups, numbers
        for column in (groups, numbers):
            column.flags.writeable = False
        deadlines = of.deadlines[groups] + births - of.births[groups]
        own = (of.nodes[groups], of.values[groups], deadlines, of.law_of[groups])
        super().__init__(RunColumns(births, arrivals, durations, *own), of.laws, revealed=revealed)

    def __reduce__(self) -> tuple[Any, ...]:
        columns = (self._groups, self._numbers, self.births, self.arrivals, self.durations)
        return _rebuilt, (self._of, *columns, self.revealed)

    @cached_property
    def names(self) -> list[str]:
        """Names of the jobs."""
        prefix, runs = self._of.prefix, zip(self._groups.tolist(), self._numbers.tolist(), strict=True)
        return [f"{prefix}{g}-r{number}" for g, number in runs]

    @cached_property
    def owners(self) -> list[str]:
        """Names of their owners."""
        shared = np.array(self._owner_names, object)  # one string for all runs of a recurring job
        return shared[self._groups].tolist()  # type: ignore[no-any-return]

    @cached_property
    def owner_words(self) -> Any:
        """The same as a table takes them."""
        return _words(self._owner_names, self._groups)

    @property
    def _owner_names(self) -> list[str]:
        return [f"{self._of.prefix}{g}" for g in range(self._of.births.size)]

    @property
    def tags(self) -> tuple[str, ...]:
        """Names of the tags."""
        return ("group", *self._of.tags)

    def tag(self, name: str, part: slice) -> Any:
        """Return a column of a tag."""
        if name == "group":
            return self.owner_words[part]
        of_groups, groups = self._of.tags[name], self._groups[part]
        if of_groups is None:
            return self._runs.deadlines[part]
        if of_groups.dtype.kind == "U":
            return _words(of_groups.tolist(), groups)
        return of_groups[groups]

    @cached_property
    def _shared(self) -> dict[int, dict[str, object]]:
        return {}

    def _name(self, place: int) -> tuple[str, str]:
        owner = f"{self._of.prefix}{self._groups[place]}"
        return f"{owner}-r{self._numbers[place]}", owner

    def _tags(self, place: int) -> TagsButOne:
        g = int(self._groups[place])
        if g not in self._shared:
            tags = {tag: 0 if each is None else each[g].item() for tag, each in self._of.tags.items()}
            self._shared[g] = {"group": f"{self._of.prefix}{g}", **tags}
        return TagsButOne(self._shared[g], "deadline", int(self._runs.deadlines[place]))


def _words(distinct: list[str], codes: NDArray[np.int64]) -> Any:
    """Return a column of words that repeat, as pandas keeps strings."""
    import pandas as pd

    return pd.array(distinct, dtype="str").take(codes)


def _rebuilt(*fields: Any) -> RecurringRuns:
    """Unpickle."""
    return RecurringRuns(*fields[:-1], revealed=fields[-1])
