"""First come, first served at a flat price on realised jobs, all at once.

The rule of `marketsched.mechanisms.auctions.first_come` with durations revealed, compiled: what the
same jobs would have been worth without any mechanism, at price 0 or at the best price in hindsight.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numba import njit
from numpy.typing import NDArray

from marketsched.mechanisms.checks import finite_parameter, whole_parameter
from marketsched.mechanisms.realised import RealisedJobs


@dataclass(frozen=True, slots=True, eq=False)
class FirstComeOutcome:
    """What first-come-first-served at a flat price makes of realised jobs, durations known."""

    price: float  # credits per node and round
    welfare: float  # credits
    revenue: float  # credits
    starts: NDArray[np.int64]  # (n_jobs,), rounds; 0 where the job is not served


def first_come_welfare(jobs: RealisedJobs, capacity: int, horizon: int, price: float) -> FirstComeOutcome:
    """Serve realised jobs at their arrival, in order of (arrival, submission), at a flat price.

    The same rule as `FirstCome` with durations revealed, all at once.

    Parameters
    ----------
    jobs : RealisedJobs
        What really happened.
    capacity, horizon : int
        C, nodes; T, the horizon ``jobs`` was built for.
    price : float
        Credits per node and round, >= 0.

    Raises
    ------
    InvalidParameterError
        If a number is out of range or the horizons differ.
    """
    capacity, price = whole_parameter("capacity", capacity, 1), finite_parameter("price", price)
    jobs.check_horizon(horizon)
    order = np.lexsort((jobs.births, jobs.arrivals))  # stable: equal ones stay in order of submission
    free, starts = np.full(jobs.horizon, capacity, dtype=np.int64), np.zeros(jobs.n_jobs, dtype=np.int64)
    columns = (jobs.arrivals, jobs.durations, jobs.concurrency, jobs.offsets, jobs.values)
    welfare, revenue = _first_come_welfare_kernel(order, *columns, price, free, starts)
    return FirstComeOutcome(price, float(welfare), float(revenue), starts)


def best_first_come(
    jobs: RealisedJobs, capacity: int, horizon: int, *, grid: int = 32, rounds: int = 3
) -> FirstComeOutcome:
    """Return first-come at the flat price that is best for welfare in hindsight.

    Tries 0 and ``grid`` prices spread evenly (in ratio) over the values per node-round that occur,
    then ``rounds`` times as many between the neighbours of the best: a search, not a proof.
    No operator knows this price in advance; it is printed beside price 0.

    Raises
    ------
    InvalidParameterError
        As `first_come_welfare`, or if ``grid`` < 2 or ``rounds`` < 0.
    """
    grid, rounds = whole_parameter("grid", grid, 2), whole_parameter("rounds", rounds, 0)
    best = first_come_welfare(jobs, capacity, horizon, 0.0)
    node_rounds = np.repeat(jobs.durations * jobs.concurrency, np.diff(jobs.offsets))
    densities = (jobs.values / node_rounds)[jobs.values > 0]
    if not densities.size:
        return best
    high = float(densities.max())
    low = max(float(densities.min()), 1e-4 * high)
    for _ in range(rounds + 1):
        prices = np.geomspace(low, high, grid)
        tried = [first_come_welfare(jobs, capacity, horizon, price) for price in prices.tolist()]
        top = max(range(grid), key=lambda i: tried[i].welfare)
        if tried[top].welfare > best.welfare:
            best = tried[top]
        low, high = float(prices[max(top - 1, 0)]), float(prices[min(top + 1, grid - 1)])
    return best


@njit(cache=True)
def _earliest_start_kernel(free, width, first, duration, values, cost):  # type: ignore[no-untyped-def]
    """Return the earliest start >= ``first`` with ``width`` nodes free and a value above ``cost``; else 0.

    ``free[r - 1]`` are the nodes free in round r; ``values[k]`` is the value of start ``first + k``.
    """
    since = first  # all rounds since..t have room
    for t in range(first, first + values.size + duration - 1):
        if free[t - 1] < width:
            since = t + 1
        elif t - since + 1 >= duration and values[t - duration + 1 - first] > cost:
            return t - duration + 1
    return 0


@njit(cache=True)
def _first_come_welfare_kernel(  # type: ignore[no-untyped-def]
    order, arrivals, durations, concurrency, offsets, values, price, free, starts
):
    """Fill ``starts``; draw ``free`` down in place. Returns welfare and revenue."""
    welfare, revenue = 0.0, 0.0
    for j in order:
        if offsets[j + 1] == offsets[j]:
            continue
        cost = price * concurrency[j] * durations[j]
        own = values[offsets[j] : offsets[j + 1]]
        start = _earliest_start_kernel(free, concurrency[j], arrivals[j], durations[j], own, cost)
        if start > 0:
            starts[j] = start
            welfare += own[start - arrivals[j]]
            revenue += cost
            for t in range(start, start + durations[j]):
                free[t - 1] -= concurrency[j]
    return welfare, revenue
