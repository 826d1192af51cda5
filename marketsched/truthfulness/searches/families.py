"""The families of misreports that a search tries: a coarse grid of each, and some pairs.

The most informative members come first, so a small budget, which truncates lists, still covers every family.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any

import numpy as np

from marketsched.agents.lies import (
    ABSENT,
    AddDuration,
    AddStep,
    ClaimCheckpoints,
    ClaimRestarts,
    Combination,
    CopyLaw,
    CutDeadline,
    EndValue,
    InflateConcurrency,
    LeaveOut,
    Misreport,
    MoveDigit,
    MoveMass,
    PublicInformation,
    RewriteCurve,
    ScaleDuration,
    ScaleMass,
    ScaleTasks,
    ScaleValue,
    ShiftArrival,
    ShiftDeadline,
    ShiftValue,
    SpreadArrival,
    SpreadDuration,
    Strategy,
    Withdraw,
)
from marketsched.mechanisms.sow import StatementOfWork
from marketsched.truthfulness.searches.own_lies import misreport_of
from marketsched.truthfulness.searches.shape_families import lies_about_shapes

POINTS = 6  # of a law, the heaviest, that are moved or left out one by one


@dataclass(frozen=True)
class Family:
    """Misreports of one kind.

    Its ``members`` are the coarse grid, most telling first.

    Examples
    --------
    >>> family = Family("value", (ScaleValue(0.5), ScaleValue(2.0)))
    >>> Family.of(0, ScaleValue(0.5)).name, len(family.members)
    ('own-1', 2)
    """

    name: str
    members: tuple[Misreport, ...] = field(repr=False)

    @classmethod
    def of(cls, index: int, given: Any) -> Family:
        """Return ``given`` itself, or the family of these misreports, strategies, or of a single one."""
        if isinstance(given, Family):
            return given
        members = list(given) if isinstance(given, Iterable) and not isinstance(given, Strategy) else [given]
        return cls(f"own-{index + 1}", tuple(misreport_of(member) for member in members))


def default_families(truth: StatementOfWork, public: PublicInformation) -> list[Family]:
    """Return the families that make sense for this truth in this market.

    A member may still turn out to be illegal, or the truth.

    Examples
    --------
    >>> from marketsched.mechanisms import DeadlineValue
    >>> truth = StatementOfWork(1, 1, DeadlineValue(4.0, 6), [(2, 2, 1.0)])
    >>> [family.name for family in default_families(truth, PublicInformation(4, 9, 8, max_value=9.0))][:4]
    ['value', 'deadline', 'cut-deadline', 'nodes']
    """
    shaped = lies_about_shapes(truth, public)
    grids: list[tuple[str, Iterable[Misreport]]] = [
        ("value", map(ScaleValue, _factors(0.5, 2.0, 0.8, 0.9, 0.25, 0.7, 1.25, 0.95, 0.6, 4.0, 0.1, 1.5, 0.01))),
        ("value-shift", _value_shifts(truth)),
        ("deadline", map(ShiftDeadline, _both_ways(public.max_delay))),
        ("cut-deadline", map(CutDeadline, _powers(public.max_delay))),
        ("nodes", _nodes(truth, public) if not truth.shapes else ()),
        *shaped.items(),
        ("duration", map(ScaleDuration, _factors(0.5, 2.0, 0.75, 1.5, 0.25, 1.25, 3.0))),
        ("duration-spread", map(SpreadDuration, _powers(min(8, public.max_duration or 8))) if not truth.shapes else ()),
        ("arrival", map(ShiftArrival, _both_ways(min(4, public.max_delay)))),
        ("arrival-spread", map(SpreadArrival, _powers(min(8, public.max_delay)))),
        ("ending", _endings(truth)),
        ("digits", _digits(truth)),
        ("step", map(AddStep, (0.4, 0.9, 0.1))),
        ("curve", map(RewriteCurve, (0, 2, 1))),
        ("restarts", (ClaimRestarts(),)),
        ("checkpoints", _checkpoints(truth)),
        ("one more", map(AddDuration, (1, -1, 2)) if not truth.shapes else ()),
        ("other law", map(CopyLaw, range(len(public.others))) if not truth.shapes else ()),
        ("mass", _masses(truth)),
        ("move-mass", _moves(truth)),
        ("leave-out", _left_out(truth)),
        ("pairs", _pairs(truth, public)),
        ("withdrawal", map(Withdraw, _waits(truth))),
    ]
    families = [Family(name, tuple(members)) for name, members in grids]
    return [family for family in families if family.members]


def interleaved(families: Sequence[Family]) -> Iterator[tuple[Family, Misreport]]:
    """Go through all families at once: the first member of each, then the second of each, ..."""
    for row in zip_longest(*(family.members for family in families)):
        yield from ((f, member) for f, member in zip(families, row, strict=True) if member is not None)


def _factors(*factors: float) -> tuple[float, ...]:
    return factors


def _checkpoints(truth: StatementOfWork) -> Iterator[Misreport]:
    """Yield none where there are some, then others; where durations show no run is taken back."""
    if truth.shapes or _shows_duration(truth):
        return
    if truth.checkpoint is not None:
        yield ClaimCheckpoints(0)
    yield from (ClaimCheckpoints(every) for every in (1, 4, 2) if every != truth.checkpoint)


def _powers(most: int) -> list[int]:
    """Return 1, 2, 4, ... up to ``most``."""
    return [2**k for k in range(most.bit_length()) if 2**k <= most]


def _both_ways(most: int) -> list[int]:
    return [sign * k for k in _powers(most) for sign in (-1, 1)]


def _value_shifts(truth: StatementOfWork) -> list[Misreport]:
    """For curves with more than one positive value; for others it would be a factor."""
    values = truth.value.table(truth.birth, max(1, truth.value.last - truth.birth + 1))
    if np.unique(values[values > 0]).size < 2:
        return []
    return [ShiftValue(share * truth.value.highest) for share in (-0.25, 0.25, -0.1, -0.5, 0.5)]


def _endings(truth: StatementOfWork) -> list[Misreport]:
    """Values that end in .99, .9, 0 or 5, where that is not the truth."""
    forms = [
        EndValue(1.0, *form) for form in ((1.0, 0.99), (1.0, 0.0), (10.0, 0.0), (10.0, 9.99), (5.0, 0.0), (1.0, 0.9))
    ]
    return [lie for lie in forms if truth.value.highest > 0 and abs(lie.target(truth) - truth.value.highest) > 1e-9]


def _digits(truth: StatementOfWork) -> list[Misreport]:
    """Every other digit at the first three places behind the point, and two at the last before it."""
    if truth.value.highest <= 0:
        return []
    found: list[Misreport] = [MoveDigit(-1, 0), MoveDigit(1, 0)]
    for steps in range(1, 10):
        for place in (1, 2, 3):
            own = int(truth.value.highest * 10**place) % 10
            found.append(MoveDigit(steps if own + steps <= 9 else steps - 10, place))
    return found


def _nodes(truth: StatementOfWork, public: PublicInformation) -> list[Misreport]:
    """Every number of nodes, or the nearest and the extreme ones."""
    widest = public.widest
    others = sorted(
        (c for c in range(1, widest + 1) if c != truth.concurrency), key=lambda c: abs(c - truth.concurrency)
    )
    chosen = others if len(others) <= 10 else [*others[:8], 1, widest]
    return [InflateConcurrency(c - truth.concurrency) for c in dict.fromkeys(chosen) if c != truth.concurrency]


def _masses(truth: StatementOfWork) -> list[Misreport]:
    surest = [ScaleMass(1 / truth.mass)] if 0 < truth.mass < 1 - 1e-9 else []
    return [*surest, ScaleMass(0.5), ScaleMass(0.1), ScaleMass(0.9)]


def _heaviest(truth: StatementOfWork) -> list[int]:
    order = np.argsort(-truth.law.probabilities, kind="stable")
    return [int(i) for i in order[:POINTS]]


def _moves(truth: StatementOfWork) -> list[Misreport]:
    """Half or all of a point's probability to another point, or to not arriving."""
    points = _heaviest(truth)[:4]
    if len(points) < 2:
        return []
    found = [MoveMass(i, j, share) for share in (0.5, 0.9) for i in points for j in points if i != j]
    missing = [MoveMass(ABSENT, j, 1.0) for j in points] if truth.mass < 1 - 1e-9 else []
    return [*missing, *found, *(MoveMass(i, ABSENT, 0.5) for i in points)]


def _left_out(truth: StatementOfWork) -> list[Misreport]:
    """Single points, all but one, the longest durations, the latest arrivals."""
    law, n = truth.law, truth.law.arrivals.size
    if n < 2:
        return []
    groups: list[tuple[int, ...]] = [(i,) for i in _heaviest(truth)]
    for column in (law.durations, law.arrivals):
        for extreme in (column.max(), column.min()):
            groups.append(tuple(np.flatnonzero(column == extreme).tolist()))
    if n > 2:
        groups += [tuple(k for k in range(n) if k != i) for i in _heaviest(truth)]
    legal = [points for points in dict.fromkeys(groups) if 0 < len(points) < n]
    return [LeaveOut(points, rescaled=rescaled) for rescaled in (False, True) for points in legal]


def _pairs(truth: StatementOfWork, public: PublicInformation) -> list[Misreport]:
    """A few pairs of which neither half need pay on its own."""
    wider, value, hurry = (
        InflateConcurrency(1) if not truth.shapes else ScaleTasks(2.0),
        (ScaleValue(0.5), ScaleValue(2.0)),
        (ShiftDeadline(-1), ShiftDeadline(2)),
    )
    length = (ScaleDuration(0.5), ScaleDuration(2.0))
    crossed = [*((v, d) for v in value for d in hurry), *((v, d) for v in value for d in length)]
    with_nodes = [(wider, other) for other in (*value, *length, *hurry)]
    return [Combination(pair) for pair in [*with_nodes, *crossed]]


def _waits(truth: StatementOfWork) -> list[int]:
    """At once, and in the last round before the job can arrive."""
    return sorted({0, max(0, int(truth.law.arrivals.max()) - truth.birth)})


def _shows_duration(truth: StatementOfWork) -> bool:
    return all(r.signal == r.duration for r in truth.requirements)
