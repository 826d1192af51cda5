"""Markets on a cluster: what is added to the sizes of a market, and how nodes are told."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from marketsched.mechanisms.auctions.arrival_market import ArrivalMarket
from marketsched.mechanisms.legal import Count, Positive, legal
from marketsched.mechanisms.resources.cluster import Cluster
from marketsched.mechanisms.signals import Signals


class ClusterMarket(ArrivalMarket):
    """A market that may be one of a cluster.

    Parameters
    ----------
    capacity, horizon, max_concurrency, max_duration, max_value, max_delay
        The sizes of the market, as `MarketLimits`; on a cluster ``max_concurrency`` is the most tasks of a shape.
    cluster : Cluster, optional
        The nodes; None: ``capacity`` identical ones, and jobs without shapes.
    signals : {"durations", "labels"}
        What a whole number means that is seen of a statement without shapes.
    """

    cluster: Cluster

    @legal
    def __init__(
        self,
        capacity: Count,
        horizon: Count,
        *,
        max_concurrency: Count,
        max_duration: Count,
        max_value: Positive,
        max_delay: Count,
        cluster: Cluster | None = None,
        signals: Signals = "durations",
    ) -> None:
        sizes: dict[str, Any] = {"max_duration": max_duration, "max_value": max_value, "max_delay": max_delay}
        super().__init__(capacity, horizon, max_concurrency=min(max_concurrency, capacity), **sizes)
        self.limits = replace(self.limits, max_concurrency=max_concurrency, cluster=cluster)
        self.cluster, self._signals = Cluster.of_nodes(capacity) if cluster is None else cluster, signals
