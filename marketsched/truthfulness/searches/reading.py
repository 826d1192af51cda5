"""A search that reads the rule: reports at the numbers that the rule compares a report's numbers with.

For rules whose trigger is narrow: one value in a thousand, a deadline divisible by 4, the third step of a value curve,
three nodes and more. Candidates come from three sources: comparisons that were noted while a report of captured numbers
was played (:mod:`..captured`), numbers of the rule's code (:mod:`..mining`), and chance. A report that is the first to
meet a comparison is a point from which the next candidates are made, so that triggers in a row are found one after the
other. What gains is played again with plain numbers before it counts. Before all of them stand reports of jobs that are
in no hurry, for rules that compare no number, but whom they serve or evict.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from marketsched.agents.conduct import Conduct, Statement
from marketsched.mechanisms.errors import InvalidReportError, MarketschedError, MechanismFault
from marketsched.mechanisms.sow import StatementOfWork
from marketsched.mechanisms.values import DeadlineValue, TableValue, ValueCurve
from marketsched.truthfulness.searches.captured import Notes, capture
from marketsched.truthfulness.searches.evaluation import ROUNDING, BudgetSpent
from marketsched.truthfulness.searches.mining import mined_numbers
from marketsched.truthfulness.searches.own_lies import FixedReport
from marketsched.truthfulness.searches.plays_ahead import Asked, Held
from marketsched.truthfulness.searches.screened import Gain
from marketsched.truthfulness.searches.screening import Screening
from marketsched.truthfulness.situations.owner_at_hand import OwnerAtHand

BESIDE = (0.0, 1e-6, -1e-6, 1e-3, -1e-3)  # of a threshold, or of 1: how far beside it values are tried
EACH = 24  # candidates of one owner at a time
POINTS = 12  # that candidates of one owner are made from
MOST_STEPS = 6  # of a value curve
WAITS = (0.5, 0.25, 0.75)  # of the rounds between birth and deadline, after which a job says it is worth something


@dataclass(frozen=True, slots=True)
class Point:
    """A report, by its numbers; ``factor`` is that of the durations, ``steps`` those of the value curve.

    With ``first`` the job is worth nothing before that round, and its curve has one step.
    """

    value: float
    deadline: int
    nodes: int
    factor: float = 1.0
    steps: int = 1
    first: int = 0

    @classmethod
    def of(cls, truth: StatementOfWork) -> Point:
        """Return the truth, or what comes next to it with one step."""
        return cls(float(truth.value.highest), int(truth.value.last), truth.concurrency)

    def report(self, truth: StatementOfWork, notes: Notes | None = None) -> StatementOfWork:
        """Return the statement; with ``notes`` its numbers are captured. Raises InvalidReportError."""
        points = [
            (r.arrival, max(1, round(r.duration * self.factor)), r.probability, r.signal) for r in truth.requirements
        ]
        made = StatementOfWork(truth.birth, self.nodes, self._curve(None), points, truth.shapes, **truth.terms)
        if notes is None:
            return made
        noting = StatementOfWork.__new__(StatementOfWork)
        nodes, curve = capture(self.nodes, "nodes", notes), self._curve(notes)
        noting._store(truth.birth, nodes, curve, made.law, made.shapes, truth.restarts, truth.patience)
        return noting

    def _curve(self, notes: Notes | None) -> ValueCurve:
        if self.steps > 1:
            last = self.deadline
            return TableValue({last - self.steps + 1 + k: self.value * (1 - 0.15 * k) for k in range(self.steps)})
        if self.first:
            return TableValue(dict.fromkeys(range(self.first, self.deadline + 1), self.value))
        curve = DeadlineValue(self.value, self.deadline)
        if notes is not None:
            object.__setattr__(curve, "value", capture(float(self.value), "value", notes))
            object.__setattr__(curve, "deadline", capture(int(self.deadline), "deadline", notes))
        return curve


class Captured(NamedTuple):
    """The results of a play of captured numbers.

    ``utility`` is None if it was refused, or ended with a fault (``fails``: the mechanism takes no such numbers).
    """

    utility: float | None = None
    notes: Notes = Notes()
    fails: bool = False


def captured_play(owner: OwnerAtHand, point: Point) -> Captured:
    """Play a report, which is legal, with captured numbers."""
    notes = Notes()
    try:
        report = point.report(owner.truth, notes)
        conduct = Conduct((Statement(report.birth, report, owner.truth.concurrency),), point)
        return Captured(float(owner.play(conduct, noted=True).utility), notes)
    except InvalidReportError:
        return Captured(None, notes)
    except (MechanismFault, TypeError, ValueError):
        return Captured(None, notes, fails=True)


def captured_at(held: Held, asked: tuple[str, Point]) -> Captured:
    """Play captured numbers where a worker holds the market."""
    return captured_play(held.owner(asked[0]), asked[1])


def _legal(owner: OwnerAtHand, point: Point) -> bool:
    try:
        owner.check(point.report(owner.truth))
    except MarketschedError:
        return False
    return True


def _waits(truth: StatementOfWork) -> list[Point]:
    """Return reports of a job that is worth nothing before some round between its birth and its deadline."""
    point = Point.of(truth)
    firsts = [truth.birth + round(share * (point.deadline - truth.birth)) for share in WAITS]
    return [replace(point, first=first) for first in dict.fromkeys(firsts) if first > truth.birth]


class Reading:
    """The search in one market at hand: owners of ``screening``, which counts plays and keeps what gains, in turn."""

    def __init__(self, screening: Screening, seed: int) -> None:
        self._screening, self._rng = screening, np.random.default_rng([0x4EAD, seed])
        mechanism = screening.found.market.setup.mechanism
        self._mined = mined_numbers(mechanism)
        self._top = screening.found.market.public.max_value
        self._known: set[tuple[str, str, float]] = set()  # comparisons that were met
        self._tried: set[tuple[str, Point]] = set()
        self._made: dict[tuple[str, Point], Captured] = {}  # plays of captured numbers, not yet counted
        self.captures = True  # until the mechanism refuses captured numbers

    def run(self, enough: int = 1) -> None:
        """Search owner by owner until ``enough`` lies break the promise, or the budget ends."""
        owners = deque((owner, deque([Point.of(owner.truth)])) for owner in self._screening.found.owners)
        broken = idle = 0
        try:
            while owners and broken < enough and idle <= len(owners):  # else no report that could be made is legal
                spent = self._screening.budget.plays
                owners.rotate(-1)  # its turn comes again
                gains = self._look(*owners[-1])
                if gains:
                    self._screening.own_laws(gains)
                    broken += self._screening.found.best_counted is not None
                idle = 0 if self._screening.budget.plays > spent else idle + 1
        except BudgetSpent:
            pass
        self._screening.found.plays = self._screening.budget.plays

    def _look(self, owner: OwnerAtHand, points: deque[Point]) -> list[Gain]:
        """Play reports of one owner that are made from the first of its points; return what gains."""
        begin, notes = points[0], Notes()
        points.rotate(-1)  # it comes again, with other numbers left to chance
        if self.captures:
            notes = self._captured(owner, begin).notes
            self._meets(notes)
        candidates = self._candidates(owner, begin, notes)
        self._play_ahead(owner, candidates)
        found: list[Gain] = []
        for point in candidates:
            self._tried.add((owner.name, point))
            gain, met = self._play(owner, point)
            if gain is not None and gain.gain > 0:
                found.append(gain)
            if met and len(points) < POINTS:
                points.appendleft(point)
        return found

    def _candidates(self, owner: OwnerAtHand, begin: Point, notes: Notes) -> list[Point]:
        """Return reports to play: those beside what was noted, those at numbers of the rule's code, some by chance."""
        candidates = [*self._beside(begin, notes)]
        mined = [*self._mined_from(owner, begin)]
        self._rng.shuffle(mined)
        candidates = [x for pair in zip(candidates, mined, strict=False) for x in pair] + candidates + mined
        chance = [self._random(owner, begin) for _ in range(EACH // 4)]
        waits = _waits(owner.truth) if begin == Point.of(owner.truth) else []
        return [p for p in dict.fromkeys(waits + chance + candidates) if (owner.name, p) not in self._tried][:EACH]

    def _play_ahead(self, owner: OwnerAtHand, points: Sequence[Point]) -> None:
        """Have workers play these reports: captured numbers, or the reports as they are."""
        ahead, screening = self._screening.ahead, self._screening
        if ahead is None or not ahead.on or screening.budget.out_of_time:
            return
        legal = [point for point in points if _legal(owner, point)]
        if self.captures:
            items = [(owner.name, point) for point in legal][: screening.budget.plays_left]
            made = ahead.many(captured_at, items, screening.budget, settles=screening.found.market.settles)
            self._made.update({item: found for item, found in made if isinstance(found, Captured)})
        else:
            plays = [(owner, Asked(owner.name, FixedReport(point.report(owner.truth)))) for point in legal]
            ahead.plays(screening.found.market, plays, screening.budget)

    def _captured(self, owner: OwnerAtHand, point: Point) -> Captured:
        """Play captured numbers, or look up what workers have played."""
        made = self._made.pop((owner.name, point), None)
        if not _legal(owner, point):
            return Captured()
        self._screening.budget.take()
        made = captured_play(owner, point) if made is None else made
        if made.fails and point == Point.of(owner.truth):
            self.captures = False  # the truth is no fault of the report
        return made

    def _play(self, owner: OwnerAtHand, point: Point) -> tuple[Gain | None, bool]:
        """Return the gain of a report, and whether it met a comparison that none had met before."""
        made = self._captured(owner, point) if self.captures else Captured()
        utility = made.utility
        met = utility is not None and self._meets(made.notes)
        if utility is not None and utility <= owner.truthful.utility + ROUNDING * (1 + abs(owner.truthful.utility)):
            return None, met
        if not _legal(owner, point):
            return None, False
        report = point.report(owner.truth)
        return (None if report == owner.truth else self._screening.try_lie(owner, FixedReport(report))), met

    def _meets(self, notes: Notes) -> bool:
        """Note the comparisons of a play; tell whether one of them is new."""
        new = {("turn", name, at) for name, all_ in notes.turns.items() for at in all_}
        new |= {(f"rest of {modulus}", name, rest) for name, all_ in notes.remainders.items() for modulus, rest in all_}
        met = bool(new - self._known)
        self._known |= new
        return met

    def _beside(self, point: Point, notes: Notes) -> Iterator[Point]:
        """Yield reports at the numbers that a play has noted, and a little beside them."""
        for at in sorted(notes.turns.get("value", ()), key=lambda x: abs(x - point.value)):
            for beside in BESIDE:
                yield replace(point, value=at + beside * max(abs(at), 1.0))
        for a, b in sorted(notes.cut.get("value", ())):
            for c in self._mined:
                if 0 < (at := (c + 0.5 - b) / a) <= (self._top or math.inf):
                    yield replace(point, value=at)
        for name in ("deadline", "nodes"):
            for at in sorted(notes.turns.get(name, ())):
                for step in (0, 1, -1):
                    yield replace(point, **{name: round(at) + step})
            for modulus, rest in notes.remainders.get(name, ()):
                own = getattr(point, name)
                for k in (0, 1, -1, 2):
                    near = own - (own - rest) % abs(modulus) + k * abs(modulus)
                    yield replace(point, **{name: round(near)})
        for modulus, rest in notes.remainders.get("value", ()):
            near = point.value - (point.value - rest) % abs(modulus)
            for k in (0, 1, -1):
                yield replace(point, value=near + k * abs(modulus))

    def _mined_from(self, owner: OwnerAtHand, point: Point) -> Iterator[Point]:
        """Yield reports at numbers of the rule's code: themselves, as shares of V_max, and between two neighbours."""
        numbers, top = self._mined, self._top
        near = [(a + b) / 2 for a, b in pairwise(numbers) if b - a < 1 + abs(a)]
        for c in [*near, *numbers]:
            if c > 0:
                yield replace(point, value=c)
                if top:
                    yield replace(point, value=c * top)
                    yield replace(point, value=top / c)
            if c == round(c) and 0 < c < 10_000:
                n = int(c)
                yield replace(point, nodes=n)
                if n > 1:
                    yield replace(point, deadline=point.deadline + (-point.deadline) % n)
                    yield replace(point, deadline=owner.truth.birth + n)
                if 1 < n <= MOST_STEPS:
                    yield replace(point, steps=n)

    def _random(self, owner: OwnerAtHand, point: Point) -> Point:
        """Return a report with one or two numbers changed by chance."""
        rng, top = self._rng, self._top or 2 * max(point.value, 1.0)
        for _ in range(int(rng.integers(1, 3))):
            what = int(rng.integers(5))
            if what == 0:
                share = float(rng.uniform(0, 1.2))
                point = replace(point, value=float(rng.uniform(0, top)) if rng.random() < 0.5 else share * point.value)
            elif what == 1:
                point = replace(point, deadline=point.deadline + int(rng.integers(-3, 6)))
            elif what == 2:
                point = replace(point, nodes=int(rng.integers(owner.truth.concurrency, owner.public.widest + 1)))
            elif what == 3:
                point = replace(point, factor=float(rng.choice([0.5, 0.75, 1.5, 2.0])))
            else:
                point = replace(point, steps=int(rng.integers(2, MOST_STEPS + 1)))
        return point
