"""One instance tried: the welfare of a mechanism on a birth sequence, and an upper bound for every schedule.

The market is played by `marketsched.agents.loop`, owners truthful, with the random streams of
`marketsched.play.running.run`: a trial with seed k and a run of the same scenario with seed k are the same
market. Tables and agents are left out, which makes a trial of some thirty jobs a matter of milliseconds.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from marketsched.agents.job import Job
from marketsched.agents.loop import MarketLoop
from marketsched.agents.playing import TruthfulOwners, play
from marketsched.config.mechanism_choice import MechanismChoice
from marketsched.mechanisms.errors import TooLargeError
from marketsched.mechanisms.mechanism import Mechanism
from marketsched.mechanisms.realised import RealisedJobs
from marketsched.relaxed_lp.duality import dual_bound
from marketsched.study.hard.birth_sequences import BirthSequence, InstanceLimits, realised_jobs
from marketsched.worlds.workload import Workload, certain_laws

DUAL_STEPS = 120  # of the bound (29): cheap, and still certified


class TrialMeans(NamedTuple):
    """Means over the seeds of a trial, credits."""

    bound: float  # no schedule in hindsight is worth more
    welfare: float

    @property
    def score(self) -> float:
        """The objective of a search: bound over welfare, and 0 where nothing is earned."""
        return self.bound / self.welfare if self.welfare > 0 else 0.0


class Trial:
    """Plays birth sequences with fresh mechanisms.

    Parameters
    ----------
    limits : MarketLimits
        The market.
    choice : MechanismChoice
        The mechanism; sizes of its own are not below the limits.
    seeds : sequence of int
        One market is played for each.
    max_jobs : int
        Most jobs of a sequence.
    """

    def __init__(self, limits: InstanceLimits, choice: MechanismChoice, seeds: Sequence[int], max_jobs: int) -> None:
        self.limits, self.choice, self.seeds = limits, choice, tuple(seeds)
        self._draws = [self._streams(seed)[0].random(max_jobs) for seed in seeds]

    @staticmethod
    def _streams(seed: int) -> list[np.random.Generator]:
        """Return the streams of a run: of the workload, of the oracle, of the owners."""
        return np.random.default_rng(np.random.SeedSequence(seed)).spawn(3)

    def jobs(self, sequence: BirthSequence) -> list[list[Job]]:
        """Return the jobs as they turn out, for each seed."""
        return [realised_jobs(sequence, draws[: len(sequence)].tolist()) for draws in self._draws]

    def realised(self, jobs: Sequence[Job]) -> RealisedJobs:
        """Return jobs as the bounds read them."""
        limits = self.limits
        triples = ((job.truth, job.arrival, job.duration) for job in jobs)
        return RealisedJobs.build(
            triples, horizon=limits.horizon, max_delay=limits.max_delay, max_duration=limits.max_duration
        )

    def mechanism(self, jobs: Sequence[Job], seed: int) -> Mechanism:
        """Return a fresh mechanism for these jobs.

        Raises
        ------
        InvalidParameterError
            If the mechanism refuses a parameter.
        """
        limits = self.limits
        workload = Workload(
            "jobs",
            tuple(jobs),
            capacity=limits.capacity,
            birth_rounds=limits.horizon,
            horizon=limits.horizon,
            max_concurrency=limits.max_concurrency,
            max_duration=limits.max_duration,
            max_value=limits.max_value,
            max_delay=limits.max_delay,
            round_seconds=None,
        )
        return self.choice.build(workload, self._streams(seed)[1], lambda: certain_laws(workload))

    def welfare(self, sequence: BirthSequence) -> list[float]:
        """Return the welfare of the mechanism with each seed, credits.

        Raises
        ------
        TooLargeError
            If an exact oracle gives up.
        """
        return [
            played(self.mechanism(jobs, seed), jobs, self.limits.horizon)
            for seed, jobs in zip(self.seeds, self.jobs(sequence), strict=True)
        ]

    def __call__(self, sequence: BirthSequence) -> TrialMeans:
        """Play a sequence; where an exact oracle gives up, nothing counts as earned."""
        try:
            welfare = math.fsum(self.welfare(sequence)) / len(self.seeds)
        except TooLargeError:
            return TrialMeans(0.0, 0.0)
        limits = self.limits
        bounds = [
            dual_bound(self.realised(jobs), limits.capacity, limits.horizon, steps=DUAL_STEPS).value
            for jobs in self.jobs(sequence)
        ]
        return TrialMeans(math.fsum(bounds) / len(bounds), welfare)


def played(mechanism: Mechanism, jobs: Sequence[Job], horizon: int) -> float:
    """Play a market of truthful owners to its end; return the welfare, credits.

    Parameters
    ----------
    mechanism : Mechanism
        A fresh one.
    jobs : sequence of Job
        In order of birth; those born together submit in this order.
    horizon : int
        T, rounds.
    """
    truths = {job.name: job.truth for job in jobs}
    welfare = 0.0
    for event in play(MarketLoop(mechanism), TruthfulOwners(jobs), horizon):
        if event.completion is not None:
            welfare += float(truths[str(event.job)].value(event.completion))
    return welfare
