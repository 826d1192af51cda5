"""Mechanisms that answer as another object does: objects that are no `Mechanism`, and mechanisms under watch.

Code that plays markets passes a given object through `as_mechanism`, and can then rely on every member of the
protocol. No other module checks which members an object has.
"""

from __future__ import annotations

from collections.abc import Hashable
from functools import wraps
from typing import Any

from marketsched.mechanisms.errors import InvalidParameterError
from marketsched.mechanisms.law import Signal
from marketsched.mechanisms.mechanism import Event, JobId, LaunchPlan, Mechanism, takes_owner
from marketsched.mechanisms.sow import StatementOfWork

NEEDED = ("round", "horizon", "submit", "arrive", "advance", "complete")
LIMITS = ("max_concurrency", "max_duration", "max_value", "cluster", "purses")
STATED = (
    "truthful",
    "truthful_hidden",
    "hidden_alone",
    "reads_reports",
    "later_jobs_change_nothing",
    "free_of_charge",
    "takes_back",
    "does_not_claim",
    "standing",
)


def as_mechanism(found: Any) -> Mechanism:
    """Return a mechanism, or an object with all needed members wrapped as one; else raise InvalidParameterError."""
    missing = [name for name in NEEDED if not hasattr(found, name)]
    if missing:
        raise InvalidParameterError(
            f"mechanism = {found!r} lacks {', '.join(missing)}: expected an object of a class that derives from "
            "marketsched.mechanisms.Mechanism"
        )
    return found if isinstance(found, Mechanism) else Forwarding(found)


class Forwarding(Mechanism):
    """A mechanism that passes every call on to ``inner``; what ``inner`` does not have is as by default.

    Attributes of ``inner`` that are no part of the protocol can be read, too.
    """

    def __init__(self, inner: Mechanism) -> None:
        self.inner = inner
        self.horizon = inner.horizon
        self._takes_owner = takes_owner(inner)
        limits = getattr(inner, "limits", None)
        for name in LIMITS:
            setattr(self, name, getattr(inner, name, getattr(limits, name, None)))
        vars(self).update({name: getattr(inner, name) for name in STATED if hasattr(inner, name)})

    def __getattr__(self, name: str) -> Any:
        """Return an attribute that is no part of the protocol."""
        if name == "inner" or name.startswith("__"):  # while a copy is being made, there is none yet
            raise AttributeError(name)
        return getattr(self.inner, name)

    def _has(self, name: str) -> bool:
        return getattr(self.inner, name, None) is not None

    @property
    def round(self) -> int:  # type: ignore[override]  # it is the inner one's
        return self.inner.round

    def submit(self, job: JobId, sow: StatementOfWork, owner: Hashable = None) -> LaunchPlan:
        known = {"owner": owner} if self._takes_owner else {}
        return self.inner.submit(job, sow, **known)

    def arrive(self, job: JobId, signal: Signal = None) -> None:
        self.inner.arrive(job, signal)

    def advance(self) -> list[Event]:
        return self.inner.advance()

    def complete(self, job: JobId) -> Event:
        return self.inner.complete(job)

    @property
    def posts_menus_at_arrival(self) -> bool:
        if isinstance(self.inner, Mechanism):
            return self.inner.posts_menus_at_arrival
        return self._has("menu_at_arrival") and self._has("keep_menus")

    def booked(self, job: JobId, duration: int | None) -> tuple[int, float | None] | None:
        """Return the final outcome of a job, if the class of ``inner`` itself defines it."""
        return self.inner.booked(job, duration) if "booked" in vars(type(self.inner)) else None


def _passed_on(name: str) -> Any:
    """Return a method that calls the inner one, or where there is none that of `Mechanism`."""
    default = getattr(Mechanism, name)

    @wraps(default)
    def call(self: Forwarding, *given: Any, **named: Any) -> Any:
        return getattr(self.inner, name)(*given, **named) if self._has(name) else default(self, *given, **named)

    return call


for _name in (
    "withdraw restate set_share close slot_prices committed menu quote keep_menus menu_at_arrival owed forget class_of "
    "booking nodes_in_use certificate theorems statistics tables".split()
):
    setattr(Forwarding, _name, _passed_on(_name))
