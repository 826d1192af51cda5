"""What a value may be: ranges that stand once, in the signature of what takes the value.

``share: Share`` or ``share: Annotated[float, Finite("(0, 1]")]`` in a signature states what is legal. Everything
else reads it there: `legal` makes direct calls refuse the rest, `check_fields` does so for dataclasses, pydantic
knows a range in a field of a scenario file or of a live call, and a section of a scenario is checked against
the signature of what it names (`parameters_of`). The error is the same in all of them:
``share = 2: expected a finite number in (0, 1]``.

Where a range depends on another value, the range is asked in the body: ``Whole(1, capacity).check("nodes", nodes)``.
Arrays are checked by `marketsched.mechanisms.arrays`.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from dataclasses import dataclass, field, fields, is_dataclass
from functools import lru_cache, wraps
from numbers import Real
from typing import Annotated, Any, Generic, Literal, ParamSpec, TypeGuard, TypeVar, get_args, get_origin, get_type_hints

from marketsched.mechanisms.errors import InvalidParameterError, InvalidReportError

LARGEST_WHOLE = 2**31 - 1  # of a parameter: fits every counter of the package, also when two of them are added
EXACT = 2**53  # of a report: up to here floats are exact for whole numbers, and int64 has room for sums of them
LARGEST = 1e100  # a product of three such numbers is still finite
SMALLEST = 1e-100  # of a number that must not be 0: its reciprocal is finite

Error = type[InvalidReportError] | type[InvalidParameterError]
P = ParamSpec("P")
T = TypeVar("T")
V = TypeVar("V", covariant=True)


@dataclass(frozen=True)
class Range(Generic[V]):
    """What a value may be; a subclass returns the value in its proper type when it is called, or raises ValueError.

    In ``Annotated[...]`` pydantic knows it as well, and places the error in the file.
    """

    def __call__(self, x: object) -> V:
        """Return ``x`` in its proper type; raise ``ValueError(what is legal)`` if it is outside the range."""
        raise NotImplementedError

    def check(self, place: str, x: object, error: Error = InvalidParameterError) -> V:
        """Return ``x`` in its proper type; raise ``error`` with the place, what was seen and what is legal.

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

    Examples
    --------
    >>> Finite("[0, 1)")(0)
    0.0
    >>> Finite("(0, inf)")(0)
    Traceback (most recent call last):
    ...
    ValueError: a finite number > 0
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
    """A list of at least one, each of which ``range`` takes."""

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
    """Plain data of any sort: what a parameter without an annotation takes."""

    def __call__(self, x: object) -> Any:
        """Return ``x``."""
        return x


@dataclass(frozen=True)
class _Switch(Range[bool]):
    """What a plain ``bool`` stands for; NumPy's count."""

    def __call__(self, x: object) -> bool:
        if not isinstance(x, bool) and type(x).__name__ not in ("bool", "bool_"):
            raise ValueError("true or false")
        return bool(x)


@dataclass(frozen=True)
class _Text(Range[str]):
    """What a plain ``str`` stands for."""

    def __call__(self, x: object) -> str:
        if not isinstance(x, str):
            raise ValueError("a text")
        return x


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

_PLAIN: dict[Any, Range[Any]] = {
    int: Whole(-LARGEST_WHOLE),
    float: Finite("(-inf, inf)"),
    bool: _Switch(),
    str: _Text(),
}


def legal(function: Callable[P, T]) -> Callable[P, T]:
    """Make a function, method or constructor refuse arguments outside the ranges of its signature.

    Annotations are read at the first call. Defaults are not checked.

    Raises
    ------
    InvalidParameterError
        When it is called: the line names the argument, what was seen and what is legal.

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
    """Refuse fields of a (frozen) dataclass outside their ranges; to be called in ``__post_init__``.

    Raises
    ------
    InvalidParameterError
        Or ``error``: the line names the field, what was seen and what is legal.
    """
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


@dataclass(frozen=True)
class Parameter:
    """A parameter of a signature: its range (None: it is not one of plain data), and its default."""

    name: str
    range: Range[Any] | None
    default: Any
    required: bool
    keyword_only: bool = False


@lru_cache(maxsize=256)
def parameters_of(function: Callable[..., Any]) -> dict[str, Parameter]:
    """Return the parameters of a class or function by name, in their order, ``*args`` left out.

    An annotation that is plain data (``int``, ``float``, ``bool``, ``str``, a ``Literal``, each also with
    ``| None``, and anything with a `Range`) gives a range; any other one gives none. The ``**`` of a constructor
    stands for those keyword parameters of the class above that it does not name itself.

    Examples
    --------
    >>> class Base:
    ...     def __init__(self, capacity, *, kill: bool = True, price: Amount = 0.0): ...
    >>> class Mine(Base):
    ...     def __init__(self, capacity, *, kill: bool = False, ratio: Positive = 2.0, **of_base): ...
    >>> list(parameters_of(Mine))
    ['capacity', 'price', 'kill', 'ratio']
    """
    hints, own = _hints(function), dict[str, Parameter]()
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        required = parameter.default is parameter.empty
        if name in hints:
            range_ = _range(hints[name])
        else:
            range_ = Anything() if required else _PLAIN.get(type(parameter.default), Anything())
        by_name_alone = parameter.kind is parameter.KEYWORD_ONLY
        own[name] = Parameter(name, range_, None if required else parameter.default, required, by_name_alone)
    above = _class_above(function)
    if above is None:
        return own
    of_base = {name: each for name, each in parameters_of(above).items() if each.keyword_only and name not in own}
    return (
        {n: p for n, p in own.items() if not p.keyword_only}
        | of_base
        | {n: p for n, p in own.items() if p.keyword_only}
    )


def takes_anything(function: Callable[..., Any]) -> bool:
    """Return True if a class or function takes keyword arguments that neither it nor a class above names."""
    if not _has_rest(function):
        return False
    above = _class_above(function)
    return above is None or takes_anything(above)


def _has_rest(function: Callable[..., Any]) -> bool:
    return any(p.kind is p.VAR_KEYWORD for p in inspect.signature(function).parameters.values())


def _class_above(function: Callable[..., Any]) -> Callable[..., Any] | None:
    """Return the class whose keyword parameters the ``**`` of a constructor stands for, or None."""
    if not inspect.isclass(function) or not _has_rest(function):
        return None
    classes = list(function.__mro__)
    own = next(i for i, each in enumerate(classes) if "__init__" in vars(each))
    above = next((each for each in classes[own + 1 :] if "__init__" in vars(each)), object)
    return None if above is object else above


class _Foreign(type):
    """What a name stands for that only type checkers know: it has any attribute and takes any argument."""

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return cls

    def __getitem__(cls, item: Any) -> Any:
        return cls


class _Unknown(metaclass=_Foreign):
    pass


def _hints(function: Callable[..., Any]) -> dict[str, Any]:
    """Return the annotations of a class or function, evaluated; names that type checkers alone know are of no range."""
    constructor = inspect.isclass(function) and not is_dataclass(function)
    owner: Any = function.__init__ if constructor else function
    unknown: dict[str, Any] = {}
    while True:
        try:
            return get_type_hints(owner, localns=unknown, include_extras=True)
        except NameError as error:
            unknown[str(error.name)] = _Unknown
        except TypeError:  # an object that is called: it has no annotations of its own
            return {}


def _range(hint: Any) -> Range[Any] | None:
    """Return what an annotation allows, or None if it is not one of plain data."""
    if get_origin(hint) is Annotated:
        return next((each for each in hint.__metadata__ if isinstance(each, Range)), None)
    if get_origin(hint) is Literal:
        names = get_args(hint)
        return Named(names) if all(isinstance(name, str) for name in names) else None
    if hint is Any:
        return Anything()
    members = get_args(hint)
    if type(None) in members and len(members) == 2:
        inside = _range(next(each for each in members if each is not type(None)))
        return None if inside is None else Maybe(inside)
    return _PLAIN.get(hint) if isinstance(hint, type) else None


def is_number(x: object) -> TypeGuard[Any]:
    """Return True for the numbers of Python and NumPy; truth values and texts are none."""
    return type(x) is float or type(x) is int or (isinstance(x, Real) and not isinstance(x, bool))


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
