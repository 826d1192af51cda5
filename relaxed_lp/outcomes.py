"""Outcomes of the fractional problem as they are packed: runs of rounds, with width, weight and value."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from marketsched.mechanisms.arrays import float_array, whole_array
from marketsched.mechanisms.errors import InvalidParameterError

MAX_BUNDLES = 10_000_000  # what all weights together may fill


class Outcomes(NamedTuple):
    """Packed outcomes; arrays of shape (n_outcomes,)."""

    first: NDArray[np.int64]  # first round
    last: NDArray[np.int64]  # last round, included
    width: NDArray[np.int64]  # c_w, nodes
    weight: NDArray[np.float64]  # x_w; 0: in no bundle
    value: NDArray[np.float64]  # v_w, credits per unit of weight


def checked_outcomes(
    first: ArrayLike,
    last: ArrayLike,
    width: ArrayLike,
    weight: ArrayLike,
    value: ArrayLike,
    max_concurrency: int,
    max_duration: int,
) -> Outcomes:
    """Return copies of the arrays; raise an error if they are illegal."""
    outcomes = Outcomes(
        whole_array("first", first, lowest=1),
        whole_array("last", last, lowest=1),
        whole_array("width", width, lowest=1, highest=max_concurrency),
        float_array("weight", weight, (None,), lowest=0.0).copy(),
        float_array("value", value, (None,), lowest=0.0).copy(),
    )
    begins, ends = outcomes.first, outcomes.last
    if not begins.size:
        raise InvalidParameterError("is empty", place="first", legal="at least one outcome")
    for name, array in zip(Outcomes._fields, outcomes, strict=True):
        if array.size != begins.size:
            raise InvalidParameterError(f"{name} has {array.size} entries: expected {begins.size}, as many as first")
    wrong = np.flatnonzero((ends < begins) | (ends - begins >= max_duration))
    if wrong.size:
        i = int(wrong[0])
        raise InvalidParameterError(
            f"last[{i}] = {ends[i]} with first[{i}] = {begins[i]}: expected a round in [{begins[i]}, "
            f"{begins[i] + max_duration - 1}], as max_duration = {max_duration}"
        )
    if not (outcomes.weight > 0).any():
        raise InvalidParameterError(f"weight: none of {begins.size} is positive: expected at least one outcome")
    with np.errstate(over="ignore"):
        filled = float((outcomes.width * outcomes.weight).sum()) / max_concurrency
        total = float((outcomes.value * outcomes.weight).sum())
    if filled > MAX_BUNDLES:
        raise InvalidParameterError(
            f"width * weight adds up to {filled:g} bundles of max_concurrency = {max_concurrency} nodes: expected at "
            f"most {MAX_BUNDLES}"
        )
    if not np.isfinite(total):
        raise InvalidParameterError(f"value * weight adds up to {total}: expected a finite number")
    return outcomes
