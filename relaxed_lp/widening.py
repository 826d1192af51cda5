"""Intervals that grow into free rounds: a sweep over the rounds, with those that still grow in a heap."""

from __future__ import annotations

from heapq import heappop, heappush

import numpy as np
from numba import njit
from numpy.typing import NDArray

Ints = NDArray[np.int64]


def stretched(last: Ints, room: Ints, order: Ints) -> Ints:
    """Return how far intervals may grow to the right.

    Each grows from round to round while there is room; where it does not suffice for all that still
    grow, those that stand first in ``order`` go on, and the others stop for good.

    Parameters
    ----------
    last : ndarray of int, shape (n,)
        Last round of each interval, in [1, n_rounds].
    room : ndarray of int, shape (n_rounds,)
        How many intervals may be added over each round, >= 0; round 1 first.
    order : ndarray of int, shape (n,)
        A permutation of 0, ..., n - 1.

    Returns
    -------
    ndarray of int, shape (n,)
        New last rounds. Cost O(n log n + n_rounds).
    """
    rank = np.empty(order.size, dtype=np.int64)
    rank[order] = np.arange(order.size)
    reach = np.empty(last.size, dtype=np.int64)
    _stretch_kernel(last, np.argsort(last, kind="stable"), order, rank, np.ascontiguousarray(room), reach)
    return reach


@njit(cache=True)
def _stretch_kernel(last, by_last, order, rank, room, reach):  # type: ignore[no-untyped-def]
    """Fill ``reach``; ``by_last`` sorts the intervals, ``rank`` is the inverse of ``order``."""
    growing = [-rank[0]]  # negated: the highest rank stops first
    growing.pop()  # numba knows now what the list holds
    k = 0
    for t in range(1, room.size + 1):
        while k < last.size and last[by_last[k]] < t:
            heappush(growing, -rank[by_last[k]])
            k += 1
        while len(growing) > room[t - 1]:
            reach[order[-heappop(growing)]] = t - 1
    for key in growing:
        reach[order[-key]] = room.size
    for i in range(k, last.size):
        reach[by_last[i]] = room.size
