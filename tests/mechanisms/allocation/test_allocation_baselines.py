"""DRF, Fairness, BinPacking, Spreading: worked examples, a naive reference, feasibility, what they see."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from draws import many
from marketsched.mechanisms import InvalidParameterError
from marketsched.mechanisms.allocation import (
    BinPacking,
    BipartiteCluster,
    Drf,
    Fairness,
    Spreading,
)

KINDS = (
    *((Fairness, {"share_over": word}) for word in ("arrived", "all")),
    *((policy, {"demand": word}) for policy in (Drf, BinPacking, Spreading) for word in ("per-node", "total")),
)


def cluster_of(requirements, capacities, channels=None):
    """Return a cluster whose gains do not matter."""
    channels = np.ones((len(requirements), len(capacities))) if channels is None else channels
    return BipartiteCluster(requirements, capacities, channels, "linear", 1.0, 0.5)


def small_cluster(seed, *, whole):
    """Return a cluster of at most 5 ports, 5 instances and 3 types, with zeros and (if whole) ties, and arrivals."""
    rng = np.random.default_rng([seed, 5])
    n_ports, n_instances, n_types = rng.integers(1, 6), rng.integers(1, 6), rng.integers(1, 4)
    requirements = rng.uniform(0.0, 6.0, (n_ports, n_types)) * (rng.random((n_ports, n_types)) < 0.8)
    capacities = rng.uniform(0.0, 9.0, (n_instances, n_types)) * (rng.random((n_instances, n_types)) < 0.8)
    channels = rng.random((n_ports, n_instances)) < 0.6
    channels[np.arange(n_ports), rng.integers(0, n_instances, n_ports)] = True
    if whole:
        requirements, capacities = requirements.round(), capacities.round()
    return cluster_of(requirements, capacities, channels), rng.integers(0, 3, n_ports)


def dominant_share(cluster, port):
    """Return the share of the paper's Section 4, by its formula."""
    there = cluster.capacities[cluster.channels[port]].sum(axis=0)
    pairs = zip(cluster.requirements[port], there, strict=True)
    return max(0.0 if a == 0 else a / c if c > 0 else math.inf for a, c in pairs)


def in_turn(cluster, arrivals, ports, demand, order):
    """Return what ports take one after the other, instance by instance, scores taken anew before each instance."""
    free = cluster.capacities.copy()
    allocation = np.zeros((cluster.n_ports, cluster.n_instances, cluster.n_types))
    for port in ports:
        if arrivals[port] == 0:
            continue
        left = cluster.requirements[port].copy()
        waiting = list(np.flatnonzero(cluster.channels[port]))
        while waiting:
            r = order(waiting, cluster, free)
            waiting.remove(r)
            amount = np.minimum(left, free[r])
            allocation[port, r] = amount
            free[r] -= amount
            left = left - amount if demand == "total" else left
    return allocation


def utilisation(cluster, free, r):
    """Return the mean share in use over the types the instance has."""
    has = cluster.capacities[r] > 0
    return (1.0 - free[r, has] / cluster.capacities[r, has]).mean() if has.any() else 0.0


ORDERS = {
    Drf: lambda waiting, cluster, free: waiting[0],
    BinPacking: lambda waiting, cluster, free: max(waiting, key=lambda r: (utilisation(cluster, free, r), -r)),
    Spreading: lambda waiting, cluster, free: min(waiting, key=lambda r: (utilisation(cluster, free, r), r)),
}


# -- worked by hand ----------------------------------------------------------------------------------------


def test_fairness():
    cluster = cluster_of([[6.0, 1.0], [2.0, 3.0], [8.0, 0.0]], [[8.0, 2.0]])
    # ports 0 and 1: of 8 devices 6 : 2, of 2 devices 1 : 3
    assert Fairness(cluster).allocate([1, 1, 0])[:, 0].tolist() == [[6.0, 0.5], [2.0, 1.5], [0.0, 0.0]]
    # over all ports: 8 / 16 of the requirement, absent port 2 leaves its 4 unused
    assert Fairness(cluster, "all").allocate([1, 1, 0])[:, 0].tolist() == [[3.0, 0.5], [1.0, 1.5], [0.0, 0.0]]
    # nobody gets more than it asks for
    assert Fairness(cluster).allocate([0, 1, 0])[:, 0].tolist() == [[0.0, 0.0], [2.0, 2.0], [0.0, 0.0]]


# -- in general --------------------------------------------------------------------------------------------


@settings(max_examples=many(60))
@given(seed=st.integers(0, 2**32), whole=st.booleans(), kind=st.sampled_from(KINDS))
def test_allocations_are_legal_and_only_for_those_who_came(seed, whole, kind):
    cluster, arrivals = small_cluster(seed, whole=whole)
    policy = kind[0](cluster, **kind[1])
    policy.allocate_channels(np.ones(cluster.n_ports, dtype=int))  # leaves nothing behind for the next slot
    allocation = policy.allocate(arrivals)
    cluster.check_allocation(allocation)
    assert allocation.min(initial=0.0) >= 0.0
    assert not allocation[arrivals == 0].any()
    assert np.array_equal(cluster.layout.to_dense(policy.allocate_channels(arrivals)), allocation)


@settings(max_examples=many(60))
@given(
    seed=st.integers(0, 2**32), whole=st.booleans(), kind=st.sampled_from([k for k in KINDS if k[0] is not Fairness])
)
def test_against_a_naive_reference(seed, whole, kind):
    cluster, arrivals = small_cluster(seed, whole=whole)
    policy, demand = kind[0], kind[1]["demand"]
    ports = range(cluster.n_ports)
    if policy is Drf:
        ports = sorted(ports, key=lambda port: (dominant_share(cluster, port), port))
    expected = in_turn(cluster, arrivals, ports, demand, ORDERS[policy])
    assert np.array_equal(policy(cluster, demand).allocate(arrivals), expected)


@settings(max_examples=many(40))
@given(seed=st.integers(0, 2**32), whole=st.booleans())
def test_fairness_against_its_formula(seed, whole):
    cluster, arrivals = small_cluster(seed, whole=whole)
    wanted = cluster.channels[:, :, None] * cluster.requirements[:, None, :]
    came = wanted * (arrivals > 0)[:, None, None]
    for share_over, over in (("arrived", came), ("all", wanted)):
        total = over.sum(axis=0)
        share = np.minimum(1.0, np.divide(cluster.capacities, total, out=np.zeros_like(total), where=total > 0))
        assert Fairness(cluster, share_over).allocate(arrivals) == pytest.approx(share * came, rel=1e-12)


def test_what_they_see_is_declared_and_what_they_are_is_in_their_names():
    cluster, _ = small_cluster(4, whole=True)
    policies = [policy(cluster, **options) for policy, options in KINDS]
    assert {policy.observes for policy in policies} == {"arrivals"}
    assert [policy.name for policy in policies] == [
        "fairness",
        "fairness (share over all)",
        "drf",
        "drf (total demand)",
        "binpacking",
        "binpacking (total demand)",
        "spreading",
        "spreading (total demand)",
    ]


def test_a_type_that_no_instance_has_comes_last():
    cluster = cluster_of([[1.0, 1.0], [4.0, 0.0]], [[4.0, 0.0]])
    assert Drf(cluster).dominant_shares.tolist() == [math.inf, 1.0]
    assert Drf(cluster).allocate([1, 1])[:, 0, 0].tolist() == [0.0, 4.0]


# -- bad input ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("arrivals, message", [([1], "shape"), ([1, -1], "arrivals"), ([0.5, 1], "arrivals")])
def test_bad_arrivals_are_refused_and_change_nothing(arrivals, message):
    policy = Drf(cluster_of([[1.0], [2.0]], [[2.0]]))
    before = policy.allocate_channels([1, 0]).copy()
    with pytest.raises(InvalidParameterError, match=message):
        policy.allocate(arrivals)
    assert np.array_equal(policy._flat, before)
