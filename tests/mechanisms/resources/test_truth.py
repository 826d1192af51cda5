"""Truth by brute force on tiny clusters: no report gains, none moves its own menu by a bit; faulty rules are caught."""

import numpy as np
import pytest

from cluster_markets import (
    HORIZON,
    RESOURCES,
    RULES,
    SIZES,
    ChargesFragments,
    HearsTheRound,
    PlacesFirst,
    lies,
    played,
    tiny_market,
)
from marketsched.agents.job import Job
from marketsched.mechanisms import DeadlineValue, StatementOfWork
from marketsched.mechanisms.resources.bid_price import ClusterBidPrice
from marketsched.mechanisms.resources.calendars import Placed, Wanted
from marketsched.mechanisms.resources.cluster import Cluster, NodeGroup
from marketsched.mechanisms.resources.shapes import Shape

pytestmark = pytest.mark.compiled  # thousands of markets: too long for plain kernels

SETTINGS = {
    "fgd": {"placement": "fgd"},
    "best, tail": {"placement": "best", "tail": True},
    "worst": {"placement": "worst", "slack_gain": 0.01},
    "first": {"placement": "first", "phi": 0.5},
    "laws": {"forecast": "laws", "lags": None, "scenarios": 2, "rng": 3},
}


def market(cluster, jobs, kind=ClusterBidPrice, **rules):
    given = {**RULES, **rules}
    if given.get("forecast") == "laws":
        given["laws"] = [job.truth for job in jobs]
    return kind(cluster.nodes, HORIZON, **SIZES, cluster=cluster, **given)


def search(seed, most, kind=ClusterBidPrice, **rules):
    """Return how many reports were tried, how many changed the booking, the largest gain, and how many moved menus."""
    cluster, jobs = tiny_market(seed)
    rng = np.random.default_rng([seed, 1])
    tried = other = moved = 0
    gain = -np.inf
    for job in jobs:
        truth = played(market(cluster, jobs, kind, **rules), jobs, job.name)
        found = list(lies(job, cluster, rng))
        for report in [found[i] for i in rng.permutation(len(found))[:most]]:
            lie = played(market(cluster, jobs, kind, **rules), jobs, job.name, report)
            tried, other = tried + 1, other + (lie[0] != truth[0])
            gain = max(gain, lie[1] - truth[1])
            if kind in (ClusterBidPrice, HearsTheRound):  # the others keep none
                moved += truth[2].menu_at_arrival(job.name) != lie[2].menu_at_arrival(job.name)
    return tried, other, gain, moved


@pytest.mark.slow
@pytest.mark.long_after(2)
@pytest.mark.parametrize("name", SETTINGS)
def test_no_report_gains(name):
    tried, other, gain, moved = search(sorted(SETTINGS).index(name), 4, **SETTINGS[name])
    assert tried == 14 * 4 and other > 5
    assert gain <= 1e-9 and moved == 0


@pytest.mark.slow
def test_prices_that_hear_the_round_are_caught():
    for seed in range(12):
        _, _, gain, moved = search(seed, 12, HearsTheRound, lags=(1, 2))
        if gain > 1e-6 and moved:
            return
    pytest.fail("no report was found to gain")


def utility_of(kind, cluster, each, *, busy=()):
    """Return what a job of .7 devices, or else two cores, has if it reports ``each``, for three rounds by round 5."""
    shape = Shape({"cpu": 2, "gpu": 0.7} if "gpu" in each else {"cpu": 2}, {"a": 3})
    truth = StatementOfWork.of_shapes(1, DeadlineValue(10.0, 5), 1, [shape])
    report = StatementOfWork.of_shapes(1, DeadlineValue(10.0, 5), 1, [Shape(each, {"a": 3})])
    mechanism = market(cluster, (), kind)
    for node, start in busy:
        taken = Placed(np.array([node]), np.array([1]), np.zeros(0, int), np.zeros(0, int))
        mechanism._calendars.book(Wanted(0, 1, 1, np.array([4, 0, 0])), taken, start, 6)
    return played(mechanism, [Job("job", "ann", truth, 1, 3, 3)], "job", report)[1]


def test_nodes_chosen_before_the_start_are_caught():
    """The tighter node is free now and taken from the next round on; who asks for more is given the other one."""
    cluster = Cluster(RESOURCES, (NodeGroup("x", "a", 1, {"cpu": 4}), NodeGroup("y", "a", 1, {"cpu": 2})))
    least, more = ({"cpu": 2}, {"cpu": 3})
    assert utility_of(PlacesFirst, cluster, least, busy=[(1, 2)]) == 0
    assert utility_of(PlacesFirst, cluster, more, busy=[(1, 2)]) == 10
    assert utility_of(ClusterBidPrice, cluster, least, busy=[(1, 2)]) == 10


def test_surcharge_for_fragments_is_caught():
    """Whoever needs .7 of a device, and would be charged for the rest, asks for all of it."""
    cluster = Cluster(RESOURCES, (NodeGroup("x", "a", 1, {"cpu": 4, "gpu": 1}),))
    share, whole = ({"cpu": 2, "gpu": 0.7}, {"cpu": 2, "gpu": 1})
    assert utility_of(ChargesFragments, cluster, share) < utility_of(ChargesFragments, cluster, whole)
    assert utility_of(ClusterBidPrice, cluster, share) == utility_of(ClusterBidPrice, cluster, whole) == 10
