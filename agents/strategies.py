"""How an owner reports: the truth, and the simple lies.

A strategy is a map ``report = strategy(truth, public information)`` from the owner's true statement
of work to the one that is submitted. Strategies are pure (no state, no draws, the truth is never
changed), and what they return is always legal: clipped to the announced limits.

What a lie can and cannot change is physical. A job that declares too few nodes never completes with
value; one that declares too many merely holds them. A misreported law or value changes the launch
plan and nothing else: the platform sees the real arrival, the real signal and the real end. If the
real (arrival, signal) is not in the reported support, the mechanism drops the job
([BLLMSW22]_, Section 2; docs/mathematics.md, sections 1, 4 and 10).

References
----------
.. [BLLMSW22] Babaioff, Lempel, Lucier, Menache, Slivkins, Wong: Truthful Online Scheduling of
   Cloud Workloads under Uncertainty, WWW 2022, arXiv:2203.01213.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from marketsched.mechanisms.checks import finite_parameter
from marketsched.mechanisms.errors import InvalidParameterError
from marketsched.mechanisms.sow import Requirement, StatementOfWork
from marketsched.mechanisms.values import DeadlineValue, LinearValue, TableValue, ValueCurve


@dataclass(frozen=True, slots=True)
class PublicInformation:
    """What every owner is told before reporting: the size of the market and the legal limits.

    Attributes
    ----------
    capacity : int
        C, nodes.
    horizon : int
        T, the last round.
    max_delay : int
        S, rounds: values at completion times ``>= birth + max_delay`` count as 0.
    max_concurrency, max_duration, max_value : int, int, float or None
        Largest concurrency (nodes), duration (rounds) and value (credits) a report may hold; None
        if the mechanism announces no such limit.
    """

    capacity: int
    horizon: int
    max_delay: int
    max_concurrency: int | None = None
    max_duration: int | None = None
    max_value: float | None = None


@runtime_checkable
class Strategy(Protocol):
    """What every strategy offers.

    A strategy may also have an attribute ``delay``: the rounds it waits after birth before it
    submits (0 if absent). The report must be born in the round in which it is submitted. One that
    learns may have ``hear(utility)``, which is called when the job leaves the market.
    """

    def report(self, truth: StatementOfWork, public: PublicInformation) -> StatementOfWork:
        """Return the statement of work to submit for the true statement ``truth``."""
        ...


def submission_delay(strategy: Strategy) -> int:
    """Return how many rounds after birth ``strategy`` submits."""
    return int(getattr(strategy, "delay", 0))


@dataclass(frozen=True, slots=True)
class Truthful:
    """No lie: the report is the truth itself, at birth."""

    def report(self, truth: StatementOfWork, public: PublicInformation) -> StatementOfWork:
        """Return ``truth``."""
        return truth


@dataclass(frozen=True, slots=True)
class ScaleValue:
    """The owner overstates (``f > 1``) or understates (``< 1``) what every completion is worth.

    Values are clipped to the announced ``max_value``.

    Parameters
    ----------
    f : float
        Factor of every value, >= 0.

    Examples
    --------
    >>> truth = StatementOfWork(1, 1, DeadlineValue(4.0, 6), [(2, 1, 1.0)])
    >>> ScaleValue(3.0).report(truth, PublicInformation(5, 20, 10, max_value=10.0)).value
    DeadlineValue(value=10.0, deadline=6)
    """

    f: float

    def __post_init__(self) -> None:
        finite_parameter("ScaleValue f", self.f)

    def report(self, truth: StatementOfWork, public: PublicInformation) -> StatementOfWork:
        """Return ``truth`` with every value multiplied by ``f``."""
        return _with(truth, value=_scaled(truth, public, float(self.f)))


@dataclass(frozen=True, slots=True)
class ShiftDeadline:
    """The owner claims to be patient (``k > 0``) or in a hurry (``< 0``): V'(time) = V(time - k).

    Parameters
    ----------
    k : int
        Rounds by which the curve is moved later; negative: earlier.

    Examples
    --------
    >>> truth = StatementOfWork(1, 1, LinearValue(4.0, 5, 1.0, 8), [(2, 1, 1.0)])
    >>> ShiftDeadline(-2).report(truth, PublicInformation(5, 20, 10)).value
    LinearValue(value=4.0, start=3, slope=1.0, deadline=6)
    """

    k: int

    def __post_init__(self) -> None:
        _check_rounds("ShiftDeadline k", self.k, lowest=None)

    def report(self, truth: StatementOfWork, public: PublicInformation) -> StatementOfWork:
        """Return ``truth`` with the value curve moved ``k`` rounds later."""
        return _with(truth, value=_shifted(truth, public, int(self.k)))


@dataclass(frozen=True, slots=True)
class ScaleDuration:
    """The owner claims that every case runs ``f`` times as long (rounded, at least 1 round).

    Durations are clipped to the announced ``max_duration``. The signals keep their labels: they
    are what the platform will see, so changing them would only make it drop the job. The case seen
    as "signal 4" is then planned, and priced at submission, as if it lasted ``4 * f`` rounds.

    Parameters
    ----------
    f : float
        Factor of every duration, > 0.

    Examples
    --------
    >>> truth = StatementOfWork(1, 1, DeadlineValue(4.0, 9), [(2, 2, 0.5), (2, 4, 0.5)])
    >>> ScaleDuration(0.5).report(truth, PublicInformation(5, 20, 10)).requirements[1]
    Requirement(arrival=2, duration=2, probability=0.5, signal=4)
    """

    f: float

    def __post_init__(self) -> None:
        finite_parameter("ScaleDuration f", self.f, "(0, inf)")

    def report(self, truth: StatementOfWork, public: PublicInformation) -> StatementOfWork:
        """Return ``truth`` with every duration multiplied by ``f``; equal points merge."""
        longest = math.inf if public.max_duration is None else public.max_duration
        return _with(
            truth,
            requirements=[
                Requirement(r.arrival, _scaled_rounds(r.duration, self.f, longest), r.probability, r.signal)
                for r in truth.requirements
            ],
        )


@dataclass(frozen=True, slots=True)
class InflateConcurrency:
    """The owner declares ``k`` nodes more than the job needs (fewer, if negative).

    The declaration is clipped to 1 .. the smaller of capacity and the announced
    ``max_concurrency``. Too many: they are held while the job runs. Too few: the job gets what it
    declared and never completes.

    Parameters
    ----------
    k : int
        Nodes declared beyond the need; negative: below it.

    Examples
    --------
    >>> truth = StatementOfWork(1, 2, DeadlineValue(4.0, 9), [(2, 2, 1.0)])
    >>> InflateConcurrency(5).report(truth, PublicInformation(8, 20, 10, max_concurrency=4)).concurrency
    4
    """

    k: int

    def __post_init__(self) -> None:
        _check_rounds("InflateConcurrency k", self.k, lowest=None)

    def report(self, truth: StatementOfWork, public: PublicInformation) -> StatementOfWork:
        """Return ``truth`` with ``k`` nodes more of concurrency."""
        highest = public.capacity
        if public.max_concurrency is not None:
            highest = min(highest, public.max_concurrency)
        return _with(truth, concurrency=max(1, min(truth.concurrency + int(self.k), highest)))


@dataclass(frozen=True, slots=True)
class DelaySubmission:
    """The owner keeps quiet for ``k`` rounds after birth, then reports honestly (gap G2).

    Not a misreport of the statement, but of its time. Arrivals before the late submission are
    reported as arriving with it, which is what the platform will see; the law is not conditioned on
    what the owner learned while waiting. Values at completions ``>= true birth + max_delay`` stay 0.

    Parameters
    ----------
    k : int
        Rounds of silence, >= 0.

    Examples
    --------
    >>> truth = StatementOfWork(1, 1, DeadlineValue(4.0, 9), [(1, 2, 0.25), (2, 2, 0.25), (6, 2, 0.5)])
    >>> late = DelaySubmission(3).report(truth, PublicInformation(8, 20, 10))
    >>> late.birth, late.law.arrivals.tolist(), late.law.probabilities.tolist()
    (4, [4, 6], [0.5, 0.5])
    """

    k: int

    def __post_init__(self) -> None:
        _check_rounds("DelaySubmission k", self.k, lowest=0)

    @property
    def delay(self) -> int:
        """The rounds between birth and submission: what the market asks a strategy for."""
        return int(self.k)

    def report(self, truth: StatementOfWork, public: PublicInformation) -> StatementOfWork:
        """Return ``truth`` as it is told ``k`` rounds after its birth; equal points merge."""
        birth = truth.birth + int(self.k)
        return _with(
            truth,
            birth=birth,
            value=value_until(truth, truth.birth + public.max_delay - 1, public),
            requirements=[
                Requirement(max(r.arrival, birth), r.duration, r.probability, r.signal) for r in truth.requirements
            ],
        )


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
        case LinearValue():
            return LinearValue(curve.value, curve.start, curve.slope, min(curve.deadline, last))
    times = _completions(truth, public)
    return _tabulated(times, np.where(times <= last, np.asarray(curve(times)), 0.0))


def _check_rounds(name: str, rounds: object, *, lowest: int | None) -> None:
    legal = "a whole number" if lowest is None else f"a whole number >= {lowest}"
    if isinstance(rounds, (bool, np.bool_)) or not isinstance(rounds, (int, np.integer)):
        raise InvalidParameterError(f"{name} = {rounds!r}: expected {legal}")
    if lowest is not None and rounds < lowest:
        raise InvalidParameterError(f"{name} = {rounds!r}: expected {legal}")


def _with(
    truth: StatementOfWork,
    *,
    birth: int | None = None,
    concurrency: int | None = None,
    value: ValueCurve | None = None,
    requirements: list[Requirement] | None = None,
) -> StatementOfWork:
    """Return ``truth`` with some of its parts replaced."""
    return StatementOfWork(
        truth.birth if birth is None else birth,
        truth.concurrency if concurrency is None else concurrency,
        truth.value if value is None else value,
        truth.requirements if requirements is None else requirements,
    )


def _scaled_rounds(duration: int, factor: float, longest: float) -> int:
    return int(max(1.0, min(float(np.rint(duration * factor)), longest)))


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
            return LinearValue(factor * curve.value, curve.start, factor * curve.slope, curve.deadline)
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
        case LinearValue() if curve.start + rounds >= 0 and curve.deadline + rounds >= 0:
            return LinearValue(curve.value, curve.start + rounds, curve.slope, curve.deadline + rounds)
    times = _completions(truth, public)
    return _tabulated(times, np.asarray(curve(np.maximum(times - rounds, times[0]))))


def _completions(truth: StatementOfWork, public: PublicInformation) -> NDArray[np.int64]:
    """Completion times at which a job of this birth can be of value, at least one."""
    last = min(truth.birth + public.max_delay - 1, public.horizon + 1)
    return np.arange(truth.birth + 1, max(last, truth.birth + 1) + 1)


def _tabulated(times: NDArray[np.int64], values: NDArray[np.float64]) -> TableValue:
    """Build the table of a curve that is not of a known kind."""
    return TableValue(dict(zip(times.tolist(), values.tolist(), strict=True)))
