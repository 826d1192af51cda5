"""Compiled kernels of the budgeted selection problem; see `budgeted` for the problem and its public functions.

Layout. Capacity vectors are numbered in mixed radix, the last resource type fastest: *cell* 0 is the
empty capacity, the last cell the full one. ``best[cell, s]`` is the best gain of the channels
processed so far within that capacity whose values add up to at least ``s``; ``reach[cell]`` is the
largest sum of values possible there. A row is only ever read and written up to its reach, where every
entry is feasible, so that no entry needs to say "infeasible" and inner loops run over neighbours.

Channels are processed from the last to the first and rows from the fullest capacity down, so that one table serves all
of them: what a row reads lies in rows not yet updated, as in a knapsack. What is kept per channel is one bit per entry:
whether taking it is strictly better. ``decisions[e, cell // 8, s]`` holds it as bit ``cell % 8``.
"""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True)
def _find_cells(request, capacities, strides, cells):  # type: ignore[no-untyped-def]
    """Fill ``cells`` with the capacity vectors that hold a request, the fullest first; return its offset, and how many.

    ``cells[i] - offset`` is what is left of the vector once the request is taken.
    """
    n_types, offset, n = capacities.size, 0, 0
    for k in range(n_types):
        offset += request[k] * strides[k]
    digits = capacities.copy()
    for cell in range(cells.size - 1, offset - 1, -1):
        fits = True
        for k in range(n_types):
            fits = fits and digits[k] >= request[k]
        if fits:
            cells[n] = cell
            n += 1
        k = n_types - 1
        while k > 0 and digits[k] == 0:
            digits[k] = capacities[k]
            k -= 1
        digits[k] -= 1
    return offset, n


@njit(cache=True)
def _reach_kernel(values, requests, capacities, strides, reach):  # type: ignore[no-untyped-def]
    """Fill ``reach[cell]`` with the largest sum of values within each capacity vector."""
    cells = np.empty(reach.size, np.int64)
    for e in range(values.size):
        offset, n = _find_cells(requests[e], capacities, strides, cells)
        for cell in cells[:n]:
            reach[cell] = max(reach[cell], reach[cell - offset] + values[e])


@njit(cache=True)
def _table_kernel(values, gains, requests, capacities, strides, best, reach, decisions):  # type: ignore[no-untyped-def]
    """Fill ``best`` (first column 0 before), ``reach`` (0 before) and ``decisions`` (0 before).

    Line 9 of Algorithm 2: V(s, c, i) = max(V(max(s - v, 0), c - a, i + 1) + gain, V(s, c, i + 1)).
    """
    n_cells, n_sums = best.shape
    cells, spare = np.empty(n_cells, np.int64), np.empty(n_sums, best.dtype)
    for e in range(values.size - 1, -1, -1):
        value, gain = values[e], gains[e]
        offset, n = _find_cells(requests[e], capacities, strides, cells)
        for cell in cells[:n]:
            source = best[cell - offset]
            row, bits, bit = best[cell], decisions[e, cell >> 3], np.uint8(1 << (cell & 7))
            before, top = reach[cell], min(reach[cell - offset] + value, n_sums - 1)
            if offset == 0:  # the row reads itself, as it was
                spare[: before + 1] = source[: before + 1]
                source = spare
            _take_or_leave(row, source, bits, bit, value, gain, before, top)
            reach[cell] = max(before, top)


@njit(cache=True)
def _take_or_leave(row, source, bits, bit, value, gain, before, top):  # type: ignore[no-untyped-def]
    """Update one row up to its new reach ``top``; entries above ``before`` were infeasible."""
    with_it = source[0] + gain
    flat, shared = min(value, top), min(before, top)
    for s in range(min(flat, shared) + 1):
        take = with_it > row[s]
        row[s] = with_it if take else row[s]
        bits[s] |= np.uint8(take) * bit
    for s in range(shared + 1, flat + 1):
        row[s] = with_it
        bits[s] |= bit
    for s in range(flat + 1, shared + 1):
        candidate = source[s - value] + gain
        take = candidate > row[s]
        row[s] = candidate if take else row[s]
        bits[s] |= np.uint8(take) * bit
    for s in range(max(flat, shared) + 1, top + 1):
        row[s] = source[s - value] + gain
        bits[s] |= bit


@njit(cache=True)
def _lexicographic_table_kernel(  # type: ignore[no-untyped-def]
    values, unseen, gains, requests, capacities, strides, counts, best, reach, decisions
):
    """Fill the table as `_table_kernel` does, for pairs (unseen channels, gain of the others) in that order."""
    n_cells, n_sums = best.shape
    cells = np.empty(n_cells, np.int64)
    for e in range(values.size - 1, -1, -1):
        value, gain, more = values[e], gains[e], counts.dtype.type(unseen[e])
        offset, n = _find_cells(requests[e], capacities, strides, cells)
        for cell in cells[:n]:
            source, group, bit = cell - offset, cell >> 3, np.uint8(1 << (cell & 7))
            before, top = reach[cell], min(reach[source] + value, n_sums - 1)
            for s in range(top, -1, -1):  # downwards: what a row reads of itself is not yet updated
                rest = max(s - value, 0)
                count, candidate = counts[source, rest] + more, best[source, rest] + gain
                if s > before or count > counts[cell, s] or (count == counts[cell, s] and candidate > best[cell, s]):
                    counts[cell, s], best[cell, s] = count, candidate
                    decisions[e, group, s] |= bit
            reach[cell] = max(before, top)


@njit(cache=True)
def _select_kernel(values, requests, strides, decisions, cell, s, selected):  # type: ignore[no-untyped-def]
    """Mark in ``selected`` the channels that attain ``best[cell, s]``, from the first channel on."""
    for e in range(values.size):
        if (decisions[e, cell >> 3, s] >> (cell & 7)) & 1:
            selected[e] = True
            s = max(s - values[e], 0)
            for k in range(strides.size):
                cell -= requests[e, k] * strides[k]
