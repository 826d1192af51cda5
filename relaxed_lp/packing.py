r"""Placing tasks at a supply that binds in expectation: one linear program, compiled once.

.. math:: \max \sum_{i,s} v_{is} x_{is} \quad \text{s.t.} \quad \sum_{i,s} u_{i,t-s} x_{is} \le C \text{ in
   every round } t, \qquad \sum_s x_{is} \le w_i \text{ for every task}, \qquad x \ge 0

It is (11) for tasks of reports, (12) for those of launch plans, (23) for those of laws. Task i takes
:math:`u_{ik}` nodes in its k-th round: its width, or in (12) its width times the probability that it
still runs. Rounds after T do not exist, and do not bind.

The result is proven independently of the solver: the allocation is shrunk until it is
feasible, so ``value`` can be reached; ``dual_value`` is recomputed from the prices by weak duality,

.. math:: D(\lambda) = C \sum_t \lambda_t + \sum_i w_i \max\{0, \max_s v_{is} - \sum_t u_{i,t-s} \lambda_t\}

so nothing better than it can be reached.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from marketsched.mechanisms.arrays import inner
from marketsched.mechanisms.errors import InvalidParameterError, SolverError, TooLargeError
from marketsched.mechanisms.legal import Count, Positive, legal
from marketsched.mechanisms.memory import check_memory
from marketsched.relaxed_lp.tasks import Tasks, outward

CROWDED = 1.2  # node-rounds asked for over those on sale, from which on the simplex method is used: see `_method`
CLOSED = 1e-6  # largest gap of an optimum, as a share of its value
MOST_NONZEROS = 30_000_000  # of the matrix; the solver then holds about 10 GB
TOLERANCE = 1e-9  # of the solver, on rows and on reduced costs; values are scaled to at most 1


@dataclass(frozen=True, slots=True, eq=False)
class Bound:
    """The optimum of a linear program, and the prices that prove it.

    ``value`` is the worth of a feasible allocation, ``dual_value`` what ``prices`` prove by weak
    duality: the optimum lies between them, ``gap`` apart. They differ by rounding if ``optimal``.
    Otherwise the solver was stopped, and only ``dual_value`` bounds what schedules are worth.

    Examples
    --------
    >>> from marketsched.mechanisms import DeadlineValue, StatementOfWork
    >>> from marketsched.relaxed_lp import offline_bound
    >>> sow = StatementOfWork(1, 1, DeadlineValue(4.0, 2), [(1, 1, 1.0)])
    >>> bound = offline_bound([sow] * 6, capacity=5, horizon=3)
    >>> round(bound.value, 6), bound.optimal, bound.prices.round(6)
    (20.0, True, array([4., 0., 0.]))
    """

    value: float  # credits
    prices: NDArray[np.float64] = field(repr=False)  # (horizon,), credits per node and round; round 1 first
    gap: float  # credits, dual_value - value
    dual_value: float  # credits
    optimal: bool  # the gap is closed; False: stopped by the time limit
    allocation: NDArray[np.float64] = field(repr=False)  # (n_columns,), probability of each start
    seconds: float  # spent in the solver


class PackingProgram:
    """The program of the module for given tasks and any supply.

    Parameters
    ----------
    tasks : Tasks
        The tasks to place.
    horizon : int
        T, the one ``tasks`` were built for.

    Attributes
    ----------
    column_task, column_start : ndarray of int, shape (n_columns,)
        Which task and which round each variable stands for.
    usage : scipy.sparse.csc_array, shape (horizon, n_columns)
        Nodes that a start takes in each round.
    choice : scipy.sparse.csc_array, shape (n_tasks, n_columns)
        1 where a start belongs to a task.

    Raises
    ------
    InvalidParameterError
        If the horizon is out of range, a task starts after it, or a task has no start.
    TooLargeError
        If the matrix would have more than `MOST_NONZEROS` entries.

    Examples
    --------
    >>> from marketsched.mechanisms import DeadlineValue, StatementOfWork
    >>> from marketsched.relaxed_lp.tasks import tasks_of_reports
    >>> sow = StatementOfWork(1, 1, DeadlineValue(4.0, 2), [(1, 1, 1.0)])
    >>> program = PackingProgram(tasks_of_reports([sow] * 6, horizon=3), horizon=3)
    >>> [round(program.solve(supply).value, 6) for supply in (5, 2.5)]
    [20.0, 10.0]
    """

    @legal
    def __init__(self, tasks: Tasks, horizon: Count) -> None:
        self.tasks = tasks
        self.horizon = horizon
        self.column_task, self.column_start = tasks.start_task, tasks.starts
        if tasks.n_starts and int(tasks.starts.max()) > self.horizon:
            raise InvalidParameterError(
                place="horizon", value=horizon, legal=f"at least {tasks.starts.max()}, a task's start"
            )
        if (np.diff(tasks.offsets) < 1).any():
            raise InvalidParameterError(f"task {np.diff(tasks.offsets).argmin()} has no start: expected at least one")
        self.usage = usage_matrix(tasks, self.horizon)
        self.choice = choice_matrix(tasks)
        self.scale = float(tasks.values.max(initial=0.0)) or 1.0  # credits
        self._compiled: _Compiled | None = None

    @legal
    def solve(
        self, supply: Positive, *, time_limit: Positive | None = None, method: Literal["simplex", "ipm"] | None = None
    ) -> Bound:
        """Solve at this supply; only the first call compiles.

        Parameters
        ----------
        supply : float
            Nodes in each round, > 0.
        time_limit : float, optional
            Seconds that the solver may take. When they are over, what it has is returned, with
            ``optimal`` False: still feasible, still bounded, but the gap may be large.
        method : {"simplex", "ipm"}, optional
            Which of HiGHS's methods; None: the one that is likely to be faster.

        Raises
        ------
        SolverError
            If the solver is not installed, or ended in any other way than optimal or out of time.
        """
        if self.tasks.n_starts == 0:
            return Bound(0.0, np.zeros(self.horizon), 0.0, 0.0, True, np.zeros(0), 0.0)
        if self._compiled is None:
            self._compiled = _Compiled(self)
        x, prices, optimal, seconds = self._compiled.run(supply, method or self._method(supply), time_limit)
        allocation = self._feasible(x, supply)
        prices = np.maximum(prices, 0.0) * self.scale
        value, dual_value = float(inner(self.tasks.values, allocation)), self.dual_value(prices, supply)
        optimal = optimal and dual_value - value <= CLOSED * dual_value
        if not optimal:  # then no prices at all may prove more
            free = np.zeros(self.horizon)
            dual_value, prices = min((dual_value, prices), (self.dual_value(free, supply), free), key=lambda x: x[0])
        dual_value = max(outward(dual_value, self.tasks.values, self.tasks.offsets, self.horizon), value)
        for array in (prices, allocation):
            array.flags.writeable = False
        return Bound(value, prices, dual_value - value, dual_value, optimal, allocation, seconds)

    def dual_value(self, prices: NDArray[np.float64], supply: float) -> float:
        """Return D of the module, credits, at ``prices`` (horizon,) >= 0: above every allocation's value."""
        if self.tasks.n_starts == 0:
            return supply * float(prices.sum())
        surplus = self.tasks.values - self.usage.T @ prices
        best = np.maximum.reduceat(surplus, self.tasks.offsets[:-1])
        return supply * float(prices.sum()) + float(inner(self.tasks.weights, np.maximum(best, 0.0)))

    def _method(self, supply: float) -> str:
        """Return HiGHS's better method: "simplex" if rounds are crowded, else "ipm" (ending in a vertex, too).

        Where most tasks get what they want, optima are many and the dual simplex method wanders among
        them: with 800 jobs of five cases at 70 % load it took 33 s, the interior point method 0.8 s.
        In a crowd it is the faster one: 0.9 s against 4.7 s at 300 % load; but not with few starts per
        task (`Tasks.thinned`; recorded jobs at 180 %: 52 s against 6 s), for which callers ask for "ipm".
        """
        first = self.tasks.offsets[:-1]
        asked = float(inner(self.tasks.weights, self.usage.sum(axis=0)[first]))
        offered = supply * np.count_nonzero(np.bincount(self.usage.indices))
        return "simplex" if asked >= CROWDED * offered else "ipm"

    def _feasible(self, x: NDArray[np.float64], supply: float) -> NDArray[np.float64]:
        """Return ``x`` shrunk where it exceeds a bound, by rounding if the solver was done."""
        x = np.maximum(x, 0.0)
        taken = np.add.reduceat(x, self.tasks.offsets[:-1])
        over = taken > self.tasks.weights
        if over.any():
            factor = np.divide(self.tasks.weights, taken, out=np.ones_like(taken), where=over)
            x *= np.repeat(factor, np.diff(self.tasks.offsets))
        load = float((self.usage @ x).max())
        return x * (supply / load) if load > supply else x


def usage_matrix(tasks: Tasks, horizon: int) -> sparse.csc_array:
    """Return the nodes that each start takes in each round, shape (horizon, n_starts), made in one go.

    Raises
    ------
    TooLargeError
        If it would have more than `MOST_NONZEROS` entries, or more than memory holds.
    """
    task = tasks.start_task
    lengths = np.minimum(tasks.durations[task], horizon + 1 - tasks.starts)
    ends = np.zeros(task.size + 1, dtype=np.int64)
    np.cumsum(lengths, out=ends[1:])
    total = int(ends[-1])
    if total > MOST_NONZEROS:
        raise TooLargeError(
            f"the linear program has {total} non-zeros: expected at most {MOST_NONZEROS}; fewer jobs or starts make it "
            "smaller, and `dual_bound` and `report_bound` do without it"
        )
    check_memory(
        f"a linear program of {total} non-zeros", 40.0 * total, "fewer jobs, or a smaller max_delay or horizon"
    )
    rows = np.arange(total, dtype=np.int32)
    if tasks.survival is None:
        data = np.repeat(tasks.widths[task], lengths)
    else:
        begin = np.cumsum(tasks.durations) - tasks.durations  # where in `survival` each task begins
        data = tasks.survival[rows + np.repeat(begin[task] - ends[:-1], lengths)]
        data *= np.repeat(tasks.widths[task], lengths)
    rows += np.repeat((tasks.starts - 1 - ends[:-1]).astype(np.int32), lengths)
    return sparse.csc_array((data, rows, ends.astype(np.int32)), shape=(horizon, task.size))


def choice_matrix(tasks: Tasks) -> sparse.csc_array:
    """Return 1 where a start belongs to a task, shape (n_tasks, n_starts)."""
    ends = np.arange(tasks.n_starts + 1, dtype=np.int32)
    entries = np.ones(tasks.n_starts), tasks.start_task.astype(np.int32), ends
    return sparse.csc_array(entries, shape=(tasks.n_tasks, tasks.n_starts))


class _Compiled:
    """The program in cvxpy, the supply its only parameter; values scaled to at most 1."""

    def __init__(self, program: PackingProgram) -> None:
        self.cp = cp = modelling()
        tasks = program.tasks
        self.supply = cp.Parameter(nonneg=True)
        self.x = cp.Variable(tasks.n_starts, bounds=[0.0, None])
        self.fits = program.usage @ self.x <= self.supply
        once = program.choice @ self.x <= tasks.weights
        self.problem = cp.Problem(cp.Maximize((tasks.values / program.scale) @ self.x), [self.fits, once])

    def run(
        self, supply: float, method: str, time_limit: float | None
    ) -> tuple[NDArray[np.float64], NDArray[np.float64], bool, float]:
        """Return x, slot prices, whether they are optimal, and the seconds the solver took."""
        cp = self.cp
        self.supply.value = supply
        status = self._solve(method, time_limit)
        if method != "simplex" and status not in (cp.OPTIMAL, cp.USER_LIMIT):
            status = self._solve("simplex", time_limit)
        if status not in (cp.OPTIMAL, cp.USER_LIMIT):
            raise SolverError(f"the LP solver HiGHS ended with status {status!r}: expected 'optimal'")
        x, prices = _or_zero(self.x.value, self.x.size), _or_zero(self.fits.dual_value, self.fits.size)
        return x, prices, status == cp.OPTIMAL, float(self.problem.solver_stats.solve_time or 0.0)

    def _solve(self, method: str, time_limit: float | None) -> str | None:
        """Call the solver; return how it ended. Started from the last solution it would take 2.5 times as long."""
        cp = self.cp
        options: dict[str, Any] = {
            "highs_options": {"solver": method},
            "threads": 1,
            "primal_feasibility_tolerance": TOLERANCE,
            "dual_feasibility_tolerance": TOLERANCE,
        }
        if time_limit is not None:
            options["time_limit"] = time_limit
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # that a limit was hit: the result shows it
            try:
                self.problem.solve(solver=cp.HIGHS, warm_start=False, **options)
            except cp.error.SolverError:
                import highspy

                # HiGHS may have run in this thread with more threads: it then refuses one, until reset.
                highspy.Highs.resetGlobalScheduler(True)
                try:
                    self.problem.solve(solver=cp.HIGHS, warm_start=False, **options)
                except cp.error.SolverError as error:
                    raise SolverError(f"the LP solver HiGHS failed: {error}") from None
        status: str | None = self.problem.status
        return status


def _or_zero(found: NDArray[np.float64] | None, size: int) -> NDArray[np.float64]:
    """Return what a solver left behind, or zeros if it is not there or not finite."""
    if found is None or found.shape != (size,) or not np.isfinite(found).all():
        return np.zeros(size)
    return found


def modelling() -> Any:
    """Return cvxpy, or raise ``SolverError`` if it, or the solver behind it, is not installed."""
    try:
        import cvxpy
        import highspy  # noqa: F401
    except ImportError as error:
        raise SolverError(f"linear programs need cvxpy and highspy ({error}): pip install cvxpy highspy") from None
    if cvxpy.HIGHS not in cvxpy.installed_solvers():  # type: ignore[no-untyped-call]
        raise SolverError("cvxpy does not find its solver HIGHS: pip install --upgrade cvxpy highspy")
    return cvxpy
