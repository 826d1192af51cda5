r"""Sample paths of the earlier jobs' residual randomness, kept alive from submission to submission.

Appendix F of the paper simulates every earlier job again for each query. Here ``n`` paths stay:
each holds one drawn outcome per earlier active job, and the load these outcomes put on the coming
rounds. An observation (no arrival, an arrival, an end, an eviction) makes some drawn outcomes
impossible; only on those paths, and only for that job, a new outcome is drawn from the narrowed
law, which keeps every path an exact draw from the conditional law of Section 9.

Draws are a function of (root key, order of submission, round, kind, path) and of nothing else: a
counter-based generator (the finaliser of SplitMix64, [SLF14]_). They therefore never depend on a
report, nor on how often other jobs were redrawn.

Under the ``running`` variant (Section 15.3) a later job is the first to go, so the effective load
of a path is built by placing the jobs in order of submission, each up to the first round in which
it would not fit; paths on which nobody is cut short are updated in place, the others are placed
again.

References
----------
.. [SLF14] Steele, Lea, Flood: Fast splittable pseudorandom number generators, OOPSLA 2014.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from marketsched.mechanisms.posted.failure_table import LANES

# Columns of the table of slots; one slot per active job.
OFFSET, POINTS, GUIDE, BUCKETS, LOW, HIGH, MAY_NEVER, WIDTH, KEY = range(9)
N_COLUMNS = 9

# Kinds of draw beside SETTLE and ARRIVE, so that no two draws of one job in one round share numbers.
SUBMIT, REFRESH = 1, 4

_STEP = np.uint64(0x9E3779B97F4A7C15)
_MIX_1, _MIX_2 = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_SCALE = 2.0**-53
_S27, _S30, _S31, _S11 = np.uint64(27), np.uint64(30), np.uint64(31), np.uint64(11)
_ONE = np.uint64(1)


@njit(cache=True, inline="always")
def _mix(word):  # type: ignore[no-untyped-def]
    """Scramble 64 bits (finaliser of SplitMix64)."""
    word = (word ^ (word >> _S30)) * _MIX_1
    word = (word ^ (word >> _S27)) * _MIX_2
    return word ^ (word >> _S31)


@njit(cache=True, inline="always")
def _stream(root, order, stamp):  # type: ignore[no-untyped-def]
    """Return the key of one job's draws of one kind in one round (``stamp`` codes both)."""
    return _mix(_mix(np.uint64(root) + _STEP * (np.uint64(order) + _ONE)) + _STEP * (np.uint64(stamp) + _ONE))


@njit(cache=True, inline="always")
def _uniform(stream, path):  # type: ignore[no-untyped-def]
    """Return the stream's number of this path, in [0, 1)."""
    return np.float64(_mix(stream + _STEP * (np.uint64(path) + _ONE)) >> _S11) * _SCALE


@njit(cache=True, inline="always")
def _draw(u, slot, slots, cumulated, guides):  # type: ignore[no-untyped-def]
    """Return the outcome of ``u`` under the narrowed law.

    A point; or ``POINTS``: never arrives; or ``POINTS + 1``: d = D_max is assumed.
    """
    offset, points = slots[slot, OFFSET], slots[slot, POINTS]
    low, high = slots[slot, LOW], slots[slot, HIGH]
    base = cumulated[offset + low]
    mass = cumulated[offset + high] - base
    total = mass
    if slots[slot, MAY_NEVER]:
        total += max(0.0, 1.0 - cumulated[offset + points])
    target = u * total
    if target >= mass:
        if slots[slot, MAY_NEVER]:
            return points
        return high - 1 if mass > 0.0 else points + 1  # all mass outlived: d = D_max is assumed
    target += base
    buckets = slots[slot, BUCKETS]
    point = max(low, guides[slots[slot, GUIDE] + min(np.int64(target * buckets), buckets - 1)])
    while point < high - 1 and cumulated[offset + point + 1] <= target:
        point += 1
    return point


@njit(cache=True, inline="always")
def _shift(loads, row_tops, block, lane, first, last, width):  # type: ignore[no-untyped-def]
    """Add ``width`` (negative: take away) in rounds ``first .. last`` of one path."""
    window = loads.shape[1]
    row = first % window
    for _ in range(last - first + 1):
        load = loads[block, row, lane] + width
        loads[block, row, lane] = load
        if load > row_tops[row]:
            row_tops[row] = load
        row += 1
        if row == window:
            row = 0


@njit(cache=True, inline="always")
def _fits(loads, block, lane, first, last, width, capacity):  # type: ignore[no-untyped-def]
    """Return the last round up to which ``width`` more nodes fit (``first - 1``: not at all)."""
    window = loads.shape[1]
    row = first % window
    for t in range(first, last + 1):
        if loads[block, row, lane] + width > capacity:
            return t - 1
        row += 1
        if row == window:
            row = 0
    return last


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
    chosen,
    now,
    n_paths,
    capacity,
    root,
    stamp,
    blocks,
):
    """Place the jobs ``chosen``, in order of submission, on the paths of ``blocks``.

    ``stamp >= 0``: draw their outcomes first; else keep them, and only fill paths marked ``again``.
    ``capacity >= 0`` selects the ``running`` rule: a job is cut at the first round it does not fit.
    """
    for slot in chosen:
        stream = _stream(root, slots[slot, KEY], max(stamp, 0))
        offset, width = slots[slot, OFFSET], slots[slot, WIDTH]
        for path in range(blocks[0] * LANES, min(blocks[1] * LANES, n_paths)):
            if stamp >= 0:
                draws[slot, path] = _draw(_uniform(stream, path), slot, slots, cumulated, guides)
            elif not again[path]:
                continue
            drawn = offset + np.int64(draws[slot, path])
            first, last = max(points[0, drawn], now), points[1, drawn]
            if points[0, drawn] < 0 or last < now:
                continue
            block, lane = path // LANES, path % LANES
            if capacity >= 0:
                end = _fits(loads, block, lane, first, last, width, capacity)
                if end < last:
                    last = end
                    cut[path] = 1
            _shift(loads, row_tops, block, lane, first, last, width)


@njit(cache=True)
def _narrow_kernel(  # type: ignore[no-untyped-def]
    loads, row_tops, draws, cut, again, slots, points, cumulated, guides, chosen, now, n_paths, capacity, root, stamp
):
    """Redraw the jobs ``chosen`` where the drawn outcome is no longer possible.

    Under the ``running`` rule a path on which somebody is or would be cut short is only marked
    ``again``. Returns how many were.
    """
    marked = 0
    for slot in chosen:
        stream = _stream(root, slots[slot, KEY], stamp)
        offset, width = slots[slot, OFFSET], slots[slot, WIDTH]
        low, high, never = slots[slot, LOW], slots[slot, HIGH], slots[slot, POINTS]
        may_never = slots[slot, MAY_NEVER]
        for path in range(n_paths):
            old = np.int64(draws[slot, path])
            if (low <= old < high) or (may_never and old == never):
                continue
            new = _draw(_uniform(stream, path), slot, slots, cumulated, guides)
            draws[slot, path] = new
            if cut[path]:
                marked += 1 - again[path]
                again[path] = 1
                continue
            block, lane = path // LANES, path % LANES
            first, last = points[0, offset + old], points[1, offset + old]
            if first >= 0 and last >= now:
                _shift(loads, row_tops, block, lane, max(first, now), last, -width)
            first, last = points[0, offset + new], points[1, offset + new]
            if first >= 0 and last >= now:
                first = max(first, now)
                if capacity >= 0 and _fits(loads, block, lane, first, last, width, capacity) < last:
                    cut[path] = again[path] = 1
                    marked += 1
                    continue
                _shift(loads, row_tops, block, lane, first, last, width)
    return marked


@njit(cache=True)
def _remove_kernel(loads, row_tops, draws, cut, again, slots, points, slot, now, n_paths):  # type: ignore[no-untyped-def]
    """Take one job off all paths; return how many paths were marked ``again``."""
    offset, width = slots[slot, OFFSET], slots[slot, WIDTH]
    marked = 0
    for path in range(n_paths):
        drawn = offset + np.int64(draws[slot, path])
        first, last = points[0, drawn], points[1, drawn]
        if first < 0 or last < now:
            continue
        if cut[path]:
            marked += 1 - again[path]
            again[path] = 1
            continue
        _shift(loads, row_tops, path // LANES, path % LANES, max(first, now), last, -width)
    return marked


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
