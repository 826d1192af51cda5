r"""The turn of a job whose duration is hidden: the expected surplus of each start, and when its run is stopped.

A job pays for the rounds it used, when it completes; a run that is stopped pays nothing. With ``stop_at_loss`` the
mechanism chooses the stop that is best for the owner by its report. At a cost of k credits a round (rate times nodes)
a run that starts in s and may take L rounds is expected to bring

.. math:: u(s, L) = \sum_{d \le L} p_d (V(s + d) - k d), \quad\text{completions up to the last that is worth anything.}

`surplus_of_starts` returns :math:`\max_L u(s, L)`, `last_completion` the stop that reaches it. A report selects a start
and a stop, and the truth gets the best of both, so no false deadline, value or law gains. Where V never rises, the best
stop is the last completion that is worth more than it costs, whatever the law, and the best start is the first.

Without it a start is expected to cost :math:`k E[d; s + d \le T + 1]` (`charged_rounds`): a run that is not over after
round T pays nothing. If it counted, a job near the horizon would be kept out by rounds that it never pays for, and
would gain by hiding its long runs. Runs that are stopped at the deadline of the report (``stop_at_deadline``) pay
nothing either, and count all the same: a nearer deadline then has long runs stopped for nothing, and truth is not the
best report. In exchange jobs do not try their luck with runs that are free if they fail.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from marketsched.mechanisms.auctions.arrival_market import NOT_YET, TOLERANCE
from marketsched.mechanisms.law import Signal
from marketsched.mechanisms.sow import StatementOfWork
from marketsched.mechanisms.values import DeadlineValue, ValueCurve


class DurationLaw(NamedTuple):
    """What a report says of the duration, once arrival and signal are known; empty if it excludes all."""

    durations: NDArray[np.int64]  # (n,), rounds, rising
    weights: NDArray[np.float64]  # (n,), adding up to 1

    @property
    def mean(self) -> float:
        """Expected duration, rounds; 0 without any."""
        return float(self.weights @ self.durations)


def duration_law(sow: StatementOfWork, arrival: int, signal: Signal) -> DurationLaw:
    """Return the law of the duration by a report, given arrival and signal."""
    points = sow.law.points_of(arrival, signal)
    durations, weights = sow.law.durations[points], sow.law.probabilities[points]
    mass = float(weights.sum())
    if mass <= 0:
        return DurationLaw(durations[:0], weights[:0])
    if (durations[1:] <= durations[:-1]).any():  # of several cases, one after the other
        days, case = np.unique(durations, return_inverse=True)
        return DurationLaw(days, np.bincount(case, weights=weights) / mass)
    return DurationLaw(durations, weights / mass)


def surplus_of_starts(curve: ValueCurve, law: DurationLaw, first: int, last: int, cost: float) -> NDArray[np.float64]:
    """Return what starts ``first, first + 1, ...`` are expected to bring if their runs are stopped at the best time.

    Parameters
    ----------
    curve : ValueCurve
        The value by the report.
    law : DurationLaw
        Of the duration by the report.
    first : int
        A round.
    last : int
        The last completion worth anything.
    cost : float
        Credits a round, on completion.

    Returns
    -------
    ndarray of float, shape (n_starts,)
        Credits, >= 0; one for each start from which the shortest run completes by ``last``.
    """
    if not law.durations.size:
        return np.zeros(0)
    n_starts, shortest = max(0, last - int(law.durations[0]) - first + 1), int(law.durations[0])
    values = curve.table(first + shortest, n_starts)
    so_far, best = np.zeros(n_starts), np.zeros(n_starts)
    for d, share in zip(law.durations.tolist(), law.weights.tolist(), strict=True):
        n = n_starts - (d - shortest)
        if n <= 0:
            break
        so_far[:n] += share * (values[d - shortest :] - cost * d)
        np.maximum(best[:n], so_far[:n], out=best[:n])
    return best


def last_completion(curve: ValueCurve, law: DurationLaw, start: int, last: int, cost: float) -> int:
    """Return the completion time after which a run is stopped: the last of the stop that brings most.

    Parameters
    ----------
    curve, law, last, cost
        As `surplus_of_starts`.
    start : int
        First round of the run.

    Returns
    -------
    int
        ``start`` if no completion is worth what it costs.
    """
    if isinstance(curve, DeadlineValue) and cost <= 0:
        return last
    longest = max(0, last - start)
    ages = np.arange(longest + 1)
    net = curve.table(start, longest + 1) - cost * ages
    if isinstance(curve, DeadlineValue) or (np.diff(net) <= 0).all():  # it falls: the law does not matter
        end = ages.size
    else:
        days = law.durations[: int(law.durations.searchsorted(longest, side="right"))]
        brought = np.cumsum(law.weights[: days.size] * net[days])
        if not days.size or brought.max() <= 0:
            return start
        best = int(brought.argmax())
        end = int(law.durations[best + 1]) if best + 1 < law.durations.size else ages.size
    good = np.flatnonzero(net[:end] > 0)
    return start + (int(good[-1]) if good.size else 0)


def charged_rounds(law: DurationLaw, first: int, n_starts: int, last: int) -> NDArray[np.float64]:
    """Return the rounds that starts ``first, first + 1, ...`` are expected to pay for without ``stop_at_loss``.

    Parameters
    ----------
    law : DurationLaw
        Of the duration.
    first : int
        A round.
    n_starts : int
        How many.
    last : int
        The last completion that can happen.

    Returns
    -------
    ndarray of float, shape (n_starts,)
        The mean duration, except where the longest run would complete later.
    """
    found = np.full(n_starts, law.mean)
    longest = int(law.durations.max(initial=0))
    for k in range(max(0, last + 1 - longest - first), n_starts):
        charged = first + k + law.durations <= last
        found[k] = float(law.weights[charged] @ law.durations[charged])
    return found


def start_at_turn(
    surplus: NDArray[np.float64], free: NDArray[np.int64], now: int, width: int, limit: int
) -> int | None:
    """Return the start that a job gets in this round, `NOT_YET` if this is not its turn, None if none can pay.

    It has its turn when its nodes are free for as long as it may run. It then gets the start of largest surplus, the
    earliest of equals, among those that its nodes can be kept for without a gap.

    Parameters
    ----------
    surplus : ndarray of float
        Expected value less expected payment of starts now, now + 1, ..., credits.
    free : ndarray of int, shape (horizon,)
        Nodes that are not booked; round 1 first.
    now, width, limit : int
        The round, nodes, and the most rounds it may run.
    """
    best = int(surplus.argmax()) if surplus.size else 0
    if not surplus.size or surplus[best] <= TOLERANCE:
        return None
    if best and not (free[now - 1 : now - 1 + best + limit] < width).any():
        return now + best
    ahead = free[now - 1 : now - 1 + limit]
    if (ahead < width).any():
        return NOT_YET
    if best:  # a booking lies before the best start ends
        full = free[now - 1 : now - 1 + best + limit] < width
        best = int(surplus[: int(full.argmax()) - limit + 1].argmax())
    return now + best if surplus[best] > TOLERANCE else NOT_YET
