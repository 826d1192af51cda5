"""The law of a statement of work: its points, their ranges, and the columns in which a `Law` holds them."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from marketsched.mechanisms.errors import InvalidReportError
from marketsched.mechanisms.legal import Range, Whole, check_fields, is_hashable, is_number

Signal = Hashable  # an int (the duration, when revealed), None (hidden), or any label of the owner's
Point = tuple[int, int, float, Signal]  # of a law: arrival, duration, probability, signal

LAST_REPORTED = 2**31 - 1  # no arrival or duration beyond it: products of two of them fit 64 bits
MASS_TOLERANCE = 1e-9  # how far above 1 the probabilities of a report may add up


class _Probability(Range[float]):
    """Numbers in [0, 1], and what sums of them miss by rounding."""

    def __call__(self, x: object) -> float:
        if type(x) is float and 0 <= x <= 1:  # as nearly always
            return x
        if not (is_number(x) and 0 <= x <= 1 + MASS_TOLERANCE):  # NaN is in no range
            raise ValueError("a number in [0, 1]")
        return float(x)


ReportedRound = Annotated[int, Whole(1, LAST_REPORTED)]


class _DurationSignal:
    """Default of ``signal``: the duration itself."""

    def __repr__(self) -> str:
        return "<the duration>"


THE_DURATION = _DurationSignal()


@dataclass(frozen=True, slots=True)
class Requirement:
    """One point of the law: with ``probability``, ready in round ``arrival`` for ``duration`` rounds.

    ``signal`` is what the platform observes at arrival; by default the duration.

    Examples
    --------
    >>> Requirement(arrival=2, duration=3, probability=0.5).signal
    3
    """

    arrival: ReportedRound
    duration: ReportedRound
    probability: Annotated[float, _Probability()]
    signal: Signal = THE_DURATION

    def __post_init__(self) -> None:
        check_fields(self, InvalidReportError)
        if isinstance(self.signal, _DurationSignal):
            object.__setattr__(self, "signal", self.duration)
        elif not is_hashable(self.signal) or self.signal != self.signal:  # NaN: no arrival could ever have it
            raise InvalidReportError(place="signal", value=self.signal, legal="a number, a label, or None")


class Law(NamedTuple):
    """The law as arrays, sorted by (arrival, signal, duration), equal points merged.

    ``groups`` are the distinct (arrival, signal) pairs in that order: the cases a launch plan
    tells apart. Points of group ``g`` are ``offsets[g] .. offsets[g + 1] - 1``.
    """

    arrivals: NDArray[np.int64]  # (n_points,)
    durations: NDArray[np.int64]  # (n_points,)
    probabilities: NDArray[np.float64]  # (n_points,)
    offsets: NDArray[np.int64]  # (n_groups + 1,)
    group_arrivals: NDArray[np.int64]  # (n_groups,)
    group_signals: tuple[Signal, ...]  # (n_groups,)

    def points(self) -> Iterator[tuple[int, int, float, Signal]]:
        """Go through the points: arrival, duration, probability, signal."""
        signals = (s for s, n in zip(self.group_signals, np.diff(self.offsets).tolist(), strict=True) for _ in range(n))
        columns = (self.arrivals.tolist(), self.durations.tolist(), self.probabilities.tolist())
        return zip(*columns, signals, strict=True)

    def group_of(self, arrival: int, signal: Signal) -> int | None:
        """Return the index of the case (arrival, signal), or None if the report excludes it."""
        if len(self.group_signals) == 1:  # by far the most frequent
            low, high = (0, 1) if self.group_arrivals[0] == arrival else (0, 0)
        else:
            low, high = self.group_arrivals.searchsorted((arrival, arrival + 1))
        for g in range(low, high):
            if self.group_signals[g] == signal and isinstance(self.group_signals[g], bool) == isinstance(signal, bool):
                return int(g)
        return None

    def spread(self, of_cases: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the entry of each point's case, shape (n_points,), from one entry for each case."""
        if of_cases.size == self.arrivals.size:  # a point each
            return of_cases
        return np.repeat(of_cases, self.offsets[1:] - self.offsets[:-1])

    def points_of(self, arrival: int, signal: Signal) -> slice:
        """Return the points of the case (arrival, signal), as a slice of the columns.

        Of a case that the report excludes they are all points: what it says of durations at large is all there is.
        """
        g = self.group_of(arrival, signal)
        return slice(None) if g is None else slice(self.offsets[g], self.offsets[g + 1])


class DurationLaw(NamedTuple):
    """A law of the duration, given arrival and signal; empty if the report excludes all."""

    durations: NDArray[np.int64]  # (n,), rounds, rising
    weights: NDArray[np.float64]  # (n,), adding up to 1

    @property
    def mean(self) -> float:
        """Expected duration, rounds, added in order; 0 without any."""
        return float(np.cumsum(self.weights * self.durations)[-1]) if self.durations.size else 0.0

    @classmethod
    def of(cls, durations: NDArray[np.int64], weights: NDArray[np.float64]) -> DurationLaw:
        """Return the law of points, of one case or of several one after the other, with weights >= 0."""
        mass = float(weights.sum())
        if mass <= 0:
            return cls(durations[:0], weights[:0])
        if (durations[1:] <= durations[:-1]).any():
            days, case = np.unique(durations, return_inverse=True)
            return cls(days, np.bincount(case, weights=weights) / mass)
        return cls(durations, weights / mass)


def law_of(points: Sequence[Point]) -> Law:
    """Return the law of points that were checked: sorted, and equal points merged; InvalidReportError without any."""
    if not points:
        raise InvalidReportError("requirements is empty: expected at least one (arrival, duration, probability)")
    merged: list[Point] = []
    cases: list[tuple[int, Signal]] = []
    offsets: list[int] = []
    for arrival, duration, probability, signal in sorted(
        points, key=lambda each: (each[0], signal_key(each[3]), each[1])
    ):
        if not cases or cases[-1] != (arrival, signal):
            cases.append((arrival, signal))
            offsets.append(len(merged))
        elif merged[-1][1] == duration:
            probability += merged.pop()[2]
        merged.append((arrival, duration, probability, signal))
    return Law(
        np.array([point[0] for point in merged], dtype=np.int64),
        np.array([point[1] for point in merged], dtype=np.int64),
        np.array([point[2] for point in merged], dtype=np.float64),
        np.array([*offsets, len(merged)], dtype=np.int64),
        np.array([arrival for arrival, _ in cases], dtype=np.int64),
        tuple(signal for _, signal in cases),
    )


def signal_key(signal: Signal) -> tuple[int, Any]:
    """Sort key: no signal first, then numbers, then labels."""
    if signal is None:
        return (0, 0)
    if isinstance(signal, (int, float, np.integer, np.floating)):
        return (1, signal)
    return (2, str(signal))


def as_rounds(name: str, rounds: ArrayLike) -> NDArray[np.int64]:
    """Return ``rounds`` as whole numbers of an array of its own, or say which entry is none."""
    given = _column(name, rounds, "iuf", "whole numbers")
    legal = (given >= 1) & (given <= LAST_REPORTED) & (given == np.floor(given))  # NaN fails all of them
    if not legal.all():
        bad = int(np.flatnonzero(~legal)[0])
        raise InvalidReportError(
            place=f"{name}[{bad}]", value=given[bad].item(), legal=f"a whole number in [1, {LAST_REPORTED}]"
        )
    return given.astype(np.int64)


def as_probabilities(probabilities: ArrayLike) -> NDArray[np.float64]:
    """Return ``probabilities`` as an array of its own: the caller may go on writing to theirs."""
    return _column("probabilities", probabilities, "iuf", "numbers in [0, 1]").astype(np.float64)


def _column(name: str, given: ArrayLike, kinds: str, legal: str) -> NDArray[Any]:
    """Return one column of a law, flat; an empty one is of no kind yet."""
    try:
        column = np.asarray(given).ravel()
    except ValueError:  # rows of different length
        raise InvalidReportError(place=name, value=given, legal=legal) from None
    if column.size and column.dtype.kind not in kinds:
        raise InvalidReportError(place=name, value=given, legal=legal)
    return column


def as_requirement(index: int, row: Sequence[Any]) -> Requirement:
    """Read one ``(arrival, duration, probability[, signal])`` row."""
    try:
        fields = tuple(row)
    except TypeError:
        fields = ()
    if len(fields) not in (3, 4):
        raise InvalidReportError(
            place=f"requirements[{index}]",
            value=row,
            legal="a Requirement or (arrival, duration, probability[, signal])",
        )
    try:
        return Requirement(*fields)
    except InvalidReportError as error:
        raise error.at(f"requirements[{index}]") from None
