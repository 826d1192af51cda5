"""Projections of shares onto what machines can run: P4, one task a machine, and P5 of the general setting.

*P4*, OPM (70)-(71), and OPM (19) for one job: on every machine the shares of the jobs are projected, on
their own, onto ``{z >= 0, sum z <= 1}``, by Newton steps on the threshold ``tau`` of ``z = max(y - tau, 0)``, which end
exactly; a machine whose clipped shares fit gets no step at all (`opm.kernels`).

*P5*, OPM (104)-(105), certified:

    minimise 1/2 sum (z - y)^2   s.t.  sum_j w[j,i] z[j,i] <= C_i,   sum_i z[j,i] <= u_j,   0 <= z <= top.

Dykstra's method in its dual form (Hildreth): machines and jobs are projected onto in turn, each time
exactly, by a root of a piecewise linear function of one multiplier per machine or job; the box is
kept exactly throughout, ``z = clip(y - w rho - sigma, 0, top)``. For the shares repaired to be
feasible, the duality gap at these multipliers bounds the squared distance to the solution by 2 gap.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numba import njit
from numpy.typing import ArrayLike, NDArray

from marketsched.mechanisms.allocation.opm.kernels import LANES
from marketsched.mechanisms.arrays import float_array
from marketsched.mechanisms.errors import SolverError
from marketsched.mechanisms.legal import Count, OpenShare, legal


def lanes_of(n_machines: int) -> int:
    """Return how many machines one block of the compiled kernels holds."""
    return min(LANES, -(-n_machines // 16) * 16)


def from_blocks(blocks: NDArray[np.float64], n_jobs: int, n_machines: int) -> NDArray[np.float64]:
    """Return the first ``n_jobs`` rows of all machines of blocks as a dense copy, shape (n_jobs, M)."""
    dense = blocks[:, :n_jobs].transpose(1, 0, 2).reshape(n_jobs, blocks.shape[0] * blocks.shape[2])
    return np.ascontiguousarray(dense[:, :n_machines])


FLOATS = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class _GeneralProjection:
    """A feasible point, and how far from the projection it can be."""

    shares: FLOATS  # (n_jobs, M), feasible
    gap: float  # primal less dual value; the distance to the exact projection is at most ``sqrt(2 gap)``
    sweeps: int  # rounds over all jobs and machines
    machine_prices: FLOATS  # (M,) and (n_jobs,), multipliers rho and sigma, >= 0
    job_prices: FLOATS


@legal
def project_general(
    points: ArrayLike,
    demands: ArrayLike,
    capacities: ArrayLike,
    limits: ArrayLike,
    *,
    top: ArrayLike | None = None,
    start: tuple[FLOATS, FLOATS] | None = None,
    tolerance: OpenShare = 1e-15,
    max_sweeps: Count = 20_000,
) -> _GeneralProjection:
    """Return the solution of P5: the point of the box [0, ``top``], by default 1, nearest to ``points`` (n_jobs, M).

    ``demands`` are r_j > 0, or a weight w[j,i] > 0 for every machine; limits u_j above M do not bind; ``start`` has
    multipliers of machines and jobs to begin with, such as those of the slot before. It stops at a gap of ``tolerance``
    per unit of ``1 + sum of squares of the shares``; SolverError if that is not reached.
    """
    y = float_array("points", points, (None, None))
    n_jobs, n_machines = y.shape
    given = np.asarray(demands)
    weights = float_array("demands", demands, y.shape if given.ndim == 2 else (n_jobs,), lowest=1e-300)
    if weights.ndim == 1:
        weights = np.repeat(weights[:, None], n_machines, axis=1)
    room = float_array("capacities", capacities, (n_machines,), lowest=0.0)
    most = np.minimum(np.asarray(limits, dtype=np.float64), float(n_machines) + 1.0)
    most = float_array("limits", most, (n_jobs,), lowest=0.0)
    ends = np.ones_like(y) if top is None else float_array("top", top, y.shape, lowest=0.0)
    rho, sigma = np.zeros(n_machines), np.zeros(n_jobs)
    if start is not None:
        rho = np.maximum(float_array("start[0]", start[0], (n_machines,)), 0.0)
        sigma = np.maximum(float_array("start[1]", start[1], (n_jobs,)), 0.0)
    shares = np.zeros_like(y)
    gap, sweeps = _sweep_kernel(y, weights, room, most, ends, rho, sigma, shares, tolerance, max_sweeps)
    if not gap <= tolerance * (1.0 + float((shares * shares).sum())):
        raise SolverError(
            f"gap {gap:.2e} after {sweeps} sweeps: expected {tolerance:g}; allow more sweeps or a larger gap"
        )
    return _GeneralProjection(shares, max(gap, 0.0), int(sweeps), rho, sigma)


@njit(cache=True)
def _root(values, weights, ends, room):  # type: ignore[no-untyped-def]
    """Return the smallest p >= 0 with ``sum w clip(v - w p, 0, end) <= room``: Newton, kept inside a bracket."""
    price, low, high = 0.0, 0.0, 0.0
    for k in range(values.size):
        if ends[k] > 0.0:
            high = max(high, values[k] / weights[k])
    for step in range(200):
        load, slope = 0.0, 0.0
        for k in range(values.size):
            share = values[k] - weights[k] * price
            if share >= ends[k]:
                load += weights[k] * ends[k]
            elif share > 0.0:
                load += weights[k] * share
                slope += weights[k] * weights[k]
        over = load - room
        if step == 0 and over <= 0.0:
            return 0.0
        if abs(over) <= 1e-15 * max(1.0, room) or high - low <= 1e-16 * high:
            return price
        if over > 0.0:
            low = price
        else:
            high = price
        new = price + over / slope if slope > 0.0 else low
        price = new if low < new < high else 0.5 * (low + high)
    return high


@njit(cache=True)
def _fill(y, weights, ends, rho, sigma, shares):  # type: ignore[no-untyped-def]
    for j in range(y.shape[0]):
        for i in range(y.shape[1]):
            shares[j, i] = min(max(y[j, i] - weights[j, i] * rho[i] - sigma[j], 0.0), ends[j, i])


@njit(cache=True)
def _repair_and_measure(y, weights, room, most, rho, sigma, shares):  # type: ignore[no-untyped-def]
    """Scale shares into the limits and capacities, in place; return the duality gap of the result.

    With z the minimiser of the Lagrangian and z' the repaired point, the gap is what complementary
    slackness lacks at z, and half the difference of squares: no large numbers cancel.
    """
    gap = 0.0
    scale_machine = np.ones(room.size)
    loads = np.zeros(room.size)
    for j in range(most.size):
        for i in range(room.size):
            loads[i] += weights[j, i] * shares[j, i]
    for i in range(room.size):
        gap += rho[i] * (room[i] - loads[i])
        if loads[i] > room[i]:
            scale_machine[i] = room[i] / loads[i]
    for j in range(most.size):
        count, scaled = 0.0, 0.0
        for i in range(room.size):
            count += shares[j, i]
            scaled += shares[j, i] * scale_machine[i]
        gap += sigma[j] * (most[j] - count)
        scale = most[j] / scaled if scaled > most[j] else 1.0
        for i in range(room.size):
            repaired = shares[j, i] * scale_machine[i] * scale
            gap += 0.5 * (repaired - shares[j, i]) * (repaired + shares[j, i] - 2.0 * y[j, i])
            shares[j, i] = repaired
    return gap


@njit(cache=True)
def _sweep_kernel(y, weights, room, most, ends, rho, sigma, shares, tolerance, rounds):  # type: ignore[no-untyped-def]
    """Project onto jobs and machines in turn until the gap is small; return gap and sweeps."""
    n_jobs, n_machines = y.shape
    ones = np.ones(n_machines)
    column, heights = np.empty(n_jobs), np.empty(n_jobs)
    row = np.empty(n_machines)
    gap = 0.0
    for sweep in range(rounds):
        for j in range(n_jobs):
            for i in range(n_machines):
                row[i] = y[j, i] - weights[j, i] * rho[i]
            sigma[j] = _root(row, ones, ends[j], most[j])
        for i in range(n_machines):
            for j in range(n_jobs):
                column[j], heights[j] = y[j, i] - sigma[j], ends[j, i]
            rho[i] = _root(column, weights[:, i].copy(), heights, room[i])
        _fill(y, weights, ends, rho, sigma, shares)
        gap = _repair_and_measure(y, weights, room, most, rho, sigma, shares)
        squares = 0.0
        for j in range(n_jobs):
            for i in range(n_machines):
                squares += shares[j, i] * shares[j, i]
        if gap <= tolerance * (1.0 + squares):
            return gap, sweep + 1
    return gap, rounds
