"""Policies beside ESDP: the paper's three baselines, learners of the literature, and the oracle of the true means.

The paper's baselines (Section 4) rank the ports that have a job, go through them in that order, and use channel after
channel as long as it fits. Both readings of what the text leaves open are here. ``rank="port"`` ranks whole ports (by
the sum of the estimates of their channels, their cheapest channel, their waiting time), ``"channel"`` channels whatever
their port. ``fill="skip"`` passes over a channel that does not fit; ``"stop"`` ends the slot there.

The learners give every channel an index and use the present channels with the largest sum of indices that fit (an exact
knapsack over the capacity vector). Channels never used come first, as many as fit.

All take ``requests``, ``capacities``, ``ports`` and ``n_ports`` as `Channels` does; learners and oracle raise
`TooLargeError` if the dynamic program would take more than ``memory_limit`` bytes.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numba import njit
from numpy.typing import ArrayLike, NDArray

from marketsched.mechanisms.allocation.esdp.budgeted import MEMORY_LIMIT, BudgetedProblem
from marketsched.mechanisms.allocation.esdp.channel_policy import ChannelPolicy, Channels
from marketsched.mechanisms.arrays import float_array
from marketsched.mechanisms.legal import Amount, Memory, legal
from marketsched.mechanisms.randomness import Rng, generator_of

if TYPE_CHECKING:
    from marketsched.mechanisms.allocation.esdp.gang import GangProblem


class _GreedyPolicy(ChannelPolicy):
    """Go through channels in ascending order of keys and use what fits; see the module for ``rank`` and ``fill``."""

    @legal
    def __init__(
        self,
        *known: Any,
        rank: Literal["port", "channel"] = "port",
        fill: Literal["skip", "stop"] = "skip",
        **of_all: Any,
    ) -> None:
        super().__init__(*known, **of_all)
        self.rank, self.fill = rank, fill

    def _select(self, present: NDArray[np.bool_]) -> NDArray[np.bool_]:
        ports, keys = self.channels.ports, self._channel_keys()
        if self.rank == "port":
            keys = (self._port_key()[ports], ports, *keys)
        channels = np.flatnonzero(present)
        order = channels[np.lexsort(tuple(key[channels] for key in reversed(keys)))]
        selected = np.zeros(self.channels.n_channels, dtype=np.bool_)
        left = self.channels.capacities.copy()
        _fill_kernel(order, self.channels.requests, left, self.fill == "stop", selected)
        return selected

    def _channel_keys(self) -> tuple[NDArray[np.generic], ...]:
        """Return the keys of channels, each of shape (E,), the weightiest first: here, the higher estimate first."""
        return (-self.statistics.means,)

    @abstractmethod
    def _port_key(self) -> NDArray[np.generic]:
        """Return the key of ports, shape (L,)."""


class HighestUtilityFirst(_GreedyPolicy):
    """Highest estimated utility first (the paper's HAUF, also called HSWF there).

    Estimates are means of observed utilities, 0 for a channel never used; nothing explores.

    Examples
    --------
    >>> policy = HighestUtilityFirst([[1], [1], [1]], [1], [0, 1, 1])
    >>> policy.update([True, False, True], [0.3, 0.0, 0.6])
    >>> policy.allocate([True, True])
    array([False, False,  True])
    """

    name = "hauf"

    def _port_key(self) -> NDArray[np.generic]:
        return -np.bincount(self.channels.ports, weights=self.statistics.means, minlength=self.channels.n_ports)


class LowestCostFirst(_GreedyPolicy):
    """Lowest supply cost first (the paper's LCF); of equal cost, the higher estimate first.

    ``costs``, shape (E,), are the supply costs of channels, the sum over k of f_k(a_k); by default the share of the
    cluster that each asks for, summed over resource types. A port costs what its cheapest channel costs.

    Examples
    --------
    >>> LowestCostFirst([[1], [1]], [1], [0, 1], costs=[0.4, 0.2]).allocate([True, True])
    array([False,  True])
    """

    name = "lcf"

    def __init__(self, *known: Any, costs: ArrayLike | None = None, **rules: Any) -> None:
        super().__init__(*known, **rules)
        if costs is None:
            costs = (self.channels.requests / np.maximum(self.channels.capacities, 1)).sum(axis=1)
        self.costs = float_array("costs", costs, (self.channels.n_channels,), lowest=0.0).copy()
        self._cheapest = np.full(self.channels.n_ports, np.inf)
        np.minimum.at(self._cheapest, self.channels.ports, self.costs)

    def _channel_keys(self) -> tuple[NDArray[np.generic], ...]:
        return (self.costs, *super()._channel_keys())

    def _port_key(self) -> NDArray[np.generic]:
        return self._cheapest


class LongestWaitingFirst(_GreedyPolicy):
    """Longest waiting port first (the paper's LWTF); within a port, the higher estimate first.

    A port's waiting time is the number of slots with a job since one of its channels was last used.

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
        self._with_job[:] = False
        self._with_job[self.channels.ports[present]] = True
        return super()._select(present)

    def _port_key(self) -> NDArray[np.generic]:
        return -self.waiting

    def update(self, selected: ArrayLike, utilities: ArrayLike) -> None:
        """Learn the utilities of the used channels (as `ChannelPolicy.update`), and who was served."""
        super().update(selected, utilities)
        self.waiting += self._with_job
        self.waiting[self.channels.ports[np.asarray(selected, dtype=np.bool_)]] = 0
        self._with_job[:] = False


def _best(
    problem: BudgetedProblem | GangProblem,
    indices: NDArray[np.float64],
    present: NDArray[np.bool_],
    unseen: NDArray[np.bool_] | None = None,
) -> NDArray[np.bool_]:
    """Return the present channels with the largest sum of indices >= 0 that fit; of ``unseen`` as many as fit first."""
    no_values = np.zeros(indices.size, dtype=np.int64)
    return problem.solve(no_values, indices, 0, unseen=unseen, among=present).selection(0)


class TrueMeanOracle:
    """The best selection for known mean utilities, shape (E,): what regret is measured against, x*(t) of ESDP (7).

    Examples
    --------
    >>> oracle = TrueMeanOracle(Channels([[1], [2], [1]], [2], [0, 0, 1]), [0.5, 0.8, 0.4])
    >>> oracle.value(np.array([True, True])), oracle.value(np.array([True, False]))
    (0.9, 0.8)
    """

    def __init__(self, channels: Channels, means: ArrayLike, *, memory_limit: Memory = MEMORY_LIMIT) -> None:
        self.channels = channels
        self.means = float_array("means", means, (channels.n_channels,), lowest=0.0).copy()
        self._problem = channels.problem(memory_limit)
        self._known: dict[bytes, float] = {}  # value by which ports have a job

    def selection(self, arrivals: ArrayLike) -> NDArray[np.bool_]:
        """Return the best channels for the ports that have a job, shape (E,)."""
        return _best(self._problem, self.means, self.channels.present(arrivals))

    def value(self, arrivals: NDArray[np.bool_]) -> float:
        """Return the largest expected utility for the ports that have a job."""
        key = arrivals.tobytes()
        if key not in self._known:
            if len(self._known) >= 2**16:
                self._known.clear()
            self._known[key] = float(self.means[self.selection(arrivals)].sum())
        return self._known[key]


class _IndexPolicy(ChannelPolicy):
    """Use the present channels with the largest sum of indices."""

    @legal
    def __init__(self, *known: Any, memory_limit: Memory = MEMORY_LIMIT, **of_all: Any) -> None:
        super().__init__(*known, **of_all)
        self._problem = self.channels.problem(memory_limit)

    def _select(self, present: NDArray[np.bool_]) -> NDArray[np.bool_]:
        return _best(self._problem, self._indices(), present, self._first())

    def _first(self) -> NDArray[np.bool_] | None:
        """Return which channels come before all others, shape (E,): those never used."""
        return self.statistics.unseen

    @abstractmethod
    def _indices(self) -> NDArray[np.float64]:
        """Return the index of each channel, shape (E,)."""


class FollowTheLeader(_IndexPolicy):
    """Use the channels with the best mean so far: the means as indices, no exploration beyond one use of each channel.

    Examples
    --------
    >>> policy = FollowTheLeader([[1], [1]], [1], [0, 0])
    >>> for chosen, seen in (([True, False], [0.9, 0.0]), ([False, True], [0.0, 0.4])):
    ...     _ = policy.allocate([True])
    ...     policy.update(chosen, seen)
    >>> policy.allocate([True])
    array([ True, False])
    """

    name = "follow the leader"

    def _indices(self) -> NDArray[np.float64]:
        return self.statistics.means


class Cucb(_IndexPolicy):
    """Combinatorial upper confidence bounds [CWY13]_: ``min(mean + sqrt(width * ln t / n), 1)`` as indices.

    References
    ----------
    .. [CWY13] Chen, Wang, Yuan: Combinatorial multi-armed bandit, ICML 2013, Algorithm 1. There ``width`` is 1.5.

    Examples
    --------
    >>> policy = Cucb([[1], [1]], [1], [0, 0])
    >>> policy.update([False, True], [0.0, 0.9])
    >>> policy.allocate([True])  # the one not yet tried
    array([ True, False])
    """

    name = "cucb"

    @legal
    def __init__(self, *known: Any, width: Amount = 1.5, **of_all: Any) -> None:
        super().__init__(*known, **of_all)
        self.width = width

    def _indices(self) -> NDArray[np.float64]:
        seen = self.statistics
        bonus = np.sqrt(self.width * math.log(seen.slot) / np.maximum(seen.counts, 1))
        return np.minimum(seen.means + bonus, 1.0)


class ThompsonSampling(_IndexPolicy):
    """Thompson sampling: indices drawn from Beta(1 + sum of utilities, 1 + uses - sum of utilities).

    A utility u in [0, 1] counts as u successes and 1 - u failures. One draw of ``rng`` per channel and slot, used or
    not, so that the stream does not depend on the selection. Channels never used are drawn, too, and do not come first.

    Examples
    --------
    >>> policy = ThompsonSampling([[1], [1]], [1], [0, 0], rng=1)
    >>> int(policy.allocate([True]).sum())  # one of the two channels, by draws from the posterior
    1
    """

    name = "thompson sampling"

    def __init__(self, *known: Any, rng: Rng = None, **of_all: Any) -> None:
        super().__init__(*known, **of_all)
        self._rng = generator_of(rng)

    def _first(self) -> None:
        return None

    def _indices(self) -> NDArray[np.float64]:
        seen = self.statistics
        return self._rng.beta(1.0 + seen.totals, 1.0 + (seen.counts - seen.totals))


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
