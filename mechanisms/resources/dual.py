r"""Prices of several pools and resources from all scenarios of later arrivals: the joint dual.

With what pool g has left of resource k in round t, and jobs j of weight :math:`w_j` (1/K in each of K scenarios),
minimise over :math:`p \ge 0`::

    D(p) = sum_{g,k,t} supply[g,k,t] p[g,k,t]
           + sum_j w_j max(0, max over options o and starts s of  worth_o V_j(s + d_o) - sum_k a_ok sum_t p[g_o,k,t])

by projected subgradient steps: with the demand that p leaves,

    p[g,k,t] <- max(0, p[g,k,t] - e_i rho_k (supply[g,k,t] - demand[g,k,t]) / size[g,k]),   e_i = step / sqrt(i + 1),

and the mean of the second half of the iterates is the price. Behind the window of n rounds the price goes on at the
mean of its last 24 rounds where there is a tail: else a long job that begins late would have its end for nothing. A
pool with one resource is (30) of docs/mathematics.md.

Nearly all of the time goes into the favourites. Every step looks first at the favourite of the step before, which is
often the favourite still; what could beat it is then looked for among starts whose least cost allows it. Least costs
come from tables: for 1 to 8, 10, 12, 14, 16, 20, ... rounds the lowest price of so many that begin within 8, or within
32, rounds. Rounding is monotone, so a bound that is made of the same operations as the cost is never above
it, and no favourite is missed: prices do not depend on the tables by a bit.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from marketsched.mechanisms.errors import InvalidParameterError
from marketsched.mechanisms.legal import Amount, Count, Natural, legal
from marketsched.mechanisms.resources.tasks import OptionColumns

TAIL_OF = 24  # rounds whose mean price is that of the rounds behind the window
LANES = 4  # resources are laid out in groups of so many, which one instruction can read
ROWS_PER_TABLE = 4  # tables cost as much as the favourites of so many rows that are looked for without them


class _Arriving(NamedTuple):
    """Tasks that arrive in the window; see `joint_dual_prices`."""

    rows: NDArray[np.int64]  # (m,)
    places: NDArray[np.int64]  # (m,), round of the window
    weights: NDArray[np.float64]  # (m,)


class _Lengths(NamedTuple):
    """The lengths of windows for which there are tables."""

    lengths: NDArray[np.int64]  # (n,), rounds, rising; empty: there are no tables
    of_length: NDArray[np.int64]  # (longest + 1,), for 0, 1, ... rounds the index of the last length not above it


class _Options(NamedTuple):
    """What the search for a favourite reads of tasks; see `OptionColumns`.

    A search is often as short as the passing of the columns that it does not read.
    """

    pools: NDArray[np.int64]  # (n_options,)
    durations: NDArray[np.int64]  # (n_options,), rounds
    worths: NDArray[np.float64]  # (n_options,)
    totals: NDArray[np.float64]  # (n_options * width,), parts; resources padded as in `_Costs`
    values: NDArray[np.float64]  # (n_values,), credits


class _Costs(NamedTuple):
    """Prices of one step, added up, and the tables of least costs, flat: resources side by side, ``width`` entries."""

    prefix: NDArray[np.float64]  # (n_pools * span * width,), credits: prices of the rounds before each, added up
    near: NDArray[np.float64]  # (n_lengths * n_pools * n * width,), the least of windows that begin within 8 rounds
    far: NDArray[np.float64]  # the same within 32 rounds
    of_length: NDArray[np.int64]  # as `_Lengths`
    n_pools: int
    n: int  # rounds of the window
    span: int  # rounds of the window and its tail, and one
    width: int  # resources, padded
    grain: float  # as `joint_dual_prices`


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
    grain: Amount = 0.0,
) -> NDArray[np.float64]:
    """Make ``steps`` subgradient steps on ``prices``, in place; return the mean of the last half of the iterates.

    Prices, credits per part and round, and ``supply``, the parts left in each round of the window (perhaps negative),
    have shape (n_pools, n_resources, n). ``size``, shape (n_pools, n_resources), is what each pool has, in parts: the
    unit of the steps; what a pool has none of keeps its price. ``rows`` of ``tasks`` (one may come several times)
    arrive at ``places`` of the window, and count with ``weights``. ``step`` is by resource the length of the first
    step, credits per part and round. ``tail`` rounds behind the window have the mean price of its last 24; 0: jobs have
    to end inside it. Where there is one resource, prices of windows are rounded to whole multiples of ``grain`` over
    it, so that equal windows are equal; 0: they are not rounded.
    """
    if prices.shape != supply.shape or not rows.shape == places.shape == weights.shape:
        raise InvalidParameterError(
            f"prices {prices.shape}, supply {supply.shape}, rows {rows.shape}, places {places.shape}, "
            f"weights {weights.shape}: expected equal shapes of the first two, and of the last three"
        )
    n_pools, n_resources, n = prices.shape
    mean, width = np.zeros_like(prices), -(-n_resources // LANES) * LANES
    padded = np.zeros((tasks.totals.shape[0], width))
    padded[:, :n_resources] = tasks.totals
    tables = _lengths(min(int(tasks.durations.max(initial=1)), n + tail))
    if rows.size < ROWS_PER_TABLE * n_pools * tables.lengths.size or grain > 0:
        tables = tables._replace(lengths=tables.lengths[:0])
    _descend_kernel(
        prices, supply, size, _Arriving(rows, places, weights), tasks, padded.ravel(), steps, step, tail, grain, tables,
        mean,
    )  # fmt: skip
    return mean


def added_up(prices: NDArray[np.float64], tail: int) -> NDArray[np.float64]:
    """Return running sums of prices over rounds, from 0, with ``tail`` more rounds priced at the mean of the last 24.

    From shape (n_pools, n_resources, n), credits per part and round, to (n_pools, n_resources, n + tail + 1).

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


def _lengths(longest: int) -> _Lengths:
    """Return the lengths that have tables, where no window is longer than ``longest`` rounds."""
    lengths = list(range(1, 9))
    while lengths[-1] < longest:
        lengths += [lengths[-1] * (8 + i) // 8 for i in (2, 4, 6, 8)]  # 8, 10, 12, 14, 16, 20, ...
    found = np.array([d for d in lengths if d <= longest], dtype=np.int64)
    return _Lengths(found, np.searchsorted(found, np.arange(longest + 1), side="right") - 1)


@njit(cache=True, inline="always")
def _lowest_kernel(cost, totals, a, low, b):  # type: ignore[no-untyped-def]
    """Add what four resources cost at the least; no index is negative, which need not be asked again."""
    a1, a2, a3 = a + np.uint64(1), a + np.uint64(2), a + np.uint64(3)
    b1, b2, b3 = b + np.uint64(1), b + np.uint64(2), b + np.uint64(3)
    return cost + totals[a] * low[b] + totals[a1] * low[b1] + totals[a2] * low[b2] + totals[a3] * low[b3]


@njit(cache=True, inline="always")
def _price_kernel(cost, totals, a, added, b, e):  # type: ignore[no-untyped-def]
    """Add what four resources cost from ``b`` to ``e`` of prices added up, in the same order."""
    a1, a2, a3 = a + np.uint64(1), a + np.uint64(2), a + np.uint64(3)
    b1, b2, b3 = b + np.uint64(1), b + np.uint64(2), b + np.uint64(3)
    e1, e2, e3 = e + np.uint64(1), e + np.uint64(2), e + np.uint64(3)
    cost = cost + totals[a] * (added[e] - added[b]) + totals[a1] * (added[e1] - added[b1])
    return cost + totals[a2] * (added[e2] - added[b2]) + totals[a3] * (added[e3] - added[b3])


@njit(cache=True)
def _best_option_kernel(  # type: ignore[no-untyped-def]
    costs, options, place, begin, end, shortest, first_value, end_of_values, guess, guessed_start
):
    """Return option and start of largest surplus, the option named first among equals, then the earliest; -1: none.

    ``later`` tells that a start comes after the best so far in that order: then it has to be better, not as good.
    """
    prefix, near, far, of_length, n_pools, n, span, width, grain = costs
    pools, durations, worths, totals, values = options
    best, found, start = 0.0, -1, -1
    if guess >= 0:
        d, at, a = durations[guess], (pools[guess] * span + guessed_start) * width, np.uint64(guess * width)
        cost = _price_kernel(0.0, totals, a, prefix, np.uint64(at), np.uint64(at + d * width))
        for k in range(4, width, 4):
            b = np.uint64(at + k)
            cost = _price_kernel(cost, totals, a + np.uint64(k), prefix, b, b + np.uint64(d * width))
        if grain > 0.0:
            window = prefix[at + d * width] - prefix[at]
            cost = totals[a] * (np.rint(window * grain) * (1.0 / grain))
        surplus = worths[guess] * values[first_value + d - shortest + guessed_start - place] - cost
        if surplus > best:
            best, found, start = surplus, guess, guessed_start
    for o in range(begin, end):
        d, g, worth, later = durations[o], pools[o], worths[o], o > found
        s, i, a = place, first_value + d - shortest, np.uint64(o * width)
        last = min(n - 1, span - 1 - d, place + end_of_values - 1 - i)
        while s <= last:
            value = worth * values[np.uint64(i)]  # no later start is worth more
            if value <= 0.0 or value < best or (later and value == best):
                break
            if o == found and s == start:
                later, s, i = True, s + 1, i + 1
                continue
            if near.size > 0 and s + 2 <= last:
                at = ((of_length[d] * n_pools + g) * n + s) * width
                if s + 8 <= last:
                    cost = _lowest_kernel(0.0, totals, a, far, np.uint64(at))
                    for k in range(4, width, 4):
                        cost = _lowest_kernel(cost, totals, a + np.uint64(k), far, np.uint64(at + k))
                    surplus = value - cost
                    if surplus <= 0.0 or surplus < best or (later and surplus == best):
                        s, i = s + 32, i + 32
                        continue
                cost = _lowest_kernel(0.0, totals, a, near, np.uint64(at))
                for k in range(4, width, 4):
                    cost = _lowest_kernel(cost, totals, a + np.uint64(k), near, np.uint64(at + k))
                surplus = value - cost
                if surplus <= 0.0 or surplus < best or (later and surplus == best):
                    s, i = s + 8, i + 8
                    continue
            end_of_block, at = min(last, s + 7), (g * span + s) * width
            while s <= end_of_block:
                cost = _price_kernel(0.0, totals, a, prefix, np.uint64(at), np.uint64(at + d * width))
                for k in range(4, width, 4):
                    b = np.uint64(at + k)
                    cost = _price_kernel(cost, totals, a + np.uint64(k), prefix, b, b + np.uint64(d * width))
                if grain > 0.0:
                    window = prefix[at + d * width] - prefix[at]
                    cost = totals[a] * (np.rint(window * grain) * (1.0 / grain))
                surplus = worth * values[np.uint64(i)] - cost
                if surplus > best or (surplus == best > 0.0 and (o < found or (o == found and s < start))):
                    best, found, start, later = surplus, o, s, True
                s, i, at = s + 1, i + 1, at + width
    return found, start


@njit(cache=True)
def _lower_kernel(low, ahead, out):  # type: ignore[no-untyped-def]
    """Fill ``out`` with the lower of each entry of ``low`` and the one that stands ``ahead`` entries behind it."""
    n = max(0, low.size - ahead)
    first, second, lower = low[:n], low[low.size - n :], out[:n]
    for i in range(n):
        lower[i] = second[i] if second[i] < first[i] else first[i]
    for i in range(n, low.size):
        out[i] = low[i]


@njit(cache=True)
def _tabulate_kernel(costs, lengths):  # type: ignore[no-untyped-def]
    """Fill the lowest prices of so many rounds that begin within 8, and within 32, rounds of each round."""
    prefix, near, far, _, n_pools, n, span, width, _ = costs
    low, other = np.empty(n * width), np.empty(n * width)
    for i in range(lengths.size * n_pools):
        g, ahead = i % n_pools, lengths[i // n_pools] * width
        added = prefix[g * span * width : (g + 1) * span * width]
        inside = max(0, min(low.size, added.size - ahead))
        until, since, price = added[ahead : ahead + inside], added[:inside], low[:inside]
        for t in range(inside):
            price[t] = until[t] - since[t]
        low[inside:] = np.inf  # beyond the last round with a price nothing begins
        _lower_kernel(low, width, other)
        _lower_kernel(other, 2 * width, low)
        _lower_kernel(low, 4 * width, near[i * low.size : (i + 1) * low.size])
        _lower_kernel(near[i * low.size : (i + 1) * low.size], 8 * width, other)
        _lower_kernel(other, 16 * width, far[i * low.size : (i + 1) * low.size])


@njit(cache=True)
def _descend_kernel(  # type: ignore[no-untyped-def]
    prices, supply, size, arriving, tasks, padded, steps, step, tail, grain, tables, mean
):
    """Fill ``mean``; ``prices`` ends at the last iterate. Prices added up have the resource last: read together."""
    (rows, places, weights), (lengths, of_length) = arriving, tables
    begins, offsets, shortest, pools, durations, totals, worths, values = tasks
    n_pools, n_resources, n = prices.shape
    tail_of = min(TAIL_OF, n)
    span, width = n + tail + 1, padded.size // max(1, pools.size)
    flat, change = np.zeros(n_pools * span * width), np.zeros((n_pools, n_resources, n + 1))
    prefix = flat.reshape((n_pools, span, width))
    near, far = np.empty(lengths.size * n_pools * n * width), np.empty(lengths.size * n_pools * n * width)
    costs = _Costs(flat, near, far, of_length, n_pools, n, span, width, grain)
    options = _Options(pools, durations, worths, padded, values)
    favourites, starts = np.full(rows.size, -1), np.zeros(rows.size, np.int64)  # the favourites of the step before
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
        _tabulate_kernel(costs, lengths)
        change[:] = 0.0
        for q in range(rows.size):
            j = rows[q]
            o, s = _best_option_kernel(
                costs, options, places[q], begins[j], begins[j + 1], shortest[j], offsets[j], offsets[j + 1],
                favourites[q], starts[q],
            )  # fmt: skip
            favourites[q], starts[q] = o, s
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
