"""Jobs as a table: columns from the workload to the result, of which a `Job` is made when somebody looks at one."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from marketsched.agents.job import Job
from marketsched.mechanisms.columns import NEVER, DurationLaws, JobColumns, ReportedLaws, steps_of
from marketsched.mechanisms.law import Law, Signal
from marketsched.mechanisms.promises import Disclosure
from marketsched.mechanisms.signals import Signals, announced_durations, observed_duration, signals_of
from marketsched.mechanisms.values import DeadlineValue, RankValue


class JobTable(Sequence[Job]):
    """A workload's jobs, in order of submission.

    It is a sequence of `Job`, equal to any other of equal jobs; a job may be made anew whenever it is looked at.
    Columns are read-only and have shape (n_jobs,).
    """

    @property
    @abstractmethod
    def births(self) -> NDArray[np.int64]:
        """Rounds of birth."""

    @property
    @abstractmethod
    def arrivals(self) -> NDArray[np.int64]:
        """Rounds of arrival; 0: never."""

    @property
    @abstractmethod
    def durations(self) -> NDArray[np.int64]:
        """Rounds that the work really takes."""

    @property
    @abstractmethod
    def widths(self) -> NDArray[np.int64]:
        """Nodes needed."""

    @property
    @abstractmethod
    def checkpoints(self) -> NDArray[np.int64]:
        """Rounds of its work after which it is saved, each time; 0: never."""

    @property
    @abstractmethod
    def names(self) -> list[str]:
        """Names of the jobs."""

    @property
    @abstractmethod
    def owners(self) -> list[str]:
        """Names of their owners."""

    @property
    def owner_words(self) -> Any:
        """The same as a table takes them."""
        return self.owners

    @property
    @abstractmethod
    def tags(self) -> tuple[str, ...]:
        """Names of the tags that any job has."""

    @abstractmethod
    def tag(self, name: str, part: slice) -> Any:
        """Return a column of a tag, for some jobs; None where a job has it not."""

    def columns(self, max_delay: int) -> JobColumns | None:
        """Return what a mechanism reads that plays whole markets; None: these jobs do not fit into columns.

        ``max_delay`` is S of the market, rounds. They are kept until they are wanted for another.
        """
        if self._kept_columns is None or self._kept_columns[0] != max_delay:
            self._kept_columns = max_delay, self._columns(max_delay)
        return self._kept_columns[1]

    _kept_columns: tuple[int, JobColumns | None] | None = None

    @abstractmethod
    def _columns(self, max_delay: int) -> JobColumns | None:
        """Make what `columns` returns."""

    @abstractmethod
    def _job(self, place: int) -> Job:
        """Return one job."""

    @property
    def revealed(self) -> bool:
        """Whether the signal determines the duration in every case of every report."""
        return all(job.truth.revealed for job in self)

    @property
    def disclosure(self) -> Disclosure:
        """Whether all jobs reveal their durations when they arrive, none, or some."""
        if self.revealed:
            return "revealed"
        return "mixed" if any(job.truth.revealed for job in self) else "hidden"

    @property
    def signals(self) -> Signals:
        """What a whole number that is seen at arrival is, see `signals_of`."""
        return signals_of(self)

    @property
    def work(self) -> int:
        """Node-rounds that the jobs really need."""
        return int((self.widths * self.durations)[self.arrivals != NEVER].sum())

    def offered(self, max_delay: int) -> NDArray[np.float64]:
        """Return the largest value that each job can have, credits, shape (n_jobs,); ``max_delay`` as of `columns`."""
        columns = self.columns(max_delay)
        if columns is None:
            return np.fromiter((job.truth.value.highest for job in self), np.float64, len(self))
        return columns.highest

    @property
    def last_birth(self) -> int:
        """The last round in which a job is born; 1 without any."""
        return int(self.births.max(initial=1))

    def __len__(self) -> int:
        return self.births.size

    @overload
    def __getitem__(self, place: int) -> Job: ...
    @overload
    def __getitem__(self, place: slice) -> tuple[Job, ...]: ...
    def __getitem__(self, place: int | slice) -> Job | tuple[Job, ...]:
        if isinstance(place, slice):
            return tuple(self._job(i) for i in range(*place.indices(len(self))))
        if not -len(self) <= place < len(self):
            raise IndexError(f"job {place}: expected one of {len(self)}")
        return self._job(int(place) % len(self))

    def __iter__(self) -> Iterator[Job]:
        return (self._job(i) for i in range(len(self)))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sequence):
            return NotImplemented
        return len(self) == len(other) and all(one == each for one, each in zip(self, other, strict=True))

    __hash__ = None  # type: ignore[assignment]


class ListedJobs(JobTable):
    """The table of jobs that are objects already, in order of submission; a column is made when it is read first."""

    def __init__(self, jobs: Sequence[Job]) -> None:
        self._jobs = jobs

    def __reduce__(self) -> tuple[Any, ...]:
        return ListedJobs, (self._jobs,)  # without the columns

    def __len__(self) -> int:
        return len(self._jobs)

    def __iter__(self) -> Iterator[Job]:
        return iter(self._jobs)

    def _job(self, place: int) -> Job:
        return self._jobs[place]

    @cached_property
    def births(self) -> NDArray[np.int64]:
        """Rounds of birth."""
        return self._numbers(lambda job: job.truth.birth)

    @cached_property
    def arrivals(self) -> NDArray[np.int64]:
        """Rounds of arrival; 0: never."""
        return self._numbers(lambda job: NEVER if job.arrival is None else job.arrival or -1)  # none is in round 0

    @cached_property
    def durations(self) -> NDArray[np.int64]:
        """Rounds that the work really takes."""
        return self._numbers(lambda job: job.duration)

    @cached_property
    def widths(self) -> NDArray[np.int64]:
        """Nodes needed."""
        return self._numbers(lambda job: job.truth.concurrency)

    @cached_property
    def checkpoints(self) -> NDArray[np.int64]:
        """Rounds of its work after which it is saved, each time; 0: never."""
        return self._numbers(lambda job: job.truth.checkpoint or 0)

    @cached_property
    def names(self) -> list[str]:
        """Names of the jobs."""
        return [job.name for job in self._jobs]

    @cached_property
    def owners(self) -> list[str]:
        """Names of their owners."""
        return [job.owner for job in self._jobs]

    @cached_property
    def tags(self) -> tuple[str, ...]:
        """Names of the tags that any job has."""
        return tuple(dict.fromkeys(tag for job in self._jobs for tag in job.tags))

    def tag(self, name: str, part: slice) -> Any:
        """Return a column of a tag."""
        return [job.tags.get(name) for job in self._jobs[part]]

    def _columns(self, max_delay: int) -> JobColumns | None:
        shaped = any(job.truth.shapes for job in self._jobs)
        if not all(_fits_a_row(job) and bool(job.truth.shapes) == shaped for job in self._jobs):
            return None
        laws = [_announced(job) for job in self._jobs]
        longest = max((_longest(job) for job in self._jobs), default=0)
        highest = self._numbers(lambda job: job.truth.value.highest, np.float64)
        return JobColumns(
            self.births,
            self.arrivals,
            self.durations,
            self.widths,
            self._numbers(lambda job: observed_duration(job.signal) is not None, np.bool_),
            np.array([longest for _, longest in laws], np.int64),
            np.array([shortest for shortest, _ in laws], np.int64),
            *_curves(self._jobs, max_delay),
            self._numbers(lambda job: job.truth.value.last),
            highest,
            self._numbers(lambda job: job.truth.restarts, np.bool_),
            self._numbers(lambda job: -1 if job.truth.patience is None else job.truth.patience),
            self.checkpoints,
            max_delay,
            (int(self.widths.max(initial=0)), longest, float(highest.max(initial=0.0))),
            lambda: _duration_laws(self._jobs),
            lambda: _reported_laws(self._jobs),
            lambda: self.owners,
            lambda: self.names,
            lambda row: self._jobs[row].truth,
            lambda row: self._jobs[row].signal,
            shaped,
        )

    def _numbers(self, of: Callable[[Job], Any], kind: Any = np.int64) -> NDArray[Any]:
        column = np.fromiter(map(of, self._jobs), kind, len(self._jobs))
        column.flags.writeable = False
        return column


def table_of(jobs: Sequence[Job]) -> JobTable:
    """Return the table of a workload's jobs: itself, if it is one."""
    return jobs if isinstance(jobs, JobTable) else ListedJobs(jobs)


def _fits_a_row(job: Job) -> bool:
    """Tell whether a job fits into a row: no rank, and no signal that is a number but not its duration."""
    return observed_duration(job.signal) in (None, job.duration) and not isinstance(job.truth.value, RankValue)


def _longest(job: Job) -> int:
    """Return the most rounds that a report names, rounds."""
    shapes = [max(durations) for shape in job.truth.shapes for durations in shape.on.values()]
    return max(job.truth.span[1], *shapes) if shapes else job.truth.span[1]


def _announced(job: Job) -> tuple[int, int]:
    """Return the shortest and the longest duration that a report announces, once its job has arrived."""
    if job.arrival is None:
        return job.truth.span
    durations = announced_durations(job.truth, job.arrival, job.signal)
    return int(durations.min()), int(durations.max())


def _duration_laws(jobs: Sequence[Job]) -> DurationLaws:
    """Return the law of each job's duration, given its arrival and what is seen then."""
    nothing = np.zeros(0, np.int64), np.zeros(0)
    points = [nothing if job.arrival is None else _points(job.truth.law, job.arrival, job.signal) for job in jobs]
    return DurationLaws.each(points, np.arange(len(jobs)))


def _reported_laws(jobs: Sequence[Job]) -> ReportedLaws:
    """Return the joint law of each report, and which case of it happens."""
    laws = [(job.truth.birth, job.truth.law) for job in jobs]
    cases = [
        None if job.arrival is None else law.group_of(job.arrival, job.signal)
        for job, (_, law) in zip(jobs, laws, strict=True)
    ]
    return ReportedLaws.each(laws, np.arange(len(jobs)), np.array([-1 if g is None else g for g in cases], np.int64))


def _points(law: Law, arrival: int, signal: Signal) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    own = law.points_of(arrival, signal)
    return law.durations[own], law.probabilities[own]


def _curves(jobs: Sequence[Job], max_delay: int) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.int64]]:
    """Return where the steps of each value curve begin, their values, and their last completions."""
    curves = [job.truth.value for job in jobs]
    if all(type(curve) is DeadlineValue for curve in curves):  # as most often: a step each
        values = np.array([curve.value for curve in curves], np.float64)  # type: ignore[attr-defined]
        lasts = np.array([curve.deadline for curve in curves], np.int64)  # type: ignore[attr-defined]
        return np.arange(len(jobs) + 1), values, lasts
    firsts = [min(job.truth.birth, curve.last or job.truth.birth) for job, curve in zip(jobs, curves, strict=True)]
    steps = [
        steps_of(curve, first, job.truth.birth + max_delay - 1)
        for curve, first, job in zip(curves, firsts, jobs, strict=True)
    ]
    begins = np.cumsum([0, *(each.size for each, _ in steps)])
    return begins, np.concatenate([v for v, _ in steps]), np.concatenate([t for _, t in steps])
