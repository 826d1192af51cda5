"""The report of a job at its arrival: its duration, and the value of each later start."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from marketsched.mechanisms.auctions.hidden_turn import expected_worth
from marketsched.mechanisms.auctions.waiting_job import WaitingJob
from marketsched.mechanisms.law import DurationLaw
from marketsched.mechanisms.signals import Signals, observed_duration


@dataclass(frozen=True, slots=True, eq=False)
class Foreseen:
    """A job at its arrival."""

    limit: int  # the most rounds it may run
    mean: float  # expected duration, rounds; 0: its report excludes all
    worth: NDArray[np.float64]  # (n_starts,), expected credits of starting in the round of arrival, and later
    residuals: NDArray[np.float64] | None  # durations hidden: rounds left after 0, 1, ... rounds, on average
    law: DurationLaw | None  # durations hidden: of the duration


def foreseen(x: WaitingJob, max_duration: int, signals: Signals = "durations") -> Foreseen:
    """Return the part of a report that applies to an arrived job; the signal decides, not the form of the report."""
    duration = observed_duration(x.signal, signals)
    if duration is not None:
        known = DurationLaw(np.array([duration]), np.ones(1))
        worth = expected_worth(x, known) if duration <= max_duration else np.zeros(0)
        return Foreseen(duration, float(duration), worth, None, None)
    law = x.law
    return Foreseen(max_duration, law.mean, expected_worth(x, law), mean_residuals(law, max_duration), law)


def mean_residuals(law: DurationLaw, max_duration: int) -> NDArray[np.float64]:
    """Return the mean residual after 0, 1, ... rounds, E[d - e | d > e]; 1 where no longer run was foreseen."""
    mass = np.bincount(law.durations, weights=law.weights, minlength=max_duration + 2)[: max_duration + 2]
    longer = np.cumsum(mass[::-1])[::-1][1:]  # of the runs beyond e, e = 0, 1, ...
    rounds = np.cumsum((mass * np.arange(mass.size))[::-1])[::-1][1:]
    ages, some = np.arange(longer.size), longer > 1e-12
    return np.where(some, rounds / np.where(some, longer, 1.0) - ages, 1.0)
