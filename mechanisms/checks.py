"""Checks of single numbers, made once at the public edge: what is legal is said in one clear line.

Reports raise `InvalidReportError`, parameters `InvalidParameterError`; the rule for what counts as a
number is the same for both: Python's and NumPy's own, never a bool, never text.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any, TypeGuard

import numpy as np

from marketsched.mechanisms.errors import InvalidParameterError, InvalidReportError

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
        The legal range; no ``highest``, no upper end.
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
    legal = f"a whole number >= {lowest}" if highest is None else f"a whole number in [{lowest}, {highest}]"
    if not _is_number(x) or not math.isfinite(x) or int(x) != x or x < lowest or (highest is not None and x > highest):
        raise error(f"{name} = {x!r}: expected {legal}")
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
    inside = _is_number(x) and math.isfinite(x) and low <= x <= high
    if not inside or (x == low and interval[0] == "(") or (x == high and interval[-1] == ")"):
        raise error(f"{name} = {x!r}: expected {legal}{hint}")
    return float(x)  # type: ignore[arg-type]


def finite_parameter(name: str, x: object, interval: str = "[0, inf)", *, hint: str = "") -> float:
    """Return ``x`` as `finite_number` does; raise ``InvalidParameterError`` otherwise."""
    return finite_number(name, x, interval, hint=hint, error=InvalidParameterError)


def _is_number(x: object) -> TypeGuard[Any]:
    return isinstance(x, (int, float, np.integer, np.floating)) and not isinstance(x, bool)


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
        raise InvalidParameterError(f"{name} = {given!r}: expected {expected}") from None
