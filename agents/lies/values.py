"""Lies about the value of a job and its deadline."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from marketsched.agents.lies.base import (
    Misreport,
    count_of,
    figure,
    number,
    restated,
    whole,
)
from marketsched.agents.lies.strategy import PublicInformation
from marketsched.mechanisms.errors import InvalidReportError
from marketsched.mechanisms.limits import LAST_ROUND, last_useful_completion
from marketsched.mechanisms.sow import StatementOfWork
from marketsched.mechanisms.values import DeadlineValue, FallingValue, LinearValue, TableValue, ValueCurve


@dataclass(frozen=True)
class ScaleValue(Misreport):
    """The owner overstates (``f > 1``) or understates (``< 1``) the value of every completion.

    Values are clipped to the announced ``max_value``; ``f`` >= 0. The size of the lie is ``|f - 1|``.

    Examples
    --------
    >>> truth = StatementOfWork(1, 1, DeadlineValue(4.0, 6), [(2, 1, 1.0)])
    >>> ScaleValue(3.0).report(truth, PublicInformation(5, 20, 10, max_value=10.0)).value
    DeadlineValue(value=10.0, deadline=6)
    """

    f: float = number("factor", "[0, inf)")

    kind = "scale-value"
    label = "times the value"
    telling = 0.5

    def report(self, truth: StatementOfWork, public: PublicInformation) -> StatementOfWork:
        return restated(truth, value=_scaled(truth, public, self.f))

    def distance(self, truth: StatementOfWork, public: PublicInformation) -> float:
        return abs(self.f - 1)

    def words(self, truth: StatementOfWork) -> str:
        return f"reports {figure(self.f, 1.0)} {'of' if self.f < 1 else 'times'} its value"


@dataclass(frozen=True)
class ShiftValue(Misreport):
    """Every positive value plus ``credits``, kept between 0 and V_max.

    Size: ``|credits|`` as a share of the highest true value.
    """

    credits: float = number("credits", "(-inf, inf)")

    kind = "shift-value"

    def report(self, truth: StatementOfWork, public: PublicInformation) -> StatementOfWork:
        if self.credits == 0:
            return truth  # as it is, not as a table
        last = last_useful_completion(truth, public.max_delay, public.horizon)
        times = np.arange(truth.birth + 1, last + 1)
        if not times.size:
            raise InvalidReportError("the job has no value: expected one that can be moved")
        ceiling = math.inf if public.max_value is None else public.max_value
        values = np.clip(truth.value.table(int(times[0]), times.size) + self.credits, 0.0, ceiling)
        return restated(truth, value=_tabulated(times, values))

    def distance(self, truth: StatementOfWork, public: PublicInformation) -> float:
        return abs(self.credits) / truth.value.highest if truth.value.highest > 0 else abs(self.credits)

    def words(self, truth: StatementOfWork) -> str:
        return f"reports {abs(self.credits):.4g} credits {'less' if self.credits < 0 else 'more'} at every time"


@dataclass(frozen=True)
class ShiftDeadline(Misreport):
    """The owner claims to be patient (``k > 0``) or in a hurry (``< 0``): V'(time) = V(time - k).

    Size: ``|k| / S``, both in rounds.

    Examples
    --------
    >>> truth = StatementOfWork(1, 1, LinearValue(4.0, 5, 1.0, 8), [(2, 1, 1.0)])
    >>> ShiftDeadline(-2).report(truth, PublicInformation(5, 20, 10)).value
    LinearValue(value=4.0, start=3, slope=1.0, deadline=6)
    """

    k: int = whole("rounds", -LAST_ROUND)

    kind = "shift-deadline"
    label = "rounds later"
    telling = 12

    def report(self, truth: StatementOfWork, public: PublicInformation) -> StatementOfWork:
        return restated(truth, value=_shifted(truth, public, self.k))

    def distance(self, truth: StatementOfWork, public: PublicInformation) -> float:
        return abs(self.k) / public.max_delay

    def words(self, truth: StatementOfWork) -> str:
        return f"claims a deadline {count_of(abs(self.k), 'round')} {'earlier' if self.k < 0 else 'later'}"


@dataclass(frozen=True)
class CutDeadline(Misreport):
    """The last ``rounds`` completions of positive value are reported as worthless. Size: ``rounds / S``."""

    rounds: int = whole("rounds", 0)

    kind = "cut-deadline"

    def report(self, truth: StatementOfWork, public: PublicInformation) -> StatementOfWork:
        last = last_useful_completion(truth, public.max_delay, public.horizon) - self.rounds
        if last <= truth.birth:
            raise InvalidReportError(f"{self.rounds} rounds are cut: expected some value to be left")
        return restated(truth, value=value_until(truth, last, public))

    def distance(self, truth: StatementOfWork, public: PublicInformation) -> float:
        return self.rounds / public.max_delay

    def words(self, truth: StatementOfWork) -> str:
        return f"calls its last {count_of(self.rounds, 'useful completion')} worthless"


def value_until(truth: StatementOfWork, last: int, public: PublicInformation) -> ValueCurve:
    """Return the value curve of ``truth`` up to completion time ``last``, 0 afterwards."""
    curve = truth.value
    if curve.last <= last:
        return curve
    match curve:
        case TableValue():
            return TableValue({t: v for t, v in curve.values.items() if t <= last} or {truth.birth + 1: 0.0})
        case DeadlineValue():
            return DeadlineValue(curve.value, last)
        case LinearValue() | FallingValue():
            return replace(curve, deadline=min(curve.deadline, last))
    times = _completions(truth, public)
    return _tabulated(times, np.where(times <= last, np.asarray(curve(times)), 0.0))


def _scaled(truth: StatementOfWork, public: PublicInformation, factor: float) -> ValueCurve:
    """``min(factor * V, max_value)``, of the curve's own kind where it stays of that kind."""
    curve = truth.value
    ceiling = math.inf if public.max_value is None else public.max_value
    match curve:
        case TableValue():
            return TableValue({t: min(factor * v, ceiling) for t, v in curve.values.items()})
        case DeadlineValue():
            return DeadlineValue(min(factor * curve.value, ceiling), curve.deadline)
        case LinearValue() if factor * curve.value <= ceiling:
            return replace(curve, value=factor * curve.value, slope=factor * curve.slope)
        case FallingValue() if factor * curve.value <= ceiling:
            return replace(curve, value=factor * curve.value)
    times = _completions(truth, public)
    return _tabulated(times, np.minimum(factor * np.asarray(curve(times)), ceiling))


def _shifted(truth: StatementOfWork, public: PublicInformation, rounds: int) -> ValueCurve:
    """``V(f - rounds)``; completions earlier than any of the truth are worth its highest value."""
    curve = truth.value
    match curve:
        case TableValue():
            first = min(curve.values)
            early = dict.fromkeys(range(first, first + rounds), curve.values[first])
            late = {t + rounds: v for t, v in curve.values.items() if t + rounds >= 0}
            return TableValue(early | late or {truth.birth + 1: 0.0})
        case DeadlineValue():
            return DeadlineValue(curve.value if curve.deadline + rounds >= 0 else 0.0, max(0, curve.deadline + rounds))
        case LinearValue() | FallingValue() if curve.start + rounds >= 0 and curve.deadline + rounds >= 0:
            return replace(curve, start=curve.start + rounds, deadline=curve.deadline + rounds)
    times = _completions(truth, public)
    return _tabulated(times, np.asarray(curve(np.maximum(times - rounds, times[0]))))


def _completions(truth: StatementOfWork, public: PublicInformation) -> NDArray[np.int64]:
    """Completion times at which a job of this birth can be of value, at least one."""
    last = min(truth.birth + public.max_delay - 1, public.horizon + 1)
    return np.arange(truth.birth + 1, max(last, truth.birth + 1) + 1)


def _tabulated(times: NDArray[np.int64], values: NDArray[np.float64]) -> TableValue:
    """Build the table of a curve that is not of a known kind."""
    return TableValue(dict(zip(times.tolist(), values.tolist(), strict=True)))
