"""Worlds to lie in: random clusters of three families, small enough to be played thousands of times.

A world is a function from a seed to a game; cluster, arrivals, speeds and the policy's draws all come from the
seed. Owners are drawn alike, so that what the first one gains by a lie is what any would gain; only binpacking,
which serves ports in their order, always serves the first one first (the serial dictatorship of the table).

===== ================================================================================================
core  family
===== ================================================================================================
ports OgaSched's: `published_instance` with 6 ports, 8 instances of 4 ports each, 3 types (1-8, 1-8, 0-4
      devices), requirements as large as an instance (contention 1, so that an instance is asked for four
      times what it has), mixed gains, overheads 0.1-0.2; a job at a port with probability 0.7
chan  ESDP's: `published_channels` with 6 ports, 12 servers, 2 types, edges with probability 0.25, capacities 4,
      requests 1-3; a job at a port with probability 0.9
jobs  OPM's: 8 machines (speeds and availability of the paper), prices 0.3-1, 24 jobs of 8 owners that arrive uniformly,
      stays of 20-60 slots, budgets of 0.3-1.5 credits per slot of the stay, weights 4-12, exponents 0.5-0.8
===== ================================================================================================
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from marketsched.cores.agents.channels import ChannelGame
from marketsched.cores.agents.games import CoreGame
from marketsched.cores.agents.jobs import JobGame
from marketsched.cores.agents.ports import PortGame
from marketsched.mechanisms.allocation.arrivals import BernoulliArrivals
from marketsched.mechanisms.allocation.esdp.baselines import (
    Cucb,
    HighestUtilityFirst,
    LongestWaitingFirst,
    LowestCostFirst,
)
from marketsched.mechanisms.allocation.esdp.channel_instances import published_channels
from marketsched.mechanisms.allocation.esdp.channel_policy import Channels
from marketsched.mechanisms.allocation.esdp.channel_utilities import GaussianUtilities
from marketsched.mechanisms.allocation.esdp.esdp import Esdp
from marketsched.mechanisms.allocation.oga.baselines import BinPacking, Drf, Fairness
from marketsched.mechanisms.allocation.oga.cluster import BipartiteCluster
from marketsched.mechanisms.allocation.oga.instances import published_instance
from marketsched.mechanisms.allocation.oga.oga import OgaSched
from marketsched.mechanisms.allocation.opm.baselines import DeadlineAware, FairScheduler
from marketsched.mechanisms.allocation.opm.machine_availability import GammaAvailability
from marketsched.mechanisms.allocation.opm.machine_jobs import MachineJobs
from marketsched.mechanisms.allocation.opm.opm import Opm
from marketsched.mechanisms.allocation.slot_loop import Policy
from marketsched.mechanisms.legal import Named
from marketsched.mechanisms.randomness import checked_seed

PORT_POLICIES: Mapping[str, Callable[[BipartiteCluster, int], Policy]] = MappingProxyType(
    {
        "ogasched": lambda cluster, horizon: OgaSched(cluster, horizon),
        "fairness": lambda cluster, horizon: Fairness(cluster),
        "drf": lambda cluster, horizon: Drf(cluster),
        "binpacking": lambda cluster, horizon: BinPacking(cluster),
    }
)
CHANNEL_POLICIES: Mapping[str, Callable[[Channels, np.random.Generator], Policy]] = MappingProxyType(
    {
        "esdp": lambda told, rng: _over(Esdp, told, exploration="log", arrivals="plan"),
        "cucb": lambda told, rng: _over(Cucb, told),
        "hauf": lambda told, rng: _over(HighestUtilityFirst, told),
        "lcf": lambda told, rng: _over(LowestCostFirst, told),
        "lwtf": lambda told, rng: _over(LongestWaitingFirst, told),
    }
)
JOB_POLICIES: Mapping[str, Callable[[NDArray[np.float64], int, np.random.Generator], Policy]] = MappingProxyType(
    {
        "opm": lambda prices, horizon, rng: Opm(prices, horizon, primal_step=0.05, dual_step=0.05, gamma=0.5, rng=rng),
        "fair": lambda prices, horizon, rng: FairScheduler(prices, horizon),
        "deadline-aware": lambda prices, horizon, rng: DeadlineAware(prices, horizon),
    }
)


def _over(policy: type, told: Channels, **options: Any) -> Policy:
    made: Policy = policy(told.requests, told.capacities, told.ports, n_ports=told.n_ports, **options)
    return made


@dataclass(frozen=True, slots=True)
class PortWorld:
    """OgaSched's family of worlds; see the module.

    Parameters
    ----------
    policy : str
        Of `PORT_POLICIES`.
    payment : {"none", "capacity prices"}
    slots : int
        T.
    """

    policy: str = "ogasched"
    payment: str = "none"
    slots: int = 200

    def __call__(self, seed: int) -> CoreGame:
        """Return the game of a seed."""
        instance_rng, arrivals_rng = _streams(seed, 2)
        cluster = published_instance(
            instance_rng,
            n_ports=6,
            n_instances=8,
            ports_per_instance=4,
            contention=1.0,
            overhead=(0.1, 0.2),
            ranges=((1, 8), (1, 8), (0, 4)),
        )
        arrivals = BernoulliArrivals(0.7, arrivals_rng, cluster.n_ports)
        return PortGame(cluster, arrivals, self.slots, _maker(PORT_POLICIES, self.policy), self.payment)


@dataclass(frozen=True, slots=True)
class ChannelWorld:
    """ESDP's family of worlds; see the module.

    Parameters
    ----------
    policy : str
        Of `CHANNEL_POLICIES`.
    payment : {"none", "displaced utility"}
    slots : int
        T.
    """

    policy: str = "esdp"
    payment: str = "none"
    slots: int = 200

    def __call__(self, seed: int) -> CoreGame:
        """Return the game of a seed; graphs in which the first port has no channel are drawn again."""
        instance_rng, arrivals_rng, utilities_rng, policy_rng = _streams(seed, 4)
        while True:
            drawn = published_channels(
                instance_rng, n_ports=6, n_servers=12, n_types=2, edge_probability=0.25, capacity=4, requests=(1, 3)
            )
            if (drawn.channels.ports == 0).any():
                break
        utilities = GaussianUtilities(
            drawn.means, drawn.deviations, drawn.costs, utilities_rng, cost_scale=drawn.cost_scale, unit=drawn.unit
        )
        return ChannelGame(
            drawn.channels,
            BernoulliArrivals(drawn.probability, arrivals_rng, drawn.channels.n_ports),
            utilities,
            self.slots,
            _maker(CHANNEL_POLICIES, self.policy),
            self.payment,
            int(policy_rng.integers(2**31)),
        )


@dataclass(frozen=True, slots=True)
class JobWorld:
    """OPM's family of worlds; see the module.

    Parameters
    ----------
    policy : str
        Of `JOB_POLICIES`.
    payment : {"none", "displaced work", "spending"}
    slots : int
        Slots in which jobs arrive.
    """

    policy: str = "opm"
    payment: str = "none"
    slots: int = 150

    def __call__(self, seed: int) -> CoreGame:
        """Return the game of a seed."""
        jobs_rng, availability_rng, policy_rng = _streams(seed, 3)
        n_jobs, n_owners, n_machines = 24, 8, 8
        arrivals = jobs_rng.integers(0, self.slots, n_jobs)
        stays = jobs_rng.integers(20, 60, n_jobs, endpoint=True)
        jobs = MachineJobs(
            arrivals,
            arrivals + stays,
            jobs_rng.uniform(0.3, 1.5, n_jobs) * stays,
            jobs_rng.uniform(4.0, 12.0, n_jobs),
            jobs_rng.uniform(0.5, 0.8, n_jobs),
        )
        return JobGame(
            jobs,
            jobs_rng.uniform(0.3, 1.0, n_machines),
            GammaAvailability(n_machines, availability_rng),
            _maker(JOB_POLICIES, self.policy),
            self.payment,
            np.arange(n_jobs) % n_owners,
            int(policy_rng.integers(2**31)),
        )


def _streams(seed: int, count: int) -> list[np.random.Generator]:
    return np.random.default_rng(checked_seed(seed)).spawn(count)


def _maker(policies: Mapping[str, Any], name: str) -> Any:
    return policies[Named(tuple(policies)).check("policy", name)]
