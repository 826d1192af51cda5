"""Planted faults claim what the class that they change promises: they state it again, and do not keep it."""

from typing import Any, TypeVar

from marketsched.mechanisms.mechanism import PROMISES

Kind = TypeVar("Kind", bound=type[Any])


def claiming(kind: Kind) -> Kind:
    """Let a class state all that the class below it promises."""
    for promise in PROMISES:
        setattr(kind, promise, getattr(kind.__base__, promise))
    return kind
