"""The turn of a job whose duration is hidden: what each start is expected to cost, and which start it gets.

A job pays for the rounds it used, when it completes. A run that is not over after round T never completes and pays
nothing. So a start s is expected to cost ``R c E[d; s + d <= T + 1]``: only runs that end by the horizon count. If all
runs counted, a job near the horizon would be kept out by rounds that it never pays for, and would gain by hiding its
long runs.

Runs that are stopped at the deadline of the report (``stop_at_deadline``) pay nothing either, and count all the same:
if they did not, jobs would wait until only their shortest runs could be charged, and keep nodes idle meanwhile. A
nearer deadline then has long runs stopped for nothing: truth is not the best report, and the promise is "none".
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from marketsched.mechanisms.auctions.arrival_market import NOT_YET, TOLERANCE
from marketsched.mechanisms.sow import StatementOfWork


def charged_rounds(sow: StatementOfWork, points: slice, first: int, n_starts: int, last: int) -> NDArray[np.float64]:
    """Return the rounds that starts ``first, first + 1, ...`` are expected to pay for, given some points of the law.

    Parameters
    ----------
    sow : StatementOfWork
        The report.
    points : slice
        Of its law; their mass is above 0.
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
    durations, weights = sow.law.durations[points], sow.law.probabilities[points]
    mass = float(weights.sum())
    found = np.full(n_starts, float(weights @ durations) / mass)
    for k in range(max(0, last + 1 - int(durations.max()) - first), n_starts):
        charged = first + k + durations <= last
        found[k] = float(weights[charged] @ durations[charged]) / mass
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
