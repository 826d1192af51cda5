"""A workload: the jobs of a market, and the limits announced before any of them is known."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

import numpy as np

from marketsched.agents.job import Job
from marketsched.mechanisms.errors import InvalidParameterError


@dataclass(frozen=True)
class Workload:
    """Jobs, and the constants of the market they are made for.

    Parameters
    ----------
    name : str
        What it is called.
    jobs : tuple of Job
        In order of submission: by birth round, and inside a round as they are to submit.
    capacity : int
        C, nodes; the size the workload is meant for.
    birth_rounds : int
        Jobs are born in rounds ``1 .. birth_rounds``.
    horizon : int
        T, the last round: late enough for the last deadline.
    max_concurrency, max_duration, max_value, max_delay : number
        c_max (nodes), D_max (rounds), V_max (credits), S (rounds: every value curve is 0 from
        ``birth + max_delay`` on). Constants, fixed before any job is seen.
    round_seconds : float, optional
        Length of a round; None: rounds have no length.
    notes : mapping
        Modelling choices and what they amount to, by name: text or numbers.
    """

    name: str
    jobs: tuple[Job, ...] = field(repr=False)
    capacity: int
    birth_rounds: int
    horizon: int
    max_concurrency: int
    max_duration: int
    max_value: float
    max_delay: int
    round_seconds: float | None
    notes: Mapping[str, str | int | float] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "notes", MappingProxyType(dict(self.notes)))

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle (a read-only view of a dict does not pickle by itself)."""
        fields = (self.capacity, self.birth_rounds, self.horizon, self.max_concurrency, self.max_duration)
        return Workload, (
            self.name,
            self.jobs,
            *fields,
            self.max_value,
            self.max_delay,
            self.round_seconds,
            dict(self.notes),
        )

    @property
    def load(self) -> float:
        """Node-rounds that the jobs really need, as a share of those on sale while jobs are born."""
        work = sum(job.truth.concurrency * job.duration for job in self.jobs if job.arrival is not None)
        return work / (self.capacity * self.birth_rounds)

    @property
    def peak(self) -> float:
        """Most nodes busy at once if every job started at its arrival, as a share of the capacity."""
        real = [(job.arrival, job.duration, job.truth.concurrency) for job in self.jobs if job.arrival is not None]
        if not real:
            return 0.0
        arrivals, durations, nodes = np.array(real, dtype=np.int64).T
        change = np.zeros(int((arrivals + durations).max()) + 1)
        np.add.at(change, arrivals, nodes)
        np.subtract.at(change, arrivals + durations, nodes)
        return float(change.cumsum().max() / self.capacity)


def require(condition: bool, message: str) -> None:
    """Raise ``InvalidParameterError(message)`` unless ``condition`` holds."""
    if not condition:
        raise InvalidParameterError(message)
