"""Benchmarks of a market on a cluster: the dual bound with pools, and first come at price 0.

The bound knows the future and sums up the nodes of each pool; it leaves out that a task has to fit on one node.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from marketsched.agents.market_log import RowKind
from marketsched.agents.market_run import MarketRun
from marketsched.agents.setup import MarketSetup
from marketsched.mechanisms.mechanism import Mechanism
from marketsched.mechanisms.registry import get_mechanism
from marketsched.mechanisms.resources.cluster import Cluster
from marketsched.mechanisms.resources.shapes import case_of, options_of
from marketsched.relaxed_lp.pooled_duality import pooled_bound
from marketsched.relaxed_lp.pooled_jobs import pooled_jobs

BOUND_STEPS = 600  # within .01 % of four times as many on 6,000 jobs of openb


def cluster_bound(setup: MarketSetup, cluster: Cluster) -> float:
    """Return the dual bound (29) with pools, credits: no schedule in hindsight is worth more."""
    rows = ((job.truth, job.arrival, job.duration) for job in setup.jobs)
    jobs = pooled_jobs(rows, cluster, horizon=setup.horizon, max_delay=setup.max_delay)
    return pooled_bound(jobs, cluster.layout.pool_size, setup.horizon, steps=BOUND_STEPS).value


def first_come_at_zero(setup: MarketSetup, cluster: Cluster) -> dict[str, float]:
    """Return what first come, first served at price 0 earns on these jobs, owners reporting truly.

    ``welfare_at_zero`` is in credits, ``completed_at_zero`` counts jobs.
    """
    asked = setup.mechanism
    market = get_mechanism(
        "cluster-first-come",
        capacity=cluster.nodes,
        horizon=setup.horizon,
        cluster=cluster,
        max_concurrency=asked.max_concurrency or max(job.truth.concurrency for job in setup.jobs),
        max_duration=asked.max_duration or setup.horizon,
        max_value=asked.max_value or max(job.truth.value.highest for job in setup.jobs),
        max_delay=setup.max_delay,
    )
    return welfare_of(market, setup)


def welfare_of(market: Mechanism, setup: MarketSetup) -> dict[str, float]:
    """Play truthful owners to the end of a market; return ``welfare_at_zero`` and ``completed_at_zero``."""
    played = MarketRun(MarketSetup(setup.name, setup.table, market, setup.capacity, setup.horizon, setup.max_delay))
    played.play()
    events = played.log.events.first(played.log.finished[1])
    welfare = sum(events["value"].tolist())  # in order of completion
    return {"welfare_at_zero": welfare, "completed_at_zero": int((events["kind"] == RowKind.COMPLETE).sum())}


def cluster_bounds(setup: MarketSetup, cluster: Cluster) -> dict[str, Any]:
    """Return ``bounds`` and ``first_come`` of a market on a cluster, as `bounds_of` of identical nodes."""
    return {"bounds": {"dual": cluster_bound(setup, cluster)}, "first_come": first_come_at_zero(setup, cluster)}


def resource_load(setup: MarketSetup, cluster: Cluster) -> float:
    """Return the jobs' requests for the scarcest resource, as a share of its supply until the last birth.

    A job counts with its first shape, on the first pool that can hold it, for the rounds that it really needs there.
    """
    asked = np.zeros(len(cluster.resources))
    for job in setup.jobs:
        if job.arrival is not None:
            options, case = options_of(job.truth.shapes, cluster), case_of(job.truth.shapes, job.duration)
            first = int(np.flatnonzero(options.shape == options.shape.min())[0])
            asked += options.total[first] * int(options.durations[first, case])
    there = cluster.layout.pool_size.sum(axis=0) * max((job.truth.birth for job in setup.jobs), default=1)
    return float((asked[there > 0] / there[there > 0]).max(initial=0.0))


def resources_in_use(pools: pd.DataFrame, last: int) -> dict[str, float]:
    """Return the share in use of each resource, over all pools and rounds 1 to ``last``; see `MarketRun.pools`."""
    rows = pools[pools["round"] <= last]
    sums = rows.groupby("resource", sort=False)[["used", "size"]].sum()
    there = sums[sums["size"] > 0]
    return {str(name): float(share) for name, share in (there["used"] / there["size"]).items()}
