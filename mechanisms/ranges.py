"""What single parameters may be: ranges that stand in the signature of the class that owns the parameter.

``Annotated[float, Finite("(0, 1]")]`` in a signature says what is legal once, for everybody: `checked` makes
direct calls refuse the rest, and a scenario file is checked against the same signature before anything is
built. The error is the same in both: ``name = value: expected a finite number in (0, 1]``.
"""

from __future__ import annotations

import inspect
import math
import sys
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from functools import lru_cache, wraps
from typing import Annotated, Any, Literal, ParamSpec, TypeGuard, TypeVar, get_args, get_origin

import numpy as np

from marketsched.mechanisms.errors import InvalidParameterError

LARGEST_WHOLE = 2**31 - 1  # fits every counter of the package, also when two of them are added
LARGEST = 1e100  # a product of three such numbers is still finite
SMALLEST = 1e-100  # of a number that must not be 0: its reciprocal is finite

P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True)
class Range:
    """What a parameter may be; call it with a value to get that value in its proper type.

    In ``Annotated[...]`` it is known to pydantic as well, which places the error in the file.
    """

    def __call__(self, x: object) -> Any:
        """Return ``x`` in its proper type; raise ``ValueError(what is legal)`` if it is outside the range."""
        raise NotImplementedError

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        """Let pydantic check a field of this type by calling the range, and nothing else."""
        from pydantic_core import core_schema

        return core_schema.no_info_plain_validator_function(self)


@dataclass(frozen=True)
class Whole(Range):
    """Whole numbers in ``[lowest, highest]``; ``5.0`` counts, ``True`` does not.

    Examples
    --------
    >>> Whole(1)(5.0)
    5
    >>> Whole(1, 4)(5)
    Traceback (most recent call last):
    ...
    ValueError: a whole number in [1, 4]
    """

    lowest: int
    highest: int = LARGEST_WHOLE

    def __call__(self, x: object) -> int:
        """Return ``x`` as an int, or raise ``ValueError``."""
        if not (_is_number(x) and self.lowest <= x <= self.highest and int(x) == x):  # NaN is in no range
            short = self.highest >= LARGEST_WHOLE and not (_is_number(x) and x > self.highest)
            legal = f" >= {self.lowest}" if short else f" in [{self.lowest}, {self.highest}]"
            raise ValueError(f"a whole number{'' if short and self.lowest == -LARGEST_WHOLE else legal}")
        return int(x)


@dataclass(frozen=True)
class Finite(Range):
    """Finite numbers in an interval written as in ``"[0, 1)"`` or ``"(0, inf)"``.

    Ends that are infinite mean 1e100, and a number that must be above 0 is at least 1e-100: sums, products
    and reciprocals of such numbers are finite.
    """

    interval: str
    ends: tuple[float, float] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Read the interval."""
        low, high = (float(end) for end in self.interval.strip("[]()").split(","))
        object.__setattr__(self, "ends", (low, high))

    def __call__(self, x: object) -> float:
        """Return ``x`` as a float, or raise ``ValueError``."""
        low, high = self.ends
        if not (_is_number(x) and low <= x <= high) or x in (math.inf, -math.inf):
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
class Named(Range):
    """One of ``names``, or what ``otherwise`` takes: ``Named(("theory",), Finite("(0, inf)"))``."""

    names: tuple[str, ...]
    otherwise: Range | None = None

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
class Maybe(Range):
    """What ``range`` takes, or nothing."""

    range: Range

    def __call__(self, x: object) -> Any:
        """Return None, or ``x`` in its proper type, or raise ``ValueError``."""
        return None if x is None else self.range(x)


@dataclass(frozen=True)
class ListOf(Range):
    """A list of at least one, each of which ``range`` takes."""

    range: Range

    def __call__(self, x: object) -> tuple[Any, ...]:
        """Return them as a tuple, or raise ``ValueError``."""
        if not isinstance(x, (list, tuple)) or not x:
            raise ValueError("a list of at least one")
        try:
            return tuple(self.range(each) for each in x)
        except ValueError as error:
            raise ValueError(f"a list, each {error}") from None


@dataclass(frozen=True)
class Anything(Range):
    """Plain data of any sort: what a parameter without an annotation takes."""

    def __call__(self, x: object) -> Any:
        """Return ``x``."""
        return x


@dataclass(frozen=True)
class _Switch(Range):
    """What a plain ``bool`` stands for."""

    def __call__(self, x: object) -> bool:
        if not isinstance(x, (bool, np.bool_)):
            raise ValueError("true or false")
        return bool(x)


@dataclass(frozen=True)
class _Text(Range):
    """What a plain ``str`` stands for."""

    def __call__(self, x: object) -> str:
        if not isinstance(x, str):
            raise ValueError("a text")
        return x


Count = Annotated[int, Whole(1)]
Amount = Annotated[float, Finite("[0, inf)")]
Positive = Annotated[float, Finite("(0, inf)")]
Share = Annotated[float, Finite("[0, 1]")]
PositiveShare = Annotated[float, Finite("(0, 1]")]
BelowOne = Annotated[float, Finite("(-inf, 1)")]
Seed = Annotated[int, Whole(0, 2**64 - 1)]

_PLAIN: dict[Any, Range] = {
    int: Whole(-LARGEST_WHOLE),
    float: Finite("(-inf, inf)"),
    bool: _Switch(),
    str: _Text(),
}


@dataclass(frozen=True)
class Parameter:
    """A parameter of a signature: its range (None: it is not one of plain data), and its default."""

    name: str
    range: Range | None
    default: Any
    required: bool


@lru_cache(maxsize=256)
def parameters_of(function: Callable[..., Any]) -> dict[str, Parameter]:
    """Return the parameters of a class or function by name, in their order, ``*args`` and ``**kwargs`` left out.

    An annotation that is plain data (``int``, ``float``, ``bool``, ``str``, a ``Literal``, each also with
    ``| None``, and anything with a `Range`) gives a range; any other one gives none.
    """
    scope = _scope(function)
    found: dict[str, Parameter] = {}
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        required = parameter.default is parameter.empty
        if parameter.annotation is parameter.empty:
            legal: Range | None = Anything() if required else _PLAIN.get(type(parameter.default), Anything())
        else:
            legal = _range(parameter.annotation, scope)
        found[name] = Parameter(name, legal, None if required else parameter.default, required)
    return found


def _scope(function: Callable[..., Any]) -> dict[str, Any]:
    """Return the names that the annotations of a class or function may use."""
    if not inspect.isclass(function):
        return dict(getattr(inspect.unwrap(function), "__globals__", {}))
    scope: dict[str, Any] = {}
    for each in reversed(function.__mro__):  # a dataclass has the fields of its bases, written in their modules
        scope |= vars(sys.modules[each.__module__])
    return scope


def takes_anything(function: Callable[..., Any]) -> bool:
    """Return True if a class or function takes keyword arguments that it does not name."""
    return any(p.kind is p.VAR_KEYWORD for p in inspect.signature(function).parameters.values())


def inherits(base: type[Any]) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Let the ``**`` of a constructor stand for the keyword parameters of a base class; to be used as a decorator.

    What the constructor names itself, with its own default, is not taken from the base. The signature names all of
    them: scenarios, `checked` and help texts see no difference.

    Examples
    --------
    >>> class Base:
    ...     def __init__(self, capacity, *, kill: bool = True, price: Amount = 0.0): ...
    >>> class Mine(Base):
    ...     @inherits(Base)
    ...     def __init__(self, capacity, *, kill: bool = False, ratio: Positive = 2.0, **of_base): ...
    >>> list(parameters_of(Mine))
    ['capacity', 'price', 'kill', 'ratio']
    """
    scope = _scope(base)

    def named(function: Callable[P, T]) -> Callable[P, T]:
        own = [p for p in inspect.signature(function).parameters.values() if p.kind is not p.VAR_KEYWORD]
        names = {p.name for p in own}
        of_base = [
            p.replace(annotation=_evaluated(p.annotation, scope))
            for p in inspect.signature(base).parameters.values()
            if p.kind is p.KEYWORD_ONLY and p.name not in names
        ]
        first = [p for p in own if p.kind is not p.KEYWORD_ONLY]
        last = [p for p in own if p.kind is p.KEYWORD_ONLY]
        function.__signature__ = inspect.Signature([*first, *of_base, *last])  # type: ignore[attr-defined]
        return function

    return named


def checked(function: Callable[P, T]) -> Callable[P, T]:
    """Make a function refuse arguments outside the ranges of its signature; to be used as a decorator.

    Raises
    ------
    InvalidParameterError
        When it is called: the line names the argument, what was seen and what is legal.

    Examples
    --------
    >>> @checked
    ... def half(share: Share) -> float:
    ...     return share / 2
    >>> half(1)
    0.5
    >>> half(2)
    Traceback (most recent call last):
    ...
    marketsched.mechanisms.errors.InvalidParameterError: share = 2: expected a finite number in [0, 1]
    """
    signature = inspect.signature(function)

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        given = signature.bind(*args, **kwargs)
        known = parameters_of(function)
        for name, value in given.arguments.items():
            legal = known[name].range if name in known else None
            if legal is not None:
                given.arguments[name] = _legal(name, value, legal)
        return function(*given.args, **given.kwargs)

    return call


def check_fields(record: Any) -> None:
    """Refuse fields of a (frozen) dataclass outside their ranges; to be called in ``__post_init__``.

    Raises
    ------
    InvalidParameterError
        The line names the field, what was seen and what is legal.
    """
    made: Callable[..., Any] = type(record)
    known = parameters_of(made)
    for each in fields(record):
        legal = known[each.name].range if each.name in known else None
        if legal is not None:
            object.__setattr__(record, each.name, _legal(each.name, getattr(record, each.name), legal))


def _legal(name: str, value: object, legal: Range) -> Any:
    try:
        return legal(value)
    except ValueError as error:
        raise InvalidParameterError(place=name, value=value, legal=str(error)) from None


def _range(annotation: Any, scope: dict[str, Any]) -> Range | None:
    """Return what an annotation allows, or None if it is not one of plain data."""
    annotation = _evaluated(annotation, scope)
    if get_origin(annotation) is Annotated:
        return next((each for each in annotation.__metadata__ if isinstance(each, Range)), None)
    if get_origin(annotation) is Literal:
        names = get_args(annotation)
        return Named(names) if all(isinstance(name, str) for name in names) else None
    if annotation is Any:
        return Anything()
    members = get_args(annotation)
    if type(None) in members and len(members) == 2:
        inside = _range(next(each for each in members if each is not type(None)), scope)
        return None if inside is None else Maybe(inside)
    return _PLAIN.get(annotation) if isinstance(annotation, type) else None


def _evaluated(annotation: Any, scope: dict[str, Any]) -> Any:
    """Return what the text of an annotation means; what is known to type checkers alone stays text."""
    if isinstance(annotation, str):
        try:
            return eval(annotation, scope)
        except (NameError, AttributeError, TypeError, SyntaxError):
            return annotation
    return annotation


def _is_number(x: object) -> TypeGuard[float]:
    return isinstance(x, (int, float, np.integer, np.floating)) and not isinstance(x, bool)
