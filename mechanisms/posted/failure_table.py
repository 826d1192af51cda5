r"""From the loads of many sample paths to the failure probability of every start and duration.

Let :math:`N_t` be the load of the earlier active jobs in round ``t`` on one path, as if no job were
evicted from now on. A launch of width ``c`` in round ``s`` for ``d`` rounds fails iff

.. math:: s+d-1 > T \;\text{ or }\; N_t > C \text{ for some } t \in [\tau, s-1]
          \;\text{ or }\; N_t > C - c \text{ for some } t \in [s, s+d-1]           \qquad (6')

The kernel looks at each (path, round) once for all starts and durations. A *hit* is a round with
:math:`N_t > C - c` on a path not yet lost; a path is *lost* after its first round with
:math:`N_t > C`. If the previous hit lies ``g`` rounds back, then exactly the launches ``(t-k+1, k)``
with ``k <= g`` fail first in round ``t``, so counting hits by their gap is enough; rounds lost
earlier add to every later start. Sixty-four paths are compared at once and travel as the bits of
one word, so runs of hits cost one population count and only where a run begins or ends is a single
path touched.

`joint_failures` counts on how many paths two launches fail together: what a comparison of the two on
the same paths needs.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import njit, types
from numba.extending import intrinsic, overload
from numpy.typing import NDArray

LANES = 64  # paths per block: the bits of one machine word

_ZERO, _ONE = np.uint64(0), np.uint64(1)


class Launches(NamedTuple):
    """Which launches are looked at: every start for every duration, each beside one launch per point, its anchor."""

    durations: NDArray[np.int64]  # (n_durations,), distinct, rising, rounds
    anchors: NDArray[np.int64]  # (n_points,), the anchor's start, counted from the first one; -1: none
    lengths: NDArray[np.int64]  # (n_points,), its duration, an index into ``durations``


def _exceeds(loads: NDArray[Any], offset: int, threshold: int) -> np.uint64:
    """Return bit ``l`` set iff ``loads[offset + l] > threshold``, for 64 lanes."""
    bits = 0
    for lane in range(LANES):
        if loads[offset + lane] > threshold:
            bits |= 1 << lane
    return np.uint64(bits)


def _count(word: np.uint64) -> int:
    """Return the number of set bits."""
    return int(word).bit_count()


def _lowest(word: np.uint64) -> int:
    """Return the index of the lowest set bit of a non-zero word."""
    return (int(word) & -int(word)).bit_length() - 1


@intrinsic
def _exceeds_vector(_typing: Any, loads: Any, offset: Any, threshold: Any) -> Any:
    """One vector comparison of 64 lanes, turned into a 64-bit word."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array_type = signature.args[0]
        array = context.make_array(array_type)(context, builder, arguments[0])
        item = context.get_value_type(array_type.dtype)
        vector = ir.VectorType(item, LANES)
        pointer = builder.bitcast(builder.gep(array.data, [arguments[1]]), vector.as_pointer())
        values = builder.load(pointer, align=array_type.dtype.bitwidth // 8)
        undefined = ir.Constant(vector, ir.Undefined)
        first = builder.insert_element(undefined, arguments[2], ir.Constant(ir.IntType(32), 0))
        spread = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES)
        limit = builder.shuffle_vector(first, undefined, spread)
        return builder.bitcast(builder.icmp_signed(">", values, limit), ir.IntType(64))

    return types.uint64(loads, types.int64, loads.dtype), codegen


@intrinsic
def _count_instruction(_typing: Any, word: Any) -> Any:
    def codegen(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])

    return types.int64(types.uint64), codegen


@intrinsic
def _lowest_instruction(_typing: Any, word: Any) -> Any:
    def codegen(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 1))

    return types.int64(types.uint64), codegen


# Numba compares these signatures with the lambdas' to the letter, so they carry no annotations.
@overload(_exceeds, inline="always")
def _exceeds_overload(loads, offset, threshold):  # type: ignore[no-untyped-def]
    return lambda loads, offset, threshold: _exceeds_vector(loads, offset, threshold)  # type: ignore[call-arg]


@overload(_count, inline="always")
def _count_overload(word):  # type: ignore[no-untyped-def]
    return lambda word: _count_instruction(word)  # type: ignore[call-arg]


@overload(_lowest, inline="always")
def _lowest_overload(word):  # type: ignore[no-untyped-def]
    return lambda word: _lowest_instruction(word)  # type: ignore[call-arg]


def failure_counts(
    loads: NDArray[Any],
    row_tops: NDArray[np.int64],
    first_row: int,
    n_rows: int,
    n_starts: int,
    n_durations: int,
    *,
    soft: int,
    hard: int,
) -> NDArray[np.int64]:
    """Count the failing paths (6') of every start ``now + i`` and duration ``k + 1``, shape (n_starts, n_durations).

    ``loads``, int16 or int32 of shape (n_blocks, window, 64), has the load of each round (a ring of rows, the current
    one at ``first_row``) on 64 paths per block; unused lanes hold 0. ``row_tops``, shape (window,), are upper bounds on
    each row over all paths: rows at or below ``soft`` are skipped. ``n_rows``, at most ``window``, are looked at;
    beyond them loads count as 0. ``soft`` and ``hard`` are C - c and C, nodes.
    """
    counts = np.zeros((n_starts, n_durations), dtype=np.int64)
    failure_counts_kernel(loads, row_tops, first_row, n_rows, soft, hard, counts)
    return counts


@njit(cache=True)
def failure_counts_kernel(loads, row_tops, first_row, n_rows, soft, hard, counts):  # type: ignore[no-untyped-def]
    """Fill ``counts``, which is zero, as `failure_counts` returns it; return whether any can be above 0."""
    n_blocks, window, lanes = loads.shape
    n_rows = min(n_rows, window)
    dirty = _dirty_kernel(row_tops, first_row, n_rows, soft)
    if dirty.size:
        gaps = np.zeros((n_rows, counts.shape[1] + 2), np.int64)
        lost = np.zeros(n_rows, np.int64)
        top = 2 ** (8 * loads.itemsize - 1) - 1
        low, high = min(max(soft, -top - 1), top), min(max(hard, -top - 1), top)
        flat = loads.reshape(n_blocks * window * lanes)
        _hits_kernel(flat, window, first_row, dirty, loads.dtype.type(low), loads.dtype.type(high), gaps, lost)
        _counts_kernel(gaps, lost, counts)
    return dirty.size > 0


@njit(cache=True)
def _dirty_kernel(row_tops, first_row, n_rows, soft):  # type: ignore[no-untyped-def]
    """Return which of the next rounds, counted from the current one, have a load above ``soft`` on some path."""
    window, dirty, n = row_tops.size, np.empty(n_rows, np.int64), 0
    for k in range(n_rows):
        row = first_row + k
        if row_tops[row - window if row >= window else row] > soft:
            dirty[n] = k
            n += 1
    return dirty[:n]


def joint_failures(
    loads: NDArray[Any],
    row_tops: NDArray[np.int64],
    first_row: int,
    first_ahead: int,
    n_starts: int,
    launches: Launches,
    *,
    softs: NDArray[np.int64],
    hard: int,
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Count failures (6') of many launches, and of each together with one launch of the first width.

    The first three arguments are as in `failure_counts`; starts are ``now + first_ahead + i``. ``launches`` has
    durations, and the anchors, which have the first width; ``softs``, shape (n_widths,), are C - c, ``hard`` is C,
    nodes. Returns the paths on which each launch fails, shape (n_widths, n_durations, n_starts), and those on which it
    and a point's anchor both fail, for launches of the point's duration, shape (n_widths, n_points, n_starts).
    """
    window = loads.shape[1]
    n_rows = first_ahead + n_starts + int(launches.durations[-1]) - 1
    dirty = _dirty_kernel(row_tops, first_row, min(n_rows, window), int(softs.min()))
    failing = np.zeros((softs.size, launches.durations.size, n_starts), dtype=np.int64)
    together = np.zeros((softs.size, launches.anchors.size, n_starts), dtype=np.int64)
    if dirty.size:
        ends = np.iinfo(loads.dtype)
        limits = np.clip(np.r_[softs, hard], ends.min, ends.max).astype(loads.dtype)
        words = np.zeros((softs.size + 1, n_rows), dtype=np.uint64)
        failed = np.zeros(failing.shape, dtype=np.uint64)
        flat = loads.reshape(-1)
        _joint_kernel(flat, window, first_row, dirty, limits, first_ahead, launches, words, failed, failing, together)
    return failing, together


@njit(cache=True)
def _joint_kernel(  # type: ignore[no-untyped-def]
    loads, window, first_row, dirty, limits, first_ahead, launches, words, failed, failing, together
):
    """Add the counts of all blocks; ``words`` and ``failed`` are scratch, zero before and after dirty rounds.

    ``words[w, t]`` holds the lanes with a hit of width ``w`` in round ``t``; its last row, those lost before ``t``.
    """
    durations, anchors, lengths = launches
    n_widths, n_durations, n_starts = failing.shape
    for block in range(loads.size // (window * LANES)):
        found = _ZERO
        for k in dirty:
            row = first_row + k
            if row >= window:
                row -= window
            offset = (block * window + row) * LANES
            for w in range(n_widths):
                words[w, k] = _exceeds(loads, offset, limits[w])
                found |= words[w, k]
            words[n_widths, k] = _exceeds(loads, offset, limits[n_widths])
        if found == _ZERO:
            continue
        lost = _ZERO
        for t in range(words.shape[1]):
            lost_now = words[n_widths, t]
            words[n_widths, t] = lost
            lost |= lost_now
        for w in range(n_widths):
            for i in range(n_starts):
                t = first_ahead + i
                word = words[n_widths, t]
                for m in range(n_durations):
                    while t < first_ahead + i + durations[m]:
                        word |= words[w, t]
                        t += 1
                    failed[w, m, i] = word
                    failing[w, m, i] += _count(word)
        for k in range(anchors.size):
            anchor = failed[0, lengths[k], anchors[k]] if anchors[k] >= 0 else _ZERO
            if anchor == _ZERO:
                continue
            for w in range(n_widths):
                for i in range(n_starts):
                    together[w, k, i] += _count(anchor & failed[w, lengths[k], i])
        words[:] = _ZERO


@njit(cache=True)
def _hits_kernel(loads, window, first_row, dirty, soft, hard, gaps, lost):  # type: ignore[no-untyped-def]
    """Add hits by (round, gap to the previous hit) to ``gaps``, first losses by round to ``lost``."""
    longest = gaps.shape[1] - 2
    latest = np.empty(LANES, dtype=np.int64)  # last hit of each lane that is not in a run of hits
    for block in range(loads.size // (window * LANES)):
        latest[:] = -1
        running = _ZERO  # lanes hit in round `before`
        alive = ~_ZERO
        before = -2
        for k in dirty:
            row = first_row + k
            if row >= window:
                row -= window
            offset = (block * window + row) * LANES
            hit = _exceeds(loads, offset, soft) & alive
            if hit == _ZERO and running == _ZERO:
                continue
            begun, ended = hit, running
            if k == before + 1:
                begun, ended = hit & ~running, running & ~hit
                gaps[k, 1] += _count(hit & running)
            while ended != _ZERO:
                latest[_lowest(ended)] = before
                ended &= ended - _ONE
            while begun != _ZERO:
                gaps[k, min(k - latest[_lowest(begun)], longest)] += 1
                begun &= begun - _ONE
            over = _exceeds(loads, offset, hard) & alive
            if over != _ZERO:
                lost[k] += _count(over)
                alive &= ~over
                hit &= alive
                if alive == _ZERO:
                    break
            running = hit
            before = k


@njit(cache=True)
def _counts_kernel(gaps, lost, counts):  # type: ignore[no-untyped-def]
    """Turn hits by gap into failures by (start, duration); ``gaps`` is summed in place."""
    n_rows, columns = gaps.shape
    n_starts, n_durations = counts.shape
    for k in range(n_rows):
        for gap in range(columns - 2, 0, -1):
            gaps[k, gap] += gaps[k, gap + 1]
    dead = 0
    for s in range(n_starts):
        if 0 < s <= n_rows:
            dead += lost[s - 1]
        failing = dead
        for d in range(1, n_durations + 1):
            if s + d - 1 < n_rows:
                failing += gaps[s + d - 1, d]
            counts[s, d - 1] = failing
