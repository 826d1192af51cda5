"""Outcomes of the fractional problem as they are packed: runs of rounds, with width, weight and value."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from marketsched.mechanisms.errors import InvalidParameterError

MAX_BUNDLES = 10_000_000  # what all weights together may fill
MAX_ROUND = 2**53  # whole numbers are exact up to here


class Outcomes(NamedTuple):
    """What was packed; arrays of shape (n_outcomes,)."""

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
    """Return our own copies of the arrays, or say what is wrong."""
    begins = _as_whole("first", first, MAX_ROUND)
    ends = _as_whole("last", last, MAX_ROUND)
    outcomes = Outcomes(
        begins,
        ends,
        _as_whole("width", width, max_concurrency),
        _as_floats("weight", weight),
        _as_floats("value", value),
    )
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


def _as_floats(name: str, given: ArrayLike) -> NDArray[np.float64]:
    """Return our own copy of ``given``, shape (n,), finite and >= 0."""
    numbers = _as_numbers(name, given).astype(np.float64)
    wrong = np.flatnonzero(~(np.isfinite(numbers) & (numbers >= 0)))
    if wrong.size:
        raise InvalidParameterError(place=f"{name}[{wrong[0]}]", value=numbers[wrong[0]], legal="a finite number >= 0")
    return numbers


def _as_whole(name: str, given: ArrayLike, highest: int) -> NDArray[np.int64]:
    """Return our own copy of ``given``, shape (n,), whole numbers in [1, highest]."""
    numbers = _as_numbers(name, given)
    wrong = np.flatnonzero(~((numbers >= 1) & (numbers <= highest) & (np.floor(numbers) == numbers)))
    if wrong.size:
        raise InvalidParameterError(
            place=f"{name}[{wrong[0]}]", value=numbers[wrong[0]], legal=f"a whole number in [1, {highest}]"
        )
    return numbers.astype(np.int64)


def _as_numbers(name: str, given: ArrayLike) -> NDArray[Any]:
    """Return ``given`` as an array of shape (n,) of numbers."""
    try:
        numbers = np.asarray(given)
    except ValueError:
        raise InvalidParameterError(f"{name} is ragged: expected an array of shape (n,)") from None
    if numbers.ndim != 1:
        raise InvalidParameterError(f"{name} has shape {numbers.shape}: expected (n,)")
    if not numbers.size:
        raise InvalidParameterError(f"{name} is empty: expected at least one outcome")
    if numbers.dtype.kind not in "iuf":
        raise InvalidParameterError(f"{name} has entries of type {numbers.dtype}: expected numbers")
    return numbers
