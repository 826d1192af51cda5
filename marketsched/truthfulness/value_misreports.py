"""Misreports of what a job is worth, until when, on how many nodes, and for how long."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from marketsched.agents.strategies import (
    InflateConcurrency,
    PublicInformation,
    ScaleDuration,
    ScaleValue,
    ShiftDeadline,
    value_until,
)
from marketsched.mechanisms.checks import finite_parameter, whole_parameter
from marketsched.mechanisms.errors import InvalidReportError
from marketsched.mechanisms.limits import last_useful_completion
from marketsched.mechanisms.sow import StatementOfWork
from marketsched.mechanisms.values import TableValue, ValueCurve
from marketsched.truthfulness.misreports import Bounds, Misreport, count_of


@dataclass(frozen=True)
class ScaledValue(Misreport):
    """Every value times ``factor``, at most the announced V_max.

    Size: ``|factor - 1|``.
    """

    factor: float

    kind = "scale-value"
    neutral: ClassVar[Mapping[str, float]] = {"factor": 1.0}

    def __post_init__(self) -> None:
        object.__setattr__(self, "factor", finite_parameter("factor", self.factor))

    def report(self, truth: StatementOfWork, public: PublicInformation) -> StatementOfWork:
        """Return the scaled report."""
        return ScaleValue(self.factor).report(truth, public)

    def bounds(self, truth: StatementOfWork, public: PublicInformation) -> dict[str, Bounds]:
        """Down to nothing, up to V_max (four times, if there is none)."""
        highest = truth.value.highest
        top = 4.0 if public.max_value is None or highest <= 0 else public.max_value / highest
        return {"factor": (0.0, max(1.0, min(top, 20.0)))}

    def distance(self, truth: StatementOfWork, public: PublicInformation) -> float:
        """Return the change of the factor."""
        return abs(self.factor - 1)

    def words(self, truth: StatementOfWork) -> str:
        """Name the factor."""
        return (
            f"reports {self.factor:.4g} of its value"
            if self.factor < 1
            else f"reports {self.factor:.4g} times its value"
        )


@dataclass(frozen=True)
class ShiftedValue(Misreport):
    """Every positive value plus ``credits``, kept between 0 and V_max.

    Size: ``|credits|`` as a share of the highest true value.
    """

    credits: float

    kind = "shift-value"
    neutral: ClassVar[Mapping[str, float]] = {"credits": 0.0}

    def __post_init__(self) -> None:
        object.__setattr__(self, "credits", finite_parameter("credits", self.credits, "(-inf, inf)"))

    def report(self, truth: StatementOfWork, public: PublicInformation) -> StatementOfWork:
        """Return the report with the curve moved up or down."""
        if self.credits == 0:
            return truth  # as it is, not as a table
        last = last_useful_completion(truth, public.max_delay, public.horizon)
        times = range(truth.birth + 1, last + 1)
        if not times:
            raise InvalidReportError("the job has no value: expected one that can be moved")
        ceiling = math.inf if public.max_value is None else public.max_value
        values = np.clip(truth.value.table(times.start, len(times)) + self.credits, 0.0, ceiling)
        return _with_value(truth, TableValue(dict(zip(times, values.tolist(), strict=True))))

    def bounds(self, truth: StatementOfWork, public: PublicInformation) -> dict[str, Bounds]:
        """By the highest value at most, either way."""
        highest = truth.value.highest
        room = highest if public.max_value is None else min(highest, public.max_value - highest)
        return {"credits": (-highest, max(room, 0.0))}

    def distance(self, truth: StatementOfWork, public: PublicInformation) -> float:
        """Return the shift over the highest value."""
        return abs(self.credits) / truth.value.highest if truth.value.highest > 0 else abs(self.credits)

    def words(self, truth: StatementOfWork) -> str:
        """Name the credits."""
        return f"reports {abs(self.credits):.4g} credits {'less' if self.credits < 0 else 'more'} at every time"


@dataclass(frozen=True)
class ShiftedDeadline(Misreport):
    """The value curve ``rounds`` later (patient), or earlier if negative (in a hurry).

    Size: ``|rounds| / S``.
    """

    rounds: int

    kind = "shift-deadline"
    neutral: ClassVar[Mapping[str, float]] = {"rounds": 0}

    def __post_init__(self) -> None:
        object.__setattr__(self, "rounds", whole_parameter("rounds", self.rounds, -(10**7)))

    def report(self, truth: StatementOfWork, public: PublicInformation) -> StatementOfWork:
        """Return the shifted report."""
        return ShiftDeadline(self.rounds).report(truth, public)

    def bounds(self, truth: StatementOfWork, public: PublicInformation) -> dict[str, Bounds]:
        """By S at most, either way."""
        return {"rounds": (-float(public.max_delay), float(public.max_delay))}

    def distance(self, truth: StatementOfWork, public: PublicInformation) -> float:
        """Return the shift over S."""
        return abs(self.rounds) / public.max_delay

    def words(self, truth: StatementOfWork) -> str:
        """Name the rounds."""
        return f"claims a deadline {count_of(abs(self.rounds), 'round')} {'earlier' if self.rounds < 0 else 'later'}"


@dataclass(frozen=True)
class CutDeadline(Misreport):
    """The last ``rounds`` completions of positive value are reported as worthless.

    Size: ``rounds / S``.
    """

    rounds: int

    kind = "cut-deadline"
    neutral: ClassVar[Mapping[str, float]] = {"rounds": 0}

    def __post_init__(self) -> None:
        object.__setattr__(self, "rounds", whole_parameter("rounds", self.rounds, 0))

    def report(self, truth: StatementOfWork, public: PublicInformation) -> StatementOfWork:
        """Return the report whose curve ends earlier."""
        last = last_useful_completion(truth, public.max_delay, public.horizon) - self.rounds
        if last <= truth.birth:
            raise InvalidReportError(f"{self.rounds} rounds are cut: expected some value to be left")
        return _with_value(truth, value_until(truth, last, public))

    def bounds(self, truth: StatementOfWork, public: PublicInformation) -> dict[str, Bounds]:
        """Until nothing is left."""
        last = last_useful_completion(truth, public.max_delay, public.horizon)
        return {"rounds": (0.0, float(max(0, last - truth.birth - 1)))}

    def distance(self, truth: StatementOfWork, public: PublicInformation) -> float:
        """Return the rounds over S."""
        return self.rounds / public.max_delay

    def words(self, truth: StatementOfWork) -> str:
        """Name the rounds."""
        return f"calls its last {count_of(self.rounds, 'useful completion')} worthless"


@dataclass(frozen=True)
class DeclaredNodes(Misreport):
    """``more`` nodes than the job needs (fewer, if negative: such a job never completes).

    Size: ``|more|`` as a share of the nodes needed.
    """

    more: int

    kind = "declare-nodes"
    neutral: ClassVar[Mapping[str, float]] = {"more": 0}

    def __post_init__(self) -> None:
        object.__setattr__(self, "more", whole_parameter("more", self.more, -(10**7)))

    def report(self, truth: StatementOfWork, public: PublicInformation) -> StatementOfWork:
        """Return the report with another concurrency."""
        told = InflateConcurrency(self.more).report(truth, public)
        if told.concurrency != truth.concurrency + self.more:
            raise InvalidReportError(
                f"concurrency = {truth.concurrency + self.more}: expected one that the market takes"
            )
        return told

    def bounds(self, truth: StatementOfWork, public: PublicInformation) -> dict[str, Bounds]:
        """From one node to all that may be declared."""
        widest = min(public.capacity, public.max_concurrency or public.capacity)
        return {"more": (1.0 - truth.concurrency, float(widest - truth.concurrency))}

    def distance(self, truth: StatementOfWork, public: PublicInformation) -> float:
        """Return the nodes over those needed."""
        return abs(self.more) / truth.concurrency

    def words(self, truth: StatementOfWork) -> str:
        """Name both numbers."""
        return f"declares {count_of(truth.concurrency + self.more, 'node')} instead of {truth.concurrency}"


@dataclass(frozen=True)
class ScaledDuration(Misreport):
    """Every case is said to run ``factor`` times as long; the signals keep their labels.

    Size: ``|factor - 1|``.
    """

    factor: float

    kind = "scale-duration"
    neutral: ClassVar[Mapping[str, float]] = {"factor": 1.0}

    def __post_init__(self) -> None:
        object.__setattr__(self, "factor", finite_parameter("factor", self.factor, "(0, inf)"))

    def report(self, truth: StatementOfWork, public: PublicInformation) -> StatementOfWork:
        """Return the report with other durations, at most D_max."""
        return ScaleDuration(self.factor).report(truth, public)

    def bounds(self, truth: StatementOfWork, public: PublicInformation) -> dict[str, Bounds]:
        """From one round to D_max (four times, if there is none)."""
        shortest, longest = int(truth.law.durations.min()), int(truth.law.durations.max())
        top = 4.0 if public.max_duration is None else min(20.0, public.max_duration / shortest)
        return {"factor": (1.0 / (2 * longest), max(1.0, top))}

    def distance(self, truth: StatementOfWork, public: PublicInformation) -> float:
        """Return the change of the factor."""
        return abs(self.factor - 1)

    def words(self, truth: StatementOfWork) -> str:
        """Name the factor."""
        return f"declares {self.factor:.4g} {'of' if self.factor < 1 else 'times'} its rounds"


def _with_value(truth: StatementOfWork, value: ValueCurve) -> StatementOfWork:
    return StatementOfWork(truth.birth, truth.concurrency, value, truth.requirements)
