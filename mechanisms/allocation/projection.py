r"""Projection of columns onto the box cut by a capacity, exactly.

For one column (one instance, one type) the nearest point to :math:`z` with :math:`0 \le y \le a` and
:math:`\sum y \le c` is :math:`y = \min(\max(z - \lambda, 0), a)`, where :math:`\lambda = \rho / 2` is zero
if the clipped point already fits, and otherwise solves :math:`\sum y = c` (the KKT conditions of OgaSched
(12)). The sum falls piecewise linearly in :math:`\lambda`, so a Newton step from the right piece is exact
(OgaSched (13) is that step); steps that leave the bracket, or find no port strictly inside its bounds, become
bisections. The paper's own procedure sorts, and repeats with one port fewer until nothing is negative.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from marketsched.mechanisms.allocation.array_checks import check_shape, float_array, read_only
from marketsched.mechanisms.allocation.oga_kernels import SLACK, project_columns_kernel
from marketsched.mechanisms.errors import InvalidParameterError

_DIGITS = 60  # binary digits of a column's sum in whole numbers; two are left free


@dataclass(frozen=True, slots=True)
class Projected:
    """Projected columns, and the dual price of each column's capacity."""

    points: NDArray[np.float64]  # (n,), all columns
    duals: NDArray[np.float64]  # (n_columns,), rho = 2 lambda


@dataclass(frozen=True, slots=True)
class ColumnLimits:
    """Bounds and capacities of columns, as the compiled projection wants them; read-only."""

    limits: NDArray[np.float64]  # (n,), min(a, c): the same set, and no amount is ever beyond it
    scales: NDArray[np.float64]  # (n_columns,), powers of two that turn sums into whole numbers
    caps: NDArray[np.int64]  # (n_columns,), capacities in whole numbers; SLACK where the bounds alone suffice


def column_limits(
    bounds: NDArray[np.float64], capacities: NDArray[np.float64], columns: NDArray[np.int64]
) -> ColumnLimits:
    """Return bounds and capacities of columns for the kernels; arguments as in `project_columns`, trusted."""
    limits = np.minimum(bounds, np.repeat(capacities, np.diff(columns)))
    sums = np.zeros(capacities.size)
    filled = np.flatnonzero(np.diff(columns))
    if filled.size:
        sums[filled] = np.add.reduceat(limits, columns[filled])
    exponents = np.maximum(np.frexp(sums)[1], -900)  # sums < 2 ** exponent; tiny ones are not worth an overflow
    scales = np.ldexp(1.0, _DIGITS - exponents)
    binding = capacities < sums
    caps = np.full(capacities.size, SLACK, dtype=np.int64)
    caps[binding] = np.floor(capacities[binding] * scales[binding]).astype(np.int64)
    for array in (limits, scales, caps):
        read_only(array)
    return ColumnLimits(limits, np.asarray(scales, dtype=np.float64), caps)


def project_columns(points: ArrayLike, bounds: ArrayLike, capacities: ArrayLike, columns: ArrayLike) -> Projected:
    r"""Project columns that lie one after the other, each onto its own box and capacity.

    Parameters
    ----------
    points, bounds : array_like of float, shape (n,)
        :math:`z` and :math:`a \ge 0`, all columns.
    capacities : array_like of float, shape (n_columns,)
        :math:`c \ge 0`.
    columns : array_like of int, shape (n_columns + 1,)
        Column ``j`` is ``points[columns[j]:columns[j + 1]]``; columns may be empty.

    Returns
    -------
    Projected
        The nearest points and the dual prices :math:`\rho` of OgaSched (12).

    Raises
    ------
    InvalidParameterError
        If shapes disagree, or an entry is not finite or negative where it must not be.

    Examples
    --------
    >>> project_columns([3.0, 2.0], [9.0, 9.0], [4.0], [0, 2])
    Projected(points=array([2.5, 1.5]), duals=array([1.]))
    """
    z = float_array("points", points, (None,)).copy()
    a = float_array("bounds", bounds, z.shape, lowest=0.0)
    starts = np.asarray(columns, dtype=np.int64)
    check_shape("columns", starts.shape, (None,))
    if starts.size < 1 or starts[0] != 0 or starts[-1] != z.size or (np.diff(starts) < 0).any():
        raise InvalidParameterError(f"columns do not rise from 0 to {z.size}: expected where each column starts")
    c = float_array("capacities", capacities, (starts.size - 1,), lowest=0.0)
    duals = np.zeros(c.size)
    given = column_limits(a, c, starts)
    project_columns_kernel(z, given.limits, starts.astype(np.uint64), given.scales, given.caps, duals)
    return Projected(z, duals)
