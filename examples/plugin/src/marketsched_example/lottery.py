"""A policy for clusters: ports in random order take what they ask for, or a share of it."""

import numpy as np


class Lottery:
    """``cluster`` and ``rng`` come from the scenario; ``greed``, of what a port asks for, is set in it."""

    name, observes = "lottery", "arrivals"

    def __init__(self, cluster, rng, greed: float = 1.0):
        self.cluster, self.rng, self.greed = cluster, rng, greed

    def allocate(self, arrivals):
        left, given = self.cluster.capacities.copy(), np.zeros((len(arrivals), *self.cluster.capacities.shape))
        for port in self.rng.permutation(np.flatnonzero(arrivals)):
            wanted = self.greed * self.cluster.requirements[port] * self.cluster.channels[port][:, None]
            given[port] = np.minimum(wanted, left)
            left -= given[port]
        return given

    def update(self, arrivals):
        """Learn nothing."""
