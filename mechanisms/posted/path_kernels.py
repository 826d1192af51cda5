r"""Sample paths of the earlier jobs' residual randomness, kept alive from submission to submission.

Appendix F of the paper simulates every earlier job again for each query. Here ``n`` paths stay: each holds one drawn
outcome per earlier active job, and the load these outcomes put on the coming rounds. An observation (no arrival, an
arrival, an end, an eviction) makes some drawn outcomes impossible; only on those paths, and only for that job, a new
outcome is drawn from the narrowed law, which keeps every path an exact draw from the conditional law of Section 9.

Draws are a function of (root key, order of submission, round, kind, path) and of nothing else: a counter-based
generator (the finaliser of SplitMix64, [SLF14]_). They therefore never depend on a report, nor on how often other jobs
were redrawn.

Under the ``running`` variant (Section 15.3) a later job is the first to go, so the load of a path before the removals
of each round is built by placing the jobs in order of submission, each up to and including the first round in which it
does not fit; paths on which no job is cut short are updated in place, the others are placed again.

References
----------
.. [SLF14] Steele, Lea, Flood: Fast splittable pseudorandom number generators, OOPSLA 2014.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

LANES = 64  # as in failure_table; a compiled kernel's cache notices changes of its own file only

# Columns of the table of slots; one slot per active job.
OFFSET, POINTS, GUIDE, BUCKETS, STEPS, LOW, HIGH, MAY_NEVER, WIDTH, KEY = range(10)
N_COLUMNS = 10
BUCKETS_PER_POINT = 8  # of the guide tables: a draw then rarely needs more than a step or two

NO_OUTCOME = 65_535  # no drawn outcome has this number

_STEP = np.uint64(0x9E3779B97F4A7C15)
_MIX_1, _MIX_2 = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_SCALE = 2.0**-53
_S27, _S30, _S31, _S11 = np.uint64(27), np.uint64(30), np.uint64(31), np.uint64(11)
_ONE = np.uint64(1)


class Paths(NamedTuple):
    """The paths, and the laws of the active jobs; calls from Python pass a plain tuple, a microsecond faster."""

    loads: NDArray[np.int16] | NDArray[np.int32]  # (n_blocks, window, LANES), nodes; a ring of rounds
    row_tops: NDArray[np.int64]  # (window,), at least the highest load of each round, nodes
    draws: NDArray[np.uint16]  # (n_slots, n_blocks * LANES), the outcome of each job; one row: of all jobs in turn
    cut: NDArray[np.uint8]  # (n_blocks * LANES,), whether a job is cut short on the path
    again: NDArray[np.uint8]  # (n_blocks * LANES,), whether jobs have to be placed on the path again
    slots: NDArray[np.int64]  # (n_slots, N_COLUMNS), columns as above
    points: NDArray[np.int64]  # (2, size), first and last round of each outcome, law after law; negative: does not run
    cumulated: NDArray[np.float64]  # (size,), probability of the points before
    guides: NDArray[np.uint16]  # points at which draws begin to search


@njit(cache=True)
def _mix(word):  # type: ignore[no-untyped-def]
    """Scramble 64 bits (finaliser of SplitMix64)."""
    word = (word ^ (word >> _S30)) * _MIX_1
    word = (word ^ (word >> _S27)) * _MIX_2
    return word ^ (word >> _S31)


@njit(cache=True)
def _stream(root, order, stamp):  # type: ignore[no-untyped-def]
    """Return the key of one job's draws of one kind in one round (``stamp`` codes both)."""
    return _mix(_mix(np.uint64(root) + _STEP * (np.uint64(order) + _ONE)) + _STEP * (np.uint64(stamp) + _ONE))


@njit(cache=True)
def _uniform(stream, path):  # type: ignore[no-untyped-def]
    """Return the stream's number of this path, in [0, 1)."""
    return np.float64(_mix(stream + _STEP * (np.uint64(path) + _ONE)) >> _S11) * _SCALE


@njit(cache=True)
def _choose_all(chosen, paths):  # type: ignore[no-untyped-def]
    """Choose all of 64 paths that are there; the last block may have fewer."""
    for lane in range(LANES):
        chosen[lane] = lane < paths


@njit(cache=True)
def _choose_impossible(drawn, paths, possible, beyond, never, chosen):  # type: ignore[no-untyped-def]
    """Choose the paths whose outcome is outside ``possible .. beyond - 1`` and not ``never``; return how many."""
    for lane in range(LANES):
        old = drawn[lane]
        chosen[lane] = ((old < possible) | (old >= beyond)) & (old != never)
    for lane in range(paths, LANES):
        chosen[lane] = 0
    return chosen.sum()


@njit(cache=True)
def _draw_block(drawn, chosen, path, stream, slot, slots, cumulated, guides, targets, points):  # type: ignore[no-untyped-def]
    """Draw one job's outcome from its narrowed law on the ``chosen`` ones of the 64 paths from ``path`` on.

    An outcome is a point of the law; or ``POINTS``: never arrives; or ``POINTS + 1``: all durations
    are outlived, and d = D_max is assumed. All 64 are drawn, in short loops without a branch: one that
    depends on a draw costs more than the draw. ``targets`` and ``points`` are scratch.
    """
    offset, size = slots[slot, OFFSET], slots[slot, POINTS]
    low, high, may_never = slots[slot, LOW], slots[slot, HIGH], slots[slot, MAY_NEVER]
    law = cumulated[offset : offset + size + 2]  # the last one is not used, but may be read
    base = law[low]
    mass = law[high] - base
    if high - low == 1 and mass > 0.0 and not may_never:  # known: nothing to draw
        for lane in range(LANES):
            old = drawn[lane]
            drawn[lane] = np.uint16(low) if chosen[lane] else old
        return
    total = mass + (max(0.0, 1.0 - law[size]) if may_never else 0.0)
    for lane in range(LANES):
        targets[lane] = _uniform(stream, path + lane) * total
    guide = guides[slots[slot, GUIDE] : slots[slot, GUIDE] + slots[slot, BUCKETS]]
    _find_points(law, base, high, guide, slots[slot, STEPS], targets, points)
    if total > mass or mass <= 0.0:  # else no target is that high
        # At or beyond the mass; where only rounding leads there, the last point is meant.
        beyond = np.uint16(size if may_never else high - 1 if mass > 0.0 else size + 1)
        for lane in range(LANES):
            if targets[lane] >= mass:
                points[lane] = beyond
    for lane in range(LANES):
        point, old = points[lane], drawn[lane]
        drawn[lane] = point if chosen[lane] else old


@njit(cache=True)
def _find_points(law, base, high, guide, steps, targets, points):  # type: ignore[no-untyped-def]
    """Fill ``points`` with the point below ``high`` in which each of 64 targets, counted from ``base``, falls."""
    buckets, bucket = float(guide.size), guide.size - 1
    last, one = np.uint16(high - 1), np.uint64(1)  # unsigned: no index counts from the end
    for lane in range(LANES):
        target = targets[lane] + base
        point = np.uint64(guide[np.uint64(min(np.int64(target * buckets), bucket))])
        point += np.uint64(law[point + one] <= target)
        point += np.uint64(law[point + one] <= target)
        points[lane] = point
    if steps > 2:
        for lane in range(LANES):
            point = np.uint64(points[lane])
            while point < last and law[point + one] <= targets[lane] + base:
                point += one
            points[lane] = point
    for lane in range(LANES):
        points[lane] = min(points[lane], last)


@njit(cache=True)
def _rounds_of(points, offset, size, now, window, rounds):  # type: ignore[no-untyped-def]
    """Fill ``rounds[:, k]`` with what outcome ``k`` still occupies: (first, end), counted from ``now``.

    What does not run or lies in the past gets the empty interval (window, 0), as does the last column.
    """
    for k in range(size):
        begins, last = points[0, offset + k], points[1, offset + k]
        runs = begins >= 0 and last >= now
        rounds[0, k] = max(begins - now, 0) if runs else window
        rounds[1, k] = last - now + 1 if runs else 0
    rounds[0, -1], rounds[1, -1] = window, 0


@njit(cache=True)
def _look_up(rounds, drawn, chosen, points, first, end):  # type: ignore[no-untyped-def]
    """Fill (first, end) with the rounds of the outcomes drawn; empty ones on paths that are not chosen."""
    empty = np.uint16(rounds.shape[1] - 1)
    for lane in range(LANES):
        outcome = drawn[lane]
        points[lane] = outcome if chosen[lane] else empty
    for lane in range(LANES):
        first[lane], end[lane] = rounds[0, points[lane]], rounds[1, points[lane]]


@njit(cache=True)
def _span(first, end, window):  # type: ignore[no-untyped-def]
    """Return the least range (low, high) that holds 64 intervals."""
    low, high = first.dtype.type(window), first.dtype.type(0)
    for lane in range(LANES):
        low, high = min(low, first[lane]), max(high, end[lane])
    return np.int64(low), np.int64(high)


@njit(cache=True)
def _span_of_moves(old_first, old_end, first, end, window):  # type: ignore[no-untyped-def]
    """Return a range (low, high) outside which the intervals of each of 64 paths are as they were."""
    none = first.dtype.type(window)
    low, high = none, first.dtype.type(0)
    for lane in range(LANES):
        before, after, old_until, until = old_first[lane], first[lane], old_end[lane], end[lane]
        begins = min(old_until, until) if before == after else min(before, after)
        low = min(low, none if (before == after) & (old_until == until) else begins)
        high = max(high, max(old_until, until))
    return np.int64(low), np.int64(high)


@njit(cache=True)
def _add_block(loads, row_tops, block, row, low, high, first, end, width):  # type: ignore[no-untyped-def]
    """Add ``width`` (negative: take away) in rounds ``first .. end - 1`` of each of 64 paths.

    ``row`` is the ring's row of the current round; rounds outside ``low .. high - 1`` are not touched.
    """
    window = loads.shape[1]
    step = loads.dtype.type(width)
    none = loads.dtype.type(0)
    for ahead in range(low, high):
        at = row + ahead
        if at >= window:
            at -= window
        lanes = loads[block, at]
        t = loads.dtype.type(ahead)
        top = none
        for lane in range(LANES):
            load = loads.dtype.type(lanes[lane] + (step if (first[lane] <= t) & (t < end[lane]) else none))
            lanes[lane] = load
            top = max(top, load)
        if top > row_tops[at]:
            row_tops[at] = top


@njit(cache=True)
def _move_block(loads, row_tops, block, row, low, high, old_first, old_end, first, end, width):  # type: ignore[no-untyped-def]
    """Move a job from its old rounds to its new ones on each of 64 paths, in one pass."""
    window = loads.shape[1]
    step = loads.dtype.type(width)
    none = loads.dtype.type(0)
    for ahead in range(low, high):
        at = row + ahead
        if at >= window:
            at -= window
        lanes = loads[block, at]
        t = loads.dtype.type(ahead)
        top = none
        for lane in range(LANES):
            gain = step if (first[lane] <= t) & (t < end[lane]) else none
            loss = step if (old_first[lane] <= t) & (t < old_end[lane]) else none
            load = loads.dtype.type(lanes[lane] + loads.dtype.type(gain - loss))
            lanes[lane] = load
            top = max(top, load)
        if top > row_tops[at]:
            row_tops[at] = top


@njit(cache=True)
def _fill_block(loads, row_tops, block, row, first, end, width, capacity, cut):  # type: ignore[no-untyped-def]
    """Place a job on 64 paths under the ``running`` rule: cut where it does not fit."""
    window = loads.shape[1]
    for lane in range(LANES):
        at = row + np.int64(first[lane])
        if at >= window:
            at -= window
        for _ in range(np.int64(end[lane]) - np.int64(first[lane])):
            load = loads[block, at, lane] + width
            loads[block, at, lane] = load
            if load > row_tops[at]:
                row_tops[at] = load
            if load > capacity:
                cut[block * LANES + lane] = 1
                break
            at += 1
            if at == window:
                at = 0


@njit(cache=True)
def _hold_back_unfit(loads, block, row, first, end, width, capacity, cut, again):  # type: ignore[no-untyped-def]
    """Empty the intervals of 64 paths that do not fit as a whole, or whose path is marked; mark these."""
    window = loads.shape[1]
    for lane in range(LANES):
        path = block * LANES + lane
        for ahead in range(np.int64(first[lane]), np.int64(end[lane])):
            at = row + ahead
            if at >= window:
                at -= window
            if cut[path] or loads[block, at, lane] + width > capacity:
                cut[path] = again[path] = 1
                end[lane] = 0
                break


@njit(cache=True)
def _hold_back_cut(path, chosen, end, cut, again):  # type: ignore[no-untyped-def]
    """Empty the intervals of the ``chosen`` paths on which a job was cut short; mark these paths."""
    for lane in range(LANES):
        if chosen[lane] and cut[path + lane]:
            again[path + lane] = 1
            end[lane] = 0


@njit(cache=True)
def _scratch(loads, slots, jobs):  # type: ignore[no-untyped-def]
    """Return room for the rounds of a job's outcomes; and, of a block, for old and new rounds, and for draws."""
    size = 0
    for slot in jobs:
        size = max(size, slots[slot, POINTS])
    rounds, intervals = np.empty((2, size + 3), loads.dtype), np.empty((4, LANES), loads.dtype)
    return rounds, intervals, np.empty(LANES, np.uint8), np.empty(LANES), np.empty(LANES, np.uint16)


@njit(cache=True)
def place_kernel(paths, jobs, now, n_paths, capacity, root, stamp, blocks):  # type: ignore[no-untyped-def]
    """Place ``jobs``, in order of submission, on the paths of ``blocks[0] .. blocks[1] - 1``.

    ``stamp >= 0``: draw their outcomes first; else keep them, and only fill paths marked ``again``.
    ``capacity >= 0`` selects the ``running`` rule: a job is cut after the first round it does not fit.
    """
    loads, row_tops, draws, cut, again, slots, points, cumulated, guides = paths
    window = loads.shape[1]
    row = now % window
    rounds, intervals, chosen, targets, drafts = _scratch(loads, slots, jobs)
    first, end = intervals[0], intervals[1]
    for slot in jobs:
        stream = _stream(root, slots[slot, KEY], max(stamp, 0))
        width = slots[slot, WIDTH]
        _rounds_of(points, slots[slot, OFFSET], slots[slot, POINTS] + 2, now, window, rounds)
        for block in range(blocks[0], blocks[1]):
            path = block * LANES
            drawn = draws[min(slot, draws.shape[0] - 1), path : path + LANES]  # a twin has one row for all jobs
            if stamp >= 0:
                _choose_all(chosen, n_paths - path)
                _draw_block(drawn, chosen, path, stream, slot, slots, cumulated, guides, targets, drafts)
            else:
                for lane in range(LANES):
                    chosen[lane] = again[path + lane] > 0
            _look_up(rounds, drawn, chosen, drafts, first, end)
            if capacity >= 0:
                _fill_block(loads, row_tops, block, row, first, end, width, capacity, cut)
            else:
                low, high = _span(first, end, window)
                _add_block(loads, row_tops, block, row, low, high, first, end, width)


@njit(cache=True)
def _narrow_kernel(paths, jobs, now, n_paths, capacity, root, stamp):  # type: ignore[no-untyped-def]
    """Redraw ``jobs`` where the drawn outcome is no longer possible.

    Under the ``running`` rule a path on which a job is or would be cut short is only marked ``again``.
    """
    loads, row_tops, draws, cut, again, slots, points, cumulated, guides = paths
    window = loads.shape[1]
    row = now % window
    rounds, intervals, chosen, targets, drafts = _scratch(loads, slots, jobs)
    old_first, old_end, first, end = intervals[0], intervals[1], intervals[2], intervals[3]
    for slot in jobs:
        stream = _stream(root, slots[slot, KEY], stamp)
        width, size = slots[slot, WIDTH], slots[slot, POINTS]
        possible, beyond = np.uint16(slots[slot, LOW]), np.uint16(slots[slot, HIGH])
        never = np.uint16(size if slots[slot, MAY_NEVER] else NO_OUTCOME)
        _rounds_of(points, slots[slot, OFFSET], size + 2, now, window, rounds)
        for block in range(loads.shape[0]):
            path = block * LANES
            drawn = draws[slot, path : path + LANES]
            if not _choose_impossible(drawn, n_paths - path, possible, beyond, never, chosen):
                continue
            _look_up(rounds, drawn, chosen, drafts, old_first, old_end)
            _draw_block(drawn, chosen, path, stream, slot, slots, cumulated, guides, targets, drafts)
            _look_up(rounds, drawn, chosen, drafts, first, end)
            if capacity >= 0:
                low, high = _span(old_first, old_end, window)
                _hold_back_cut(path, chosen, old_end, cut, again)
                _add_block(loads, row_tops, block, row, low, high, old_first, old_end, -width)
                low, high = _span(first, end, window)
                _hold_back_cut(path, chosen, end, cut, again)
                _hold_back_unfit(loads, block, row, first, end, width, capacity, cut, again)
                _add_block(loads, row_tops, block, row, low, high, first, end, width)
            else:
                low, high = _span_of_moves(old_first, old_end, first, end, window)
                _move_block(loads, row_tops, block, row, low, high, old_first, old_end, first, end, width)


@njit(cache=True)
def _remove_kernel(paths, slot, now, n_paths):  # type: ignore[no-untyped-def]
    """Take one job off all paths; under the ``running`` rule mark cut paths ``again`` instead."""
    loads, row_tops, draws, cut, again, slots, points, _, _ = paths
    window = loads.shape[1]
    row = now % window
    rounds, intervals, chosen, _, drafts = _scratch(loads, slots, np.full(1, slot))
    first, end = intervals[0], intervals[1]
    _rounds_of(points, slots[slot, OFFSET], slots[slot, POINTS] + 2, now, window, rounds)
    for block in range(loads.shape[0]):
        path = block * LANES
        _choose_all(chosen, n_paths - path)
        _look_up(rounds, draws[slot, path : path + LANES], chosen, drafts, first, end)
        low, high = _span(first, end, window)
        if low < high:
            _hold_back_cut(path, chosen, end, cut, again)
            _add_block(loads, row_tops, block, row, low, high, first, end, -slots[slot, WIDTH])


@njit(cache=True)
def _empty_kernel(loads, cut, again, n_paths):  # type: ignore[no-untyped-def]
    """Empty the paths marked ``again``."""
    for path in range(n_paths):
        if again[path]:
            cut[path] = 0
            for row in range(loads.shape[1]):
                loads[path // LANES, row, path % LANES] = 0
