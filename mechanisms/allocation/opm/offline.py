"""The optimum with all jobs and service rates known: the benchmark of OPM (6)-(7).

P1 with ``theta_i`` in place of ``theta_i(t)`` and fractional shares is a concave program. Rates do
not change over time, so that only the time matters which machines of one kind (same price, same
rate) give to a job between two arrivals or deadlines:

    maximise sum_j F_j(X_j),  X_j = sum theta_c y[j,c,k],
    s.t. sum_j y[j,c,k] <= (machines of kind c) * (slots of interval k),  sum p_c y[j,c,k] <= B_j,  y >= 0.

``F_j`` is concave in one number, so a linear program with tangents of ``F_j`` bounds it from above,
and every solution tells where the next tangents belong (Kelley's method). The value is that of a plan repaired to be
feasible; the bound is the Lagrangian dual at the solver's multipliers, computed here:

    sum w[i,k] T_k + sum kappa_j B_j + sum_j max_X (F_j(X) - s_j X),  w[i,k] = max_j (s_j theta_i - kappa_j p_i)^+,

over machines i as they are, for any s, kappa >= 0. Machines that differ may therefore be put
together into a few kinds, each with its mean rate and price. A plan for kinds gives every machine of a kind the same
shares, does the same work at the same cost, and is feasible; the bound holds for the machines themselves.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import linprog
from scipy.sparse import coo_array, csr_array, hstack, vstack

from marketsched.mechanisms.allocation.opm.machine_jobs import MachineJobs
from marketsched.mechanisms.arrays import float_array
from marketsched.mechanisms.errors import InvalidParameterError, SolverError, TooLargeError
from marketsched.mechanisms.legal import Count, OpenShare, Whole, legal

FLOATS = NDArray[np.float64]
LARGEST_PROGRAM = 4_000_000  # variables
FIRST_TANGENTS = np.geomspace(1e-4, 1.0, 13)  # at these parts of the most work a job can get


@dataclass(frozen=True, slots=True)
class _OfflineOptimum:
    """A feasible plan and a bound that no plan exceeds."""

    value: float  # objective of the plan; upper bound on every plan's
    bound: float
    works: FLOATS  # (N,), X_j

    @property
    def gap(self) -> float:
        """Certified relative gap, (bound - value) / bound."""
        return (self.bound - self.value) / self.bound if self.bound > 0.0 else 0.0


@legal
def offline_optimum(
    jobs: MachineJobs,
    prices: ArrayLike,
    rates: ArrayLike,
    *,
    objective: str = "utility",
    tolerance: OpenShare = 1e-4,
    max_programs: Count = 25,
    most_kinds: int | None = None,
) -> _OfflineOptimum:
    """Return the best fractional plan with known rates.

    Parameters
    ----------
    jobs : MachineJobs
    prices, rates : array_like of float, shape (M,)
        p_i >= 0 and theta_i in [0, 1].
    objective : str
        "utility": sum of f_j(X_j), as P1 says and OPM (7) refers to. "per-slot": sum of
        (d_j - a_j) f_j(X_j / (d_j - a_j)), the terms of OPM (6); the same plan for a single job.
    tolerance, max_programs : float, int
        Relative gap at which to stop, and linear programs solved at most.
    most_kinds : int or None
        More kinds are grouped into this many by similar rates. The plan is then not quite the best; the bound still
        holds. The search ends once more programs bring less than a tenth of the tolerance; the gap, which
        is then that of the kinds, may stay above it.

    Raises
    ------
    TooLargeError
        If the program would have more than 4 million variables.
    SolverError
        If a program fails, or the gap is not reached.

    Examples
    --------
    >>> jobs = MachineJobs([0], [4], [2.0], [1.0], [0.5])  # the budget pays for four slots of half a credit
    >>> found = offline_optimum(jobs, prices=[0.5], rates=[1.0])
    >>> round(found.value, 3)
    2.0
    """
    cost = float_array("prices", prices, (None,), lowest=0.0)
    speed = float_array("rates", rates, cost.shape, lowest=0.0, highest=1.0)
    if not jobs.size or not speed.max(initial=0.0):
        raise InvalidParameterError(f"{jobs.size} jobs, highest rate {speed.max(initial=0.0)}: expected some of both")
    kinds = _like_rate(cost, speed, most_kinds)
    program = _TangentProgram(jobs, cost, speed, kinds, _amplitudes(jobs, objective))
    best: _OfflineOptimum | None = None
    bound, gap = np.inf, np.inf
    for _ in range(max_programs):
        amounts, dual_bound = program.solve()
        bound = min(bound, dual_bound)
        plan = program.feasible(amounts)
        value = program.value(plan)
        if best is None or value > best.value:
            best = _OfflineOptimum(value, np.inf, program.works(plan))
        before, gap = gap, bound - best.value
        if gap <= tolerance * bound or (kinds is not None and before - gap <= 0.1 * tolerance * bound):
            return replace(best, bound=max(bound, best.value))
        program.add_tangents(program.works(amounts))
    assert best is not None
    raise SolverError(
        f"gap {gap / bound:.2e} after {max_programs} programs: expected {tolerance:g}; allow more programs"
    )


def regret(jobs: MachineJobs, optimum: _OfflineOptimum, works: ArrayLike) -> float:
    """Return Reg_T of OPM (6) for the work that the jobs got; ``works`` has shape (N,)."""
    got = float_array("works", works, (jobs.size,), lowest=0.0)
    return float((jobs.utilities_per_slot(optimum.works) - jobs.utilities_per_slot(got)).sum())


def _amplitudes(jobs: MachineJobs, objective: str) -> FLOATS:
    """Return A_j of F_j(X) = A_j X^beta_j."""
    if objective == "utility":
        return np.array(jobs.weights)
    if objective == "per-slot":
        return np.asarray(jobs.weights * jobs.durations ** (1.0 - jobs.exponents))
    raise InvalidParameterError(f"objective = {objective!r}: expected 'utility' or 'per-slot'")


def _like_rate(prices: FLOATS, rates: FLOATS, most: int | None) -> NDArray[np.int64] | None:
    """Return kinds of machines next to each other in rate, at most so many; None: there are no more than that."""
    if most is None or len(np.unique(np.stack([prices, rates]), axis=1).T) <= Whole(1).check("most_kinds", most):
        return None
    kinds = np.empty(rates.size, dtype=np.int64)
    for kind, group in enumerate(np.array_split(np.argsort(rates, kind="stable"), most)):
        kinds[group] = kind
    return kinds


class _TangentProgram:
    """The linear program with tangents; amounts are parts of what a kind offers in an interval."""

    def __init__(
        self, jobs: MachineJobs, prices: FLOATS, rates: FLOATS, kinds: NDArray[np.int64] | None, amplitudes: FLOATS
    ) -> None:
        self.jobs, self.amplitudes = jobs, amplitudes
        pairs, same, alike = np.unique(np.stack([prices, rates]), axis=1, return_inverse=True, return_counts=True)
        self.kinds = np.asarray(same, dtype=np.int64).reshape(-1) if kinds is None else kinds
        self.machines = (*pairs, alike)  # price, rate and number of machines that are the same
        counts = np.bincount(self.kinds)
        self.prices, self.rates = pairs
        if kinds is not None:
            self.prices, self.rates = (np.bincount(kinds, each) / counts for each in (prices, rates))
        self.breakpoints = np.unique(np.concatenate([jobs.arrivals, jobs.deadlines]))
        self.offered = np.outer(counts, np.diff(self.breakpoints)).astype(
            np.float64
        )  # (kinds, intervals), machine-slots
        first = np.searchsorted(self.breakpoints, jobs.arrivals)
        spans = np.searchsorted(self.breakpoints, jobs.deadlines) - first
        useful = np.flatnonzero(self.rates > 0.0)
        size = int(spans.sum()) * useful.size
        if size > LARGEST_PROGRAM:
            raise TooLargeError(
                f"the program would have {size} variables ({useful.size} kinds of machines, {int(spans.sum())} pairs "
                f"of job and interval): expected at most {LARGEST_PROGRAM}; fewer kinds or jobs make it smaller"
            )
        job = np.repeat(np.arange(jobs.size), spans)
        interval = np.arange(job.size) - np.repeat(np.cumsum(spans) - spans, spans) + np.repeat(first, spans)
        self.job, self.interval = np.repeat(job, useful.size), np.repeat(interval, useful.size)
        self.kind = np.tile(useful, job.size)
        self.amount = self.offered[self.kind, self.interval]
        self._limit_works()
        self._build()

    def _limit_works(self) -> None:
        """Bound every job's work from above: all machines all the time, or the whole budget at the best rate."""
        jobs = self.jobs
        everything = np.bincount(self.job, self.amount * self.rates[self.kind], minlength=jobs.size)
        useful = self.rates > 0.0
        with np.errstate(divide="ignore"):
            per_credit = float(np.max(self.rates[useful] / self.prices[useful]))
        self.most = np.minimum(everything, jobs.budgets * per_credit)

    def _build(self) -> None:
        """Assemble rows: capacity of (kind, interval), budgets, then tangents."""
        n, columns = self.jobs.size, self.job.size
        n_kinds, n_intervals = self.offered.shape
        at = np.arange(columns)
        capacity = coo_array(
            (np.ones(columns), (self.kind * n_intervals + self.interval, at)), (n_kinds * n_intervals, columns)
        )
        spend = self.prices[self.kind] * self.amount / self.jobs.budgets[self.job]
        budget = coo_array((spend, (self.job, at)), (n, columns))
        self.rows = csr_array(vstack([capacity, budget]))
        self.rows = csr_array(hstack([self.rows, csr_array((self.rows.shape[0], n))]))
        gained = self.rates[self.kind] * self.amount / self.most[self.job]
        self.part = csr_array(coo_array((gained, (self.job, at)), (n, columns)))  # X_j / most_j
        self.scale = self.amplitudes * self.most**self.jobs.exponents  # F_j at most_j
        self.tangents: list[csr_array] = []
        self.heights: list[FLOATS] = []
        for part in FIRST_TANGENTS:
            self.add_tangents(part * self.most)

    def add_tangents(self, works: FLOATS) -> None:
        """Add ``t_j <= g(a) + g'(a) (u_j - a)`` at a_j = works_j / most_j; g(u) = u^beta, F_j = scale_j * g."""
        at = np.clip(works / self.most, 1e-9, 1.0)
        beta = self.jobs.exponents
        slope = beta * at ** (beta - 1.0)
        minus = csr_array(coo_array((-slope, (np.arange(at.size), np.arange(at.size))), (at.size, at.size)))
        eye = csr_array(coo_array((np.ones(at.size), (np.arange(at.size), np.arange(at.size))), (at.size, at.size)))
        self.tangents.append(csr_array(hstack([minus @ self.part, eye])))
        self.heights.append(at**beta - slope * at)

    def solve(self) -> tuple[FLOATS, float]:
        """Return the amounts (parts in [0, 1]) of the program with the present tangents, and a dual bound."""
        n, columns = self.jobs.size, self.job.size
        matrix = csr_array(vstack([self.rows, *self.tangents]))
        right = np.concatenate([np.ones(self.rows.shape[0]), *self.heights])
        weight = self.scale / self.scale.sum()
        goal = np.concatenate([np.zeros(columns), -weight])
        solved = linprog(goal, A_ub=matrix, b_ub=right, bounds=(0, None), method="highs")
        if solved.status != 0:
            raise SolverError(f"HiGHS ended with {solved.message!r}")
        multipliers = np.maximum(-solved.ineqlin.marginals, 0.0) * self.scale.sum()
        return np.asarray(solved.x[:columns]), self._dual_bound(multipliers[: self.rows.shape[0]], n)

    def _dual_bound(self, multipliers: FLOATS, n: int) -> float:
        """Return the Lagrangian dual at multipliers of capacity rows and budget rows (both scaled to 1)."""
        worth, credit = multipliers[:-n], multipliers[-n:] / self.jobs.budgets
        per_slot = worth.reshape(self.offered.shape)[self.kind, self.interval] / self.amount
        price = (per_slot + credit[self.job] * self.prices[self.kind]) / self.rates[self.kind]
        work = np.full(n, np.inf)
        np.minimum.at(work, self.job, price)
        prices, rates, alike = self.machines
        total = multipliers[-n:].sum() + self._best_surplus(work).sum()
        begins = np.searchsorted(self.breakpoints, self.jobs.arrivals)
        ends = np.searchsorted(self.breakpoints, self.jobs.deadlines)
        for k, slots in enumerate(
            np.diff(self.breakpoints)
        ):  # what each machine is worth to the job that wants it most
            there = (begins <= k) & (k < ends)
            if there.any():
                gains = np.outer(work[there], rates) - np.outer(credit[there], prices)
                total += slots * float(np.maximum(gains.max(axis=0), 0.0) @ alike)
        return float(total)

    def _best_surplus(self, price: FLOATS) -> FLOATS:
        """Return max over 0 <= X <= most_j of F_j(X) - price_j X."""
        beta, linear = self.jobs.exponents, self.jobs.exponents == 1.0
        with np.errstate(divide="ignore", over="ignore"):
            root = (self.amplitudes * beta / price) ** (1.0 / np.where(linear, 1.0, 1.0 - beta))
        work = np.where(linear, np.where(self.amplitudes > price, self.most, 0.0), np.minimum(root, self.most))
        return np.asarray(self.amplitudes * work**beta - price * work)

    def works(self, parts: FLOATS) -> FLOATS:
        """Return X_j of amounts given as parts."""
        return np.asarray(self.part @ np.maximum(parts, 0.0)) * self.most

    def feasible(self, parts: FLOATS) -> FLOATS:
        """Return the amounts clipped and scaled down to within all constraints, as parts."""
        plan = np.maximum(parts, 0.0)
        place = self.kind * self.offered.shape[1] + self.interval
        plan /= np.maximum(1.0, np.bincount(place, plan, minlength=self.offered.size))[place]
        spent = np.bincount(self.job, plan * self.prices[self.kind] * self.amount, minlength=self.jobs.size)
        return np.asarray(plan / np.maximum(1.0, spent / self.jobs.budgets)[self.job])

    def value(self, plan: FLOATS) -> float:
        """Return the objective of a feasible plan."""
        return float((self.amplitudes * self.works(plan) ** self.jobs.exponents).sum())
