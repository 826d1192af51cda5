"""Fractional unit allocations: how long construction STAR takes, input checks and all, compilation aside."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harness import Row, benchmark, time_interleaved
from marketsched.relaxed_lp import fractional_unit_allocation

UNIT, LONGEST, ROUNDS = 8, 64, 10_000  # c_max, D_max, T


def _outcomes(n: int) -> list[NDArray[np.int64] | NDArray[np.float64]]:
    """Return first, last, width, weight and value of ``n`` random outcomes."""
    rng = np.random.default_rng(2)
    first, duration = rng.integers(1, ROUNDS, n), rng.integers(1, LONGEST + 1, n)
    return [first, first + duration - 1, rng.integers(1, UNIT + 1, n), 0.2 * rng.random(n), 10 * rng.random(n)]


@benchmark
def unit_allocation() -> Iterator[Row]:
    """Pack 10^5 and 10^6 outcomes, check the packing, widen it; one sort by two keys to compare with."""
    for n, bound in ((100_000, 1.0), (1_000_000, None)):
        arrays = _outcomes(n)
        pack = partial(fractional_unit_allocation, *arrays, max_concurrency=UNIT, max_duration=LONGEST)
        bundles = pack()
        room, horizon = bundles.max_overlap + 5, ROUNDS + LONGEST
        candidates: list[Callable[[], Any]] = [
            pack,
            bundles.verify,
            partial(bundles.widened, room, horizon),
            partial(np.lexsort, (arrays[1], arrays[0])),
        ]
        packing, checking, widening, sorting = time_interleaved(candidates, rounds=3)
        yield Row(f"unit_allocation.{n}.pack_s", packing, "s", at_most=bound)
        yield Row(f"unit_allocation.{n}.pack_over_lexsort", packing / sorting, "x")
        yield Row(f"unit_allocation.{n}.verify_s", checking, "s")
        yield Row(f"unit_allocation.{n}.widen_s", widening, "s")
