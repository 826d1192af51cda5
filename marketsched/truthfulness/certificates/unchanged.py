"""A check that a theorem covers a mechanism: no subclass and no attribute changes the class that it is about."""

from __future__ import annotations

from typing import Any

from marketsched.mechanisms.errors import InvalidParameterError
from marketsched.mechanisms.mechanism import PROMISES

STATED = {*PROMISES, "does_not_claim", "certified_as"}  # what a class says of itself


def certified_class(mechanism: Any) -> type | None:
    """Return the class that states by ``certified_as`` what its certificate rests on; None if there is none."""
    return next((kind for kind in type(mechanism).__mro__ if "certified_as" in vars(kind)), None)


def changed_members(mechanism: Any, known: type) -> list[str]:
    """Return the members of ``known``, and of the classes that it stands on, that ``mechanism`` has changed.

    They are in order of the alphabet; constructors and other special names, and what a class states of itself, do not
    count. ``mechanism`` is an instance of ``known``, or of a class over it.
    """
    names = {name for kind in known.__mro__[:-1] for name in vars(kind)}
    own = vars(mechanism) if hasattr(mechanism, "__dict__") else {}
    return sorted(
        name
        for name in names
        if name not in STATED
        and not name.startswith("_abc_")  # notes of abstract classes about themselves
        and not (name.startswith("__") and name.endswith("__"))
        and (
            getattr(type(mechanism), name, None) is not getattr(known, name, None)
            or (name in own and callable(getattr(known, name, None)))
        )
    )


def require_certified_class(mechanism: Any) -> None:
    """Raise InvalidParameterError unless a class vouches for its menus at arrival, and nothing over it was changed."""
    known, name = certified_class(mechanism), type(mechanism).__name__
    if known is None:
        raise InvalidParameterError(
            f"mechanism = {name}: it has menus at arrival, and no class of it says that they are all that a report "
            "selects from: expected one with certified_as (docs/audit.md); truthfulness.search takes any mechanism"
        )
    changed = changed_members(mechanism, known)
    if changed:
        raise InvalidParameterError(
            f"mechanism = {name}: it changes {', '.join(changed)} of {known.__name__}, which the certificate relies "
            "on: expected the mechanism as it is; truthfulness.search takes any mechanism"
        )
