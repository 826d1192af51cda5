"""Reports of owners to an allocation core, and their lies.

A lie is a map ``report = lie.report(truth, public)``: pure, the truth is never changed, and what
it returns is legal. Reports are of three kinds, one for each core; an owner of the OPM core may have
several jobs, and then tells the same lie of each.

====================== =============== ===================================================================
report                 family          the lie, of size x
====================== =============== ===================================================================
`PortReport`           requirements    needs x times as much of every type
(OgaSched)             utility         a job is worth x times as much
                       alpha           the coefficients alpha are x times the true ones; the core pools them
                       hidden edges    conceals a share x of its edges, the most crowded instances first
                       claimed edges   claims a share x of those it lacks, the least crowded first
`ChannelReport`        requests        x units more of every type on every channel, between 1 and the capacity
(ESDP)                 utility         every use brought x times its utility
                       hidden edges    conceals a share x of its channels, the largest requests first
`JobReport` (OPM)      budget          x times the budget
                       deadline        a stay x times as long, one slot at least
                       weight          x times the utility
                       exponent        x times the exponent, at most 1
====================== =============== ===================================================================
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from marketsched.cores.core import ESDP, OGASCHED, OPM
from marketsched.mechanisms.errors import InvalidReportError
from marketsched.mechanisms.legal import Finite, Range, Whole


@dataclass(frozen=True, slots=True)
class PortReport:
    """The report of a port's owner to OgaSched."""

    requirements: NDArray[np.float64]  # (n_types,), a_l
    channels: NDArray[np.bool_]  # (n_instances,), its edges; at least one
    worth: float = 1.0  # the core believes that a job of this port is worth ``worth`` times gain less overhead
    coefficient: float = 1.0  # the coefficients alpha that it reports, as a multiple of the true ones


@dataclass(frozen=True, slots=True)
class ChannelReport:
    """The report of a port's owner to ESDP."""

    requests: NDArray[np.int64]  # (n_channels, n_types), of its channels
    offered: NDArray[np.bool_]  # (n_channels,), which of them are reported
    worth: float = 1.0  # factor on every observed utility that it reports; the product is cut off at 1


@dataclass(frozen=True, slots=True)
class JobReport:
    """The report of a job's owner to OPM; the arrival is public."""

    arrival: int  # a_j and d_j, slots
    deadline: int
    budget: float  # B_j, credits
    weight: float  # v_j and beta_j of the utility v_j X^beta_j
    exponent: float


@dataclass(frozen=True, slots=True)
class CorePublic:
    """Public information of all owners."""

    # shape (n_instances, n_types) for OgaSched, (n_types,) for ESDP, (n_machines,) for OPM (ones)
    capacities: NDArray[np.float64]
    slots: int  # T
    crowds: NDArray[np.int64]  # (n_instances,), ports with an edge to each instance (OgaSched), else empty


class Strategy(Protocol):
    """How an owner reports."""

    @property
    def family(self) -> str:
        """What kind of lie it is."""

    def report(self, truth: Any, public: CorePublic) -> Any:
        """Return the owner's report."""

    def words(self) -> str:
        """Return it in words."""


@dataclass(frozen=True)
class Honest:
    """The truth."""

    family: ClassVar[str] = "truth"

    def report(self, truth: Any, public: CorePublic) -> Any:
        """Return the truth."""
        return truth

    def words(self) -> str:
        """Return its name."""
        return self.family


@dataclass(frozen=True)
class CoreLie:
    """A lie of one family, by its size; see the module."""

    family: str
    size: float

    def __post_init__(self) -> None:
        legal = _SIZES.get(self.family, Finite("(0, inf)"))
        object.__setattr__(self, "size", legal.check(f"size of {self.family!r}", self.size))

    def report(self, truth: Any, public: CorePublic) -> Any:
        """Return the report, of the OPM core that of every job; InvalidReportError if the truth is of another core."""
        several = isinstance(truth, tuple)
        kind = type(truth[0]) if several and truth else type(truth)
        if self.family not in _LIES.get(kind, {}):
            fitting = " or ".join(kind.__name__ for kind, lies in _LIES.items() if self.family in lies)
            raise InvalidReportError(f"{self.words()}: truth is a {kind.__name__}: expected a {fitting}")
        change = _LIES[kind][self.family][0]
        return tuple(change(job, self.size, public) for job in truth) if several else change(truth, self.size, public)

    def words(self) -> str:
        """Return family and size."""
        return f"{self.family} {self.size:g}"


@dataclass(frozen=True)
class Several:
    """Several lies at once, one after the other."""

    lies: tuple[Strategy, ...]
    family: ClassVar[str] = "several"

    def report(self, truth: Any, public: CorePublic) -> Any:
        """Return the report with all lies."""
        for lie in self.lies:
            truth = lie.report(truth, public)
        return truth

    def words(self) -> str:
        """Return all lies in words."""
        return " and ".join(lie.words() for lie in self.lies)


def refined(lie: Strategy, ratio: float) -> CoreLie | None:
    """Return a lie whose size is a factor with ``ratio`` times that size, or None if it is none."""
    return replace(lie, size=lie.size * ratio) if isinstance(lie, CoreLie) and lie.family not in _SIZES else None


def lies_for(core: str) -> list[Strategy]:
    """Return the coarse grid of lies to try on a core, the most telling of each family first."""
    return [CoreLie(family, size) for family, (_, sizes) in _LIES[_KINDS[core]].items() for size in sizes]


_Change = Callable[[Any, Any, CorePublic], Any]  # of a report, by a size


def _scaled(field: str, most: float = math.inf) -> _Change:
    """Multiply one field of a report, up to ``most``."""

    def change(report: Any, factor: float, public: CorePublic) -> Any:
        value = getattr(report, field) * factor
        return replace(report, **{field: value if most == math.inf else min(most, value)})

    return change


def _stay(job: JobReport, factor: float, public: CorePublic) -> JobReport:
    return replace(job, deadline=job.arrival + max(1, round((job.deadline - job.arrival) * factor)))


def _shifted(own: ChannelReport, units: int, public: CorePublic) -> ChannelReport:
    """Shift requests; of a type that it needs it requests 1 at least: without, the channel would do nothing."""
    most = public.capacities.astype(np.int64)
    return replace(own, requests=np.clip(own.requests + units, np.minimum(own.requests, 1), most))


def _hidden(own: Any, share: float, public: CorePublic) -> Any:
    """Conceal edges, one at least and never all: of equals the last; a port with a single one keeps it."""
    port = isinstance(own, PortReport)
    field, burden = ("channels", public.crowds) if port else ("offered", own.requests.sum(axis=1))
    kept = getattr(own, field).copy()
    places = np.flatnonzero(kept)
    count = max(0, min(max(1, round(share * places.size)), places.size - 1))
    order = places[np.argsort(burden[places].astype(np.float64), kind="stable")]
    kept[order[places.size - count :]] = False
    return replace(own, **{field: kept})


def _claimed(port: PortReport, share: float, public: CorePublic) -> PortReport:
    missing = np.flatnonzero(~port.channels)
    order = missing[np.argsort(public.crowds[missing], kind="stable")]
    claimed = port.channels.copy()
    claimed[order[: math.ceil(share * missing.size)]] = True
    return replace(port, channels=claimed)


_SIZES: dict[str, Range[Any]] = {  # of other families: a factor
    "requests": Whole(-(2**20), 2**20),
    "hidden edges": Finite("(0, 1)"),
    "claimed edges": Finite("(0, 1]"),
}
_KINDS: dict[str, type] = {OGASCHED.name: PortReport, ESDP.name: ChannelReport, OPM.name: JobReport}
_LIES: dict[type, dict[str, tuple[_Change, tuple[float, ...]]]] = {
    PortReport: {
        "requirements": (_scaled("requirements"), (2.0, 0.5, 4.0, 0.8, 1.25, 0.25, 16.0)),
        "utility": (_scaled("worth"), (2.0, 0.5, 5.0)),
        "alpha": (_scaled("coefficient"), (2.0, 0.5, 5.0)),
        "hidden edges": (_hidden, (0.25, 0.5, 0.75)),
        "claimed edges": (_claimed, (0.5, 1.0)),
    },
    ChannelReport: {
        "requests": (_shifted, (-1, 1, -2)),
        "utility": (_scaled("worth"), (2.0, 0.5, 5.0)),
        "hidden edges": (_hidden, (0.25, 0.5, 0.75)),
    },
    JobReport: {
        "budget": (_scaled("budget"), (2.0, 0.5, 5.0, 0.25)),
        "deadline": (_stay, (0.5, 1.5, 2.0, 0.75)),
        "weight": (_scaled("weight"), (2.0, 0.5, 5.0, 20.0)),
        "exponent": (_scaled("exponent", 1.0), (1.25, 0.8, 1.5)),
    },
}
