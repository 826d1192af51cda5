r"""Construction STAR: weighted intervals, filled into bundles of one unit each.

Intervals are grouped by their centre, the round in them divisible by the highest power of two. All
members of such a star contain its centre p, so any of them together cover consecutive rounds. Let
:math:`F^l(w)` be the weight of the members that reach at least as far left as w, equals and w itself
included, and :math:`F^r(w)` of those that reach at least as far right. Sorted by
:math:`\min(F^l, F^r)`, then by first round, last round and number, members fill bundles one after
the other, each to one unit; who overflows is split.

Who reaches a round t on either side of p then stands at the front: if these weigh v, the members of
rank up to v weigh at most 2 v, and lie in the first :math:`\lceil 2v \rceil` bundles of the star.

**Rounding.** Weights are added up in twice the usual precision. What is left of rounding is far below
both tolerances, and these are far below a unit: ranks are rounded to 2^-36 of a unit, so that sums
which should be equal are; and a member that ends within `FILL_TOLERANCE` of a full bundle ends with
it, or begins the next one, so that there are no slivers. Bundles may thus weigh up to 1 + 2e-9
units. Their ends are counted from the first bundle of the star, not from each other, so nothing
accumulates, and members that weigh P in all never lie in more than the first ceil(P) bundles.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

FILL_TOLERANCE = 1e-9  # units

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


def star_bundles(first: Ints, last: Ints, width: Ints, weight: Floats, unit: int) -> tuple[Ints, Ints, Floats]:
    """Return who is in which bundle.

    Parameters
    ----------
    first, last : ndarray of int, shape (n,)
        Intervals, both ends included, from 1 on.
    width : ndarray of int, shape (n,)
        In [1, 2^26].
    weight : ndarray of float, shape (n,)
        Positive; an interval weighs ``width * weight``, all together less than 2^27 units.
    unit : int
        Size of a bundle, in [1, 2^26].

    Returns
    -------
    bundle, member : ndarray of int, shape (n_members,)
        Bundles are numbered by centre, then in the order they were filled, and are sorted.
    share : ndarray of float, shape (n_members,)
        The share of the member's weight, in (0, 1].
    """
    centres = _centres(first, last)
    by_first = np.lexsort((last, first, centres))  # stable: equals by number
    centres, width, weight = centres[by_first], width[by_first], weight[by_first]
    first, last = first[by_first], last[by_first]
    high, low = _products(width, weight)
    left, right = np.empty(first.size, dtype=np.int64), np.empty(first.size, dtype=np.int64)
    _rank_kernel(centres, first, high, low, float(unit), left)
    by_last = np.lexsort((-last, centres))
    _rank_kernel(centres, last[by_last], high[by_last], low[by_last], float(unit), right)
    rank = left
    rank[by_last] = np.minimum(left[by_last], right)
    by_rank = np.lexsort((rank, centres))  # stable: equals by first, last, number
    bundle, member, share = _filled(centres[by_rank], high[by_rank], low[by_rank], unit)
    return bundle, by_first[by_rank[member]], share


def _centres(first: Ints, last: Ints) -> Ints:
    """Return the multiple of the highest power of two in each interval."""
    below = (first - 1) ^ last  # that power is the highest bit in which they differ
    for shift in (1, 2, 4, 8, 16, 32):
        below |= below >> shift
    return last & ~(below >> 1)


def _products(width: Ints, weight: Floats) -> tuple[Floats, Floats]:
    """Return ``width * weight`` exactly, as a sum of two floats: the product, and its rounding error."""
    product = width * weight
    shifted = weight * (2.0**27 + 1)
    upper = shifted - (shifted - weight)  # 26 bits: times a width it is exact
    return product, (width * upper - product) + width * (weight - upper)


def _filled(centres: Ints, high: Floats, low: Floats, unit: int) -> tuple[Ints, Ints, Floats]:
    """Fill bundles in the order given."""
    begin, end = np.empty(centres.size, dtype=np.int64), np.empty(centres.size, dtype=np.int64)
    head, tail = np.empty(centres.size), np.empty(centres.size)
    _fill_kernel(centres, high, low, float(unit), FILL_TOLERANCE, begin, end, head, tail)
    parts = end - begin + 1
    last_part = np.cumsum(parts) - 1
    first_part = last_part - parts + 1
    between = np.divide(unit, high, out=np.ones(high.size), where=parts > 2)  # the share that a whole bundle holds
    share = np.repeat(between, parts)
    share[first_part] = head
    share[last_part] = tail
    bundle = np.arange(share.size) - np.repeat(first_part - begin, parts)
    return bundle, np.repeat(np.arange(centres.size), parts), share


@njit(cache=True)
def _rank_kernel(centres, keys, high, low, unit, ranks):  # type: ignore[no-untyped-def]
    """Fill ``ranks`` with the weight up to each member of a star, equal keys included, in 2^-36 units.

    Members are sorted by centre, then by key.
    """
    upper, lower = 0.0, 0.0
    i = 0
    while i < centres.size:
        if i == 0 or centres[i] != centres[i - 1]:
            upper, lower = 0.0, 0.0
        j = i
        while j < centres.size and centres[j] == centres[i] and keys[j] == keys[i]:
            upper, lower = _plus(upper, lower, high[j], low[j])
            j += 1
        whole, rest = _in_units(upper, lower, unit)
        ranks[i:j] = whole * 68719476736 + int(np.rint(rest / unit * 68719476736.0))
        i = j


@njit(cache=True)
def _fill_kernel(centres, high, low, unit, tolerance, begin, end, head, tail):  # type: ignore[no-untyped-def]
    """Fill bundles in the order given, star by star.

    ``begin`` and ``end`` receive the first and the last bundle of each member, ``head`` and ``tail``
    the shares of it that go there.
    """
    n_bundles, base = 0, 0
    upper, lower = 0.0, 0.0
    whole, rest = 0, 0.0
    for i in range(centres.size):
        if i == 0 or centres[i] != centres[i - 1]:
            base, upper, lower, whole, rest = n_bundles, 0.0, 0.0, 0, 0.0
        whole_before, rest_before = whole, rest
        upper, lower = _plus(upper, lower, high[i], low[i])
        whole, rest = _in_units(upper, lower, unit)
        # The end decides: up to here the weight is P, and no more than ceil(P) bundles are used.
        last = whole if rest > unit * tolerance else max(whole - 1, 0)
        first = whole_before if rest_before < unit * (1.0 - tolerance) else whole_before + 1
        first = min(first, last)
        begin[i], end[i] = base + first, base + last
        head[i], tail[i] = 1.0, 1.0
        if first < last:
            head[i] = ((first + 1 - whole_before) * unit - rest_before) / high[i]
            tail[i] = ((whole - last) * unit + rest) / high[i]
        n_bundles = base + last + 1


@njit(cache=True)
def _plus(upper, lower, high, low):  # type: ignore[no-untyped-def]
    """Return the sum of two numbers of twice the usual precision, each the sum of two floats."""
    total = upper + high
    added = total - upper
    lower += (upper - (total - added)) + (high - added) + low
    upper = total + lower
    return upper, lower - (upper - total)


@njit(cache=True)
def _in_units(upper, lower, unit):  # type: ignore[no-untyped-def]
    """Return how many whole units ``upper + lower`` is, and the rest, in [0, unit)."""
    whole = int(np.floor(upper / unit))
    rest = (upper - whole * unit) + lower
    if rest < 0.0:
        return whole - 1, rest + unit
    if rest >= unit:
        return whole + 1, rest - unit
    return whole, rest
