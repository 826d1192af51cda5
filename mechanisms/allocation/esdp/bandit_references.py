"""Well-known learners over channels, as references beside ESDP, and the oracle of the true means.

Each gives every channel an index and uses the present channels with the largest sum of indices that fit
(an exact knapsack over the capacity vector). Channels never used come first, as many as fit.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from marketsched.mechanisms.allocation.esdp.budgeted import MEMORY_LIMIT
from marketsched.mechanisms.allocation.esdp.channel_policy import ChannelPolicy, Channels
from marketsched.mechanisms.arrays import float_array
from marketsched.mechanisms.legal import Amount, Memory, legal
from marketsched.mechanisms.randomness import generator_of


class _ExactSelection:
    """The selection with the largest sum of non-negative indices within the capacities, found exactly.

    Parameters
    ----------
    channels : Channels
        Requests and capacities.
    memory_limit : int
        Bytes the dynamic program may take.

    Raises
    ------
    TooLargeError
        If there are too many capacity vectors.
    """

    def __init__(self, channels: Channels, *, memory_limit: Memory = MEMORY_LIMIT) -> None:
        self._problem = channels.problem(memory_limit)
        self._no_values = np.zeros(channels.n_channels, dtype=np.int64)

    def best(
        self,
        indices: NDArray[np.float64],
        present: NDArray[np.bool_],
        unseen: NDArray[np.bool_] | None = None,
    ) -> NDArray[np.bool_]:
        """Return the best present channels; with ``unseen``, as many of those as fit come first. Shapes (E,)."""
        return self._problem.solve(self._no_values, indices, 0, unseen=unseen, among=present).selection(0)


class TrueMeanOracle:
    """The best selection for known means: what regret is measured against, x*(t) of ESDP (7).

    Parameters
    ----------
    channels : Channels or GangChannels
        Requests, capacities, ports, rules.
    means : array_like of float, shape (E,)
        True mean utilities, >= 0.
    memory_limit : int
        Bytes the dynamic program may take.

    Raises
    ------
    TooLargeError
        If there are too many capacity vectors.

    Examples
    --------
    >>> oracle = TrueMeanOracle(Channels([[1], [2], [1]], [2], [0, 0, 1]), [0.5, 0.8, 0.4])
    >>> oracle.value(np.array([True, True])), oracle.value(np.array([True, False]))
    (0.9, 0.8)
    """

    def __init__(self, channels: Channels, means: ArrayLike, *, memory_limit: Memory = MEMORY_LIMIT) -> None:
        self.channels = channels
        self.means = float_array("means", means, (channels.n_channels,), lowest=0.0).copy()
        self._exact = _ExactSelection(channels, memory_limit=memory_limit)
        self._known: dict[bytes, float] = {}  # value by which ports have a job

    def selection(self, arrivals: ArrayLike) -> NDArray[np.bool_]:
        """Return the best channels for the ports that have a job, shape (E,)."""
        return self._exact.best(self.means, self.channels.present(arrivals))

    def value(self, arrivals: NDArray[np.bool_]) -> float:
        """Return the largest expected utility for the ports that have a job."""
        key = arrivals.tobytes()
        if key not in self._known:
            if len(self._known) >= 2**16:
                self._known.clear()
            self._known[key] = float(self.means[self.selection(arrivals)].sum())
        return self._known[key]


class _IndexPolicy(ChannelPolicy):
    """Use the present channels with the largest sum of indices; subclasses define `_indices`."""

    def __init__(
        self,
        requests: ArrayLike,
        capacities: ArrayLike,
        ports: ArrayLike,
        *,
        n_ports: int | None = None,
        memory_limit: Memory = MEMORY_LIMIT,
    ) -> None:
        super().__init__(Channels(requests, capacities, ports, n_ports=n_ports))
        self._exact = _ExactSelection(self.channels, memory_limit=memory_limit)

    def _select(self, present: NDArray[np.bool_]) -> NDArray[np.bool_]:
        return self._exact.best(self._indices(), present, self.statistics.unseen)

    def _indices(self) -> NDArray[np.float64]:
        raise NotImplementedError


class FollowTheLeader(_IndexPolicy):
    """Use the channels with the best mean so far: the means as indices, no exploration beyond one use of each channel.

    Parameters
    ----------
    requests, capacities, ports, n_ports
        As in `Channels`.
    memory_limit : int
        Bytes the dynamic program may take.

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

    Parameters
    ----------
    requests, capacities, ports, n_ports
        As in `Channels`.
    width : float
        1.5 in the reference; >= 0.
    memory_limit : int
        Bytes the dynamic program may take.

    References
    ----------
    .. [CWY13] Chen, Wang, Yuan: Combinatorial multi-armed bandit, ICML 2013, Algorithm 1.

    Examples
    --------
    >>> policy = Cucb([[1], [1]], [1], [0, 0])
    >>> policy.allocate([True])  # nothing is known
    array([False,  True])
    >>> policy.update([False, True], [0.0, 0.9])
    >>> policy.allocate([True])  # the one not yet tried
    array([ True, False])
    """

    name = "cucb"

    @legal
    def __init__(
        self,
        requests: ArrayLike,
        capacities: ArrayLike,
        ports: ArrayLike,
        *,
        width: Amount = 1.5,
        n_ports: int | None = None,
        memory_limit: Memory = MEMORY_LIMIT,
    ) -> None:
        super().__init__(requests, capacities, ports, n_ports=n_ports, memory_limit=memory_limit)
        self.width = width

    def _indices(self) -> NDArray[np.float64]:
        seen = self.statistics
        bonus = np.sqrt(self.width * math.log(seen.slot) / np.maximum(seen.counts, 1))
        return np.minimum(seen.means + bonus, 1.0)


class ThompsonSampling(_IndexPolicy):
    """Thompson sampling: indices drawn from Beta(1 + sum of utilities, 1 + uses - sum of utilities).

    Parameters
    ----------
    requests, capacities, ports, n_ports
        As in `Channels`.
    rng : Generator, int or None
        Source of its draws.
    memory_limit : int
        Bytes the dynamic program may take.

    Notes
    -----
    A utility u in [0, 1] counts as u successes and 1 - u failures. One draw per channel and slot, used
    or not, so that the stream does not depend on the selection. Channels never used are drawn,
    too, and do not come first.

    Examples
    --------
    >>> policy = ThompsonSampling([[1], [1]], [1], [0, 0], rng=1)
    >>> int(policy.allocate([True]).sum())  # one of the two channels, by draws from the posterior
    1
    """

    name = "thompson sampling"

    def __init__(
        self,
        requests: ArrayLike,
        capacities: ArrayLike,
        ports: ArrayLike,
        *,
        n_ports: int | None = None,
        memory_limit: Memory = MEMORY_LIMIT,
        rng: np.random.Generator | int | None = None,
    ) -> None:
        super().__init__(requests, capacities, ports, n_ports=n_ports, memory_limit=memory_limit)
        self._rng = generator_of(rng)

    def _select(self, present: NDArray[np.bool_]) -> NDArray[np.bool_]:
        return self._exact.best(self._indices(), present)

    def _indices(self) -> NDArray[np.float64]:
        seen = self.statistics
        return self._rng.beta(1.0 + seen.totals, 1.0 + (seen.counts - seen.totals))
