r"""Compiled loops behind `cluster` and `fixed_allocation`: rewards, primal-dual steps, the exact bound for weights.

The problem is a saddle: with :math:`s_{lk} = \sum_r y_{(l,r)}^k` and weights :math:`w_l` on a simplex,

.. math:: \max_y \min_w \; \sum_l n_l \Bigl[\sum_{r,k} f_r^k(y_{(l,r)}^k) - \sum_k w_{lk} \beta_k s_{lk}\Bigr] .

For fixed weights it falls apart into the columns (r, k); a column is solved by a price on its
capacity (water-filling). All four gains are increasing and concave, with convex slopes, so that
Newton's method on slopes never overshoots from the left.

Channel arrays are described in `channel_layout`; ``counts (L,)`` are arrivals, scaled. Codes of gains: 0 linear, 1 log,
2 reciprocal, 3 poly.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

_FILLED = 1e-11  # a column is full if it is within this share of its capacity
_ROUNDS = 200  # of a price search; each halves the bracket at worst


class Problem(NamedTuple):
    """What is allocated: L ports, R instances, K types."""

    bounds: NDArray[np.float64]  # channel array, devices: the most that a port takes
    ports: NDArray[np.int64]  # of the channels (l, r), instance by instance
    offsets: NDArray[np.int64]  # (R + 1,), where the channels of each instance begin
    capacities: NDArray[np.float64]  # (R, K), devices
    codes: NDArray[np.int8]  # (R, K), of gains
    alphas: NDArray[np.float64]  # (R, K), of gains
    betas: NDArray[np.float64]  # (K,), overheads per device


class Point(NamedTuple):
    """Where the method stands."""

    flat: NDArray[np.float64]  # channel array, devices
    weights: NDArray[np.float64]  # (L, K), each row on the simplex
    totals: NDArray[np.float64]  # (L, K), devices: the sums of the amounts


@njit(cache=True, nogil=True)
def _gain(code, alpha, y):  # type: ignore[no-untyped-def]
    """Return f(y)."""
    if code == 0:
        return alpha * y
    if code == 1:
        return alpha * math.log(y + 1.0)
    if code == 2:
        return 1.0 / alpha - 1.0 / (y + alpha)
    return alpha * math.sqrt(y + 1.0) - alpha


@njit(cache=True, nogil=True)
def _slope(code, alpha, y):  # type: ignore[no-untyped-def]
    """Return f'(y)."""
    if code == 0:
        return alpha
    if code == 1:
        return alpha / (y + 1.0)
    if code == 2:
        return 1.0 / ((y + alpha) * (y + alpha))
    return 0.5 * alpha / math.sqrt(y + 1.0)


@njit(cache=True, nogil=True)
def _curvature(code, alpha, y):  # type: ignore[no-untyped-def]
    """Return -f''(y) >= 0."""
    if code == 0:
        return 0.0
    if code == 1:
        return alpha / ((y + 1.0) * (y + 1.0))
    if code == 2:
        return 2.0 / ((y + alpha) * (y + alpha) * (y + alpha))
    return 0.25 * alpha / ((y + 1.0) * math.sqrt(y + 1.0))


@njit(cache=True, nogil=True)
def _amount_at_price(code, alpha, price, bound):  # type: ignore[no-untyped-def]
    """Return the amount in [0, bound] that maximises f(y) - price y."""
    if _slope(code, alpha, bound) >= price:
        return bound
    if _slope(code, alpha, 0.0) <= price:
        return 0.0
    if code == 1:
        y = alpha / price - 1.0
    elif code == 2:
        y = 1.0 / math.sqrt(price) - alpha
    else:  # poly; a linear gain ended above
        y = 0.25 * (alpha / price) * (alpha / price) - 1.0
    return min(max(y, 0.0), bound)


@njit(cache=True, nogil=True)
def _amount_near(code, alpha, point, step, bound, guess):  # type: ignore[no-untyped-def]
    """Return the amount in [0, bound] that maximises step f(y) - (y - point)^2 / 2; ``guess`` starts the search."""
    if point + step * _slope(code, alpha, 0.0) <= 0.0:
        return 0.0
    if point + step * _slope(code, alpha, bound) >= bound:
        return bound
    if code == 0:
        return point + step * alpha
    if code == 1:  # a quadratic in y + 1, solved without cancellation
        half = 0.5 * (1.0 + point)
        root = math.sqrt(half * half + step * alpha)
        y = half + root if half >= 0.0 else step * alpha / (root - half)
        return min(max(y - 1.0, 0.0), bound)
    # The excess is convex and decreasing in y: one step lands left of the root, the others climb to it.
    lowest = max(point, 0.0)
    y = min(max(guess, lowest), bound)
    for _ in range(60):
        excess = point + step * _slope(code, alpha, y) - y
        change = excess / (1.0 + step * _curvature(code, alpha, y))
        y = max(y + change, lowest)
        if abs(change) <= 1e-13 * (1.0 + y):
            break
    return min(y, bound)


@njit(cache=True, nogil=True)
def _next_price(price, lowest, highest, excess, slope, tried_zero):  # type: ignore[no-untyped-def]
    """Return the next price to try, inside the bracket: Newton's if it is inside, else zero once, else the middle."""
    if slope > 0.0:
        price += excess / slope
        if lowest < price < highest:
            return price
        if price <= 0.0 and not tried_zero:
            return 0.0
    elif excess < 0.0 and not tried_zero:
        return 0.0
    return 0.5 * (lowest + highest)


@njit(cache=True, nogil=True)
def _fill_near(code, alpha, capacity, price, near, steps, counts, bounds, guesses, amounts):  # type: ignore[no-untyped-def]
    """Fill ``amounts`` of one column nearest to ``near`` in the metric of ``steps``; return its capacity's price."""
    n = near.size
    lowest, highest, tried_zero = 0.0, 0.0, price == 0.0
    for i in range(n):  # at the highest price nothing is allocated
        if steps[i] > 0.0:
            highest = max(highest, near[i] / steps[i] + counts[i] * _slope(code, alpha, 0.0))
    price = min(price, highest)
    total = 0.0
    for _ in range(_ROUNDS):
        total, slope = 0.0, 0.0
        for i in range(n):
            y, step = 0.0, steps[i]
            if step > 0.0:
                y = _amount_near(code, alpha, near[i] - step * price, step * counts[i], bounds[i], guesses[i])
                if 0.0 < y < bounds[i]:
                    slope += step / (1.0 + step * counts[i] * _curvature(code, alpha, y))
            amounts[i] = y
            total += y
        if abs(total - capacity) <= _FILLED * capacity or (total < capacity and price <= 0.0):
            break
        if total > capacity:
            lowest = price
        else:
            highest = price
        following = _next_price(price, lowest, highest, total - capacity, slope, tried_zero)
        tried_zero = tried_zero or following == 0.0
        if following == price:
            break
        price = following
    if total > capacity:
        for i in range(n):
            amounts[i] *= capacity / total
    return price


@njit(cache=True, nogil=True)
def _primal_step(point, prices, steps, pace, counts, problem):  # type: ignore[no-untyped-def]
    """Move the amounts one proximal step against the weights, in place; fill the totals per port and type."""
    flat, weights, totals = point
    bounds, ports, offsets, capacities, codes, alphas, betas = problem
    widest = 0
    for r in range(offsets.size - 1):
        widest = max(widest, offsets[r + 1] - offsets[r])
    near, step, count = np.empty(widest), np.empty(widest), np.empty(widest)
    amounts = np.empty(widest)
    totals[:] = 0.0
    for r in range(offsets.size - 1):
        first, n = offsets[r], offsets[r + 1] - offsets[r]
        for k in range(betas.size):
            start = first * betas.size + k * n
            if capacities[r, k] == 0.0:
                continue  # nothing was there, nothing comes
            for i in range(n):
                port = ports[first + i]
                count[i], step[i] = counts[port], pace * steps[start + i]
                near[i] = flat[start + i] - step[i] * counts[port] * weights[port, k] * betas[k]
            column = flat[start : start + n]
            prices[r, k] = _fill_near(
                codes[r, k], alphas[r, k], capacities[r, k], prices[r, k],
                near[:n], step[:n], count[:n], bounds[start : start + n], column, amounts[:n]
            )  # fmt: skip
            for i in range(n):
                column[i] = amounts[i]
                totals[ports[first + i], k] += amounts[i]


@njit(cache=True, nogil=True)
def _to_simplex(weights, steps):  # type: ignore[no-untyped-def]
    """Move ``weights`` to the nearest point of the simplex, in place, in the metric of ``steps`` (all > 0)."""
    active = np.ones(weights.size, dtype=np.bool_)
    for _ in range(weights.size):
        level, width = -1.0, 0.0
        for k in range(weights.size):
            if active[k]:
                level += weights[k]
                width += steps[k]
        level /= width
        settled = True
        for k in range(weights.size):
            if active[k] and weights[k] <= level * steps[k]:
                active[k] = settled = False
        if settled:
            break
    total = 0.0
    for k in range(weights.size):
        weights[k] = max(weights[k] - level * steps[k], 0.0) if active[k] else 0.0
        total += weights[k]
    for k in range(weights.size):
        weights[k] /= total


@njit(cache=True, nogil=True)
def primal_dual_kernel(rounds, pace, point, prices, sums, steps, dual_steps, counts, problem):  # type: ignore[no-untyped-def]
    """Do ``rounds`` primal-dual steps in place; add every point to the ``sums``, themselves a `Point`.

    ``prices (R, K)`` of capacities start the searches for the next ones; ``steps`` are those of amounts, a channel
    array, ``dual_steps (L, K)`` those of weights, both at ``pace`` 1.
    """
    flat, weights, totals = point
    flat_sum, weights_sum, totals_sum = sums
    betas, before = problem.betas, totals.copy()
    scaled = np.empty(betas.size)
    for _ in range(rounds):
        for port, k in np.ndindex(totals.shape):
            before[port, k] = totals[port, k]
        _primal_step(point, prices, steps, pace, counts, problem)
        for port in range(counts.size):
            for k in range(betas.size):
                scaled[k] = dual_steps[port, k] / pace
                ahead = 2.0 * totals[port, k] - before[port, k]
                weights[port, k] += scaled[k] * counts[port] * betas[k] * ahead
            _to_simplex(weights[port], scaled)
        for i in range(flat.size):
            flat_sum[i] += flat[i]
        weights_sum += weights
        totals_sum += totals


@njit(cache=True, nogil=True)
def channel_rewards_kernel(counts, flat, ports, offsets, codes, alphas, betas, gain, overhead):  # type: ignore[no-untyped-def]
    """Fill gain and overhead per port (OgaSched (5)); see `BipartiteCluster.channel_rewards`."""
    n_types = betas.size
    totals = np.zeros((n_types, counts.size))
    gain[:] = 0.0
    for r in range(offsets.size - 1):
        first, n = offsets[r], offsets[r + 1] - offsets[r]
        for k in range(n_types):
            start, code, alpha = first * n_types + k * n, codes[r, k], alphas[r, k]
            for i in range(n):
                port, y = ports[first + i], flat[start + i]
                if counts[port] > 0 and y > 0.0:
                    totals[k, port] += y
                    gain[port] += _gain(code, alpha, y)
    for port in range(counts.size):
        largest = 0.0
        for k in range(n_types):
            largest = max(largest, betas[k] * totals[k, port])
        gain[port] *= counts[port]
        overhead[port] = counts[port] * largest


@njit(cache=True, nogil=True)
def weighted_gain_kernel(flat, counts, problem):  # type: ignore[no-untyped-def]
    """Return the sum of the gains, weighted by counts."""
    _, ports, offsets, _, codes, alphas, _ = problem
    n_types = codes.shape[1]
    total = 0.0
    for r in range(offsets.size - 1):
        first, n = offsets[r], offsets[r + 1] - offsets[r]
        for k in range(n_types):
            start, column = first * n_types + k * n, 0.0
            for i in range(n):
                y = flat[start + i]
                if y > 0.0:
                    column += counts[ports[first + i]] * _gain(codes[r, k], alphas[r, k], y)
            total += column
    return total


@njit(cache=True, nogil=True)
def _column_bound(code, alpha, capacity, counts, costs, bounds):  # type: ignore[no-untyped-def]
    """Return the most that one column can be worth when its ports pay ``costs`` per unit.

    At every price of the capacity the Lagrangian is a bound (weak duality), so that the search may
    stop anywhere; it stops at the price at which the column is just full.
    """
    n = counts.size
    lowest, highest, tried_zero = 0.0, 0.0, True
    for i in range(n):
        highest = max(highest, counts[i] * (_slope(code, alpha, 0.0) - costs[i]))
    price = 0.0
    for _ in range(_ROUNDS):
        total, slope = 0.0, 0.0
        for i in range(n):
            if counts[i] > 0.0:
                y = _amount_at_price(code, alpha, costs[i] + price / counts[i], bounds[i])
                total += y
                if 0.0 < y < bounds[i]:
                    slope += 1.0 / (counts[i] * _curvature(code, alpha, y))
        if total == capacity or (total < capacity and price <= 0.0):
            break
        if total > capacity:
            lowest = price
        else:
            highest = price
        following = _next_price(price, lowest, highest, total - capacity, slope, tried_zero)
        if following == price:
            break
        price = following
    worth = price * capacity
    for i in range(n):
        if counts[i] > 0.0:
            cost = costs[i] + price / counts[i]
            y = _amount_at_price(code, alpha, cost, bounds[i])
            worth += counts[i] * (_gain(code, alpha, y) - cost * y)
    return worth


@njit(cache=True, nogil=True)
def upper_bound_kernel(weights, counts, problem):  # type: ignore[no-untyped-def]
    """Return the largest value for fixed weights, exact column by column: a bound on every allocation's value."""
    bounds, ports, offsets, capacities, codes, alphas, betas = problem
    total = 0.0
    for r in range(offsets.size - 1):
        first, n = offsets[r], offsets[r + 1] - offsets[r]
        count, cost = np.empty(n), np.empty(n)
        for k in range(betas.size):
            start = first * betas.size + k * n
            if capacities[r, k] == 0.0:
                continue
            for i in range(n):
                port = ports[first + i]
                count[i], cost[i] = counts[port], weights[port, k] * betas[k]
            total += _column_bound(codes[r, k], alphas[r, k], capacities[r, k], count, cost, bounds[start : start + n])
    return total


@njit(cache=True, nogil=True)
def typical_ranges_kernel(ranges, share, problem):  # type: ignore[no-untyped-def]
    """Fill how far amounts can usefully go: bound, capacity, and where the slope falls to a share of the overhead."""
    bounds, _, offsets, capacities, codes, alphas, betas = problem
    for r in range(offsets.size - 1):
        first, n = offsets[r], offsets[r + 1] - offsets[r]
        for k in range(betas.size):
            start = first * betas.size + k * n
            for i in range(n):
                most = min(bounds[start + i], capacities[r, k])
                useful = _amount_at_price(codes[r, k], alphas[r, k], share * betas[k], most)
                ranges[start + i] = max(useful, 1e-3 * most)
