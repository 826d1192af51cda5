"""The nodes of a Slurm partition as the cluster that a market sells, and back: which node a booking names.

A pool is of nodes of one kind: the type of their GPUs (``cpu`` without any), or the first partition beside the
market's, or the first feature. A group is of nodes of one kind with equal CPUs, memory and GPUs; node ``i`` of it is
the ``i``-th by name.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from marketsched.live.slurm_demand import SlurmNode
from marketsched.live.slurm_shapes import CPU, GPU, MEMORY, MIB_OF_UNIT
from marketsched.mechanisms.errors import InvalidParameterError

Pools = Literal["gres", "partition", "feature"]
RESOURCES: dict[str, dict[str, Any]] = {
    CPU: {"unit": "CPU", "parts": 1},
    MEMORY: {"unit": "GiB", "parts": MIB_OF_UNIT},
    GPU: {"device": True, "parts": 1},
}
WITHOUT_GPU = "cpu"  # kind of nodes without GPUs


def cluster_of(nodes: Sequence[SlurmNode], pools: Pools = "gres", partition: str = "market") -> dict[str, Any]:
    """Return the cluster that these nodes are, as the configuration of a market writes it.

    Raises InvalidParameterError if a node has GPUs of several types, or no kind.
    """
    groups: list[dict[str, Any]] = []
    for (kind, cpus, memory, gpus), members in _grouped(nodes, pools, partition).items():
        earlier = sum(group["kind"] == kind for group in groups)
        amounts = {CPU: cpus, MEMORY: _gib(memory), **({GPU: gpus} if gpus else {})}
        name = kind if not earlier else f"{kind}-{earlier + 1}"
        groups.append({"name": name, "kind": kind, "nodes": len(members), "each": amounts})
    if not groups:
        raise InvalidParameterError(place="partition", value=partition, legal="one that has nodes")
    sold = [CPU, MEMORY, *([GPU] if any(GPU in group["each"] for group in groups) else [])]
    return {"resources": {name: dict(RESOURCES[name]) for name in sold}, "groups": groups}


def nodes_by_name(
    cluster: Mapping[str, Any], nodes: Sequence[SlurmNode], pools: Pools = "gres", partition: str = "market"
) -> dict[str, SlurmNode]:
    """Return Slurm's node for each node of the market's cluster, ``a100-0`` and so on.

    Raises InvalidParameterError if the market sells other nodes than Slurm has, or what Slurm does not give out.
    """
    for name, resource in cluster["resources"].items():
        if name not in RESOURCES:
            raise InvalidParameterError(place=f"cluster.resources.{name}", legal=f"of {', '.join(RESOURCES)}")
        if name != MEMORY and resource.get("parts", 1) != 1:
            legal = "1: Slurm gives out whole CPUs and devices here"
            raise InvalidParameterError(place=f"cluster.resources.{name}.parts", value=resource["parts"], legal=legal)
    sold = tuple(cluster["resources"])
    there = {_key(*key, sold): members for key, members in _grouped(nodes, pools, partition).items()}
    found: dict[str, SlurmNode] = {}
    for group in cluster["groups"]:
        each, name = group["each"], group["name"]
        memory = round(each.get(MEMORY, 0) * MIB_OF_UNIT)
        members = there.pop(_key(group["kind"], each.get(CPU, 0), memory, each.get(GPU, 0), sold), [])
        if len(members) != group["nodes"]:
            legal = f"as Slurm has them: {len(members)} of this kind and size (marketsched live slurm-cluster)"
            raise InvalidParameterError(place=f"cluster, group {name}: nodes", value=group["nodes"], legal=legal)
        found |= {f"{name}-{i}": node for i, node in enumerate(members)}
    return found


def gpu_types(nodes: Mapping[str, SlurmNode], cluster: Mapping[str, Any]) -> dict[str, frozenset[str]]:
    """Return the types of GPUs that every node of a kind has, by kind."""
    kinds = {f"{group['name']}-{i}": group["kind"] for group in cluster["groups"] for i in range(group["nodes"])}
    found: dict[str, frozenset[str]] = {}
    for name, node in nodes.items():
        found[kinds[name]] = found.get(kinds[name], frozenset(node.gpus)) & frozenset(node.gpus)
    return found


def _grouped(
    nodes: Sequence[SlurmNode], pools: Pools, partition: str
) -> dict[tuple[str, int, int, int], list[SlurmNode]]:
    """Return the nodes of each kind and size, kinds and nodes by name."""
    found: dict[tuple[str, int, int, int], list[SlurmNode]] = {}
    for node in sorted(nodes, key=lambda node: (_kind(node, pools, partition), _natural(node.name))):
        key = (_kind(node, pools, partition), node.cpus, node.memory, sum(node.gpus.values()))
        found.setdefault(key, []).append(node)
    return found


def _key(kind: str, cpus: float, memory: float, gpus: float, sold: Sequence[str]) -> tuple[object, ...]:
    """Return what tells groups apart in a market that sells these resources."""
    amounts = {CPU: cpus, MEMORY: memory, GPU: gpus}
    return (kind, *(float(amounts[name]) for name in sold))


def _kind(node: SlurmNode, pools: Pools, partition: str) -> str:
    if pools == "gres":
        if len(node.gpus) > 1:
            legal = "GPUs of one type a node, or pools by partition or feature"
            raise InvalidParameterError(place=f"node {node.name}", value=", ".join(node.gpus), legal=legal)
        return next((kind or "gpu" for kind in node.gpus), WITHOUT_GPU)
    names = node.features if pools == "feature" else tuple(name for name in node.partitions if name != partition)
    if not names:
        legal = "a feature" if pools == "feature" else f"a partition beside {partition}"
        raise InvalidParameterError(place=f"node {node.name}", legal=f"{legal}, that says of which kind it is")
    return names[0]


def _gib(mib: int) -> float:
    return mib // MIB_OF_UNIT if mib % MIB_OF_UNIT == 0 else mib / MIB_OF_UNIT


def _natural(name: str) -> tuple[tuple[str, int], ...]:
    """Order n2 before n10."""
    return tuple((word, int(number or 0)) for word, number in re.findall(r"(\D*)(\d*)", name))
