"""First come, first served at a flat price on realised jobs, all at once.

The rule of `marketsched.mechanisms.auctions.first_come`, compiled: what the same jobs would have been worth without any
mechanism, at price 0 or at the best price in hindsight. Once for one who knows every duration (`first_come_welfare`);
and once with durations as the market reveals them (`first_come_served`), where a hidden one makes its job wait for
nodes and decide by its own law. Where all are revealed, the two agree; where they are hidden, the first cannot be run.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from numba import njit
from numpy.typing import NDArray

from marketsched.mechanisms.auctions.first_come import FirstCome
from marketsched.mechanisms.auctions.first_come_kernels import density_kernel, first_come_kernel, kernel_jobs
from marketsched.mechanisms.columns import NEVER, Ending, JobColumns, Outcomes
from marketsched.mechanisms.errors import InvalidParameterError
from marketsched.mechanisms.legal import Amount, Count, Finite, Natural, Whole, legal
from marketsched.mechanisms.limits import MarketLimits
from marketsched.mechanisms.realised import RealisedJobs

MANY = 20_000  # jobs: from here on the best flat price is looked for less finely


@dataclass(frozen=True, slots=True, eq=False)
class FirstComeOutcome:
    """What first-come-first-served at a flat price makes of realised jobs."""

    price: float  # credits per node and round
    welfare: float  # credits
    revenue: float  # credits
    starts: NDArray[np.int64]  # (n_jobs,), rounds; 0 where the job is not served


@legal
def first_come_welfare(jobs: RealisedJobs, capacity: Count, horizon: int, price: Amount) -> FirstComeOutcome:
    """Serve realised jobs at their arrival, in order of (arrival, submission), at a flat price a node and round.

    The same rule as `FirstCome` with durations revealed, all at once. InvalidParameterError if a number is out of
    range, or ``horizon`` is not the one that ``jobs`` was built for.
    """
    jobs.check_horizon(horizon)
    free, starts = np.full(jobs.horizon, capacity, dtype=np.int64), np.zeros(jobs.n_jobs, dtype=np.int64)
    columns = (jobs.arrivals, jobs.durations, jobs.concurrency, jobs.begins, jobs.step_values, jobs.step_lasts)
    welfare, revenue = first_come_kernel(jobs.by_arrival, *columns, jobs.useful_until, price, free, starts)
    return FirstComeOutcome(price, float(welfare), float(revenue), starts)


def best_first_come(
    jobs: RealisedJobs,
    capacity: int,
    horizon: int,
    *,
    grid: int = 32,
    rounds: int | None = None,
    within: float | None = None,
) -> FirstComeOutcome:
    """Return first-come at the flat price that is best for welfare in hindsight.

    Tries 0 and ``grid`` prices spread evenly (in ratio) over the values per node-round that occur,
    then ``rounds`` times as many between the neighbours of the best: a search, not a proof. None: three times; of more
    than 20,000 jobs once, which finds the price to two percent: a play takes long there, and a job counts little.
    Given ``within``, Brent's method then goes on between the neighbours until the price is known to that ratio.
    No operator knows this price in advance; it is printed beside price 0.
    """
    densities = _density_ends(jobs)
    rounds = _refinements(jobs.n_jobs) if rounds is None else rounds
    return best_flat(lambda price: first_come_welfare(jobs, capacity, horizon, price), densities, grid, rounds, within)


@legal
def best_flat(
    served_at: Callable[[float], FirstComeOutcome],
    densities: NDArray[np.float64],
    grid: Annotated[int, Whole(2)] = 32,
    rounds: Natural = 3,
    within: Annotated[float, Finite("(1, inf)")] | None = None,
) -> FirstComeOutcome:
    """Return the outcome of largest welfare among flat prices, as `best_first_come` looks for it.

    ``served_at`` plays first-come at a price; ``densities`` are the values per node-round that occur, > 0, or only
    their least and largest: without any the price is 0.
    """
    best = served_at(0.0)
    if not densities.size:
        return best

    def welfare(price: float) -> float:
        nonlocal best
        tried = served_at(price)  # one at a time: each holds a start for every job
        best = tried if tried.welfare > best.welfare else best
        return tried.welfare

    high = float(densities.max())
    low = max(float(densities.min()), 1e-4 * high)
    for _ in range(rounds + 1):
        prices = np.geomspace(low, high, grid)
        top = int(np.argmax([welfare(price) for price in prices.tolist()]))
        low, high = float(prices[max(top - 1, 0)]), float(prices[min(top + 1, grid - 1)])
    if within is not None:
        from scipy.optimize import minimize_scalar  # of large markets alone: it takes long to import

        ends = (math.log(low), math.log(high))
        look = {"bounds": ends, "method": "bounded", "options": {"xatol": math.log(within)}}
        minimize_scalar(lambda x: -welfare(math.exp(x)), **look)
    return best


def _density_ends(jobs: RealisedJobs) -> NDArray[np.float64]:
    """Return the least and the largest positive value per node-round of any start; nothing if no value is positive."""
    of, first, last = jobs.step_ranges()
    happens = (first <= last) & (jobs.step_values > 0)
    if not happens.any():
        return np.zeros(0)
    densities = (jobs.step_values / (jobs.durations * jobs.concurrency)[of])[happens]
    return np.array([densities.min(), densities.max()])


@legal
def first_come_served(jobs: JobColumns, limits: MarketLimits, price: Amount) -> FirstComeOutcome:
    """Play `FirstCome` at a flat price a node and round, with durations met as in a market, and true reports.

    Starts are those of jobs that complete. InvalidParameterError if a report is outside the limits.
    """
    sizes = ("max_concurrency", "max_duration", "max_value", "max_delay")
    market = FirstCome(limits.capacity, limits.horizon, price, **{name: getattr(limits, name) for name in sizes})
    outcomes = Outcomes.empty(jobs.n, limits.horizon, None)
    if not market.play(jobs, outcomes, limits.horizon):
        raise InvalidParameterError(place="jobs", value=jobs.largest, legal=f"reports within {limits}")
    starts = np.where(outcomes.endings == Ending.COMPLETED, outcomes.starts, NEVER)
    useful = jobs.useful(limits.max_delay, limits.horizon)
    welfare = _welfare_kernel(starts, jobs.durations, jobs.begins, jobs.values, jobs.lasts, useful)
    return FirstComeOutcome(price, float(welfare), float(outcomes.payments.sum()), starts)


def best_first_come_served(
    jobs: JobColumns, limits: MarketLimits, *, grid: int = 32, rounds: int | None = None
) -> FirstComeOutcome:
    """Return `first_come_served` at the flat price that is best for welfare in hindsight; see `best_first_come`."""
    densities = _announced_density_ends(jobs, limits)
    rounds = _refinements(jobs.n) if rounds is None else rounds
    return best_flat(lambda price: first_come_served(jobs, limits, price), densities, grid, rounds)


def _refinements(n_jobs: int) -> int:
    return 3 if n_jobs <= MANY else 1


def _announced_density_ends(jobs: JobColumns, limits: MarketLimits) -> NDArray[np.float64]:
    """Return the least and the largest positive value per node-round that a start is expected to have, if any is."""
    least, most = density_kernel(kernel_jobs(jobs, limits, jobs.laws), limits.max_duration, limits.horizon + 1)
    return np.array([least, most]) if most > 0 else np.zeros(0)


@njit(cache=True)
def _welfare_kernel(starts, durations, begins, values, lasts, useful):  # type: ignore[no-untyped-def]
    """Return the value of completions, added up; starts of 0 have none."""
    welfare = 0.0
    for j in range(starts.size):
        if starts[j] > 0 and starts[j] + durations[j] <= useful[j]:
            step = begins[j]
            while lasts[step] < starts[j] + durations[j]:
                step += 1
            welfare += values[step]
    return welfare
