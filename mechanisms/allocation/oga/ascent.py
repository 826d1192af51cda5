"""Projected ascent in NumPy, for rewards unknown to the compiled steps of `OgaSched`: gangs, weights, joint gains."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
from numpy.typing import ArrayLike, NDArray

from marketsched.mechanisms.allocation.oga.cluster import BipartiteCluster
from marketsched.mechanisms.allocation.oga.oga import Schedule, step_of, step_schedule
from marketsched.mechanisms.allocation.oga.projection import project_columns
from marketsched.mechanisms.arrays import count_array


class ProjectedAscent(ABC):
    """A state that is legal for a cluster, moved along the gradient of each slot's reward; decides before arrivals.

    It begins where every instance is shared in proportion to requirements. ``step``: "theory", OgaSched (26), a number,
    or a function of the slot (from 1).
    """

    name: str
    observes = "nothing"

    def __init__(self, cluster: BipartiteCluster, n_ports: int, horizon: int, step: str | float | Schedule) -> None:
        self.horizon = horizon
        self._space, self._n_ports = cluster, n_ports
        self._schedule, self._slot = step_schedule(step), 1
        self.state = cluster.fair_shares()  # a channel array, before any repair

    @abstractmethod
    def _gradient(self, counts: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the gradient of a slot's reward at the state, a channel array."""

    def allocate(self) -> NDArray[np.float64]:
        """Return the allocation, shape (ports of the cluster, n_instances, n_types)."""
        return self._space.layout.to_dense(self.allocate_channels())

    def allocate_channels(self) -> NDArray[np.float64]:
        """Return the allocation as a channel array, a new one."""
        return self.state.copy()

    def update(self, arrivals: ArrayLike) -> None:
        """Make the step of the slot's arrivals, counts of shape (n_ports,)."""
        gradient = self._gradient(count_array("arrivals", arrivals, self._n_ports))
        eta = self._theory(gradient) if self._schedule is None else step_of(self._schedule, self._slot)
        if eta > 0.0:
            self.state = self._moved(eta, gradient)
        self._slot += 1

    def _theory(self, gradient: NDArray[np.float64]) -> float:
        """Return OgaSched (26); 0 if there is nothing to learn."""
        norm = float(np.sqrt((gradient * gradient).sum()))  # a BLAS norm would wait for its threads
        return self._space.diameter() / (norm * self.horizon**0.5) if norm > 0.0 else 0.0

    def _moved(self, eta: float, gradient: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the legal state nearest to the step OgaSched (11)."""
        space = self._space
        moved = self.state + eta * gradient
        return project_columns(moved, space.bounds, space.capacities.ravel(), space.layout.columns).points
