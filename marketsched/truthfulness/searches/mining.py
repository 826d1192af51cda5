"""Numbers in the code of a mechanism: a rule with a narrow trigger often holds the number that triggers it.

Read are the functions of its classes, up to the package's own base classes, class attributes, numbers it keeps, and the
functions and numbers of the same module that these functions name. Nothing is run.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import CodeType, FunctionType, ModuleType
from typing import Any

FAR = 1e9
MOST = 200  # numbers


def mined_numbers(mechanism: object) -> list[float]:
    """Return the numbers of a mechanism's code, smallest first; at most `MOST`. Nothing of it is called."""
    found: set[float] = set()
    seen: set[object] = set()
    for kind in _own_classes(type(mechanism)):
        module = sys.modules.get(kind.__module__)
        for name, part in vars(kind).items():
            if not name.startswith("__") or name in ("__init__", "__call__"):
                found.update(_numbers_of(part, module, seen))
    found.update(_numbers_in(getattr(mechanism, "__dict__", {}).values()))
    return sorted(x for x in found if abs(x) < FAR)[:MOST]


def _own_classes(kind: type) -> list[type]:
    """Return the classes outside of the package, or the class itself where there is none."""
    outside = [each for each in kind.__mro__ if not each.__module__.startswith(("marketsched.", "builtins", "abc"))]
    return outside or [kind]


def _numbers_in(values: Any) -> Iterator[float]:
    yield from (float(x) for x in values if isinstance(x, (int, float)) and not isinstance(x, bool))


def _numbers_of(part: Any, module: ModuleType | None, seen: set[object]) -> Iterator[float]:
    """Yield the numbers of one attribute, and of what it names in its module."""
    part = getattr(part, "fget", None) or getattr(part, "__func__", part)
    part = getattr(part, "py_func", part)
    if isinstance(part, FunctionType):
        if part.__code__ in seen:
            return
        seen.add(part.__code__)
        yield from _numbers_in(part.__defaults__ or ())
        yield from _of_code(part.__code__, part.__globals__, module, seen)
    else:
        yield from _numbers_in([part])


def _of_code(code: CodeType, names: dict[str, Any], module: ModuleType | None, seen: set[object]) -> Iterator[float]:
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _of_code(constant, names, module, seen)
        else:
            yield from _numbers_in(constant if isinstance(constant, tuple) else [constant])
    for name in code.co_names:
        named = names.get(name)
        if isinstance(named, (int, float)):
            yield from _numbers_in([named])
        elif isinstance(getattr(named, "py_func", named), FunctionType) and module is not None:
            if getattr(named, "__module__", None) == module.__name__:
                yield from _numbers_of(named, module, seen)
