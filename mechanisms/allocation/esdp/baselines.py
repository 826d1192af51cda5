"""The ESDP paper's three baselines: highest utility first, lowest cost first, longest waiting first.

All three rank the ports that have a job, go through them in that order, and use channel after channel
as long as it fits (Section 4 of the paper). The text leaves two things open; both readings are here:

``rank``
    ``"port"``: whole ports are ranked (by the sum of the estimates of their channels, their cheapest
    channel, their waiting time), and the channels of a port among themselves; ``"channel"``: channels
    are ranked, whatever their port.
``fill``
    ``"skip"``: a channel that does not fit is passed over; ``"stop"``: the first one that does not fit
    ends the slot ("until (2) can not be satisfied").
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numba import njit
from numpy.typing import ArrayLike, NDArray

from marketsched.mechanisms.allocation.esdp.channel_policy import ChannelPolicy, Channels
from marketsched.mechanisms.arrays import float_array
from marketsched.mechanisms.legal import legal


class _GreedyPolicy(ChannelPolicy):
    """Go through channels in some order and use what fits; see the module for ``rank`` and ``fill``."""

    @legal
    def __init__(
        self,
        requests: ArrayLike,
        capacities: ArrayLike,
        ports: ArrayLike,
        *,
        rank: Literal["port", "channel"] = "port",
        fill: Literal["skip", "stop"] = "skip",
        n_ports: int | None = None,
    ) -> None:
        super().__init__(Channels(requests, capacities, ports, n_ports=n_ports))
        self.rank, self.fill = rank, fill

    def _fill(self, present: NDArray[np.bool_], *keys: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Use present channels in ascending order of the keys, the first being the weightiest."""
        channels = np.flatnonzero(present)
        order = channels[np.lexsort(tuple(key[channels] for key in reversed(keys)))]
        selected = np.zeros(self.channels.n_channels, dtype=np.bool_)
        left = self.channels.capacities.copy()
        _fill_kernel(order, self.channels.requests, left, self.fill == "stop", selected)
        return selected


class HighestUtilityFirst(_GreedyPolicy):
    """Highest estimated utility first (the paper's HAUF, also called HSWF there).

    Estimates are means of observed utilities, 0 for a channel never used; nothing explores.

    Parameters
    ----------
    requests, capacities, ports, n_ports
        As in `Channels`.
    rank, fill : str
        See the module.

    Examples
    --------
    >>> policy = HighestUtilityFirst([[1], [1], [1]], [1], [0, 1, 1])
    >>> policy.update([True, False, True], [0.3, 0.0, 0.6])
    >>> policy.allocate([True, True])
    array([False, False,  True])
    """

    name = "hauf"

    def _select(self, present: NDArray[np.bool_]) -> NDArray[np.bool_]:
        means = self.statistics.means
        if self.rank == "channel":
            return self._fill(present, -means)
        ports = self.channels.ports
        of_port = np.bincount(ports, weights=means, minlength=self.channels.n_ports).astype(np.float64)
        return self._fill(present, -of_port[ports], ports.astype(np.float64), -means)


class LowestCostFirst(_GreedyPolicy):
    """Lowest supply cost first (the paper's LCF); of equal cost, the higher estimate first.

    Parameters
    ----------
    requests, capacities, ports, n_ports
        As in `Channels`.
    costs : array_like of float, shape (E,), optional
        Supply cost of a channel, the sum over k of f_k(a_k). By default the share of the cluster it
        asks for, summed over resource types.
    rank, fill : str
        See the module; a port costs what its cheapest channel costs.

    Examples
    --------
    >>> LowestCostFirst([[1], [1]], [1], [0, 1], costs=[0.4, 0.2]).allocate([True, True])
    array([False,  True])
    """

    name = "lcf"

    def __init__(
        self,
        requests: ArrayLike,
        capacities: ArrayLike,
        ports: ArrayLike,
        costs: ArrayLike | None = None,
        *,
        rank: Literal["port", "channel"] = "port",
        fill: Literal["skip", "stop"] = "skip",
        n_ports: int | None = None,
    ) -> None:
        super().__init__(requests, capacities, ports, rank=rank, fill=fill, n_ports=n_ports)
        if costs is None:
            costs = (self.channels.requests / np.maximum(self.channels.capacities, 1)).sum(axis=1)
        self.costs = float_array("costs", costs, (self.channels.n_channels,), lowest=0.0).copy()
        cheapest = np.full(self.channels.n_ports, np.inf)
        np.minimum.at(cheapest, self.channels.ports, self.costs)
        self._of_port = cheapest[self.channels.ports]

    def _select(self, present: NDArray[np.bool_]) -> NDArray[np.bool_]:
        means = self.statistics.means
        if self.rank == "channel":
            return self._fill(present, self.costs, -means)
        return self._fill(present, self._of_port, self.channels.ports.astype(np.float64), self.costs, -means)


class LongestWaitingFirst(_GreedyPolicy):
    """Longest waiting port first (the paper's LWTF); within a port, the higher estimate first.

    A port's waiting time is the number of slots with a job since one of its channels was last used.

    Parameters
    ----------
    requests, capacities, ports, n_ports
        As in `Channels`.
    fill : str
        See the module. (Channels of one port wait equally long, so only ports can be ranked.)

    Examples
    --------
    >>> policy = LongestWaitingFirst([[1], [1]], [1], [0, 1])
    >>> first = policy.allocate([True, True])
    >>> policy.update(first, [0.9, 0.9])
    >>> first, policy.allocate([True, True])
    (array([ True, False]), array([False,  True]))
    """

    name = "lwtf"

    def __init__(
        self,
        requests: ArrayLike,
        capacities: ArrayLike,
        ports: ArrayLike,
        *,
        fill: Literal["skip", "stop"] = "skip",
        n_ports: int | None = None,
    ) -> None:
        super().__init__(requests, capacities, ports, fill=fill, n_ports=n_ports)
        self.waiting = np.zeros(self.channels.n_ports, dtype=np.int64)
        self._with_job = np.zeros(self.channels.n_ports, dtype=np.bool_)

    def _select(self, present: NDArray[np.bool_]) -> NDArray[np.bool_]:
        ports = self.channels.ports
        self._with_job[:] = False
        self._with_job[ports[present]] = True
        waiting = self.waiting[ports].astype(np.float64)
        return self._fill(present, -waiting, ports.astype(np.float64), -self.statistics.means)

    def update(self, selected: ArrayLike, utilities: ArrayLike) -> None:
        """Learn the utilities of the used channels (as `ChannelPolicy.update`), and who was served."""
        super().update(selected, utilities)
        self.waiting += self._with_job
        self.waiting[self.channels.ports[np.asarray(selected, dtype=np.bool_)]] = 0
        self._with_job[:] = False


@njit(cache=True)
def _fill_kernel(order, requests, left, stop, selected):  # type: ignore[no-untyped-def]
    """Select channels in order as they fit; draw ``left`` down in place."""
    for e in order:
        fits = True
        for k in range(left.size):
            fits = fits and requests[e, k] <= left[k]
        if fits:
            selected[e] = True
            for k in range(left.size):
                left[k] -= requests[e, k]
        elif stop:
            return
