r"""A cluster as ports, instances and channels: the reward of an allocation, and the legal ones.

An allocation :math:`y_{(l,r)}^k \ge 0` is legal, in :math:`\mathcal{Y}`, if no channel gets more than the job asks
for, :math:`y_{(l,r)}^k \le a_l^k`, and no instance gives more than it has,
:math:`\sum_l y_{(l,r)}^k \le c_r^k` ((3) and (4) of the OgaSched paper). A job of port :math:`l` earns

.. math:: \sum_{k} \sum_{r} f_r^k\bigl(y_{(l,r)}^k\bigr) - \max_k \beta_k \sum_r y_{(l,r)}^k ,

its gain less its overhead (OgaSched (5), with the separable gains of OgaSched (7)).

References
----------
.. [OgaSched] Zhao, Deng, Xiang, Yan, Yin, Dustdar, Zomaya: Scheduling Multi-Server Jobs with Sublinear
   Regrets via Online Learning.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from marketsched.mechanisms.allocation.esdp.channel_layout import ChannelLayout
from marketsched.mechanisms.allocation.oga.fixed_allocation import FixedAllocation, best_fixed_allocation
from marketsched.mechanisms.allocation.oga.fixed_kernels import channel_rewards_kernel
from marketsched.mechanisms.allocation.oga.gains import gain_codes, gain_slopes, steepest_slopes
from marketsched.mechanisms.allocation.oga.projection import project_columns
from marketsched.mechanisms.arrays import check_shape, count_array, float_array, read_only
from marketsched.mechanisms.errors import InvalidParameterError
from marketsched.mechanisms.legal import LARGEST, Count, legal

ALPHAS = (1e-50, 1e50)  # legal, so that no sum or square overflows; so are requirements and capacities up to LARGEST
TOLERANCE = 1e-9  # an allocation may leave Y by this share of the bound it leaves, or of 1 if that is more


class BipartiteCluster:
    r"""Ports, instances, channels, gains and overheads (see the module); arrays are kept read-only.

    Parameters
    ----------
    requirements : array_like of float, shape (n_ports, n_types)
        :math:`a_l^k \ge 0`: most that a job of port l can use of type k on one instance, devices.
    capacities : array_like of float, shape (n_instances, n_types)
        :math:`c_r^k \ge 0`: devices of type k on instance r.
    channels : array_like of bool, shape (n_ports, n_instances)
        Which port may use which instance; every port at least one.
    gain : str or array_like of str, shape (n_instances, n_types)
        ``linear``, ``log``, ``reciprocal`` or ``poly`` (see `gains`, whose codes are kept); one name stands for all.
    alpha : float or array_like of float, shape (n_instances, n_types)
        Coefficient of the gain, in [1e-50, 1e50].
    overhead : float or array_like of float, shape (n_types,)
        :math:`\beta_k` in [0, 1].

    Attributes
    ----------
    layout : ChannelLayout
        How allocations lie in memory.
    n_ports, n_instances, n_types : int
        L, R, K.

    Examples
    --------
    >>> cluster = BipartiteCluster([[2.0], [3.0]], [[4.0]], [[True], [True]], "linear", 1.0, 0.25)
    >>> cluster.project([[[5.0]], [[4.0]]])[:, 0, 0]
    array([2., 2.])
    >>> cluster.reward([1, 0], [[[2.0]], [[2.0]]])
    1.5
    """

    def __init__(
        self,
        requirements: ArrayLike,
        capacities: ArrayLike,
        channels: ArrayLike,
        gain: str | ArrayLike,
        alpha: ArrayLike,
        overhead: ArrayLike,
    ) -> None:
        self.requirements = float_array("requirements", requirements, (None, None), lowest=0.0, highest=LARGEST).copy()
        self.n_ports, self.n_types = self.requirements.shape
        self.capacities = float_array(
            "capacities", capacities, (None, self.n_types), lowest=0.0, highest=LARGEST
        ).copy()
        self.n_instances = self.capacities.shape[0]
        check_shape("channels", np.shape(channels), (self.n_ports, self.n_instances))
        self.layout = ChannelLayout(channels, self.n_types)
        self.channels = self.layout.channels
        self.gain = gain_codes(gain, self.n_instances, self.n_types)
        self.alpha = _spread("alpha", alpha, (self.n_instances, self.n_types), *ALPHAS)
        self.overhead = _spread("overhead", overhead, (self.n_types,), 0.0, 1.0)
        for array in (self.requirements, self.capacities, self.gain, self.alpha, self.overhead):
            read_only(array)

    def __repr__(self) -> str:
        sizes = f"{self.n_ports} ports, {self.n_instances} instances, {self.n_types} types"
        return f"BipartiteCluster({sizes}, {self.layout.n_channels} channels)"

    def of_ports(self, ports: NDArray[np.int64]) -> BipartiteCluster:
        """Return the cluster with these ports, which may be the same several times."""
        return BipartiteCluster(
            self.requirements[ports], self.capacities, self.channels[ports], self.gain, self.alpha, self.overhead
        )

    @cached_property
    def bounds(self) -> NDArray[np.float64]:
        r""":math:`a_l^k` of every channel as a channel array; read-only."""
        bounds = self.layout.spread_ports(self.requirements)
        read_only(bounds)
        return bounds

    def reward(self, arrivals: ArrayLike, allocation: ArrayLike) -> float:
        """Return the reward of one slot, OgaSched (5) summed over ports.

        ``arrivals``, shape (n_ports,), are counts of jobs; ``allocation``, shape (n_ports, n_instances, n_types), has
        amounts >= 0, zero where there is no channel, and need not be legal.
        """
        gain, overhead = self.gain_and_overhead(arrivals, allocation)
        return float(gain.sum() - overhead.sum())

    def gain_and_overhead(
        self, arrivals: ArrayLike, allocation: ArrayLike
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return both parts of the reward per port, each of shape (n_ports,); arguments as in `reward`."""
        return self.channel_rewards(arrivals, self._flat("allocation", allocation, lowest=0.0))

    def channel_rewards(
        self, arrivals: ArrayLike, flat: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return gain and overhead per port of a channel array, each of shape (n_ports,), weighted by arrivals.

        The slot loop's form of `gain_and_overhead`: compiled, and amounts are trusted to be numbers >= 0.
        """
        counts = count_array("arrivals", arrivals, self.n_ports)
        self._check_channel_array("flat", flat)
        gain, overhead = np.empty(self.n_ports), np.empty(self.n_ports)
        layout = self.layout
        channel_rewards_kernel(
            counts, flat, layout.ports, layout.offsets, self.gain, self.alpha, self.overhead, gain, overhead
        )
        return gain, overhead

    def gradient(self, arrivals: ArrayLike, allocation: ArrayLike) -> NDArray[np.float64]:
        """Return the gradient of the reward, OgaSched (9), with the first of several dominant types as :math:`k^*`.

        Arguments as in `reward`; shape (n_ports, n_instances, n_types), zero where there is no channel.
        """
        flat = self._flat("allocation", allocation, lowest=0.0)
        return self.layout.to_dense(self.channel_gradient(arrivals, flat))

    def channel_gradient(self, counts: ArrayLike, flat: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the gradient as a channel array, of amounts >= 0 that are one."""
        given, dense = count_array("arrivals", counts, self.n_ports), self.layout.to_dense(flat)
        slopes = self._slopes(dense)
        dominant = np.argmax(self.overhead * dense.sum(axis=1), axis=1)  # OgaSched (10); the first of equals
        slopes[np.arange(self.n_ports), :, dominant] -= self.overhead[dominant][:, None]
        return self.layout.to_channels(given[:, None, None] * slopes)

    def _slopes(self, dense: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the slopes of all gains, an array of its own."""
        return gain_slopes(self.gain[None], self.alpha[None], dense)

    def project(self, point: ArrayLike) -> NDArray[np.float64]:
        r"""Return the point of :math:`\mathcal{Y}` nearest to ``point``, exactly (see `projection`).

        Shape (n_ports, n_instances, n_types), any finite numbers; entries off the channels become zero.
        """
        dense = float_array("point", point, (self.n_ports, self.n_instances, self.n_types))
        flat = project_columns(
            self.layout.to_channels(dense), self.bounds, self.capacities.ravel(), self.layout.columns
        ).points
        return self.layout.to_dense(flat)

    def check_allocation(self, allocation: ArrayLike) -> None:
        r"""Raise unless an allocation is in :math:`\mathcal{Y}`, up to 1e-9 of each bound (or 1e-9, if more).

        Shape (n_ports, n_instances, n_types). InvalidParameterError names the first violated bound.
        """
        self.check_channel_array(self._flat("allocation", allocation))

    def check_channel_array(self, flat: NDArray[np.float64]) -> None:
        """Raise as `check_allocation` does, for a channel array."""
        self._check_channel_array("allocation", flat)
        layout = self.layout
        slack = TOLERANCE * np.maximum(1.0, self.bounds)
        legal = (flat >= -slack) & (flat <= self.bounds + slack)  # also false where not a number
        if not legal.all():
            place = int(np.flatnonzero(~legal)[0])
            channel, k = (int(i) for i in np.argwhere(layout.places == place)[0])
            where = f"port {layout.ports[channel]}, instance {layout.instances[channel]}, type {k}"
            raise InvalidParameterError(
                f"allocation of {where} = {flat[place]}: expected a number in [0, {self.bounds[place]:g}]"
            )
        used = self.used(flat)
        over = np.argwhere(used > self.capacities + TOLERANCE * np.maximum(1.0, self.capacities))
        if over.size:
            r, k = (int(i) for i in over[0])
            raise InvalidParameterError(
                f"allocation of instance {r}, type {k} sums to {used[r, k]}: expected <= {self.capacities[r, k]:g}"
            )

    def used(self, flat: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the resources that a channel array uses, by instance and type, shape (n_instances, n_types)."""
        starts = self.layout.columns
        filled = np.flatnonzero(np.diff(starts))  # an instance may be without channels
        used = np.zeros(self.n_instances * self.n_types)
        used[filled] = np.add.reduceat(flat, starts[filled])
        return used.reshape(self.n_instances, self.n_types)

    def fair_shares(self) -> NDArray[np.float64]:
        """Return the channel array in which every instance is shared in proportion to all requirements."""
        asked = self.used(self.bounds)
        share = np.divide(self.capacities, asked, out=np.ones_like(asked), where=asked > self.capacities)
        return self.bounds * self.layout.spread_instances(share)

    def diameter(self) -> float:
        r"""Return the bound on the diameter of :math:`\mathcal{Y}` of OgaSched (25)."""
        return float(np.sqrt(2.0 * (self.requirements.max(axis=0) * self.capacities.sum(axis=0)).sum()))

    def gradient_bound(self) -> float:
        r"""Return the bound on the norm of the gradient of OgaSched (22); at most one job per port and slot."""
        steepest = steepest_slopes(self.gain, self.alpha).max(axis=1)
        per_instance = self.overhead.max() ** 2 + self.n_types * steepest**2
        return float(np.sqrt((np.diff(self.layout.offsets) * per_instance).sum()))

    @legal
    def regret_bound(self, horizon: Count) -> float:
        """The bound of OgaSched (14) on the regret after ``horizon`` slots, one job per port and slot at most."""
        return self.diameter() * self.gradient_bound() * float(np.sqrt(horizon))

    def best_fixed_allocation(self, arrival_counts: ArrayLike, **options: Any) -> FixedAllocation:
        """Return the best allocation in hindsight that never changes; see `fixed_allocation.best_fixed_allocation`."""
        return best_fixed_allocation(self, arrival_counts, **options)

    def _flat(self, name: str, allocation: ArrayLike, lowest: float | None = None) -> NDArray[np.float64]:
        """Return the channel array of a dense allocation that is zero off the channels."""
        dense = float_array(name, allocation, (self.n_ports, self.n_instances, self.n_types), lowest=lowest)
        stray = np.argwhere((dense != 0.0) & ~self.channels[:, :, None])
        if stray.size:
            port, r, k = (int(i) for i in stray[0])
            raise InvalidParameterError(
                f"{name}[{port}, {r}, {k}] = {dense[port, r, k]}: expected 0, as port {port} has no channel to "
                f"instance {r}"
            )
        return self.layout.to_channels(dense)

    def _check_channel_array(self, name: str, flat: NDArray[np.float64]) -> None:
        size = self.layout.size
        if not isinstance(flat, np.ndarray) or flat.dtype != np.float64 or flat.shape != (size,):
            seen = f"{flat.dtype} of shape {flat.shape}" if isinstance(flat, np.ndarray) else type(flat).__name__
            raise InvalidParameterError(f"{name} is {seen}: expected a channel array, float64 of shape ({size},)")


def _spread(name: str, x: ArrayLike, shape: tuple[int, ...], lowest: float, highest: float) -> NDArray[np.float64]:
    """Return a coefficient, one number for all or one for each, as an array of ``shape``."""
    given = float_array(name, x, shape if np.ndim(x) else (), lowest=lowest, highest=highest)
    return np.broadcast_to(given, shape).copy()
