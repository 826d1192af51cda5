"""Compiled parts of one OPM slot: dual step, primal step with projection and draw, budget stop; and of the baselines.

Fractional shares of jobs on machines lie in *blocks*: an array of shape (blocks, rows, lanes), where machine ``i`` is
lane ``i % lanes`` of block ``i // lanes``, and a row belongs to one open job. The number of rows is a multiple of four;
spare rows and spare lanes hold zeros and stay so. Four rows are worked on at a time, over all lanes of a block: such
loops are turned into vector instructions, and a block stays in the fast caches from the gradient to the draw.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

LANES = 128  # per block; measured at 100 and at 4,472 jobs, 64 to 250 differ little
QUAD = 4  # rows worked on at a time; written out in the kernels

# Rows of the table of open jobs; one column per open job.
JOB, ARRIVAL, DEADLINE, BUDGET, SPENT, WEIGHT, EXPONENT = range(7)
DUAL, COST, COST_BEFORE, WORK, DONE, DEMAND, LIMIT = range(7, 14)
N_FIELDS = 14

_SETTLED = 1e-15  # a step of the threshold below this share of it is rounding
IDLE = -1


class Machines(NamedTuple):
    """The machines at one primal step, arrays (blocks, lanes)."""

    before: NDArray[np.float64]  # rates of the slot before, of which the gradient is made
    rates: NDArray[np.float64]  # rates that weigh the new shares, work per slot
    prices: NDArray[np.float64]  # in units of the highest price
    low: NDArray[np.float64]  # thresholds of the projection; the last ones start the search
    uniforms: NDArray[np.float64]  # numbers in [0, 1) that decide the draws
    rows: NDArray[np.int64]  # the row drawn for each machine, -1 for none


@njit(cache=True, nogil=True)
def dual_kernel(table, n, slot, unit, mu, alpha, slack, floor, gains, charges):  # type: ignore[no-untyped-def]
    """Take the dual step OPM (73) of the first ``n`` jobs; fill alpha f'(average) and alpha lambda.

    ``slot`` is t; costs and work are those of the fractional slots up to t - 1, costs in the unit of
    the highest price, 1 / ``unit`` credits. Entries of ``gains`` and ``charges`` from ``n`` on are set to 0.
    """
    for r in range(n):
        begun = slot - 1.0 - table[ARRIVAL, r]  # slots that went into the average
        share = (1.0 - slack) * unit * table[BUDGET, r] / (table[DEADLINE, r] - table[ARRIVAL, r])
        over, over_before = table[COST, r] - share, table[COST_BEFORE, r] - share
        dual = max(0.0, table[DUAL, r] + 2.0 * mu * over - mu * over_before)
        table[DUAL, r] = dual
        average = table[WORK, r] / begun if begun > 0.0 else 0.0
        exponent = table[EXPONENT, r]
        gains[r] = alpha * table[WEIGHT, r] * exponent * max(average, floor) ** (exponent - 1.0)
        charges[r] = alpha * dual
    gains[n:] = 0.0
    charges[n:] = 0.0


@njit(cache=True, nogil=True)
def _positive(x):  # type: ignore[no-untyped-def]
    return x if x > 0.0 else 0.0


@njit(cache=True, nogil=True)
def _sign(x):  # type: ignore[no-untyped-def]
    return 1.0 if x > 0.0 else 0.0


@njit(cache=True, nogil=True)
def _ascend(block, n, gains, charges, rates, prices, low, total, count):  # type: ignore[no-untyped-def]
    """Add the gradient to the first ``n`` rows; sum what exceeds ``low``, and count it."""
    total[:] = 0.0
    count[:] = 0.0
    for r in range(0, n, 4):
        row_a, row_b, row_c, row_d = block[r], block[r + 1], block[r + 2], block[r + 3]
        gain_a, gain_b, gain_c, gain_d = gains[r], gains[r + 1], gains[r + 2], gains[r + 3]
        charge_a, charge_b, charge_c, charge_d = charges[r], charges[r + 1], charges[r + 2], charges[r + 3]
        for lane in range(low.size):
            rate, price, floor = rates[lane], prices[lane], low[lane]
            a = row_a[lane] + gain_a * rate - charge_a * price
            b = row_b[lane] + gain_b * rate - charge_b * price
            c = row_c[lane] + gain_c * rate - charge_c * price
            d = row_d[lane] + gain_d * rate - charge_d * price
            row_a[lane], row_b[lane], row_c[lane], row_d[lane] = a, b, c, d
            total[lane] += (_positive(a - floor) + _positive(b - floor)) + (_positive(c - floor) + _positive(d - floor))
            count[lane] += (_sign(a - floor) + _sign(b - floor)) + (_sign(c - floor) + _sign(d - floor))


@njit(cache=True, nogil=True)
def _measure(block, n, low, total, count):  # type: ignore[no-untyped-def]
    """Sum what exceeds ``low`` in the first ``n`` rows, and count it."""
    total[:] = 0.0
    count[:] = 0.0
    for r in range(0, n, 4):
        row_a, row_b, row_c, row_d = block[r], block[r + 1], block[r + 2], block[r + 3]
        for lane in range(low.size):
            floor = low[lane]
            a, b, c, d = row_a[lane] - floor, row_b[lane] - floor, row_c[lane] - floor, row_d[lane] - floor
            total[lane] += (_positive(a) + _positive(b)) + (_positive(c) + _positive(d))
            count[lane] += (_sign(a) + _sign(b)) + (_sign(c) + _sign(d))


@njit(cache=True, nogil=True)
def _lower(low, total, count):  # type: ignore[no-untyped-def]
    """Take one Newton step of every lane's threshold; tell whether one moved.

    The excess sum is convex and decreasing in the threshold, so that a step from the right of the
    root leads to its left, and steps from the left stay there and end exactly when the set of
    positive shares is the right one. Without any positive share the search begins anew at 0.
    """
    moved = False
    for lane in range(low.size):
        new = 0.0
        if count[lane] > 0.0:
            new = max(low[lane] + (total[lane] - 1.0) / count[lane], 0.0)
        moved |= abs(new - low[lane]) > _SETTLED * (1.0 + new)
        low[lane] = new
    return moved


@njit(cache=True, nogil=True)
def _settle(block, n, low, total, count):  # type: ignore[no-untyped-def]
    """Bring every lane's threshold to the solution of P4, from sums taken at ``low``."""
    for _ in range(n + 64):  # rounding may make the last digit swing; the steps before are at most n + 1
        if not _lower(low, total, count):
            return
        _measure(block, n, low, total, count)


@njit(cache=True, nogil=True)
def _cut(block, n, low, uniforms, total, beyond):  # type: ignore[no-untyped-def]
    """Cut the shares at the threshold; count, per lane, the rows from the one that is drawn on.

    A row is drawn if the uniform number lies between the sums of the shares before it and up to
    it; beyond the last sum there is none.
    """
    total[:] = 0.0
    beyond[:] = 0.0
    for r in range(0, n, 4):
        row_a, row_b, row_c, row_d = block[r], block[r + 1], block[r + 2], block[r + 3]
        for lane in range(low.size):
            floor, uniform = low[lane], uniforms[lane]
            a, b = _positive(row_a[lane] - floor), _positive(row_b[lane] - floor)
            c, d = _positive(row_c[lane] - floor), _positive(row_d[lane] - floor)
            row_a[lane], row_b[lane], row_c[lane], row_d[lane] = a, b, c, d
            sum_a = total[lane] + a
            sum_b = sum_a + b
            sum_c = sum_b + c
            sum_d = sum_c + d
            total[lane] = sum_d
            beyond[lane] += (_sign(sum_a - uniform) + _sign(sum_b - uniform)) + (
                _sign(sum_c - uniform) + _sign(sum_d - uniform)
            )


@njit(cache=True, nogil=True)
def _weigh(block, n, prices, rates, costs, works):  # type: ignore[no-untyped-def]
    """Add cost and work of the first ``n`` rows, a quarter of the lanes' number of parts each."""
    part = prices.size // 4
    for r in range(n):
        row, cost, work = block[r], costs[r], works[r]
        for k in range(part):
            a, b, c, d = row[k], row[k + part], row[k + 2 * part], row[k + 3 * part]
            cost[k] += (a * prices[k] + b * prices[k + part]) + (c * prices[k + 2 * part] + d * prices[k + 3 * part])
            work[k] += (a * rates[k] + b * rates[k + part]) + (c * rates[k + 2 * part] + d * rates[k + 3 * part])


@njit(cache=True, nogil=True)
def _add_up(parts):  # type: ignore[no-untyped-def]
    """Put the sum of the parts, four or a multiple of four, into the first one."""
    a, b, c, d = 0.0, 0.0, 0.0, 0.0
    for k in range(0, parts.size, 4):
        a, b, c, d = a + parts[k], b + parts[k + 1], c + parts[k + 2], d + parts[k + 3]
    parts[0] = (a + b) + (c + d)


@njit(cache=True, nogil=True)
def step_kernel(first, last, blocks, n, gains, charges, machines, sums):  # type: ignore[no-untyped-def]
    """Take the primal step OPM (69), project (P4), draw OPM (72), over the blocks from ``first`` to before ``last``.

    Of ``sums`` (2, rows, lanes / 4) the first entries become every row's cost and work on these blocks.
    """
    before, rates, prices, low, uniforms, rows = machines
    total, count = np.empty(low.shape[1]), np.empty(low.shape[1])
    sums[:, :n] = 0.0
    n_padded = -(-n // 4) * 4
    for k in range(first, last):
        block = blocks[k]
        _ascend(block, n, gains, charges, before[k], prices[k], low[k], total, count)
        _settle(block, n, low[k], total, count)
        _cut(block, n, low[k], uniforms[k], total, count)
        _weigh(block, n, prices[k], rates[k], sums[0], sums[1])
        for lane in range(low.shape[1]):
            row = n_padded - np.int64(count[lane])
            rows[k, lane] = row if row < n else -1
    for r in range(n):
        _add_up(sums[0, r])
        _add_up(sums[1, r])


@njit(cache=True, nogil=True)
def _charge(r, price, strict, table):  # type: ignore[no-untyped-def]
    """Charge a task to the job of a row; return whether it runs.

    A job ends once a task would not leave its spending below its budget ("< B" in line 8 of the paper's Algorithm 1):
    it gets neither this task nor a later one.
    """
    if table[DONE, r] > 0.0:
        return False
    spent = table[SPENT, r] + price
    if strict and spent >= table[BUDGET, r]:
        table[DONE, r] = 1.0
        return False
    table[SPENT, r] = spent
    return True


@njit(cache=True, nogil=True)
def _end_jobs(cheapest, strict, table, n):  # type: ignore[no-untyped-def]
    """Mark jobs that cannot pay the cheapest machine; return how many of ``n`` jobs are done."""
    done = 0
    for r in range(n):
        if strict and table[SPENT, r] + cheapest >= table[BUDGET, r]:
            table[DONE, r] = 1.0
        done += table[DONE, r] > 0.0
    return done


@njit(cache=True, nogil=True)
def execute_kernel(rows, prices, cheapest, table, n, strict, decision):  # type: ignore[no-untyped-def]
    """Turn drawn rows into jobs, machine by machine, and charge them; return how many of ``n`` jobs are done."""
    for i in range(rows.size):
        r = rows[i]
        decision[i] = np.int64(table[JOB, r]) if r >= 0 and _charge(r, prices[i], strict, table) else -1
    return _end_jobs(cheapest, strict, table, n)


@njit(cache=True, nogil=True)
def upper_rates_kernel(works, plays, gamma, rates):  # type: ignore[no-untyped-def]
    """Fill ``rates`` by OPM (66)-(67) with the radius OPM (14)."""
    for i in range(works.size):
        samples = plays[i] + 1.0
        mean = works[i] / samples
        rates[i] = min(1.0, mean + 2.0 * (np.sqrt(gamma * mean / samples) + gamma / samples))


@njit(cache=True, nogil=True)
def learn_kernel(decision, work, plays, works):  # type: ignore[no-untyped-def]
    """Count a task and its work on every machine that was given to a job."""
    for i in range(decision.size):
        if decision[i] >= 0:
            plays[i] += 1.0
            works[i] += work[i]


@njit(cache=True)
def pay_kernel(rows, machines, prices, cheapest, table, n, strict):  # type: ignore[no-untyped-def]
    """Charge tasks in order; return which are run."""
    kept = np.zeros(rows.size, dtype=np.bool_)
    for k in range(rows.size):
        kept[k] = _charge(rows[k], prices[machines[k]], strict, table)
    _end_jobs(cheapest, strict, table, n)
    return kept


@njit(cache=True)
def _mark_done(table, n, cheapest):  # type: ignore[no-untyped-def]
    """Mark jobs that can afford no machine at all."""
    for r in range(n):
        if table[SPENT, r] + cheapest > table[BUDGET, r]:
            table[DONE, r] = 1.0


@njit(cache=True)
def share_kernel(machines, prices, cheapest, table, n, turn, decision):  # type: ignore[no-untyped-def]
    """Give machine number k of K to job ``k * n // K``, or in turns if n > K; return whose turn is next."""
    decision[:] = -1
    if n == 0:
        return 0
    turn %= n
    for k in range(machines.size):
        r = k * n // machines.size if n <= machines.size else (turn + k) % n
        i = machines[k]
        spent = table[SPENT, r] + prices[i]
        if spent <= table[BUDGET, r]:
            table[SPENT, r] = spent
            decision[i] = np.int64(table[JOB, r])
    _mark_done(table, n, cheapest)
    return turn if n <= machines.size else (turn + machines.size) % n


@njit(cache=True)
def spare_kernel(machines, prices, slot, table, n, turn, decision):  # type: ignore[no-untyped-def]
    """Share more machines, among jobs that can pay a fair share of all machines until their deadline."""
    for k in range(machines.size if n > 0 else 0):
        r = k * n // machines.size if n <= machines.size else (turn + k) % n
        i = machines[k]
        spent = table[SPENT, r] + prices[i]
        if spent + (table[DEADLINE, r] - slot) * prices[i] * prices.size / n <= table[BUDGET, r]:
            table[SPENT, r] = spent
            decision[i] = np.int64(table[JOB, r])


@njit(cache=True)
def serve_kernel(order, prices, cheapest, table, decision):  # type: ignore[no-untyped-def]
    """Give every machine to the first job in ``order`` that has not met one it cannot afford."""
    decision[:] = -1
    at = 0
    for i in range(prices.size):
        while at < order.size:
            r = order[at]
            spent = table[SPENT, r] + prices[i]
            if spent <= table[BUDGET, r]:
                table[SPENT, r] = spent
                decision[i] = np.int64(table[JOB, r])
                break
            at += 1
    _mark_done(table, order.size, cheapest)
