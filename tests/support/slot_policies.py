"""Small policies, arrivals and a cluster for tests of the slot loop."""

import numpy as np

from marketsched.mechanisms.allocation import BipartiteCluster, RecordedArrivals


def cluster_of(n_ports=3):
    """Return a cluster of one instance that two jobs fill."""
    return BipartiteCluster(np.full((n_ports, 1), 2.0), [[4.0]], np.ones((n_ports, 1), bool), "linear", 1.0, 0.25)


class Blind:
    """Reserves a fixed allocation for everybody; keeps what it learns."""

    name, observes = "blind", "nothing"

    def __init__(self, cluster):
        self.shape = (cluster.n_ports, cluster.n_instances, cluster.n_types)
        self.learnt = []

    def allocate(self):
        return np.ones(self.shape)

    def update(self, arrivals):
        self.learnt.append(arrivals)


class Sighted(Blind):
    """Gives two units to each of the first two ports that have a job."""

    name, observes = "sighted", "arrivals"

    def allocate(self, arrivals):
        self.seen = arrivals
        decision = np.zeros(self.shape)
        decision[np.flatnonzero(arrivals)[:2]] = 2.0
        return decision

    def update(self, arrivals):
        assert np.array_equal(arrivals, self.seen)
        super().update(arrivals)


class SpiedArrivals(RecordedArrivals):
    """Recorded arrivals that write into a log when they are drawn."""

    def __init__(self, counts, log):
        super().__init__(counts)
        self.log = log

    def draw(self):
        self.log.append("draw")
        return super().draw()


COUNTS = [[1, 0, 1], [0, 0, 0], [1, 1, 1], [0, 1, 0]]
