"""The policies that the OgaSched paper compares with: DRF, Fairness, BinPacking, Spreading (its Section 4).

All of them see a slot's arrivals before they decide, and none of them learns. Ports without an arrival get nothing.

*What a job wants* (``demand``) is :math:`a_l^k` on each of its instances (``per-node``, the most that (3) of the paper
allows), or :math:`a_l^k` over all of them together (``total``). With demand per node every instance is asked for the
same whatever the order of instances: BinPacking equals Spreading exactly. *Whom an instance shares with*
(``share_over``) are the ports with an arrival (``arrived``), or all its ports (``all``: the shares of absent ports stay
unused, as the formula in the paper's text has it).

An instance's utilisation is the mean, over the types it has, of the share in use. Equal shares and
equal utilisations are served in order of index.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numba import njit
from numpy.typing import ArrayLike, NDArray

from marketsched.mechanisms.allocation.oga.cluster import BipartiteCluster
from marketsched.mechanisms.arrays import count_array
from marketsched.mechanisms.legal import legal

Demand = Literal["per-node", "total"]
ShareOver = Literal["arrived", "all"]

_IN_ORDER, _FULLEST, _EMPTIEST = 0, 1, 2  # which instance a port takes from first


class _Baseline:
    """What the four have in common: they see arrivals, write into one channel array, and learn nothing."""

    observes = "arrivals"
    name = ""

    def __init__(self, cluster: BipartiteCluster) -> None:
        self.cluster = cluster
        self._flat = np.zeros(cluster.layout.size)
        self._view = self._flat.view()
        self._view.flags.writeable = False

    def allocate(self, arrivals: ArrayLike) -> NDArray[np.float64]:
        """Return the allocation of a slot, (n_ports, n_instances, n_types); several jobs at a port count as one."""
        return self.cluster.layout.to_dense(self.allocate_channels(arrivals))

    def allocate_channels(self, arrivals: ArrayLike) -> NDArray[np.float64]:
        """Return the same as a channel array: read-only, and overwritten by the next call."""
        self._fill(count_array("arrivals", arrivals, self.cluster.n_ports) > 0)
        return self._view

    def update(self, *feedback: Any) -> None:
        """Learn nothing."""

    def _fill(self, present: NDArray[np.bool_]) -> None:
        raise NotImplementedError


class Fairness(_Baseline):
    r"""Every instance shares each type in proportion to requirements: :math:`\min(a_l^k, c_r^k a_l^k / \sum_m a_m^k)`.

    The sum is over the ports m of the instance that have a job, or over all of them (``share_over="all"``).

    Examples
    --------
    >>> cluster = BipartiteCluster([[2.0], [3.0]], [[4.0]], [[True], [True]], "linear", 1.0, 0.25)
    >>> Fairness(cluster).allocate([1, 0])[:, 0, 0], Fairness(cluster, share_over="all").allocate([1, 0])[:, 0, 0]
    (array([2., 0.]), array([1.6, 0. ]))
    """

    @legal
    def __init__(self, cluster: BipartiteCluster, share_over: ShareOver = "arrived") -> None:
        self.share_over = share_over
        self.name = "fairness" if share_over == "arrived" else "fairness (share over all)"
        super().__init__(cluster)

    def _fill(self, present: NDArray[np.bool_]) -> None:
        _share_kernel(
            present, self.share_over == "all", self.cluster.layout.ports, self.cluster.layout.offsets,
            self.cluster.requirements, self.cluster.capacities, self._flat
        )  # fmt: skip


class _InTurn(_Baseline):
    """Ports take what is free, one after the other."""

    _instance_order = _IN_ORDER

    @legal
    def __init__(self, cluster: BipartiteCluster, demand: Demand = "per-node") -> None:
        self.demand = demand
        self.name = type(self).__name__.lower() + ("" if demand == "per-node" else " (total demand)")
        super().__init__(cluster)
        layout = cluster.layout
        self._by_port = np.argsort(layout.ports, kind="stable")  # channels by port, then by instance
        counts = np.bincount(layout.ports, minlength=cluster.n_ports)
        self._port_offsets = np.concatenate(([0], np.cumsum(counts)))
        self._port_order = self._order_of_ports()

    def _order_of_ports(self) -> NDArray[np.int64]:
        return np.arange(self.cluster.n_ports)

    def _fill(self, present: NDArray[np.bool_]) -> None:
        layout = self.cluster.layout
        _take_in_turn_kernel(
            self._port_order[present[self._port_order]], self._instance_order, self.demand == "total",
            self._by_port, self._port_offsets, layout.instances, layout.places,
            self.cluster.requirements, self.cluster.capacities, self._flat
        )  # fmt: skip


class Drf(_InTurn):
    r"""Ports take what is free in ascending order of dominant share :math:`\max_k a_l^k / \sum_{r \in R_l} c_r^k`.

    A total demand is taken from instances in their order. ``dominant_shares``, shape (n_ports,), are infinite for a
    port that wants a type none of its instances has.

    Examples
    --------
    >>> cluster = BipartiteCluster([[3.0], [2.0]], [[4.0]], [[True], [True]], "linear", 1.0, 0.25)
    >>> Drf(cluster).allocate([1, 1])[:, 0, 0]
    array([2., 2.])
    """

    def _order_of_ports(self) -> NDArray[np.int64]:
        wanted = self.cluster.requirements
        there = self.cluster.channels.astype(np.float64) @ self.cluster.capacities
        shares = np.divide(wanted, there, out=np.where(wanted > 0.0, np.inf, 0.0), where=there > 0.0)
        self.dominant_shares: NDArray[np.float64] = shares.max(axis=1)
        return np.argsort(self.dominant_shares, kind="stable")


class BinPacking(_InTurn):
    """Ports in their order take what is free, from the fullest instance to the emptiest.

    Examples
    --------
    >>> cluster = BipartiteCluster([[1.0], [1.0]], [[4.0], [2.0]], [[False, True], [True, True]], "linear", 1.0, 0.25)
    >>> BinPacking(cluster, demand="total").allocate([1, 1])[1, :, 0]
    array([0., 1.])
    """

    _instance_order = _FULLEST


class Spreading(_InTurn):
    """Ports in their order take what is free, from the emptiest instance to the fullest.

    Examples
    --------
    >>> cluster = BipartiteCluster([[1.0], [1.0]], [[4.0], [2.0]], [[False, True], [True, True]], "linear", 1.0, 0.25)
    >>> Spreading(cluster, demand="total").allocate([1, 1])[1, :, 0]
    array([1., 0.])
    """

    _instance_order = _EMPTIEST


@njit(cache=True, nogil=True)
def _share_kernel(present, over_all, ports, offsets, requirements, capacities, flat):  # type: ignore[no-untyped-def]
    """Fill ``flat`` with every present port's share of every type on every instance."""
    n_types = capacities.shape[1]
    for r in range(offsets.size - 1):
        first, n = offsets[r], offsets[r + 1] - offsets[r]
        for k in range(n_types):
            start, wanted = first * n_types + k * n, 0.0
            for i in range(n):
                port = ports[first + i]
                if over_all or present[port]:
                    wanted += requirements[port, k]
            share = min(1.0, capacities[r, k] / wanted) if wanted > 0.0 else 0.0
            for i in range(n):
                port = ports[first + i]
                flat[start + i] = share * requirements[port, k] if present[port] else 0.0


@njit(cache=True, nogil=True)
def _utilisations(channels, instances, free, capacities, out):  # type: ignore[no-untyped-def]
    """Fill ``out`` with the utilisation of the instance of each of a port's channels."""
    for i in range(channels.size):
        r, kinds, used = instances[channels[i]], 0, 0.0
        for k in range(capacities.shape[1]):
            if capacities[r, k] > 0.0:
                kinds += 1
                used += 1.0 - free[r, k] / capacities[r, k]
        out[i] = used / kinds if kinds > 0 else 0.0


@njit(cache=True, nogil=True)
def _take_in_turn_kernel(  # type: ignore[no-untyped-def]
    order, instance_order, total, by_port, port_offsets, instances, places, requirements, capacities, flat
):
    """Fill ``flat``: the ports of ``order`` take what is free, per instance or up to a total."""
    n_types = capacities.shape[1]
    free, left = capacities.copy(), np.empty(n_types)
    scores = np.empty(by_port.size)
    flat[:] = 0.0
    for port in order:
        channels = by_port[port_offsets[port] : port_offsets[port + 1]]
        # Per node the order of instances changes nothing. Else: what others use does not change while a
        # port takes, and it visits every instance once, so that one sort is enough.
        if total and instance_order != 0:
            score = scores[: channels.size]
            _utilisations(channels, instances, free, capacities, score)
            if instance_order == 1:
                score *= -1.0
            channels = channels[np.argsort(score, kind="mergesort")]
        for k in range(n_types):
            left[k] = requirements[port, k]
        wanted = True
        for channel in channels:
            if not wanted:
                break
            r = instances[channel]
            wanted = not total
            for k in range(n_types):
                amount = min(left[k], free[r, k])
                flat[places[channel, k]] = amount
                free[r, k] -= amount
                if total:
                    left[k] -= amount
                    wanted = wanted or left[k] > 0.0
