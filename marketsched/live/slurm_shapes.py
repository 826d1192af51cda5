"""Shapes in Slurm's terms: what a job of Slurm has to ask for to be one of the ways in which a job of the market runs.

A task is what a job takes of one node: a shape of several tasks has ``per_node: 1``, and its job of Slurm has as many
nodes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from marketsched.live.slurm_demand import NodeDemand

CPU, MEMORY, GPU = "cpu", "memory", "gpu"  # what a market in front of Slurm sells: CPUs, GiB, whole devices
MIB_OF_UNIT = 1024


@dataclass(frozen=True)
class SlurmShape:
    """One shape of a statement, as its job of Slurm has to be."""

    nodes: int  # one for each task
    each: Mapping[str, float]  # of one node: CPUs, MiB and GPUs, of the resources that the market sells
    kinds: tuple[str, ...]  # of nodes it may run on
    spread: bool  # whether each task has a node of its own

    def misfit(self, demand: NodeDemand, nodes: int, types: Mapping[str, frozenset[str]]) -> str:
        """Say why a job of Slurm on so many nodes is not this shape; empty: it is.

        ``types`` has the types of GPUs of each kind of node.
        """
        if not self.spread:
            return f"announced with {self.nodes} tasks and without per_node: 1; in Slurm a task has a node of its own"
        if nodes != self.nodes:
            return f"announced with {self.nodes} nodes, not {nodes}"
        if demand.unclear:
            return f"expected what it takes of a node (--cpus-per-task, --mem, --gres), not {demand.unclear}"
        takes = {CPU: demand.cpus, MEMORY: demand.memory, GPU: float(sum(demand.gpus.values()))}
        for name, most in self.each.items():
            if takes[name] != most:
                unit = {CPU: "CPUs", MEMORY: "MiB", GPU: "GPUs"}[name]
                return f"announced with {most:g} {unit} a node, not {takes[name]:g}"
        for kind in self.kinds:
            if missing := set(demand.gpus) - {""} - types.get(kind, frozenset()):
                return f"it asks for GPUs of type {', '.join(sorted(missing))}, and may be booked on {kind}"
        return ""


def slurm_shapes(statement: Mapping[str, Any], sold: Sequence[str]) -> tuple[SlurmShape, ...]:
    """Return the shapes of a (valid) statement; none if it is for identical nodes.

    ``sold`` are the resources of the market; what a shape leaves out is 0.
    """
    found = []
    for shape in statement.get("shapes", ()):
        each = {name: float(shape["each"].get(name, 0)) * (MIB_OF_UNIT if name == MEMORY else 1) for name in sold}
        tasks = int(shape.get("tasks", 1))
        found.append(SlurmShape(tasks, each, tuple(shape["on"]), tasks == 1 or shape.get("per_node") == 1))
    return tuple(found)
