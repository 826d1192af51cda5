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
        rounds, places = loads.shape[1], np.arange(n_starts)
        full = np.where(loads > limits.capacity - concurrency, np.arange(rounds), rounds + n_durations)
        full = np.minimum.accumulate(full[:, ::-1], axis=1)[:, ::-1]  # the next round without room, from each on
        fails = np.full((len(loads), n_starts), n_durations)  # the shortest duration that does not fit, less 1
        seen = min(rounds, n_starts)
        fails[:, :seen] = np.minimum(full[:, :seen] - places[:seen], n_durations)
        if self.eviction == "all":  # only then does an overload before the start hit the newcomer
            lost = np.logical_or.accumulate(loads > limits.capacity, axis=1)
            fails[:, 1:][lost[:, np.minimum(places[:-1], rounds - 1)]] = 0
        table = np.zeros((n_starts, n_durations + 1))
        np.add.at(table, (places, fails), weights[:, None])
        return table.cumsum(axis=1)[:, :-1]

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
        if first >= 0:
            own = loads[:, max(first - self.now, 0) : last + 1 - self.now]
            stays = np.ones(own.shape, dtype=np.bool_)
            if self.eviction == "running":  # the last round of a job cut short still counts it
                fits = np.logical_and.accumulate(own <= self.limits.capacity - width, axis=1)
                stays[:, 1:] = fits[:, :-1]
            own += width * stays
        return loads
