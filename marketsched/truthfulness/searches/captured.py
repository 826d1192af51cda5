"""Numbers of a report that record the numbers a rule compares them with.

A captured number is a float or an int that remembers which number of the report it comes from, and by which line
``a x + b`` it was made of it. When it is compared, the value of the report's number at which the comparison turns is
noted; so are remainders. Rounding leads to the middle of the numbers that are rounded alike; ``int()`` has to return a
plain number, so only the line is noted, and a search tries the numbers of the code on it. Where a rule puts a number
into an array or takes it through other functions, the trail ends, and nothing is noted.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

FAR = 1e15  # no number of a report lies so far out


class Notes:
    """The comparisons of one play, by number of the report.

    Where comparisons turn, (modulus, remainder) pairs, and lines (a, b) whose value a x + b was cut to a whole number.
    """

    def __init__(self) -> None:
        self.turns: dict[str, set[float]] = {}
        self.remainders: dict[str, set[tuple[float, float]]] = {}
        self.cut: dict[str, set[tuple[float, float]]] = {}

    def turn(self, name: str, at: float) -> None:
        """Note that something changes where the number is ``at``."""
        if math.isfinite(at) and abs(at) < FAR:
            self.turns.setdefault(name, set()).add(float(at))

    def remainder(self, name: str, modulus: float, rest: float) -> None:
        """Record that the rule tests this remainder of the number."""
        if modulus and math.isfinite(rest):
            self.remainders.setdefault(name, set()).add((float(modulus), float(rest)))


class _Trail:
    """Where a captured number comes from: ``kind`` is "line", "rest" (of a division by ``modulus``) or "size"."""

    __slots__ = ("a", "b", "kind", "modulus", "name", "notes")

    def __init__(
        self, notes: Notes, name: str, a: float = 1.0, b: float = 0.0, kind: str = "line", modulus: float = 0.0
    ) -> None:
        self.notes, self.name, self.a, self.b, self.kind, self.modulus = notes, name, a, b, kind, modulus

    def compared(self, with_: Any) -> None:
        if not isinstance(with_, (int, float)) or not self.a:
            return
        c = float(with_)
        if self.kind == "rest":
            self.notes.remainder(self.name, self.modulus / self.a, (c - self.b) / self.a)
            return
        for side in (c, -c) if self.kind == "size" else (c,):
            self.notes.turn(self.name, (side - self.b) / self.a)
        if self.kind == "size":
            self.notes.turn(self.name, -self.b / self.a)  # the middle of a window

    def moved(self, a: float, b: float) -> _Trail | None:
        """Return the trail of a times the number plus b; None: it ends here."""
        if self.kind != "line":
            return None
        return _Trail(self.notes, self.name, a * self.a, a * self.b + b)


def _plain(x: Any) -> bool:
    return isinstance(x, (int, float)) and not isinstance(x, _Captured)


class _Captured:
    """What captured floats and ints share."""

    trail: _Trail

    def _made(self, value: Any, trail: _Trail | None) -> Any:
        return value if trail is None or not isinstance(value, (int, float)) else captured(value, trail)


def captured(value: float, trail: _Trail) -> Any:
    """Return a captured number: an int for an int, a float for a float."""
    kind: Any = CapturedInt if isinstance(value, int) and not isinstance(value, bool) else CapturedFloat
    made = kind(value)
    made.trail = trail
    return made


def capture(value: float, name: str, notes: Notes) -> Any:
    """Return a number of a report that records under ``name`` the numbers it is compared with."""
    return captured(value, _Trail(notes, name))


def _cut(self: Any) -> int:
    """Note the line: what ``int()`` returns has to be a plain number."""
    trail = self.trail
    if trail.kind == "line" and trail.a:
        trail.notes.cut.setdefault(trail.name, set()).add((trail.a, trail.b))
    return float.__int__(self)


class CapturedFloat(_Captured, float):
    """A float that records the numbers it is compared with."""

    __hash__ = float.__hash__
    __int__ = __trunc__ = _cut


class CapturedInt(_Captured, int):
    """An int that records the numbers it is compared with."""

    __hash__ = int.__hash__


def _comparing(base: Any, name: str) -> Callable[[Any, Any], Any]:
    plain = getattr(base, name)

    def compare(self: Any, other: Any) -> Any:
        self.trail.compared(other)
        return (
            getattr(float, name)(float(self), other) if base is int and isinstance(other, float) else plain(self, other)
        )

    return compare


def _linear(base: Any, name: str, line: Callable[[float], tuple[float, float] | None]) -> Callable[[Any, Any], Any]:
    plain = getattr(base, name)

    def operate(self: Any, other: Any) -> Any:
        value = plain(self, other)
        if value is NotImplemented and base is int and isinstance(other, float):
            value = getattr(float, name)(float(self), other)
        change = line(float(other)) if _plain(other) else None
        return value if value is NotImplemented or change is None else self._made(value, self.trail.moved(*change))

    return operate


def _remaining(base: Any) -> Callable[[Any, Any], Any]:
    def rest(self: Any, other: Any) -> Any:
        value = base.__mod__(self, other)
        trail = self.trail
        if value is NotImplemented or not _plain(other) or trail.kind != "line":
            return value
        return self._made(value, _Trail(trail.notes, trail.name, trail.a, trail.b, "rest", float(other)))

    return rest


def _size(base: Any) -> Callable[[Any], Any]:
    def size(self: Any) -> Any:
        trail = self.trail
        one = _Trail(trail.notes, trail.name, trail.a, trail.b, "size")
        return self._made(base.__abs__(self), one if trail.kind == "line" else None)

    return size


def _rounded(base: Any, name: str, add: float) -> Callable[..., Any]:
    """``add`` leads from where a comparison of the rounded number turns to the middle of what is rounded to it."""
    plain = getattr(base, name)

    def rounded(self: Any, *digits: Any) -> Any:
        return self._made(plain(self, *digits), self.trail.moved(1.0, 0.0 if any(digits) else add))

    return rounded


def _floor_divided(base: Any) -> Callable[[Any, Any], Any]:
    def divided(self: Any, other: Any) -> Any:
        value = base.__floordiv__(self, other)
        if value is NotImplemented or not _plain(other):
            return value
        return self._made(value, self.trail.moved(1 / float(other), -0.5))

    return divided


_LINES: dict[str, Callable[[float], tuple[float, float] | None]] = {
    "__add__": lambda c: (1.0, c),
    "__radd__": lambda c: (1.0, c),
    "__sub__": lambda c: (1.0, -c),
    "__rsub__": lambda c: (-1.0, c),
    "__mul__": lambda c: (c, 0.0),
    "__rmul__": lambda c: (c, 0.0),
    "__truediv__": lambda c: (1 / c, 0.0) if c else None,
}
for _kind, _base in ((CapturedFloat, float), (CapturedInt, int)):
    for _name in ("__lt__", "__le__", "__gt__", "__ge__", "__eq__", "__ne__"):
        setattr(_kind, _name, _comparing(_base, _name))
    for _name, _line in _LINES.items():
        setattr(_kind, _name, _linear(_base, _name, _line))
    for _name, _add in (("__round__", 0.0), ("__floor__", -0.5), ("__ceil__", 0.5)):
        setattr(_kind, _name, _rounded(_base, _name, _add if _base is float else 0.0))
    setattr(_kind, "__floordiv__", _floor_divided(_base))  # noqa: B010
    setattr(_kind, "__mod__", _remaining(_base))  # noqa: B010
    setattr(_kind, "__abs__", _size(_base))  # noqa: B010
