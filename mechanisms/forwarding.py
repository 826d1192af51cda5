"""Mechanisms that answer as another object does: objects that are no `Mechanism`, and mechanisms under watch.

Code that plays markets passes a given object through `as_mechanism`, and can then rely on every member of the
protocol. No other module checks which members an object has.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from marketsched.mechanisms.errors import InvalidParameterError
from marketsched.mechanisms.law import Signal
from marketsched.mechanisms.mechanism import Event, JobClass, JobId, LaunchPlan, Mechanism, Offer, takes_owner
from marketsched.mechanisms.menu import Menu, WelfareCertificate
from marketsched.mechanisms.sow import StatementOfWork

if TYPE_CHECKING:
    from marketsched.mechanisms.resources.bookings import Booking

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

    def withdraw(self, job: JobId, fee: float = 0.0) -> Event:
        return self.inner.withdraw(job, fee) if self._has("withdraw") else super().withdraw(job, fee)

    def restate(self, job: JobId, sow: StatementOfWork) -> None:
        if self._has("restate"):
            self.inner.restate(job, sow)
        else:
            super().restate(job, sow)

    def set_share(self, place: str, share: float) -> None:
        if self._has("set_share"):
            self.inner.set_share(place, share)
        else:
            super().set_share(place, share)

    def close(self) -> list[Event]:
        return self.inner.close() if self._has("close") else super().close()

    def slot_prices(self, first: int, count: int) -> NDArray[np.float64] | None:
        return self.inner.slot_prices(first, count) if self._has("slot_prices") else super().slot_prices(first, count)

    def committed(self, first: int, count: int) -> NDArray[np.float64] | None:
        return self.inner.committed(first, count) if self._has("committed") else super().committed(first, count)

    def menu(self, concurrency: int) -> Menu | None:
        return self.inner.menu(concurrency) if self._has("menu") else super().menu(concurrency)

    def quote(self, job: JobId, sow: StatementOfWork) -> Offer:
        return self.inner.quote(job, sow) if self._has("quote") else super().quote(job, sow)

    def keep_menus(self, jobs: Iterable[JobId] | None = None) -> None:
        if self._has("keep_menus"):
            self.inner.keep_menus(jobs)

    def menu_at_arrival(self, job: JobId) -> object:
        return self.inner.menu_at_arrival(job) if self._has("menu_at_arrival") else super().menu_at_arrival(job)

    @property
    def posts_menus_at_arrival(self) -> bool:
        if isinstance(self.inner, Mechanism):
            return self.inner.posts_menus_at_arrival
        return self._has("menu_at_arrival") and self._has("keep_menus")

    def booked(self, job: JobId, duration: int | None) -> tuple[int, float | None] | None:
        """Return the final outcome of a job, if the class of ``inner`` itself defines it."""
        return self.inner.booked(job, duration) if "booked" in vars(type(self.inner)) else None

    def owed(self, job: JobId, rounds: int) -> float | None:
        return self.inner.owed(job, rounds) if self._has("owed") else None

    def forget(self, job: JobId) -> None:
        if self._has("forget"):
            self.inner.forget(job)

    def class_of(self, job: JobId) -> JobClass | None:
        return self.inner.class_of(job) if self._has("class_of") else None

    def booking(self, job: JobId) -> Booking | None:
        return self.inner.booking(job) if self._has("booking") else super().booking(job)

    def nodes_in_use(self) -> int | None:
        return self.inner.nodes_in_use() if self._has("nodes_in_use") else super().nodes_in_use()

    def certificate(self) -> WelfareCertificate | None:
        return self.inner.certificate() if self._has("certificate") else super().certificate()

    def theorems(self, *, revealed: bool) -> str | None:
        return self.inner.theorems(revealed=revealed) if self._has("theorems") else super().theorems(revealed=revealed)

    def statistics(self) -> Mapping[str, Any]:
        return self.inner.statistics() if self._has("statistics") else super().statistics()

    def tables(self) -> Mapping[str, Mapping[str, Sequence[Any]]]:
        return self.inner.tables() if self._has("tables") else super().tables()
