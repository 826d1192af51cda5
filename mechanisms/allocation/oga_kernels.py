r"""Compiled loops of online gradient ascent and of the projection; what they compute stands in `oga` and `projection`.

Three things make them fast. A *column* (one instance, one type) lies contiguous over ports, and every loop
runs along columns, so that one instruction serves several ports. Sums along a column are taken in whole
numbers: amounts are multiplied by a power of two that belongs to the column and cut to 64-bit integers.
Whole numbers may be added in any order, hence several at a time, and the sum is the same on every machine
(the cut costs less than the rounding of a float sum). And the pass that writes an instance's new amounts
also writes the slopes there and adds up what the next slot needs, so nothing is read twice.

Places are unsigned numbers: a compiled index that could be negative would need a test.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

SLACK = 1 << 62  # capacity, in whole numbers, of a column that its bounds keep within capacity
HARD = 8  # Newton steps of a column before every other one is a bisection
STEPS = 400  # at most; bisection alone needs about 64
AMOUNT, SQUARE, REDUCED = 0, 1, 2  # rows of the sums per port and type: y, f'^2, (f' - beta)^2


@njit(cache=True, nogil=True, error_model="numpy")
def project_columns_kernel(points, limits, columns, scales, caps, duals):  # type: ignore[no-untyped-def]
    """Project columns in place; add rho of each column to ``duals``. ``columns`` are unsigned."""
    for j in range(caps.size):
        begin = columns[j]
        n = columns[j + 1] - begin
        duals[j] += 2.0 * _settle(points, begin, limits, begin, n, scales[j], caps[j])
        for i in range(n):
            points[begin + i] = min(max(points[begin + i], 0.0), limits[begin + i])


@njit(cache=True, nogil=True, error_model="numpy")
def _settle(z, at, limits, lim_at, n, scale, cap):  # type: ignore[no-untyped-def]
    """Lower ``z[at:at+n]`` by the number at which the clipped column fits its capacity exactly; return it.

    The column itself moves, not a level: near the end its numbers are as small as the amounts, so the
    capacity is met to their rounding, however far away the point was. The wanted shift stays in
    ``[low, high]``; a Newton step that leaves it, or has no port inside to go by, becomes a bisection.
    """
    total, inside = _fill(z, at, limits, lim_at, n, scale)
    if total <= cap:
        return 0.0
    enough = np.int64(n) * (2 + (cap >> 52))  # rounding of n numbers, in units of the scale
    low, high, level, bounded = 0.0, 0.0, 0.0, False
    for attempt in range(STEPS):
        excess = total - cap
        if -enough <= excess <= enough:
            break
        if excess > 0:
            low = 0.0
        else:
            high, bounded = 0.0, True
        shift = 0.0
        if inside > 0:
            shift = (excess / scale) / inside
        leaves = shift <= low if excess > 0 else shift >= high
        leaves |= shift <= low or (bounded and shift >= high)
        if inside == 0 or leaves or (attempt >= HARD and attempt % 2 == 0):
            if not bounded:
                for i in range(n):
                    high = max(high, z[at + i])  # nothing is left above it
                bounded = True
            shift = low + 0.5 * (high - low)
        total, inside = _lower(z, at, limits, lim_at, n, scale, shift)
        low -= shift
        high -= shift
        level += shift
    return level


@njit(cache=True, nogil=True, error_model="numpy")
def _fill(z, at, limits, lim_at, n, scale):  # type: ignore[no-untyped-def]
    """Return the clipped column's sum in whole numbers, and how many ports lie within their bounds."""
    total, inside = np.int64(0), 0
    for i in range(n):
        free = z[at + i]
        kept = min(max(free, 0.0), limits[lim_at + i])
        total += np.int64(kept * scale)
        inside += kept == free
    return total, inside


@njit(cache=True, nogil=True, error_model="numpy")
def _lower(z, at, limits, lim_at, n, scale, shift):  # type: ignore[no-untyped-def]
    """Lower the column by ``shift``, then return what `_fill` does."""
    total, inside = np.int64(0), 0
    for i in range(n):
        free = z[at + i] - shift
        z[at + i] = free
        kept = min(max(free, 0.0), limits[lim_at + i])
        total += np.int64(kept * scale)
        inside += kept == free
    return total, inside


@njit(cache=True, nogil=True, error_model="numpy")
def aim_kernel(counts, betas, sums, reach, step, moves, cuts):  # type: ignore[no-untyped-def]
    r"""Fill the tables of the coming pass from the sums of the last one; return the step.

    ``moves`` (by type, then by port) is :math:`\eta x_l` and ``cuts`` is :math:`\eta x_l \beta_k` where k is
    dominant, else zero. With ``reach`` = diam / sqrt(T) > 0 the step is (26) of the OgaSched paper; a zero
    gradient moves nothing. A negative count changes nothing and returns -1. Squares of :math:`f' - \beta` are summed by themselves, so that nothing cancels in the norm.
    """
    n_types, n_ports = betas.size, counts.size
    for port in range(n_ports):
        if counts[port] < 0:
            return -1.0
    totals = np.zeros((3, moves.size))
    for block in range(sums.shape[0]):
        for row in range(3):
            for place in range(moves.size):
                totals[row, place] += sums[block, row, place]
    moves[:] = 0.0
    cuts[:] = 0.0
    square = 0.0
    for port in range(n_ports):
        if counts[port] > 0:
            top = 0
            for k in range(1, n_types):
                if betas[k] * totals[AMOUNT, k * n_ports + port] > betas[top] * totals[AMOUNT, top * n_ports + port]:
                    top = k
            part = totals[REDUCED, top * n_ports + port]
            for k in range(n_types):
                moves[k * n_ports + port] = counts[port]
                if k != top:
                    part += totals[SQUARE, k * n_ports + port]
            cuts[top * n_ports + port] = counts[port] * betas[top]
            square += float(counts[port]) * counts[port] * part
    if reach > 0.0:
        step = reach / math.sqrt(square) if square > 0.0 else 0.0
    for place in range(moves.size):
        moves[place] *= step
        cuts[place] *= step
    return step


@njit(cache=True, nogil=True, error_model="numpy")
def pass_kernel(  # type: ignore[no-untyped-def]
    first_block, last_block, blocks, offsets, ports, limits, scales, caps, codes, alphas, betas, y, g, moves, cuts, sums
):
    """Take one step in the instances of some blocks: new amounts ``y``, slopes ``g`` and sums of each block.

    Instances none of whose ports has arrivals keep their amounts; with tables of zeros the pass only
    renews slopes and sums. ``blocks``, ``offsets`` and ``ports`` are unsigned; tables are flat.
    """
    n_types = np.uint64(betas.size)
    n_ports = np.uint64(moves.size) // n_types
    z, some = np.empty(moves.size), np.empty((5, moves.size))
    some_moves, some_cuts, some_amounts, some_squares, some_reduced = some[0], some[1], some[2], some[3], some[4]
    for block in range(first_block, last_block):
        amounts, squares, reduced = sums[block, 0], sums[block, 1], sums[block, 2]
        sums[block] = 0.0
        for r in range(blocks[block], blocks[block + 1]):
            at = np.uint64(r)
            first = offsets[at]
            n = offsets[at + np.uint64(1)] - first
            begin, column = first * n_types, at * n_types
            if n == n_ports:
                _advance(
                    y, g, limits, begin, n, n_types, column, scales, caps, codes, alphas, betas,
                    moves, cuts, amounts, squares, reduced, z,
                )  # fmt: skip
                continue
            for k in range(n_types):
                for i in range(n):
                    some_moves[k * n + i] = moves[k * n_ports + ports[first + i]]
                    some_cuts[k * n + i] = cuts[k * n_ports + ports[first + i]]
            some[2:, : n * n_types] = 0.0
            _advance(
                y, g, limits, begin, n, n_types, column, scales, caps, codes, alphas, betas,
                some_moves, some_cuts, some_amounts, some_squares, some_reduced, z,
            )  # fmt: skip
            for k in range(n_types):
                for i in range(n):
                    place = k * n_ports + ports[first + i]
                    amounts[place] += some_amounts[k * n + i]
                    squares[place] += some_squares[k * n + i]
                    reduced[place] += some_reduced[k * n + i]


@njit(cache=True, nogil=True, error_model="numpy")
def _advance(  # type: ignore[no-untyped-def]
    y, g, limits, begin, n, n_types, column, scales, caps, codes, alphas, betas,
    moves, cuts, amounts, squares, reduced, z,
):  # fmt: skip
    """Take the step in one instance whose tables and sums lie as its block does: by type, then by port."""
    size = n * n_types
    moved = False
    for i in range(n):
        moved |= moves[i] > 0.0
    if moved:
        _rise(z, y, g, begin, size, moves, cuts)
        for k in range(n_types):
            if caps[column + k] < SLACK:
                _settle(z, k * n, limits, begin + k * n, n, scales[column + k], caps[column + k])
        _keep(z, y, limits, begin, size)
    for i in range(size):
        amounts[i] += y[begin + i]
    for k in range(n_types):
        at = k * n
        _renew(y, g, begin + at, n, codes[column + k], alphas[column + k], betas[k], squares, reduced, at)


@njit(cache=True, nogil=True, error_model="numpy")
def _rise(z, y, g, begin, size, moves, cuts):  # type: ignore[no-untyped-def]
    """Fill ``z`` with the point that the gradient leads to."""
    for i in range(size):
        z[i] = y[begin + i] + moves[i] * g[begin + i] - cuts[i]


@njit(cache=True, nogil=True, error_model="numpy")
def _keep(z, y, limits, begin, size):  # type: ignore[no-untyped-def]
    """Write the clipped point."""
    for i in range(size):
        y[begin + i] = min(max(z[i], 0.0), limits[begin + i])


@njit(cache=True, nogil=True, error_model="numpy")
def _renew(y, g, begin, n, code, alpha, beta, squares, reduced, at):  # type: ignore[no-untyped-def]
    """Write the slopes of one column (codes as in ``gains``) and add their squares to the sums."""
    if code == 0:
        for i in range(n):
            g[begin + i] = alpha
    elif code == 1:
        for i in range(n):
            g[begin + i] = alpha / (y[begin + i] + 1.0)
    elif code == 2:
        for i in range(n):
            g[begin + i] = 1.0 / ((y[begin + i] + alpha) * (y[begin + i] + alpha))
    else:
        for i in range(n):
            g[begin + i] = 0.5 * alpha / math.sqrt(y[begin + i] + 1.0)
    for i in range(n):
        slope = g[begin + i]
        squares[at + i] += slope * slope
        reduced[at + i] += (slope - beta) * (slope - beta)
