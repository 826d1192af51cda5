"""Small games over the allocation cores, for tests: what every lie brings in them can be said by hand."""

import numpy as np

from marketsched.cores.agents.channels import ChannelGame
from marketsched.cores.agents.jobs import JobGame
from marketsched.cores.agents.ports import PortGame
from marketsched.mechanisms.allocation import (
    BipartiteCluster,
    Fairness,
    FairScheduler,
    FollowTheLeader,
    MachineJobs,
    RecordedArrivals,
    RecordedAvailability,
    RecordedUtilities,
)
from marketsched.mechanisms.allocation.esdp.channel_policy import Channels

SLOTS = 20


def fair(believed, horizon):
    return Fairness(believed)


def two_ports(policy=fair, gain="linear", overhead=0.25, slots=SLOTS, payment="none"):
    """Two ports that always have a job share one instance with one device."""
    cluster = BipartiteCluster([[1.0], [1.0]], [[1.0]], [[True], [True]], gain, 1.0, overhead)
    return PortGame(cluster, RecordedArrivals([[1, 1]] * slots), slots, policy, payment)


def two_channels(payment="none"):
    """Two channels of 2 units in a cluster of 3; the first port's is worth less. Each is tried once, then the best."""
    channels = Channels([[2], [2]], [3], [0, 1])
    arrivals, utilities = RecordedArrivals([[1, 1]] * SLOTS), RecordedUtilities([[0.5], [0.6]])
    return ChannelGame(channels, arrivals, utilities, SLOTS, lambda told, rng: FollowTheLeader(*parts(told)), payment)


def parts(told):
    return told.requests, told.capacities, told.ports


def one_job(payment="none", weight=1.0):
    """A job with a budget of 5 slots, there for 10, on one machine of speed and price 1; five more slots follow."""
    jobs = MachineJobs([0, 10], [10, 15], [5.0, 5.0], [weight, 1.0], [0.5, 0.5])
    up = RecordedAvailability(np.ones((15, 1)))
    return JobGame(jobs, [1.0], up, lambda p, t, rng: FairScheduler(p, t), payment, speeds=((1, 1), (1, 1)))


def fixed(game):
    """A world that is the same whatever the seed."""
    return lambda seed: game
