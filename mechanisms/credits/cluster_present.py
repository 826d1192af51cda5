"""A job that has come to a cluster of credits, and what became of it."""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from marketsched.mechanisms.auctions.waiting_job import WaitingJob
from marketsched.mechanisms.credits.pools import PoolPurses
from marketsched.mechanisms.credits.purses import CREDIT
from marketsched.mechanisms.mechanism import JobId
from marketsched.mechanisms.offers.usual_work import band_on_nodes
from marketsched.mechanisms.resources.cluster import Cluster
from marketsched.mechanisms.resources.known import Known
from marketsched.mechanisms.schedulers.node_jobs import NodeJob, facts_of


@dataclass(slots=True)
class PoolUpgrade:
    """A job that becomes regular in a pool, and what came of it; fields as of `Upgrade` of identical nodes."""

    job: JobId
    owner: Hashable
    pool: str
    round: int
    cost: float
    purse: float
    threshold: float
    bound: float
    started: int = 0
    left: int = 0
    unpaid: int = 0


@dataclass(slots=True, eq=False, kw_only=True)
class Present(NodeJob):
    """A job that has come and not left; others also see its class."""

    costs: NDArray[np.int64]  # millionths of a node of its pool a round, by option
    prices: list[tuple[int, int]]  # the pool of each option, and that cost
    rounds: list[float]  # announced, of each option
    band: int
    late: int  # the round from which on it counts as late
    since: int = 0  # the round since which it is regular; 0: it is free
    pool: int = 0  # in which it became regular
    paid: int = 0  # millionths of a credit
    upgrade: PoolUpgrade | None = None  # while it waits for a regular start

    def pays(self, pools: PoolPurses, row: int) -> bool:
        """Let its owner pay for a round of an option; tell whether it could."""
        charged = pools.pay(self.owner, *self.prices[row])
        self.paid += charged
        return charged > 0

    def row_in(self, pool: int) -> int:
        """Return the first option in a pool that it accepts."""
        return int(np.flatnonzero(self.options.pool == pool)[0])


def present_of(
    x: WaitingJob, owner: int, known: Known, cluster: Cluster, pools: PoolPurses, margin: float, slack: float
) -> Present:
    """Return a job at its arrival, late ``slack`` rounds before the margin; without options if it can run nowhere."""
    facts, costs, band = facts_of(x, owner, known, cluster), pools.costs(known.options), 0
    if costs.size:
        row = facts["least"]
        device = bool(known.options.demand[row][cluster.layout.device_parts > 0].any())
        band = band_on_nodes(float(costs[row]) / CREDIT, device=device)
    late = x.due - math.floor(facts["mean"] * (1.0 + margin) + slack)
    prices = list(zip(known.options.pool.tolist(), costs.tolist(), strict=True))
    return Present(**facts, costs=costs, prices=prices, rounds=facts["means"].tolist(), band=band, late=late)
