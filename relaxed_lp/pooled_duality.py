r"""The dual bound (29) where jobs choose among pools of nodes and ask for several resources.

For any prices :math:`\lambda \ge 0` per unit of resource k in pool g and round t, over realised jobs that may each run
in one of several ways (an *option*: a pool g, a duration d, n a_k units of resource k in all, and a worth w)::

    OPT <= D(lambda) = sum_{g,k,t} cap_{g,k} lambda_{g,k,t} + sum_j max(0, max_{options, s >= a_j} surplus),
    surplus = w V_j(s + d) - sum_k n a_k sum_{t=s}^{s+d-1} lambda_{g,k,t}

A placement on nodes uses at most the resources of each pool, so D bounds every schedule on nodes from above. It ignores
two constraints: a task must fit on one node, and a job is served whole or not at all. The smallest D is the optimum of
the linear program over pools. It is found as in `marketsched.relaxed_lp.duality`: projected AdaGrad steps from 0,
restarted from the best point with ever smaller steps, in units in which each resource of the whole cluster counts 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import ArrayLike, NDArray

from marketsched.mechanisms.arrays import float_array
from marketsched.mechanisms.errors import InvalidParameterError
from marketsched.mechanisms.legal import Count, legal
from marketsched.relaxed_lp.duality import REACH, SHRINK, STAGES, DualBound
from marketsched.relaxed_lp.tasks import outward

POOLED_STEPS = 1200  # prices of several pools pull at each other: twice as many as one pool needs


class PooledJobs(NamedTuple):
    """Realised jobs and the ways in which each can run, as flat arrays.

    ``values[value_offsets[j] + i]`` is what job j is worth if it completes at time ``arrivals[j] + 1 + i``; later
    completions are worth nothing, and values other than 0 do not increase. Options of job j are
    ``option_offsets[j] .. option_offsets[j + 1] - 1``.
    """

    arrivals: NDArray[np.int64]  # (n_jobs,), rounds from 1
    value_offsets: NDArray[np.int64]  # (n_jobs + 1,)
    values: NDArray[np.float64]  # (value_offsets[-1],), credits
    option_offsets: NDArray[np.int64]  # (n_jobs + 1,)
    pools: NDArray[np.int64]  # (n_options,)
    durations: NDArray[np.int64]  # (n_options,), rounds
    worths: NDArray[np.float64]  # (n_options,), what the result of the option is worth, as a share of V
    demands: NDArray[np.float64]  # (n_options, n_resources), units of all tasks together


@dataclass(frozen=True, slots=True)
class _Scaled:
    """Jobs and capacities in units of the whole cluster, and those units."""

    jobs: PooledJobs
    capacities: NDArray[np.float64]  # (n_pools, n_resources), shares of the cluster
    units: NDArray[np.float64]  # (n_resources,)


@legal
def pooled_bound(jobs: PooledJobs, capacities: ArrayLike, horizon: Count, *, steps: Count = POOLED_STEPS) -> DualBound:
    """Minimise (29) with pools over the prices, from 0.

    Parameters
    ----------
    jobs : PooledJobs
        What really happened, and how each job can run. Leave options out that fit no node of their pool: this makes
        the bound smaller.
    capacities : array_like of float, shape (n_pools, n_resources)
        Capacity of each pool, units.
    horizon : int
        T, the last round.
    steps : int
        Evaluations, >= 1; fewer if an optimum is recognised.

    Returns
    -------
    DualBound
        The best bound seen; ``prices`` has shape (n_pools, n_resources, horizon), credits per unit and round.

    Raises
    ------
    InvalidParameterError
        If the arrays do not fit each other, an option is of no pool, or a capacity is negative or not finite.

    Notes
    -----
    Cost O(steps * number of useful (job, option, start) triples * resources).

    Examples
    --------
    Two pools of one node each; two jobs of 4 credits need both rounds, one of them accepts either pool at half speed
    in the second:

    >>> jobs = PooledJobs(
    ...     arrivals=np.array([1, 1]), value_offsets=np.array([0, 2, 4]), values=np.full(4, 4.0),
    ...     option_offsets=np.array([0, 1, 3]), pools=np.array([0, 0, 1]), durations=np.array([1, 1, 2]),
    ...     worths=np.ones(3), demands=np.ones((3, 1)),
    ... )
    >>> round(pooled_bound(jobs, [[1.0], [1.0]], horizon=2).value, 3)
    8.0
    """
    scaled = _scaled(jobs, capacities, horizon)
    step = REACH * _mean_density(scaled)
    best, best_value, traces = np.zeros((*scaled.capacities.shape, horizon)), np.inf, []
    for stage in range(STAGES):
        n = steps // STAGES + (stage < steps % STAGES)
        prices, found, trace = best.copy(), best.copy(), np.empty(n)
        done, optimal = _pooled_adagrad_kernel(
            scaled.jobs, scaled.capacities, step / SHRINK**stage, prices, found, trace
        )
        traces.append(trace[:done])
        if done and trace[:done].min() < best_value:
            best, best_value = found, float(trace[:done].min())
        if optimal:
            break
    prices = best / scaled.units[:, None]
    prices.flags.writeable = False
    history = np.minimum.accumulate(np.concatenate(traces))
    return DualBound(_proven(scaled, best), prices, history.size, history)


@legal
def pooled_value(jobs: PooledJobs, capacities: ArrayLike, horizon: Count, prices: ArrayLike) -> float:
    """Evaluate (29) with pools at ``prices``, shape (n_pools, n_resources, horizon): a bound whatever they are.

    Raises
    ------
    InvalidParameterError
        As `pooled_bound`, or if a price is negative or not finite.
    """
    scaled = _scaled(jobs, capacities, horizon)
    at = float_array("prices", prices, (*scaled.capacities.shape, horizon), lowest=0.0) * scaled.units[:, None]
    return _proven(scaled, at)


def _proven(scaled: _Scaled, prices: NDArray[np.float64]) -> float:
    """Return (29) with pools at ``prices`` by share of the cluster, rounded outward."""
    value = float(_pooled_value_kernel(scaled.jobs, scaled.capacities, prices))
    return outward(value, scaled.jobs.values, scaled.jobs.value_offsets, prices.size)


def _scaled(jobs: PooledJobs, capacities: ArrayLike, horizon: int) -> _Scaled:
    """Check the arrays against each other, and count resources in units of the whole cluster."""
    demands = np.asarray(jobs.demands, dtype=np.float64)
    n_resources = demands.shape[1] if demands.ndim == 2 else 0
    given = np.asarray(capacities, dtype=np.float64)
    have = float_array("capacities", given, (given.shape[0] if given.ndim == 2 else 0, n_resources), lowest=0.0)
    n_jobs, n_options = jobs.arrivals.size, demands.shape[0]
    sizes = [jobs.value_offsets.size - 1, jobs.option_offsets.size - 1, jobs.values.size - int(jobs.value_offsets[-1])]
    options = [jobs.pools.size, jobs.durations.size, jobs.worths.size, int(jobs.option_offsets[-1])]
    if sizes != [n_jobs, n_jobs, 0] or options != [n_options] * 4:
        raise InvalidParameterError(
            f"jobs with {n_jobs} arrivals, {sizes[0]} ends of values, {sizes[1]} ends of options, and options with "
            f"{options} columns for {n_options} demands: expected arrays that fit each other"
        )
    if n_options and not (0 <= jobs.pools.min() and jobs.pools.max() < have.shape[0] and jobs.durations.min() >= 1):
        raise InvalidParameterError(
            f"options in pools {jobs.pools.min()} to {jobs.pools.max()}, of {jobs.durations.min()} rounds or more: "
            f"expected pools 0 to {have.shape[0] - 1}, and a round or more"
        )
    if n_jobs and not (1 <= jobs.arrivals.min() and np.isfinite(jobs.values).all() and np.isfinite(demands).all()):
        raise InvalidParameterError("jobs: expected arrivals in round 1 or later, finite values and finite demands")
    listed = jobs.values > 0
    of = np.repeat(np.arange(n_jobs), np.diff(jobs.value_offsets))[listed]
    if ((np.diff(jobs.values[listed]) > 0) & (np.diff(of) == 0)).any():
        raise InvalidParameterError("jobs: values of a job rise with time: expected values that do not increase")
    units = have.sum(axis=0)
    units = np.where(units > 0, units, 1.0)
    return _Scaled(jobs._replace(demands=demands / units), have / units, units)


def _mean_density(scaled: _Scaled) -> float:
    """Return the mean over jobs of value per round and largest share of the cluster; 1 if none is worth anything."""
    jobs = scaled.jobs
    used = np.flatnonzero((np.diff(jobs.value_offsets) > 0) & (np.diff(jobs.option_offsets) > 0))
    first = jobs.option_offsets[:-1][used]
    size = jobs.durations[first] * jobs.demands[first].max(axis=1, initial=0.0)
    best = jobs.values[jobs.value_offsets[:-1][used]]
    density = float(np.mean(best[size > 0] / size[size > 0])) if (size > 0).any() else 0.0
    return density if density > 0 else 1.0


@njit(cache=True)
def _pooled_adagrad_kernel(jobs, capacities, step, prices, best, trace):  # type: ignore[no-untyped-def]
    """Make ``trace.size`` steps on ``prices``; keep the best point in ``best``.

    ``trace`` receives the bound at every point. Returns how many were evaluated, and whether the last of them is
    optimal: no step along the subgradient changes the prices.
    """
    arrivals, value_offsets, values, option_offsets, pools, durations, worths, demands = jobs
    n_pools, n_resources, n_rounds = prices.shape
    prefix = np.zeros((n_pools, n_rounds + 1, n_resources))  # resources of a round stand side by side
    change = np.empty((n_pools, n_rounds + 1, n_resources))  # of demand, from round to round
    squares = np.zeros(prices.shape)
    lowest = np.inf
    for i in range(trace.size):
        bound = 0.0
        for g in range(n_pools):
            for k in range(n_resources):
                for t in range(n_rounds):
                    prefix[g, t + 1, k] = prefix[g, t, k] + prices[g, k, t]
                bound += capacities[g, k] * prefix[g, n_rounds, k]
        change[:] = 0.0
        for j in range(arrivals.size):
            surplus, chosen, start, place, end = 0.0, -1, -1, arrivals[j] - 1, value_offsets[j + 1]
            for o in range(option_offsets[j], option_offsets[j + 1]):
                g, d = pools[o], durations[o]
                for x in range(value_offsets[j] + d - 1, end):
                    s = place + x - (value_offsets[j] + d - 1)
                    worth = worths[o] * values[x]
                    if values[x] == 0.0:  # a table may list no value for a time
                        continue
                    if worth <= surplus or s + d > n_rounds:  # later starts are worth no more
                        break
                    for k in range(n_resources):
                        worth -= demands[o, k] * (prefix[g, s + d, k] - prefix[g, s, k])
                    if worth > surplus:
                        surplus, chosen, start = worth, o, s
            if chosen >= 0:
                bound += surplus
                for k in range(n_resources):
                    change[pools[chosen], start, k] += demands[chosen, k]
                    change[pools[chosen], start + durations[chosen], k] -= demands[chosen, k]
        trace[i] = bound
        if bound < lowest:
            lowest = bound
            for g, k, t in np.ndindex(prices.shape):
                best[g, k, t] = prices[g, k, t]
        moved = False
        for g in range(n_pools):
            for k in range(n_resources):
                demand = 0.0
                for t in range(n_rounds):
                    demand += change[g, t, k]
                    gradient = capacities[g, k] - demand
                    if gradient != 0.0:
                        squares[g, k, t] += gradient * gradient
                        new = max(0.0, prices[g, k, t] - step * gradient / np.sqrt(squares[g, k, t]))
                        moved = moved or new != prices[g, k, t]
                        prices[g, k, t] = new
        if not moved:
            return i + 1, True
    return trace.size, False


@njit(cache=True)
def _pooled_value_kernel(jobs, capacities, prices):  # type: ignore[no-untyped-def]
    """Return (29) with pools at ``prices``, each window summed on its own."""
    arrivals, value_offsets, values, option_offsets, pools, durations, worths, demands = jobs
    n_pools, n_resources, n_rounds = prices.shape
    bound = 0.0
    for g in range(n_pools):
        for k in range(n_resources):
            bound += capacities[g, k] * prices[g, k].sum()
    for j in range(arrivals.size):
        surplus = 0.0
        for o in range(option_offsets[j], option_offsets[j + 1]):
            g, d = pools[o], durations[o]
            first = value_offsets[j] + d - 1
            for x in range(first, value_offsets[j + 1]):
                s = arrivals[j] - 1 + x - first
                worth = worths[o] * values[x]
                if values[x] == 0.0:
                    continue
                if worth <= surplus or s + d > n_rounds:
                    break
                for k in range(n_resources):
                    if demands[o, k] > 0.0:
                        worth -= demands[o, k] * prices[g, k, s : s + d].sum()
                surplus = max(surplus, worth)
        bound += surplus
    return bound
