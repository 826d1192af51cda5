r"""Projection of columns onto the box cut by a capacity, exactly.

For one column (one instance, one type) the nearest point to :math:`z` with :math:`0 \le y \le a` and
:math:`\sum y \le c` is :math:`y = \min(\max(z - \lambda, 0), a)`, where :math:`\lambda = \rho / 2` is zero
if the clipped point already fits, and otherwise solves :math:`\sum y = c` (the KKT conditions of OgaSched
(12)). The sum falls piecewise linearly in :math:`\lambda`, so a Newton step from the right piece is exact
(OgaSched (13) is that step). A step that leaves the bracket around the solution, or has no port strictly
inside its bounds to go by, becomes a step to a kink, which about halves the bracket. The paper's own
procedure sorts, and repeats with one port fewer until nothing is negative.

It serves `cluster.project`, gangs, weights and payments. The steps of the policy OgaSched do not call it: they have a
projection of their own in `oga_kernels`, so a change is made in both.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numba import njit
from numpy.typing import ArrayLike, NDArray

from marketsched.mechanisms.arrays import check_shape, float_array, read_only
from marketsched.mechanisms.errors import InvalidParameterError

DIGITS = 60  # binary digits of a column's sum in whole numbers; two are left free
NOTHING = 1e-250  # a capacity below it counts as none
SLACK = 1 << 62  # capacity, in whole numbers, of a column that its bounds keep within capacity
HARD = 8  # Newton steps of a column before every other step goes to a kink


@dataclass(frozen=True, slots=True)
class _Projected:
    """Projected columns, and the dual price of each column's capacity."""

    points: NDArray[np.float64]  # (n,), all columns
    duals: NDArray[np.float64]  # (n_columns,), rho = 2 lambda


@dataclass(frozen=True, slots=True)
class _ColumnLimits:
    """Bounds and capacities of columns, in the layout of the compiled projection; read-only.

    Sums along a column are sums of 64-bit integers: each amount is multiplied by the column's power of two and
    truncated. Integer addition is exact in any order, so the kernel can add several amounts at once and still gets the
    same sum on every machine. The truncation error is smaller than the rounding error of a floating-point sum.
    """

    limits: NDArray[np.float64]  # (n,), min(a, c): the same set, and no amount is ever beyond it
    scales: NDArray[np.float64]  # (n_columns,), powers of two that turn sums into whole numbers
    caps: NDArray[np.int64]  # (n_columns,), capacities in whole numbers; SLACK where the bounds alone suffice


def _column_limits(
    bounds: NDArray[np.float64], capacities: NDArray[np.float64], columns: NDArray[np.int64]
) -> _ColumnLimits:
    """Return bounds and capacities of columns for the kernels; arguments as in `project_columns`, trusted."""
    capacities = np.where(capacities < NOTHING, 0.0, capacities)
    limits = np.minimum(bounds, np.repeat(capacities, np.diff(columns)))
    sums = np.zeros(capacities.size)
    filled = np.flatnonzero(np.diff(columns))
    if filled.size:
        sums[filled] = np.add.reduceat(limits, columns[filled])
    exponents = np.maximum(np.frexp(sums)[1], -900)  # sums < 2 ** exponent; the scale of smaller ones would overflow
    scales = np.ldexp(1.0, DIGITS - exponents)
    binding = capacities < sums
    caps = np.full(capacities.size, SLACK, dtype=np.int64)
    caps[binding] = np.floor(capacities[binding] * scales[binding]).astype(np.int64)
    for array in (limits, scales, caps):
        read_only(array)
    return _ColumnLimits(limits, np.asarray(scales, dtype=np.float64), caps)


def project_columns(points: ArrayLike, bounds: ArrayLike, capacities: ArrayLike, columns: ArrayLike) -> _Projected:
    r"""Project columns that lie one after the other, each onto its own box and capacity.

    Returns the nearest points and the dual prices :math:`\rho` of OgaSched (12). Column ``j``, which may be empty, is
    ``points[columns[j]:columns[j + 1]]``, z, with ``bounds`` a >= 0; a capacity c below 1e-250 counts as zero.

    Examples
    --------
    >>> projected = project_columns([3.0, 2.0], [9.0, 9.0], [4.0], [0, 2])
    >>> projected.points, projected.duals
    (array([2.5, 1.5]), array([1.]))
    """
    z = float_array("points", points, (None,)).copy()
    a = float_array("bounds", bounds, z.shape, lowest=0.0)
    starts = np.asarray(columns, dtype=np.int64)
    check_shape("columns", starts.shape, (None,))
    if starts.size < 1 or starts[0] != 0 or starts[-1] != z.size or (np.diff(starts) < 0).any():
        raise InvalidParameterError(f"columns do not rise from 0 to {z.size}: expected where each column starts")
    c = float_array("capacities", capacities, (starts.size - 1,), lowest=0.0)
    duals = np.zeros(c.size)
    given = _column_limits(a, c, starts)
    free = z.copy()
    _project_columns_kernel(z, given.limits, starts.astype(np.uint64), given.scales, given.caps, duals)
    # The kernel bounds a port by the capacity, too, and gives a port that takes all of it the multiplier of that bound.
    column = np.repeat(np.arange(c.size), np.diff(starts))
    alone = np.flatnonzero((a > c[column]) & (z >= given.limits))
    np.maximum.at(duals, column[alone], 2.0 * (free[alone] - z[alone]))
    return _Projected(z, duals)


@njit(cache=True, nogil=True, error_model="numpy")
def _project_columns_kernel(points, limits, columns, scales, caps, duals):  # type: ignore[no-untyped-def]
    """Project columns in place; add rho of each column to ``duals``. ``columns`` are unsigned."""
    for j in range(caps.size):
        begin = columns[j]
        n = columns[j + 1] - begin
        duals[j] += 2.0 * _settle(points, limits, begin, n, scales[j], caps[j])
        for i in range(n):
            points[begin + i] = min(max(points[begin + i], 0.0), limits[begin + i])


@njit(cache=True, nogil=True, error_model="numpy")
def _settle(z, limits, at, n, scale, cap):  # type: ignore[no-untyped-def]
    """Lower ``z[at:at+n]`` by the number at which the clipped column fits its capacity exactly; return it.

    The column itself moves, not a level: near the end its numbers are as small as the amounts, so the
    capacity is met to their rounding, however far away the point was. The wanted shift stays between
    ``low`` and ``high``. A step to a kink leaves one kink less between these, and with none left the Newton
    step is exact, so the end is reached after few steps (usually two) and always.
    """
    total, inside = _lower(z, limits, at, n, scale, 0.0)
    if total <= cap:
        return 0.0
    enough = np.int64(n) * (2 + (cap >> 52))  # rounding of n numbers, in units of the scale
    low, high, level = 0.0, 0.0, 0.0
    for i in range(n):
        high = max(high, z[at + i])  # nothing is left above it
    for attempt in range(8 * np.int64(n) + HARD):
        excess = total - cap
        if -enough <= excess <= enough:
            break
        if excess > 0:
            low = 0.0
        else:
            high = 0.0
        shift = (excess / scale) / inside if inside > 0 else (high if excess > 0 else low)
        if inside == 0 or not (shift > low and shift < high) or (attempt >= HARD and attempt % 2 == 0):
            shift = _kink(z, limits, at, n, low, high, shift)
        total, inside = _lower(z, limits, at, n, scale, shift)
        low -= shift
        high -= shift
        level += shift
    return level


@njit(cache=True, nogil=True, error_model="numpy")
def _kink(z, limits, at, n, low, high, shift):  # type: ignore[no-untyped-def]
    """Return the kink within the bracket that is nearest to its middle, or ``shift`` if there is none."""
    middle, nearest = low + 0.5 * (high - low), high - low
    for i in range(n):
        for kink in (z[at + i], z[at + i] - limits[at + i]):
            if kink > low and kink < high and abs(kink - middle) < nearest:
                shift, nearest = kink, abs(kink - middle)
    return shift


@njit(cache=True, nogil=True, error_model="numpy")
def _lower(z, limits, at, n, scale, shift):  # type: ignore[no-untyped-def]
    """Lower the column; return its clipped sum in whole numbers, and how many ports lie within their bounds."""
    total, inside = np.int64(0), 0
    for i in range(n):
        free = z[at + i] - shift
        z[at + i] = free
        kept = min(max(free, 0.0), limits[at + i])
        total += np.int64(kept * scale)
        inside += kept == free
    return total, inside
