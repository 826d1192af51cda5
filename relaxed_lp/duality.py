r"""A certified upper bound on the best schedule in hindsight, from prices alone.

For any prices :math:`\lambda \ge 0` per node and round, over realised jobs (docs/mathematics.md, (29))::

    OPT <= D(lambda) = C sum_t lambda_t
                       + sum_j max(0, max_{s >= a_j} V_j(s + d_j) - c_j sum_{t=s}^{s+d_j-1} lambda_t)

This is weak duality for the linear program (11) on the realised jobs, so the smallest D equals
that program's optimum. :math:`D` is convex and piecewise linear: it is minimised with the projected
AdaGrad subgradient method [DHS11]_, restarted from its best point with ever smaller steps. Every
point tried is itself a valid bound, so stopping early costs tightness, never correctness. The
bound knows what really happened; it does not bound what is possible without knowing the future.

References
----------
.. [DHS11] Duchi, Hazan, Singer: Adaptive Subgradient Methods for Online Learning and Stochastic
   Optimization, JMLR 12 (2011) 2121-2159.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import ArrayLike, NDArray

from marketsched.mechanisms.arrays import float_array
from marketsched.mechanisms.errors import InvalidParameterError
from marketsched.mechanisms.legal import Amount, Count, legal
from marketsched.mechanisms.realised import RealisedJobs
from marketsched.mechanisms.sow import StatementOfWork
from marketsched.relaxed_lp.tasks import MOST_CREDITS, Tasks, outward, tasks_of_jobs, tasks_of_reports

STEPS = 600  # evaluations from each starting point
STAGES = 4  # restarts: the first steps reach far, the last ones settle
SHRINK = 10.0  # how much smaller the steps of each stage are than those of the one before
REACH = 4.0  # first step, in multiples of the mean value per node-round
SEGMENTS = 4096  # of more rounds the first prices are those of so many segments of equal length
FINE, POLISH = 0.2, 100  # then the first step of prices by round, in parts of the above, and how many, at most
MOST_POLISHED = 4_000_000_000  # starts that all of them look at


@dataclass(frozen=True, slots=True, eq=False)
class DualBound:
    """An upper bound on the welfare of every schedule, and the prices that prove it.

    Examples
    --------
    >>> from marketsched.mechanisms.values import DeadlineValue
    >>> sow = StatementOfWork(1, 1, DeadlineValue(4.0, 2), [(1, 1, 1.0)])
    >>> jobs = RealisedJobs.build([(sow, 1, 1)] * 6, horizon=3, max_delay=9)
    >>> bound = dual_bound(jobs, capacity=5, horizon=3)
    >>> round(bound.value, 3), bound.prices.shape
    (20.0, (3,))
    """

    value: float  # credits
    prices: NDArray[np.float64] = field(repr=False)  # (horizon,), credits per node and round; round 1 first
    steps: int  # points evaluated
    history: NDArray[np.float64] = field(repr=False)  # (steps,), best bound after each evaluation


class _Weighted(NamedTuple):
    """What can be placed, as the kernels read it, in order of duration.

    The value of a task is a row of steps: its starts ``firsts[k] .. firsts[k] + counts[k] - 1``, rounds from 0 on,
    are worth ``values[k]``, for k in ``begins[j] .. begins[j + 1] - 1``.
    """

    durations: NDArray[np.int64]  # (n_tasks,), rounds
    widths: NDArray[np.float64]  # (n_tasks,), nodes (times probability)
    begins: NDArray[np.int64]  # (n_tasks + 1,)
    firsts: NDArray[np.int32]  # (begins[-1],)
    counts: NDArray[np.int32]  # (begins[-1],), > 0
    values: NDArray[np.float64]  # (begins[-1],), credits (times probability)

    @classmethod
    def of(
        cls, durations: NDArray[np.int64], widths: NDArray[np.float64], owners: NDArray[np.int64],
        firsts: NDArray[np.int64], counts: NDArray[np.int64], values: NDArray[np.float64],
    ) -> _Weighted:  # fmt: skip
        """Return tasks from their steps, one after the other; ``owners`` says whose each step is."""
        rank = np.argsort(durations, kind="stable")
        place = np.empty_like(rank)
        place[rank] = np.arange(rank.size)
        order = np.argsort(place[owners], kind="stable")
        sizes = np.bincount(place[owners], minlength=rank.size)
        begins = np.concatenate([[0], np.cumsum(sizes)])
        columns = (firsts[order].astype(np.int32), counts[order].astype(np.int32), values[order])
        return cls(durations[rank], widths[rank], begins, *columns)


@legal
def dual_bound(
    jobs: RealisedJobs,
    capacity: Count,
    horizon: int,
    *,
    start_prices: ArrayLike | None = None,
    steps: Count = STEPS,
) -> DualBound:
    """Minimise (29) over the prices, from 0 and from ``start_prices``.

    Parameters
    ----------
    jobs : RealisedJobs
        What really happened. Jobs wider than ``capacity`` are left out: no schedule runs them.
    capacity : int
        C, nodes.
    horizon : int
        T, the one ``jobs`` was built for.
    start_prices : array_like of float, shape (horizon,), optional
        A second starting point, say the mechanism's final prices: credits per node and round.
    steps : int
        Evaluations from each starting point, >= 1; fewer if an optimum is recognised. Of more than 4,096 rounds these
        are made on tasks in as many segments, whose prices at most 100 evaluations by round then improve.

    Returns
    -------
    DualBound
        The best bound seen. ``value`` is at least the optimum of (11) for these jobs, hence at
        least the welfare of every schedule.

    Raises
    ------
    InvalidParameterError
        If the horizons differ, or a price is negative or not finite.

    Notes
    -----
    Cost O(steps * number of useful (job, start) pairs).

    Examples
    --------
    >>> from marketsched.mechanisms.values import DeadlineValue
    >>> sow = StatementOfWork(1, 1, DeadlineValue(4.0, 2), [(1, 1, 1.0)])
    >>> jobs = RealisedJobs.build([(sow, 1, 1)] * 6, horizon=3, max_delay=9)
    >>> round(dual_bound(jobs, capacity=5, horizon=3).value, 3)
    20.0
    """
    if not isinstance(jobs, RealisedJobs):
        legal = "RealisedJobs, as RealisedJobs.build makes of (statement, arrival, duration)"
        raise InvalidParameterError(place="jobs", value=jobs, legal=legal)
    jobs.check_horizon(horizon)
    starts = [np.zeros(jobs.horizon)]
    if start_prices is not None:
        given = float_array("start_prices", start_prices, (jobs.horizon,), lowest=0.0)
        starts += [given] if given.any() else []  # prices of 0 are the first starting point
    tasks = _tasks_of(jobs, capacity)
    step = REACH * _mean_density(tasks)
    best, best_value, traces = starts[0], np.inf, []
    for start in starts:
        if jobs.horizon > SEGMENTS:
            start = _prices_by_segment(tasks, float(capacity), start, steps)
            n_starts = min(int(tasks.counts.sum()), 8 * horizon * np.unique(tasks.durations).size)
            polish = max(8, min(POLISH, MOST_POLISHED // max(horizon, n_starts)))
            prices, value, history = _descend(tasks, float(capacity), start, FINE * step, polish)
        else:
            prices, value, history = _descend(tasks, float(capacity), start, step, steps)
        traces.append(history)
        if value < best_value:
            best, best_value = prices, value
    best.flags.writeable = False
    history = np.minimum.accumulate(np.concatenate(traces))
    return DualBound(_proven(tasks, capacity, best), best, history.size, history)


@legal
def dual_value(jobs: RealisedJobs, capacity: Count, horizon: int, prices: ArrayLike) -> float:
    """Evaluate (29) at ``prices``, shape (horizon,): a valid upper bound for any prices.

    Raises
    ------
    InvalidParameterError
        As `dual_bound`.

    Examples
    --------
    >>> from marketsched.mechanisms.values import DeadlineValue
    >>> sow = StatementOfWork(1, 1, DeadlineValue(4.0, 2), [(1, 1, 1.0)])
    >>> jobs = RealisedJobs.build([(sow, 1, 1)] * 6, horizon=3, max_delay=9)
    >>> [round(dual_value(jobs, 5, 3, [price, 0.0, 0.0]), 9) for price in (0.0, 2.0, 4.0)]
    [24.0, 22.0, 20.0]
    """
    jobs.check_horizon(horizon)
    at = float_array("prices", prices, (jobs.horizon,), lowest=0.0)
    return _proven(_tasks_of(jobs, capacity), capacity, at)


@legal
def report_bound(
    sows: Iterable[StatementOfWork],
    capacity: Count,
    horizon: Count,
    final_prices: ArrayLike,
    *,
    base_price: Amount,
    max_delay: Count,
    scales: Sequence[float] = (0.0, 0.25, 0.5, 0.75, 1.0),
) -> float:
    r"""Bound the *expected* welfare of the best schedule from the reports alone.

    Evaluates (29) with every case (a, d, o) of a report as a task of weight P(a, d, o), at
    :math:`\lambda = k (\hat p - r(0))` for a few ``k`` (docs/mathematics.md 15.4); the best is returned.
    It bounds the relaxed optimum (11) of the reports, and so the expected optimum in hindsight if
    the reports are true. Nothing needs to have happened yet.

    Parameters
    ----------
    sows : iterable of StatementOfWork
        The reports.
    capacity, horizon : int
        C, nodes; T, last round.
    final_prices : array_like of float, shape (horizon,)
        Current price of each round, credits per node.
    base_price : float
        r(0), the price of an empty round.
    max_delay : int
        S: completions at birth + S or later are worth nothing.
    scales : sequence of float
        The values of ``k`` to try, each >= 0.

    Returns
    -------
    float
        Credits.

    Examples
    --------
    >>> from marketsched.mechanisms.values import DeadlineValue
    >>> sow = StatementOfWork(1, 1, DeadlineValue(4.0, 2), [(1, 1, 1.0)])
    >>> round(report_bound([sow] * 6, 5, 3, [4.0, 0.0, 0.0], base_price=0.0, max_delay=9), 9)
    20.0
    """
    final = float_array("final_prices", final_prices, (horizon,), lowest=0.0)
    factors = np.asarray(scales, dtype=np.float64).ravel()
    if factors.size == 0 or not (np.isfinite(factors).all() and (factors >= 0).all()):
        raise InvalidParameterError(place="scales", value=scales, legal="at least one number, each finite and >= 0")
    above = np.maximum(final - base_price, 0.0)
    tasks = _weighted(tasks_of_reports(sows, horizon, max_delay).fitting(capacity))
    return min(_proven(tasks, capacity, factor * above) for factor in factors)


def _proven(tasks: _Weighted, capacity: float, prices: NDArray[np.float64]) -> float:
    """Return (29) at ``prices``, rounded outward; no rounding of long prefix sums is in it."""
    value = float(_value_kernel(*tasks, float(capacity), prices))
    return outward(value, tasks.values, tasks.begins, 0)  # sums over rounds keep what they lose


def _tasks_of(jobs: RealisedJobs, capacity: int) -> _Weighted:
    """Return the jobs that some schedule can run."""
    jobs = jobs.in_blocks(capacity)
    values, n_starts = jobs.step_values, int(jobs.offsets[-1])
    if values.size and not (values.min() > -np.inf and values.max() <= MOST_CREDITS / max(n_starts, 1)):
        tasks_of_jobs(jobs)  # says which value is at fault
    of, first, last = jobs.step_ranges()
    keep = (first <= last) & (jobs.concurrency <= capacity)[of] & jobs.useful[of]
    tasks, owners = np.unique(of[keep], return_inverse=True)
    starts, counts = first[keep] - jobs.durations[of[keep]] - 1, (last - first + 1)[keep]
    copies = np.ones(jobs.n_jobs, np.int64) if jobs.copies is None else jobs.copies
    widths = (jobs.concurrency * copies)[tasks].astype(np.float64)
    return _Weighted.of(jobs.durations[tasks], widths, owners, starts, counts, (values * copies[of])[keep])


def _weighted(tasks: Tasks) -> _Weighted:
    """Return tasks with widths and values times their weights, each start a step of its own."""
    owners = np.repeat(np.arange(tasks.durations.size), np.diff(tasks.offsets))
    ones = np.ones(tasks.starts.size, np.int64)
    values = tasks.values * tasks.weights[owners]
    return _Weighted.of(tasks.durations, tasks.widths * tasks.weights, owners, tasks.starts - 1, ones, values)


def _mean_density(tasks: _Weighted) -> float:
    """Return the mean over tasks of the most that a start is worth per node-round; 1 if none."""
    if not tasks.durations.size:
        return 1.0
    best = np.maximum.reduceat(tasks.values, tasks.begins[:-1])
    useful = best > 0
    density = float(np.mean((best / (tasks.widths * tasks.durations))[useful])) if useful.any() else 0.0
    return density if density > 0 else 1.0


def _prices_by_segment(
    tasks: _Weighted, capacity: float, start: NDArray[np.float64], steps: int
) -> NDArray[np.float64]:
    """Return good prices by round that are equal within segments: those of the tasks in segments in place of rounds.

    Durations are rounded to segments, and widths make up for it. Any prices are a bound, and it is evaluated by round.
    """
    length = -(-start.size // SEGMENTS)
    n = -(-start.size // length)
    durations = np.maximum(1, np.rint(tasks.durations / length).astype(np.int64))
    owners = np.repeat(np.arange(durations.size), np.diff(tasks.begins))
    firsts = tasks.firsts.astype(np.int64) // length
    lasts = np.minimum((tasks.firsts.astype(np.int64) + tasks.counts - 1) // length, n - durations[owners])
    firsts = np.minimum(firsts, lasts)
    widths = tasks.widths * tasks.durations / (durations * length)
    coarse = _Weighted.of(durations, widths, owners, firsts, lasts - firsts + 1, tasks.values)
    by_segment = np.add.reduceat(start, np.arange(0, start.size, length))
    found, _, _ = _descend(coarse, capacity, by_segment, REACH * _mean_density(coarse), steps)
    return np.repeat(found / length, length)[: start.size]


def _descend(
    tasks: _Weighted, capacity: float, start: NDArray[np.float64], step: float, steps: int
) -> tuple[NDArray[np.float64], float, NDArray[np.float64]]:
    """Run the restarted method from ``start``; return best prices, their bound, all bounds."""
    best, best_value, traces = start.copy(), np.inf, []
    for stage in range(STAGES):
        n = steps // STAGES + (stage < steps % STAGES)
        prices, trace = best.copy(), np.empty(n)
        found = best.copy()
        done, optimal = _adagrad_kernel(*tasks, capacity, step / SHRINK**stage, prices, found, trace)
        traces.append(trace[:done])
        if done and trace[:done].min() < best_value:
            best, best_value = found, float(trace[:done].min())
        if optimal:
            break
    return best, best_value, np.concatenate(traces)


@njit(cache=True)
def _adagrad_kernel(durations, widths, begins, firsts, counts, values, capacity, step, prices, best, trace):  # type: ignore[no-untyped-def]
    """Make ``trace.size`` steps on ``prices``; keep the best point in ``best``.

    ``trace`` receives the bound at every point. Returns how many were evaluated, and whether the
    last of them is optimal: no step along the subgradient changes the prices.
    """
    n_rounds = prices.size
    prefix, squares = np.zeros(n_rounds + 1), np.zeros(n_rounds)
    change = np.empty(n_rounds + 1)  # of demand, from round to round
    logs = np.zeros(n_rounds + 2, np.int64)
    for i in range(2, n_rounds + 2):
        logs[i] = logs[i // 2] + 1
    costs, cheapest = np.empty(n_rounds), np.empty((logs[n_rounds] + 1, n_rounds), np.int32)
    ends, tops, lows, highs = _groups_kernel(durations, begins, firsts, counts, logs)
    lowest = np.inf
    for i in range(trace.size):
        for t in range(n_rounds):
            prefix[t + 1] = prefix[t] + prices[t]
        bound = capacity * prefix[n_rounds]
        change[:] = 0.0
        begin = 0
        for g in range(ends.size):
            d, top = durations[begin], tops[g]
            _windows_kernel(prefix, d, lows[g], highs[g], top, costs, cheapest)
            for j in range(begin, ends[g]):
                surplus, chosen = 0.0, -1
                for k in range(begins[j], begins[j + 1]):
                    first, count = np.int64(firsts[k]), np.int64(counts[k])
                    if values[k] <= surplus:
                        continue
                    if top >= 0:
                        level = logs[count]
                        s, other = cheapest[level, first], cheapest[level, first + count - (1 << level)]
                        s = s if costs[s] <= costs[other] else other
                    else:
                        s = first
                        for other in range(first + 1, first + count):
                            if costs[other] < costs[s]:
                                s = other
                    utility = values[k] - widths[j] * costs[s]
                    if utility > surplus:
                        surplus, chosen = utility, s
                if chosen >= 0:
                    bound += surplus
                    change[chosen] += widths[j]
                    change[chosen + d] -= widths[j]
            begin = ends[g]
        trace[i] = bound
        if bound < lowest:
            lowest = bound
            for t in range(n_rounds):  # as a slice it takes a second longer to compile: its error has a text
                best[t] = prices[t]
        demand, moved = 0.0, False
        for t in range(n_rounds):
            demand += change[t]
            gradient = capacity - demand
            if gradient != 0.0:
                squares[t] += gradient * gradient
                new = max(0.0, prices[t] - step * gradient / np.sqrt(squares[t]))
                moved = moved or new != prices[t]
                prices[t] = new
        if not moved:
            return i + 1, True
    return trace.size, False


@njit(cache=True)
def _groups_kernel(durations, begins, firsts, counts, logs):  # type: ignore[no-untyped-def]
    """Return for the tasks of each duration: the first task after them, and how to look for their cheapest starts.

    That is the largest k for which the first cheapest of 2^k starts is noted, or -1 where looking at every start of
    every step takes no longer; and the range of starts.
    """
    n_groups = 0
    for j in range(durations.size):
        n_groups += j == 0 or durations[j] != durations[j - 1]
    ends, tops = np.empty(n_groups, np.int64), np.empty(n_groups, np.int64)
    lows, highs = np.empty(n_groups, np.int64), np.empty(n_groups, np.int64)
    begin = 0
    for g in range(n_groups):
        end = begin
        while end < durations.size and durations[end] == durations[begin]:
            end += 1
        looks, longest = 0, np.int64(1)
        low, high = np.int64(firsts[begins[begin]]), np.int64(0)
        for k in range(begins[begin], begins[end]):
            looks += counts[k]
            longest = max(longest, np.int64(counts[k]))
            low, high = min(low, np.int64(firsts[k])), max(high, np.int64(firsts[k]) + counts[k])
        top = logs[longest]
        dear = looks > (top + 1) * (high - low) + 2 * (begins[end] - begins[begin])
        ends[g], tops[g], lows[g], highs[g] = end, top if dear else -1, low, high
        begin = end
    return ends, tops, lows, highs


@njit(cache=True)
def _windows_kernel(prefix, length, low, high, top, costs, cheapest):  # type: ignore[no-untyped-def]
    """Fill ``costs[s]``, the price of ``length`` rounds from s, and ``cheapest[k, s]``, the first cheapest of 2^k."""
    for s in range(low, high):
        costs[s] = prefix[s + length] - prefix[s]
        cheapest[0, s] = s
    k, span = 0, 1
    while k < top:
        for s in range(low, high - 2 * span + 1):
            i, j = cheapest[k, s], cheapest[k, s + span]
            cheapest[k + 1, s] = i if costs[i] <= costs[j] else j
        k, span = k + 1, 2 * span


@njit(cache=True)
def _value_kernel(durations, widths, begins, firsts, counts, values, capacity, prices):  # type: ignore[no-untyped-def]
    """Return (29) at ``prices``; what long prefix sums lose by rounding is kept beside them."""
    prefix, lost = np.zeros(prices.size + 1), np.zeros(prices.size + 1)
    for t in range(prices.size):
        total = prefix[t] + prices[t]
        larger, smaller = max(prefix[t], prices[t]), min(prefix[t], prices[t])
        prefix[t + 1], lost[t + 1] = total, lost[t] + ((larger - total) + smaller)
    bound = capacity * (prefix[prices.size] + lost[prices.size])
    for j in range(durations.size):
        surplus, d = 0.0, durations[j]
        for k in range(begins[j], begins[j + 1]):
            if values[k] <= surplus:  # no price is negative
                continue
            for s in range(firsts[k], firsts[k] + counts[k]):
                cost = (prefix[s + d] - prefix[s]) + (lost[s + d] - lost[s])
                surplus = max(surplus, values[k] - widths[j] * cost)
        bound += surplus
    return bound
