"""Lies about shapes: the kinds of nodes, demands, tasks and durations of the ways in which a job can run on a cluster.

The law keeps its cases and their labels; its durations become those of the first reported shape on the kind that it
names first. The true shapes determine the value of a booking to the owner: of those that fit inside it starts the one
that is expected to bring most, or none (`marketsched.mechanisms.resources.bookings.real_run`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from marketsched.agents.lies.base import Misreport, count_of, figure, number, whole
from marketsched.agents.lies.strategy import PublicInformation
from marketsched.mechanisms.errors import InvalidReportError
from marketsched.mechanisms.law import Requirement
from marketsched.mechanisms.resources.cluster import Cluster
from marketsched.mechanisms.resources.shapes import Shape, cases_of, options_of
from marketsched.mechanisms.sow import StatementOfWork

NO_WORTH = 1e-9  # of the value: shapes are worth more than nothing
HIGHEST_FACTOR = 8.0  # of demands, tasks and durations, in a search


def reshaped(truth: StatementOfWork, shapes: Iterable[Shape]) -> StatementOfWork:
    """Return ``truth`` with other shapes, and its law with the durations of the first of them.

    Raises InvalidReportError if the truth has no shapes, none are left, or they have other cases than the truth.
    """
    new = tuple(shapes)
    if not truth.shapes or not new:
        raise InvalidReportError(place="shapes", value=new, legal="at least one, of a job that has shapes")
    known, durations = cases_of(truth.shapes), cases_of(new)
    if len(known) != len(durations):
        raise InvalidReportError(place="shapes[0].on", value=durations, legal=f"{len(known)} durations on each kind")
    points = [
        Requirement(r.arrival, durations[known.index(r.duration)], r.probability, r.signal) for r in truth.requirements
    ]
    return StatementOfWork(truth.birth, new[0].tasks, truth.value, points, new, **truth.terms)


@dataclass(frozen=True)
class _OfShapes(Misreport):
    """Base of lies that change shapes one by one."""

    def changed(self, shape: Shape, public: PublicInformation) -> Shape | None:
        """Return the reported shape in place of one shape; None: it is left out."""
        raise NotImplementedError

    def report(self, truth: StatementOfWork, public: PublicInformation) -> StatementOfWork:
        made = [self.changed(shape, public) for shape in truth.shapes]
        return reshaped(truth, [shape for shape in made if shape is not None])

    def distance(self, truth: StatementOfWork, public: PublicInformation) -> float:
        """Return 1: a kind is named, or not."""
        return 1.0


@dataclass(frozen=True)
class LeaveOutShape(Misreport):
    """The owner does not say that its job can run as shape number ``shape``. Size: that shape as a share of all."""

    shape: int = whole("shape", 0, searched=False)

    kind = "leave-out-shape"

    def report(self, truth: StatementOfWork, public: PublicInformation) -> StatementOfWork:
        _check_place(truth, self.shape)
        return reshaped(truth, truth.shapes[: self.shape] + truth.shapes[self.shape + 1 :])

    def distance(self, truth: StatementOfWork, public: PublicInformation) -> float:
        return 1 / max(1, len(truth.shapes))

    def words(self, truth: StatementOfWork) -> str:
        return f"leaves out its shape {self.shape}"


@dataclass(frozen=True)
class PutShapeFirst(Misreport):
    """The owner names shape number ``shape`` first: of equally good ones the first is taken. Size: 1 / S."""

    shape: int = whole("shape", 0, searched=False)

    kind = "put-shape-first"

    def report(self, truth: StatementOfWork, public: PublicInformation) -> StatementOfWork:
        _check_place(truth, self.shape)
        shapes = truth.shapes
        return reshaped(truth, (shapes[self.shape], *shapes[: self.shape], *shapes[self.shape + 1 :]))

    def distance(self, truth: StatementOfWork, public: PublicInformation) -> float:
        return 1 / public.max_delay

    def words(self, truth: StatementOfWork) -> str:
        return f"names its shape {self.shape} first"


@dataclass(frozen=True)
class LeaveOutKind(_OfShapes):
    """The owner says of no shape that it runs on nodes of kind ``on``; shapes for it alone are left out. Size: 1."""

    on: str

    kind = "leave-out-kind"

    def changed(self, shape: Shape, public: PublicInformation) -> Shape | None:
        left = {kind: durations for kind, durations in shape.on.items() if kind != self.on}
        return replace(shape, on=left) if left else None

    def words(self, truth: StatementOfWork) -> str:
        return f"says that it does not run on {self.on}"


@dataclass(frozen=True)
class AddKind(_OfShapes):
    """The owner lists kind ``on`` for every shape that fits there, with ``factor`` > 0 times its durations. Size: 1."""

    on: str
    factor: float = number("factor", "(0, inf)", searched=False, default=1.0)

    kind = "add-kind"

    def changed(self, shape: Shape, public: PublicInformation) -> Shape | None:
        """Return the shape with one kind more, if it fits there."""
        if self.on in shape.on or public.cluster is None:
            return shape
        durations = _times(shape.on[shape.kinds[0]], self.factor, public)
        alone = replace(shape, on={self.on: durations})
        return replace(shape, on={**shape.on, self.on: durations}) if _fits(alone, public.cluster) else shape

    def words(self, truth: StatementOfWork) -> str:
        return f"says that it runs on {self.on}, too, in {figure(self.factor, 1.0)} times the rounds of its first kind"


@dataclass(frozen=True)
class SwapKinds(_OfShapes):
    """The owner says of two kinds of nodes that it takes on each as long as it takes on the other. Size: 1."""

    one: str
    other: str

    kind = "swap-kinds"

    def changed(self, shape: Shape, public: PublicInformation) -> Shape | None:
        """Return the shape with the durations of the two exchanged, if it runs on both."""
        if self.one not in shape.on or self.other not in shape.on:
            return shape
        return replace(shape, on={**shape.on, self.one: shape.on[self.other], self.other: shape.on[self.one]})

    def words(self, truth: StatementOfWork) -> str:
        return f"exchanges its durations on {self.one} and {self.other}"


@dataclass(frozen=True)
class StretchOnKind(_OfShapes):
    """The owner claims ``factor`` > 0 times its rounds on kind ``on`` (rounded, at least 1). Size: ``|factor - 1|``."""

    on: str
    factor: float = number("factor", "(0, inf)")

    kind = "stretch-on-kind"

    def changed(self, shape: Shape, public: PublicInformation) -> Shape | None:
        if self.on not in shape.on:
            return shape
        return replace(shape, on={**shape.on, self.on: _times(shape.on[self.on], self.factor, public)})

    def distance(self, truth: StatementOfWork, public: PublicInformation) -> float:
        return abs(self.factor - 1)

    def words(self, truth: StatementOfWork) -> str:
        return f"declares {figure(self.factor, 1.0)} times its rounds on {self.on}"


@dataclass(frozen=True)
class ScaleDemand(_OfShapes):
    """The owner claims that each task needs ``factor`` times as much of a resource, rounded up to bookable amounts.

    Size: ``|factor - 1|``; ``factor`` > 0.
    """

    resource: str
    factor: float = number("factor", "(0, inf)")

    kind = "scale-demand"

    def changed(self, shape: Shape, public: PublicInformation) -> Shape | None:
        """Return the shape with another demand, if it needs the resource."""
        if self.resource not in shape.each or public.cluster is None:
            return shape
        known = next((each for each in public.cluster.resources if each.name == self.resource), None)
        if known is None:
            return shape
        parts = math.ceil(round(shape.each[self.resource] * self.factor * known.parts, 6))
        if known.device and parts > known.parts:
            parts = math.ceil(parts / known.parts) * known.parts
        return replace(shape, each={**shape.each, self.resource: parts / known.parts})

    def distance(self, truth: StatementOfWork, public: PublicInformation) -> float:
        return abs(self.factor - 1)

    def words(self, truth: StatementOfWork) -> str:
        return f"declares {figure(self.factor, 1.0)} times the {self.resource} of a task"


@dataclass(frozen=True)
class ScaleTasks(_OfShapes):
    """The owner claims ``factor`` > 0 times as many tasks of each shape (at least 1). Size: ``|factor - 1|``."""

    factor: float = number("factor", "(0, inf)")

    kind = "scale-tasks"

    def changed(self, shape: Shape, public: PublicInformation) -> Shape | None:
        return replace(shape, tasks=max(1, round(shape.tasks * self.factor)))

    def distance(self, truth: StatementOfWork, public: PublicInformation) -> float:
        return abs(self.factor - 1)

    def words(self, truth: StatementOfWork) -> str:
        return f"declares {figure(self.factor, 1.0)} times its tasks"


@dataclass(frozen=True)
class TasksPerNode(_OfShapes):
    """The owner lets at most ``most`` >= 1 tasks of each shape run on one node. Size: 1."""

    most: int = whole("most", 1, searched=False)

    kind = "tasks-per-node"

    def changed(self, shape: Shape, public: PublicInformation) -> Shape | None:
        return replace(shape, per_node=self.most)

    def words(self, truth: StatementOfWork) -> str:
        return f"lets at most {count_of(self.most, 'task')} run on one node"


@dataclass(frozen=True)
class AddDummyShape(Misreport):
    """The owner invents a way to run on one unit of one resource whose result is worth next to nothing. Size: 1.

    ``first`` tells whether it stands before the true shapes, or behind them.
    """

    first: bool = False

    kind = "add-dummy-shape"

    def report(self, truth: StatementOfWork, public: PublicInformation) -> StatementOfWork:
        if not truth.shapes or public.cluster is None:
            raise InvalidReportError(place="shapes", value=truth.shapes, legal="at least one, on a cluster")
        like = truth.shapes[0]
        resource = next(name for name, amount in like.each.items() if amount > 0)
        each = {resource: min(1.0, like.each[resource])}
        dummy = replace(like, each=each, tasks=1, per_node=None, worth=NO_WORTH)
        return reshaped(truth, [dummy, *truth.shapes] if self.first else [*truth.shapes, dummy])

    def distance(self, truth: StatementOfWork, public: PublicInformation) -> float:
        return 1.0

    def words(self, truth: StatementOfWork) -> str:
        return f"says {'first' if self.first else 'last'} that it runs on next to nothing, for next to no worth"


@dataclass(frozen=True)
class ClaimWorth(Misreport):
    """The owner claims that the result of shape ``shape`` is worth ``worth``, in (0, 1]. Size: the change of it."""

    shape: int = whole("shape", 0, searched=False)
    worth: float = number("worth", "(0, 1]", searched=False, default=1.0)

    kind = "claim-worth"

    def report(self, truth: StatementOfWork, public: PublicInformation) -> StatementOfWork:
        _check_place(truth, self.shape)
        made = [replace(s, worth=self.worth) if i == self.shape else s for i, s in enumerate(truth.shapes)]
        return reshaped(truth, made)

    def distance(self, truth: StatementOfWork, public: PublicInformation) -> float:
        return abs(self.worth - truth.shapes[self.shape].worth)

    def words(self, truth: StatementOfWork) -> str:
        return f"says that its shape {self.shape} is worth {figure(self.worth, 1.0)} of its value"


def scaled_durations(
    truth: StatementOfWork, scaled: Callable[[int], int], points: list[Requirement]
) -> StatementOfWork:
    """Return ``truth`` with all durations mapped, those of its shapes too; ``points`` is the law without shapes."""
    if not truth.shapes:
        return StatementOfWork(truth.birth, truth.concurrency, truth.value, points, **truth.terms)
    mapped = [
        replace(shape, on={kind: tuple(map(scaled, durations)) for kind, durations in shape.on.items()})
        for shape in truth.shapes
    ]
    return reshaped(truth, mapped)


def _check_place(truth: StatementOfWork, place: int) -> None:
    if place >= len(truth.shapes):
        raise InvalidReportError(place="shape", value=place, legal=f"one of 0 .. {len(truth.shapes) - 1}")


def _times(durations: tuple[int, ...], factor: float, public: PublicInformation) -> tuple[int, ...]:
    longest = math.inf if public.max_duration is None else public.max_duration
    return tuple(int(max(1, min(round(d * factor), longest))) for d in durations)


def _fits(shape: Shape, cluster: Cluster) -> bool:
    try:
        options_of([shape], cluster)
    except InvalidReportError:
        return False
    return True
