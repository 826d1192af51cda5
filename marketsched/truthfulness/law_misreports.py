"""Misreports of the law of arrival and duration: other times, other probabilities, cases left out.

The signals of a report keep their labels, because they are what the platform will see. Points of the
law are named by their place in ``StatementOfWork.requirements``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from marketsched.agents.strategies import PublicInformation
from marketsched.mechanisms.checks import finite_parameter, whole_parameter
from marketsched.mechanisms.errors import InvalidParameterError, InvalidReportError
from marketsched.mechanisms.sow import Requirement, StatementOfWork
from marketsched.truthfulness.misreports import Bounds, Misreport, count_of

NEVER = -1  # in place of a point of the law: the job does not arrive
LEAST = 1e-12  # probability; less is none


@dataclass(frozen=True)
class SpreadDuration(Misreport):
    """A share of every point's probability is moved ``rounds`` rounds down and up, half each.

    Durations stay between 1 and D_max. Size: ``share * rounds / S``.
    """

    rounds: int
    share: float = 1.0

    kind = "spread-duration"
    neutral: ClassVar[Mapping[str, float]] = {"rounds": 0, "share": 0.0}

    def __post_init__(self) -> None:
        object.__setattr__(self, "rounds", whole_parameter("rounds", self.rounds, 0))
        object.__setattr__(self, "share", finite_parameter("share", self.share, "[0, 1]"))

    def report(self, truth: StatementOfWork, public: PublicInformation) -> StatementOfWork:
        """Return the report with less certain durations."""
        longest = public.max_duration or int(truth.law.durations.max()) + self.rounds
        points = []
        for r in truth.requirements:
            points.append(Requirement(r.arrival, r.duration, r.probability * (1 - self.share), r.signal))
            for d in (max(1, r.duration - self.rounds), min(longest, r.duration + self.rounds)):
                points.append(Requirement(r.arrival, d, r.probability * self.share / 2, r.signal))
        return with_points(truth, points)

    def bounds(self, truth: StatementOfWork, public: PublicInformation) -> dict[str, Bounds]:
        """By D_max at most."""
        return {"rounds": (0.0, float(public.max_duration or truth.law.durations.max())), "share": (0.0, 1.0)}

    def distance(self, truth: StatementOfWork, public: PublicInformation) -> float:
        """Return the rounds moved over S."""
        return self.share * self.rounds / public.max_delay

    def words(self, truth: StatementOfWork) -> str:
        """Name rounds and share."""
        return f"spreads {self.share:.3g} of its durations by {count_of(self.rounds, 'round')}"


@dataclass(frozen=True)
class ShiftedArrival(Misreport):
    """Every arrival ``rounds`` later (earlier, if negative), never before birth.

    Size: ``|rounds| / S``.
    """

    rounds: int

    kind = "shift-arrival"
    neutral: ClassVar[Mapping[str, float]] = {"rounds": 0}

    def __post_init__(self) -> None:
        object.__setattr__(self, "rounds", whole_parameter("rounds", self.rounds, -(10**7)))

    def report(self, truth: StatementOfWork, public: PublicInformation) -> StatementOfWork:
        """Return the report with other arrivals."""
        return with_points(
            truth,
            [
                Requirement(max(truth.birth, r.arrival + self.rounds), r.duration, r.probability, r.signal)
                for r in truth.requirements
            ],
        )

    def bounds(self, truth: StatementOfWork, public: PublicInformation) -> dict[str, Bounds]:
        """By S at most."""
        return {"rounds": (-float(public.max_delay), float(public.max_delay))}

    def distance(self, truth: StatementOfWork, public: PublicInformation) -> float:
        """Return the rounds over S."""
        return abs(self.rounds) / public.max_delay

    def words(self, truth: StatementOfWork) -> str:
        """Name the rounds."""
        return f"announces its arrival {count_of(abs(self.rounds), 'round')} {'early' if self.rounds < 0 else 'late'}"


@dataclass(frozen=True)
class SpreadArrival(Misreport):
    """A share of every point's probability arrives ``rounds`` rounds earlier and later, half each.

    Never before birth. Size: ``share * rounds / S``.
    """

    rounds: int
    share: float = 0.5

    kind = "spread-arrival"
    neutral: ClassVar[Mapping[str, float]] = {"rounds": 0, "share": 0.0}

    def __post_init__(self) -> None:
        object.__setattr__(self, "rounds", whole_parameter("rounds", self.rounds, 0))
        object.__setattr__(self, "share", finite_parameter("share", self.share, "[0, 1]"))

    def report(self, truth: StatementOfWork, public: PublicInformation) -> StatementOfWork:
        """Return the report with less certain arrivals."""
        points = []
        for r in truth.requirements:
            points.append(Requirement(r.arrival, r.duration, r.probability * (1 - self.share), r.signal))
            for a in (max(truth.birth, r.arrival - self.rounds), r.arrival + self.rounds):
                points.append(Requirement(a, r.duration, r.probability * self.share / 2, r.signal))
        return with_points(truth, points)

    def bounds(self, truth: StatementOfWork, public: PublicInformation) -> dict[str, Bounds]:
        """By S at most."""
        return {"rounds": (0.0, float(public.max_delay)), "share": (0.0, 1.0)}

    def distance(self, truth: StatementOfWork, public: PublicInformation) -> float:
        """Return the rounds moved over S."""
        return self.share * self.rounds / public.max_delay

    def words(self, truth: StatementOfWork) -> str:
        """Name rounds and share."""
        return f"spreads {self.share:.3g} of its arrivals by {count_of(self.rounds, 'round')}"


@dataclass(frozen=True)
class ScaledMass(Misreport):
    """Every probability times ``factor``: the job comes more, or less, surely than it says.

    Size: ``|factor - 1|`` of the true mass.
    """

    factor: float

    kind = "scale-mass"
    neutral: ClassVar[Mapping[str, float]] = {"factor": 1.0}

    def __post_init__(self) -> None:
        object.__setattr__(self, "factor", finite_parameter("factor", self.factor, "(0, inf)"))

    def report(self, truth: StatementOfWork, public: PublicInformation) -> StatementOfWork:
        """Return the report with other probabilities."""
        if self.factor * float(truth.law.probabilities.sum()) > 1 + LEAST:
            raise InvalidReportError(f"probabilities times {self.factor:g}: expected a sum of at most 1")
        return with_points(
            truth,
            [Requirement(r.arrival, r.duration, r.probability * self.factor, r.signal) for r in truth.requirements],
        )

    def bounds(self, truth: StatementOfWork, public: PublicInformation) -> dict[str, Bounds]:
        """Up to certainty."""
        return {"factor": (0.01, max(1.0, 1 / truth.mass if truth.mass > 0 else 1.0))}

    def distance(self, truth: StatementOfWork, public: PublicInformation) -> float:
        """Return the mass moved."""
        return abs(self.factor - 1) * truth.mass

    def words(self, truth: StatementOfWork) -> str:
        """Name both masses."""
        return f"says that it comes with probability {self.factor * truth.mass:.3g} instead of {truth.mass:.3g}"


@dataclass(frozen=True)
class MovedMass(Misreport):
    """A share of the probability of point ``source`` is reported for point ``target``.

    -1 stands for not arriving at all. Size: the probability moved.
    """

    source: int
    target: int
    share: float = 1.0

    kind = "move-mass"
    neutral: ClassVar[Mapping[str, float]] = {"share": 0.0}

    def __post_init__(self) -> None:
        for name in ("source", "target"):
            object.__setattr__(self, name, whole_parameter(name, getattr(self, name), NEVER))
        object.__setattr__(self, "share", finite_parameter("share", self.share, "[0, 1]"))
        if self.source == self.target:
            raise InvalidParameterError(f"source = target = {self.source}: expected two points of the law")

    def report(self, truth: StatementOfWork, public: PublicInformation) -> StatementOfWork:
        """Return the report with probability moved."""
        points = truth.requirements
        moved = self.share * self._weight(truth)
        probabilities = [r.probability for r in points]
        if self.source != NEVER:
            probabilities[self.source] -= moved
        if self.target != NEVER:
            self._check(self.target, truth)
            probabilities[self.target] += moved
        columns = zip(points, probabilities, strict=True)
        return with_points(truth, [Requirement(r.arrival, r.duration, max(0.0, p), r.signal) for r, p in columns])

    def _check(self, point: int, truth: StatementOfWork) -> None:
        if point >= truth.law.arrivals.size:
            raise InvalidReportError(f"point {point} of a law of {truth.law.arrivals.size}: expected one of its points")

    def _weight(self, truth: StatementOfWork) -> float:
        if self.source == NEVER:
            return max(0.0, 1 - truth.mass)
        self._check(self.source, truth)
        return truth.requirements[self.source].probability

    def bounds(self, truth: StatementOfWork, public: PublicInformation) -> dict[str, Bounds]:
        """Any share."""
        return {"share": (0.0, 1.0)}

    def distance(self, truth: StatementOfWork, public: PublicInformation) -> float:
        """Return the probability moved."""
        return self.share * self._weight(truth)

    def words(self, truth: StatementOfWork) -> str:
        """Name both points."""
        return (
            f"moves {self.share * self._weight(truth):.3g} of probability from {_point(truth, self.source)} "
            f"to {_point(truth, self.target)}"
        )


@dataclass(frozen=True)
class LeftOut(Misreport):
    """A share of the probability of some points is not reported.

    ``rescaled``: the others take it in proportion. Size: the probability left out.
    """

    points: tuple[int, ...]
    share: float = 1.0
    rescaled: bool = False

    kind = "leave-out"
    neutral: ClassVar[Mapping[str, float]] = {"share": 0.0}

    def __post_init__(self) -> None:
        object.__setattr__(self, "points", tuple(sorted(whole_parameter("point", i, 0) for i in self.points)))
        object.__setattr__(self, "share", finite_parameter("share", self.share, "[0, 1]"))

    def report(self, truth: StatementOfWork, public: PublicInformation) -> StatementOfWork:
        """Return the report without these points."""
        if not self.points or self.points[-1] >= truth.law.arrivals.size:
            raise InvalidReportError(f"points {self.points}: expected some of 0 .. {truth.law.arrivals.size - 1}")
        left = [r.probability * (1 - self.share if i in self.points else 1.0) for i, r in enumerate(truth.requirements)]
        scale = truth.mass / sum(left) if self.rescaled and sum(left) > 0 else 1.0
        columns = zip(truth.requirements, left, strict=True)
        return with_points(truth, [Requirement(r.arrival, r.duration, p * scale, r.signal) for r, p in columns])

    def bounds(self, truth: StatementOfWork, public: PublicInformation) -> dict[str, Bounds]:
        """Any share."""
        return {"share": (0.0, 1.0)}

    def distance(self, truth: StatementOfWork, public: PublicInformation) -> float:
        """Return the probability left out."""
        return self.share * sum(r.probability for i, r in enumerate(truth.requirements) if i in self.points)

    def words(self, truth: StatementOfWork) -> str:
        """Name the points, or count them."""
        named = " and ".join(_point(truth, i) for i in self.points)
        what = named if len(self.points) <= 2 else f"{len(self.points)} of its {truth.law.arrivals.size} cases"
        how = "leaves out" if self.share == 1 else f"leaves out {self.share:.3g} of"
        return f"{how} {what}{', the others scaled up' if self.rescaled else ''}"


def with_points(truth: StatementOfWork, points: list[Requirement]) -> StatementOfWork:
    """Return ``truth`` with another law; points without probability are not reported.

    Raises
    ------
    InvalidReportError
        If none is left.
    """
    left = [point for point in points if point.probability > LEAST]
    if not left:
        raise InvalidReportError("nothing is left of the law: expected a case with positive probability")
    return StatementOfWork(truth.birth, truth.concurrency, truth.value, left)


def _point(truth: StatementOfWork, index: int) -> str:
    if index == NEVER:
        return "not arriving"
    r = truth.requirements[index]
    return f"(arrival {r.arrival}, {count_of(r.duration, 'round')})"
