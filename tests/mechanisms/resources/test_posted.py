"""First come at posted prices on a cluster, and prices exponential in what is booked."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster_markets import entries
from marketsched.agents.job import Job
from marketsched.agents.loop import MarketLoop
from marketsched.agents.playing import TruthfulOwners, play
from marketsched.mechanisms import DeadlineValue, EventKind, InvalidParameterError, StatementOfWork
from marketsched.mechanisms.resources.cluster import Cluster, NodeGroup, Resource
from marketsched.mechanisms.resources.known import known_at_arrival
from marketsched.mechanisms.resources.menus import quoted
from marketsched.mechanisms.resources.posted import ClusterExponential, ClusterFirstCome
from marketsched.mechanisms.resources.shapes import Shape

RESOURCES = (Resource("cpu", parts=10), Resource("gpu", parts=1000, device=True))
GROUPS = (NodeGroup("f", "fast", 1, {"cpu": 8, "gpu": 2}), NodeGroup("s", "slow", 2, {"cpu": 4, "gpu": 1}))
SIZES = {"max_concurrency": 4, "max_duration": 20, "max_value": 1e3, "max_delay": 50}


def market(kind=ClusterFirstCome, **rules):
    cluster = Cluster(RESOURCES, GROUPS)
    return kind(cluster.nodes, 60, cluster=cluster, **SIZES, **rules)


def jobs_of(*rows):
    """Jobs (value, deadline, shapes), all born in round 1."""
    found = []
    for i, (value, deadline, shapes) in enumerate(rows):
        truth = StatementOfWork.of_shapes(1, DeadlineValue(value, deadline), 1, shapes)
        d = int(truth.requirements[0].duration)
        found.append(Job(f"j{i}", f"owner{i}", truth, 1, d, d))
    return found


def completed(mechanism, jobs):
    """Completion and payment by name."""
    events = play(MarketLoop(mechanism), TruthfulOwners(jobs), 60)
    return {e.job: (e.completion, e.payment) for e in events if e.kind is EventKind.COMPLETE}


ANY = [Shape({"gpu": 1, "cpu": 1}, {"fast": 2, "slow": 3})]


def test_at_price_nothing_the_earliest_of_the_equally_good_is_taken():
    found = completed(market(), jobs_of(*[(5.0, 9, ANY)] * 5))
    assert found == {"j0": (3, 0), "j1": (3, 0), "j2": (4, 0), "j3": (4, 0), "j4": (5, 0)}


def test_posted_prices_are_paid_by_unit_and_steer_to_the_cheap_kind():
    prices = {"cpu": 0.1, "fast": {"gpu": 2.0}, "slow": {"gpu": 1.0}}
    found = completed(market(prices=prices), jobs_of(*[(5.0, 9, ANY)] * 3))
    # fast: 2 rounds at 2 + .1; slow: 3 rounds at 1 + .1
    assert found["j0"] == (4, pytest.approx(3.3)) and found["j1"] == (4, pytest.approx(3.3))
    assert found["j2"] == (7, pytest.approx(3.3))  # later, on the same
    assert completed(market(prices={"gpu": 9.0}), jobs_of((5.0, 9, ANY))) == {}


@given(st.floats(1e-3, 1.0), st.floats(1e-3, 1.0), st.integers(1, 20))
def test_of_starts_at_the_same_price_the_first_is_taken(cpu, gpu, duration):
    mechanism = market(prices={"cpu": cpu, "gpu": gpu})
    curve = DeadlineValue(100.0, 50)
    sow = StatementOfWork.of_shapes(1, curve, 1, [Shape({"gpu": 1, "cpu": 3}, {"fast": duration})])
    known = known_at_arrival(sow, mechanism.cluster, 1, duration, mechanism.limits)
    found = entries(known, mechanism._prices.prefix, 60, 0.0)
    assert found.start.size > 20 and np.array_equal(found.start, np.arange(found.start.size))
    costs = quoted(mechanism._prices.prefix, 0, known.options.total[0], 0, duration)
    assert costs[-1] == pytest.approx(duration * (3 * cpu + gpu), rel=1e-9)


def test_exponential_prices_grow_with_what_is_booked():
    mechanism = market(ClusterExponential, floor=1.0, ceiling=81.0)
    rows = [(100.0, 3, [Shape({"gpu": 1}, {"fast": 2})])] * 3
    found = completed(mechanism, jobs_of(*rows))
    whole = 4.0  # GPUs of the cluster: prices are per share of it
    assert found["j0"][1] == pytest.approx(2 * 1.0 / whole)  # nothing is booked
    assert found["j1"][1] == pytest.approx(2 * 9.0 / whole)  # half is
    assert set(found) == {"j0", "j1"}


@pytest.mark.parametrize(
    ("prices", "place"),
    [
        ({"disk": 1.0}, "prices.disk"),
        ({"fast": 1.0}, "prices.fast"),
        ({"fast": {"disk": 1.0}}, "prices.fast.disk"),
    ],
)
def test_bad_prices_are_named(prices, place):
    with pytest.raises(InvalidParameterError, match=place):
        market(prices=prices)


def test_a_floor_above_the_ceiling_is_refused():
    with pytest.raises(InvalidParameterError, match="at most the ceiling"):
        market(ClusterExponential, floor=2.0, ceiling=1.0)
