r"""The turn of a job whose duration is hidden: the expected surplus of each start, and when its run is stopped.

A job pays for the rounds it used when it completes. With ``stop_at_loss`` the mechanism also chooses the stop that is
best for the owner by its report, and a run that is stopped pays for the rounds it used, too. At a cost of k credits a
round (rate times nodes) a run that starts in s and may take L rounds is expected to bring (32)

.. math:: u(s, L) = \sum_{d \le L} p_d V(s + d) - k E[\min(d, L)], \quad s + L \le T,

and one that goes on to the end, :math:`\sum_{s + d \le T + 1} p_d (V(s + d) - k d)`: what is not over after round T
pays nothing. `best_stops` returns the largest of these and where it is reached. A report selects a start and a stop,
and the truth gets the best of both, so no false deadline, value or law gains in expectation. A job that tries its luck
pays for the nodes that it holds meanwhile.

Without it a start is expected to cost :math:`k E[d; s + d \le T + 1]` (`charged_rounds`). If a run that is not over
after round T counted, a job near the horizon would be kept out by rounds that it never pays for, and would gain by
hiding its long runs. Runs that are stopped at the deadline of the report (``stop_at_deadline``) pay nothing, and count
all the same: a nearer deadline then has long runs stopped free of charge, a larger value starts runs whose long cases
are, and truth is not the best report.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from marketsched.mechanisms.auctions.first_come_kernels import (
    charged_kernel,
    favourites_kernel,
    surplus_kernel,
    turn_kernel,
    worth_kernel,
)
from marketsched.mechanisms.auctions.waiting_job import WaitingJob
from marketsched.mechanisms.columns import steps_of
from marketsched.mechanisms.law import DurationLaw
from marketsched.mechanisms.values import ValueCurve

BY_DEFAULT = (
    "truth is not promised by default, since a nearer deadline has long runs stopped free of charge, but "
    "with stop_at_loss, or without stop_at_deadline, it is best for each job on average over its own duration"
)


class BestStops(NamedTuple):
    """Of starts in consecutive rounds: what each is expected to bring, and when its run is stopped for that."""

    surplus: NDArray[np.float64]  # (n_starts,), credits, >= 0
    rounds: NDArray[np.int64]  # (n_starts,), the most that a run may take; 0: no start is worth its cost


def best_stops(curve: ValueCurve, law: DurationLaw, first: int, last: int, end: int, cost: float) -> BestStops:
    """Return what starts ``first, first + 1, ...`` bring if their runs are stopped at the best time, and pay for it.

    ``last`` is the last completion worth anything: a start counts if the shortest run completes by then; ``end`` is T +
    1, the last completion that can happen; ``cost``, credits a round, is paid by runs that complete or are stopped.

    Examples
    --------
    One round, rarely ten: at the start the short run is hoped for, and after it the long one is not paid for.

    >>> from marketsched.mechanisms.values import DeadlineValue
    >>> law = DurationLaw(np.array([1, 10]), np.array([0.9, 0.1]))
    >>> best_stops(DeadlineValue(8.0, 30), law, 1, 2, 101, 1.0)
    BestStops(surplus=array([6.2]), rounds=array([1]))
    """
    shortest = int(law.durations[0]) if law.durations.size else 0
    n_starts = max(0, last - shortest - first + 1) if shortest else 0
    best, rounds = np.zeros(n_starts), np.zeros(n_starts, dtype=np.int64)
    if not n_starts:
        return BestStops(best, rounds)
    beyond = np.zeros(int(law.durations[-1]) - shortest)
    values = np.concatenate([curve.table(first + shortest, n_starts), beyond])
    to_end = end - first - np.arange(n_starts)  # rounds from a start to the end
    brought, longer = np.zeros(n_starts), np.ones(n_starts)  # by completions so far; how likely none of them happens
    for d, share in zip(law.durations.tolist(), law.weights.tolist(), strict=True):
        n = int(np.count_nonzero(to_end >= d))
        brought[:n] += share * (values[d - shortest : d - shortest + n] - cost * d)
        longer[:n] = longer[:n] - share if d < law.durations[-1] else 0.0
        stopped = brought - cost * d * np.maximum(0.0, longer)
        better = (stopped > best) & (to_end > d)
        best[better], rounds[better] = stopped[better], d
    better = brought > best  # goes on to the end
    return BestStops(np.where(better, brought, best), np.where(better, to_end, rounds))


def last_completion(curve: ValueCurve, law: DurationLaw, start: int, rounds: int, last: int, cost: float) -> int:
    """Return the completion time after which a run that may take ``rounds`` of `BestStops` is stopped.

    A run that outlasts every duration of its law goes on while completing would bring more than it costs in all: by
    the law that never happens, so it moves no expectation.
    """
    if not rounds or rounds != law.durations[-1]:
        return start + rounds
    ages = np.arange(rounds, max(rounds, last - start) + 1)
    good = np.flatnonzero(curve.table(start + rounds, ages.size) > cost * ages)
    return start + (int(ages[good[-1]]) if good.size else rounds)


def expected_surplus(
    curve: ValueCurve, law: DurationLaw, first: int, last: int, end: int, cost: float
) -> NDArray[np.float64]:
    """Return what starts ``first, first + 1, ...`` are expected to bring less what they pay, without ``stop_at_loss``.

    Arguments are those of `best_stops`. The last start is that whose shortest run completes by ``last``; of an empty
    law there is none.
    """
    shortest = int(law.durations[0]) if law.durations.size else 0
    steps = steps_of(curve, first + shortest, last)
    return np.asarray(surplus_kernel(*law, *steps, first, last, end, cost))


def expected_worth(x: WaitingJob, law: DurationLaw) -> NDArray[np.float64]:
    """Return the expected value of starts from the arrival of a job on, credits; shape as of the surplus."""
    shortest = int(law.durations[0]) if law.durations.size else 0
    return np.asarray(worth_kernel(*law, *x.steps(x.arrival + shortest, x.useful), x.arrival, x.useful))


def charged_rounds(law: DurationLaw, first: int, n_starts: int, last: int) -> NDArray[np.float64]:
    """Return the rounds that starts ``first, first + 1, ...`` are expected to pay for without ``stop_at_loss``.

    The mean duration, except where the longest run would complete after ``last``, the last completion that can happen.
    """
    return np.asarray(charged_kernel(*law, first, n_starts, last))


def favourites(surplus: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return for each start the place of the best one from it on, the earliest of equals."""
    return np.asarray(favourites_kernel(surplus))


def start_at_turn(
    surplus: NDArray[np.float64], best: int, free: NDArray[np.int64], now: int, width: int, limit: int
) -> int | None:
    """Return the start that a job gets in this round, `NOT_YET` if this is not its turn, None if none can pay.

    It has its turn when its nodes are free for as long as it may run. It then gets the start of largest surplus, the
    earliest of equals, among those that its nodes can be kept for without a gap. ``surplus``, credits, is that of
    starts now, now + 1, ..., and ``best`` the place of the largest; ``free`` has the nodes not booked from round 1 on.
    """
    found = int(turn_kernel(surplus, best, free, now, width, limit))
    return None if found < 0 else found
