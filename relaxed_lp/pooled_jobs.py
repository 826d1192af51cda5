"""Realised jobs with shapes as the flat arrays of the dual bound with pools."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated

import numpy as np

from marketsched.mechanisms.legal import Count, Whole, legal
from marketsched.mechanisms.limits import LAST_ROUND, last_useful_completion
from marketsched.mechanisms.resources.cluster import Cluster
from marketsched.mechanisms.resources.shapes import Options, Shape, case_of, options_of
from marketsched.mechanisms.sow import StatementOfWork
from marketsched.relaxed_lp.pooled_duality import PooledJobs


@legal
def pooled_jobs(
    jobs: Iterable[tuple[StatementOfWork, int | None, int]],
    cluster: Cluster,
    *,
    horizon: Annotated[int, Whole(1, LAST_ROUND)],
    max_delay: Count,
) -> PooledJobs:
    """Collect true statements of work with shapes, and their outcomes.

    Parameters
    ----------
    jobs : iterable of (StatementOfWork, arrival, duration)
        The arrival is a round, or None if the job never arrives, which leaves it out. The duration, in rounds, is that
        of the first shape on its first kind, and identifies the case of the law that happened.
    cluster : Cluster
        Options that fit no node of a pool are left out.
    horizon, max_delay : int
        T and S, rounds, as of `marketsched.mechanisms.realised.RealisedJobs`.

    Returns
    -------
    PooledJobs
        Demands in parts of each resource, as in ``cluster.layout.pool_size``.

    Raises
    ------
    InvalidReportError
        If a shape names a resource or kind that the cluster does not have, or fits on no node.

    Examples
    --------
    >>> from marketsched.mechanisms.resources.cluster import NodeGroup, Resource
    >>> from marketsched.mechanisms.values import DeadlineValue
    >>> from marketsched.relaxed_lp.pooled_duality import pooled_bound
    >>> groups = [NodeGroup("a", "a100", 1, {"gpu": 4}), NodeGroup("v", "v100", 2, {"gpu": 2})]
    >>> cluster = Cluster((Resource("gpu"),), groups)
    >>> shape = Shape({"gpu": 2}, {"a100": 1, "v100": 2})
    >>> sow = StatementOfWork.of_shapes(1, DeadlineValue(3.0, 3), 1, [shape])
    >>> jobs = pooled_jobs([(sow, 1, 1)] * 9, cluster, horizon=2, max_delay=9)  # four on a100, two on v100
    >>> round(pooled_bound(jobs, cluster.layout.pool_size, 2).value, 2)
    18.0
    """
    known: dict[tuple[Shape, ...], Options] = {}  # many jobs ask for the same
    arrivals, values, found, durations = [], [], [], []
    for sow, arrival, duration in jobs:
        if arrival is None:
            continue
        if sow.shapes not in known:
            known[sow.shapes] = options_of(sow.shapes, cluster)
        options = known[sow.shapes]
        arrivals.append(arrival)
        found.append(options)
        durations.append(options.durations[:, case_of(sow.shapes, duration)])
        values.append(sow.value.table(arrival + 1, max(0, last_useful_completion(sow, max_delay, horizon) - arrival)))
    n_resources = len(cluster.resources)
    return PooledJobs(
        np.array(arrivals, dtype=np.int64),
        np.cumsum([0, *(table.size for table in values)]),
        np.concatenate([np.zeros(0), *values]),
        np.cumsum([0, *(options.pool.size for options in found)]),
        np.concatenate([np.zeros(0, dtype=np.int64), *(options.pool for options in found)]),
        np.concatenate([np.zeros(0, dtype=np.int64), *durations]),
        np.concatenate([np.zeros(0), *(options.worth for options in found)]),
        np.concatenate([np.zeros((0, n_resources)), *(options.total for options in found)]),
    )
