r"""One price vector for all scenarios of future arrivals: the dual behind bid prices.

Over a window of n rounds, with ``supply[t]`` nodes left in its t-th round and tasks j of weight
:math:`w_j` (1/K in each of K scenarios), minimise over :math:`p \ge 0`::

    D(p) = sum_t supply_t p_t + sum_j w_j max(0, max_s V_j(s + d_j) - c_j sum_{t=s}^{s+d_j-1} p_t)

by projected subgradient steps (docs/mathematics.md, (30)): with the demand that p leaves,

    p_t <- max(0, p_t - e_i (supply_t - demand_t) / C),   e_i = step / sqrt(i + 1),

and the mean of the second half of the iterates is the price. Each step asks every task for its best
start. Windows of one length share their costs, so for each duration a sparse table of range minima
is made once a step; a task whose starts are worth the same up to its deadline is then answered in
constant time, and one that loses value as it waits is scanned only while that can still pay. Tasks that differ in
nothing but their values, which rise, have one cheapest start: who buys it is counted by a search from the count of
the step before.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from marketsched.mechanisms.bid_price.tasks import Columns, one_by_one
from marketsched.mechanisms.errors import InvalidParameterError
from marketsched.mechanisms.legal import Count, legal

EXACT_PARTS = 1024  # weights that are multiples of one over it add up without rounding, in any order


class _Arriving(NamedTuple):
    """Groups of tasks that arrive in the window; see `dual_prices`."""

    rows: NDArray[np.int64]  # (m,), the first row of each
    sizes: NDArray[np.int64]  # (m,), how many rows
    places: NDArray[np.int64]  # (m,), round of the window; negative: before it
    weights: NDArray[np.float64]  # (m,), of each of its tasks


@legal
def dual_prices(
    prices: NDArray[np.float64],
    supply: NDArray[np.float64],
    capacity: int,
    rows: NDArray[np.int64],
    places: NDArray[np.int64],
    weights: NDArray[np.float64],
    tasks: Columns,
    *,
    steps: Count,
    step: float,
    sizes: NDArray[np.int64] | None = None,
) -> NDArray[np.float64]:
    """Make ``steps`` subgradient steps on ``prices``, in place; return the mean of the last half of the iterates.

    Parameters
    ----------
    prices : array of float, shape (n,)
        Where to begin, credits per node and round; the last iterate afterwards.
    supply : array of float, shape (n,)
        Nodes left in each round of the window; may be negative.
    capacity : int
        C, nodes: the unit of the steps.
    rows : array of int, shape (m,)
        Rows of ``tasks``; one row may come several times.
    places : array of int, shape (m,)
        Where in the window each arrives, below n; before the window (it still waits) where negative.
    weights : array of float, shape (m,)
        How much each counts.
    tasks : Columns
        What the rows stand for.
    steps : int
        How many, >= 1.
    step : float
        Length of the first one, credits per node and round.
    sizes : array of int, shape (m,), optional
        For how many rows each stands: itself and those behind it, alike as `TaskStore.groups` has them. Itself alone
        where left out.

    Returns
    -------
    array of float, shape (n,)
    """
    if prices.shape != supply.shape or not rows.shape == places.shape == weights.shape:
        raise InvalidParameterError(
            f"prices {prices.shape}, supply {supply.shape}, rows {rows.shape}, places {places.shape}, "
            f"weights {weights.shape}: expected equal shapes of the first two, and of the last three"
        )
    if sizes is None:
        sizes = np.ones_like(rows)
    elif (weights * EXACT_PARTS % 1.0).any():  # groups add up in another order than their tasks
        rows, places, weights = one_by_one(rows, sizes), np.repeat(places, sizes), np.repeat(weights, sizes)
        sizes = np.ones_like(rows)
    mean = np.zeros_like(prices)
    arriving = _Arriving(rows, sizes, places, weights)
    _descend_kernel(prices, supply, float(capacity), arriving, tasks, steps, step, mean)
    return mean


@njit(cache=True)
def _window_kernel(prefix, length, top, costs, starts):  # type: ignore[no-untyped-def]
    """Fill row k of ``costs``, at s: the least price of ``length`` rounds from one of 2^k starts, s first.

    ``starts`` gets the first start that has it. Rows are as long as there are rounds, one behind the other; only k up
    to ``top`` is wanted, and the first row of ``starts`` is there already. Each row is made of neighbours in the one
    above, so that one instruction makes several.
    """
    size = prefix.size - 1
    n = size - length + 1  # windows that end inside
    for s in range(n):
        costs[s] = np.rint((prefix[s + length] - prefix[s]) * 1e9) * 1e-9
    k, span = 0, 1
    while k < top and 2 * span <= n:
        row, below = k * size, (k + 1) * size
        cost, start, lower, first = costs[row:below], starts[row:below], costs[below:], starts[below:]
        for s in range(n - 2 * span + 1):
            here = cost[s] <= cost[s + span]
            lower[s] = cost[s] if here else cost[s + span]
            first[s] = start[s] if here else start[s + span]
        k, span = k + 1, 2 * span


@njit(cache=True)
def _waiting_start_kernel(costs, starts, size, logs, first, last, width, values, best, found):  # type: ignore[no-untyped-def]
    """Return the best of ``found``, of surplus ``best``, and the starts ``first .. last`` worth ``values[0]``, ....

    Values do not increase, so once the most that any later start could bring is no more than the best, none is.
    """
    s = first
    while s <= last:
        k = logs[last - s + 1]
        one, other = k * size + s, k * size + last - (1 << k) + 1
        at = one if costs[one] <= costs[other] else other
        ahead, cheapest = starts[at], width * costs[at]
        while s <= ahead:  # behind the cheapest one the rest is asked again
            if values[s - first] - cheapest <= best:
                return found
            surplus = values[s - first] - width * costs[s]
            if surplus > best:
                best, found = surplus, s
            s += 1
    return found


@njit(cache=True)
def _sorted_kernel(arriving, tasks, n, logs, kinds, tops):  # type: ignore[no-untyped-def]
    """Lay the groups that fit into ``n`` rounds side by side, those of one duration together.

    Returns for each: where in the tables of costs (of ``n`` entries a row) the two stretches stand that cover all
    starts of the first value; the last of them, and the last start; nodes, weighted nodes, first value; where the
    values of later starts begin; its first row, and how many. With many jobs all of it comes from memory in every
    step: columns of their own, as short as they can be, so that nothing is fetched that is not used. ``kinds[d]``
    receives where those of duration d begin, and ``tops[d]`` the logarithm of the longest stretch of starts that one
    of them asks about.
    """
    rows, sizes, places, weights = arriving
    durations, widths, flats, worth, offsets, values = tasks
    counts = np.zeros(n + 2, np.int64)
    for q in range(rows.size):
        j = rows[q]
        gone = max(0, -places[q])  # starts that lie before the window
        if durations[j] <= n - max(0, places[q]) and offsets[j] + gone < offsets[j + 1]:
            counts[durations[j] + 1] += 1
    for d in range(1, n + 2):
        counts[d] += counts[d - 1]
    for d in range(n + 2):  # as a slice it takes a second longer to compile: its error has a text
        kinds[d] = counts[d]
    m = counts[n + 1]
    ones, others = np.empty(m, np.int32), np.empty(m, np.int32)
    flat_lasts, lasts = np.empty(m, np.int32), np.empty(m, np.int32)
    nodes, weighted, firsts, tables = np.empty(m), np.empty(m), np.empty(m), np.empty(m, np.int64)
    heads, counted = np.empty(m, np.int64), np.empty(m, np.int32)
    for q in range(rows.size):
        j = rows[q]
        place, gone, d = max(0, places[q]), max(0, -places[q]), durations[j]
        if d <= n - place and offsets[j] + gone < offsets[j + 1]:
            x, begin = counts[d], offsets[j] + gone
            counts[d] += 1
            last = min(place + offsets[j + 1] - begin, n - d + 1) - 1
            flat = min(place + max(1, flats[j] - gone) - 1, last)
            k = logs[flat - place + 1]
            ones[x], others[x] = k * n + place, k * n + flat - (1 << k) + 1
            flat_lasts[x], lasts[x], tables[x] = flat, last, begin + flat + 1 - place
            heads[x], counted[x] = j, sizes[q]
            tops[d] = max(tops[d], logs[last - place + 1])
            nodes[x], weighted[x] = widths[j], widths[j] * weights[q]
            firsts[x] = worth[j] if gone < flats[j] else values[begin]
    return ones, others, flat_lasts, lasts, nodes, weighted, firsts, tables, heads, counted


@njit(cache=True)
def _buyers_kernel(firsts, begin, end, price, before):  # type: ignore[no-untyped-def]
    """Return how many of these values, which rise, exceed a price; ``before`` was the answer to a price close by."""
    low, high, stride, guess = begin, end, 1, min(end - before, end - 1)
    if firsts[guess] - price > 0.0:  # the first that exceeds it lies at the guess, or before
        high = guess
        while low < high:
            probe = max(low, high - stride)
            if not firsts[probe] - price > 0.0:
                low = probe + 1
                break
            high, stride = probe, 2 * stride
    else:
        low = guess + 1
        while low < high:
            probe = min(high, low + stride) - 1
            if firsts[probe] - price > 0.0:
                high = probe
                break
            low, stride = probe + 1, 2 * stride
    while low < high:
        middle = (low + high) // 2
        if firsts[middle] - price > 0.0:
            high = middle
        else:
            low = middle + 1
    return end - low


@njit(cache=True)
def _descend_kernel(prices, supply, capacity, arriving, tasks, steps, step, mean):  # type: ignore[no-untyped-def]
    """Fill ``mean``; ``prices`` ends at the last iterate."""
    n, worth, values = prices.size, tasks.firsts, tasks.values
    prefix, change = np.zeros(n + 1), np.zeros(n + 1)
    logs = np.zeros(n + 2, np.int64)
    for i in range(2, n + 2):
        logs[i] = logs[i // 2] + 1
    costs, starts = np.zeros((logs[n] + 1) * n), np.zeros((logs[n] + 1) * n, np.int64)
    for s in range(n):
        starts[s] = s
    kinds, tops = np.zeros(n + 2, np.int64), np.zeros(n + 2, np.int64)
    ones, others, flat_lasts, lasts, nodes, weighted, firsts, tables, heads, counts = _sorted_kernel(
        arriving, tasks, n, logs, kinds, tops
    )
    bought = np.zeros(ones.size, np.int32)
    counted = 0
    for i in range(steps):
        for t in range(n):
            prefix[t + 1] = prefix[t] + prices[t]
        change[:] = 0.0
        for d in range(1, n + 1):
            if kinds[d] == kinds[d + 1]:
                continue
            _window_kernel(prefix, d, tops[d], costs, starts)
            for x in range(kinds[d], kinds[d + 1]):
                one, other = np.uint32(ones[x]), np.uint32(others[x])
                at = one if costs[one] <= costs[other] else other
                s, cost = starts[at], costs[at]
                if counts[x] > 1:
                    end = heads[x] + counts[x]
                    bought[x] = _buyers_kernel(worth, heads[x], end, nodes[x] * cost, np.int64(bought[x]))
                    sold = bought[x] * weighted[x]
                else:
                    best = firsts[x] - nodes[x] * cost
                    sold = weighted[x] if best > 0.0 else 0.0
                    flat, last = np.int64(flat_lasts[x]), np.int64(lasts[x])
                    if flat < last and cost > 0.0:  # where it is free nothing is cheaper, nor is it worth more
                        found = s if best > 0.0 else np.int64(-1)
                        later = values[tables[x] :]
                        s = _waiting_start_kernel(
                            costs, starts, n, logs, flat + 1, last, nodes[x], later, max(0.0, best), found
                        )
                        sold = weighted[x] if s >= 0 else 0.0
                        s = max(s, 0)
                change[s] += sold  # most often nothing: adding it is faster than asking
                change[s + d] -= sold
        demand, length, highest = 0.0, step / np.sqrt(1.0 + i), 0.0
        for t in range(n):
            demand += change[t]
            prices[t] = max(0.0, prices[t] - length * (supply[t] - demand) / capacity)
            highest = max(highest, prices[t])
        if highest == 0.0 and prefix[n] == 0.0:  # no step leads away from here: the demand stays below the supply
            counted += max(1, steps - max(i, steps // 2))
            break
        if i >= steps // 2:
            counted += 1
            for t in range(n):
                mean[t] += prices[t]
    for t in range(n):
        mean[t] /= counted
