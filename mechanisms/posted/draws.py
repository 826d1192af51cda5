"""What the draws of sample paths are made with: keys of their streams, and guide tables to the points of a law."""

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
def _guide_kernel(cumulated, guide):  # type: ignore[no-untyped-def]
    """Fill ``guide[b]`` with the point in which the mass ``b / guide.size`` falls; return the most points in one."""
    point, most = 0, 0
    for bucket in range(guide.size):
        before = point
        while point < cumulated.size - 2 and cumulated[point + 1] <= bucket / guide.size:
            point += 1
        most = max(most, point - before)
        guide[bucket] = point
    return max(most, cumulated.size - 2 - point)
