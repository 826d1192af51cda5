r"""Sample paths of the earlier jobs' residual randomness, kept alive from submission to submission.

Appendix F of the paper simulates every earlier job again for each query. Here ``n`` paths stay:
each holds one drawn outcome per earlier active job, and the load these outcomes put on the coming
rounds. An observation (no arrival, an arrival, an end, an eviction) makes some drawn outcomes
impossible; only on those paths, and only for that job, a new outcome is drawn from the narrowed
law, which keeps every path an exact draw from the conditional law of Section 9.

Draws are a function of (root key, order of submission, round, kind, path) and of nothing else: a
counter-based generator (the finaliser of SplitMix64, [SLF14]_). They therefore never depend on a
report, nor on how often other jobs were redrawn.

Under the ``running`` variant (Section 15.3) a later job is the first to go, so the load of a path
before the removals of each round is built by placing the jobs in order of submission, each up to and
including the first round in which it does not fit; paths on which nobody is cut short are updated
in place, the others are placed again.

References
----------
.. [SLF14] Steele, Lea, Flood: Fast splittable pseudorandom number generators, OOPSLA 2014.
"""

from __future__ import annotations

import numpy as np
from numba import njit

LANES = 64  # as in failure_table; a compiled kernel's cache notices changes of its own file only

# Columns of the table of slots; one slot per active job.
OFFSET, POINTS, GUIDE, BUCKETS, LOW, HIGH, MAY_NEVER, WIDTH, KEY = range(9)
N_COLUMNS = 9

# Kinds of draw beside SETTLE and ARRIVE, so that no two draws of one job in one round share numbers.
SUBMIT, REFRESH, FRESH = 1, 4, 5

_STEP = np.uint64(0x9E3779B97F4A7C15)
_MIX_1, _MIX_2 = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_SCALE = 2.0**-53
_S27, _S30, _S31, _S11 = np.uint64(27), np.uint64(30), np.uint64(31), np.uint64(11)
_ONE = np.uint64(1)


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
def _draw_lanes(outcomes, path, lanes, stream, slot, slots, cumulated, guides):  # type: ignore[no-untyped-def]
    """Draw one job's outcome from its narrowed law on the paths ``path + lanes``.

    An outcome is a point of the law; or ``POINTS``: never arrives; or ``POINTS + 1``: all durations
    are outlived, and d = D_max is assumed.
    """
    offset, points = slots[slot, OFFSET], slots[slot, POINTS]
    low, high, may_never = slots[slot, LOW], slots[slot, HIGH], slots[slot, MAY_NEVER]
    law = cumulated[offset : offset + points + 1]
    guide = guides[slots[slot, GUIDE] : slots[slot, GUIDE] + slots[slot, BUCKETS]]
    base, buckets = law[low], float(guide.size)
    mass = law[high] - base
    total = mass + (max(0.0, 1.0 - law[points]) if may_never else 0.0)
    # At or beyond the mass; where only rounding leads there, the last point is meant.
    beyond = points if may_never else high - 1 if mass > 0.0 else points + 1
    for lane in lanes:
        target = _uniform(stream, path + lane) * total
        if target >= mass:
            outcomes[path + lane] = beyond
            continue
        target += base
        point = np.int64(guide[min(np.int64(target * buckets), guide.size - 1)])
        while point < high - 1 and law[point + 1] <= target:
            point += 1
        outcomes[path + lane] = point


@njit(cache=True)
def _rounds_ahead(points, offset, outcomes, path, now, lanes, first, end):  # type: ignore[no-untyped-def]
    """Fill (first, end), counted from ``now``, with what the outcomes of the paths ``path + lanes`` still occupy.

    What does not run or lies in the past gets the empty interval (0, 0). Returns the union of all.
    """
    low, high = np.int64(1 << 30), np.int64(0)
    for lane in lanes:
        outcome = offset + np.int64(outcomes[path + lane])
        begins, last = points[0, outcome], points[1, outcome]
        first[lane] = end[lane] = 0
        if begins >= 0 and last >= now:
            begins, ends = max(begins - now, 0), last - now + 1
            first[lane], end[lane] = begins, ends
            low, high = min(low, begins), max(high, ends)
    return low, high


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
def _fill_block(loads, row_tops, block, row, lanes, first, end, width, capacity, cut):  # type: ignore[no-untyped-def]
    """Place a job on the paths ``lanes`` of a block under the ``running`` rule: cut where it does not fit."""
    window = loads.shape[1]
    for lane in lanes:
        at = row + np.int64(first[lane])
        if at >= window:
            at -= window
        for _ in range(end[lane] - first[lane]):
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
def _hold_back_unfit(loads, block, row, lanes, first, end, width, capacity, cut, again):  # type: ignore[no-untyped-def]
    """Empty the intervals of ``lanes`` that do not fit as a whole, or whose path is marked; mark these."""
    window = loads.shape[1]
    for lane in lanes:
        path = block * LANES + lane
        for ahead in range(first[lane], end[lane]):
            at = row + ahead
            if at >= window:
                at -= window
            if cut[path] or loads[block, at, lane] + width > capacity:
                cut[path] = again[path] = 1
                first[lane] = end[lane] = 0
                break


@njit(cache=True)
def _hold_back_cut(path, lanes, first, end, cut, again):  # type: ignore[no-untyped-def]
    """Empty the intervals of ``lanes`` on whose path somebody was cut short; mark these paths."""
    for lane in lanes:
        if cut[path + lane]:
            again[path + lane] = 1
            first[lane] = end[lane] = 0


@njit(cache=True)
def _place_kernel(  # type: ignore[no-untyped-def]
    loads,
    row_tops,
    draws,
    cut,
    again,
    slots,
    points,
    cumulated,
    guides,
    jobs,
    now,
    n_paths,
    capacity,
    root,
    stamp,
    blocks,
):
    """Place ``jobs``, in order of submission, on the paths of ``blocks[0] .. blocks[1] - 1``.

    ``stamp >= 0``: draw their outcomes first; else keep them, and only fill paths marked ``again``.
    ``capacity >= 0`` selects the ``running`` rule: a job is cut after the first round it does not fit.
    """
    row = now % loads.shape[1]
    first, end = np.zeros(LANES, loads.dtype), np.zeros(LANES, loads.dtype)
    listed = np.empty(LANES, np.int64)
    for slot in jobs:
        stream = _stream(root, slots[slot, KEY], max(stamp, 0))
        offset, width, outcomes = slots[slot, OFFSET], slots[slot, WIDTH], draws[slot]
        for block in range(blocks[0], blocks[1]):
            path = block * LANES
            n = 0
            for lane in range(min(LANES, n_paths - path)):
                listed[n] = lane
                n += stamp >= 0 or again[path + lane] > 0
            lanes = listed[:n]
            if stamp >= 0:
                _draw_lanes(outcomes, path, lanes, stream, slot, slots, cumulated, guides)
            low, high = _rounds_ahead(points, offset, outcomes, path, now, lanes, first, end)
            if capacity >= 0:
                _fill_block(loads, row_tops, block, row, lanes, first, end, width, capacity, cut)
            else:
                _add_block(loads, row_tops, block, row, low, high, first, end, width)
            for lane in lanes:
                first[lane] = end[lane] = 0


@njit(cache=True)
def _narrow_kernel(  # type: ignore[no-untyped-def]
    loads,
    row_tops,
    draws,
    cut,
    again,
    slots,
    points,
    cumulated,
    guides,
    jobs,
    now,
    n_paths,
    capacity,
    root,
    stamp,
):
    """Redraw ``jobs`` where the drawn outcome is no longer possible.

    Under the ``running`` rule a path on which somebody is or would be cut short is only marked
    ``again``.
    """
    row = now % loads.shape[1]
    first, end = np.zeros(LANES, loads.dtype), np.zeros(LANES, loads.dtype)
    old_first, old_end = np.zeros(LANES, loads.dtype), np.zeros(LANES, loads.dtype)
    listed = np.empty(LANES, np.int64)
    for slot in jobs:
        stream = _stream(root, slots[slot, KEY], stamp)
        offset, width, outcomes = slots[slot, OFFSET], slots[slot, WIDTH], draws[slot]
        possible, beyond = slots[slot, LOW], slots[slot, HIGH]
        never = slots[slot, POINTS] if slots[slot, MAY_NEVER] else -1
        # Arrived, and the duration is known: one outcome is left, and nothing to draw.
        decided = beyond == possible + 1 and never < 0
        begins = max(points[0, offset + possible] - now, 0) if decided else 0
        ends = max(points[1, offset + possible] - now + 1, begins) if decided else 0
        for block in range(loads.shape[0]):
            path = block * LANES
            n = 0
            for lane in range(min(LANES, n_paths - path)):
                old = np.int64(outcomes[path + lane])
                listed[n] = lane
                n += ((old < possible) | (old >= beyond)) & (old != never)
            if n == 0:
                continue
            lanes = listed[:n]
            old_low, old_high = _rounds_ahead(points, offset, outcomes, path, now, lanes, old_first, old_end)
            if decided:
                low, high = begins, ends
                for lane in lanes:
                    outcomes[path + lane] = possible
                    first[lane], end[lane] = begins, ends
            else:
                _draw_lanes(outcomes, path, lanes, stream, slot, slots, cumulated, guides)
                low, high = _rounds_ahead(points, offset, outcomes, path, now, lanes, first, end)
            if capacity >= 0:
                _hold_back_cut(path, lanes, old_first, old_end, cut, again)
                _add_block(loads, row_tops, block, row, old_low, old_high, old_first, old_end, -width)
                _hold_back_cut(path, lanes, first, end, cut, again)
                _hold_back_unfit(loads, block, row, lanes, first, end, width, capacity, cut, again)
                _add_block(loads, row_tops, block, row, low, high, first, end, width)
            else:
                low, high = min(low, old_low), max(high, old_high)
                _move_block(loads, row_tops, block, row, low, high, old_first, old_end, first, end, width)
            for lane in lanes:
                first[lane] = end[lane] = old_first[lane] = old_end[lane] = 0


@njit(cache=True)
def _remove_kernel(loads, row_tops, draws, cut, again, slots, points, slot, now, n_paths):  # type: ignore[no-untyped-def]
    """Take one job off all paths; under the ``running`` rule mark cut paths ``again`` instead."""
    row = now % loads.shape[1]
    first, end = np.zeros(LANES, loads.dtype), np.zeros(LANES, loads.dtype)
    lanes = np.arange(LANES)
    for block in range(loads.shape[0]):
        path = block * LANES
        lanes = lanes[: n_paths - path]
        low, high = _rounds_ahead(points, slots[slot, OFFSET], draws[slot], path, now, lanes, first, end)
        if low < high:
            _hold_back_cut(path, lanes, first, end, cut, again)
            _add_block(loads, row_tops, block, row, low, high, first, end, -slots[slot, WIDTH])
        first[:] = end[:] = 0


@njit(cache=True)
def _empty_kernel(loads, cut, again, n_paths):  # type: ignore[no-untyped-def]
    """Empty the paths marked ``again``."""
    for path in range(n_paths):
        if again[path]:
            cut[path] = 0
            for row in range(loads.shape[1]):
                loads[path // LANES, row, path % LANES] = 0


@njit(cache=True)
def _guide_kernel(cumulated, guide):  # type: ignore[no-untyped-def]
    """Fill ``guide[b]`` with the point in which the mass ``b / guide.size`` falls."""
    point = 0
    for bucket in range(guide.size):
        while point < cumulated.size - 2 and cumulated[point + 1] <= bucket / guide.size:
            point += 1
        guide[bucket] = point


def root_key(rng: np.random.Generator) -> np.uint64:
    """Draw the root key of the counter-based generator."""
    return np.uint64(rng.integers(0, 2**64, dtype=np.uint64))


def stamp_of(now: int, kind: int, version: int = 0) -> int:
    """Code a round, a kind of draw, and a version of it (below 2**20) as one integer."""
    return (now << 23) | (version << 3) | kind
