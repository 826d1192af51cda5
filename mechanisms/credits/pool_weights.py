r"""What a node of each pool is worth in credits where an owner has one purse for all pools: weights by offered work.

Of the jobs that have left, each resource of their work (amount times announced rounds) is spread over the pools that
they accept, by capacity; work over capacity, of the most sought resource of a pool, is its *pressure*. The weight of a
pool is the square of its pressure over the largest, at least .05 squared, scaled so that
:math:`\sum_p \pi_p N_p = N`: all credits of a round still buy all nodes. Every 8 rounds weights move a fifth of the
way.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from marketsched.mechanisms.resources.cluster import Cluster
from marketsched.mechanisms.resources.shapes import Options

KEPT, EVERY, STEP, LEAST = 0.995, 8, 0.2, 0.05  # of work, a departure; rounds; of the way; of the largest pressure


class PoolWeights:
    """Weights of pools, one at first: the credits that a node of each costs a round."""

    def __init__(self, cluster: Cluster) -> None:
        self._sizes = cluster.layout.pool_size.astype(np.float64)  # of pools and resources
        self._nodes = np.diff(cluster.layout.pool_begin)
        self._work = np.zeros_like(self._sizes)
        self.of_pool = np.ones(self._nodes.size)

    def learn(self, options: Options, means: NDArray[np.float64]) -> None:
        """Note a job that has left: what it asks for, and the rounds that it announced."""
        self._work *= KEPT
        pools, first = np.unique(options.pool, return_index=True)
        size = self._sizes[pools]
        part = size / np.maximum(size.sum(axis=0), 1.0)
        self._work[pools] += part * options.total[first] * means[first][:, None]

    def renew(self, now: int) -> None:
        """Move the weights, in one of `EVERY` rounds."""
        if now % EVERY:
            return
        pressure = np.where(self._sizes > 0, self._work / np.maximum(self._sizes, 1.0), 0.0).max(axis=1)
        if pressure.max() <= 0:
            return
        aim = np.maximum(pressure / pressure.max(), LEAST) ** 2
        aim *= self._nodes.sum() / (aim @ self._nodes)
        self.of_pool = (1.0 - STEP) * self.of_pool + STEP * aim
