r"""Gains as OgaSched (5) has them, before OgaSched (7) separates them, and weights of job types.

A job of port :math:`l` gains

.. math:: \sum_k w_l^k f_k\Bigl(\sum_r y_{(l,r)}^k\Bigr) \quad\text{(joint), or}\quad
   \sum_k w_l^k \sum_r f_r^k\bigl(y_{(l,r)}^k\bigr) ,

as gains are "aggregated over each type of resource, in proportion to each resource's weight", and "jobs of different
types can have different combinations of weights" (extended version, Section 2.2). With joint gains the slope of a
channel is that of its port's total, :math:`w_l^k f_k'(\sum_r y)`; the reward stays concave.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from marketsched.mechanisms.allocation.oga.ascent import ProjectedAscent
from marketsched.mechanisms.allocation.oga.cluster import BipartiteCluster
from marketsched.mechanisms.allocation.oga.gains import gain_slopes, gain_values, steepest_slopes
from marketsched.mechanisms.allocation.oga.oga import THEORY, Schedule
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

    def __init__(self, *parts: Any, weights: ArrayLike = 1.0, joint: bool = False, **named: Any) -> None:
        super().__init__(*parts, **named)
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

    def _slopes(self, dense: NDArray[np.float64]) -> NDArray[np.float64]:
        if self.joint:
            own = gain_slopes(self.gain[0], self.alpha[0], dense.sum(axis=1))[:, None, :]
        else:
            own = gain_slopes(self.gain[None], self.alpha[None], dense)
        return np.broadcast_to(self.weights[:, None, :] * own, dense.shape).copy()

    def gradient_bound(self) -> float:
        r"""Return the bound on the norm of the gradient of OgaSched (22), with :math:`w \varpi` for :math:`\varpi`."""
        slopes = steepest_slopes(self.gain, self.alpha)
        steepest = np.full((1, self.n_instances), slopes[0].max()) if self.joint else slopes.max(axis=1)[None]
        steepest = self.weights.max(axis=1)[:, None] * steepest
        per_channel = self.overhead.max() ** 2 + self.n_types * steepest**2
        return float(np.sqrt(per_channel[self.channels].sum()))


class WeightedOga(ProjectedAscent):
    """OgaSched on a `WeightedCluster`: the steps of `OgaSched`, but "theorem", from the exact gradient.

    Examples
    --------
    >>> cluster = WeightedCluster([[2.0], [2.0]], [[2.0]], [[True], [True]], "log", 1.0, 0.0, weights=[[2.0], [1.0]])
    >>> policy = WeightedOga(cluster, horizon=100, step=0.5)
    >>> policy.update([1, 0])
    >>> policy.allocate()[:, 0, 0]
    array([1.25, 0.75])
    """

    name = "ogasched"

    @legal
    def __init__(self, cluster: WeightedCluster, horizon: Count, step: str | float | Schedule = THEORY) -> None:
        super().__init__(cluster, cluster.n_ports, horizon, step)
        self.cluster = cluster

    def _gradient(self, counts: NDArray[np.int64]) -> NDArray[np.float64]:
        return self.cluster.channel_gradient(counts, self.state)
