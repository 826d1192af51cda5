r"""Compiled pass of online gradient ascent for instances of few ports: columns side by side.

Along a column of ten ports no loop gets up to speed. Here `LANES` columns of one type are a *group*, whose
amounts lie row by row: row i holds the amount of the i-th port in every lane, so that one instruction
serves several columns and sums over ports need no order of their own. Rows are made even in number and
lanes made full with ports and columns that have nothing and want nothing (limit 0).

Every lane carries the seven numbers of its gain's slope,

.. math:: f'(y) = \frac{a}{p_0 + q (p_1 + q p_2) + p_3 \sqrt q}, \quad q = y + b,

and the overhead of its type (zero where the lane is empty). The projection lowers all lanes of a group
at once by Newton steps, the first one as if the same ports stayed within their bounds, and leaves to a
bracketed search the few lanes where such steps lead nowhere. What is computed is what `oga_kernels.pass_kernel` computes.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

LANES = np.uint64(32)
TWO, THREE, FOUR, FIVE, SIX, SEVEN = (np.uint64(32 * i) for i in range(2, 8))  # rows of lanes
ONE_ROW, NOUGHT, QUARTER = np.uint64(1), np.uint64(0), np.uint64(8)
TOGETHER = 8  # Newton steps of a whole group before single lanes are searched
STEPS, HARD = 400, 8  # as in oga_kernels


@njit(cache=True, nogil=True, error_model="numpy")
def lane_kernel(  # type: ignore[no-untyped-def]
    first_block, last_block, blocks, groups, ports, limits, caps, forms, y, g, moves, cuts, sums, n_ports
):
    """Take one step in the groups of some blocks: new amounts ``y``, slopes ``g`` and sums of each block.

    ``groups`` are rows (type, first place, rows, whether a gain needs a root); ``ports`` says whose each
    place is (``n_ports``: nobody's), or is empty if row i is port i in every lane.
    """
    n_types = np.uint64(moves.size) // n_ports
    alike = ports.size == 0
    widest = NOUGHT
    for group in range(groups.shape[0]):
        widest = max(widest, groups[group, 2])
    z, spare = np.empty(widest * LANES), NOUGHT if alike else widest * LANES
    step, cut = np.empty(spare), np.empty(spare)
    tally, total, levels = np.zeros(widest * THREE), np.empty(TWO), np.empty(LANES)
    for block in range(first_block, last_block):
        sums[block] = 0.0
        last = n_types
        for group in range(blocks[block], blocks[block + 1]):
            at = np.uint64(group)
            k, begin, rows, root = groups[at, 0], groups[at, 1], groups[at, 2], groups[at, 3]
            if alike:
                if k != last and last != n_types:
                    _close(tally, sums, block, last * n_ports, n_ports)
                last = k
                _rise_alike(z, y, g, begin, rows, moves, cuts, k * n_ports, n_ports)
            else:
                _look_up(step, cut, moves, cuts, k * n_ports, ports, begin, rows * LANES, n_ports)
                _rise(z, y, g, begin, rows * LANES, step, cut)
            _settle(z, y, limits, begin, rows, caps, at * TWO, total, levels)
            _bend(y, g, begin, rows, forms, at * SEVEN, root, tally)
            if not alike:
                _scatter(y, g, begin, rows * LANES, forms[at * SEVEN + SIX], ports, n_ports, sums, block, k * n_ports)
        if alike and last != n_types:
            _close(tally, sums, block, last * n_ports, n_ports)


@njit(cache=True, nogil=True, error_model="numpy")
def _rise_alike(z, y, g, begin, rows, moves, cuts, table, n_ports):  # type: ignore[no-untyped-def]
    """Fill ``z`` with the point that the gradient leads to; row i is port i, the last one perhaps nobody."""
    for pair in range(rows >> ONE_ROW):
        at, port = pair * TWO, table + pair + pair
        move, cut, also_move, also_cut = moves[port], cuts[port], 0.0, 0.0
        if pair + pair + ONE_ROW < n_ports:
            also_move, also_cut = moves[port + ONE_ROW], cuts[port + ONE_ROW]
        for w in range(LANES):
            z[at + w] = y[begin + at + w] + move * g[begin + at + w] - cut
            also = begin + at + LANES + w
            z[at + LANES + w] = y[also] + also_move * g[also] - also_cut


@njit(cache=True, nogil=True, error_model="numpy")
def _look_up(step, cut, moves, cuts, table, ports, begin, n, n_ports):  # type: ignore[no-untyped-def]
    """Fill the places of one group from the tables of its type, port by port."""
    for i in range(n):
        port = ports[begin + i]
        step[i] = moves[table + port] if port < n_ports else 0.0
        cut[i] = cuts[table + port] if port < n_ports else 0.0


@njit(cache=True, nogil=True, error_model="numpy")
def _rise(z, y, g, begin, n, step, cut):  # type: ignore[no-untyped-def]
    """Fill ``z`` with the point that the gradient leads to."""
    for i in range(n):
        z[i] = y[begin + i] + step[i] * g[begin + i] - cut[i]


@njit(cache=True, nogil=True, error_model="numpy")
def _settle(z, y, limits, begin, rows, caps, cap, total, levels):  # type: ignore[no-untyped-def]
    """Write to ``y`` every lane of ``z``, lowered by zero or by what meets its capacity exactly, and clipped."""
    _guess(z, y, limits, begin, rows, caps, cap, total, levels)
    moving, stuck = 0, 0
    for _ in range(TOGETHER):
        _lower(z, y, limits, begin, rows, levels, total)
        moving, stuck = _aim(total, caps, cap, levels)
        if stuck > 0:
            freed = _free(z, limits, begin, rows, total, caps, cap, levels)
            moving, stuck = moving + freed, stuck - freed
        if moving == 0:
            break
    if moving + stuck == 0:
        return
    for w in range(LANES):
        excess, enough = total[w] - caps[cap + w], caps[cap + LANES + w]
        if excess > enough or (excess < -enough and levels[w] > 0.0):
            _search(z, y, w, limits, begin, rows, caps[cap + w], enough)


@njit(cache=True, nogil=True, error_model="numpy")
def _guess(z, y, limits, begin, rows, caps, cap, total, levels):  # type: ignore[no-untyped-def]
    """Fill the levels to begin with.

    A port that may take the whole capacity takes no more than that, so the level is at least its point
    less the capacity (if it takes all of it, lower levels give the same amounts).
    """
    for w in range(TWO):
        total[w] = 0.0
    for w in range(LANES):
        levels[w] = 0.0
    for pair in range(rows >> ONE_ROW):
        at = pair * TWO
        for w in range(LANES):
            one, two = y[begin + at + w], y[begin + at + LANES + w]
            most, more = limits[begin + at + w], limits[begin + at + LANES + w]
            free = (one > 0.0) & (one < most)
            also = (two > 0.0) & (two < more)
            total[w] += (z[at + w] if free else one) + (z[at + LANES + w] if also else two)
            total[LANES + w] += (1.0 if free else 0.0) + (1.0 if also else 0.0)
            peak = z[at + w] if most >= caps[cap + w] else 0.0
            last = z[at + LANES + w] if more >= caps[cap + w] else 0.0
            levels[w] = max(levels[w], max(peak, last))
    for w in range(LANES):
        guess = (total[w] - caps[cap + w]) / total[LANES + w]
        levels[w] = max(levels[w] - caps[cap + w], guess if total[LANES + w] > 0.0 else 0.0)
        levels[w] = max(levels[w], 0.0)


@njit(cache=True, nogil=True, error_model="numpy")
def _lower(z, y, limits, begin, rows, levels, total):  # type: ignore[no-untyped-def]
    """Write each lane, lowered and clipped; leave its sum and how many ports lie within their bounds.

    Two rows at a time; the ones are counted as floats, beside the sums.
    """
    for w in range(TWO):
        total[w] = 0.0
    for pair in range(rows >> ONE_ROW):
        at = pair * TWO
        for w in range(LANES):
            one, two = z[at + w] - levels[w], z[at + LANES + w] - levels[w]
            kept = min(max(one, 0.0), limits[begin + at + w])
            also = min(max(two, 0.0), limits[begin + at + LANES + w])
            y[begin + at + w], y[begin + at + LANES + w] = kept, also
            total[w] += kept + also
            total[LANES + w] += (1.0 if kept == one else 0.0) + (1.0 if also == two else 0.0)


@njit(cache=True, nogil=True, error_model="numpy")
def _aim(total, caps, cap, levels):  # type: ignore[no-untyped-def]
    """Take each lane's Newton step; return how many lanes move, and how many should but cannot.

    A lane that meets its capacity stays, as does one below it at level zero. One that has lost every
    port goes back to level zero; one with every port full has nothing to go by.
    """
    moving, stuck = 0, 0
    for w in range(LANES):
        excess, inside, enough = total[w] - caps[cap + w], total[LANES + w], caps[cap + LANES + w]
        off = (excess > enough) | ((excess < -enough) & (levels[w] > 0.0))
        can = (excess < 0.0) | (inside > 0.0)
        wanted = max(levels[w] + excess / inside, 0.0)
        levels[w] = wanted if off & can else levels[w]
        moving += off & can
        stuck += off & (not can)
    return moving, stuck


@njit(cache=True, nogil=True, error_model="numpy")
def _free(z, limits, begin, rows, total, caps, cap, levels):  # type: ignore[no-untyped-def]
    """Raise the level of lanes beyond capacity whose ports are all full until one is not; return how many.

    A port that may take the whole capacity takes no more than that, so the level is at least its point
    less the capacity (if it takes all of it, lower levels give the same amounts).
    """
    freed = 0
    for w in range(LANES):
        if total[LANES + w] == 0.0 and total[w] - caps[cap + w] > caps[cap + LANES + w]:
            peak = levels[w]
            for i in range(rows):
                if limits[begin + i * LANES + w] >= caps[cap + w]:
                    peak = max(peak, z[i * LANES + w] - caps[cap + w])
            freed += peak > levels[w]
            levels[w] = peak
    return freed


@njit(cache=True, nogil=True, error_model="numpy")
def _search(z, y, lane, limits, begin, rows, cap, enough):  # type: ignore[no-untyped-def]
    """Write one lane as `oga_kernels` would write a column: the point itself moves, within a bracket."""
    low, high, level = 0.0, 0.0, 0.0
    for i in range(rows):
        high = max(high, z[i * LANES + lane])
    for attempt in range(STEPS):
        total, inside = 0.0, 0
        for i in range(rows):
            at = i * LANES + lane
            kept = min(max(z[at], 0.0), limits[begin + at])
            y[begin + at] = kept
            total += kept
            inside += kept == z[at]
        excess = total - cap
        if abs(excess) <= enough or (excess < 0.0 and level == 0.0):
            return
        if excess > 0.0:
            low = 0.0
        else:
            high = 0.0
        shift = excess / inside if inside > 0 else low
        if not (shift > low and shift < high) or (attempt >= HARD and attempt % 2 == 0):
            shift = low + 0.5 * (high - low)
        for i in range(rows):
            z[i * LANES + lane] -= shift
        low -= shift
        high -= shift
        level += shift


@njit(cache=True, nogil=True, error_model="numpy")
def _bend(y, g, begin, rows, forms, form, root, tally):  # type: ignore[no-untyped-def]
    """Write the slopes and add amounts, squares and reduced squares, row by row and lane by lane.

    The two loops differ in the root alone, which costs more than all the rest.
    """
    if root > NOUGHT:
        for i in range(rows):
            at, to = begin + i * LANES, i * THREE
            for w in range(LANES):
                amount = y[at + w]
                q = amount + forms[form + LANES + w]
                below = forms[form + TWO + w] + q * (forms[form + THREE + w] + q * forms[form + FOUR + w])
                slope = forms[form + w] / (below + forms[form + FIVE + w] * math.sqrt(q))
                g[at + w] = slope
                rest = slope - forms[form + SIX + w]
                tally[to + w] += amount
                tally[to + LANES + w] += slope * slope
                tally[to + TWO + w] += rest * rest
    else:
        for i in range(rows):
            at, to = begin + i * LANES, i * THREE
            for w in range(LANES):
                amount = y[at + w]
                q = amount + forms[form + LANES + w]
                below = forms[form + TWO + w] + q * (forms[form + THREE + w] + q * forms[form + FOUR + w])
                slope = forms[form + w] / below
                g[at + w] = slope
                rest = slope - forms[form + SIX + w]
                tally[to + w] += amount
                tally[to + LANES + w] += slope * slope
                tally[to + TWO + w] += rest * rest


@njit(cache=True, nogil=True, error_model="numpy")
def _close(tally, sums, block, table, n_ports):  # type: ignore[no-untyped-def]
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
            sums[block, kind, table + port] += (one + two) + (three + four)
    for i in range(tally.size):
        tally[i] = 0.0


@njit(cache=True, nogil=True, error_model="numpy")
def _scatter(y, g, begin, n, beta, ports, n_ports, sums, block, table):  # type: ignore[no-untyped-def]
    """Add one group to the sums of its ports, place by place."""
    for i in range(n):
        port = ports[begin + i]
        if port < n_ports:
            slope = g[begin + i]
            sums[block, 0, table + port] += y[begin + i]
            sums[block, 1, table + port] += slope * slope
            sums[block, 2, table + port] += (slope - beta) * (slope - beta)
