"""The best placement on single nodes by an integer program: an independent reference for bounds and menus over pools.

It knows nothing of the package's clusters: plain tuples in, a number out.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import optimize, sparse


class Node(NamedTuple):
    pool: int
    has: tuple[int, ...]  # units of each divisible resource
    devices: int


class Option(NamedTuple):
    """``tasks`` tasks, each on one node of ``pool``, at most ``per_node`` on a node, for ``duration`` rounds."""

    pool: int
    tasks: int
    each: tuple[int, ...]  # units of each divisible resource for one task
    whole: int  # whole devices of one task
    share: int  # or thousandths of one device
    per_node: int
    duration: int
    worth: float


class Choice(NamedTuple):
    """A job: when it is ready, what completions at ``arrival + 1``, ... are worth, and how it can run."""

    arrival: int
    values: tuple[float, ...]
    options: tuple[Option, ...]


def best_on_nodes(nodes: list[Node], jobs: list[Choice], horizon: int) -> float:
    """Return the largest sum of values that any placement of whole jobs on the nodes reaches."""
    gains: list[float] = []
    bounds: list[int] = []
    rows: list[tuple[dict[int, float], float, float]] = []  # coefficients, least, most

    def variable(gain: float, most: int) -> int:
        gains.append(gain)
        bounds.append(most)
        return len(gains) - 1

    load: dict[tuple[int, int, int], dict[int, float]] = {}  # (node, what, round) -> coefficients
    for job in jobs:
        once = {}
        for option in job.options:
            last = min(horizon + 1, job.arrival + len(job.values))
            for start in range(job.arrival, last - option.duration + 1):
                value = option.worth * job.values[start + option.duration - job.arrival - 1]
                x = variable(value, 1)
                once[x] = 1.0
                placed = {x: -float(option.tasks)}
                for i, node in enumerate(nodes):
                    if node.pool == option.pool:
                        y = variable(0.0, option.per_node)
                        placed[y] = 1.0
                        _occupy(load, rows, variable, i, node, option, y, range(start, start + option.duration))
                rows.append((placed, 0.0, 0.0))
        rows.append((once, 0.0, 1.0))
    for (i, k, _), coefficients in load.items():
        most = nodes[i].has[k] if k < len(nodes[i].has) else 1000
        rows.append((coefficients, -np.inf, float(most)))
    if not gains:
        return 0.0
    matrix = sparse.lil_array((len(rows), len(gains)))
    for r, (coefficients, _, _) in enumerate(rows):
        for column, a in coefficients.items():
            matrix[r, column] = a
    result = optimize.milp(
        -np.array(gains),
        constraints=optimize.LinearConstraint(matrix.tocsr(), [r[1] for r in rows], [r[2] for r in rows]),
        integrality=np.ones(len(gains)),
        bounds=optimize.Bounds(0, np.array(bounds)),
        options={"mip_rel_gap": 0.0},
    )
    assert result.status == 0, result.message
    return float(-result.fun)


def _occupy(load, rows, variable, i, node, option, y, rounds):
    """Let ``y`` tasks take what they need of node ``i``; devices are chosen one by one and kept."""
    for k, a in enumerate(option.each):
        if a:
            for t in rounds:
                load.setdefault((i, k, t), {})[y] = float(a)
    if not (option.whole or option.share):
        return
    taken = {y: -float(option.whole or 1)}
    for device in range(node.devices):
        z = variable(0.0, 1 if option.whole else 1000 // option.share)
        taken[z] = 1.0
        for t in rounds:
            load.setdefault((i, len(node.has) + device, t), {})[z] = 1000.0 if option.whole else float(option.share)
    rows.append((taken, 0.0, 0.0))
