"""A market of identical nodes is a cluster of one pool and one resource: the same decisions and payments."""

import numpy as np
import pytest

from bid_price_markets import RULES, SIZES, past_log, play, random_market
from draws import many
from marketsched.mechanisms.bid_price.bid_price import BidPrice
from marketsched.mechanisms.resources.bid_price import ClusterBidPrice
from marketsched.mechanisms.resources.calendars import Calendars, Placed, Wanted
from marketsched.mechanisms.resources.cluster import Cluster, NodeGroup, Resource
from marketsched.mechanisms.resources.shapes import Shape
from marketsched.mechanisms.sow import StatementOfWork


def decisions(played):
    starts, payments, events = played
    return starts, payments, [(e.round, e.kind, e.job, e.completion, e.payment) for e in events]


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("kind", ["history", "log", "laws"])
def test_equal_decisions_and_payments_on_identical_nodes(kind):
    n_started = n_paid = 0
    for seed in range(many(40)):
        rng = np.random.default_rng(seed)
        capacity, jobs = int(rng.integers(3, 6)), random_market(rng)
        log = past_log(rng, capacity) if kind == "log" else None
        rules = {**RULES, "lags": (3, 4, 5, 6), "history": log, "slack_gain": 0.02, "slack_ramp": 4}
        if kind == "laws":
            rules |= {"lags": None, "forecast": "laws", "laws": [job.truth for job in jobs], "rng": 7}
        plain = BidPrice(capacity, 24, **SIZES, **rules)
        general = ClusterBidPrice(capacity, 24, **SIZES, **rules, tail=False)
        first, second = decisions(play(plain, jobs)), decisions(play(general, jobs))
        assert first == second, seed
        assert plain.statistics() == general.statistics()
        n_started += len(first[0])
        n_paid += sum(payment > 0 for payment in first[1].values())
    assert n_started > 100 and n_paid > 20  # there was something to be decided


def shaped(job):
    """Return the same job with its duration for certain, and a shape in place of its width."""
    sow = job.truth
    shape = Shape({"slot": 1}, {"any": job.duration}, tasks=sow.concurrency)
    return job._replace(truth=StatementOfWork.of_shapes(sow.birth, sow.value, job.arrival, [shape]))


def certain(job):
    """Return the same job with its duration for certain."""
    sow = job.truth
    rows = [(job.arrival, job.duration, 1.0)]
    return job._replace(truth=StatementOfWork(sow.birth, sow.concurrency, sow.value, rows))


@pytest.mark.compiled
def test_shapes_decide_as_widths_do():
    """On one node of four slots shapes of so many tasks decide as widths on four nodes do."""
    cluster = Cluster((Resource("slot"),), (NodeGroup("x", "any", 1, {"slot": 4}),))
    for seed in range(many(20)):
        jobs = random_market(np.random.default_rng(seed))
        rules = dict(RULES, lags=(3, 4, 5, 6), tail=True)
        on_nodes = play(ClusterBidPrice(4, 24, **SIZES, **rules), [certain(job) for job in jobs])
        on_cluster = play(ClusterBidPrice(1, 24, **SIZES, **rules, cluster=cluster), [shaped(job) for job in jobs])
        assert decisions(on_nodes) == decisions(on_cluster)


def test_nodes_that_are_named_ahead_are_less_than_a_count_of_nodes():
    """Two nodes, one taken in round 1, the other booked for round 2: a count says that one is free, and none is."""
    cluster = Cluster((Resource("slot"),), (NodeGroup("x", "any", 2, {"slot": 1}),))
    ask = Wanted(0, 1, 1, np.array([1]))
    first, second = (Placed(np.array([x]), np.array([1]), np.zeros(0, int), np.zeros(0, int)) for x in range(2))
    calendars = Calendars(cluster, 4)
    calendars.book(ask, first, 1, 1)
    calendars.book(ask, second, 2, 1)
    assert (calendars.pool_free(1, 2) == 1).all() and not calendars.fits(ask, 1, 2)
