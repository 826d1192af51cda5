"""Checks of arrays, made once at the public edge: shape, kind and range of the entries; sums of them; and longer ones.

Ranges of single numbers are in signatures (`marketsched.mechanisms.legal`); the shape of an array mostly depends on
another argument, so these are functions.
"""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from marketsched.mechanisms.errors import InvalidParameterError
from marketsched.mechanisms.legal import EXACT
from marketsched.mechanisms.memory import check_memory

_Entry = TypeVar("_Entry", bound=np.generic)
_Number = TypeVar("_Number", np.int64, np.float64)

FIRST = 1024  # rounds, of an array over rounds that is new


def float_array(
    name: str, x: ArrayLike, shape: tuple[int | None, ...], *, lowest: float | None = None, highest: float | None = None
) -> NDArray[np.float64]:
    """Return ``x`` as C-ordered float64 of ``shape`` (None: any size), entries in ``[lowest, highest]``, or raise.

    An array that is such a one already is not copied. ``name`` is what the message calls it.

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
    """Return ``x`` as C-ordered bool of ``shape``; whole 0 and 1 count, anything else raises InvalidParameterError."""
    raw = _numeric(name, x, "an array of true and false")
    check_shape(name, raw.shape, shape)
    if raw.dtype != np.bool_:
        odd = np.argwhere((raw != 0) & (raw != 1))
        if odd.size:
            place = tuple(int(i) for i in odd[0])
            raise InvalidParameterError(place=f"{name}{list(place)}", value=raw[place].item(), legal="true or false")
    return np.ascontiguousarray(raw, dtype=np.bool_)


def count_array(name: str, x: ArrayLike, shape: int | tuple[int | None, ...]) -> NDArray[np.int64]:
    """Return ``x`` as int64 of ``shape`` (a size: one dimension), entries >= 0; 1.0 and True count as 1."""
    raw = _numeric(name, x, "an array of counts")
    check_shape(name, raw.shape, (shape,) if isinstance(shape, int) else shape)
    return _whole_entries(name, raw, 0, EXACT, "a whole number >= 0")


def whole_array(
    name: str, x: ArrayLike, shape: tuple[int | None, ...] = (None,), lowest: int = 0, highest: int = EXACT
) -> NDArray[np.int64]:
    """Return a C-ordered copy of ``x`` as int64 of ``shape``, entries in ``[lowest, highest]``; no truth values."""
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


def inner(a: NDArray[Any], b: NDArray[Any]) -> NDArray[Any]:
    """Return the sum of products over the last axis, added in the same order whatever the number of threads.

    With ``@`` the last bit of a long sum depends on the threads that BLAS may use: one in a worker, all elsewhere.
    """
    total: NDArray[Any] = (a * b).sum(axis=-1)
    return total


def read_only(array: NDArray[_Entry]) -> NDArray[_Entry]:
    """Forbid writing to ``array``, and return it."""
    array.flags.writeable = False
    return array


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


def grown(array: NDArray[_Number], wanted: int, most: int, fill: float, what: str) -> NDArray[_Number]:
    """Return ``array``, made longer if it has fewer than ``wanted`` entries, up to ``most``; new ones hold ``fill``.

    Only rounds up to the current one plus max_delay and max_duration are ever read: an array over rounds that grows
    with the market costs no more in one with a far horizon than in one that ends soon. TooLargeError, which names
    ``what``, if there is no memory for it.
    """
    if array.size >= min(wanted, most):
        return array
    size = min(most, max(FIRST, wanted, 2 * array.size))
    check_memory(f"{what} of {size} rounds", 3 * size * 8.0, "a smaller horizon, max_delay or max_duration")
    longer = np.full(size, fill, dtype=array.dtype)
    longer[: array.size] = array
    return longer
