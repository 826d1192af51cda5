"""DRF, Fairness, BinPacking, Spreading: a naive reference, a formula, feasibility."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from draws import many
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
