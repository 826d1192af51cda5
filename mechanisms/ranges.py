"""Older names of what is in `legal`; nothing new uses them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from marketsched.mechanisms.legal import (
    LARGEST,
    LARGEST_WHOLE,
    SMALLEST,
    Amount,
    Anything,
    BelowOne,
    Count,
    Finite,
    ListOf,
    Maybe,
    Named,
    Parameter,
    Positive,
    PositiveShare,
    Range,
    Seed,
    Share,
    Whole,
    check_fields,
    parameters_of,
    takes_anything,
)
from marketsched.mechanisms.legal import legal as checked

__all__ = [
    "LARGEST",
    "LARGEST_WHOLE",
    "SMALLEST",
    "Amount",
    "Anything",
    "BelowOne",
    "Count",
    "Finite",
    "ListOf",
    "Maybe",
    "Named",
    "Parameter",
    "Positive",
    "PositiveShare",
    "Range",
    "Seed",
    "Share",
    "Whole",
    "check_fields",
    "checked",
    "inherits",
    "parameters_of",
    "takes_anything",
]


def inherits(base: type[Any]) -> Callable[[Any], Any]:
    """Return a decorator that changes nothing: `parameters_of` reads the base class itself."""
    return lambda function: function
