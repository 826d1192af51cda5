"""Parameters of a class or function, the range that each annotation states, and their earlier names."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, is_dataclass
from functools import lru_cache, wraps
from typing import Annotated, Any, Literal, ParamSpec, TypeVar, get_args, get_origin, get_type_hints

from marketsched.mechanisms.ranges import LARGEST_WHOLE, Anything, Finite, Maybe, Named, Range, Switch, Text, Whole

P = ParamSpec("P")
T = TypeVar("T")
_PLAIN: dict[Any, Range[Any]] = {
    int: Whole(-LARGEST_WHOLE),
    float: Finite("(-inf, inf)"),
    bool: Switch(),
    str: Text(),
}


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
    stands for those parameters of the class above that it does not name itself. If it names some that can be passed by
    their place, it is taken to pass those without a default itself.

    Examples
    --------
    >>> from marketsched.mechanisms.legal import Amount, Positive
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
    base = parameters_of(above)
    by_place = {name for name, each in base.items() if not each.keyword_only}
    itself = (
        set() if by_place.isdisjoint(own) else {name for name in by_place if base[name].required}
    )  # it passes these
    of_base = {name: each for name, each in base.items() if name not in own and name not in itself}
    ordered = [*((n, p) for n, p in own.items() if not p.keyword_only), *of_base.items()]
    return dict([*ordered, *((n, p) for n, p in own.items() if p.keyword_only)])


def takes_anything(function: Callable[..., Any]) -> bool:
    """Return True if a class or function takes keyword arguments that neither it nor a class above names."""
    if not _has_rest(function):
        return False
    above = _class_above(function)
    return above is None or takes_anything(above)


@lru_cache(maxsize=1024)  # asked of the same few for every market that is built
def _has_rest(function: Callable[..., Any]) -> bool:
    return any(p.kind is p.VAR_KEYWORD for p in inspect.signature(function).parameters.values())


def _class_above(function: Callable[..., Any]) -> Callable[..., Any] | None:
    """Return the class whose keyword parameters the ``**`` of a constructor stands for, or None."""
    if not _has_rest(function) or not inspect.isclass(function):
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
    if hint is Any or (get_origin(hint) is Mapping and get_args(hint) == (str, Any)):  # a table: its maker checks it
        return Anything()
    members = get_args(hint)
    if type(None) in members and len(members) == 2:
        inside = _range(next(each for each in members if each is not type(None)))
        return None if inside is None else Maybe(inside)
    return _PLAIN.get(hint) if isinstance(hint, type) else None


def renamed(**names: str) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Make a function take some arguments by earlier names, too, with a `DeprecationWarning`: ``earlier="present"``.

    Examples
    --------
    >>> @renamed(jobs="workers")
    ... def shared(workers: int = 1) -> int:
    ...     return workers
    >>> with warnings.catch_warnings(record=True, action="always") as seen:
    ...     shared(jobs=2), str(seen[0].message)
    (2, 'shared(): jobs= is now workers=')
    """

    def decorate(function: Callable[P, T]) -> Callable[P, T]:
        @wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> T:
            for earlier, name in names.items():
                if earlier in kwargs and name not in kwargs:
                    message = f"{function.__name__}(): {earlier}= is now {name}="
                    warnings.warn(message, DeprecationWarning, stacklevel=2)
                    kwargs[name] = kwargs.pop(earlier)
            return function(*args, **kwargs)

        return call

    return decorate
