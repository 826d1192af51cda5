"""The queue of jobs whose durations are hidden: offers of starts, and the jobs' choices.

``strict``: in order of arrival; no job passes one that waits for nodes. ``sealed``: it blocks no other, and what
a waiting job of several nodes reported is used for nothing but its own turn (docs/mathematics.md, Bid prices,
has the proof that no report then moves one's own turn).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from marketsched.mechanisms.auctions.hidden_turn import expected_worth, start_at_turn
from marketsched.mechanisms.auctions.waiting_job import NOT_YET, WaitingJob
from marketsched.mechanisms.bid_price.entries import TOLERANCE
from marketsched.mechanisms.law import DurationLaw
from marketsched.mechanisms.mechanism import JobId
from marketsched.mechanisms.signals import Signals, observed_duration

Order = Literal["strict", "sealed"]


@dataclass(slots=True, eq=False)
class Queued:
    """The data of a job with a hidden duration."""

    residuals: NDArray[np.float64]  # rounds left after 0, 1, ... rounds, on average
    law: DurationLaw  # of its duration, by its report
    rate: float = 0.0  # credits per node and round, locked when it arrived
    surplus: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))  # credits, of starts from its arrival on
    favourites: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))  # the best start from each on
    stops: NDArray[np.int64] | None = None  # the most rounds that runs of these starts take; None: until the deadline

    @property
    def lasting(self) -> int:
        """Rounds from the arrival on in which some later start still brings something."""
        good = np.flatnonzero(self.surplus > TOLERANCE)
        return int(good[-1]) + 1 if good.size else 0


def serve_queue(
    waiting: Sequence[WaitingJob], free: NDArray[np.int64], now: int, order: Order
) -> dict[JobId, int | None]:
    """Offer nodes to the queue, in order of (arrival, submission); return the start of each, by name.

    At its first turn a job gets the start that is best for it, and its nodes are kept for it until then
    (`start_at_turn`). One that can gain no more leaves (None).

    Parameters
    ----------
    waiting : sequence of WaitingJob
        With `Queued` as ``agreed``.
    free : ndarray of int, shape (horizon,)
        Nodes that are not booked; changed.
    now : int
        The round.
    order : {"strict", "sealed"}
        Whether one that waits blocks those behind it.
    """
    starts: dict[JobId, int | None] = {}
    blocked = False
    for x in waiting:
        width = x.width
        waited, agreed = now - x.arrival, x.agreed
        best = int(agreed.favourites[waited]) - waited if waited < agreed.favourites.size else 0
        start = start_at_turn(agreed.surplus[waited:], best, free, now, width, x.limit)
        if start is not None and (blocked or start == NOT_YET):
            blocked, start = order == "strict", NOT_YET
        elif start is not None:
            free[now - 1 : start - 1 + x.limit] -= width
        starts[x.job] = start
    return starts


def foresee(x: WaitingJob, max_duration: int, signals: Signals) -> None:
    """Note the part of a report that applies to an arrived job; the signal decides, not the form of the report."""
    duration = observed_duration(x.signal, signals)
    if duration is not None:
        known = DurationLaw(np.array([duration]), np.ones(1))
        x.limit, x.mean = duration, float(duration)
        x.worth = expected_worth(x, known) if duration <= max_duration else np.zeros(0)
    else:
        law = x.law
        x.limit, x.mean, x.worth = max_duration, law.mean, expected_worth(x, law)
        x.agreed = Queued(mean_residuals(law, max_duration), law)


def mean_residuals(law: DurationLaw, max_duration: int) -> NDArray[np.float64]:
    """Return the mean residual after 0, 1, ... rounds, E[d - e | d > e]; 1 where no longer run was foreseen."""
    mass = np.bincount(law.durations, weights=law.weights, minlength=max_duration + 2)[: max_duration + 2]
    longer = np.cumsum(mass[::-1])[::-1][1:]  # of the runs beyond e, e = 0, 1, ...
    rounds = np.cumsum((mass * np.arange(mass.size))[::-1])[::-1][1:]
    ages, some = np.arange(longer.size), longer > 1e-12
    return np.where(some, rounds / np.where(some, longer, 1.0) - ages, 1.0)
