r"""Sample paths of jobs with few outcomes: 64 paths at a time are the bits of one machine word.

What is drawn, and the loads that result, are those of `path_kernels` to the last bit; only the way there differs.
A job with a handful of outcomes spends most of its time there on numbers that a comparison can stand in for:

* A path passes the edge of a point if its number of the stream is large enough, and mostly the first 16 bits of
  the random word show it. Only on paths on which these are the last ones in front of an edge is the number made.
* The paths on which an outcome was drawn are a word. It enters the job's rounds with the outcome's first one and
  leaves behind its last; from the words of old and new outcomes follows, round by round, which paths lose the job and
  which get it. Rounds that the job occupies before and after, or neither, are not touched.

The time of a block is proportional to the number of outcomes: above `FEW`, `path_kernels` is faster.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import njit, types
from numba.extending import intrinsic, overload
from numpy.typing import NDArray

FEW = 64  # outcomes, at most

# As in path_kernels and failure_table: a compiled kernel's cache notices changes of its own file only.
LANES = 64
OFFSET, POINTS, LOW, HIGH, MAY_NEVER, WIDTH, KEY = 0, 1, 5, 6, 7, 8, 9

HEADS = 65_536  # values of the first 16 bits of a random word

_STEP = np.uint64(0x9E3779B97F4A7C15)
_MIX_1, _MIX_2 = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_SCALE = 2.0**-53
_S27, _S30, _S31, _S11, _S48 = np.uint64(27), np.uint64(30), np.uint64(31), np.uint64(11), np.uint64(48)
_ZERO, _ONE = np.uint64(0), np.uint64(1)
_ALL = ~_ZERO


def _at_least(lanes: NDArray[np.uint16], offset: int, value: int) -> np.uint64:
    """Return bit ``l`` set iff element ``offset + l`` is at least ``value``, for 64 lanes."""
    return _word(lanes.reshape(-1)[offset : offset + LANES] >= value)


def _equal(lanes: NDArray[np.uint16], offset: int, value: int) -> np.uint64:
    """Return bit ``l`` set iff element ``offset + l`` is ``value``."""
    return _word(lanes.reshape(-1)[offset : offset + LANES] == value)


def _put(lanes: NDArray[np.uint16], offset: int, word: np.uint64, value: int) -> None:
    """Write ``value`` to element ``offset + l`` for each bit ``l`` of the word."""
    lanes.reshape(-1)[offset : offset + LANES][_bits(word)] = value


def _shift(loads: NDArray[Any], offset: int, more: np.uint64, less: np.uint64, width: int, top: int) -> np.uint64:
    """Add ``width`` on the lanes of ``more``, take it off those of ``less``; return which are then above ``top``."""
    lanes = loads.reshape(-1)[offset : offset + LANES]
    lanes[_bits(more)] += width
    lanes[_bits(less)] -= width
    return _word(lanes > top)


def _word(bits: NDArray[np.bool_]) -> np.uint64:
    """Return 64 bits as a word."""
    return np.uint64(sum(1 << lane for lane in np.flatnonzero(bits).tolist()))


def _bits(word: np.uint64) -> NDArray[np.bool_]:
    """Return the 64 bits of a word."""
    return np.array([int(word) >> lane & 1 for lane in range(LANES)], dtype=np.bool_)


class _Vector:
    """Builds instructions on 64 elements of an array at once."""

    def __init__(self, context: Any, builder: Any, array_type: Any, array: Any, offset: Any) -> None:
        self.builder, self.item = builder, context.get_value_type(array_type.dtype)
        self.type, self.align = ir.VectorType(self.item, LANES), array_type.dtype.bitwidth // 8
        data = context.make_array(array_type)(context, builder, array).data
        self.pointer = builder.bitcast(builder.gep(data, [offset]), self.type.as_pointer())

    def load(self) -> Any:
        return self.builder.load(self.pointer, align=self.align)

    def store(self, values: Any) -> None:
        self.builder.store(values, self.pointer, align=self.align)

    def spread(self, number: Any) -> Any:
        """Return 64 times one number, given with 64 bits."""
        undefined, index = ir.Constant(self.type, ir.Undefined), ir.VectorType(ir.IntType(32), LANES)
        first = self.builder.insert_element(
            undefined, self.builder.trunc(number, self.item), ir.Constant(ir.IntType(32), 0)
        )
        return self.builder.shuffle_vector(first, undefined, ir.Constant(index, [0] * LANES))

    def chosen(self, word: Any, values: Any, other: Any) -> Any:
        """Return ``values`` on the lanes of the word, ``other`` elsewhere."""
        return self.builder.select(self.builder.bitcast(word, ir.VectorType(ir.IntType(1), LANES)), values, other)

    def word(self, condition: Any) -> Any:
        return self.builder.bitcast(condition, ir.IntType(64))


@intrinsic
def _at_least_vector(_typing: Any, lanes: Any, offset: Any, value: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        vector = _Vector(context, builder, signature.args[0], *arguments[:2])
        return vector.word(builder.icmp_unsigned(">=", vector.load(), vector.spread(arguments[2])))

    return types.uint64(lanes, types.int64, types.int64), codegen


@intrinsic
def _equal_vector(_typing: Any, lanes: Any, offset: Any, value: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        vector = _Vector(context, builder, signature.args[0], *arguments[:2])
        return vector.word(builder.icmp_unsigned("==", vector.load(), vector.spread(arguments[2])))

    return types.uint64(lanes, types.int64, types.int64), codegen


@intrinsic
def _put_vector(_typing: Any, lanes: Any, offset: Any, word: Any, value: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        vector = _Vector(context, builder, signature.args[0], *arguments[:2])
        vector.store(vector.chosen(arguments[2], vector.spread(arguments[3]), vector.load()))
        return context.get_dummy_value()

    return types.none(lanes, types.int64, types.uint64, types.int64), codegen


@intrinsic
def _shift_vector(_typing: Any, loads: Any, offset: Any, more: Any, less: Any, width: Any, top: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        vector = _Vector(context, builder, signature.args[0], *arguments[:2])
        step, nothing = vector.spread(arguments[4]), ir.Constant(vector.type, [0] * LANES)
        gain, loss = (vector.chosen(word, step, nothing) for word in arguments[2:4])
        values = builder.sub(builder.add(vector.load(), gain), loss)
        vector.store(values)
        return vector.word(builder.icmp_signed(">", values, vector.spread(arguments[5])))

    return types.uint64(loads, types.int64, types.uint64, types.uint64, types.int64, types.int64), codegen


# Numba compares these signatures with the lambdas' to the letter, so they carry no annotations.
@overload(_at_least, inline="always")
def _at_least_overload(lanes, offset, value):  # type: ignore[no-untyped-def]
    return lambda lanes, offset, value: _at_least_vector(lanes, offset, value)  # type: ignore[call-arg]


@overload(_equal, inline="always")
def _equal_overload(lanes, offset, value):  # type: ignore[no-untyped-def]
    return lambda lanes, offset, value: _equal_vector(lanes, offset, value)  # type: ignore[call-arg]


@overload(_put, inline="always")
def _put_overload(lanes, offset, word, value):  # type: ignore[no-untyped-def]
    return lambda lanes, offset, word, value: _put_vector(lanes, offset, word, value)  # type: ignore[call-arg]


@overload(_shift, inline="always")
def _shift_overload(loads, offset, more, less, width, top):  # type: ignore[no-untyped-def]
    return lambda loads, offset, more, less, width, top: _shift_vector(loads, offset, more, less, width, top)  # type: ignore[call-arg]


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
def _fill_heads(stream, path, heads):  # type: ignore[no-untyped-def]
    """Fill the first 16 bits of the random words of 64 paths."""
    for lane in range(LANES):
        heads[lane] = _mix(stream + _STEP * (np.uint64(path + lane) + _ONE)) >> _S48


@njit(cache=True)
def _head_of(value, base, total):  # type: ignore[no-untyped-def]
    """Return the first head whose least number passes an edge; 65,536: none does."""
    head = 0
    if total > 0.0:
        head = int(min(max((value - base) / total, 0.0), 1.0) * HEADS)
    while head > 0 and (head - 1) / HEADS * total + base >= value:
        head -= 1
    while head < HEADS and head / HEADS * total + base < value:
        head += 1
    return head


@njit(cache=True)
def _edges_of(slot, slots, cumulated, edges, heads):  # type: ignore[no-untyped-def]
    """Fill, from the last to the first, the edges that lead to each outcome of a narrowed law but its first.

    ``edges`` has columns (value to reach, what is added to the number before, outcome). Returns their number, and
    what the numbers in [0, 1) are multiplied by. See `path_kernels._draw_block` for the outcomes.
    """
    offset, size = slots[slot, OFFSET], slots[slot, POINTS]
    low, high, may_never = slots[slot, LOW], slots[slot, HIGH], slots[slot, MAY_NEVER]
    base = cumulated[offset + low]
    mass = cumulated[offset + high] - base
    if high - low == 1 and mass > 0.0 and not may_never:  # known: nothing to draw
        return 0, 0.0
    total = mass + (max(0.0, 1.0 - cumulated[offset + size]) if may_never else 0.0)
    n = 0
    if total > mass or mass <= 0.0:
        edges[0, 0], edges[0, 1] = mass, 0.0
        edges[0, 2] = size if may_never else size + 1
        n = 1
    for point in range(high - 1, low, -1):
        edges[n, 0], edges[n, 1], edges[n, 2] = cumulated[offset + point], base, point
        n += 1
    for k in range(n):
        heads[k] = _head_of(edges[k, 0], edges[k, 1], total)
    return n, total


@njit(cache=True)
def _passing(drawn, head, value, base, total, stream, path):  # type: ignore[no-untyped-def]
    """Return the paths of a block that pass an edge, ``head`` being its `_head_of`."""
    word = _at_least(drawn, 0, head) if head < HEADS else _ZERO
    if head > 0 and _equal(drawn, 0, head - 1) != _ZERO:
        for lane in range(LANES):
            if drawn[lane] == head - 1:
                number = np.float64(_mix(stream + _STEP * (np.uint64(path + lane) + _ONE)) >> _S11) * _SCALE
                if number * total + base >= value:
                    word |= _ONE << np.uint64(lane)
    return word


@njit(cache=True)
def _rounds_of(points, offset, outcomes, now, rounds, span):  # type: ignore[no-untyped-def]
    """Fill ``rounds[:, k]`` with what outcome ``k`` still occupies: (first, end), counted from ``now``; else (0, 0).

    ``outcomes`` is the range (first, end) of them. Returns ``span``, (low, high), made wide enough for their rounds.
    """
    low, high = span
    for k in range(outcomes[0], outcomes[1]):
        begins, last = points[0, offset + k], points[1, offset + k]
        rounds[0, k] = rounds[1, k] = 0
        if begins >= 0 and last >= now:
            rounds[0, k], rounds[1, k] = max(begins - now, 0), last - now + 1
            low, high = min(low, rounds[0, k]), max(high, rounds[1, k])
    return low, high


@njit(cache=True)
def _enter(turns, rounds, outcome, word):  # type: ignore[no-untyped-def]
    """Note that the paths of a word enter the rounds of an outcome, and leave behind them."""
    first, end = rounds[0, outcome], rounds[1, outcome]
    if first < end:
        turns[first] ^= word
        turns[end] ^= word


@njit(cache=True)
def _sweep(loads, row_tops, block, row, low, high, leaving, coming, width):  # type: ignore[no-untyped-def]
    """Move a job, round by round, from the rounds that `_enter` noted in ``leaving`` to those in ``coming``.

    All turns lie in ``low .. high``; they are none again afterwards.
    """
    window = loads.shape[1]
    before, after = _ZERO, _ZERO
    for ahead in range(low, high):
        before ^= leaving[ahead]
        after ^= coming[ahead]
        leaving[ahead] = coming[ahead] = _ZERO
        moved = before ^ after
        if moved != _ZERO:
            at = row + ahead
            if at >= window:
                at -= window
            offset = (block * window + at) * LANES
            if _shift(loads, offset, moved & after, moved & before, width, row_tops[at]) != _ZERO:
                for lane in range(LANES):
                    row_tops[at] = max(row_tops[at], np.int64(loads[block, at, lane]))
    leaving[high] = coming[high] = _ZERO


@njit(cache=True)
def draw_few_kernel(paths, jobs, now, n_paths, root, stamp, blocks, fresh):  # type: ignore[no-untyped-def]
    """Draw outcomes of ``jobs`` of at most `FEW` points on the paths of ``blocks[0] .. blocks[1] - 1``.

    ``paths`` are those of `path_kernels.Paths`. ``fresh``: on all of them, on which the jobs have no rounds yet; else
    where the outcome is no longer possible.
    """
    loads, row_tops, draws, _, _, slots, points, cumulated, _ = paths
    window = loads.shape[1]
    row, stride, last = now % window, draws.shape[1], draws.shape[0] - 1
    edges, heads, drawn = np.empty((FEW, 3)), np.empty(FEW, np.int64), np.empty(LANES, np.uint16)
    rounds = np.zeros((2, FEW + 2), np.int64)
    leaving, coming = np.zeros(window + 1, np.uint64), np.zeros(window + 1, np.uint64)
    for slot in jobs:
        size, width, may_never = slots[slot, POINTS], slots[slot, WIDTH], slots[slot, MAY_NEVER]
        possible, beyond = slots[slot, LOW], slots[slot, HIGH]
        stream = _stream(root, slots[slot, KEY], stamp)
        n_edges, total = _edges_of(slot, slots, cumulated, edges, heads)
        # Old outcomes may be any; of new ones those behind "never" and "outlived", and those that are possible.
        span = _rounds_of(points, slots[slot, OFFSET], (size, size + 2), now, rounds, (window, 0))
        known = (possible, beyond) if fresh else (0, size)
        low, high = _rounds_of(points, slots[slot, OFFSET], known, now, rounds, span)
        for block in range(blocks[0], blocks[1]):
            path = block * LANES
            at = min(slot, last) * stride + path  # a twin has one row, for all jobs in turn
            word = _ALL if path + LANES <= n_paths else (_ONE << np.uint64(n_paths - path)) - _ONE
            if not fresh:
                word &= ~_at_least(draws, at, possible) | _at_least(draws, at, beyond)
                if may_never:
                    word &= ~_equal(draws, at, size)
                if word == _ZERO:
                    continue
                for k in range(size + 2):
                    if rounds[0, k] < rounds[1, k] and not possible <= k < beyond:
                        _enter(leaving, rounds, k, _equal(draws, at, k) & word)
            if n_edges > 0 and heads[0] > 0:
                _fill_heads(stream, path, drawn)
            for k in range(n_edges):
                passing = word & _passing(drawn, heads[k], edges[k, 0], edges[k, 1], total, stream, path)
                outcome = int(edges[k, 2])
                _put(draws, at, passing, outcome)
                _enter(coming, rounds, outcome, passing)
                word &= ~passing
            if word != _ZERO:
                _put(draws, at, word, possible)
                _enter(coming, rounds, possible, word)
            if low < high:
                _sweep(loads, row_tops, block, row, low, high, leaving, coming, width)
