"""Cluster scenarios of the core OgaSched: ports, instances and resources, and where such a cluster comes from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import BeforeValidator, Field, StrictBool

from marketsched.config.strict_yaml import Strict
from marketsched.cores import worlds
from marketsched.cores.sections.core import ClusterCore, Data
from marketsched.cores.sections.parts import AnyArrivals, Bernoulli, CountRange, PositiveRange, ShareRange
from marketsched.cores.sections.policies import policy_list
from marketsched.mechanisms.allocation.oga.cluster import BipartiteCluster
from marketsched.mechanisms.allocation.oga.gang_cluster import GangCluster
from marketsched.mechanisms.allocation.oga.instances import (
    pai_like_instance,
    published_instance,
    small_integer_instance,
)
from marketsched.mechanisms.allocation.oga.weighted_cluster import WeightedCluster
from marketsched.mechanisms.errors import InvalidParameterError, placed
from marketsched.mechanisms.legal import Count, Finite, Positive, PositiveShare, Share
from marketsched.mechanisms.memory import check_memory

MEMORY_UNIT_GIB = 4.0  # on most recorded machines about as much as there is for each core


def _degree(x: object) -> float:
    """Return a mean number of ports, as a whole number where it is one."""
    mean = Finite("[1, inf)")(x)
    return int(mean) if mean.is_integer() else mean


Degree = Annotated[int | float, BeforeValidator(_degree)]  # a whole number stays one
Gain = Literal["mixed", "linear", "log", "reciprocal", "poly"]


class _DrawnFamily(Strict):
    """What the larger families have in common: their size, and the coefficients of gain and overhead.

    ``contention`` multiplies what jobs ask for. ``gain`` is the utility of every resource on every instance, OgaSched
    (27), ``mixed``: drawn for each of them. ``alpha`` and ``overhead`` (beta) are the ranges that these coefficients
    are drawn from. ``weights`` is the range of w_l^k, by which a job type's gain of a type is multiplied (None: 1).
    With ``joint`` gains are of the total of all instances, OgaSched (5), with the utilities of the first.
    """

    ports: Count = 10
    instances: Count = 128
    contention: Positive = 1.0
    gain: Gain = "mixed"
    alpha: PositiveRange = (1.0, 1.5)
    overhead: ShareRange = (0.3, 0.5)
    weights: PositiveRange | None = None
    joint: StrictBool = False

    def weighted(self, cluster: BipartiteCluster, rng: np.random.Generator) -> BipartiteCluster:
        """Return the cluster with its weights and joint gains, if it has any."""
        if self.weights is None and not self.joint:
            return cluster
        shape = (cluster.n_ports, cluster.n_types)
        weights = np.ones(shape) if self.weights is None else rng.spawn(1)[0].uniform(*self.weights, shape)
        parts = (cluster.requirements, cluster.capacities, cluster.channels, cluster.gain, cluster.alpha)
        return WeightedCluster(*parts, cluster.overhead, weights=weights, joint=self.joint)

    def _common(self) -> dict[str, Any]:
        rest = self.model_dump(include={"contention", "gain", "alpha", "overhead"})
        return {"n_ports": self.ports, "n_instances": self.instances, **rest}


class _Published(_DrawnFamily):
    """The family of the authors' code, defaults as in the paper; ``ports_per_instance`` on average, None: all."""

    kind: Literal["published"]
    contention: Positive = 10.0
    ports_per_instance: Degree | None = None

    def build(self, rng: np.random.Generator, data: Data) -> BipartiteCluster:
        return published_instance(rng, ports_per_instance=self.ports_per_instance, **self._common())


class _PaiMix(_DrawnFamily):
    """Machines drawn in the mix of the Alibaba PAI cluster; jobs ask for shares of such machines.

    Needs no data file. ``share`` is the range of the shares. Memory is counted in units of ``memory_unit_gib``.
    """

    kind: Literal["pai-mix"]
    ports_per_instance: Degree | None = None
    share: PositiveRange = (0.05, 1.0)
    memory_unit_gib: Positive = MEMORY_UNIT_GIB

    def build(self, rng: np.random.Generator, data: Data) -> BipartiteCluster:
        common = self._common()
        machines = worlds.pods.pai_mix() / (1.0, self.memory_unit_gib, 1.0)
        return pai_like_instance(rng, machines, ports_per_instance=self.ports_per_instance, share=self.share, **common)


class _SmallInteger(Strict):
    """Small whole numbers, where ties are common: for tests and examples."""

    kind: Literal["small-integer"]
    ports: Count = 4
    instances: Count = 5
    types: Count = 2
    density: Share = 0.7
    gain: Gain = "mixed"

    def build(self, rng: np.random.Generator, data: Data) -> BipartiteCluster:
        sizes = {"n_ports": self.ports, "n_instances": self.instances, "n_types": self.types}
        return small_integer_instance(rng, **sizes, density=self.density, gain=self.gain)


class Recorded(_DrawnFamily):
    """Recorded machines as instances, the most common types of recorded pods as ports.

    ``instances`` machines are drawn without replacement. A port may use a machine that could run one of its pods alone,
    and of these a random ``reach``. Memory is counted in units of ``memory_unit_gib``.
    """

    kind: Literal["recorded"]
    machines: Literal["openb", "pai"] = "openb"
    ports: Count = 20
    instances: Count = 64
    reach: PositiveShare = 1.0
    memory_unit_gib: Positive = MEMORY_UNIT_GIB

    def build(self, rng: np.random.Generator, data: Data) -> BipartiteCluster:
        """Return an instance."""
        return worlds.pods.recorded_instance(
            rng, data, machines=self.machines, reach=self.reach, memory_unit_gib=self.memory_unit_gib, **self._common()
        )


class Gangs(Strict):
    """Jobs of several tasks that run together or not at all, Section 3.5 of the OgaSched paper.

    A port's job has a number of equal tasks drawn from ``tasks``; a share ``needed`` of them must run. A task runs if
    it gets the share ``task_share`` of what it asks for.
    """

    tasks: CountRange = (2, 4)
    needed: PositiveShare = 1.0
    task_share: Share = 0.25

    def build(self, cluster: BipartiteCluster, rng: np.random.Generator) -> GangCluster:
        """Return the cluster with the requirements of each port divided among its tasks."""
        numbers = np.maximum(1, rng.integers(*self.tasks, cluster.n_ports, endpoint=True))
        each = 40.0 + 60.0 * cluster.n_types  # bytes of a task's channel: ends; bounds, allocation, gradient, ...
        at_once = each * float(numbers[cluster.layout.ports].sum())
        check_memory(f"{int(numbers.sum())} tasks of {cluster.n_ports} ports", at_once, "fewer gangs.tasks or ports")
        tasks = [np.tile(asked / n, (n, 1)) for asked, n in zip(cluster.requirements, numbers.tolist(), strict=True)]
        minimum = np.ceil(self.needed * numbers - 1e-9).astype(np.int64)
        parts = (cluster.capacities, cluster.channels, minimum, cluster.gain, cluster.alpha, cluster.overhead)
        return GangCluster(tasks, *parts, task_share=self.task_share)


AnyInstance = Annotated[_Published | _PaiMix | _SmallInteger | Recorded, Field(discriminator="kind")]


_DEFAULT_POLICIES = ("ogasched", "drf", "fairness", "binpacking", "spreading")


class OgaSchedCluster(ClusterCore):
    """Ports, instances and resources; policies decide who gets how much of what, slot by slot.

    The first of the ``policies`` is the one whose totals are divided by the others'. With ``gangs``, policies that know
    nothing of tasks allocate to ports, and what they decide is repaired.
    """

    core: Literal["ogasched"] = "ogasched"
    instance: AnyInstance = _Published(kind="published")
    arrivals: AnyArrivals = Bernoulli(kind="bernoulli")
    gangs: Gangs | None = None
    slots: Count = 2000
    policies: Annotated[tuple[str, ...], policy_list("ogasched")] = _DEFAULT_POLICIES

    def _world(self, streams: Sequence[np.random.Generator], data: Data) -> worlds.world.CoreWorld:
        instance_rng, arrivals_rng, policy_rng, _ = streams
        with placed("cluster.instance"):
            cluster = self.instance.build(instance_rng, data)
            if isinstance(self.instance, _DrawnFamily):
                cluster = self.instance.weighted(cluster, instance_rng)
            if self.gangs is not None and isinstance(cluster, WeightedCluster):
                raise InvalidParameterError("gangs", legal="none with weights or joint gains")
        arrivals = self.arrivals.build(cluster.n_ports, self.slots, arrivals_rng, data)
        gangs = self.gangs
        divided = None if gangs is None else lambda ports: gangs.build(ports, instance_rng.spawn(1)[0])
        return worlds.ogasched.OgaSchedWorld(cluster, arrivals, self.slots, policy_rng, divided)
