r"""Menus at arrival on a cluster at prices that need no forecast: posted ones, or a function of what is booked.

Both are mechanisms of `marketsched.mechanisms.resources.bid_price` with other prices, so truth is best for every job
(on average over its own duration, where that is hidden), and for the same reason: prices and calendars stand before the
report is opened, entries are tested exactly, and prices are linear.

* `ClusterFirstCome`: a price for each resource, perhaps for each pool, the same in every round; 0 by default. At 0 each
  job gets the booking that is worth most to it of all that fit: the rule of OAR for moldable jobs, about.
* `ClusterExponential`: :math:`p_{g,k,t} = L (U/L)^{y} / R_k` with y the share of pool g's resource k that is booked in
  round t and R_k what the whole cluster has of k, after Zhou, Li, Wu and Huang (IEEE/ACM ToN 2017) and Bao, Peng, Wu
  and Li (OASiS, INFOCOM 2018). L and U are the least and the largest value per round and share of the cluster. For
  small demands the welfare is within a factor logarithmic in U / L of the best.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from marketsched.mechanisms.auctions.waiting_job import WaitingJob
from marketsched.mechanisms.bid_price.curve import Slack
from marketsched.mechanisms.errors import InvalidParameterError
from marketsched.mechanisms.legal import Positive, Range, is_number, legal
from marketsched.mechanisms.mechanism import Standing, Truthful
from marketsched.mechanisms.resources.bid_price import ClusterBidPrice
from marketsched.mechanisms.resources.calendars import Calendars
from marketsched.mechanisms.resources.cluster import Cluster
from marketsched.mechanisms.resources.known import Known


class _Prices(Range[Any]):
    """Credits per unit and round by resource, or such tables by pool."""

    def __call__(self, x: object) -> dict[str, Any]:
        if x is None:
            return {}
        if not isinstance(x, Mapping):
            raise ValueError("prices by resource, or by pool and resource")
        found = {str(name): self(each) if isinstance(each, Mapping) else each for name, each in x.items()}
        if not all(isinstance(each, dict) or (is_number(each) and 0 <= each < 1e100) for each in found.values()):
            raise ValueError("prices that are finite numbers >= 0")
        return found


class _Posted:
    """Prices that learn from nothing, with the members of `ClusterPrices` that a market asks for."""

    def __init__(self, prices: NDArray[np.float64], rounds: int) -> None:
        self.slack, self.first = Slack(0.0, 0.0, 0), 1
        self.post(np.repeat(prices[:, :, None], rounds, axis=2))

    def post(self, prices: NDArray[np.float64]) -> None:
        """Set the prices of this round and those ahead, credits per part, shape (n_pools, n_resources, n)."""
        self.prices = prices
        self.prefix = np.zeros((*prices.shape[:2], prices.shape[2] + 1))
        np.cumsum(_that_add_up(prices), axis=2, out=self.prefix[:, :, 1:])

    def announce(self, now: int, calendars: Calendars) -> None:
        """Say from which round on they hold."""
        self.first = now

    def learn(self, arrival: int, known: Known) -> None:
        """Nothing."""

    def idle_worth(self, now: int, calendars: Calendars) -> float:
        """Return 0: it is asked for by a rule that moves no slack here."""
        return 0.0


class ClusterFirstCome(ClusterBidPrice):
    """First come, first served on a cluster, at posted prices.

    Parameters
    ----------
    capacity, horizon, max_concurrency, max_duration, max_value, max_delay, cluster, placement, phi, signals
        As of `ClusterBidPrice`.
    prices : mapping, optional
        Credits per unit and round by resource, or such mappings by pool; 0 where missing.

    Raises
    ------
    InvalidParameterError
        If a resource or pool is unknown.
    """

    standing: ClassVar[Standing] = Standing("proved", "no job is moved or evicted for another", "prices, 0 by default")
    certified_as: ClassVar[str] = ClusterBidPrice.certified_as

    @legal
    def __init__(
        self,
        *sizes: Any,
        prices: Annotated[Any, _Prices()] = None,
        **menus: Any,
    ) -> None:
        super().__init__(*sizes, ahead=1, steps=1, **menus)
        posted = _price_vector(prices or {}, self.cluster)
        self._prices = _Posted(posted, self._reach)  # type: ignore[assignment]  # stands in for learnt prices


class ClusterExponential(ClusterFirstCome):
    """Menus at arrival at prices that grow exponentially with the bookings (see the module).

    Parameters
    ----------
    capacity, horizon, max_concurrency, max_duration, max_value, max_delay, cluster, placement, phi, signals
        As of `ClusterBidPrice`.
    floor, ceiling : float
        L and U, credits per round and share of the whole cluster.

    Raises
    ------
    InvalidParameterError
        If the floor is above the ceiling.
    """

    truthful: ClassVar[Truthful] = "ex post"
    truthful_hidden: ClassVar[Truthful] = "in expectation"
    standing: ClassVar[Standing] = Standing(
        "proved",
        "no job is moved or evicted for another",
        "the range of values per round and share of the cluster",
    )
    certified_as: ClassVar[str] = ClusterBidPrice.certified_as

    @legal
    def __init__(
        self,
        *sizes: Any,
        floor: Positive = 0.1,
        ceiling: Positive = 10_000.0,
        **menus: Any,
    ) -> None:
        super().__init__(*sizes, **menus)
        if floor > ceiling:
            raise InvalidParameterError(place="floor", value=floor, legal=f"at most the ceiling {ceiling!r}")
        self._floor, self._growth = float(floor), float(np.log(ceiling / floor))

    def _serve_one(self, x: WaitingJob, known: Known) -> float:
        """Make prices of what is booked by now, then serve."""
        size = self.cluster.layout.pool_size[:, :, None].astype(np.float64)
        free = self._calendars.pool_free(self.round, self._reach)
        booked = 1.0 - free / np.where(size > 0, size, 1.0)
        total = np.maximum(size.sum(axis=0, keepdims=True), 1.0)
        self._prices.post(self._floor * np.exp(self._growth * booked) / total)  # type: ignore[attr-defined]
        return super()._serve_one(x, known)


def _that_add_up(prices: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return prices rounded so that their sums over rounds are exact, and windows of equal prices cost the same.

    Else rounded sums could make a later start cheaper than the first of the same price. The rounding is to a share of
    2^-53 times the number of rounds of the highest price of the pool and resource.
    """
    highest = prices.max(axis=2, initial=0.0, keepdims=True)
    _, exponent = np.frexp(highest * prices.shape[2])
    grain = np.ldexp(1.0, exponent - 53)
    rounded: NDArray[np.float64] = np.rint(prices / grain) * grain
    return rounded


def _price_vector(prices: Mapping[str, Any], cluster: Cluster) -> NDArray[np.float64]:
    """Return credits per part and round, shape (n_pools, n_resources)."""
    resources = {resource.name: resource for resource in cluster.resources}
    found = np.zeros((len(cluster.pool_names), len(resources)))
    for name, given in prices.items():
        pools = (
            range(found.shape[0]) if name in resources else [g for g, p in enumerate(cluster.pool_names) if p == name]
        )
        table = {name: given} if name in resources else given
        if not pools or not isinstance(table, Mapping):
            legal = f"resources {', '.join(resources)} or pools {', '.join(cluster.pool_names)}"
            raise InvalidParameterError(place=f"prices.{name}", value=given, legal=legal)
        for k, resource in enumerate(cluster.resources):
            if resource.name in table:
                for g in pools:
                    found[g, k] = table[resource.name] / resource.parts
        for unknown in set(table) - set(resources):
            legal = f"resources {', '.join(resources)}"
            raise InvalidParameterError(place=f"prices.{name}.{unknown}", value=table[unknown], legal=legal)
    return found
