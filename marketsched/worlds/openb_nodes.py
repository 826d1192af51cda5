"""A cluster with the nodes of openb: its shapes of nodes in their shares, scaled to a number of GPUs.

Kinds are models of GPU, ``cpu`` for nodes without one; V100s with 16 and 32 GB are one kind. The two nodes with an A10
are left out: no scaled cluster would have one.
"""

from __future__ import annotations

from collections import Counter

import numpy as np

from marketsched.mechanisms.legal import Positive, legal
from marketsched.mechanisms.resources.cluster import Cluster, NodeGroup, Resource
from marketsched.worlds.traces.catalogue import TRACES
from marketsched.worlds.traces.trace import Source

KINDS = ("cpu", "T4", "P100", "V100", "G2", "G3")
GPU_KINDS = KINDS[1:]
RESOURCES = (
    Resource("cpu", parts=1000, unit="core"),
    Resource("memory", parts=1024, unit="GiB"),
    Resource("gpu", parts=1000, device=True, unit="GPU"),
)
_OF_MODEL = {"": "cpu", "V100M16": "V100", "V100M32": "V100"}

NodeShape = tuple[str, int, int, int]  # kind, GPUs, thousandths of a core, MiB


def kind_of(model: str) -> str:
    """Return the kind of node that a model of GPU stands for."""
    return _OF_MODEL.get(model, model)


@legal
def openb_cluster(gpus: Positive, data: Source = None) -> Cluster:
    """Return a cluster of about ``gpus`` GPUs, with openb's shapes of nodes in their shares, one of each kind at least.

    There is a group for each shape of node, a pool for each kind. Counts of nodes are rounded so that their sum is the
    scaled sum (largest remainders). MissingDataError or TraceError if the nodes' file is not there, or damaged.
    """
    table = TRACES["openb-nodes"].read(data)
    table = table[table["model"].map(kind_of).isin(KINDS)]
    columns = (table["model"].map(kind_of), table["gpu"], table["cpu_milli"], table["memory_mib"])
    counts = Counter(zip(*(column.tolist() for column in columns), strict=True))
    groups = []
    for (kind, devices, milli, mib), nodes in _scaled(counts, gpus / float(table["gpu"].sum())).items():
        name = (
            f"{kind}-{devices}x{milli // 1000}c{mib // 1024}g" if devices else f"{kind}-{milli // 1000}c{mib // 1024}g"
        )
        groups.append(NodeGroup(name, kind, nodes, {"cpu": milli / 1000, "memory": mib / 1024, "gpu": devices}))
    return Cluster(RESOURCES, tuple(groups))


def _scaled(counts: Counter[NodeShape], factor: float) -> dict[NodeShape, int]:
    """Return how many nodes of each shape a cluster of ``factor`` times the size has, in the order of `KINDS`."""
    shapes = sorted(counts, key=lambda shape: (KINDS.index(shape[0]), shape))
    exact = np.array([counts[shape] * factor for shape in shapes])
    nodes = np.floor(exact).astype(np.int64)
    missing = round(exact.sum()) - int(nodes.sum())
    nodes[np.argsort(nodes - exact, kind="stable")[:missing]] += 1
    scaled = dict(zip(shapes, nodes.tolist(), strict=True))
    for kind in KINDS:
        if not any(scaled[shape] for shape in shapes if shape[0] == kind):
            scaled[max((shape for shape in shapes if shape[0] == kind), key=lambda shape: counts[shape])] = 1
    return {shape: n for shape, n in scaled.items() if n}
