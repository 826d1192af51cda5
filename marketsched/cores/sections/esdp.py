"""Cluster scenarios of the core ESDP: channels whose utility has to be learnt."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, StrictBool

from marketsched.config.strict_yaml import Strict
from marketsched.cores import worlds
from marketsched.cores.sections.core import ClusterCore, Data
from marketsched.cores.sections.parts import AnyArrivals, Bernoulli, CountRange
from marketsched.cores.sections.policies import policy_list
from marketsched.mechanisms.allocation import GangChannels
from marketsched.mechanisms.allocation.esdp.channel_instances import published_channels
from marketsched.mechanisms.allocation.esdp.channel_policy import Channels
from marketsched.mechanisms.allocation.esdp.channel_utilities import GaussianUtilities, RecordedUtilities, UtilitySource
from marketsched.mechanisms.errors import placed
from marketsched.mechanisms.legal import Count, Positive, PositiveShare
from marketsched.mechanisms.memory import check_memory


class _BuiltChannels(NamedTuple):
    """A drawn instance: channels, the server of each, supply costs (None: not known), and their utilities."""

    channels: Channels
    servers: NDArray[np.int64]
    costs: NDArray[np.float64] | None
    utilities: Callable[[np.random.Generator], UtilitySource]


class _PublishedChannels(Strict):
    """The setting of the ESDP paper's Table 3: Gaussian utilities, scaled into [0, 1].

    ``unit`` is what utilities less scaled costs are divided by before they are cut off at 0 and 1. ``capacity`` of the
    cluster is one number for all types, or a range from which each type's is drawn.
    """

    kind: Literal["published"]
    ports: Count = 8
    servers: Count = 40
    types: Count = 3
    edge_probability: PositiveShare = 0.1
    capacity: Count | CountRange = 2
    requests: CountRange = (1, 2)
    unit: Positive = 1.0

    def build(self, rng: np.random.Generator, data: Data) -> _BuiltChannels:
        rest = self.model_dump(include={"edge_probability", "capacity", "requests", "unit"})
        drawn = published_channels(rng, n_ports=self.ports, n_servers=self.servers, n_types=self.types, **rest)
        return _BuiltChannels(drawn.channels, drawn.servers, drawn.costs, drawn.utilities)


class _RecordedChannels(Strict):
    """What recorded channels have in common.

    ``capacity`` units of each resource in the whole cluster; a request is what was asked for in units
    of ``request_unit``, rounded up. ``replay``: samples in recorded order, each channel from its first
    again after its last; else every slot draws one sample of each channel.
    """

    capacity: Count = 4
    replay: StrictBool = False

    def _built(self, found: worlds.records.ChannelSamples, request_unit: float) -> _BuiltChannels:
        asked = np.maximum(1, np.ceil(found.requests / request_unit - 1e-9)).astype(np.int64)
        capacities = np.full(asked.shape[1], self.capacity)
        channels = Channels(asked, capacities, found.ports, n_ports=found.n_ports)

        def utilities(source: np.random.Generator) -> UtilitySource:
            return RecordedUtilities(found.samples, None if self.replay else source)

        return _BuiltChannels(channels, found.servers, None, utilities)


class _PaiMiniBatches(_RecordedChannels):
    """Recorded mini-batch times of four training jobs on the Alibaba PAI cluster, ten workers each.

    A port is a job, a channel one of its workers; the fastest has utility 1. Requests are per cent of a GPU.
    """

    kind: Literal["pai-minibatches"]
    request_unit: Positive = 25.0

    def build(self, rng: np.random.Generator, data: Data) -> _BuiltChannels:
        return self._built(worlds.records.minibatch_samples(data), self.request_unit)


class _GoogleTasks(_RecordedChannels):
    """Recorded task runs of a Google cluster: ports are jobs, servers are groups of machines.

    No job finished five tasks on one machine: machines are put into ``groups`` in order of their
    numbers, equally many in each. ``ports`` jobs with at least ``tasks`` finished tasks are drawn; of
    their channels with at least ``samples`` runs each is kept with probability ``edge_probability``. A run of the
    job's median length has utility 1 / ``unit``, a shorter one more, at most 1. Requests are the recorded
    CPU and memory, as shares of the largest machine.
    """

    kind: Literal["google-tasks"]
    ports: Count = 8
    groups: Count = 10
    edge_probability: PositiveShare = 0.5
    tasks: Count = 100
    samples: Count = 5
    unit: Positive = 2.0
    request_unit: Positive = 0.05

    def build(self, rng: np.random.Generator, data: Data) -> _BuiltChannels:
        found = worlds.records.task_samples(
            rng,
            data,
            n_ports=self.ports,
            n_groups=self.groups,
            least_tasks=self.tasks,
            least_samples=self.samples,
            largest_request=self.capacity * self.request_unit,
            **self.model_dump(include={"edge_probability", "unit"}),
        )
        return self._built(found, self.request_unit)


class _GangPlacements(Strict):
    """Jobs of several tasks, each placed on one server, which run together or not at all: the paper's Section 3.4.

    The dynamic program runs over the capacities of all servers together: for small clusters. A port's job has a
    number of tasks drawn from ``tasks``, all of which it needs; every task may be placed on every server. Utilities are
    Gaussian with means from 0.1 to 1 and half their mean as deviation, cut off at 0 and 1.
    """

    kind: Literal["gangs"]
    ports: Count = 3
    servers: Count = 2
    types: Count = 1
    tasks: CountRange = (1, 2)
    capacity: Count = 3
    requests: CountRange = (1, 2)

    def build(self, rng: np.random.Generator, data: Data) -> _BuiltChannels:
        check_memory(f"{self.ports} ports", 200.0 * self.ports, "fewer ports")
        numbers = np.maximum(1, rng.integers(*self.tasks, self.ports, endpoint=True))
        what = f"{int(numbers.sum())} tasks on {self.servers} servers"
        at_once = float(numbers.sum()) * self.servers * (200.0 + 8.0 * self.types)
        check_memory(what, at_once, "fewer ports, tasks or servers")
        places = [(p, q, r) for p, n in enumerate(numbers.tolist()) for q in range(n) for r in range(self.servers)]
        ports, tasks, servers = np.array(places).T
        asked = rng.integers(*self.requests, (len(places), self.types), endpoint=True)
        means = rng.uniform(0.1, 1.0, len(places))
        capacities = np.full((self.servers, self.types), self.capacity)
        channels = GangChannels(asked, capacities, ports, tasks, servers, numbers)

        def utilities(source: np.random.Generator) -> UtilitySource:
            return GaussianUtilities(means, means / 2.0, np.zeros(means.size), source)

        return _BuiltChannels(channels, servers.astype(np.int64), None, utilities)


AnyChannels = Annotated[
    _PublishedChannels | _PaiMiniBatches | _GoogleTasks | _GangPlacements, Field(discriminator="kind")
]

_DEFAULT_POLICIES = (
    "esdp",
    "esdp:exploration=log:arrivals=plan",
    "highest-utility-first",
    "lowest-cost-first",
    "longest-waiting-first",
    "cucb",
    "thompson",
    "follow-the-leader",
)


class EsdpCluster(ClusterCore):
    """Channels between ports and servers whose utility fluctuates and has to be learnt; defaults as in the paper."""

    core: Literal["esdp"]
    instance: AnyChannels = _PublishedChannels(kind="published")
    arrivals: AnyArrivals = Bernoulli(kind="bernoulli", probability=0.9)
    slots: Count = 2000
    policies: Annotated[tuple[str, ...], policy_list("esdp")] = _DEFAULT_POLICIES

    def _world(self, streams: Sequence[np.random.Generator], data: Data) -> worlds.world.CoreWorld:
        instance_rng, arrivals_rng, utilities_rng, policy_rng = streams
        with placed("cluster.instance"):
            built = self.instance.build(instance_rng, data)
        utilities = built.utilities(utilities_rng)
        arrivals = self.arrivals.build(built.channels.n_ports, self.slots, arrivals_rng, data)
        return worlds.esdp.EsdpWorld(*built[:3], utilities, arrivals, self.slots, policy_rng)
