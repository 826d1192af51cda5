r"""Prices of several pools and resources for all scenarios of what is to come: the joint dual.

With what pool g has left of resource k in round t, and jobs j of weight :math:`w_j` (1/K in each of K scenarios),
minimise over :math:`p \ge 0`::

    D(p) = sum_{g,k,t} supply[g,k,t] p[g,k,t]
           + sum_j w_j max(0, max over options o and starts s of  worth_o V_j(s + d_o) - sum_k a_ok sum_t p[g_o,k,t])

by projected subgradient steps: with the demand that p leaves,

    p[g,k,t] <- max(0, p[g,k,t] - e_i rho_k (supply[g,k,t] - demand[g,k,t]) / size[g,k]),   e_i = step / sqrt(i + 1),

and the mean of the second half of the iterates is the price. Behind the window of n rounds the price goes on at the
mean of its last 24 rounds where there is a tail: else a long job that begins late would have its end for nothing. A
pool with one resource is (30) of docs/mathematics.md.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from marketsched.mechanisms.errors import InvalidParameterError
from marketsched.mechanisms.legal import Count, Natural, legal
from marketsched.mechanisms.resources.tasks import OptionColumns

TAIL_OF = 24  # rounds whose mean price is that of the rounds behind the window


@legal
def joint_dual_prices(
    prices: NDArray[np.float64],
    supply: NDArray[np.float64],
    size: NDArray[np.float64],
    rows: NDArray[np.int64],
    places: NDArray[np.int64],
    weights: NDArray[np.float64],
    tasks: OptionColumns,
    *,
    steps: Count,
    step: NDArray[np.float64],
    tail: Natural = 0,
    grain: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Make ``steps`` subgradient steps on ``prices``, in place; return the mean of the last half of the iterates.

    Parameters
    ----------
    prices : array of float, shape (n_pools, n_resources, n)
        Where to begin, credits per part and round; the last iterate afterwards.
    supply : array of float, of the same shape
        Parts left in each round of the window; may be negative.
    size : array of float, shape (n_pools, n_resources)
        What each pool has, in parts: the unit of the steps. What a pool has none of keeps its price.
    rows : array of int, shape (m,)
        Rows of ``tasks``; one row may come several times.
    places : array of int, shape (m,)
        Where in the window each arrives, 0 .. n - 1.
    weights : array of float, shape (m,)
        How much each counts.
    tasks : OptionColumns
        What the rows stand for.
    steps : int
        How many, >= 1.
    step : array of float, shape (n_resources,)
        Length of the first one, credits per part and round.
    tail : int
        Rounds behind the window at the mean price of its last 24; 0: jobs have to end inside it.
    grain : array of float, shape (n_resources,)
        Prices of windows are rounded to whole multiples of one over it, so that equal windows are equal; 0: they
        are not rounded.

    Returns
    -------
    array of float, shape (n_pools, n_resources, n)
    """
    if prices.shape != supply.shape or not rows.shape == places.shape == weights.shape:
        raise InvalidParameterError(
            f"prices {prices.shape}, supply {supply.shape}, rows {rows.shape}, places {places.shape}, "
            f"weights {weights.shape}: expected equal shapes of the first two, and of the last three"
        )
    mean = np.zeros_like(prices)
    _descend_kernel(
        prices,
        supply,
        size,
        rows,
        places,
        weights,
        *tasks,
        steps,
        step,
        tail,
        min(TAIL_OF, prices.shape[2]),
        grain,
        mean,
    )
    return mean


def added_up(prices: NDArray[np.float64], tail: int) -> NDArray[np.float64]:
    """Return prices added up over rounds, from 0, with ``tail`` rounds more at the mean price of the last 24.

    Parameters
    ----------
    prices : array of float, shape (n_pools, n_resources, n)
        Credits per part and round.
    tail : int
        Rounds, >= 0.

    Returns
    -------
    array of float, shape (n_pools, n_resources, n + tail + 1)

    Examples
    --------
    >>> added_up(np.array([[[1.0, 3.0]]]), 2).tolist()
    [[[0.0, 1.0, 4.0, 6.0, 8.0]]]
    """
    n = prices.shape[2]
    prefix = np.zeros((*prices.shape[:2], n + tail + 1))
    np.cumsum(prices, axis=2, out=prefix[:, :, 1 : n + 1])
    if tail and n:
        last = min(TAIL_OF, n)
        level = (prefix[:, :, n] - prefix[:, :, n - last]) / last
        prefix[:, :, n + 1 :] = prefix[:, :, n, None] + level[:, :, None] * np.arange(1, tail + 1)
    return prefix


@njit(cache=True)
def _best_option_kernel(  # type: ignore[no-untyped-def]
    prefix, n, reach, place, begin, end, shortest, values, pools, durations, totals, worths, grain
):
    """Return option and start of largest surplus, the option named first among equals, then the earliest; -1: none."""
    n_resources = prefix.shape[2]
    best, found, start = 0.0, -1, -1
    for o in range(begin, end):
        g, d, worth = pools[o], durations[o], worths[o]
        i = d - shortest
        s = place
        while s < n and s + d <= reach and i < values.size:
            value = worth * values[i]
            if value <= best:
                break
            cost = 0.0
            for k in range(n_resources):
                if totals[o, k] > 0.0:
                    window = prefix[g, s + d, k] - prefix[g, s, k]
                    if grain[k] > 0.0:
                        window = np.rint(window * grain[k]) * (1.0 / grain[k])
                    cost += totals[o, k] * window
            surplus = value - cost
            if surplus > best:
                best, found, start = surplus, o, s
                if cost <= 0.0:  # nothing is cheaper, and no later start is worth more
                    break
            s += 1
            i += 1
    return found, start


@njit(cache=True)
def _descend_kernel(  # type: ignore[no-untyped-def]
    prices, supply, size, rows, places, weights,
    begins, offsets, shortest, pools, durations, totals, worths, values,
    steps, step, tail, tail_of, grain, mean,
):  # fmt: skip
    """Fill ``mean``; ``prices`` ends at the last iterate. Prices added up have the resource last: read together."""
    n_pools, n_resources, n = prices.shape
    prefix, change = np.zeros((n_pools, n + tail + 1, n_resources)), np.zeros((n_pools, n_resources, n + 1))
    counted = 0
    for i in range(steps):
        before = 0.0
        for g in range(n_pools):
            for k in range(n_resources):
                for t in range(n):
                    prefix[g, t + 1, k] = prefix[g, t, k] + prices[g, k, t]
                before = max(before, prefix[g, n, k])
                if tail > 0:
                    level = (prefix[g, n, k] - prefix[g, n - tail_of, k]) / tail_of
                    for t in range(n, n + tail):
                        prefix[g, t + 1, k] = prefix[g, t, k] + level
        change[:] = 0.0
        for q in range(rows.size):
            j, place = rows[q], places[q]
            o, s = _best_option_kernel(
                prefix, n, n + tail, place, begins[j], begins[j + 1], shortest[j], values[offsets[j] : offsets[j + 1]],
                pools, durations, totals, worths, grain,
            )  # fmt: skip
            if o >= 0:
                g, e = pools[o], min(n, s + durations[o])
                for k in range(n_resources):
                    change[g, k, s] += totals[o, k] * weights[q]
                    change[g, k, e] -= totals[o, k] * weights[q]
        highest = 0.0
        for g in range(n_pools):
            for k in range(n_resources):
                if size[g, k] <= 0.0:
                    continue
                demand, length = 0.0, step[k] / np.sqrt(1.0 + i)
                for t in range(n):
                    demand += change[g, k, t]
                    prices[g, k, t] = max(0.0, prices[g, k, t] - length * (supply[g, k, t] - demand) / size[g, k])
                    highest = max(highest, prices[g, k, t])
        if highest == 0.0 and before == 0.0:  # no step leads away from here: the demand stays below the supply
            counted += max(1, steps - max(i, steps // 2))
            break
        if i >= steps // 2:
            counted += 1
            mean += prices
    mean /= counted
