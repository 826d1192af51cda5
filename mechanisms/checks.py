"""Checks of numbers and arrays, made once at the public edge: what is legal is said in one clear line.

Reports raise `InvalidReportError`, parameters `InvalidParameterError`; the rule for what counts as a
number is the same for both: Python's and NumPy's own, never a bool, never text.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable
from functools import lru_cache
from typing import Any, TypeGuard

import numpy as np
from numpy.typing import ArrayLike, NDArray

from marketsched.mechanisms.errors import InvalidParameterError, InvalidReportError

LARGEST = 2**53  # up to here, floats are exact for whole numbers; int64 has room for sums of them
_Error = type[InvalidReportError] | type[InvalidParameterError]


def whole_number(
    name: str, x: object, lowest: int, highest: int | None = None, *, error: _Error = InvalidReportError
) -> int:
    """Return ``x`` as an int in ``[lowest, highest]``; ``5.0`` counts, ``True`` does not.

    Parameters
    ----------
    name : str
        What to call it in the message.
    x : object
        What was given.
    lowest, highest : int
        The legal range; no ``highest``: up to 2**53, what every array and table can hold.
    error : type
        What to raise; see `whole_parameter`.

    Raises
    ------
    InvalidReportError
        Or ``error``: if ``x`` is not such a number.

    Examples
    --------
    >>> whole_number("birth", 3.0, 1)
    3
    """
    top = LARGEST if highest is None else highest
    if type(x) is int and lowest <= x <= top:  # as nearly always
        return x
    if not (_is_number(x) and lowest <= x <= top and int(x) == x):  # NaN is in no range
        too_large = _is_number(x) and top < x < math.inf
        ends = f">= {lowest}" if highest is None and not too_large else f"in [{lowest}, {top}]"
        raise error(place=name, value=x, legal=f"a whole number {ends}")
    return int(x)


def whole_parameter(name: str, x: object, lowest: int, highest: int | None = None) -> int:
    """Return ``x`` as `whole_number` does; raise ``InvalidParameterError`` otherwise."""
    return whole_number(name, x, lowest, highest, error=InvalidParameterError)


def finite_number(
    name: str, x: object, interval: str = "[0, inf)", *, hint: str = "", error: _Error = InvalidReportError
) -> float:
    """Return ``x`` as a finite float in ``interval``.

    Parameters
    ----------
    name : str
        What to call it in the message.
    x : object
        What was given.
    interval : str
        The legal range, as in ``"[0, 1)"`` or ``"(0, inf)"``.
    hint : str
        What else is legal, for the message.
    error : type
        What to raise; see `finite_parameter`.

    Raises
    ------
    InvalidReportError
        Or ``error``: if ``x`` is not such a number.

    Examples
    --------
    >>> finite_number("value", 8, "[0, 10]")
    8.0
    """
    low, high, legal = _read(interval)
    if type(x) is float and low < x < high and x != math.inf:  # as nearly always
        return x
    inside = _is_number(x) and low <= x <= high and _has_float(x)
    if not inside or (x == low and interval[0] == "(") or (x == high and interval[-1] == ")"):
        raise error(place=name, value=x, legal=legal + hint)
    return float(x)  # type: ignore[arg-type]


def finite_parameter(name: str, x: object, interval: str = "[0, inf)", *, hint: str = "") -> float:
    """Return ``x`` as `finite_number` does; raise ``InvalidParameterError`` otherwise."""
    return finite_number(name, x, interval, hint=hint, error=InvalidParameterError)


def _is_number(x: object) -> TypeGuard[Any]:
    return isinstance(x, (int, float, np.integer, np.floating)) and not isinstance(x, bool)


def _has_float(x: Any) -> bool:
    """Tell whether ``x`` is finite as a float, too; an int may have any number of digits."""
    return abs(x) <= sys.float_info.max if isinstance(x, int) else math.isfinite(x)


@lru_cache(maxsize=64)
def _read(interval: str) -> tuple[float, float, str]:
    """Return both ends of an interval, and how a message says it."""
    low, high = (float(end) for end in interval.strip("[]()").split(","))
    if math.isinf(high) and math.isfinite(low):
        return low, high, f"a finite number {'>' if interval[0] == '(' else '>='} {low:g}"
    return low, high, f"a finite number in {interval}"


def listed(name: str, expected: str, given: Any) -> list[Any]:
    """Return what can be gone through as a list, or raise InvalidParameterError: ``expected`` is what it lists."""
    try:
        return list(given)
    except TypeError:
        raise InvalidParameterError(place=name, value=given, legal=expected) from None


def is_hashable(x: object) -> bool:
    """Tell whether ``x`` can be looked up: a tuple that holds a list is ``Hashable``, and still cannot."""
    try:
        hash(x)
    except TypeError:
        return False
    return True


def one_of(name: str, x: str, legal: Iterable[str]) -> str:
    """Return ``x`` if it is one of the ``legal`` words.

    Raises
    ------
    InvalidParameterError
        Otherwise.
    """
    words = tuple(legal)
    if x not in words:
        raise InvalidParameterError(place=name, value=x, legal=f"one of {', '.join(words)}")
    return x


def float_array(
    name: str, x: ArrayLike, shape: tuple[int | None, ...], *, lowest: float | None = None, highest: float | None = None
) -> NDArray[np.float64]:
    """Return ``x`` as C-ordered float64 of ``shape``, or say what is wrong.

    Parameters
    ----------
    name : str
        What to call it in the message.
    x : array_like of float
        What was given; never changed, and not copied if it is such an array already.
    shape : tuple of int or None
        The legal shape; None stands for any size.
    lowest, highest : float
        Ends of the legal range of every entry; None, no end.

    Raises
    ------
    InvalidParameterError
        If ``x`` is not numeric, has another shape, or an entry is not finite or out of range.

    Examples
    --------
    >>> float_array("capacities", [[1, 2]], (None, 2), lowest=0.0)
    array([[1., 2.]])
    """
    raw = _numeric(name, x, "a numeric array")
    array = np.ascontiguousarray(raw, dtype=np.float64).reshape(raw.shape)
    check_shape(name, array.shape, shape)
    legal = np.isfinite(array)
    if lowest is not None:
        legal &= array >= lowest
    if highest is not None:
        legal &= array <= highest
    if not legal.all():
        place = tuple(int(i) for i in np.argwhere(~legal)[0])
        where = f"{name}{list(place)}" if place else name
        raise InvalidParameterError(place=where, value=float(array[place]), legal=_range(lowest, highest))
    return array


def bool_array(name: str, x: ArrayLike, shape: tuple[int | None, ...]) -> NDArray[np.bool_]:
    """Return ``x`` as C-ordered bool of ``shape``; whole 0 and 1 count, anything else raises.

    Raises
    ------
    InvalidParameterError
        If the shape is another one, or an entry is neither true nor false.
    """
    raw = _numeric(name, x, "an array of true and false")
    check_shape(name, raw.shape, shape)
    if raw.dtype != np.bool_:
        odd = np.argwhere((raw != 0) & (raw != 1))
        if odd.size:
            place = tuple(int(i) for i in odd[0])
            raise InvalidParameterError(place=f"{name}{list(place)}", value=raw[place].item(), legal="true or false")
    return np.ascontiguousarray(raw, dtype=np.bool_)


def count_array(name: str, x: ArrayLike, shape: int | tuple[int | None, ...]) -> NDArray[np.int64]:
    """Return ``x`` as int64 of ``shape`` (a size: one dimension), entries >= 0; 1.0 and True count as 1.

    Raises
    ------
    InvalidParameterError
        If the shape is another one, or an entry is negative, not whole, or not a number.

    Examples
    --------
    >>> count_array("arrivals", [True, False], 2)
    array([1, 0])
    """
    raw = _numeric(name, x, "an array of counts")
    check_shape(name, raw.shape, (shape,) if isinstance(shape, int) else shape)
    return _whole_entries(name, raw, 0, LARGEST, "a whole number >= 0")


def whole_array(
    name: str, x: ArrayLike, shape: tuple[int | None, ...] = (None,), lowest: int = 0, highest: int = LARGEST
) -> NDArray[np.int64]:
    """Return a C-ordered copy of ``x`` as int64 of ``shape``, entries in ``[lowest, highest]``; truth values are none.

    Raises
    ------
    InvalidParameterError
        If the shape is another one, or an entry is out of range or not a whole number; 2.0 counts as 2.

    Examples
    --------
    >>> whole_array("capacities", [2.0, 3])
    array([2, 3])
    """
    raw = _numeric(name, x, "an array of whole numbers", kinds="iuf")
    check_shape(name, raw.shape, shape)
    return _whole_entries(name, raw, lowest, highest, f"a whole number in [{lowest}, {highest}]").copy()


def _whole_entries(name: str, raw: NDArray[Any], lowest: int, highest: int, legal: str) -> NDArray[np.int64]:
    inside = np.asarray((raw >= lowest) & (raw <= highest))  # NaN is in no range
    if raw.dtype.kind == "f":
        inside &= np.floor(raw) == raw
    if not inside.all():
        place = [int(i) for i in np.argwhere(~inside)[0]]
        raise InvalidParameterError(place=f"{name}{place}", value=raw[tuple(place)].item(), legal=legal)
    return np.ascontiguousarray(raw, dtype=np.int64)


def check_shape(name: str, got: tuple[int, ...], expected: tuple[int | None, ...]) -> None:
    """Raise ``InvalidParameterError`` if a shape is not the expected one (None: any size)."""
    if len(got) != len(expected) or any(want not in (None, size) for want, size in zip(expected, got, strict=True)):
        sizes = ", ".join("any" if size is None else str(size) for size in expected)
        shape = f"({sizes},)" if len(expected) == 1 else f"({sizes})"
        raise InvalidParameterError(f"has shape {got}", place=name, legal=shape)


def read_only(array: NDArray[np.generic]) -> None:
    """Forbid writing to ``array``."""
    array.flags.writeable = False


def _numeric(name: str, x: ArrayLike, expected: str, kinds: str = "biuf") -> NDArray[Any]:
    try:
        raw = np.asarray(x)
    except ValueError as problem:  # rows of different length
        raise InvalidParameterError(f"is not an array ({problem})", place=name, legal=expected) from problem
    if raw.dtype.kind not in kinds and raw.size:
        raise InvalidParameterError(f"has entries of type {raw.dtype}", place=name, legal=expected)
    return raw


def _range(lowest: float | None, highest: float | None) -> str:
    if lowest is not None and highest is not None:
        return f"a finite number in [{lowest:g}, {highest:g}]"
    if lowest is not None:
        return f"a finite number >= {lowest:g}"
    return "a finite number" if highest is None else f"a finite number <= {highest:g}"
