r"""Statements of work: the report of an owner about a job, :math:`(V_j, c_j, P_j)`.

:math:`P_j(a, d, o)` is the joint law of arrival round, duration in rounds and the signal seen at
arrival, with finite support; mass below 1 means that the job may never arrive ([BLLMSW22]_,
Section 2). The signal equal to the duration: *durations revealed*. No signal: *durations hidden*.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import repeat
from typing import Any, TypedDict

import numpy as np
from numpy.typing import ArrayLike, NDArray

from marketsched.mechanisms.errors import InvalidReportError
from marketsched.mechanisms.law import (
    LAST_REPORTED,
    MASS_TOLERANCE,
    THE_DURATION,
    Law,
    Point,
    Requirement,
    as_probabilities,
    as_requirement,
    as_rounds,
    law_of,
)
from marketsched.mechanisms.legal import EXACT, Whole
from marketsched.mechanisms.resources.shapes import Shape, cases_of, check_cases, check_first_shape, check_shapes
from marketsched.mechanisms.values import ValueCurve, check_curve

_ONE_OR_MORE = Whole(1, EXACT)
_PATIENCE = Whole(0, LAST_REPORTED)
_CHECKPOINT = Whole(1, LAST_REPORTED)


class Terms(TypedDict):
    """What a job agrees to, beside its value and law; see `StatementOfWork`."""

    restarts: bool
    patience: int | None
    checkpoint: int | None


class StatementOfWork:
    """A statement of work, as reported in round ``birth``.

    Parameters
    ----------
    birth : int
        Round of submission, >= 1. The platform observes it; it cannot be misreported.
    concurrency : int
        Nodes the job occupies while it runs, >= 1.
    value : ValueCurve
        Value in credits of each completion time.
    requirements : sequence of Requirement or of (arrival, duration, probability[, signal])
        The joint law; total mass at most 1. With shapes its durations are those of the first shape on its first kind.
    shapes : sequence of Shape
        On a cluster: the ways in which the job can run; ``concurrency`` is then the tasks of the first. Empty: a job
        of identical nodes.
    restarts : bool
        Whether an evicted run may start again. False: the job is offered only nodes that are never taken back.
    patience : int, optional
        Rounds that the owner agrees to wait for a start, where a mechanism sells patience (`TwoOffers`): the largest
        posted one up to it is taken. None: the mechanism chooses, of those that the deadline allows.
    checkpoint : int, optional
        Rounds of its work after which the job saves it, each time: a run that is taken back after s rounds keeps
        ``s // checkpoint * checkpoint`` of them, and the next run needs so many less. The law is that of runs that do
        this: what saving takes is part of their durations. None: a run that is taken back loses all. Not with shapes.

    Raises
    ------
    InvalidReportError
        If a field is malformed, the law is empty, an arrival lies before ``birth``, probabilities are negative, not
        finite, or add up to more than 1 + 1e-9, law and first shape disagree, or there are shapes and a checkpoint.

    Examples
    --------
    >>> from marketsched.mechanisms.values import DeadlineValue
    >>> sow = StatementOfWork(1, 2, DeadlineValue(8.0, 6), [(2, 2, 0.5), (3, 2, 0.5)])
    >>> sow.requirements[0]
    Requirement(arrival=2, duration=2, probability=0.5, signal=2)
    """

    # Of a report that was moved only the one it comes from: a million runs of recurring jobs share few laws.
    __slots__ = (
        "_law", "_moved_from", "_span", "birth", "checkpoint", "concurrency", "patience", "restarts", "shapes", "value",
    )  # fmt: skip
    birth: int
    concurrency: int
    value: ValueCurve
    shapes: tuple[Shape, ...]
    restarts: bool
    patience: int | None
    checkpoint: int | None
    _law: Law | None
    _moved_from: StatementOfWork | None
    _span: tuple[int, int] | None  # shortest and longest duration, once they were asked for

    def __init__(
        self,
        birth: int,
        concurrency: int,
        value: ValueCurve,
        requirements: Iterable[Requirement | Sequence[Any]],
        shapes: Iterable[Shape] = (),
        *,
        restarts: bool = True,
        patience: int | None = None,
        checkpoint: int | None = None,
    ) -> None:
        given = (r if isinstance(r, Requirement) else as_requirement(i, r) for i, r in enumerate(requirements))
        law = law_of([(r.arrival, r.duration, r.probability, r.signal) for r in given])
        self._set(birth, concurrency, value, law, check_shapes(shapes), restarts, patience, checkpoint)

    @classmethod
    def of_points(
        cls,
        birth: int,
        concurrency: int,
        value: ValueCurve,
        points: Sequence[Point],
        *,
        restarts: bool = True,
        patience: int | None = None,
        checkpoint: int | None = None,
    ) -> StatementOfWork:
        """Build a statement from points (arrival, duration, probability, signal), each of which was checked by itself.

        Other arguments and errors are those of the constructor.
        """
        self = cls.__new__(cls)
        self._set(
            birth, concurrency, value, law_of(points), restarts=restarts, patience=patience, checkpoint=checkpoint
        )
        return self

    @classmethod
    def of_shapes(
        cls,
        birth: int,
        value: ValueCurve,
        arrival: int,
        shapes: Iterable[Shape],
        probabilities: Sequence[float] = (1.0,),
        *,
        revealed: bool = True,
    ) -> StatementOfWork:
        """Build a statement for a cluster whose job is ready in the round ``arrival``.

        ``probabilities`` has one entry for each case of the law, as many as the shapes have durations on a kind;
        ``revealed``: the platform sees at arrival which case it is. Other arguments and errors are those of the
        constructor.

        Examples
        --------
        >>> from marketsched.mechanisms.values import DeadlineValue
        >>> shapes = [Shape({"gpu": 8}, {"a100": 24}), Shape({"gpu": 4}, {"v100": 36}, tasks=4)]
        >>> sow = StatementOfWork.of_shapes(3, DeadlineValue(120.0, 60), 5, shapes)
        >>> sow.requirements, sow.concurrency, len(sow.shapes)
        ((Requirement(arrival=5, duration=24, probability=1.0, signal=24),), 1, 2)
        """
        known = check_shapes(shapes)
        if not known:
            raise InvalidReportError(place="shapes", value=(), legal="at least one Shape")
        durations = cases_of(known)
        if len(probabilities) != len(durations):
            legal = f"{len(durations)} of them, one for each duration on a kind"
            raise InvalidReportError(place="probabilities", value=tuple(probabilities), legal=legal)
        check_cases(known)
        signals = [THE_DURATION if revealed else None] * len(durations)
        law = zip(repeat(arrival), durations, probabilities, signals, strict=False)
        return cls(birth, known[0].tasks, value, list(law), known)

    @classmethod
    def from_arrays(
        cls,
        birth: int,
        concurrency: int,
        value: ValueCurve,
        arrivals: ArrayLike,
        durations: ArrayLike,
        probabilities: ArrayLike,
        *,
        revealed: bool = True,
        restarts: bool = True,
        patience: int | None = None,
        checkpoint: int | None = None,
    ) -> StatementOfWork:
        """Build a statement from columns, one entry a point; the fast way for large laws.

        ``revealed``: the signal is the duration; else there is none. Other arguments and errors are those of the
        constructor.
        """
        a, d = as_rounds("arrivals", arrivals), as_rounds("durations", durations)
        p = as_probabilities(probabilities)
        if not a.size == d.size == p.size or a.size == 0:
            raise InvalidReportError(
                f"requirements have {a.size} arrivals, {d.size} durations and {p.size} probabilities: "
                "expected the same number of each, at least one"
            )
        if not (np.isfinite(p).all() and (p >= 0).all()):  # before equal points are merged
            raise InvalidReportError(f"probabilities {p.tolist()}: expected finite numbers >= 0")
        # Both orders agree: revealed sorts by (arrival, signal = duration), hidden by (arrival, duration).
        span = int(d.max()) + 1
        key = a * span + d
        if np.any(np.diff(key) <= 0):
            key, where = np.unique(key, return_inverse=True)
            p = np.asarray(np.bincount(where, weights=p, minlength=key.size), dtype=np.float64)
            a, d = key // span, key % span
        if revealed:
            offsets = np.arange(a.size + 1)
            law = Law(a, d, p, offsets, a, tuple(d.tolist()))
        else:
            starts = np.flatnonzero(np.r_[True, np.diff(a) > 0])
            law = Law(a, d, p, np.r_[starts, a.size], a[starts], (None,) * starts.size)
        self = cls.__new__(cls)
        self._set(birth, concurrency, value, law, restarts=restarts, patience=patience, checkpoint=checkpoint)
        return self

    def moved(self, birth: int, value: ValueCurve) -> StatementOfWork:
        """Return the same report born in another round: arrivals move with the birth, the curve is given.

        Nothing of the law is kept twice: its arrivals are computed whenever the law is read. InvalidReportError if the
        birth or an arrival is out of range, or the curve is none.

        Examples
        --------
        >>> from marketsched.mechanisms.values import DeadlineValue
        >>> first = StatementOfWork(1, 2, DeadlineValue(8.0, 6), [(2, 2, 0.5), (3, 2, 0.5)])
        >>> first.moved(11, DeadlineValue(8.0, 16)).requirements[1]
        Requirement(arrival=13, duration=2, probability=0.5, signal=2)
        """
        birth = _ONE_OR_MORE.check("birth", birth, InvalidReportError)
        first = self if self._moved_from is None else self._moved_from
        last = int(self._shared_law.arrivals[-1]) + birth - first.birth
        if last > LAST_REPORTED:
            raise InvalidReportError(place="arrival", value=last, legal=f"a whole number in [1, {LAST_REPORTED}]")
        check_curve(value)
        made = type(self).__new__(type(self))
        made._store(
            birth, self.concurrency, value, None, self.shapes, self.restarts, self.patience, self.checkpoint, first
        )
        return made

    @property
    def terms(self) -> Terms:
        """What the job agrees to, by the constructor's names: for a report with other parts, ``**sow.terms``."""
        return {"restarts": self.restarts, "patience": self.patience, "checkpoint": self.checkpoint}

    @property
    def law(self) -> Law:
        """The joint law."""
        law, first = self._shared_law, self._moved_from
        if first is None:
            return law
        later = self.birth - first.birth
        arrivals = law.arrivals + later
        arrivals.flags.writeable = False
        groups = arrivals
        if law.group_arrivals is not law.arrivals:
            groups = law.group_arrivals + later
            groups.flags.writeable = False
        return Law(arrivals, law.durations, law.probabilities, law.offsets, groups, law.group_signals)

    @property
    def durations(self) -> NDArray[np.int64]:
        """Those of the points of the law, rounds, shape (n_points,)."""
        return self._shared_law.durations

    @property
    def span(self) -> tuple[int, int]:
        """Shortest and longest duration, rounds."""
        first = self if self._moved_from is None else self._moved_from
        if first._span is None:
            durations = first.durations
            object.__setattr__(first, "_span", (int(durations.min()), int(durations.max())))
        assert first._span is not None
        return first._span

    @property
    def _shared_law(self) -> Law:
        """The law of the report that this one is moved from: all but the arrivals are the same."""
        law = (self if self._moved_from is None else self._moved_from)._law
        assert law is not None
        return law

    def _set(
        self,
        birth: int,
        concurrency: int,
        value: ValueCurve,
        law: Law,
        shapes: tuple[Shape, ...] = (),
        restarts: bool = True,
        patience: int | None = None,
        checkpoint: int | None = None,
    ) -> None:
        """Check what both constructors share, then store."""
        birth = _ONE_OR_MORE.check("birth", birth, InvalidReportError)
        concurrency = _ONE_OR_MORE.check("concurrency", concurrency, InvalidReportError)
        check_curve(value)
        p = law.probabilities
        mass, least = p.sum(), p.min()  # infinite or no numbers if any of them is
        if not (least >= 0 and mass < np.inf):
            raise InvalidReportError(f"probabilities {p.tolist()}: expected finite numbers >= 0")
        if mass > 1 + MASS_TOLERANCE:
            raise InvalidReportError(f"probabilities add up to {float(p.sum())!r}: expected at most 1")
        if law.arrivals[0] < birth:
            raise InvalidReportError(f"arrival {law.arrivals[0]} lies before birth {birth}: expected arrivals >= birth")
        if shapes:
            check_first_shape(shapes[0], concurrency, law.durations.tolist())
        if not isinstance(restarts, bool):
            raise InvalidReportError(place="restarts", value=restarts, legal="true or false")
        if patience is not None:
            patience = _PATIENCE.check("patience", patience, InvalidReportError)
        if checkpoint is not None:
            checkpoint = _CHECKPOINT.check("checkpoint", checkpoint, InvalidReportError)
            if shapes:
                raise InvalidReportError(place="checkpoint", value=checkpoint, legal="None, of a job with shapes")
        for array in law[:5]:
            array.flags.writeable = False
        self._store(birth, concurrency, value, law, shapes, restarts, patience, checkpoint)

    def _store(
        self,
        birth: int,
        concurrency: int,
        value: ValueCurve,
        law: Law | None,
        shapes: tuple[Shape, ...] = (),
        restarts: bool = True,
        patience: int | None = None,
        checkpoint: int | None = None,
        moved_from: StatementOfWork | None = None,
    ) -> None:
        store = object.__setattr__
        store(self, "birth", birth)
        store(self, "concurrency", concurrency)
        store(self, "value", value)
        store(self, "shapes", shapes)
        store(self, "restarts", restarts)
        store(self, "patience", patience)
        store(self, "checkpoint", checkpoint)
        store(self, "_law", law)
        store(self, "_moved_from", moved_from)
        store(self, "_span", None)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a StatementOfWork is never changed: build a new one instead of setting {name}")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"a StatementOfWork is never changed: cannot delete {name}")

    def __reduce__(self) -> tuple[Any, ...]:
        more = (self.shapes, self.restarts, self.patience, self.checkpoint)
        return _rebuild, (self.birth, self.concurrency, self.value, self.law, *more)

    @property
    def requirements(self) -> tuple[Requirement, ...]:
        """The points of the law, sorted by (arrival, signal, duration)."""
        return tuple(Requirement(*point) for point in self.law.points())

    @property
    def mass(self) -> float:
        """Probability that the job ever arrives."""
        return float(min(self._shared_law.probabilities.sum(), 1.0))

    @property
    def revealed(self) -> bool:
        """True if the signal determines the duration in every case: the theorems' regime."""
        return self._shared_law.offsets.size == self._shared_law.arrivals.size + 1

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, StatementOfWork):
            return NotImplemented
        return (
            (self.birth, self.concurrency, self.value) == (other.birth, other.concurrency, other.value)
            and (self.shapes, self.restarts) == (other.shapes, other.restarts)
            and (self.patience, self.checkpoint) == (other.patience, other.checkpoint)
            and self.law.group_signals == other.law.group_signals
            and all(np.array_equal(x, y) for x, y in zip(self.law[:5], other.law[:5], strict=True))
        )

    def __hash__(self) -> int:
        law = self.law
        return hash((self.birth, self.concurrency, law.arrivals.tobytes(), law.probabilities.tobytes()))

    def __repr__(self) -> str:
        points = self.requirements
        shown = ", ".join(map(repr, points[:3])) + (f", ... {len(points)} in all" if len(points) > 3 else "")
        more = (f", shapes={self.shapes!r}" if self.shapes else "") + ("" if self.restarts else ", restarts=False")
        more += "" if self.patience is None else f", patience={self.patience}"
        more += "" if self.checkpoint is None else f", checkpoint={self.checkpoint}"
        return (
            f"StatementOfWork(birth={self.birth}, concurrency={self.concurrency}, "
            f"value={self.value!r}, requirements=[{shown}]{more})"
        )


def _rebuild(*fields: Any) -> StatementOfWork:
    """Unpickle."""
    sow = StatementOfWork.__new__(StatementOfWork)
    sow._set(*fields)
    return sow
