"""The report of a job at its arrival: its duration, and the value of each later start."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from marketsched.mechanisms.auctions.hidden_turn import duration_law, expected_worth, worth_of_row
from marketsched.mechanisms.columns import JobColumns
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
    law = duration_law(sow, arrival, signal)
    mean, residuals = mean_and_residuals(law, limits.max_duration)
    return Foreseen(limits.max_duration, mean, expected_worth(sow.value, law, arrival, last), residuals, law)


class RowsForeseen:
    """The same of jobs that stand in columns; what a law alone says is computed once for each.

    Parameters
    ----------
    jobs : JobColumns
        All jobs.
    max_duration : int
        Of the market, rounds.
    """

    def __init__(self, jobs: JobColumns, max_duration: int) -> None:
        self._jobs, self._max_duration = jobs, max_duration
        self._of_laws: dict[int, tuple[float, NDArray[np.float64]]] = {}

    def of(self, row: int, last: int) -> Foreseen:
        """Return what the report of a row says at its arrival; ``last``: its last completion worth anything."""
        jobs = self._jobs
        if jobs.revealed[row]:
            duration = int(jobs.durations[row])
            law = DurationLaw(np.array([duration]), np.ones(1))
            worth = worth_of_row(jobs, row, law, last) if duration <= self._max_duration else np.zeros(0)
            return Foreseen(duration, float(duration), worth, None, None)
        number, law = int(jobs.laws.of[row]), jobs.law_of(row)
        if number not in self._of_laws:
            self._of_laws[number] = mean_and_residuals(law, self._max_duration)
        return Foreseen(self._max_duration, self._of_laws[number][0], worth_of_row(jobs, row, law, last),
                        self._of_laws[number][1], law)  # fmt: skip


def mean_and_residuals(law: DurationLaw, max_duration: int) -> tuple[float, NDArray[np.float64]]:
    """Return the mean duration, and the mean residual after 0, 1, ... rounds, E[d - e | d > e].

    It is 1 where no longer run was foreseen; a law without mass has mean 0.
    """
    mass = np.bincount(law.durations, weights=law.weights, minlength=max_duration + 2)[: max_duration + 2]
    longer = np.cumsum(mass[::-1])[::-1][1:]  # of the runs beyond e, e = 0, 1, ...
    rounds = np.cumsum((mass * np.arange(mass.size))[::-1])[::-1][1:]
    ages, some = np.arange(longer.size), longer > 1e-12
    residuals = np.where(some, rounds / np.where(some, longer, 1.0) - ages, 1.0)
    return law.mean, residuals
