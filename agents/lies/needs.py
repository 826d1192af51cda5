"""Lies about a job's needs: nodes, durations, arrivals and their probabilities.

The signals of a report keep their labels, because they are what the platform will see: changing them would
only make it drop the job. Points of the law are named by their place in ``StatementOfWork.requirements``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from marketsched.agents.lies.base import (
    LEAST,
    Misreport,
    count_of,
    figure,
    number,
    restated,
    whole,
)
from marketsched.agents.lies.shapes import scaled_durations
from marketsched.agents.lies.strategy import PublicInformation
from marketsched.mechanisms.errors import InvalidParameterError, InvalidReportError
from marketsched.mechanisms.law import Requirement
from marketsched.mechanisms.legal import Whole
from marketsched.mechanisms.limits import LAST_ROUND
from marketsched.mechanisms.sow import StatementOfWork

ABSENT = -1  # in place of a point of the law: the job does not arrive


@dataclass(frozen=True)
class InflateConcurrency(Misreport):
    """The owner declares ``k`` nodes more than the job needs (fewer, if negative).

    The declaration is clipped to 1 .. the smaller of capacity and the announced ``max_concurrency``. Too many are
    held while the job runs; with too few it never completes. Size: ``|k|`` as a share of the nodes needed.

    Examples
    --------
    >>> from marketsched.mechanisms.values import DeadlineValue
    >>> truth = StatementOfWork(1, 2, DeadlineValue(4.0, 9), [(2, 2, 1.0)])
    >>> InflateConcurrency(5).report(truth, PublicInformation(8, 20, 10, max_concurrency=4)).concurrency
    4
    """

    k: int = whole("nodes", -LAST_ROUND)

    kind = "inflate-concurrency"
    label = "nodes more"
    telling = 1

    def report(self, truth: StatementOfWork, public: PublicInformation) -> StatementOfWork:
        return restated(truth, concurrency=max(1, min(truth.concurrency + self.k, public.widest)))

    def check(self, truth: StatementOfWork, public: PublicInformation) -> None:
        """Refuse a number of nodes that would be clipped."""
        if not 1 <= truth.concurrency + self.k <= public.widest:
            raise InvalidReportError(f"concurrency = {truth.concurrency + self.k}: expected one that the market takes")

    def distance(self, truth: StatementOfWork, public: PublicInformation) -> float:
        return abs(self.k) / truth.concurrency

    def words(self, truth: StatementOfWork) -> str:
        return f"declares {count_of(truth.concurrency + self.k, 'node')} instead of {truth.concurrency}"


@dataclass(frozen=True)
class ScaleDuration(Misreport):
    """The owner claims that every case runs ``f`` times as long (rounded, at least 1 round).

    Durations are clipped to the announced ``max_duration``. The case seen as "signal 4" is then planned,
    and priced at submission, as if it lasted ``4 * f`` rounds. ``f`` > 0. Size: ``|f - 1|``.

    Examples
    --------
    >>> from marketsched.mechanisms.values import DeadlineValue
    >>> truth = StatementOfWork(1, 1, DeadlineValue(4.0, 9), [(2, 2, 0.5), (2, 4, 0.5)])
    >>> ScaleDuration(0.5).report(truth, PublicInformation(5, 20, 10)).requirements[1]
    Requirement(arrival=2, duration=2, probability=0.5, signal=4)
    """

    f: float = number("factor", "(0, inf)")

    kind = "scale-duration"
    label = "times the duration"
    telling = 0.5

    def report(self, truth: StatementOfWork, public: PublicInformation) -> StatementOfWork:
        """Return ``truth`` with every duration multiplied by ``f``; equal points merge."""
        longest = math.inf if public.max_duration is None else public.max_duration

        def scaled(duration: int) -> int:
            return int(max(1.0, min(float(np.rint(duration * self.f)), longest)))

        points = [Requirement(r.arrival, scaled(r.duration), r.probability, r.signal) for r in truth.requirements]
        return scaled_durations(truth, scaled, points)

    def distance(self, truth: StatementOfWork, public: PublicInformation) -> float:
        return abs(self.f - 1)

    def words(self, truth: StatementOfWork) -> str:
        return f"declares {figure(self.f, 1.0)} {'of' if self.f < 1 else 'times'} its rounds"


@dataclass(frozen=True)
class SpreadDuration(Misreport):
    """A share of every point's probability is moved ``rounds`` rounds down and up, half each.

    Durations stay between 1 and D_max. Size: ``share * rounds / S``.
    """

    rounds: int = whole("rounds", 0)
    share: float = number("share", "[0, 1]", default=1.0)

    kind = "spread-duration"

    def report(self, truth: StatementOfWork, public: PublicInformation) -> StatementOfWork:
        longest = public.max_duration or int(truth.law.durations.max()) + self.rounds
        points = []
        for r in truth.requirements:
            points.append(Requirement(r.arrival, r.duration, r.probability * (1 - self.share), r.signal))
            for d in (max(1, r.duration - self.rounds), min(longest, r.duration + self.rounds)):
                points.append(Requirement(r.arrival, d, r.probability * self.share / 2, r.signal))
        return restated(truth, points=points)

    def distance(self, truth: StatementOfWork, public: PublicInformation) -> float:
        return self.share * self.rounds / public.max_delay

    def words(self, truth: StatementOfWork) -> str:
        return f"spreads {figure(self.share, 1.0, 3)} of its durations by {count_of(self.rounds, 'round')}"


@dataclass(frozen=True)
class ShiftArrival(Misreport):
    """Every arrival ``rounds`` later (earlier, if negative), never before birth. Size: ``|rounds| / S``."""

    rounds: int = whole("rounds", -LAST_ROUND)

    kind = "shift-arrival"

    def report(self, truth: StatementOfWork, public: PublicInformation) -> StatementOfWork:
        points = [
            Requirement(max(truth.birth, r.arrival + self.rounds), r.duration, r.probability, r.signal)
            for r in truth.requirements
        ]
        return restated(truth, points=points)

    def distance(self, truth: StatementOfWork, public: PublicInformation) -> float:
        return abs(self.rounds) / public.max_delay

    def words(self, truth: StatementOfWork) -> str:
        return f"announces its arrival {count_of(abs(self.rounds), 'round')} {'early' if self.rounds < 0 else 'late'}"


@dataclass(frozen=True)
class SpreadArrival(Misreport):
    """A share of every point's probability arrives ``rounds`` rounds earlier and later, half each.

    Never before birth. Size: ``share * rounds / S``.
    """

    rounds: int = whole("rounds", 0)
    share: float = number("share", "[0, 1]", default=0.5)

    kind = "spread-arrival"

    def report(self, truth: StatementOfWork, public: PublicInformation) -> StatementOfWork:
        points = []
        for r in truth.requirements:
            points.append(Requirement(r.arrival, r.duration, r.probability * (1 - self.share), r.signal))
            for a in (max(truth.birth, r.arrival - self.rounds), r.arrival + self.rounds):
                points.append(Requirement(a, r.duration, r.probability * self.share / 2, r.signal))
        return restated(truth, points=points)

    def distance(self, truth: StatementOfWork, public: PublicInformation) -> float:
        return self.share * self.rounds / public.max_delay

    def words(self, truth: StatementOfWork) -> str:
        return f"spreads {figure(self.share, 1.0, 3)} of its arrivals by {count_of(self.rounds, 'round')}"


@dataclass(frozen=True)
class ScaleMass(Misreport):
    """Every probability times ``factor``: the job comes more, or less, surely than it says.

    Size: ``|factor - 1|`` of the true mass.
    """

    factor: float = number("factor", "(0, inf)")

    kind = "scale-mass"

    def report(self, truth: StatementOfWork, public: PublicInformation) -> StatementOfWork:
        if self.factor * float(truth.law.probabilities.sum()) > 1 + LEAST:
            raise InvalidReportError(f"probabilities times {self.factor:g}: expected a sum of at most 1")
        points = truth.requirements
        return restated(
            truth, points=[Requirement(r.arrival, r.duration, r.probability * self.factor, r.signal) for r in points]
        )

    def distance(self, truth: StatementOfWork, public: PublicInformation) -> float:
        return abs(self.factor - 1) * truth.mass

    def words(self, truth: StatementOfWork) -> str:
        stated = figure(self.factor * truth.mass, truth.mass, 3)
        return (
            f"says that it comes with probability {stated} instead of {figure(truth.mass, self.factor * truth.mass, 3)}"
        )


@dataclass(frozen=True)
class MoveMass(Misreport):
    """A share of the probability of point ``source`` is reported for point ``target``.

    -1 stands for not arriving at all. Size: the probability moved.
    """

    source: int = whole("source", ABSENT, searched=False)
    target: int = whole("target", ABSENT, searched=False)
    share: float = number("share", "[0, 1]", default=1.0)

    kind = "move-mass"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.source == self.target:
            raise InvalidParameterError(f"source = target = {self.source}: expected two points of the law")

    def report(self, truth: StatementOfWork, public: PublicInformation) -> StatementOfWork:
        points = truth.requirements
        moved = self.share * self._weight(truth)
        probabilities = [r.probability for r in points]
        if self.source != ABSENT:
            probabilities[self.source] -= moved
        if self.target != ABSENT:
            self._check(self.target, truth)
            probabilities[self.target] += moved
        columns = zip(points, probabilities, strict=True)
        return restated(truth, points=[Requirement(r.arrival, r.duration, max(0.0, p), r.signal) for r, p in columns])

    def _check(self, point: int, truth: StatementOfWork) -> None:
        if point >= truth.law.arrivals.size:
            raise InvalidReportError(f"point {point} of a law of {truth.law.arrivals.size}: expected one of its points")

    def _weight(self, truth: StatementOfWork) -> float:
        if self.source == ABSENT:
            return max(0.0, 1 - truth.mass)
        self._check(self.source, truth)
        return truth.requirements[self.source].probability

    def distance(self, truth: StatementOfWork, public: PublicInformation) -> float:
        return self.share * self._weight(truth)

    def words(self, truth: StatementOfWork) -> str:
        return (
            f"moves {self.share * self._weight(truth):.3g} of probability from {_point(truth, self.source)} "
            f"to {_point(truth, self.target)}"
        )


@dataclass(frozen=True)
class LeaveOut(Misreport):
    """A share of the probability of some points is not reported.

    ``rescaled``: the others take it in proportion. Size: the probability left out.
    """

    points: tuple[int, ...]
    share: float = number("share", "[0, 1]", default=1.0)
    rescaled: bool = False

    kind = "leave-out"

    def __post_init__(self) -> None:
        object.__setattr__(self, "points", tuple(sorted(Whole(0).check("point", i) for i in self.points)))
        super().__post_init__()

    def report(self, truth: StatementOfWork, public: PublicInformation) -> StatementOfWork:
        if not self.points or self.points[-1] >= truth.law.arrivals.size:
            raise InvalidReportError(f"points {self.points}: expected some of 0 .. {truth.law.arrivals.size - 1}")
        left = [r.probability * (1 - self.share if i in self.points else 1.0) for i, r in enumerate(truth.requirements)]
        scale = truth.mass / sum(left) if self.rescaled and sum(left) > 0 else 1.0
        columns = zip(truth.requirements, left, strict=True)
        return restated(truth, points=[Requirement(r.arrival, r.duration, p * scale, r.signal) for r, p in columns])

    def distance(self, truth: StatementOfWork, public: PublicInformation) -> float:
        return self.share * sum(r.probability for i, r in enumerate(truth.requirements) if i in self.points)

    def words(self, truth: StatementOfWork) -> str:
        """Name the points, or count them."""
        named = " and ".join(_point(truth, i) for i in self.points)
        what = named if len(self.points) <= 2 else f"{len(self.points)} of its {truth.law.arrivals.size} cases"
        how = "leaves out" if self.share == 1 else f"leaves out {figure(self.share, 1.0, 3)} of"
        return f"{how} {what}{', the others scaled up' if self.rescaled else ''}"


def _point(truth: StatementOfWork, index: int) -> str:
    if index == ABSENT:
        return "not arriving"
    r = truth.requirements[index]
    return f"(arrival {r.arrival}, {count_of(r.duration, 'round')})"
