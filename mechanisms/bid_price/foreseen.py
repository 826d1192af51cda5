"""The report of a job at its arrival: its duration, and the value of each later start."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from marketsched.mechanisms.auctions.arrival_market import expected_worth
from marketsched.mechanisms.auctions.hidden_turn import duration_law
from marketsched.mechanisms.law import DurationLaw, Signal
from marketsched.mechanisms.limits import MarketLimits
from marketsched.mechanisms.signals import Signals, observed_duration
from marketsched.mechanisms.sow import StatementOfWork


@dataclass(frozen=True, slots=True, eq=False)
class Foreseen:
    """A job at its arrival."""

    limit: int  # the most rounds it may run
    mean: float  # expected duration, rounds; 0: its report excludes all
    worth: NDArray[np.float64]  # (n_starts,), expected credits of starting in the round of arrival, and later
    residuals: NDArray[np.float64] | None  # durations hidden: rounds left after 0, 1, ... rounds, on average
    law: DurationLaw | None  # durations hidden: of the duration


def foreseen(
    sow: StatementOfWork,
    arrival: int,
    signal: Signal,
    limits: MarketLimits,
    signals: Signals = "durations",
) -> Foreseen:
    """Return the part of a report that applies to an arrived job; the signal decides, not the form of the report."""
    last, duration = limits.last_useful_completion(sow), observed_duration(signal, signals)
    if duration is not None:
        n_starts = max(0, last - duration - arrival + 1) if duration <= limits.max_duration else 0
        return Foreseen(duration, float(duration), sow.value.table(arrival + duration, n_starts), None, None)
    law = sow.law
    points = law.points_of(arrival, signal)
    mean, residuals = mean_and_residuals(law.durations[points], law.probabilities[points], limits.max_duration)
    worth = expected_worth(sow, points, arrival, last) if mean else np.zeros(0)
    return Foreseen(limits.max_duration, mean, worth, residuals, duration_law(sow, arrival, signal))


def mean_and_residuals(
    durations: NDArray[np.int64], weights: NDArray[np.float64], max_duration: int
) -> tuple[float, NDArray[np.float64]]:
    """Return the mean duration, and the mean residual after 0, 1, ... rounds, E[d - e | d > e].

    It is 1 where no longer run was foreseen; a law without mass has mean 0.
    """
    mass = np.bincount(durations, weights=weights, minlength=max_duration + 2)[: max_duration + 2]
    longer = np.cumsum(mass[::-1])[::-1][1:]  # of the runs beyond e, e = 0, 1, ...
    rounds = np.cumsum((mass * np.arange(mass.size))[::-1])[::-1][1:]
    ages, some = np.arange(longer.size), longer > 1e-12 * weights.sum()
    residuals = np.where(some, rounds / np.where(some, longer, 1.0) - ages, 1.0)
    return (float(weights @ durations) / float(weights.sum()) if weights.sum() > 0 else 0.0), residuals
