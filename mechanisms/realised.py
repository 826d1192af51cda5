r"""Realised jobs as plain arrays: the input of hindsight bounds and comparisons.

Job :math:`j` became ready in round :math:`a_j`, ran :math:`d_j` rounds on :math:`c_j` nodes, and a
start in round :math:`s \ge a_j` was worth :math:`V_j(s + d_j)`, where V is 0 for completions at or
after birth + S and after T + 1 (the horizon ends the market; docs/mathematics.md 1 and 10). Curves are steps, a few
numbers a job, that compiled code walks through.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from marketsched.mechanisms.columns import NEVER, JobColumns, steps_of
from marketsched.mechanisms.errors import InvalidParameterError
from marketsched.mechanisms.legal import Count, Whole, legal
from marketsched.mechanisms.limits import LAST_ROUND, last_useful_completion
from marketsched.mechanisms.memory import check_memory
from marketsched.mechanisms.sow import StatementOfWork

MOST_BLOCKS = 16  # of a job between its checkpoints, before the last one
MANY_BLOCKS = 40_000  # of all jobs: more take minutes, and lower a bound by under a percent
_NO_STEPS = (np.zeros(0), np.zeros(0, np.int64))


@dataclass(frozen=True, eq=False)
class RealisedJobs:
    """Realised jobs; those born in the same round stand in order of submission. Arrays are read-only.

    Value curves are steps, as in `JobColumns`. Completions after ``useful_until`` are worth nothing; a job that never
    arrives, or runs longer than the platform allows, has no start at all.
    """

    births: NDArray[np.int64]  # (n_jobs,), rounds
    arrivals: NDArray[np.int64]  # (n_jobs,), rounds; NEVER for a job that never arrives
    durations: NDArray[np.int64]  # (n_jobs,), rounds
    concurrency: NDArray[np.int64]  # (n_jobs,), nodes
    useful_until: NDArray[np.int64]  # (n_jobs,), the last completion worth anything; 0: there is no start
    begins: NDArray[np.int64]  # (n_jobs + 1,), of the steps
    step_values: NDArray[np.float64]  # (begins[-1],), credits
    step_lasts: NDArray[np.int64]  # (begins[-1],), completion times
    horizon: int  # T, last round
    checkpoints: NDArray[np.int64]  # (n_jobs,), rounds of work after which it is saved, each time; 0: never
    copies: NDArray[np.int64] | None = None  # (n_jobs,), equal ones that each stands for; None: itself

    @classmethod
    @legal
    def of_columns(
        cls,
        jobs: JobColumns,
        *,
        horizon: Annotated[int, Whole(1, LAST_ROUND)],
        max_delay: Count,
        max_duration: Count | None = None,
    ) -> RealisedJobs:
        """Return jobs that are columns already; the other arguments as of `build`."""
        none = jobs.arrivals == NEVER
        if max_duration is not None:
            none |= jobs.durations > max_duration
        last = np.where(none, 0, jobs.useful(max_delay, horizon))
        last.flags.writeable = False
        steps = (jobs.begins, jobs.values, jobs.lasts)
        return cls(jobs.births, jobs.arrivals, jobs.durations, jobs.widths, last, *steps, horizon, jobs.checkpoints)

    @classmethod
    @legal
    def build(
        cls,
        jobs: Iterable[tuple[StatementOfWork, int | None, int]],
        *,
        horizon: Annotated[int, Whole(1, LAST_ROUND)],
        max_delay: Count,
        max_duration: Count | None = None,
    ) -> RealisedJobs:
        """Collect true statements of work and what became of them.

        Jobs are (statement, arrival, duration), those born in the same round in order of submission; the arrival is a
        round >= birth, or None if the job never arrives, and may lie outside the statement's own law. Completions at
        birth + S (``max_delay``) or later, and jobs that run longer than ``max_duration``, are worth nothing.
        InvalidParameterError if a job arrives before its birth.

        Examples
        --------
        >>> from marketsched.mechanisms.values import TableValue
        >>> sow = StatementOfWork(1, 2, TableValue({4: 8.0, 5: 6.5, 6: 2.0}), [(2, 2, 1.0)])
        >>> jobs = RealisedJobs.build([(sow, 2, 2), (sow, None, 2)], horizon=4, max_delay=12)
        >>> jobs.values, jobs.offsets
        (array([8. , 6.5]), array([0, 2, 2]))
        """
        births, arrivals, durations, concurrency, lasts, saves = (array("q") for _ in range(6))
        steps: list[tuple[NDArray[np.float64], NDArray[np.int64]]] = []
        for index, job in enumerate(_each(jobs)):
            sow, arrival, duration = _one(index, job)
            d = Whole(1).check(f"jobs[{index}] duration", duration)
            a = NEVER if arrival is None else Whole(sow.birth).check(f"jobs[{index}] arrival", arrival)
            last = last_useful_completion(sow, max_delay, horizon)
            there = a != NEVER and (max_duration is None or d <= max_duration) and last >= a + d
            births.append(sow.birth)
            arrivals.append(a)
            durations.append(d)
            concurrency.append(sow.concurrency)
            lasts.append(last if there else 0)
            saves.append(sow.checkpoint or 0)
            steps.append(steps_of(sow.value, a + d, last) if there else _NO_STEPS)
        born, ready, ran, nodes, useful, saved = (
            np.array(each, dtype=np.int64) for each in (births, arrivals, durations, concurrency, lasts, saves)
        )
        begins = np.cumsum([0, *(values.size for values, _ in steps)])
        values = np.concatenate([_NO_STEPS[0], *(values for values, _ in steps)])
        ends = np.concatenate([_NO_STEPS[1], *(ends for _, ends in steps)])
        for column in (born, ready, ran, nodes, useful, begins, values, ends, saved):
            column.flags.writeable = False
        return cls(born, ready, ran, nodes, useful, begins, values, ends, horizon, saved)

    @property
    def interruptible(self) -> NDArray[np.bool_]:
        """Which jobs can save a part of their work, and so run in several pieces, shape (n_jobs,)."""
        return (self.checkpoints > 0) & (self.checkpoints < self.durations) & self.useful

    def in_blocks(self, capacity: float) -> RealisedJobs:
        """Return jobs of which no schedule is worth less than one of these that interrupts and resumes their work.

        A job that saves its work is split at its checkpoints. Each block is worth its share of the work times the value
        of the completion if all that follows runs without a break (docs/mathematics.md, Section 15). Of more than
        `MOST_BLOCKS` some stand for several (`copies`). Jobs wider than ``capacity`` are left out.
        """
        split = self.interruptible & (self.concurrency <= capacity)
        if not split.any():
            return self
        every = np.where(split, self.checkpoints, np.maximum(self.durations, 1))
        full = (self.durations - 1) // every  # blocks before the last one
        groups = np.minimum(full, max(1, min(MOST_BLOCKS, MANY_BLOCKS // int(split.sum()))))
        of = np.repeat(np.arange(self.n_jobs), groups + 1)
        k = np.arange(of.size) - np.repeat(np.cumsum(groups + 1) - groups - 1, groups + 1)
        g = np.maximum(groups, 1)[of]
        first, beyond = k * full[of] // g, (k + 1) * full[of] // g  # of the blocks that a group stands for
        last = k == groups[of]
        first, beyond = np.where(last, full[of], first), np.where(last, full[of] + 1, beyond)
        length = np.where(last, self.durations[of] - full[of] * every[of], every[of])
        after = self.durations[of] - np.minimum(beyond * every[of], self.durations[of])  # rounds of later blocks
        steps = np.diff(self.begins)[of]
        entries = np.repeat(self.begins[:-1][of] - np.cumsum(steps) + steps, steps) + np.arange(steps.sum())
        values = self.step_values.copy()
        for j in np.flatnonzero(split).tolist():  # a table may list no value for a time, and then one again
            own = slice(self.begins[j], self.begins[j + 1])
            values[own] = np.maximum.accumulate(values[own][::-1])[::-1]
        useful = np.where((self.useful_until > 0)[of], np.maximum(self.useful_until[of] - after, 0), 0)
        return RealisedJobs(
            self.births[of], self.arrivals[of] + first * every[of], length, self.concurrency[of], useful,
            np.concatenate([[0], np.cumsum(steps)]), values[entries] * np.repeat(length / self.durations[of], steps),
            self.step_lasts[entries] - np.repeat(after, steps), self.horizon, np.zeros_like(of), beyond - first,
        )  # fmt: skip

    @cached_property
    def offsets(self) -> NDArray[np.int64]:
        """Where the values of each job begin in ``values``, shape (n_jobs + 1,)."""
        counts = np.maximum(0, self.useful_until - self.durations - self.arrivals + 1)
        counts[self.useful_until == 0] = 0
        offsets = np.concatenate([[0], np.cumsum(counts)])
        offsets.flags.writeable = False
        return offsets

    @cached_property
    def values(self) -> NDArray[np.float64]:
        """The value of each start, shape (offsets[-1],), credits.

        ``values[offsets[j] + k]`` is what job ``j`` is worth if it starts in round ``arrivals[j] + k``. Later starts
        are worth nothing. Many times as long as the steps, and made when it is read first; TooLargeError without the
        memory.
        """
        n_values = int(self.offsets[-1])
        check_memory(
            f"the values of {n_values} starts of {self.n_jobs} jobs",
            2 * 8.0 * n_values,
            "fewer jobs, or a smaller max_delay or horizon",
        )
        values = np.zeros(n_values)
        firsts = self.arrivals + self.durations
        _expand_kernel(self.offsets, firsts, self.begins, self.step_values, self.step_lasts, values)
        values.flags.writeable = False
        return values

    def check_horizon(self, horizon: int) -> None:
        """Raise InvalidParameterError if ``horizon`` is not the one the jobs were built for."""
        if horizon != self.horizon:
            raise InvalidParameterError(
                place="horizon", value=horizon, legal=f"{self.horizon}, the horizon of these jobs"
            )

    @property
    def n_jobs(self) -> int:
        """Number of jobs, those without any start included."""
        return self.arrivals.size

    @cached_property
    def by_arrival(self) -> NDArray[np.int64]:
        """The jobs that arrive and have a start of value, in order of (arrival, submission)."""
        order = np.lexsort((self.births, self.arrivals))  # stable: equal ones stay in order of submission
        return order[self.useful[order]]

    def step_ranges(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Return of each step its job and its first and last completion; none is left if the first is the later one."""
        of = np.repeat(np.arange(self.n_jobs), np.diff(self.begins))
        before = np.zeros(of.size, np.int64)  # the last completion of the step before
        before[1:] = np.where(of[1:] == of[:-1], self.step_lasts[:-1], 0)
        first = np.maximum(before + 1, (self.arrivals + self.durations)[of])
        return of, first, np.minimum(self.step_lasts, self.useful_until[of])

    @property
    def useful(self) -> NDArray[np.bool_]:
        """Which jobs have a start worth something, shape (n_jobs,)."""
        return np.diff(self.offsets) > 0


def _each(jobs: Any) -> Iterator[Any]:
    """Return what goes through the jobs, one at a time: a list of a million would be one array too many."""
    try:
        return iter(jobs)
    except TypeError:
        raise InvalidParameterError(
            place="jobs", value=jobs, legal="(StatementOfWork, arrival, duration) for each job"
        ) from None


def _one(index: int, job: Any) -> tuple[StatementOfWork, int | None, int]:
    """Return the three entries of a job, or say what it is."""
    fields = job if type(job) is tuple else tuple(job) if isinstance(job, Iterable) else ()
    if len(fields) != 3 or not isinstance(fields[0], StatementOfWork):
        raise InvalidParameterError(place=f"jobs[{index}]", value=job, legal="(StatementOfWork, arrival, duration)")
    return fields


@njit(cache=True)
def _expand_kernel(offsets, firsts, begins, step_values, step_lasts, values):  # type: ignore[no-untyped-def]
    """Fill the value of each start of each job, from its first completion on."""
    for j in range(firsts.size):
        step = begins[j]
        for k in range(offsets[j + 1] - offsets[j]):
            while step_lasts[step] < firsts[j] + k:
                step += 1
            values[offsets[j] + k] = step_values[step]
