r"""The best schedule in hindsight, exactly: a mixed integer program over start rounds.

For jobs as they really turned out, one binary variable for each job and useful start:

.. math:: \max \sum_{j,s} V_j(s + d_j) x_{js} \quad \text{s.t.} \quad \sum_{j,s} c_j [s \le t < s + d_j]
   x_{js} \le C \text{ in every round } t, \qquad \sum_s x_{js} \le 1 \text{ for every job}

It is (11) of realised jobs (docs/mathematics.md) in whole numbers: what a run's welfare is compared
with. Before HiGHS is asked there is a schedule, the better of two first-come ones, and a bound, (29);
it searches on one thread from the one towards the other, and stops where they meet. So a stopped
search, too, has a schedule and a bound. The schedule is checked round by round before it is returned.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from marketsched.mechanisms.auctions.flat_price import best_first_come, first_come_welfare
from marketsched.mechanisms.errors import InvalidParameterError, SolverError, TooLargeError
from marketsched.mechanisms.legal import Count, Positive, Whole, legal
from marketsched.mechanisms.realised import RealisedJobs
from marketsched.mechanisms.sow import StatementOfWork
from marketsched.relaxed_lp.duality import dual_bound
from marketsched.relaxed_lp.packing import choice_matrix, usage_matrix
from marketsched.relaxed_lp.tasks import Tasks, outward, tasks_of_jobs

TOLERANCE = 1e-9  # of the solver, whose values are scaled to at most 1; and of a gap that counts as closed
MOST_STARTS = 150_000  # HiGHS sets up its search in a time that grows with the square, and cannot be stopped there


@dataclass(frozen=True, slots=True, eq=False)
class Optimum:
    """A schedule, its value, and an upper bound on every schedule's value.

    Examples
    --------
    >>> from marketsched.mechanisms import DeadlineValue, StatementOfWork
    >>> sow = StatementOfWork(1, 1, DeadlineValue(4.0, 2), [(1, 1, 1.0)])
    >>> jobs = RealisedJobs.build([(sow, 1, 1)] * 6, horizon=3, max_delay=9)
    >>> best = hindsight_optimum(jobs, capacity=5, horizon=3)
    >>> best.value, best.proven, int((best.starts > 0).sum())
    (20.0, True, 5)
    """

    value: float  # credits
    starts: NDArray[np.int64] = field(repr=False)  # (n_jobs,), rounds; 0 where the job is not run
    proven: bool  # no schedule is worth more
    bound: float  # credits; no schedule is worth more than this
    gap: float  # credits, bound - value
    nodes: int  # of the search tree
    seconds: float  # spent in the solver


@legal
def hindsight_optimum(
    jobs: RealisedJobs | Iterable[tuple[StatementOfWork, int | None, int]],
    capacity: Count,
    horizon: Count,
    *,
    max_delay: int | None = None,
    time_limit: Positive = 60.0,
    node_limit: int | None = None,
) -> Optimum:
    """Find the best schedule of jobs as they really turned out.

    Parameters
    ----------
    jobs : RealisedJobs, or iterable of (StatementOfWork, arrival, duration)
        What really happened; at least one job. An arrival of None: the job never arrives.
    capacity : int
        C, nodes. Wider jobs are not run.
    horizon : int
        T, last round; that of ``jobs``, if they are `RealisedJobs`.
    max_delay : int, optional
        S: completions at birth + S or later are worth nothing. None: no such limit, or the one that
        `RealisedJobs` were built with.
    time_limit : float
        Seconds that the solver may take; with 10^5 useful starts it notices up to ten seconds late.
        Where it stops depends on the machine.
    node_limit : int, optional
        Nodes of the search tree that the solver may open: a limit that gives the same everywhere.

    Returns
    -------
    Optimum
        If ``proven``, the best schedule, up to rounding. Otherwise the best one found; the value of the best schedule
        lies between ``value`` and ``bound``. With more than `MOST_STARTS`
        useful starts, or more than memory holds, the solver is not run. Where jobs save their work, ``bound`` holds for
        schedules that interrupt them (`RealisedJobs.in_blocks`), and ``starts`` interrupt none.

    Raises
    ------
    InvalidParameterError
        If the horizons differ, or there is no job.
    SolverError
        If the solver is not installed, or ended in any other way than optimal or stopped by a limit.
    KeyboardInterrupt
        On Ctrl-C, as soon as the solver has let go.

    Examples
    --------
    >>> from marketsched.mechanisms import TableValue
    >>> sow = StatementOfWork(1, 1, TableValue({2: 5.0, 3: 3.0}), [(1, 1, 1.0)])
    >>> best = hindsight_optimum([(sow, 1, 1)] * 3, capacity=1, horizon=3)
    >>> best.value, sorted(best.starts.tolist()), best.proven
    (8.0, [0, 1, 2], True)
    """
    if node_limit is not None:
        node_limit = Whole(0).check("node_limit", node_limit)
    realised = _as_realised(jobs, horizon, max_delay)
    tasks = tasks_of_jobs(realised).fitting(capacity)
    if not tasks.n_starts:
        return _optimum(realised, np.zeros(realised.n_jobs, dtype=np.int64), 0.0, True)
    first = max(
        (first_come_welfare(realised, capacity, horizon, 0.0), best_first_come(realised, capacity, horizon)),
        key=lambda outcome: outcome.welfare,
    )
    starts, bound = first.starts, dual_bound(realised, capacity, horizon).value
    if tasks.n_starts > MOST_STARTS or _closed(first.welfare, bound):
        return _optimum(realised, starts, bound, False)
    pieces = realised.in_blocks(capacity)
    whole = pieces.copies is None
    if pieces.copies is not None and (pieces.copies > 1).any():
        return _optimum(realised, starts, bound, False)
    try:
        program = _ScheduleProgram(tasks_of_jobs(pieces).fitting(capacity), capacity, horizon)
    except TooLargeError:
        return _optimum(realised, starts, bound, False)
    program.solve(starts if whole else np.zeros(pieces.n_jobs, np.int64), bound, time_limit, node_limit)
    found = program.starts(realised.n_jobs) if whole else None
    if found is not None and _worth(realised, found) >= first.welfare:
        starts = found
    _check_schedule(realised, starts, capacity)
    bound, optimal = min(bound, program.bound), whole and program.optimal
    return _optimum(realised, starts, bound, optimal, program.nodes, program.seconds)


def _closed(value: float, bound: float) -> bool:
    """Return whether a schedule of this value is proven to be the best by this bound."""
    return bound - value <= TOLERANCE * bound


def _as_realised(
    jobs: RealisedJobs | Iterable[tuple[StatementOfWork, int | None, int]], horizon: int, max_delay: int | None
) -> RealisedJobs:
    """Return realised jobs, or say what is wrong with them."""
    if not isinstance(jobs, RealisedJobs):
        jobs = RealisedJobs.build(jobs, horizon=horizon, max_delay=horizon + 1 if max_delay is None else max_delay)
    elif max_delay is not None:
        raise InvalidParameterError(place="max_delay", value=max_delay, legal="None, as RealisedJobs have it built in")
    jobs.check_horizon(horizon)
    if not jobs.n_jobs:
        raise InvalidParameterError("jobs is empty: expected at least one job")
    return jobs


def _optimum(
    jobs: RealisedJobs, starts: NDArray[np.int64], bound: float, optimal: bool, nodes: int = 0, seconds: float = 0.0
) -> Optimum:
    """Return the result for a checked schedule; the solver's bound may be below its value by rounding."""
    value = _worth(jobs, starts)
    bound = max(bound, value)
    starts.flags.writeable = False
    return Optimum(value, starts, optimal or _closed(value, bound), bound, bound - value, nodes, seconds)


def _worth(jobs: RealisedJobs, starts: NDArray[np.int64]) -> float:
    """Return the value of a schedule, credits."""
    run = np.flatnonzero(starts)
    return float(jobs.values[jobs.offsets[run] + starts[run] - jobs.arrivals[run]].sum())


def _check_schedule(jobs: RealisedJobs, starts: NDArray[np.int64], capacity: int) -> None:
    """Raise ``SolverError`` if a job starts when it may not, or a round is overloaded."""
    run = np.flatnonzero(starts)
    late = starts[run] - jobs.arrivals[run]
    if not ((late >= 0) & (late < np.diff(jobs.offsets)[run])).all():
        raise SolverError("the solver HiGHS returned a schedule that starts a job in a round of no value")
    change = np.zeros(jobs.horizon + 2, dtype=np.int64)
    np.add.at(change, starts[run], jobs.concurrency[run])
    np.subtract.at(change, starts[run] + jobs.durations[run], jobs.concurrency[run])
    load = np.cumsum(change)
    if load.max() > capacity:
        t = int(load.argmax())
        raise SolverError(f"the solver HiGHS returned a schedule of {load[t]} nodes in round {t}; there are {capacity}")


class _ScheduleProgram:
    """The program of the module in HiGHS; values scaled to at most 1."""

    def __init__(self, tasks: Tasks, capacity: int, horizon: int) -> None:
        highspy = _highspy()
        self.tasks, self.scale = tasks, float(tasks.values.max())
        n = tasks.n_starts
        matrix = sparse.vstack([usage_matrix(tasks, horizon), choice_matrix(tasks)], format="csc")
        lp = highspy.HighsLp()
        lp.num_col_, lp.num_row_ = n, horizon + tasks.n_tasks
        lp.col_cost_ = -tasks.values / self.scale
        lp.col_lower_, lp.col_upper_ = np.zeros(n), np.ones(n)
        lp.row_lower_ = np.full(lp.num_row_, -highspy.kHighsInf)
        lp.row_upper_ = np.concatenate((np.full(horizon, float(capacity)), np.ones(tasks.n_tasks)))
        a = lp.a_matrix_
        a.format_, a.start_, a.index_, a.value_ = (
            highspy.MatrixFormat.kColwise,
            matrix.indptr,
            matrix.indices,
            matrix.data,
        )
        self._solver = highspy.Highs()
        self._set(
            output_flag=False,
            threads=1,
            mip_rel_gap=0.0,
            mip_abs_gap=TOLERANCE,
            mip_feasibility_tolerance=TOLERANCE,
            dual_feasibility_tolerance=TOLERANCE / 10,  # at the default, 1e-7, jobs worth less would count nothing
            primal_feasibility_tolerance=TOLERANCE,
        )
        self._solver.passModel(lp)
        whole = np.full(n, int(highspy.HighsVarType.kInteger), dtype=np.uint8)
        self._solver.changeColsIntegrality(n, np.arange(n, dtype=np.int32), whole)
        self.optimal, self.bound, self.nodes, self.seconds = False, np.inf, 0, 0.0

    def _set(self, **options: Any) -> None:
        for name, value in options.items():
            self._solver.setOptionValue(name, value)

    def solve(self, first: NDArray[np.int64], enough: float, time_limit: float, node_limit: int | None) -> None:
        """Run the solver from a first schedule, (n_jobs,) start rounds, on, until one is worth ``enough``."""
        highspy, tasks = _highspy(), self.tasks
        self._set(time_limit=time_limit, objective_target=-(1 - TOLERANCE) * enough / self.scale)
        if node_limit is not None:
            self._set(mip_max_nodes=node_limit)
        known = highspy.HighsSolution()
        known.col_value = (tasks.starts == first[tasks.jobs[tasks.start_task]]).astype(np.float64)
        self._solver.setSolution(known)
        _interruptible(self._solver)
        status, info = self._solver.getModelStatus(), self._solver.getInfo()
        ends = highspy.HighsModelStatus
        self.optimal = status == ends.kOptimal
        if not self.optimal and status not in (ends.kTimeLimit, ends.kSolutionLimit, ends.kObjectiveTarget):
            raise SolverError(f"the solver HiGHS ended with {status}: expected optimal, or stopped by a limit")
        self.nodes, self.seconds = max(0, int(info.mip_node_count)), float(self._solver.getRunTime())
        if np.isfinite(info.mip_dual_bound):
            self.bound = outward(-float(info.mip_dual_bound) * self.scale, tasks.values, tasks.offsets, 0)

    def starts(self, n_jobs: int) -> NDArray[np.int64] | None:
        """Return the start round of each job, 0: not run; None if the solver has no schedule."""
        x = np.asarray(self._solver.getSolution().col_value)
        if x.size != self.tasks.n_starts:
            return None
        chosen = np.flatnonzero(x > 0.5)
        starts = np.zeros(n_jobs, dtype=np.int64)
        starts[self.tasks.jobs[self.tasks.start_task[chosen]]] = self.tasks.starts[chosen]
        return starts


def _interruptible(solver: Any) -> None:
    """Run the solver in a thread of its own, so that Ctrl-C is noticed here and stops it.

    The solver's pool of threads belongs to the thread that runs it: whatever others in this process
    do with HiGHS, one thread is what it gets here.
    """
    solver.HandleUserInterrupt = True

    def run() -> None:
        solver.run()
        type(solver).resetGlobalScheduler(False)

    thread = threading.Thread(target=run, name="hindsight", daemon=True)
    thread.start()
    try:
        while thread.is_alive():
            thread.join(0.1)
    except KeyboardInterrupt:
        solver.cancelSolve()
        thread.join()
        raise


def _highspy() -> Any:
    """Return highspy, or raise ``SolverError`` if it is not installed."""
    try:
        import highspy
    except ImportError as error:
        raise SolverError(f"the exact optimum needs highspy ({error}): pip install highspy") from None
    return highspy
