"""Gains of two owners of a finite mechanism from joint reports."""

from __future__ import annotations

from itertools import combinations, product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from marketsched.finite.findings import PairLie
from marketsched.finite.utilities import ScaledUtilities
from marketsched.mechanisms.finite.exact import Number, as_number
from marketsched.mechanisms.memory import check_memory


def best_pair_lies(scaled: ScaledUtilities) -> tuple[Number, PairLie | None, Number, PairLie | None]:
    """Return the joint lie of two with the largest total gain, and the one whose smaller gain is largest.

    Every pair, their types, their reports and the profile of all others are gone through. Gains that are not
    above 0 are returned as 0 and None.
    """
    most: tuple[Any, PairLie | None] = (0, None)
    both: tuple[Any, PairLie | None] = (0, None)
    for pair in combinations(range(len(scaled.shape)), 2):
        first, second = _arranged(scaled, pair)
        for types in product(range(scaled.shape[pair[0]]), range(scaled.shape[pair[1]])):
            one = first[types[0]] - first[types[0], types[0], types[1]]
            other = second[types[1]] - second[types[1], types[0], types[1]]
            for found, gains in ((0, one + other), (1, np.minimum(one, other))):
                largest = gains.max()
                if largest > (most, both)[found][0]:
                    place = np.unravel_index(int(np.argmax(gains)), gains.shape)
                    lie = _pair_lie(scaled, pair, types, place, (one[place], other[place]))
                    most, both = ((largest, lie), both) if found == 0 else (most, (largest, lie))
    return as_number(most[0], scaled.denominator), most[1], as_number(both[0], scaled.denominator), both[1]


def _arranged(scaled: ScaledUtilities, pair: tuple[int, int]) -> list[NDArray[Any]]:
    """Return for both owners utilities of shape (its types, reports of one, reports of the other, others)."""
    shape, n = scaled.shape, len(scaled.payments)
    check_memory(
        f"pairs of owners with {shape[pair[0]]} and {shape[pair[1]]} types at {n} profiles",
        8.0 * n * (shape[pair[0]] + shape[pair[1]] + 4),
        "pairs=False, or fewer types",
    )
    arranged = []
    for owner in pair:
        m = shape[owner]
        rest = [size for k, size in enumerate(shape) if k != owner]
        utility = np.moveaxis(scaled.of_owner(owner).reshape(m, m, *rest), 1, owner + 1)
        utility = np.moveaxis(utility, (pair[0] + 1, pair[1] + 1), (1, 2))
        arranged.append(np.ascontiguousarray(utility).reshape(m, shape[pair[0]], shape[pair[1]], -1))
    return arranged


def _pair_lie(
    scaled: ScaledUtilities, pair: tuple[int, int], types: tuple[int, int], place: Any, gains: tuple[Any, Any]
) -> PairLie:
    known = scaled.mechanism.types
    others = [k for k in range(len(known)) if k not in pair]
    at = np.unravel_index(int(place[2]), [len(known[k]) for k in others]) if others else ()
    return PairLie(
        pair,
        (known[pair[0]][types[0]], known[pair[1]][types[1]]),
        (known[pair[0]][int(place[0])], known[pair[1]][int(place[1])]),
        tuple(known[k][int(i)] for k, i in zip(others, at, strict=True)),
        (as_number(gains[0], scaled.denominator), as_number(gains[1], scaled.denominator)),
    )
