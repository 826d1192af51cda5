"""First come, first served over columns, with durations that show at the end of the run, or at its arrival."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from marketsched.mechanisms.auctions.first_come_kernels import kernel_jobs, play_kernel
from marketsched.mechanisms.columns import DurationLaws, JobColumns, Outcomes
from marketsched.mechanisms.limits import MarketLimits


class _State(NamedTuple):
    """What is known between two rounds."""

    free: NDArray[np.int64]  # (T,), nodes that are not booked
    waiting: NDArray[np.int64]  # (n,), rows of those that wait, in order of (arrival, submission)
    counts: NDArray[np.int64]  # (7,), as the kernels name them
    patience: NDArray[np.int64]  # (n,), the last round in which a start now is worth it and the best; -1: looked up
    ending: NDArray[np.int64]  # (T + 2,), by round: the last row whose nodes are free from it on
    before: NDArray[np.int64]  # (n,), the row that ends with it


class HiddenPlay:
    """A market of `FirstCome` in which some durations are hidden, played many rounds at a time."""

    def __init__(self, jobs: JobColumns, limits: MarketLimits, price: float, *, stop_at_deadline: bool) -> None:
        horizon = limits.horizon
        none = DurationLaws(np.zeros(jobs.n, np.int64), np.zeros(1, np.int64), np.zeros(0, np.int64), np.zeros(0))
        self._jobs = kernel_jobs(jobs, limits, none if jobs.revealed.all() else jobs.laws)
        self._state = _State(
            free=np.full(horizon, limits.capacity, np.int64),
            waiting=np.empty(jobs.n, np.int64),
            counts=np.zeros(7, np.int64),
            patience=np.full(jobs.n, -1),
            ending=np.full(horizon + 2, -1),
            before=np.full(jobs.n, -1),
        )
        self._price, self._longest, self._stop = price, limits.max_duration, stop_at_deadline

    def advance(self, first: int, until: int, outcomes: Outcomes) -> None:
        """Play rounds ``first .. until``."""
        found = (outcomes.starts, outcomes.left, outcomes.endings, outcomes.payments)
        play_kernel(self._jobs, self._state, *found, self._price, self._longest, self._stop, first, until)
