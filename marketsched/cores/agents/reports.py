"""Reports of owners to an allocation core, and their lies.

A lie is a map ``report = lie.report(truth, public)``: pure, the truth is never changed, and what
it returns is legal. Reports are of three kinds, one for each core; an owner of the OPM core may have
several jobs, and then tells the same lie of each.

============================= ========================================================================
`PortReport` (OgaSched)       requirements a_l, edges, and how much its jobs are worth
`ChannelReport` (ESDP)        requests of its channels, which of them it offers, and its utilities
`JobReport` (OPM)             deadline, budget, weight and exponent of the utility curve
============================= ========================================================================
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, fields, replace
from typing import Annotated, Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray

from marketsched.mechanisms.errors import InvalidReportError
from marketsched.mechanisms.legal import Named, OpenShare, Positive, PositiveShare, Whole, check_fields, legal


@dataclass(frozen=True, slots=True)
class PortReport:
    """The report of a port's owner to OgaSched.

    Attributes
    ----------
    requirements : ndarray of float, shape (n_types,)
        a_l.
    channels : ndarray of bool, shape (n_instances,)
        Its edges; at least one.
    worth : float
        The core believes that a job of this port is worth ``worth`` times gain less overhead.
    coefficient : float
        The coefficients alpha that it reports, as a multiple of the true ones.
    """

    requirements: NDArray[np.float64]
    channels: NDArray[np.bool_]
    worth: float = 1.0
    coefficient: float = 1.0


@dataclass(frozen=True, slots=True)
class ChannelReport:
    """The report of a port's owner to ESDP.

    Attributes
    ----------
    requests : ndarray of int, shape (n_channels, n_types)
        Of its channels.
    offered : ndarray of bool, shape (n_channels,)
        Which of them are reported.
    worth : float
        Factor on every observed utility that it reports; the product is cut off at 1.
    """

    requests: NDArray[np.int64]
    offered: NDArray[np.bool_]
    worth: float = 1.0


@dataclass(frozen=True, slots=True)
class JobReport:
    """The report of a job's owner to OPM; the arrival is public.

    Attributes
    ----------
    arrival, deadline : int
        a_j and d_j, slots.
    budget : float
        B_j, credits.
    weight, exponent : float
        v_j and beta_j of the utility v_j X^beta_j.
    """

    arrival: int
    deadline: int
    budget: float
    weight: float
    exponent: float


Report = PortReport | ChannelReport | tuple[JobReport, ...]
_Kind = TypeVar("_Kind", PortReport, ChannelReport)


@dataclass(frozen=True, slots=True)
class CorePublic:
    """Public information of all owners.

    Attributes
    ----------
    capacities : ndarray of float
        Shape (n_instances, n_types) for OgaSched, (n_types,) for ESDP, (n_machines,) for OPM (ones).
    slots : int
        T.
    crowds : ndarray of int, shape (n_instances,)
        Ports with an edge to each instance (OgaSched), else empty.
    """

    capacities: NDArray[np.float64]
    slots: int
    crowds: NDArray[np.int64]


class CoreLie(ABC):
    """How an owner reports. A search may change ``factor``, where there is one."""

    family: ClassVar[str]

    @abstractmethod
    def report(self, truth: Report, public: CorePublic) -> Report:
        """Return the owner's report.

        Raises
        ------
        InvalidReportError
            If the lie is none for this kind of truth.
        """

    def words(self) -> str:
        """Return the lie in words: its family and its numbers."""
        numbers = [f"{getattr(self, field.name):g}" for field in fields(self)]  # type: ignore[arg-type]
        return " ".join([self.family, *numbers])


@dataclass(frozen=True)
class Honest(CoreLie):
    """The truth."""

    family: ClassVar[str] = "truth"

    def report(self, truth: Report, public: CorePublic) -> Report:
        """Return the truth."""
        return truth


@dataclass(frozen=True)
class _Scaling(CoreLie):
    """A lie with one number, by which one field of a report is multiplied, up to ``most``."""

    factor: Positive
    field: ClassVar[str]
    kind: ClassVar[type[PortReport] | type[JobReport]]
    most: ClassVar[float] = math.inf

    def __post_init__(self) -> None:
        check_fields(self)

    def report(self, truth: Report, public: CorePublic) -> Report:
        """Return the report, of the OPM core that of every job, with the field multiplied."""
        if self.kind is JobReport:
            return tuple(self._scaled(job) for job in _jobs(truth, self))
        scaled: PortReport = self._scaled(_expect(truth, PortReport, self))
        return scaled

    def _scaled(self, report: Any) -> Any:
        scaled = getattr(report, self.field) * self.factor
        return replace(report, **{self.field: scaled if self.most == math.inf else min(self.most, scaled)})


class ScaledRequirements(_Scaling):
    """Needs ``factor`` times as much of every type as it really does (OgaSched)."""

    family, field, kind = "requirements", "requirements", PortReport


class ScaledWorth(_Scaling):
    """Reports ``factor`` times its utility (OgaSched: of every job; ESDP: of every use)."""

    family, field, kind = "utility", "worth", PortReport

    def report(self, truth: Report, public: CorePublic) -> Report:
        """Return a scaled worth."""
        return self._scaled(truth) if isinstance(truth, ChannelReport) else super().report(truth, public)


class ScaledCoefficient(_Scaling):
    """Reports ``factor`` times the true coefficients alpha (OgaSched, which pools what ports report)."""

    family, field, kind = "alpha", "coefficient", PortReport


@dataclass(frozen=True)
class HiddenChannels(CoreLie):
    """Conceals a share of its channels, at least one and never all.

    With OgaSched those to the most crowded instances (ports per instance) go first, with ESDP those with the
    largest requests; equals from the last.
    """

    share: OpenShare
    family: ClassVar[str] = "hidden edges"

    def __post_init__(self) -> None:
        check_fields(self)

    def report(self, truth: Report, public: CorePublic) -> Report:
        """Return a report with fewer channels; a port with a single one keeps it."""
        if isinstance(truth, ChannelReport):
            sizes = truth.requests.sum(axis=1).astype(np.float64)
            return replace(truth, offered=self._kept(truth.offered, sizes))
        port = _expect(truth, PortReport, self)
        return replace(port, channels=self._kept(port.channels, public.crowds.astype(np.float64)))

    def _kept(self, channels: NDArray[np.bool_], burden: NDArray[np.float64]) -> NDArray[np.bool_]:
        own = np.flatnonzero(channels)
        count = min(max(1, round(self.share * own.size)), own.size - 1)
        worst = own[np.argsort(burden[own], kind="stable")][own.size - count :] if count > 0 else own[:0]
        kept = channels.copy()
        kept[worst] = False
        return kept


@dataclass(frozen=True)
class ClaimedChannels(CoreLie):
    """Claims a share of the edges that it does not have (OgaSched): its allocation there is worth nothing."""

    share: PositiveShare
    family: ClassVar[str] = "claimed edges"

    def __post_init__(self) -> None:
        check_fields(self)

    def report(self, truth: Report, public: CorePublic) -> Report:
        """Return a report with more edges, to the least crowded instances first."""
        port = _expect(truth, PortReport, self)
        missing = np.flatnonzero(~port.channels)
        order = missing[np.argsort(public.crowds[missing], kind="stable")]
        claimed = port.channels.copy()
        claimed[order[: math.ceil(self.share * missing.size)]] = True
        return replace(port, channels=claimed)


@dataclass(frozen=True)
class ShiftedRequests(CoreLie):
    """Requests ``units`` more (or less) of every type on every channel (ESDP), up to the capacity.

    Where it needs a type it requests 1 at least: without, the channel would do nothing.
    """

    units: int
    family: ClassVar[str] = "requests"

    def __post_init__(self) -> None:
        object.__setattr__(self, "units", Whole(0).check("units + 2**20", self.units + 2**20) - 2**20)

    def report(self, truth: Report, public: CorePublic) -> Report:
        """Return shifted requests."""
        own = _expect(truth, ChannelReport, self)
        most = public.capacities.astype(np.int64)
        return replace(own, requests=np.clip(own.requests + self.units, np.minimum(own.requests, 1), most))


class ScaledBudget(_Scaling):
    """Claims ``factor`` times its budget (OPM)."""

    family, field, kind = "budget", "budget", JobReport


class ScaledDeadline(_Scaling):
    """Claims a stay ``factor`` times as long (OPM), one slot at least.

    Work after the true deadline is worth nothing.
    """

    family, field, kind = "deadline", "deadline", JobReport

    def _scaled(self, report: Any) -> Any:
        stay = max(1, round((report.deadline - report.arrival) * self.factor))
        return replace(report, deadline=report.arrival + stay)


class ScaledWeight(_Scaling):
    """Claims a utility ``factor`` times as high (OPM)."""

    family, field, kind = "weight", "weight", JobReport


class ScaledExponent(_Scaling):
    """Claims a utility with ``factor`` times the exponent, at most 1 (OPM): less curved, if ``factor`` > 1."""

    family, field, kind, most = "exponent", "exponent", JobReport, 1.0


@dataclass(frozen=True)
class Several(CoreLie):
    """Several lies at once, one after the other."""

    lies: tuple[CoreLie, ...]
    family: ClassVar[str] = "several"

    def report(self, truth: Report, public: CorePublic) -> Report:
        """Return the report with all lies."""
        report = truth
        for lie in self.lies:
            report = lie.report(report, public)
        return report

    def words(self) -> str:
        """Return all lies in words."""
        return " and ".join(lie.words() for lie in self.lies)


@legal
def refined(lie: CoreLie, ratio: Positive) -> CoreLie | None:
    """Return the lie with its factor multiplied by ``ratio``, or None if it has none.

    Examples
    --------
    >>> refined(ScaledBudget(2.0), 1.5)
    ScaledBudget(factor=3.0)
    """
    if not isinstance(lie, _Scaling):
        return None
    return replace(lie, factor=lie.factor * ratio)


@legal
def lies_for(core: Annotated[str, Named(tuple(_LIES))]) -> list[CoreLie]:
    """Return the coarse grid of lies to try on a core, the most telling of each family first.

    Parameters
    ----------
    core : {"ogasched", "esdp", "opm"}

    Raises
    ------
    InvalidParameterError
        If there is no such core.
    """
    return list(_LIES[core])


def _scalings(kind: type[_Scaling], *factors: float) -> list[CoreLie]:
    return [kind(factor) for factor in factors]


_LIES: dict[str, list[CoreLie]] = {
    "ogasched": [
        *_scalings(ScaledRequirements, 2.0, 0.5, 4.0, 0.8, 1.25, 0.25, 16.0),
        *_scalings(ScaledWorth, 2.0, 0.5, 5.0),
        *_scalings(ScaledCoefficient, 2.0, 0.5, 5.0),
        *(HiddenChannels(share) for share in (0.25, 0.5, 0.75)),
        *(ClaimedChannels(share) for share in (0.5, 1.0)),
    ],
    "esdp": [
        *(ShiftedRequests(units) for units in (-1, 1, -2)),
        *_scalings(ScaledWorth, 2.0, 0.5, 5.0),
        *(HiddenChannels(share) for share in (0.25, 0.5, 0.75)),
    ],
    "opm": [
        *_scalings(ScaledBudget, 2.0, 0.5, 5.0, 0.25),
        *_scalings(ScaledDeadline, 0.5, 1.5, 2.0, 0.75),
        *_scalings(ScaledWeight, 2.0, 0.5, 5.0, 20.0),
        *_scalings(ScaledExponent, 1.25, 0.8, 1.5),
    ],
}


def _expect(truth: Report, kind: type[_Kind], lie: CoreLie) -> _Kind:
    if not isinstance(truth, kind):
        raise InvalidReportError(f"{lie.words()}: truth is a {_named(truth)}, expected a {kind.__name__}")
    return truth


def _jobs(truth: Report, lie: CoreLie) -> tuple[JobReport, ...]:
    if not isinstance(truth, tuple):
        raise InvalidReportError(f"{lie.words()}: truth is a {_named(truth)}, expected a tuple of JobReport")
    return truth


def _named(truth: Any) -> str:
    return type(truth).__name__
