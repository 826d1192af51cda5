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

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from marketsched.cores.agents.games import CoreGame
from marketsched.cores.core import CORES, ESDP, OGASCHED, OPM
from marketsched.cores.sections.policies import policy_choices
from marketsched.cores.worlds.esdp import EsdpWorld
from marketsched.cores.worlds.ogasched import OgaSchedWorld
from marketsched.cores.worlds.opm import Machines, OpmWorld
from marketsched.cores.worlds.world import CoreWorld
from marketsched.mechanisms.allocation.arrivals import BernoulliArrivals
from marketsched.mechanisms.allocation.esdp.channel_instances import published_channels
from marketsched.mechanisms.allocation.oga.instances import published_instance
from marketsched.mechanisms.allocation.opm.machine_availability import GammaAvailability
from marketsched.mechanisms.allocation.opm.machine_environment import PAPER_SPEEDS
from marketsched.mechanisms.allocation.opm.machine_jobs import MachineJobs
from marketsched.mechanisms.legal import Named
from marketsched.mechanisms.randomness import checked_seed

_FREE = ("none",)
# By core and by name in the table: the policy as a scenario writes it, and its payments.
PUBLISHED: dict[str, dict[str, tuple[str, tuple[str, ...]]]] = {
    OGASCHED.name: {
        "ogasched": ("ogasched", OGASCHED.payments),
        "fairness": ("fairness", _FREE),
        "drf": ("drf", _FREE),
        "binpacking": ("binpacking", _FREE),
    },
    ESDP.name: {
        "esdp": ("esdp:exploration=log:arrivals=plan", ESDP.payments),
        "cucb": ("cucb", ESDP.payments),
        "hauf": ("highest-utility-first", _FREE),
        "lcf": ("lowest-cost-first", _FREE),
        "lwtf": ("longest-waiting-first", _FREE),
    },
    OPM.name: {
        "opm": ("opm:primal_step=0.05:dual_step=0.05:gamma=0.5", OPM.payments),
        "fair": ("fair", ("none", "spending")),
        "deadline-aware": ("deadline-aware", ("none", "spending")),
    },
}


@dataclass(frozen=True, slots=True)
class PublishedGames:
    """The games of a policy in its core's family of worlds: a function from a seed to a game.

    ``policy`` is one of `PUBLISHED`, None: the one that has the core's name; ``slots`` stand in place of the family's,
    of OPM the slots in which jobs arrive.
    """

    core: str
    policy: str | None = None
    payment: str = "none"
    slots: int | None = None

    def __call__(self, seed: int) -> CoreGame:
        """Return the game of a seed."""
        draw, slots = _FAMILIES[Named(tuple(CORES)).check("core", self.core)]
        policies = PUBLISHED[self.core]
        name = Named(tuple(policies)).check("policy", self.policy or self.core)
        (choice,) = policy_choices([policies[name][0]], self.core)
        return draw(np.random.default_rng(checked_seed(seed)), self.slots or slots).game(choice, self.payment)


def _ports(rng: np.random.Generator, slots: int) -> CoreWorld:
    instance_rng, arrivals_rng, policy_rng = rng.spawn(3)
    cluster = published_instance(
        instance_rng,
        n_ports=6,
        n_instances=8,
        ports_per_instance=4,
        contention=1.0,
        overhead=(0.1, 0.2),
        ranges=((1, 8), (1, 8), (0, 4)),
    )
    return OgaSchedWorld(cluster, BernoulliArrivals(0.7, arrivals_rng, cluster.n_ports), slots, policy_rng)


def _channels(rng: np.random.Generator, slots: int) -> CoreWorld:
    """Graphs in which the first port has no channel are drawn again."""
    instance_rng, arrivals_rng, utilities_rng, policy_rng = rng.spawn(4)
    while True:
        drawn = published_channels(
            instance_rng, n_ports=6, n_servers=12, n_types=2, edge_probability=0.25, capacity=4, requests=(1, 3)
        )
        if (drawn.channels.ports == 0).any():
            break
    arrivals = BernoulliArrivals(drawn.probability, arrivals_rng, drawn.channels.n_ports)
    return EsdpWorld(drawn.channels, drawn.servers, None, drawn.utilities(utilities_rng), arrivals, slots, policy_rng)


def _jobs(rng: np.random.Generator, slots: int) -> CoreWorld:
    jobs_rng, availability_rng, policy_rng = rng.spawn(3)
    n_jobs, n_owners, n_machines = 24, 8, 8
    arrivals = jobs_rng.integers(0, slots, n_jobs)
    stays = jobs_rng.integers(20, 60, n_jobs, endpoint=True)
    jobs = MachineJobs(
        arrivals,
        arrivals + stays,
        jobs_rng.uniform(0.3, 1.5, n_jobs) * stays,
        jobs_rng.uniform(4.0, 12.0, n_jobs),
        jobs_rng.uniform(0.5, 0.8, n_jobs),
    )
    prices, availability = jobs_rng.uniform(0.3, 1.0, n_machines), GammaAvailability(n_machines, availability_rng)
    share = np.full(n_machines, availability.share)
    up, down = np.mean(PAPER_SPEEDS, axis=1)
    machines = Machines(availability, share, share * up + (1.0 - share) * down, prices, PAPER_SPEEDS)
    speeds_rng, draws_rng = np.random.default_rng(int(policy_rng.integers(2**31))).spawn(2)
    return OpmWorld(machines, jobs, jobs.horizon, speeds_rng, draws_rng, owners=np.arange(n_jobs) % n_owners)


_FAMILIES: dict[str, tuple[Callable[[np.random.Generator, int], CoreWorld], int]] = {  # with slots
    OGASCHED.name: (_ports, 200),
    ESDP.name: (_channels, 200),
    OPM.name: (_jobs, 150),
}
