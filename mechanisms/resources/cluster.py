"""A cluster: groups of equal nodes, each of a kind, with several resources; pools of nodes that share prices.

A resource is *divisible* (cores, memory: anything counted in whole parts of a unit) or a *device* (GPUs: each is given
whole, or in whole parts to jobs that ask for a share of one). All calendars count whole parts, so nothing is rounded
while a market runs. A *pool* is what has prices of its own: by default all nodes of a kind.

``capacity: C`` of a market of identical nodes is ONE node with C units of one resource (`Cluster.of_nodes`): its jobs
take whole nodes, and which ones is settled when a run starts. C nodes of one unit each would be less: bookings ahead
hold nodes by name, so of two nodes that are free in turn none is free throughout.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Literal, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from marketsched.mechanisms.errors import InvalidParameterError, placed
from marketsched.mechanisms.legal import Error, Finite, Whole, check_fields

MOST_NODES = 200_000  # calendars hold every node in every round
MOST_DEVICES = 64  # of one resource on one node
MOST_PARTS = 2**31 - 1  # of a resource on one node: calendars are kept in 32 bits
ROUNDING = 1e-6  # parts that an amount may be off a whole number of them: .1 is no binary fraction

_AMOUNT = Finite("[0, inf)")

Named = TypeVar("Named", "Resource", "NodeGroup")


@dataclass(frozen=True, slots=True)
class Resource:
    """What nodes have some of.

    Examples
    --------
    >>> Resource("cpu", parts=1000, unit="core").in_parts("each.cpu", 0.5)
    500
    """

    name: str  # as shapes and groups name it: "cpu"
    parts: Annotated[int, Whole(1, 1_000_000_000)] = 1  # of one unit; one is the smallest request: 1000 for a core
    device: bool = False  # whether it comes in devices of one unit each; no task's share lies on two of them
    unit: str = ""  # its name in reports: "core", "GiB"

    def __post_init__(self) -> None:
        check_fields(self)

    def in_parts(self, place: str, amount: object, error: Error = InvalidParameterError) -> int:
        """Return an amount in units as whole parts; ``error`` if it is no number >= 0, or not whole in parts."""
        exact = _AMOUNT.check(place, amount, error) * self.parts
        whole = round(exact) if exact <= MOST_PARTS else 0
        if exact > MOST_PARTS or abs(exact - whole) > ROUNDING:
            smallest = f"multiples of 1/{self.parts}" if self.parts > 1 else "whole numbers"
            raise error(place=place, value=amount, legal=f"{smallest}, at most {MOST_PARTS / self.parts:g}")
        return whole


@dataclass(frozen=True)
class NodeGroup:
    """Nodes with equal capacities; node ``i`` of a group is called ``name-i``.

    Examples
    --------
    >>> NodeGroup("a", "a100", 4, {"cpu": 96, "gpu": 8}).each["gpu"]
    8
    """

    name: str
    kind: str  # what a job names: "a100"; several groups may be of one kind
    nodes: Annotated[int, Whole(1, MOST_NODES)]  # how many
    each: Mapping[str, float]  # what one node has, in units of each resource; 0 of those left out

    def __post_init__(self) -> None:
        check_fields(self)
        if not isinstance(self.each, Mapping):
            raise InvalidParameterError(place="each", value=self.each, legal="amounts by resource")
        object.__setattr__(self, "each", dict(self.each))

    def __hash__(self) -> int:
        """Hash by content (the amounts are never changed)."""
        return hash((self.name, self.kind, self.nodes, tuple(sorted(self.each.items()))))


class Layout(NamedTuple):
    """A cluster as arrays. Nodes are numbered pool by pool, in a pool group by group; amounts are in parts.

    Devices of resource ``r`` on node ``x`` are those numbered ``device_begin[x, r] .. device_begin[x, r + 1] - 1``:
    none if ``r`` is divisible.
    """

    pool_begin: NDArray[np.int64]  # (n_pools + 1,): nodes of pool g are pool_begin[g] .. pool_begin[g + 1] - 1
    node_group: NDArray[np.int64]  # (n_nodes,): index of its group
    size: NDArray[np.int64]  # (n_nodes, n_resources): what a node has; of devices, all of them together
    device_begin: NDArray[np.int64]  # (n_nodes, n_resources + 1)
    device_parts: NDArray[np.int64]  # (n_resources,): parts of one device; 0: divisible
    pool_size: NDArray[np.int64]  # (n_pools, n_resources): sums of `size`
    most_devices: NDArray[np.int64]  # (n_pools,): on one node, of all resources together


@dataclass(frozen=True)
class Cluster:
    """Groups of nodes with their resources, and the pools that have prices of their own.

    Parameters
    ----------
    resources : sequence of Resource
        With different names.
    groups : sequence of NodeGroup
        With different names.
    pools : {"kind", "group"} or sequence of sequences of str
        What shares prices: all nodes of a kind, each group by itself, or the groups named together, which are of one
        kind. The order is that of the groups; among equally good offers the pool named first is taken, those last that
        have devices for which the job does not ask.

    Attributes
    ----------
    pool_names : tuple of str
        The kind, the group, or the groups joined by ``+``.
    pool_kinds : tuple of str
        The kind of each pool's nodes.

    Raises
    ------
    InvalidParameterError
        If a name stands twice, a group names an unknown resource or an amount that is no whole number of parts, or
        pools leave out a group, name one twice or mix kinds.

    Examples
    --------
    >>> cpu, gpu = Resource("cpu", parts=1000), Resource("gpu", parts=1000, device=True)
    >>> groups = [NodeGroup("a", "a100", 2, {"cpu": 96, "gpu": 8}), NodeGroup("c", "cpu", 3, {"cpu": 64})]
    >>> cluster = Cluster((cpu, gpu), groups)
    >>> cluster.pool_names, cluster.nodes, cluster.layout.pool_size.tolist()
    (('a100', 'cpu'), 5, [[192000, 16000], [192000, 0]])
    """

    resources: tuple[Resource, ...]
    groups: tuple[NodeGroup, ...]
    pools: Literal["kind", "group"] | tuple[tuple[str, ...], ...] = "kind"

    def __post_init__(self) -> None:
        object.__setattr__(self, "resources", _different("resources", self.resources, Resource))
        object.__setattr__(self, "groups", _different("groups", self.groups, NodeGroup))
        known = {resource.name: resource for resource in self.resources}
        for i, group in enumerate(self.groups):
            with placed(f"groups[{i}].each"):
                for name, amount in group.each.items():
                    if name not in known:
                        raise InvalidParameterError(place=name, value=amount, legal=f"resources {', '.join(known)}")
                    _check_capacity(known[name], name, amount)
        if not isinstance(self.pools, str):
            named = [tuple(each) if isinstance(each, Sequence) else each for each in self.pools]
            object.__setattr__(self, "pools", tuple(named))
        Whole(1, MOST_NODES).check("nodes", self.nodes)
        _ = self._members

    @classmethod
    def of_nodes(cls, capacity: int) -> Cluster:
        """Return the cluster of a market of identical nodes: one node with ``capacity`` units (see the module)."""
        return cls((Resource("node"),), (NodeGroup("node", "node", 1, {"node": capacity}),))

    def __hash__(self) -> int:
        """Hash by content, once."""
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash((self.resources, self.groups, self.pools))

    @property
    def nodes(self) -> int:
        """How many there are in all."""
        return sum(group.nodes for group in self.groups)

    @cached_property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of nodes, in the order of the groups."""
        return tuple(dict.fromkeys(group.kind for group in self.groups))

    @cached_property
    def pool_names(self) -> tuple[str, ...]:
        """The names of the pools."""
        return tuple(name for name, _ in self._members)

    @cached_property
    def pool_kinds(self) -> tuple[str, ...]:
        """The kind of the nodes of each pool."""
        return tuple(self.groups[members[0]].kind for _, members in self._members)

    def node_name(self, node: int) -> str:
        """Return the group and the number of a node, as ``"a100-3"``."""
        group = int(self.layout.node_group[node])
        first = int(np.flatnonzero(self.layout.node_group == group)[0])
        return f"{self.groups[group].name}-{node - first}"

    @cached_property
    def _members(self) -> tuple[tuple[str, tuple[int, ...]], ...]:
        """Name and groups of each pool."""
        if self.pools == "group":
            return tuple((group.name, (i,)) for i, group in enumerate(self.groups))
        if self.pools == "kind":
            of_kind = {kind: [i for i, group in enumerate(self.groups) if group.kind == kind] for kind in self.kinds}
            return tuple((kind, tuple(members)) for kind, members in of_kind.items())
        numbers = {group.name: i for i, group in enumerate(self.groups)}
        if isinstance(self.pools, str) or not all(
            isinstance(pool, tuple) and pool and all(name in numbers for name in pool) for pool in self.pools
        ):
            legal = f"kind, group, or lists of the groups {', '.join(numbers)}"
            raise InvalidParameterError(place="pools", value=self.pools, legal=legal)
        if sorted(name for pool in self.pools for name in pool) != sorted(numbers):
            raise InvalidParameterError(place="pools", value=self.pools, legal="every group in one pool")
        for i, pool in enumerate(self.pools):
            if len({self.groups[numbers[name]].kind for name in pool}) > 1:
                raise InvalidParameterError(place=f"pools[{i}]", value=pool, legal="groups of one kind")
        return tuple(("+".join(pool), tuple(numbers[name] for name in pool)) for pool in self.pools)

    @cached_property
    def layout(self) -> Layout:
        """The cluster as read-only arrays."""
        pool_groups = [np.array(members) for _, members in self._members]
        counts = np.array([group.nodes for group in self.groups])
        node_group = np.concatenate([np.repeat(members, counts[members]) for members in pool_groups])
        begin = np.concatenate([[0], np.cumsum([counts[members].sum() for members in pool_groups])])
        of_group = np.array(
            [
                [resource.in_parts(resource.name, group.each.get(resource.name, 0)) for resource in self.resources]
                for group in self.groups
            ],
            dtype=np.int64,
        )
        parts = np.array([r.parts if r.device else 0 for r in self.resources], dtype=np.int64)
        size = of_group[node_group]
        devices = np.where(parts > 0, size // np.maximum(parts, 1), 0)
        ends = np.cumsum(devices.ravel()).reshape(devices.shape)
        first = np.concatenate([[0], ends[:-1, -1]])
        layout = Layout(
            begin.astype(np.int64),
            node_group.astype(np.int64),
            size,
            np.concatenate([first[:, None], ends], axis=1).astype(np.int64),
            parts,
            np.add.reduceat(size, begin[:-1], axis=0),
            np.maximum.reduceat(devices.sum(axis=1), begin[:-1]).astype(np.int64),
        )
        for array in layout:
            array.flags.writeable = False
        return layout


def _check_capacity(resource: Resource, place: str, amount: object) -> None:
    parts = resource.in_parts(place, amount)
    if resource.device and (parts % resource.parts or parts > MOST_DEVICES * resource.parts):
        raise InvalidParameterError(
            place=place, value=amount, legal=f"a whole number of devices, at most {MOST_DEVICES}"
        )


def _different(place: str, given: object, kind: type[Named]) -> tuple[Named, ...]:
    """Return a list of things with different names as a tuple."""
    if isinstance(given, (str, bytes)) or not isinstance(given, Sequence) or not given:
        raise InvalidParameterError(place=place, value=given, legal=f"a list of at least one {kind.__name__}")
    seen: set[str] = set()
    for i, each in enumerate(given):
        if not isinstance(each, kind):
            raise InvalidParameterError(place=f"{place}[{i}]", value=each, legal=f"a {kind.__name__}")
        if each.name in seen:
            raise InvalidParameterError(place=f"{place}[{i}].name", value=each.name, legal="a name of its own")
        seen.add(each.name)
    return tuple(given)
