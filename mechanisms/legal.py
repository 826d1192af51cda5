"""What a value may be: ranges that stand once, in the signature of what takes the value.

``share: Share`` or ``share: Annotated[float, Finite("(0, 1]")]`` in a signature states what is legal. Everything
else reads it there: `legal` makes direct calls refuse the rest, `check_fields` does so for dataclasses, pydantic
knows a range in a field of a scenario file or of a live call, and a section of a scenario is checked against
the signature of what it names (`marketsched.mechanisms.signatures`). The error is the same in all of them:
``share = 2: expected a finite number in (0, 1]``.

Where a range depends on another value, the range is asked in the body: ``Whole(1, capacity).check("nodes", nodes)``.
The types of ranges and the texts of messages stand in `marketsched.mechanisms.ranges`; they are imported from here.
Arrays are checked by `marketsched.mechanisms.arrays`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from functools import lru_cache, wraps
from typing import Annotated, Any, ParamSpec, TypeVar

from marketsched.mechanisms.errors import InvalidParameterError
from marketsched.mechanisms.ranges import (
    EXACT,
    LARGEST,
    LARGEST_WHOLE,
    SMALLEST,
    Anything,
    Error,
    Finite,
    ListOf,
    Maybe,
    Named,
    Range,
    Whole,
    is_number,
)
from marketsched.mechanisms.signatures import parameters_of

__all__ = [
    "EXACT", "LARGEST", "LARGEST_WHOLE", "SMALLEST", "Amount", "Anything", "BelowOne", "Count", "Error", "Finite",
    "ListOf", "Maybe", "Memory", "Named", "Natural", "OpenShare", "Positive", "PositiveShare", "Range", "Seed", "Share",
    "Whole", "check_fields", "is_hashable", "is_number", "legal", "listed",
]  # fmt: skip

P = ParamSpec("P")
T = TypeVar("T")

Count = Annotated[int, Whole(1)]
Natural = Annotated[int, Whole(0)]
Amount = Annotated[float, Finite("[0, inf)")]
Positive = Annotated[float, Finite("(0, inf)")]
Share = Annotated[float, Finite("[0, 1]")]
PositiveShare = Annotated[float, Finite("(0, 1]")]
OpenShare = Annotated[float, Finite("(0, 1)")]
BelowOne = Annotated[float, Finite("(-inf, 1)")]
Memory = Annotated[int, Whole(1, EXACT)]  # bytes
Seed = Annotated[int, Whole(0, 2**64 - 1)]


def legal(function: Callable[P, T]) -> Callable[P, T]:
    """Make a function, method or constructor refuse arguments outside the ranges of its signature.

    Annotations are read at the first call. Defaults are not checked. InvalidParameterError names the argument, what was
    seen and what is legal.

    Examples
    --------
    >>> @legal
    ... def half(share: Share) -> float:
    ...     return share / 2
    >>> half(1)
    0.5
    >>> half(2)
    Traceback (most recent call last):
    ...
    marketsched.mechanisms.errors.InvalidParameterError: share = 2: expected a finite number in [0, 1]
    """
    code = function.__code__
    positional = code.co_varnames[: code.co_argcount]
    by_name: dict[str, Range[Any]] | None = None
    by_place: list[tuple[int, str, Range[Any]]] = []

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        nonlocal by_name
        if by_name is None:
            known = {name: each.range for name, each in parameters_of(function).items()}
            found = {name: each for name, each in known.items() if each is not None and not isinstance(each, Anything)}
            by_place[:] = [(i, name, found[name]) for i, name in enumerate(positional) if name in found]
            by_name = found
        given: list[Any] = list(args)
        for i, name, range_ in by_place:
            if i >= len(given):
                break
            given[i] = range_.check(name, given[i])
        for name in kwargs:
            if name in by_name:
                kwargs[name] = by_name[name].check(name, kwargs[name])
        return function(*given, **kwargs)

    return call


def check_fields(record: Any, error: Error = InvalidParameterError) -> None:
    """Refuse fields of a (frozen) dataclass outside their ranges, by ``error``; to be called in ``__post_init__``."""
    made: Callable[..., Any] = type(record)
    for name, range_ in _ranges_of_fields(made):
        seen = getattr(record, name)
        value = range_.check(name, seen, error)
        if value is not seen:
            object.__setattr__(record, name, value)


@lru_cache(maxsize=256)
def _ranges_of_fields(made: Callable[..., Any]) -> tuple[tuple[str, Range[Any]], ...]:
    known = parameters_of(made)
    ranges = ((each.name, known[each.name].range) for each in fields(made) if each.name in known)  # type: ignore[arg-type]
    return tuple((name, each) for name, each in ranges if each is not None and not isinstance(each, Anything))


def is_hashable(x: object) -> bool:
    """Return True if ``x`` can be looked up: a tuple that holds a list is ``Hashable``, and still cannot."""
    try:
        hash(x)
    except TypeError:
        return False
    return True


def listed(name: str, expected: str, given: Any) -> list[Any]:
    """Return what can be gone through as a list, or raise InvalidParameterError: ``expected`` is what it lists."""
    try:
        return list(given)
    except TypeError:
        raise InvalidParameterError(place=name, value=given, legal=expected) from None
