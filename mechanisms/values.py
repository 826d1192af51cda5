r"""Value curves: the owner's value :math:`V_j(f)` of a completion at time ``f``.

Curves do not increase with time and are never negative; a job that never completes is worth 0
([BLLMSW22]_, Section 2). A job started in round ``s`` with duration ``d`` completes at
``f = s + d`` ((1) of docs/mathematics.md). Values are in credits, times in rounds.

References
----------
.. [BLLMSW22] Babaioff, Lempel, Lucier, Menache, Slivkins, Wong: Truthful Online Scheduling of
   Cloud Workloads under Uncertainty, WWW 2022, arXiv:2203.01213.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from types import MappingProxyType
from typing import Annotated, Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from marketsched.mechanisms.errors import InvalidReportError
from marketsched.mechanisms.legal import EXACT, Amount, Finite, Positive, Whole, check_fields
from marketsched.mechanisms.ranges import LARGEST

Time = Annotated[int, Whole(0, EXACT)]
Rank = Annotated[int, Whole(1, 9)]
_VALUE, _TIME, _RANK = Finite("[0, inf)"), Whole(0, EXACT), Whole(1, 9)


@runtime_checkable
class ValueCurve(Protocol):
    """The interface of value curves.

    Examples
    --------
    >>> curve = DeadlineValue(value=3.0, deadline=7)
    >>> isinstance(curve, ValueCurve), curve.highest, curve.last, curve.table(6, 3)
    (True, 3.0, 7, array([3., 3., 0.]))
    """

    @property
    def highest(self) -> float:
        """The largest value the curve takes, in credits."""
        ...

    @property
    def last(self) -> int:
        """The last completion time of positive value; 0 if there is none."""
        ...

    def __call__(self, completion: ArrayLike) -> Any:
        """Return the value of each completion time: a float for a scalar, else an array."""
        ...

    def table(self, first: int, count: int) -> NDArray[np.float64]:
        """Return the values of completion times ``first .. first + count - 1``, shape (count,)."""
        ...


class _Curve:
    """Scalars and arrays alike, from the curve's ``_evaluate`` on a float array of times."""

    __slots__ = ()

    def _evaluate(self, completion: NDArray[np.float64]) -> NDArray[np.float64]:
        raise NotImplementedError

    def __call__(self, completion: ArrayLike) -> Any:
        """Return the value of each completion time: a float for a scalar, else an array."""
        times = np.asarray(completion, dtype=np.float64)
        values = self._evaluate(np.atleast_1d(times))
        return float(values[0]) if times.ndim == 0 else values.reshape(times.shape)

    def table(self, first: int, count: int) -> NDArray[np.float64]:
        """Return the values of completion times ``first .. first + count - 1``."""
        return self._evaluate(np.arange(first, first + count, dtype=np.float64))


@dataclass(frozen=True)
class TableValue(_Curve):
    """Completion time -> value; times that are not listed are worth 0.

    Parameters
    ----------
    values : mapping of int to float
        Values in credits; listed values must not increase with time.

    Raises
    ------
    InvalidReportError
        If the table is empty, a time is not a whole number, a value is negative or not finite, or
        values increase.

    Examples
    --------
    >>> TableValue({4: 8.0, 5: 6.5})([3, 4, 5, 6])
    array([0. , 8. , 6.5, 0. ])
    """

    values: Mapping[int, float]

    def __post_init__(self) -> None:
        if not isinstance(self.values, Mapping) or not self.values:
            raise InvalidReportError(
                place="values", value=self.values, legal="a non-empty table {completion time: value}"
            )
        table = {
            _TIME.check("completion time in values", t, InvalidReportError): _VALUE.check(
                f"values[{t}]", v, InvalidReportError
            )
            for t, v in self.values.items()
        }
        table = dict(sorted(table.items()))
        times = list(table)
        for before, after in pairwise(times):
            if table[after] > table[before]:
                raise InvalidReportError(
                    f"values[{after}] = {table[after]!r} exceeds values[{before}] = {table[before]!r}: "
                    "expected values that do not increase with time"
                )
        object.__setattr__(self, "values", MappingProxyType(table))

    def __hash__(self) -> int:
        """Hash by content (the table is never changed)."""
        return hash(tuple(self.values.items()))

    def __repr__(self) -> str:
        return f"TableValue(values={dict(self.values)!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return _checked_table, (dict(self.values),)

    @cached_property
    def _dense(self) -> tuple[int, NDArray[np.float64]]:
        first, last = min(self.values), max(self.values)
        dense = np.zeros(last - first + 1)
        for time, value in self.values.items():
            dense[time - first] = value
        return first, dense

    def rises_at(self, first: int) -> int | None:
        """Return the first completion after ``first`` that is worth more than the one before it; None: there is none.

        The one before is then not listed, hence worth 0.
        """
        rises = (t for t, v in self.values.items() if t > first and v > 0 and t - 1 not in self.values)
        return next(rises, None)

    @property
    def highest(self) -> float:
        """The largest value listed."""
        return max(self.values.values())

    @property
    def last(self) -> int:
        """The last listed time of positive value."""
        return max((t for t, v in self.values.items() if v > 0), default=0)

    def _evaluate(self, completion: NDArray[np.float64]) -> NDArray[np.float64]:
        first, dense = self._dense
        index = completion - first
        listed = (index >= 0) & (index < dense.size) & (index == np.floor(index))
        return np.where(listed, dense[np.where(listed, index, 0).astype(np.int64)], 0.0)


def _checked_table(values: dict[int, float]) -> TableValue:
    """Unpickle."""
    curve = TableValue.__new__(TableValue)
    object.__setattr__(curve, "values", MappingProxyType(values))
    return curve


@dataclass(frozen=True, slots=True)
class DeadlineValue(_Curve):
    """``value`` up to and including completion time ``deadline``, then 0.

    Examples
    --------
    >>> DeadlineValue(value=3.0, deadline=7)([6, 7, 8])
    array([3., 3., 0.])
    """

    value: Amount
    deadline: Time

    def __post_init__(self) -> None:
        usual = type(self.value) is float and type(self.deadline) is int
        if not (usual and 0.0 <= self.value <= LARGEST and 0 <= self.deadline <= EXACT):  # as a rule it is
            check_fields(self, InvalidReportError)

    @property
    def highest(self) -> float:
        """The value before the deadline."""
        return self.value

    @property
    def last(self) -> int:
        """The deadline, or 0 for a worthless job."""
        return self.deadline if self.value > 0 else 0

    def __call__(self, completion: ArrayLike) -> Any:
        """Return the value of each completion time: a float for a scalar, else an array."""
        if isinstance(completion, int):  # asked of every job, twice: an array takes ten times as long
            return self.value if completion <= self.deadline else 0.0
        return _Curve.__call__(self, completion)  # a class with slots is made anew: super() would not find it

    def table(self, first: int, count: int) -> NDArray[np.float64]:
        """Return the values of completion times ``first .. first + count - 1``."""
        values = np.zeros(count)
        values[: max(0, self.deadline - first + 1)] = self.value
        return values

    def _evaluate(self, completion: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.where(completion <= self.deadline, self.value, 0.0)


@dataclass(frozen=True, slots=True)
class LinearValue(_Curve):
    """``value`` up to completion ``start``, then falling by ``slope`` a round; 0 after ``deadline``.

    Never below 0.

    Examples
    --------
    >>> LinearValue(value=4.0, start=5, slope=1.5, deadline=7)([5, 6, 7, 8])
    array([4. , 2.5, 1. , 0. ])
    """

    value: Amount
    start: Time
    slope: Amount
    deadline: Time

    def __post_init__(self) -> None:
        check_fields(self, InvalidReportError)

    @property
    def highest(self) -> float:
        """The value before the fall."""
        return self.value

    @property
    def last(self) -> int:
        """The last completion time at which the line is still positive."""
        if self.value <= 0:
            return 0
        if self.slope * (self.deadline - self.start) < self.value:
            return self.deadline
        return self.start + math.ceil(self.value / self.slope) - 1

    def _evaluate(self, completion: NDArray[np.float64]) -> NDArray[np.float64]:
        late = np.maximum(completion - self.start, 0.0)
        return np.where(completion <= self.deadline, np.maximum(self.value - self.slope * late, 0.0), 0.0)


LEVELS = 20  # steps of a falling value, four for each halving: at the last one 1/32 is left
_FRACTIONS = 2.0 ** (-np.arange(LEVELS + 1) / 4)
_BOUNDS = 2.0 ** ((np.arange(LEVELS) + 0.5) / 4) - 1  # late rounds after which a step is over, in multiples of `half`


@dataclass(frozen=True, slots=True)
class FallingValue(_Curve):
    r"""``value`` up to completion ``start``, then ``value half / (half + late)`` in steps; 0 after ``deadline``.

    The steps are :math:`2^{-k/4}` of the value, each no further than a ninth from the hyperbola, down to 1/32, which
    stays. Half of the value is left ``half`` rounds after ``start``.

    Examples
    --------
    >>> FallingValue(value=8.0, start=5, half=10.0, deadline=10_000)([5, 15, 35, 4_000, 10_001])
    array([8.  , 4.  , 2.  , 0.25, 0.  ])
    """

    value: Amount
    start: Time
    half: Positive
    deadline: Time

    def __post_init__(self) -> None:
        check_fields(self)

    @property
    def highest(self) -> float:
        """The value before the fall."""
        return self.value

    @property
    def last(self) -> int:
        """The deadline, or 0 for a worthless job."""
        return self.deadline if self.value > 0 else 0

    def _evaluate(self, completion: NDArray[np.float64]) -> NDArray[np.float64]:
        level = np.searchsorted(np.floor(self.half * _BOUNDS), completion - self.start, side="left")
        return np.where(completion <= self.deadline, self.value * _FRACTIONS[level], 0.0)

    def steps(self) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Return values and the last completion time of each, as `falling_steps`."""
        row = (np.array([each]) for each in (self.value, self.start, self.half, self.deadline))
        return falling_steps(*row)[1:]


def falling_steps(
    values: NDArray[np.float64], starts: NDArray[np.int64], halves: NDArray[np.float64], deadlines: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.int64]]:
    """Return falling values as steps, one row of them a curve; where ``halves`` is 0, the value holds until its end.

    Arguments are columns of `FallingValue`. ``begins``, shape (n + 1,), are those of the steps of each curve;
    ``values``, credits, and ``lasts``, completion times, have one entry a step.

    Examples
    --------
    >>> rows = np.array([8.0, 3.0]), np.array([5, 0]), np.array([2.0, 0.0]), np.array([9, 7])
    >>> begins, values, lasts = falling_steps(*rows)
    >>> begins, values.round(1), lasts
    (array([0, 5, 6]), array([8. , 5.7, 4. , 3.4, 2.8, 3. ]), array([5, 6, 7, 8, 9, 7]))
    """
    late = np.floor(halves[:, None] * _BOUNDS).astype(np.int64)
    ends = np.where(halves[:, None] > 0, starts[:, None] + late, deadlines[:, None])
    lasts = np.concatenate([np.minimum(ends, deadlines[:, None]), deadlines[:, None]], axis=1)
    own = np.diff(lasts, axis=1, prepend=-1) > 0
    begins = np.concatenate([[0], np.cumsum(own.sum(axis=1))])
    return begins, (values[:, None] * _FRACTIONS)[own], lasts[own]


@dataclass(frozen=True, slots=True)
class RankValue(DeadlineValue):
    """Importance by rank, until a deadline: ``rank`` a node and round, worth comparing among jobs of one owner.

    ``value`` is what other rules and the figures of an owner count: the rank, times nodes and announced mean rounds.

    Examples
    --------
    >>> RankValue.of(4, deadline=7, nodes=2, rounds=1.5)([7, 8])
    array([12.,  0.])
    """

    rank: Rank

    @classmethod
    def of(cls, rank: int, deadline: int, nodes: int, rounds: float) -> RankValue:
        """Return the curve of a job of so many nodes and announced mean rounds."""
        return cls(check_rank(rank) * nodes * rounds, deadline, rank)


def check_rank(rank: object) -> int:
    """Return a rank, or raise ``InvalidReportError`` if it is none."""
    return _RANK.check("rank", rank, InvalidReportError)


def importance(curve: ValueCurve, nodes: int, rounds: float) -> float:
    """Return the importance of a job among those of its owner: its rank, or its largest value a node and mean round."""
    return float(curve.rank) if isinstance(curve, RankValue) else curve.highest / (nodes * rounds)


def check_curve(value: object) -> None:
    """Raise ``InvalidReportError`` if it is no value curve."""
    # Looked up by name: an isinstance test of the protocol costs more than all else here.
    if not (callable(value) and hasattr(value, "table") and hasattr(value, "highest") and hasattr(value, "last")):
        raise InvalidReportError(
            place="value", value=value, legal="a value curve (TableValue, DeadlineValue, LinearValue, or alike)"
        )
