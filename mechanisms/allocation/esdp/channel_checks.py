"""The check of whole-number arrays over channels, made once at the public edge."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from marketsched.mechanisms.checks import check_shape
from marketsched.mechanisms.errors import InvalidParameterError

LARGEST = 2**53
"""Whole numbers up to here are exact as float64."""


def whole_array(name: str, x: ArrayLike, shape: tuple[int | None, ...]) -> NDArray[np.int64]:
    """Return ``x`` as an int64 array of the caller's own, of ``shape`` (None: any size).

    Raises
    ------
    InvalidParameterError
        If the shape is another one, or an entry is not a whole number in [0, 2**53]; 2.0 counts as 2,
        True as nothing.

    Examples
    --------
    >>> whole_array("capacities", [2.0, 3], (None,))
    array([2, 3])
    """
    try:
        given = np.asarray(x)
    except ValueError as problem:  # rows of different length
        raise InvalidParameterError(f"{name} is not an array ({problem}): expected whole numbers") from problem
    if given.dtype.kind not in "iuf":
        raise InvalidParameterError(f"{name} has entries of type {given.dtype}: expected whole numbers")
    check_shape(name, given.shape, shape)
    bad = np.argwhere(~((given >= 0) & (given <= LARGEST) & (given == np.floor(given))))
    if bad.size:
        place = [int(i) for i in bad[0]]
        raise InvalidParameterError(f"{name}{place} = {given[tuple(place)]}: expected a whole number in [0, 2**53]")
    return np.array(given, dtype=np.int64, order="C")
