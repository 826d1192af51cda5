r"""Gains as OgaSched (5) has them, before OgaSched (7) separates them, and weights of job types.

A job of port :math:`l` gains

.. math:: \sum_k w_l^k f_k\Bigl(\sum_r y_{(l,r)}^k\Bigr) \quad\text{(joint), or}\quad
   \sum_k w_l^k \sum_r f_r^k\bigl(y_{(l,r)}^k\bigr) ,

as gains are "aggregated over each type of resource, in proportion to each resource's weight", and "jobs of different
types can have different combinations of weights" (extended version, Section 2.2). With joint gains the slope of a
channel is that of its port's total, :math:`w_l^k f_k'(\sum_r y)`; the reward stays concave.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from marketsched.mechanisms.allocation.oga.cluster import BipartiteCluster
from marketsched.mechanisms.allocation.oga.gains import gain_slopes, gain_values, steepest_slopes
from marketsched.mechanisms.allocation.oga.oga import THEORY, Schedule, step_of, step_schedule
from marketsched.mechanisms.allocation.oga.projection import project_columns
from marketsched.mechanisms.arrays import count_array, float_array, read_only
from marketsched.mechanisms.legal import Count, legal


class WeightedCluster(BipartiteCluster):
    """A bipartite cluster with weights of job types, and gains of totals if ``joint``.

    Parameters
    ----------
    requirements, capacities, channels, gain, alpha, overhead
        As of `BipartiteCluster`. With ``joint`` the gain and alpha of a type are those of the first instance.
    weights : float or array_like of float, shape (n_ports, n_types)
        w_l^k > 0.
    joint : bool
        Whether gains are of what a port has on all instances together.

    Examples
    --------
    Two halves are worth more than a whole, unless gains are joint:

    >>> parts = ([[2.0]], [[1.0], [1.0]], [[True, True]], "log", 1.0, 0.0)
    >>> halves = [[[0.5], [0.5]]]
    >>> [round(WeightedCluster(*parts, joint=joint).reward([1], halves), 3) for joint in (False, True)]
    [0.811, 0.693]
    """

    def __init__(
        self,
        requirements: ArrayLike,
        capacities: ArrayLike,
        channels: ArrayLike,
        gain: str | ArrayLike,
        alpha: ArrayLike,
        overhead: ArrayLike,
        *,
        weights: ArrayLike = 1.0,
        joint: bool = False,
    ) -> None:
        super().__init__(requirements, capacities, channels, gain, alpha, overhead)
        shape = (self.n_ports, self.n_types)
        given = float_array("weights", weights, shape if np.ndim(weights) else (), lowest=1e-50, highest=1e50)
        self.weights = np.broadcast_to(given, shape).copy()
        self.joint = joint
        read_only(self.weights)

    def of_ports(self, ports: NDArray[np.int64]) -> WeightedCluster:
        """Return the cluster with these ports, which may be the same several times."""
        parts = (self.requirements[ports], self.capacities, self.channels[ports], self.gain, self.alpha, self.overhead)
        return WeightedCluster(*parts, weights=self.weights[ports], joint=self.joint)

    def channel_rewards(
        self, arrivals: ArrayLike, flat: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return gain and overhead per port of a channel array, each of shape (n_ports,), weighted by arrivals."""
        counts = count_array("arrivals", arrivals, self.n_ports)
        self._check_channel_array("flat", flat)
        dense = self.layout.to_dense(flat)
        totals = dense.sum(axis=1)
        if self.joint:
            gains = gain_values(self.gain[0], self.alpha[0], totals)
        else:
            gains = gain_values(self.gain[None], self.alpha[None], dense).sum(axis=1)
        return counts * (self.weights * gains).sum(axis=1), counts * (self.overhead * totals).max(axis=1)

    def gradient(self, arrivals: ArrayLike, allocation: ArrayLike) -> NDArray[np.float64]:
        """Return the gradient of the reward, OgaSched (9) with weights and, if joint, the slopes of totals."""
        counts = count_array("arrivals", arrivals, self.n_ports)
        return self._gradient(counts, self.layout.to_dense(self._flat("allocation", allocation, lowest=0.0)))

    def _gradient(self, counts: NDArray[np.int64], dense: NDArray[np.float64]) -> NDArray[np.float64]:
        totals = dense.sum(axis=1)
        if self.joint:
            own = gain_slopes(self.gain[0], self.alpha[0], totals)[:, None, :]
        else:
            own = gain_slopes(self.gain[None], self.alpha[None], dense)
        slopes = np.broadcast_to(self.weights[:, None, :] * own, dense.shape).copy()
        dominant = np.argmax(self.overhead * totals, axis=1)
        slopes[np.arange(self.n_ports), :, dominant] -= self.overhead[dominant][:, None]
        return np.asarray(counts[:, None, None] * slopes * self.channels[:, :, None], dtype=np.float64)

    def gradient_bound(self) -> float:
        r"""Return the bound on the norm of the gradient of OgaSched (22), with :math:`w \varpi` for :math:`\varpi`."""
        slopes = steepest_slopes(self.gain, self.alpha)
        steepest = np.full((1, self.n_instances), slopes[0].max()) if self.joint else slopes.max(axis=1)[None]
        steepest = self.weights.max(axis=1)[:, None] * steepest
        per_channel = self.overhead.max() ** 2 + self.n_types * steepest**2
        return float(np.sqrt(per_channel[self.channels].sum()))


class WeightedOga:
    """OgaSched on a `WeightedCluster`: the steps of `OgaSched` from the exact gradient, in NumPy alone.

    Parameters
    ----------
    cluster : WeightedCluster
    horizon : int
        T.
    step : "theory", float or function of the slot
        As of `OgaSched`.

    Examples
    --------
    >>> cluster = WeightedCluster([[2.0], [2.0]], [[2.0]], [[True], [True]], "log", 1.0, 0.0, weights=[[2.0], [1.0]])
    >>> policy = WeightedOga(cluster, horizon=100, step=0.5)
    >>> policy.update([1, 0])
    >>> policy.allocate()[:, 0, 0]
    array([1.25, 0.75])
    """

    name, observes = "ogasched", "nothing"

    @legal
    def __init__(self, cluster: WeightedCluster, horizon: Count, step: str | float | Schedule = THEORY) -> None:
        self.cluster, self.horizon = cluster, horizon
        self._schedule, self._slot = step_schedule(step), 1
        # As OgaSched begins: every instance is shared in proportion to requirements.
        wanted = cluster.channels[:, :, None] * cluster.requirements[:, None, :]
        shares = np.minimum(1.0, cluster.capacities / np.maximum(wanted.sum(axis=0), 1e-300))
        self._state = cluster.layout.to_channels(wanted * shares)

    def allocate(self) -> NDArray[np.float64]:
        """Return y(t), shape (n_ports, n_instances, n_types)."""
        return self.cluster.layout.to_dense(self._state)

    def allocate_channels(self) -> NDArray[np.float64]:
        """Return y(t) as a channel array, a new one."""
        return self._state.copy()

    def update(self, arrivals: ArrayLike) -> None:
        """Make the step OgaSched (11) from the slot's arrivals, counts of shape (n_ports,)."""
        cluster, layout = self.cluster, self.cluster.layout
        counts = count_array("arrivals", arrivals, cluster.n_ports)
        gradient = layout.to_channels(cluster._gradient(counts, layout.to_dense(self._state)))
        moved = self._state + self._size(gradient) * gradient
        self._state = project_columns(moved, cluster.bounds, cluster.capacities.ravel(), layout.columns).points
        self._slot += 1

    def _size(self, gradient: NDArray[np.float64]) -> float:
        if self._schedule is not None:
            return step_of(self._schedule, self._slot)
        norm = float(np.sqrt((gradient * gradient).sum()))
        return self.cluster.diameter() / (norm * self.horizon**0.5) if norm > 0.0 else 0.0
