"""Several jobs per port: the formula of section 3.4 by hand, the copied cluster, and its environment."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from draws import many
from marketsched.mechanisms import InvalidParameterError
from marketsched.mechanisms.allocation import (
    BinomialArrivals,
    ClusterEnvironment,
    OgaSched,
    PortCopies,
    RecordedArrivals,
    play_slots,
    small_integer_instance,
)
from marketsched.mechanisms.allocation.port_copies import CopiedArrivals


def gain_of(code, alpha, y):
    """Return OgaSched (27), written out once more."""
    if code == 0:
        return alpha * y
    if code == 1:
        return alpha * math.log(y + 1)
    if code == 2:
        return 1 / alpha - 1 / (y + alpha)
    return alpha * math.sqrt(y + 1) - alpha


def reward_by_the_formula(cluster, most, counts, y):
    """Return the sum over ports of section 3.4's reward; ``y[l][j]`` is the (R, K) amounts of job j of port l."""
    total = 0.0
    for port in range(cluster.n_ports):
        for j in range(1, most[port] + 1):
            if j <= counts[port]:
                amounts = y[port][j - 1]
                for r in range(cluster.n_instances):
                    for k in range(cluster.n_types):
                        total += gain_of(cluster.gain[r, k], cluster.alpha[r, k], amounts[r, k])
                total -= max(cluster.overhead[k] * amounts[:, k].sum() for k in range(cluster.n_types))
    return total


@settings(deadline=None, max_examples=many(60))
@given(st.integers(0, 2**32), st.lists(st.integers(0, 3), min_size=3, max_size=3).filter(any))
def test_the_reward_is_the_formulas(seed, most):
    rng = np.random.default_rng(seed)
    cluster = small_integer_instance(rng, n_ports=3)
    copies = PortCopies(most)
    copied = copies.replicate(cluster)
    assert copied.n_ports == sum(most)
    y = copied.project(rng.uniform(0, 3, (copies.n_copies, cluster.n_instances, cluster.n_types)))
    counts = rng.integers(0, np.array(most) + 1)
    by_port = [y[copies.ports == port] for port in range(3)]
    expected = reward_by_the_formula(cluster, most, counts, by_port)
    assert copied.reward(copies.presence(counts), y) == pytest.approx(expected, rel=1e-12, abs=1e-12)
    gain, overhead = copied.gain_and_overhead(copies.presence(counts), y)
    assert (gain - overhead).sum() == pytest.approx(expected, rel=1e-12, abs=1e-12)
    assert not (gain - overhead)[counts[copies.ports] == 0].any()
    assert (y.sum(axis=0) <= cluster.capacities + 1e-9).all()


def test_native_ogasched_plays_several_jobs_per_port():
    rng = np.random.default_rng(4)
    cluster = small_integer_instance(rng, gain="log")
    arrivals = BinomialArrivals([3, 0, 2, 1], 0.6, rng)
    copies = PortCopies(arrivals.most)
    copied = copies.replicate(cluster)
    environment = ClusterEnvironment(copied, CopiedArrivals(arrivals, copies))
    record = play_slots(OgaSched(copied, 300), environment, 300)
    arrivals.begin()
    jobs = [arrivals.draw().sum() for _ in range(300)]
    assert record["jobs"].tolist() == jobs
    assert environment.arrival_counts.sum() == np.sum(jobs)
    later_copies_are_rarer = np.diff(environment.arrival_counts[copies.ports == 0])
    assert (later_copies_are_rarer <= 0).all()
    best = environment.cluster.best_fixed_allocation(environment.arrival_counts)
    regret = best.value - record.total("reward")
    assert regret <= environment.cluster.regret_bound(300)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: PortCopies([0, 0]), "a port to which jobs can come"),
        (lambda: PortCopies([]), "a port to which jobs can come"),
        (lambda: PortCopies([1, -1]), r"most\[1\] = -1"),
        (lambda: PortCopies([1, 2]).presence([2, 1]), r"counts\[0\] = 2: expected at most 1"),
        (lambda: PortCopies([1, 2]).presence([1]), "counts has shape"),
        (lambda: PortCopies([1, 2]).replicate(small_integer_instance(np.random.default_rng(0))), "4 ports: expected 2"),
        (lambda: CopiedArrivals(RecordedArrivals([[2, 1]]), PortCopies([1, 2])), r"counts\[0\] = 2"),
        (lambda: CopiedArrivals(RecordedArrivals([[1]]), PortCopies([1, 2])), "1 ports: expected 2"),
    ],
)
def test_bad_input_is_named(make, message):
    with pytest.raises(InvalidParameterError, match=message):
        make()
