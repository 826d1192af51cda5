"""The types of ranges that a value may lie in, and the text of the error if it does not.

A range is called with a value; it returns the value in its proper type, or raises ``ValueError`` with what is legal.
`marketsched.mechanisms.legal` has names for the usual ranges, and checks the arguments of calls against them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from numbers import Real
from typing import Any, Generic, TypeGuard, TypeVar

from marketsched.mechanisms.errors import InvalidParameterError, InvalidReportError

LARGEST_WHOLE = 2**31 - 1  # of a parameter: fits every counter of the package, also when two of them are added
EXACT = 2**53  # of a report: up to here floats are exact for whole numbers, and int64 has room for sums of them
LARGEST = 1e100  # a product of three such numbers is still finite
SMALLEST = 1e-100  # of a number that must not be 0: its reciprocal is finite

Error = type[InvalidReportError] | type[InvalidParameterError]
V = TypeVar("V", covariant=True)


def is_number(x: object) -> TypeGuard[Any]:
    """Return True for the numbers of Python and NumPy; truth values and texts are none."""
    return type(x) is float or type(x) is int or (isinstance(x, Real) and not isinstance(x, bool))


@dataclass(frozen=True)
class Range(Generic[V]):
    """The legal values of a parameter; a call returns the value in its proper type, or raises ValueError.

    In ``Annotated[...]`` pydantic knows it as well, and places the error in the file.
    """

    def __call__(self, x: object) -> V:
        """Return ``x`` in its proper type; raise ``ValueError(what is legal)`` if it is outside the range."""
        raise NotImplementedError

    def check(self, place: str, x: object, error: Error = InvalidParameterError) -> V:
        """Return ``x`` in its proper type; raise ``error`` with the place, the value and the legal values.

        Examples
        --------
        >>> Whole(1, 4).check("nodes", 5)
        Traceback (most recent call last):
        ...
        marketsched.mechanisms.errors.InvalidParameterError: nodes = 5: expected a whole number in [1, 4]
        """
        try:
            return self(x)
        except ValueError as fault:
            raise error(place=place, value=x, legal=str(fault)) from None

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        """Let pydantic check a field of this type by calling the range, and nothing else."""
        from pydantic_core import core_schema  # of commands and scenarios: the rules alone do without

        return core_schema.no_info_plain_validator_function(self)


@dataclass(frozen=True)
class Whole(Range[int]):
    """Whole numbers in ``[lowest, highest]``; ``5.0`` counts, ``True`` does not."""

    lowest: int
    highest: int = LARGEST_WHOLE

    def __call__(self, x: object) -> int:
        """Return ``x`` as an int, or raise ``ValueError``."""
        if type(x) is int and self.lowest <= x <= self.highest:  # as nearly always
            return x
        if not (is_number(x) and self.lowest <= x <= self.highest and int(x) == x):  # NaN is in no range
            open_end = self.highest >= LARGEST_WHOLE and not (is_number(x) and self.highest < x < math.inf)
            if open_end and self.lowest <= -LARGEST_WHOLE:
                raise ValueError("a whole number")
            ends = f">= {self.lowest}" if open_end else f"in [{self.lowest}, {self.highest}]"
            raise ValueError(f"a whole number {ends}")
        return int(x)


@dataclass(frozen=True)
class Finite(Range[float]):
    """Finite numbers in an interval written as in ``"[0, 1)"`` or ``"(0, inf)"``.

    Ends that are infinite mean 1e100, and a number that must be above 0 is at least 1e-100: sums, products
    and reciprocals of such numbers are finite.
    """

    interval: str
    ends: tuple[float, float] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        low, high = (float(end) for end in self.interval.strip("[]()").split(","))
        object.__setattr__(self, "ends", (low, high))

    def __call__(self, x: object) -> float:
        """Return ``x`` as a float, or raise ``ValueError``."""
        low, high = self.ends
        if type(x) is float and low < x < high and SMALLEST <= x <= LARGEST:  # as nearly always
            return x
        if not is_number(x):
            raise ValueError(self._legal())
        x = x if isinstance(x, int) else float(x)  # an int may have any number of digits
        if not low <= x <= high or x in (math.inf, -math.inf):
            raise ValueError(self._legal())
        if (x == low and self.interval[0] == "(") or (x == high and self.interval[-1] == ")"):
            raise ValueError(self._legal())
        positive = self.interval.startswith("(0,")
        if abs(x) > LARGEST or (positive and x < SMALLEST):
            low = SMALLEST if positive else max(low, -LARGEST)
            raise ValueError(f"a finite number in [{low:g}, {min(high, LARGEST):g}]")
        return float(x)

    def _legal(self) -> str:
        low, high = self.ends
        if math.isinf(high) and math.isfinite(low):
            return f"a finite number {'>' if self.interval[0] == '(' else '>='} {low:g}"
        return f"a finite number in {self.interval}"


@dataclass(frozen=True)
class Named(Range[Any]):
    """One of ``names``, or what ``otherwise`` takes: ``Named(("theory",), Finite("(0, inf)"))``."""

    names: tuple[str, ...]
    otherwise: Range[Any] | None = None

    def __call__(self, x: object) -> Any:
        """Return ``x``, or raise ``ValueError``."""
        if isinstance(x, str) and x in self.names:
            return x
        legal = [repr(name) for name in self.names]
        if self.otherwise is not None:
            try:
                return self.otherwise(x)
            except ValueError as error:
                legal.append(str(error))
        raise ValueError(" or ".join([", ".join(legal[:-1]), legal[-1]] if len(legal) > 1 else legal))


@dataclass(frozen=True)
class Maybe(Range[Any]):
    """What ``range`` takes, or None; in a signature, ``Count | None`` means the same."""

    range: Range[Any]

    def __call__(self, x: object) -> Any:
        """Return None, or ``x`` in its proper type, or raise ``ValueError``."""
        return None if x is None else self.range(x)


@dataclass(frozen=True)
class ListOf(Range[tuple[Any, ...]]):
    """A list of at least one value, each within ``range``."""

    range: Range[Any]

    def __call__(self, x: object) -> tuple[Any, ...]:
        """Return them as a tuple, or raise ``ValueError``."""
        if not isinstance(x, (list, tuple)) or not x:
            raise ValueError("a list of at least one")
        try:
            return tuple(self.range(each) for each in x)
        except ValueError as error:
            raise ValueError(f"a list, each {error}") from None


@dataclass(frozen=True)
class Anything(Range[Any]):
    """Plain data of any sort: for a parameter without an annotation."""

    def __call__(self, x: object) -> Any:
        """Return ``x``."""
        return x


@dataclass(frozen=True)
class Switch(Range[bool]):
    """For a plain ``bool``; accepts NumPy's."""

    def __call__(self, x: object) -> bool:
        """Return ``x`` as a bool, or raise ``ValueError``."""
        if not isinstance(x, bool) and type(x).__name__ not in ("bool", "bool_"):
            raise ValueError("true or false")
        return bool(x)


@dataclass(frozen=True)
class Text(Range[str]):
    """For a plain ``str``."""

    def __call__(self, x: object) -> str:
        """Return ``x``, or raise ``ValueError``."""
        if not isinstance(x, str):
            raise ValueError("a text")
        return x
