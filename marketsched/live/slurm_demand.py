"""The requests of Slurm's jobs on one node, and the resources of nodes: CPUs, memory, GPUs by type."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

MIB = {"K": 1 / 1024, "M": 1.0, "G": 1024.0, "T": 1024.0**2}  # of the units of Slurm's memory
GPU = re.compile(r"(?:gres[:/])?gpu(?::([A-Za-z][^:=(,]*))?(?:[:=](\d+))?(?:\(.*)?")


@dataclass(frozen=True)
class NodeDemand:
    """What a job takes of each of its nodes."""

    cpus: float = 0.0  # on average over its nodes
    memory: float = 0.0  # MiB; all of a node's where the job says nothing and Slurm has no default
    gpus: Mapping[str, int] = field(default_factory=dict)  # by type; ``""`` of any type
    # an option by which the job takes what is not the same on each node, or all of a node; empty: there is none
    unclear: str = ""

    @classmethod
    def of(cls, row: Mapping[str, Any], nodes: int) -> NodeDemand:
        """Read one job of ``squeue --json`` on so many nodes."""
        total = dict(part.partition("=")[::2] for part in str(row.get("tres_req_str") or "").split(","))
        others = {"tres_per_job": "--gpus", "tres_per_socket": "--gpus-per-socket", "tres_per_task": "--gpus-per-task"}
        unclear = [option for key, option in others.items() if row.get(key)]
        if row.get("shared") == "none":
            unclear.append("--exclusive")
        per_node = max(1, nodes)
        return cls(
            cpus=float(total.get("cpu") or 0) / per_node,
            memory=mebibytes(total.get("mem") or "0") / per_node,
            gpus=gpus_in(str(row.get("tres_per_node") or "")),
            unclear=", ".join(unclear),
        )


@dataclass(frozen=True)
class SlurmNode:
    """A node as the controller sees it."""

    name: str
    cpus: int  # that jobs can have, as ``memory``, MiB
    memory: int
    gpus: Mapping[str, int]  # by type; ``""`` without one
    features: tuple[str, ...]
    partitions: tuple[str, ...]
    usable: bool = True  # whether jobs can run there now


def mebibytes(text: str) -> float:
    """Return an amount of memory as Slurm writes it, in MiB; without a unit it is in MiB.

    Raises ValueError if it is none.

    Examples
    --------
    >>> mebibytes("50M"), mebibytes("1.50G"), mebibytes("512")
    (50.0, 1536.0, 512.0)
    """
    text = text.strip().upper().removesuffix("B")
    unit = MIB.get(text[-1:])
    return float(text) if unit is None else float(text[:-1]) * unit


def gpus_in(text: str) -> dict[str, int]:
    """Return the GPUs that a list of generic resources names, by type; what else it names is left out.

    Examples
    --------
    >>> gpus_in("gres:gpu:a100:2"), gpus_in("gpu:4"), gpus_in("gpu:a100:4(S:0-1),nic:2"), gpus_in("gres:gpu")
    ({'a100': 2}, {'': 4}, {'a100': 4}, {'': 1})
    """
    found: dict[str, int] = {}
    for part in re.split(r",(?![^(]*\))", text):
        match = GPU.fullmatch(part.strip())
        if match:
            kind = match[1] or ""
            found[kind] = found.get(kind, 0) + int(match[2] or 1)
    return found
