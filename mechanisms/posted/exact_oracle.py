"""Exact failure probabilities, for small markets and for tests."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from marketsched.mechanisms.errors import TooLargeError
from marketsched.mechanisms.posted.oracle import FailureOracle

MAX_STATES = 20_000_000  # cells of joint load vectors that may be held


class ExactOracle(FailureOracle):
    """Exact probabilities, by enumeration of all joint outcomes of the earlier jobs.

    Joint outcomes with equal loads are merged, job by job.

    Raises
    ------
    TooLargeError
        From a query, if there are too many joint outcomes; use :class:`MonteCarloOracle` then.

    Examples
    --------
    >>> from marketsched.mechanisms import DeadlineValue, PostedPriceMechanism, PostedPricing, StatementOfWork
    >>> sizes = {"max_concurrency": 1, "max_duration": 1, "max_value": 9.0, "max_delay": 3}
    >>> market = PostedPriceMechanism(1, 6, PostedPricing([2.0]), ExactOracle(), epsilon=-0.5, **sizes)
    >>> market.submit("A", StatementOfWork(1, 1, DeadlineValue(4.0, 3), [(1, 1, 1.0)])).estimated_utility
    2.0
    """

    exact = True

    @classmethod
    def beside(cls, other: FailureOracle) -> ExactOracle:
        """Return an oracle that enumerates the current jobs of ``other``; it gets no later events."""
        other._settle()
        exact = cls()
        exact.attach(other.limits, np.random.default_rng(0), other.eviction)
        exact.now, exact._jobs = other.now, dict(other._jobs)
        return exact

    def _fractions(self, concurrency: int, n_starts: int, n_durations: int) -> NDArray[np.float64]:
        limits = self.limits
        loads, weights = self._joint_loads(min(n_starts + n_durations - 1, limits.window))
        soft = loads > limits.capacity - concurrency
        # Only under the rule over all active jobs does an overload before the start hit the newcomer.
        lost = (loads > limits.capacity) & (self.eviction == "all")
        table = np.zeros((n_starts, n_durations))
        dead = np.zeros(weights.size, dtype=np.bool_)
        rounds = loads.shape[1]
        for i in range(n_starts):
            if 0 < i <= rounds:
                dead |= lost[:, i - 1]
            failing = dead.copy()
            for k in range(n_durations):
                if i + k < rounds:
                    failing |= soft[:, i + k]
                table[i, k] = weights[failing].sum()
        return table

    def _joint_loads(self, rounds: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Return distinct load vectors (states, rounds) from now on, and their probabilities."""
        loads: NDArray[np.int64] = np.zeros((1, rounds), dtype=np.int64)
        weights: NDArray[np.float64] = np.ones(1)
        for residual in self._jobs.values():
            parts, masses = [], []
            for probability, first, last in residual.outcomes(self.now, self.limits.max_duration):
                parts.append(self._placed(loads, residual.width, first, last))
                masses.append(weights * probability)
            if sum(p.size for p in parts) > MAX_STATES:
                raise TooLargeError(
                    f"ExactOracle: {sum(map(len, parts))} joint outcomes of {len(self._jobs)} earlier jobs: "
                    f"expected at most {MAX_STATES // rounds}; use MonteCarloOracle for markets of this size"
                )
            loads, weights = np.concatenate(parts), np.concatenate(masses)
            if len(parts) > 1:
                loads, where = np.unique(loads, axis=0, return_inverse=True)
                weights = np.asarray(np.bincount(where.ravel(), weights=weights, minlength=len(loads)), np.float64)
        return loads, weights

    def _placed(self, loads: NDArray[np.int64], width: int, first: int, last: int) -> NDArray[np.int64]:
        """Return the loads with one more job in rounds ``first .. last`` (-1: none)."""
        loads = loads.copy()
        staying = np.ones(len(loads), dtype=np.bool_)
        for t in range(max(first, self.now), last + 1) if first >= 0 else ():
            i = t - self.now
            if i >= loads.shape[1]:
                break
            loads[staying, i] += width
            if self.eviction == "running":  # the last round of a job cut short still counts it
                staying &= loads[:, i] <= self.limits.capacity
        return loads
