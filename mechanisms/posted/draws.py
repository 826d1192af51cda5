"""Random draws of sample paths: keys of their streams, and guide tables to the points of a law."""

from __future__ import annotations

import numpy as np
from numba import njit

# Kinds of draw beside SETTLE and ARRIVE, so that no two draws of one job in one round share numbers.
SUBMIT, REFRESH, FRESH = 1, 4, 5


def root_key(rng: np.random.Generator) -> np.uint64:
    """Draw the root key of the counter-based generator."""
    return np.uint64(rng.integers(0, 2**64, dtype=np.uint64))


def stamp_of(now: int, kind: int, version: int = 0) -> int:
    """Code a round, a kind of draw, and a version of it (below 2**20) as one integer."""
    return (now << 23) | (version << 3) | kind


@njit(cache=True)
def law_kernel(firsts, lasts, probabilities, points, cumulated, guides, offset, guide, buckets):  # type: ignore[no-untyped-def]
    """Write a law behind ``offset`` and ``guide``: its points' rounds, running sums, and the point in each bucket.

    Two more points follow, which do not run. Returns the most points that begin in one bucket.
    """
    size = firsts.size
    cumulated[offset] = 0.0
    for k in range(size):
        points[0, offset + k], points[1, offset + k] = firsts[k], lasts[k]
        cumulated[offset + k + 1] = cumulated[offset + k] + probabilities[k]
    for k in range(size, size + 2):
        points[0, offset + k] = points[1, offset + k] = -1
    point, most = 0, 0
    for bucket in range(buckets):
        before = point
        while point < size - 1 and cumulated[offset + point + 1] <= bucket / buckets:
            point += 1
        most = max(most, point - before)
        guides[guide + bucket] = point
    return max(most, size - 1 - point)
