"""Older names of the checks in `legal` and `arrays`; nothing new uses them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from marketsched.mechanisms.arrays import (
    bool_array,
    check_shape,
    count_array,
    float_array,
    read_only,
    whole_array,
)
from marketsched.mechanisms.errors import InvalidParameterError, InvalidReportError
from marketsched.mechanisms.legal import EXACT, Error, Finite, Whole, is_hashable, listed

__all__ = [
    "bool_array",
    "check_shape",
    "count_array",
    "finite_number",
    "finite_parameter",
    "float_array",
    "is_hashable",
    "listed",
    "one_of",
    "read_only",
    "whole_array",
    "whole_number",
    "whole_parameter",
]

LARGEST = EXACT


def whole_number(
    name: str, x: object, lowest: int, highest: int | None = None, *, error: Error = InvalidReportError
) -> int:
    """Return ``x`` as an int in a range."""
    return Whole(lowest, EXACT if highest is None else highest).check(name, x, error)


def whole_parameter(name: str, x: object, lowest: int, highest: int | None = None) -> int:
    """Return ``x`` as an int in a range."""
    return whole_number(name, x, lowest, highest, error=InvalidParameterError)


def finite_number(
    name: str, x: object, interval: str = "[0, inf)", *, hint: str = "", error: Error = InvalidReportError
) -> float:
    """Return ``x`` as a float in an interval."""
    try:
        return Finite(interval)(x)
    except ValueError as fault:
        raise error(place=name, value=x, legal=f"{fault}{hint}") from None


def finite_parameter(name: str, x: object, interval: str = "[0, inf)", *, hint: str = "") -> float:
    """Return ``x`` as a float in an interval."""
    return finite_number(name, x, interval, hint=hint, error=InvalidParameterError)


def one_of(name: str, x: str, legal: Iterable[str]) -> Any:
    """Return ``x`` if it is one of the ``legal`` words."""
    words = tuple(legal)
    if x not in words:
        raise InvalidParameterError(place=name, value=x, legal=f"one of {', '.join(words)}")
    return x
