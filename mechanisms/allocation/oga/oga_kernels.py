r"""Compiled slot of online gradient ascent: columns side by side, one pass that writes and adds up.

`LANES` columns of one type form a *group*, whose amounts lie row by row: row i holds the amount of the i-th
port in every lane. One instruction then serves several columns however few ports they have, and sums over
the ports of a column need no order of their own. Rows are made even in number and lanes made full with
ports and columns that have nothing and want nothing (limit 0). Which column lies where: `oga_lanes`.

The pass over a group takes the step, projects, writes the new amounts and the slopes there, and adds up what
the next slot needs (OgaSched (10) and (26)), so nothing is read twice. The projection lowers all lanes at once
by Newton steps, and leaves to a bracketed search the few where such steps lead nowhere (see `projection`).

A lane carries eight numbers: six of its gain's slope,

.. math:: f'(y) = \frac{a}{p_0 + q (p_1 + q p_2) + p_3 \sqrt q}, \quad q = y + b,

the overhead of its type (zero where the lane is empty), and its capacity.

Places are unsigned numbers: a compiled index that could be negative would need a test.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

LANES = np.uint64(32)
TWO, THREE, FOUR, FIVE, SIX, SEVEN, EIGHT = (np.uint64(32 * i) for i in range(2, 9))  # rows of lanes
NOUGHT, ONE, QUARTER = np.uint64(0), np.uint64(1), np.uint64(8)
TOGETHER = 5  # Newton steps of a whole group before single lanes are searched
GRAIN = 2.0**-49  # of a capacity, for every port: what a sum may be off by, also while the level is some capacities
HARD = 8  # Newton steps of a search before every other step goes to a kink


class Columns(NamedTuple):
    """The columns of a cluster, side by side in lanes; a *place* is that of an amount."""

    blocks: NDArray[np.uint64]  # (n_blocks + 1,), where the groups of each block begin
    groups: NDArray[np.uint64]  # (n_groups, 4): type, first place, rows, form of the slopes as in `_bend`
    ports: NDArray[np.uint64]  # (places,), whose each place is (L: nobody's); empty if row i is port i in every lane
    limits: NDArray[np.float64]  # (places,), the most that an amount may be
    lanes: NDArray[np.float64]  # (n_groups * 8 * LANES,), the eight numbers of each lane


@njit(cache=True, nogil=True, error_model="numpy")
def slot_kernel(counts, betas, reach, step, scratch, columns, y, g, tables, sums):  # type: ignore[no-untyped-def]
    """Learn one slot on one thread: `aim_kernel`, then `pass_kernel` over all blocks; return the step."""
    step = aim_kernel(counts, betas, reach, step, tables, sums)
    if step > 0.0:
        pass_kernel(np.int64(0), sums.shape[0], scratch, columns, y, g, tables, sums, np.uint64(counts.size))
    return step


@njit(cache=True, nogil=True, error_model="numpy")
def aim_kernel(counts, betas, reach, step, tables, sums):  # type: ignore[no-untyped-def]
    r"""Fill the tables of the coming pass from the sums of the last one; return the step.

    ``tables`` holds, by type and then by port, :math:`\eta x_l`, and after these :math:`\eta x_l \beta_k` where
    k is dominant, else zero. With ``reach`` = diam / sqrt(T) > 0 the step is (26) of the OgaSched paper; a
    zero gradient moves nothing. Squares of :math:`f' - \beta` are summed by themselves, so that nothing
    cancels in the norm. A negative count changes nothing and returns -1.
    """
    n_types, n_ports = betas.size, counts.size
    size = n_types * n_ports
    for port in range(n_ports):
        if counts[port] < 0:
            return -1.0
    totals = np.zeros(3 * size)  # amounts, squares of slopes, of slopes less overhead
    for block in range(sums.shape[0]):
        for place in range(3 * size):
            totals[place] += sums[block, place]
    tables[:] = 0.0
    square = 0.0
    for port in range(n_ports):
        count = float(counts[port])
        if count > 0.0:
            top = 0
            for k in range(1, n_types):
                if betas[k] * totals[k * n_ports + port] > betas[top] * totals[top * n_ports + port]:
                    top = k
            part = totals[2 * size + top * n_ports + port]
            for k in range(n_types):
                tables[k * n_ports + port] = count
                if k != top:
                    part += totals[size + k * n_ports + port]
            tables[size + top * n_ports + port] = count * betas[top]
            square += count * count * part
    if reach > 0.0:
        step = reach / math.sqrt(square) if square > 0.0 else 0.0
    for place in range(2 * size):
        tables[place] *= step
    return step


@njit(cache=True, nogil=True, error_model="numpy")
def pass_kernel(first_block, last_block, scratch, columns, y, g, tables, sums, n_ports):  # type: ignore[no-untyped-def]
    """Take one step in the groups of some blocks: new amounts ``y``, slopes ``g`` and sums of each block.

    ``scratch`` is one thread's own, three rows of lanes and six times as many as any group has.
    """
    blocks, groups, ports, limits, lanes = columns
    n_types = np.uint64(tables.size) // n_ports >> ONE
    alike = ports.size == 0
    size = (np.uint64(scratch.size) - THREE) // np.uint64(6)
    work, z, rest = scratch[:THREE], scratch[THREE : THREE + size], scratch[THREE + size :]
    tally, own = rest[: size * np.uint64(3)], rest[size * np.uint64(3) :]
    tally[:] = 0.0
    for block in range(first_block, last_block):
        sums[block] = 0.0
        last = n_types
        for group in range(blocks[block], blocks[block + 1]):
            at = np.uint64(group)
            k, begin, rows, form = groups[at, 0], groups[at, 1], groups[at, 2], groups[at, 3]
            lane = at * EIGHT
            if alike:
                if k != last and last != n_types:
                    _close(tally, sums, block, last, n_types, n_ports)
                last = k
                _rise_alike(z, y, g, begin, rows, tables, k, n_types, n_ports)
            else:
                _look_up(own, tables, k, n_types, ports, begin, rows * LANES, n_ports)
                _rise(z, y, g, begin, rows * LANES, own)
            _settle(z, y, limits, begin, rows, lanes, lane, work)
            _bend(y, g, begin, rows, lanes, lane, form, tally)
            if not alike:
                _scatter(y, g, begin, rows * LANES, lanes[lane + SIX], ports, k, n_types, n_ports, sums, block)
        if alike and last != n_types:
            _close(tally, sums, block, last, n_types, n_ports)


@njit(cache=True, nogil=True, error_model="numpy")
def _rise_alike(z, y, g, begin, rows, tables, k, n_types, n_ports):  # type: ignore[no-untyped-def]
    """Fill ``z`` with the point that the gradient leads to; row i is port i."""
    for pair in range(rows >> ONE):
        at, row = pair * TWO, pair + pair
        port, cutting = k * n_ports + row, (k + n_types) * n_ports + row
        move, cut, also_move, also_cut = tables[port], tables[cutting], 0.0, 0.0
        if row + ONE < n_ports:  # the last row may be of no port
            also_move, also_cut = tables[port + ONE], tables[cutting + ONE]
        for w in range(LANES):
            here, there = begin + at + w, begin + at + LANES + w
            z[at + w] = y[here] + move * g[here] - cut
            z[at + LANES + w] = y[there] + also_move * g[there] - also_cut


@njit(cache=True, nogil=True, error_model="numpy")
def _look_up(own, tables, k, n_types, ports, begin, n, n_ports):  # type: ignore[no-untyped-def]
    """Fill the group's own tables, place by place."""
    for i in range(n):
        port = ports[begin + i]
        own[i] = tables[k * n_ports + port] if port < n_ports else 0.0
        own[n + i] = tables[(k + n_types) * n_ports + port] if port < n_ports else 0.0


@njit(cache=True, nogil=True, error_model="numpy")
def _rise(z, y, g, begin, n, own):  # type: ignore[no-untyped-def]
    """Do as `_rise_alike` with the group's own tables."""
    for i in range(n):
        z[i] = y[begin + i] + own[i] * g[begin + i] - own[n + i]


@njit(cache=True, nogil=True, error_model="numpy")
def _settle(z, y, limits, begin, rows, lanes, lane, work):  # type: ignore[no-untyped-def]
    """Write to ``y`` every lane of ``z``, lowered by zero or by what meets its capacity exactly, and clipped.

    ``work`` has three rows: the sum of each lane, how many ports are within their bounds, the level.
    """
    _begin(z, limits, begin, rows, lanes, lane, work)
    moving, stuck = 0, 0
    for _ in range(TOGETHER):
        _lower(z, y, limits, begin, rows, work)
        moving, stuck = _aim(rows, lanes, lane, work)
        if moving == 0:
            break
    if moving + stuck == 0:
        return
    for w in range(LANES):
        if work[LANES + w] < 0.0:
            _search(z, y, w, limits, begin, rows, lanes[lane + SEVEN + w])


@njit(cache=True, nogil=True, error_model="numpy")
def _begin(z, limits, begin, rows, lanes, lane, work):  # type: ignore[no-untyped-def]
    """Fill the levels to begin with: at most the right ones, and zero if these are within rounding.

    If some ports, each allowed the whole capacity, were alone, the level would be at least the sum of their
    points less the capacity, over their number; the others only raise it. Tried are all such ports above
    zero, and the highest alone.
    """
    for w in range(THREE):
        work[w] = 0.0
    for pair in range(rows >> ONE):
        at = pair * TWO
        for w in range(LANES):
            capacity = lanes[lane + SEVEN + w]
            one = z[at + w] if limits[begin + at + w] >= capacity else 0.0
            two = z[at + LANES + w] if limits[begin + at + LANES + w] >= capacity else 0.0
            work[w] += max(one, 0.0) + max(two, 0.0)
            work[LANES + w] += (1.0 if one > 0.0 else 0.0) + (1.0 if two > 0.0 else 0.0)
            work[TWO + w] = max(work[TWO + w], max(one, two))
    grain = (float(rows) + 4.0) * GRAIN
    for w in range(LANES):
        capacity = lanes[lane + SEVEN + w]
        level = max(work[TWO + w] - capacity, (work[w] - capacity) / max(work[LANES + w], 1.0))
        work[TWO + w] = level if level > grain * capacity else 0.0


@njit(cache=True, nogil=True, error_model="numpy")
def _lower(z, y, limits, begin, rows, work):  # type: ignore[no-untyped-def]
    """Write each lane, lowered and clipped; leave its sum, and how many ports lie within their bounds."""
    for w in range(TWO):
        work[w] = 0.0
    for pair in range(rows >> ONE):
        at = pair * TWO
        for w in range(LANES):
            one, two = z[at + w] - work[TWO + w], z[at + LANES + w] - work[TWO + w]
            kept = min(max(one, 0.0), limits[begin + at + w])
            also = min(max(two, 0.0), limits[begin + at + LANES + w])
            y[begin + at + w], y[begin + at + LANES + w] = kept, also
            work[w] += kept + also
            work[LANES + w] += (1.0 if kept == one else 0.0) + (1.0 if also == two else 0.0)


@njit(cache=True, nogil=True, error_model="numpy")
def _aim(rows, lanes, lane, work):  # type: ignore[no-untyped-def]
    """Take each lane's Newton step; return how many lanes move, and how many should but cannot.

    A lane that meets its capacity stays, as does one below it at level zero. One that has lost every
    port goes back to level zero; one with every port full has nothing to go by. Both kinds of lane that
    are not where they should be are marked by a negative number of ports within bounds.
    """
    moving, stuck, grain = 0, 0, (float(rows) + 4.0) * GRAIN
    for w in range(LANES):
        capacity, inside, level = lanes[lane + SEVEN + w], work[LANES + w], work[TWO + w]
        excess, enough = work[w] - capacity, grain * capacity
        off = (excess > enough) | ((excess < -enough) & (level > 0.0))
        can = (excess < 0.0) | (inside > 0.0)
        wanted = max(level + excess / max(inside, 1.0), 0.0) if inside > 0.0 else 0.0
        work[TWO + w] = wanted if off & can else level
        work[LANES + w] = -1.0 if off else inside
        moving += off & can
        stuck += off & (not can)
    return moving, stuck


@njit(cache=True, nogil=True, error_model="numpy")
def _search(z, y, lane, limits, begin, rows, capacity):  # type: ignore[no-untyped-def]
    """Write one lane as `projection` would write a column, in a bracket; the point itself moves."""
    low, high, level, enough = 0.0, 0.0, 0.0, (float(rows) + 4.0) * GRAIN * capacity
    for i in range(rows):
        high = max(high, z[i * LANES + lane])
    for attempt in range(8 * rows + HARD):
        total, inside = 0.0, 0
        for i in range(rows):
            at = i * LANES + lane
            kept = min(max(z[at], 0.0), limits[begin + at])
            y[begin + at] = kept
            total += kept
            inside += kept == z[at]
        excess = total - capacity
        if abs(excess) <= enough or (excess < 0.0 and level == 0.0):
            return
        if excess > 0.0:
            low = 0.0
        else:
            high = 0.0
        shift = excess / inside if inside > 0 else (high if excess > 0.0 else low)
        if inside == 0 or not (shift > low and shift < high) or (attempt >= HARD and attempt % 2 == 0):
            middle, nearest = low + 0.5 * (high - low), high - low
            for i in range(rows):
                at = i * LANES + lane
                for kink in (z[at], z[at] - limits[begin + at]):
                    if kink > low and kink < high and abs(kink - middle) < nearest:
                        shift, nearest = kink, abs(kink - middle)
        for i in range(rows):
            z[i * LANES + lane] -= shift
        low -= shift
        high -= shift
        level += shift


@njit(cache=True, nogil=True, error_model="numpy")
def _bend(y, g, begin, rows, lanes, lane, form, tally):  # type: ignore[no-untyped-def]
    """Write the slopes and add amounts, squares and reduced squares, row by row and lane by lane.

    The loops differ in what a slope costs: nothing (form 0), a quotient (1), one with a root (2).
    """
    if form > ONE:
        for i in range(rows):
            at, to = begin + i * LANES, i * THREE
            for w in range(LANES):
                amount = y[at + w]
                q = amount + lanes[lane + LANES + w]
                below = lanes[lane + TWO + w] + q * (lanes[lane + THREE + w] + q * lanes[lane + FOUR + w])
                slope = lanes[lane + w] / (below + lanes[lane + FIVE + w] * math.sqrt(q))
                g[at + w] = slope
                rest = slope - lanes[lane + SIX + w]
                tally[to + w] += amount
                tally[to + LANES + w] += slope * slope
                tally[to + TWO + w] += rest * rest
    elif form == NOUGHT:
        for i in range(rows):
            at, to = begin + i * LANES, i * THREE
            for w in range(LANES):
                slope = lanes[lane + w]
                g[at + w] = slope
                rest = slope - lanes[lane + SIX + w]
                tally[to + w] += y[at + w]
                tally[to + LANES + w] += slope * slope
                tally[to + TWO + w] += rest * rest
    else:
        for i in range(rows):
            at, to = begin + i * LANES, i * THREE
            for w in range(LANES):
                amount = y[at + w]
                q = amount + lanes[lane + LANES + w]
                below = lanes[lane + TWO + w] + q * (lanes[lane + THREE + w] + q * lanes[lane + FOUR + w])
                slope = lanes[lane + w] / below
                g[at + w] = slope
                rest = slope - lanes[lane + SIX + w]
                tally[to + w] += amount
                tally[to + LANES + w] += slope * slope
                tally[to + TWO + w] += rest * rest


@njit(cache=True, nogil=True, error_model="numpy")
def _close(tally, sums, block, k, n_types, n_ports):  # type: ignore[no-untyped-def]
    """Add the lanes of each row to the sums of its port, and begin anew."""
    for port in range(n_ports):
        for kind in range(3):
            at = port * THREE + np.uint64(kind) * LANES
            one, two, three, four = 0.0, 0.0, 0.0, 0.0
            for w in range(QUARTER):
                one += tally[at + w]
                two += tally[at + QUARTER + w]
                three += tally[at + QUARTER + QUARTER + w]
                four += tally[at + LANES - QUARTER + w]
            sums[block, (np.uint64(kind) * n_types + k) * n_ports + port] += (one + two) + (three + four)
    for i in range(tally.size):
        tally[i] = 0.0


@njit(cache=True, nogil=True, error_model="numpy")
def _scatter(y, g, begin, n, beta, ports, k, n_types, n_ports, sums, block):  # type: ignore[no-untyped-def]
    """Add one group to the sums of its ports, place by place."""
    amounts, squares, reduced = k * n_ports, (k + n_types) * n_ports, (k + n_types + n_types) * n_ports
    for i in range(n):
        port = ports[begin + i]
        if port < n_ports:
            slope = g[begin + i]
            sums[block, amounts + port] += y[begin + i]
            sums[block, squares + port] += slope * slope
            sums[block, reduced + port] += (slope - beta) * (slope - beta)
