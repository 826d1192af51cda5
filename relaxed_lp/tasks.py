r"""Tasks of the linear programs: one for each case of a job, with its useful starts.

A job's report turns into tasks :math:`(a, d, o)` of weight :math:`P(a, d, o)` (docs/mathematics.md,
Section 5). A task may start in any round :math:`s \ge a` in which it is still worth something:
:math:`V(s + d) > 0`, where V is 0 at and after birth + S and after T + 1. Four kinds of tasks:

* of reports, for (11): one for each point of each law;
* of launch plans, for (12): one for each (a, o), which may run for several durations;
* of laws over statements, for (23): those of (11) for each statement, weighted once more;
* of realised jobs: one for each job, of weight 1.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from marketsched.mechanisms.errors import InvalidParameterError
from marketsched.mechanisms.legal import Count, Whole, legal, listed
from marketsched.mechanisms.limits import LAST_ROUND, last_useful_completion
from marketsched.mechanisms.memory import check_memory
from marketsched.mechanisms.realised import RealisedJobs
from marketsched.mechanisms.sow import StatementOfWork
from marketsched.mechanisms.statement_law import StatementLaw, statement_laws

MOST_CREDITS = 1e290  # of all starts together: sums, and their products with a supply, stay finite

_Weighted = tuple[int, float, StatementOfWork]  # job, probability of this statement, the statement


@dataclass(frozen=True, slots=True, eq=False)
class Tasks:
    """Tasks and their useful starts; a task without one is left out. Arrays are read-only.

    Starts of task ``i`` are entries ``offsets[i] .. offsets[i + 1] - 1`` of ``starts`` and
    ``values``, earliest first. ``survival`` is None if durations are known; otherwise it holds, task
    after task, the probability that the task runs in the k-th round from its start on, for k from 0
    to ``durations[i] - 1``.

    Examples
    --------
    >>> from marketsched.mechanisms import DeadlineValue, StatementOfWork
    >>> sow = StatementOfWork(1, 1, DeadlineValue(4.0, 2), [(1, 1, 1.0)])
    >>> tasks = tasks_of_reports([sow, sow], horizon=3)
    >>> tasks.arrivals, tasks.durations, tasks.starts, tasks.values
    (array([1, 1]), array([1, 1]), array([1, 1]), array([4., 4.]))
    """

    arrivals: NDArray[np.int64]  # (n_tasks,), rounds
    durations: NDArray[np.int64]  # (n_tasks,), rounds; the longest, if not known
    widths: NDArray[np.float64]  # (n_tasks,), nodes
    weights: NDArray[np.float64]  # (n_tasks,), probabilities
    jobs: NDArray[np.int64]  # (n_tasks,), which job it belongs to: its index in what was given
    offsets: NDArray[np.int64]  # (n_tasks + 1,)
    starts: NDArray[np.int64]  # (offsets[-1],), rounds
    values: NDArray[np.float64]  # (offsets[-1],), credits, > 0, not weighted
    survival: NDArray[np.float64] | None = None  # (durations.sum(),), probabilities

    def __post_init__(self) -> None:
        for name in self.__slots__:
            array = getattr(self, name)
            if array is not None:
                array.flags.writeable = False

    @property
    def n_tasks(self) -> int:
        """Number of tasks."""
        return self.arrivals.size

    @property
    def n_starts(self) -> int:
        """Number of starts of all tasks together."""
        return self.starts.size

    @property
    def start_task(self) -> NDArray[np.int64]:
        """The task that each start belongs to, shape (n_starts,)."""
        return np.repeat(np.arange(self.n_tasks), np.diff(self.offsets))

    def fitting(self, capacity: float) -> Tasks:
        """Return the tasks at most ``capacity`` nodes wide; the others no schedule can run."""
        keep = self.widths <= capacity
        return self if keep.all() else self._where(keep, np.repeat(keep, np.diff(self.offsets)))

    @legal
    def thinned(self, starts_per_task: Count) -> Tasks:
        """Return the same tasks with at most this many starts each: first, last, others evenly spaced."""
        sizes = np.diff(self.offsets)
        rank = np.arange(self.n_starts) - np.repeat(self.offsets[:-1], sizes)
        # The i-th of k starts kept is number round(i (n - 1) / (k - 1)): rank is kept if it is such a number.
        gaps, steps = np.repeat(sizes - 1, sizes), max(starts_per_task - 1, 1)
        nearest = (2 * rank * steps + gaps) // np.maximum(2 * gaps, 1)  # the only i that can round to rank
        keep = (2 * nearest * gaps + steps) // (2 * steps) == rank
        if starts_per_task == 1:
            keep = rank == 0
        return self._where(np.ones(self.n_tasks, dtype=np.bool_), keep | np.repeat(sizes <= starts_per_task, sizes))

    def _where(self, tasks: NDArray[np.bool_], starts: NDArray[np.bool_]) -> Tasks:
        """Return the part in which both masks, (n_tasks,) and (n_starts,), are True."""
        kept = np.concatenate(([0], np.cumsum(starts)))[self.offsets]
        sizes = np.diff(kept)[tasks]
        return Tasks(
            self.arrivals[tasks],
            self.durations[tasks],
            self.widths[tasks],
            self.weights[tasks],
            self.jobs[tasks],
            _offsets(sizes),
            self.starts[starts],
            self.values[starts],
            None if self.survival is None else self.survival[np.repeat(tasks, self.durations)],
        )


def tasks_of_reports(sows: Iterable[StatementOfWork], horizon: int, max_delay: int | None = None) -> Tasks:
    """Return the tasks of (11): every (arrival, duration, signal) of every report, weighted by its probability.

    Parameters
    ----------
    sows : iterable of StatementOfWork
        The reports.
    horizon : int
        T, last round.
    max_delay : int, optional
        S: completions at birth + S or later are worth nothing. None: no such limit.

    Raises
    ------
    InvalidParameterError
        If something is not a statement of work.

    Examples
    --------
    >>> from marketsched.mechanisms import DeadlineValue
    >>> sow = StatementOfWork(1, 1, DeadlineValue(4.0, 3), [(1, 1, 0.5), (1, 2, 0.5)])
    >>> tasks = tasks_of_reports([sow], horizon=4)  # one task for each case
    >>> tasks.durations, tasks.weights
    (array([1, 2]), array([0.5, 0.5]))
    """
    horizon, max_delay = _checked_limits(horizon, max_delay)
    return _tasks_of_points([(j, 1.0, sow) for j, sow in enumerate(_checked(sows))], horizon, max_delay)


def tasks_of_laws(
    laws: Iterable[StatementLaw | StatementOfWork | Iterable[Sequence[object]]],
    horizon: int,
    max_delay: int | None = None,
    starts_per_task: int | None = None,
) -> Tasks:
    """Return the tasks of (23): those of every statement that a law may bring, times its probability there.

    Parameters
    ----------
    laws : iterable
        One per job: see `statement_laws`. Durations must be revealed.
    horizon, max_delay : int, optional
        As for `tasks_of_reports`.
    starts_per_task : int, optional
        Keep at most so many starts of each task (`Tasks.thinned`): what can be placed is then still
        feasible in (23), but its optimum is a bound no longer. None: all.

    Raises
    ------
    InvalidParameterError
        If something is not a law, or a statement hides its durations: Section 8 is for revealed durations only.

    Examples
    --------
    >>> from marketsched.mechanisms import DeadlineValue, StatementLaw
    >>> sow = StatementOfWork(1, 1, DeadlineValue(4.0, 2), [(1, 1, 1.0, "a")])
    >>> tasks_of_laws([StatementLaw([(0.5, sow), (0.5, None)])], horizon=3).weights
    array([0.5])
    """
    horizon, max_delay = _checked_limits(horizon, max_delay)
    weighted: list[_Weighted] = []
    for j, law in enumerate(statement_laws(laws)):
        for i, (sow, p) in enumerate(law.cases):
            if sow is None or p == 0:
                continue
            if not sow.revealed:
                raise InvalidParameterError(
                    f"laws[{j}], case {i}: durations hidden: expected signals that reveal the duration"
                )
            weighted.append((j, p, sow))
    tasks = _tasks_of_points(weighted, horizon, max_delay)
    return tasks if starts_per_task is None else tasks.thinned(starts_per_task)


def tasks_of_plans(sows: Iterable[StatementOfWork], horizon: int, max_delay: int | None = None) -> Tasks:
    r"""Return the tasks of (12): the cases that a launch plan distinguishes, one for each (arrival, signal).

    A start in round s is worth :math:`E[V(s + d) | a, o]`, the task uses its nodes in round t with
    probability :math:`Pr[d > t - s | a, o]`, and its weight is :math:`Pr[(a, o)]`. Durations
    revealed: the same tasks as those of `tasks_of_reports`.

    Parameters and errors are those of `tasks_of_reports`.

    Examples
    --------
    >>> from marketsched.mechanisms import DeadlineValue
    >>> sow = StatementOfWork(1, 1, DeadlineValue(4.0, 3), [(1, 1, 0.5), (1, 2, 0.5)])
    >>> tasks = tasks_of_plans([sow], horizon=4)  # the duration is hidden
    >>> tasks.starts, tasks.values
    (array([1, 2, 1]), array([4., 4., 4.]))
    """
    horizon, max_delay = _checked_limits(horizon, max_delay)
    rows: list[tuple[int, int, int, float, int, int]] = []  # arrival, duration, width, weight, job, starts
    tables: list[NDArray[np.float64]] = [np.zeros(0)]
    survivals: list[NDArray[np.float64]] = [np.zeros(0)]
    total = 0  # of all starts so far
    for job, sow in enumerate(_checked(sows)):
        law, last = sow.law, last_useful_completion(sow, max_delay, horizon)
        for g, a in enumerate(law.group_arrivals.tolist()):
            points = slice(law.offsets[g], law.offsets[g + 1])
            mass = float(law.probabilities[points].sum())
            if mass <= 0:
                continue
            shares = law.probabilities[points] / mass
            present = law.durations[points][shares > 0]
            shortest, longest = int(present[0]), int(present[-1])
            chances = np.zeros(longest + 1)  # of each duration, from 0 on
            chances[present] = shares[shares > 0]
            n = last - shortest - a + 1
            if n <= 0:
                continue
            total += n
            _check_starts(total)
            curve = np.concatenate((sow.value.table(a + shortest, n), np.zeros(longest - shortest)))
            tables.append(np.correlate(curve, chances[shortest:], "valid"))
            survivals.append(np.cumsum(chances[::-1])[::-1][1:])
            rows.append((a, longest, sow.concurrency, mass, job, n))
    table = np.array(rows, dtype=np.float64).reshape(-1, 6).T  # whole numbers here are far below 2**53
    a, d, jobs, sizes = (table[i].astype(np.int64) for i in (0, 1, 4, 5))
    known = all(part.size == 0 or part[-1] == part[0] for part in survivals)
    survival = None if known else np.concatenate(survivals)
    return _drop_worthless(a, d, table[2], table[3], jobs, sizes, _runs(a, sizes), np.concatenate(tables), survival)


def tasks_of_jobs(jobs: RealisedJobs) -> Tasks:
    """Return realised jobs as tasks of weight 1, or of their copies; ``jobs`` of a task is the job's index.

    Examples
    --------
    >>> from marketsched.mechanisms import DeadlineValue
    >>> sow = StatementOfWork(1, 1, DeadlineValue(4.0, 2), [(1, 1, 1.0)])
    >>> tasks = tasks_of_jobs(RealisedJobs.build([(sow, 1, 1)], horizon=3, max_delay=9))
    >>> tasks.starts, tasks.values
    (array([1]), array([4.]))
    """
    sizes = np.diff(jobs.offsets)
    _check_starts(int(sizes.sum()))
    return _drop_worthless(
        jobs.arrivals,
        jobs.durations,
        jobs.concurrency.astype(np.float64),
        np.ones(jobs.n_jobs) if jobs.copies is None else jobs.copies.astype(np.float64),
        np.arange(jobs.n_jobs),
        sizes,
        _runs(jobs.arrivals, sizes),
        jobs.values,
    )


def outward(bound: float, values: NDArray[np.float64], offsets: NDArray[np.int64], n_rounds: int) -> float:
    """Return a bound of jobs with these values that rounding, in sums over jobs and rounds, cannot have made too small.

    Values of job j are ``offsets[j] .. offsets[j + 1] - 1``.
    """
    begins = offsets[:-1][np.diff(offsets) > 0]
    terms = bound + (float(np.maximum.reduceat(values, begins).sum()) if begins.size else 0.0)
    return bound + float(np.finfo(np.float64).eps) * (2 * (offsets.size + n_rounds) + 16) * terms


@legal
def _checked_limits(horizon: Annotated[int, Whole(1, LAST_ROUND)], max_delay: Count | None) -> tuple[int, int]:
    """Return T and S, or say what is wrong. Without S, one that nothing within the horizon reaches."""
    return horizon, horizon + 1 if max_delay is None else max_delay


def _checked(sows: Iterable[StatementOfWork]) -> list[StatementOfWork]:
    """Return the statements, or say which one is none."""
    found: list[StatementOfWork] = listed("sows", "statements of work", sows)
    for j, sow in enumerate(found):
        if not isinstance(sow, StatementOfWork):
            raise InvalidParameterError(place=f"sows[{j}]", value=sow, legal="a StatementOfWork")
    return found


def _tasks_of_points(weighted: Sequence[_Weighted], horizon: int, max_delay: int) -> Tasks:
    """Return one task for each point of each statement's law. The loop is over statements only."""
    if not weighted:
        none = np.zeros(0, dtype=np.int64)
        return _drop_worthless(none, none, np.zeros(0), np.zeros(0), none, none, none, np.zeros(0))
    laws = [sow.law for _, _, sow in weighted]
    n_points = np.array([law.arrivals.size for law in laws])
    a, d = np.concatenate([law.arrivals for law in laws]), np.concatenate([law.durations for law in laws])
    weights = np.concatenate([p * law.probabilities for (_, p, _), law in zip(weighted, laws, strict=True)])
    last = np.array([last_useful_completion(sow, max_delay, horizon) for _, _, sow in weighted])
    # One stretch of each value curve serves all points: from the earliest completion to the last useful one.
    first = np.minimum.reduceat(a + d, _offsets(n_points)[:-1])
    lengths = np.maximum(last - first + 1, 0)
    _check_starts(int(lengths.sum()))
    curves = [
        sow.value.table(f, n)
        for (_, _, sow), f, n in zip(weighted, first.tolist(), lengths.tolist(), strict=True)
        if n > 0
    ]
    curve = np.concatenate([np.zeros(0), *curves])
    sizes = np.maximum(np.repeat(last, n_points) - d - a + 1, 0)
    sizes[weights <= 0] = 0
    _check_starts(int(sizes.sum()))
    begin = np.repeat(_offsets(lengths)[:-1] - first, n_points) + a + d  # where in `curve` each task's values begin
    widths = np.repeat(np.array([float(sow.concurrency) for _, _, sow in weighted]), n_points)
    jobs = np.repeat(np.array([j for j, _, _ in weighted]), n_points)
    return _drop_worthless(a, d, widths, weights, jobs, sizes, _runs(a, sizes), curve[_runs(begin, sizes)])


def _drop_worthless(
    arrivals: NDArray[np.int64],
    durations: NDArray[np.int64],
    widths: NDArray[np.float64],
    weights: NDArray[np.float64],
    jobs: NDArray[np.int64],
    sizes: NDArray[np.int64],
    starts: NDArray[np.int64],
    values: NDArray[np.float64],
    survival: NDArray[np.float64] | None = None,
) -> Tasks:
    """Return the tasks without starts of no value (a table may list none for a time), and without such tasks."""
    bad = np.flatnonzero(~np.isfinite(values))
    if bad.size:
        raise InvalidParameterError(f"a start in round {starts[bad[0]]} is worth {values[bad[0]]}: expected a number")
    if values.size and float(values.max()) > MOST_CREDITS / values.size:
        raise InvalidParameterError(
            f"values up to {values.max():g} credits: expected less, so that {values.size} of them can be added up"
        )
    tasks = Tasks(arrivals, durations, widths, weights, jobs, _offsets(sizes), starts, values, survival)
    useful = values > 0
    left = sizes if useful.all() else np.diff(np.concatenate(([0], np.cumsum(useful)))[tasks.offsets])
    return tasks if (left > 0).all() and useful.all() else tasks._where(left > 0, useful)


def _check_starts(n_starts: int) -> None:
    """Refuse more starts than memory holds, before they are written out."""
    at_once = 8 * n_starts * 8.0  # round, task and value of each, and what they are made of
    check_memory(f"a program over {n_starts} starts", at_once, "fewer jobs, or a smaller max_delay or horizon")


def _offsets(sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return where each of consecutive parts begins, and where the last ends, shape (sizes.size + 1,)."""
    offsets = np.zeros(sizes.size + 1, dtype=np.int64)
    np.cumsum(sizes, out=offsets[1:])
    return offsets


def _runs(first: NDArray[np.int64], sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return ``first[i], first[i] + 1, ...``, ``sizes[i]`` numbers, for each i in turn."""
    return np.arange(sizes.sum()) + np.repeat(first - _offsets(sizes)[:-1], sizes)
