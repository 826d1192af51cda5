r"""The prediction rule: from the past runs of one recurring job to the law :math:`P(a, d)` of the next.

Let ``m`` be the median of the last gaps between submissions and ``e`` = last submission + ``m``. The
owner announces the next run at ``e - min(lead, m)``. The arrival is predicted where the past gaps,
shifted to the median, put it; the duration where the past durations were. Both laws are blurred
with a small kernel, mixed with a little of the uniform law over their range, and multiplied.

Rounds are counted from 1: round ``r`` covers ``origin + (r - 1) * round_seconds`` up to, and without,
``origin + r * round_seconds``.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, NamedTuple

import numpy as np
from numpy.typing import NDArray

from marketsched.mechanisms.legal import Amount, Count, Finite, Positive, Whole, check_fields

FEWEST_GAPS = 5  # between the runs before it: with fewer a run is not predicted
WIDEST_FILLED = 40  # values of a range over which a law is mixed with the uniform one
MOST_POINTS = 600  # of a joint law: the heaviest are kept
SIDE, MIDDLE = 0.1, 0.8  # the kernel: a tenth of each past value goes to either side


class IntegerLaw(NamedTuple):
    """A law on the integers: ``values`` increase, ``probabilities`` are positive and add up to 1."""

    values: NDArray[np.int64]  # (n_values,)
    probabilities: NDArray[np.float64]  # (n_values,)

    @property
    def mean(self) -> float:
        """Expectation."""
        return float(self.values @ self.probabilities)

    def quantile(self, p: float) -> int:
        """Return the smallest value that is not exceeded with probability ``p`` (1e-12 of slack)."""
        return int(self.values[np.searchsorted(np.cumsum(self.probabilities), p - 1e-12)])


class Prediction(NamedTuple):
    """The announcement of one run. Rounds; the joint law is sorted by (arrival, duration)."""

    birth: int  # round of the announcement
    birth_s: float  # its time, s: the order of submissions inside a round
    expected: int  # round of e
    early: bool  # the run came before it was announced: the arrival is certain
    duration: IntegerLaw  # marginal law of the duration, before the joint law is cut
    arrivals: NDArray[np.int64]  # (n_points,)
    durations: NDArray[np.int64]  # (n_points,)
    probabilities: NDArray[np.float64]  # (n_points,), total 1


@dataclass(frozen=True, slots=True)
class PredictionRule:
    """Parameters of the rule.

    Parameters
    ----------
    round_seconds : float
        Length of a round.
    lead_seconds : float
        How long before the expected arrival a run is announced, at most (never more than a period).
    history : int
        Number of past gaps, and of past runs, that are used; a run with fewer than `FEWEST_GAPS` is not predicted.
    max_duration : int
        D_max, rounds; longer runs are clipped.
    filling : float
        Share of the uniform law over the range, against surprises, where that has at most `WIDEST_FILLED` values.

    Examples
    --------
    >>> rule = PredictionRule(round_seconds=300.0, lead_seconds=7200.0)
    >>> rule.lead_rounds, rule.rounds_of(run_s=1000.0)
    (24, 4)
    """

    round_seconds: Positive = 300.0
    lead_seconds: Amount = 7200.0
    history: Annotated[int, Whole(FEWEST_GAPS)] = 20
    max_duration: Count = 48
    filling: Annotated[float, Finite("[0, 1)")] = 0.05

    def __post_init__(self) -> None:
        check_fields(self)

    @property
    def lead_rounds(self) -> int:
        """Rounds from an announcement to the expected arrival, at most."""
        return math.ceil(self.lead_seconds / self.round_seconds)

    def rounds_of(self, run_s: float) -> int:
        """Return the duration in rounds of a run of ``run_s`` seconds, in ``[1, max_duration]``."""
        return min(max(math.ceil(run_s / self.round_seconds), 1), self.max_duration)


class History(NamedTuple):
    """The runs of one recurring job, in order of submission; plain lists, which loops read fastest."""

    submits: list[float]  # s
    ends: list[float]  # s; NaN or infinite: not known to have ended
    durations: list[int]  # rounds, clipped; whatever where the end is not known


def arrival_law(rounds: Sequence[int], birth: int, rule: PredictionRule) -> IntegerLaw:
    """Return the law of the arrival round; all that lies before ``birth``, of the announcement, counts as ``birth``.

    ``rounds`` are those where past gaps would put the next arrival.

    Examples
    --------
    >>> arrival_law([7, 7, 7, 9], 7, PredictionRule(filling=0.0))
    IntegerLaw(values=array([ 7,  8,  9, 10]), probabilities=array([0.675, 0.1  , 0.2  , 0.025]))
    """
    weights: dict[int, float] = {}
    for x, n in Counter(rounds).items():
        x = max(x, birth)
        for y, weight in ((max(x - 1, birth), SIDE * n), (x, MIDDLE * n), (x + 1, SIDE * n)):
            weights[y] = weights.get(y, 0.0) + weight
    return _filled(weights, rule)


def duration_law(durations: Sequence[int], rule: PredictionRule) -> IntegerLaw:
    """Return the law of the duration from past durations, rounds in ``[1, rule.max_duration]``.

    A past duration ``d`` counts at ``floor(d / 1.25)``, ``d`` and ``d + ceil(d / 4)``, clipped.

    Examples
    --------
    >>> duration_law([4], PredictionRule(filling=0.0))
    IntegerLaw(values=array([3, 4, 5]), probabilities=array([0.1, 0.8, 0.1]))
    """
    weights: dict[int, float] = {}
    for d, n in Counter(durations).items():
        shorter, longer = max(4 * d // 5, 1), min(d + -(-d // 4), rule.max_duration)
        for y, weight in ((shorter, SIDE * n), (d, MIDDLE * n), (longer, SIDE * n)):
            weights[y] = weights.get(y, 0.0) + weight
    return _filled(weights, rule)


def _filled(weights: dict[int, float], rule: PredictionRule) -> IntegerLaw:
    """Scale weights to probabilities, mixed with the uniform law over their range if it is narrow."""
    low, high, total = min(weights), max(weights), sum(weights.values())
    width = high - low + 1
    if rule.filling > 0 and width <= WIDEST_FILLED:
        everywhere, scale = rule.filling / width, (1 - rule.filling) / total
        probabilities = [everywhere + scale * weights.get(x, 0.0) for x in range(low, high + 1)]
        return IntegerLaw(np.arange(low, high + 1), np.array(probabilities))
    values = sorted(weights)
    return IntegerLaw(np.array(values), np.array([weights[x] / total for x in values]))


def joint_law(
    arrival: IntegerLaw, duration: IntegerLaw, max_points: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    """Return arrivals, durations and probabilities of the product law, sorted by (arrival, duration).

    Only the ``max_points`` heaviest points are kept (of equal ones the first), and scaled to total 1.
    """
    probabilities = np.multiply.outer(arrival.probabilities, duration.probabilities).ravel()
    arrivals = arrival.values.repeat(duration.values.size)
    durations = duration.values[None, :].repeat(arrival.values.size, axis=0).ravel()
    if probabilities.size > max_points:
        kept = np.sort(np.argsort(-probabilities, kind="stable")[:max_points])
        arrivals, durations, probabilities = arrivals[kept], durations[kept], probabilities[kept]
    return arrivals, durations, probabilities / probabilities.sum()


def predict(past: History, run: int, rule: PredictionRule, origin: float) -> Prediction | None:
    """Predict run number ``run`` of a recurring job from the data known when it was announced.

    The gaps are those between the runs before it, the last ``rule.history`` of them; the durations
    those of the last ``rule.history`` runs that had ended by the announcement. If the run came
    before the announcement, it is announced when it comes, and its arrival is certain.

    Parameters
    ----------
    past : History
        All runs of the job. Runs from ``run`` on are not used, except the submission of ``run`` itself, to see
        whether it came early.
    run : int
        Index of the run to predict.
    rule : PredictionRule
        Parameters.
    origin : float
        Time at which round 1 begins, s.

    Returns
    -------
    Prediction or None
        None if there are fewer than `FEWEST_GAPS` gaps, or no earlier run has ended by then.

    Examples
    --------
    >>> hourly = [3600.0 * k for k in range(8)]
    >>> past = History(hourly, [start + 900.0 for start in hourly], [3] * 8)
    >>> found = predict(past, 7, PredictionRule(), origin=0.0)
    >>> found.birth, found.expected, found.duration.values
    (73, 85, array([2, 3, 4]))
    """
    first = max(run - 1 - rule.history, 0)
    if run - 1 - first < FEWEST_GAPS:
        return None
    submits = past.submits
    gaps = [submits[i + 1] - submits[i] for i in range(first, run - 1)]
    period = _median(gaps)
    expected_s = submits[run - 1] + period
    announced_s = submits[run - 1] + max(period - rule.lead_seconds, 0.0)  # e - min(lead, m)
    early = submits[run] < announced_s
    birth_s = submits[run] if early else announced_s

    durations: list[int] = []
    for i in range(run - 1, -1, -1):
        if past.ends[i] <= birth_s:
            durations.append(past.durations[i])
            if len(durations) == rule.history:
                break
    if not durations:
        return None

    length = rule.round_seconds
    birth = math.floor((birth_s - origin) / length) + 1
    if early:
        arrival = IntegerLaw(np.array([birth]), np.array([1.0]))
    else:
        last = submits[run - 1] - origin  # e + (gap - m) is the last submission + gap
        arrival = arrival_law([math.floor((last + gap) / length) + 1 for gap in gaps], birth, rule)
    duration = duration_law(durations, rule)
    points = joint_law(arrival, duration, MOST_POINTS)
    return Prediction(birth, birth_s, math.floor((expected_s - origin) / length) + 1, early, duration, *points)


def _median(values: list[float]) -> float:
    ordered = sorted(values)
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


def distinct_rows(rows: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the rows that differ, sorted, and which of them each row is: `numpy.unique` in an eighth of its time."""
    order = np.lexsort(rows.T[::-1])
    new = np.ones(order.size, np.bool_)
    new[1:] = (rows[order[1:]] != rows[order[:-1]]).any(axis=1)
    place = np.empty(order.size, np.int64)
    place[order] = np.cumsum(new) - 1
    return rows[order[new]], place
