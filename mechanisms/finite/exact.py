"""Numbers of finite mechanisms: exact where they are given exactly, floating point otherwise.

A table of whole numbers and fractions stays one: it is kept as integers over one common denominator, in int64
where no sum can overflow and as Python integers otherwise. One float in it makes all of it floating point.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from numbers import Rational
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from marketsched.mechanisms.errors import InvalidParameterError

Number: TypeAlias = int | Fraction | float
LARGEST_INT = 2**53  # entries of an int64 array as read
LARGEST_SUM = 2**60  # what `over_one_denominator` lets sums of int64 entries reach: eight of them still fit
LEGAL = "a finite number: int, fractions.Fraction or float"


def number_array(place: str, x: Any) -> NDArray[Any]:
    """Return a copy of ``x`` as an array of int64, of exact Python numbers (dtype object), or of float64.

    Truth values count as 0 and 1. InvalidParameterError, which names the ``place``, if it is no array, or an entry is
    not a finite number.

    Examples
    --------
    >>> number_array("x", [2**70, -1]).dtype, number_array("x", [1, 2]).dtype, number_array("x", [1, 0.5]).dtype
    (dtype('O'), dtype('int64'), dtype('float64'))
    """
    given = x if isinstance(x, np.ndarray) else _objects(place, x)
    if given.dtype.kind in "bi" and (not given.size or np.abs(given).max() <= LARGEST_INT):
        return np.array(given, dtype=np.int64, order="C")
    if given.dtype.kind == "f":
        return _finite(place, np.array(given, dtype=np.float64, order="C"))
    if given.dtype.kind not in "biuO":
        raise InvalidParameterError(f"has entries of type {given.dtype}", place=place, legal=LEGAL)
    return _read(place, given)


def _objects(place: str, x: Any) -> NDArray[Any]:
    """Return nested sequences as an array of their own objects: NumPy would round large integers."""
    try:
        return np.array(x, dtype=object)
    except ValueError:
        raise InvalidParameterError("has rows of different shapes", place=place, legal="an array of numbers") from None


def _finite(place: str, array: NDArray[np.float64]) -> NDArray[np.float64]:
    if not np.isfinite(array).all():
        where = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
        raise InvalidParameterError(place=f"{place}{list(where)}", value=float(array[where]), legal=LEGAL)
    return array


def _read(place: str, given: NDArray[Any]) -> NDArray[Any]:
    read: list[Number] = []
    for position, entry in enumerate(given.ravel().tolist()):
        if isinstance(entry, (bool, np.bool_, int, np.integer)):
            read.append(int(entry))
        elif isinstance(entry, Rational):
            read.append(Fraction(entry))
        elif isinstance(entry, (float, np.floating)) and math.isfinite(entry):
            read.append(float(entry))
        elif isinstance(entry, (list, tuple, np.ndarray)):
            raise InvalidParameterError("has rows of different shapes", place=place, legal="an array of numbers")
        else:
            where = [int(i) for i in np.unravel_index(position, given.shape)] if given.shape else ""
            raise InvalidParameterError(place=f"{place}{where}", value=entry, legal=LEGAL)
    if any(isinstance(number, float) for number in read):
        try:
            return np.array([float(number) for number in read]).reshape(given.shape)
        except OverflowError:
            raise InvalidParameterError(
                "mixes floats with a number that no float can hold", place=place, legal=LEGAL
            ) from None
    whole = all(isinstance(number, int) and abs(number) <= LARGEST_INT for number in read)
    array = np.empty(len(read), dtype=np.int64 if whole else object)
    array[:] = read
    return array.reshape(given.shape)


def is_exact(*arrays: NDArray[Any]) -> bool:
    """Tell whether no array is floating point."""
    return all(array.dtype.kind != "f" for array in arrays)


def as_floats(array: NDArray[Any]) -> NDArray[np.float64]:
    """Return an array of numbers of any kind as float64."""
    return np.asarray(array, dtype=np.float64)


def over_one_denominator(arrays: Sequence[NDArray[Any]], terms: int) -> tuple[list[NDArray[Any]], int]:
    """Return arrays of `number_array` as integers over one denominator: ``array = returned / denominator``.

    int64; Python integers where a sum of ``terms`` entries could overflow; float64 over 1 if one array is.
    """
    if not is_exact(*arrays):
        return [as_floats(array) for array in arrays], 1
    objects = [array for array in arrays if array.dtype == object]
    denominator = math.lcm(*(Fraction(x).denominator for array in objects for x in array.ravel().tolist()))
    largest = max(1, *(math.ceil(abs(array).max()) for array in arrays if array.size))
    if largest * denominator * terms <= LARGEST_SUM:
        return [_times(array, denominator).astype(np.int64) for array in arrays], denominator
    return [_times(array.astype(object), denominator) for array in arrays], denominator


def _times(array: NDArray[Any], denominator: int) -> NDArray[Any]:
    if array.dtype != object:
        return array * denominator
    whole = np.empty(array.size, dtype=object)
    whole[:] = [int(x * denominator) for x in array.ravel().tolist()]
    return whole.reshape(array.shape)


def as_number(x: Any, denominator: int = 1) -> Number:
    """Return ``x / denominator``: an int where it is whole, else a Fraction; a float stays one.

    Examples
    --------
    >>> as_number(26, 18), as_number(4, 2), as_number(0.5)
    (Fraction(13, 9), 2, 0.5)
    """
    if isinstance(x, (float, np.floating)):
        return float(x) / denominator
    ratio = Fraction(x if isinstance(x, Fraction) else int(x)) / denominator
    return ratio.numerator if ratio.denominator == 1 else ratio
