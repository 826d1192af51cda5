"""Instances of clusters with channels as in the evaluation of the ESDP paper (Section 4, Table 3).

The paper has computation utilities N(mu, mu / 2) with mu ~ U(0.1, 1) and supply costs f_k ~ N(0.5, 0.1). Taken
literally, three costs of 0.5 exceed every utility. Utilities have to lie in [0, 1] "by carefully tuning the parameters"
of f_k: here costs are scaled to 0.1 on average, the smallest mean utility, net utilities are divided by ``unit``, and
what is left outside is cut off (means are those after cutting off).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from marketsched.mechanisms.allocation.arrivals import BernoulliArrivals
from marketsched.mechanisms.allocation.esdp.baselines import TrueMeanOracle
from marketsched.mechanisms.allocation.esdp.channel_environment import ChannelEnvironment
from marketsched.mechanisms.allocation.esdp.channel_policy import Channels
from marketsched.mechanisms.allocation.esdp.channel_utilities import GaussianUtilities
from marketsched.mechanisms.errors import InvalidParameterError
from marketsched.mechanisms.legal import Count, Positive, PositiveShare, Share, Whole, legal
from marketsched.mechanisms.memory import check_memory
from marketsched.mechanisms.randomness import Rng, generator_of

AVERAGE_COST = 0.1
"""Average supply cost of a channel after scaling: the smallest mean computation utility."""

_COST, _COST_DEVIATION = 0.5, 0.1

LEAST_CHANNELS = 1e-3  # expected of a graph, so that some thousand draws find one with a channel


@dataclass(frozen=True, slots=True)
class _ChannelInstance:
    """A drawn cluster with channels, and how it fluctuates; see `GaussianUtilities` for the last two."""

    channels: Channels  # requests, capacities, ports
    servers: NDArray[np.int64]  # (E,), server of each channel, from 0
    means: NDArray[np.float64]  # (E,), of the computation utility Z
    deviations: NDArray[np.float64]
    costs: NDArray[np.float64]  # (E,), sum over resource types of the supply costs, as drawn, before scaling
    probability: float  # of a job at a port in a slot
    cost_scale: float  # see `GaussianUtilities`
    unit: float

    def utilities(self, rng: Rng) -> GaussianUtilities:
        """Return the utilities of its channels, at their first slot."""
        return GaussianUtilities(
            self.means, self.deviations, self.costs, rng, cost_scale=self.cost_scale, unit=self.unit
        )

    def environment(self, rng: Rng) -> ChannelEnvironment:
        """Return the instance as an environment with arrivals and utilities of its own."""
        rng = generator_of(rng)
        arrivals_rng, utilities_rng = rng.spawn(2)
        utilities = self.utilities(utilities_rng)
        arrivals = BernoulliArrivals(self.probability, arrivals_rng, self.channels.n_ports)
        return ChannelEnvironment(self.channels, arrivals, utilities, TrueMeanOracle(self.channels, utilities.means))


@legal
def published_channels(
    rng: Rng,
    *,
    n_ports: Count = 8,
    n_servers: Count = 40,
    n_types: Count = 3,
    edge_probability: PositiveShare = 0.1,
    capacity: int | tuple[int, int] = 2,
    requests: tuple[int, int] = (1, 2),
    probability: Share = 0.9,
    unit: Positive = 1.0,
) -> _ChannelInstance:
    """Draw an instance with the parameters of the paper's Table 3.

    Parameters
    ----------
    rng : int, Generator or None
    n_ports, n_servers, n_types : int
        L, R, K.
    edge_probability : float
        Of a channel between a port and a server. Graphs without any channel are drawn again.
    capacity : int or tuple of two int
        Of every resource type, cluster-wide, >= 1; or lowest and highest, uniform for each type ("between 1 and 2").
    requests : tuple of two int
        Lowest and highest request of a channel, uniform; of a type that has less, at most what it has.
    probability : float
        Of a job at a port in a slot.
    unit : float
        What net utilities are divided by. With 1 the best channels are often cut off at 1; 2 is mean
        plus two deviations of the best channel there can be, and leaves half the differences.

    Examples
    --------
    >>> instance = published_channels(1, n_ports=3, n_servers=5)
    >>> instance.channels.n_ports, instance.channels.n_types
    (3, 3)
    """
    rng = generator_of(rng)
    if len(requests) != 2:
        raise InvalidParameterError(f"requests = {requests!r}: expected lowest and highest")
    least_there, most_there = (capacity, capacity) if isinstance(capacity, int) else capacity
    most_there = Whole(Whole(1).check("capacity", least_there)).check("capacity", most_there)
    lowest = Whole(0, least_there).check("requests[0]", requests[0])
    highest = Whole(lowest, most_there).check("requests[1]", requests[1])
    least = LEAST_CHANNELS / (n_ports * n_servers)
    if edge_probability < least:  # drawn again until there is a channel, which would take for ever
        raise InvalidParameterError(
            place="edge_probability", value=edge_probability, legal=f"a finite number in [{least:g}, 1]"
        )
    at_once = (
        10.0 * n_ports * n_servers + edge_probability * n_ports * n_servers * (16.0 * n_types + 120.0) + 64.0 * n_ports
    )
    check_memory(f"{n_ports} ports x {n_servers} servers x {n_types} types", at_once, "fewer ports, servers or types")
    edges = np.zeros((n_ports, n_servers), dtype=np.bool_)
    while not edges.any():
        edges = rng.random((n_ports, n_servers)) < edge_probability
    ports, servers = np.nonzero(edges)
    there = np.full(n_types, most_there)
    if least_there < most_there:
        there = rng.spawn(1)[0].integers(least_there, most_there, n_types, endpoint=True)
    asked = rng.integers(lowest, np.minimum(highest, there) + 1, (len(ports), n_types))
    means = rng.uniform(0.1, 1.0, len(ports))
    costs = np.maximum(rng.normal(_COST, _COST_DEVIATION, (len(ports), n_types)), 0.0).sum(axis=1)
    return _ChannelInstance(
        Channels(asked, there, ports, n_ports=n_ports),
        servers.astype(np.int64),
        means,
        means / 2.0,
        costs,
        probability,
        AVERAGE_COST / (_COST * n_types),
        unit,
    )
