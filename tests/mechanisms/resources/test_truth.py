"""Truth by brute force on tiny clusters: no report gains, none moves its own menu by a bit."""

import numpy as np
import pytest

from cluster_markets import (
    HORIZON,
    RULES,
    SIZES,
    lies,
    played,
    tiny_market,
)
from marketsched.mechanisms.resources.bid_price import ClusterBidPrice

pytestmark = pytest.mark.compiled  # thousands of markets: too long for plain kernels

SETTINGS = {
    "fgd": {"placement": "fgd"},
    "best, tail": {"placement": "best", "tail": True},
    "worst": {"placement": "worst", "slack_gain": 0.01},
    "first": {"placement": "first", "phi": 0.5},
    "laws": {"forecast": "laws", "lags": None, "scenarios": 2, "rng": 3},
}


def market(cluster, jobs, **rules):
    given = {**RULES, **rules}
    if given.get("forecast") == "laws":
        given["laws"] = [job.truth for job in jobs]
    return ClusterBidPrice(cluster.nodes, HORIZON, **SIZES, cluster=cluster, **given)


def search(seed, most, **rules):
    """Return how many reports were tried, how many changed the booking, the largest gain, and how many moved menus."""
    cluster, jobs = tiny_market(seed)
    rng = np.random.default_rng([seed, 1])
    tried = other = moved = 0
    gain = -np.inf
    for job in jobs:
        truth = played(market(cluster, jobs, **rules), jobs, job.name)
        found = list(lies(job, cluster, rng))
        for report in [found[i] for i in rng.permutation(len(found))[:most]]:
            lie = played(market(cluster, jobs, **rules), jobs, job.name, report)
            tried, other = tried + 1, other + (lie[0] != truth[0])
            gain = max(gain, lie[1] - truth[1])
            moved += truth[2].menu_at_arrival(job.name) != lie[2].menu_at_arrival(job.name)
    return tried, other, gain, moved


@pytest.mark.slow
@pytest.mark.long_after(2)
@pytest.mark.parametrize("name", SETTINGS)
def test_no_report_gains(name):
    tried, other, gain, moved = search(sorted(SETTINGS).index(name), 4, **SETTINGS[name])
    assert tried == 14 * 4 and other > 5
    assert gain <= 1e-9 and moved == 0
