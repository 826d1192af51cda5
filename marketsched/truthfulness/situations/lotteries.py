"""The possible fates of a job, as a finite lottery: its statement, its arrival, its duration, its signal.

A statement is a law over (arrival, duration, signal), from which one number of [0, 1) picks. For a job that is already
in the market, the lottery is the law of what is left, given what was seen (docs/mathematics.md, Section 3).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import accumulate

from marketsched.agents.job import Job
from marketsched.agents.loop import NEVER, Fate, Happens
from marketsched.mechanisms.errors import InvalidParameterError
from marketsched.mechanisms.sow import StatementOfWork

CERTAIN = 1 - 1e-9  # probabilities of a law may miss 1 by so much


LotteryOutcome = tuple[StatementOfWork, Fate]


@dataclass(frozen=True, slots=True)
class Lottery:
    """Finitely many outcomes, with probabilities that add up to 1; the last one takes what rounding leaves."""

    outcomes: tuple[LotteryOutcome, ...]
    weights: tuple[float, ...]
    _cumulative: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "_cumulative", tuple(accumulate(self.weights))[:-1])

    @property
    def certain(self) -> bool:
        """True if only one outcome is possible."""
        return len(self.outcomes) == 1

    def pick(self, u: float) -> int:
        """Return the index of the outcome that a number from [0, 1) picks."""
        return bisect_right(self._cumulative, u)


def lottery(cases: Iterable[tuple[LotteryOutcome, float]]) -> Lottery:
    """Return the lottery of ``cases``: those of weight 0 are left out, the others scaled to 1."""
    positive = [(outcome, weight) for outcome, weight in cases if weight > 0]
    total = sum(weight for _, weight in positive)
    return Lottery(tuple(outcome for outcome, _ in positive), tuple(weight / total for _, weight in positive))


def of_statement(sow: StatementOfWork) -> Lottery:
    """Return what may happen to a job of this statement, seen from its birth.

    Examples
    --------
    >>> from marketsched.mechanisms.values import DeadlineValue
    >>> found = of_statement(StatementOfWork(1, 1, DeadlineValue(5.0, 9), [(2, 3, 0.5), (3, 4, 0.25)]))
    >>> [fate.arrival for _, fate in found.outcomes], found.weights
    ([2, 3, None], (0.5, 0.25, 0.25))
    """
    return lottery(((sow, fate), weight) for fate, weight in _points(sow))


def of_waiting(sow: StatementOfWork, now: int) -> Lottery:
    """Return what may still happen to a job that has not arrived before round ``now``.

    If its own law says that it should have, it never arrives.
    """
    left = [((sow, fate), weight) for fate, weight in _points(sow) if fate.arrival is None or fate.arrival >= now]
    return lottery(left or [((sow, NEVER), 1.0)])


def of_arrived(sow: StatementOfWork, seen: Happens, start: int | None, now: int, longest: int) -> Lottery:
    """Return what may still happen to a job that has arrived, and runs since ``start`` if not None.

    Of ``seen`` count arrival and signal; the duration is looked at only of a run with shapes, which ends as it did:
    what a law leaves of it depends on where it runs. The job has run in every round from ``start`` to ``now - 1``, and
    runs for ``longest`` rounds if its own law excludes what was seen.
    """
    if sow.shapes and start is not None and seen.duration is not None:
        return lottery([((sow, Fate(seen.arrival, seen.duration, seen.signal)), 1.0)])
    so_far = 0 if start is None else now - start
    left: list[tuple[LotteryOutcome, float]] = [
        ((sow, Fate(seen.arrival, fate.duration, seen.signal)), weight)
        for fate, weight in _points(sow)
        if fate.arrival is not None and _same(fate, seen) and fate.duration > so_far
    ]
    left_out = int(sow.durations.max()) if sow.shapes else max(longest, so_far + 1)
    return lottery(left or [((sow, Fate(seen.arrival, left_out, seen.signal)), 1.0)])


def fate_of(job: Job) -> Fate:
    """Return what really happens to a job of a workload.

    Raises InvalidParameterError if it arrives before its birth, or runs for less than a round.
    """
    if job.arrival is not None and job.arrival < job.truth.birth:
        raise InvalidParameterError(
            f"job {job.name!r} arrives in round {job.arrival}: expected not before its birth {job.truth.birth}"
        )
    if job.duration < 1:
        raise InvalidParameterError(f"job {job.name!r} has duration {job.duration}: expected at least 1 round")
    return Fate(job.arrival, job.duration, job.signal)


def _points(sow: StatementOfWork) -> list[tuple[Fate, float]]:
    """Return the points of a law of positive weight, and that the job never arrives if mass is missing."""
    points = [(Fate(arrival, duration, signal), p) for arrival, duration, p, signal in sow.law.points() if p > 0]
    mass = sum(weight for _, weight in points)
    return points if mass >= CERTAIN else [*points, (NEVER, 1 - mass)]


def _same(fate: Fate, seen: Happens) -> bool:
    alike = isinstance(fate.signal, bool) == isinstance(seen.signal, bool)
    return fate.arrival == seen.arrival and fate.signal == seen.signal and alike
