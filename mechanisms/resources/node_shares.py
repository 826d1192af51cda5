"""The largest share of a node that a task takes, in any resource; a share of a device counts as all of it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from marketsched.mechanisms.resources.cluster import Cluster, Layout
from marketsched.mechanisms.resources.shapes import Options

KEPT = 4096  # shares of requests: jobs ask for the same again and again


class NodeShares:
    """Shares of the smallest node of a pool that can hold a task."""

    def __init__(self, cluster: Cluster) -> None:
        self._layout = cluster.layout
        self._known: dict[tuple[int, bytes], float] = {}

    def of(self, options: Options) -> NDArray[np.float64]:
        """Return the share that a task of each option takes, at most 1, shape (n,)."""
        return np.array([self.of_task(*row) for row in zip(options.pool.tolist(), options.demand, strict=True)])

    def of_task(self, pool: int, demand: NDArray[np.int64]) -> float:
        """Return the share of a node of the pool that a task with this demand takes, at most 1."""
        key = pool, demand.tobytes()
        if key not in self._known:
            layout, size = self._layout, holding(self._layout, pool, demand).min(axis=0)
            device = np.maximum(layout.device_parts, 1)
            charged = np.where(layout.device_parts > 0, -(-demand // device) * device, demand)
            share = np.where(size > 0, charged / np.maximum(size, 1), 0.0).max()
            if len(self._known) >= KEPT:
                self._known.clear()
            self._known[key] = min(1.0, float(share))
        return self._known[key]


def holding(layout: Layout, pool: int, demand: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the sizes of the pool's nodes that can hold such a task, in parts, shape (n, n_resources)."""
    sizes = layout.size[layout.pool_begin[pool] : layout.pool_begin[pool + 1]]
    able: NDArray[np.int64] = sizes[(sizes >= demand).all(axis=1)]
    return able
