"""The cluster: reward, gradient, projection, bounds, and what it refuses."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from marketsched.mechanisms import InvalidParameterError
from marketsched.mechanisms.allocation import BipartiteCluster
from marketsched.mechanisms.allocation.oga.gains import GAIN_NAMES
from naive_allocation import naive_gradient, naive_projection, naive_reward, random_cluster

SEEDS = st.integers(0, 2**32)


def random_allocation(cluster, rng):
    """A legal allocation, not on every bound."""
    shape = (cluster.n_ports, cluster.n_instances, cluster.n_types)
    return cluster.project(rng.uniform(-1.0, 4.0, shape) * cluster.channels[:, :, None])


@pytest.mark.slow
@given(SEEDS, st.booleans())
def test_reward_and_gradient_agree_with_the_formulas(seed, integers):
    rng = np.random.default_rng(seed)
    cluster = random_cluster(rng, integers=integers)
    allocation = random_allocation(cluster, rng)
    arrivals = rng.integers(0, 3, cluster.n_ports)
    assert cluster.reward(arrivals, allocation) == pytest.approx(naive_reward(cluster, arrivals, allocation), abs=1e-11)
    assert cluster.gradient(arrivals, allocation) == pytest.approx(
        naive_gradient(cluster, arrivals, allocation), abs=1e-13
    )
    flat = cluster.layout.to_channels(allocation)
    gain, overhead = cluster.channel_rewards(arrivals, flat)
    assert gain.sum() - overhead.sum() == pytest.approx(cluster.reward(arrivals, allocation), abs=1e-12)


def test_the_gradient_is_what_finite_differences_say():
    rng = np.random.default_rng(5)
    for gain in (*GAIN_NAMES, None):
        cluster = random_cluster(rng, 3, 4, 3, gain=gain)
        inside = rng.uniform(0.5, 3.0, (3, 4, 3)) * cluster.channels[:, :, None]  # no ties of dominant types
        arrivals = np.array([1, 0, 2])
        gradient = cluster.gradient(arrivals, inside)
        h = 1e-5
        for place in np.argwhere(cluster.channels):
            for k in range(3):
                up, down = inside.copy(), inside.copy()
                up[(*place, k)] += h
                down[(*place, k)] -= h
                difference = (cluster.reward(arrivals, up) - cluster.reward(arrivals, down)) / (2 * h)
                assert gradient[(*place, k)] == pytest.approx(difference, abs=2e-8)


@given(SEEDS)
def test_projection_of_an_allocation_goes_column_by_column(seed):
    rng = np.random.default_rng(seed)
    cluster = random_cluster(rng, integers=bool(seed % 2))
    point = rng.normal(1.0, 5.0, (cluster.n_ports, cluster.n_instances, cluster.n_types))
    found = cluster.project(point)
    cluster.check_allocation(found)
    for r in range(cluster.n_instances):
        ports = np.flatnonzero(cluster.channels[:, r])
        for k in range(cluster.n_types):
            if ports.size:
                expected = naive_projection(
                    point[ports, r, k], cluster.requirements[ports, k], cluster.capacities[r, k]
                )
                assert found[ports, r, k] == pytest.approx(expected, abs=1e-12)


@given(SEEDS)
def test_dense_and_channel_arrays_are_the_same_numbers(seed):
    rng = np.random.default_rng(seed)
    layout = random_cluster(rng, density=0.3).layout
    dense = rng.random((layout.n_ports, layout.n_instances, layout.n_types)) * layout.channels[:, :, None]
    flat = layout.to_channels(dense)
    assert np.array_equal(layout.to_dense(flat), dense)
    for r in range(layout.n_instances):
        begin, end = layout.offsets[r], layout.offsets[r + 1]
        ports = layout.ports[begin:end]
        block = flat[begin * layout.n_types : end * layout.n_types].reshape(layout.n_types, -1)
        assert np.array_equal(block, dense[ports, r].T) and (np.diff(ports) > 0).all()
        assert (layout.instances[begin:end] == r).all()


@given(SEEDS)
def test_the_bounds_on_diameter_and_gradient_hold(seed):
    rng = np.random.default_rng(seed)
    cluster = random_cluster(rng, integers=True)
    one, two = random_allocation(cluster, rng), random_allocation(cluster, rng)
    assert np.linalg.norm(one - two) <= cluster.diameter() * (1 + 1e-12)
    gradient = cluster.gradient(np.ones(cluster.n_ports, int), one)
    assert np.linalg.norm(gradient) <= cluster.gradient_bound() * (1 + 1e-12)


def test_the_regret_bound_worked_out_by_hand():
    # diam^2 = 2 (3 * 6 + 2 * 1); every channel: beta*^2 + K max f'(0)^2, f'(0) = alpha / 2 for poly.
    cluster = BipartiteCluster(
        [[3.0, 1.0], [1.0, 2.0]],
        [[4.0, 1.0], [2.0, 0.0]],
        [[True, True], [False, True]],
        [["linear", "poly"], ["reciprocal", "poly"]],
        [[1.0, 6.0], [2.0, 1.0]],
        [0.5, 0.25],
    )
    squared = (0.25 + 2 * 3.0**2) + 2 * (0.25 + 2 * 0.5**2)
    assert cluster.diameter() == pytest.approx(np.sqrt(40.0))
    assert cluster.regret_bound(100) == pytest.approx(np.sqrt(2 * 100 * 20.0 * squared))


GOOD = {
    "requirements": [[1.0, 2.0], [3.0, 0.0]],
    "capacities": [[4.0, 5.0], [6.0, 0.0], [1.0, 1.0]],
    "channels": [[True, True, False], [False, True, True]],
    "gain": "log",
    "alpha": 1.2,
    "overhead": [0.3, 0.4],
}


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("requirements", [1.0, 2.0], "requirements has shape"),
        ("requirements", [[1.0, 2.0]], "channels has shape"),
        ("requirements", [[1.0, np.nan], [3.0, 0.0]], r"requirements\[0, 1\] = nan"),
        ("requirements", [[1.0, -2.0], [3.0, 0.0]], r"requirements\[0, 1\] = -2"),
        ("requirements", [["a", "b"], ["c", "d"]], "requirements has entries of type"),
        ("requirements", [[1.0], [1.0, 2.0]], "requirements is not an array"),
        ("capacities", [[4.0], [6.0], [1.0]], r"capacities has shape \(3, 1\)"),
        ("capacities", [[4.0, 5.0], [6.0, -1.0], [1.0, 1.0]], r"capacities\[1, 1\] = -1"),
        ("capacities", [[4.0, 5.0], [6.0, np.inf], [1.0, 1.0]], r"capacities\[1, 1\] = inf"),
        ("channels", [[True, True, False], [False, False, False]], "port 1 has no channel"),
        ("channels", [[True, True], [False, True]], "channels has shape"),
        ("channels", [[1, 2, 0], [0, 1, 1]], r"channels\[0, 1\] = 2"),
        ("gain", "quadratic", "quadratic.*expected one of linear, log, reciprocal, poly"),
        ("gain", [["log", "log"]], "gain has shape"),
        ("gain", np.full((3, 2), 4), r"gain\[0, 0\] = 4"),
        ("alpha", 0.0, "alpha = 0.0: expected a finite number in"),
        ("alpha", -1.0, "alpha = -1"),
        ("alpha", 1e60, r"alpha = 1e\+60"),
        ("capacities", [[4.0, 5.0], [6.0, 1e200], [1.0, 1.0]], r"capacities\[1, 1\] = 1e\+200"),
        ("alpha", [[1.0, 1.0], [1.0, 0.0], [1.0, 1.0]], r"alpha\[1, 1\] = 0.0"),
        ("alpha", np.nan, "alpha.* = nan"),
        ("alpha", [1.0, 1.0], "alpha has shape"),
        ("overhead", [0.3, 1.5], r"overhead\[1\] = 1.5"),
        ("overhead", [0.3, -0.1], r"overhead\[1\] = -0.1"),
        ("overhead", [0.3], "overhead has shape"),
    ],
)
def test_malformed_clusters_are_refused_by_name(name, value, message):
    with pytest.raises(InvalidParameterError, match=message):
        BipartiteCluster(**{**GOOD, name: value})


@pytest.mark.parametrize(
    ("method", "arguments", "message"),
    [
        ("reward", ([1], np.zeros((2, 3, 2))), "arrivals has shape"),
        ("reward", ([1, -1], np.zeros((2, 3, 2))), r"arrivals\[1\] = -1"),
        ("reward", ([1, 0.5], np.zeros((2, 3, 2))), r"arrivals\[1\] = 0.5"),
        ("reward", ([1, np.nan], np.zeros((2, 3, 2))), r"arrivals\[1\] = nan"),
        ("reward", (["x", "y"], np.zeros((2, 3, 2))), "arrivals has entries of type"),
        ("reward", ([1, 1], np.zeros((2, 3))), "allocation has shape"),
        ("reward", ([1, 1], np.full((2, 3, 2), np.nan)), "allocation.* = nan"),
        ("gradient", ([1, 1], np.full((2, 3, 2), -1.0)), "allocation.* = -1"),
        ("gradient", ([1, 1], np.ones((2, 3, 2))), "port 0 has no channel to instance 2"),
        ("project", (np.full((2, 3, 2), np.inf),), "point.* = inf"),
        ("channel_rewards", ([1, 1], np.zeros(3)), "flat is float64 of shape"),
        ("channel_rewards", ([1, 1], [0.0] * 8), "flat is list"),
    ],
)
def test_malformed_arguments_are_refused_by_name(method, arguments, message):
    with pytest.raises(InvalidParameterError, match=message):
        getattr(BipartiteCluster(**GOOD), method)(*arguments)


@pytest.mark.parametrize(
    ("place", "amount", "message"),
    [
        ((0, 0, 0), 1.01, "port 0, instance 0, type 0 = 1.01"),
        ((0, 1, 0), -0.01, "port 0, instance 1, type 0 = -0.01"),
        ((1, 2, 0), 1.5, "instance 2, type 0 sums to 1.5"),
        ((0, 1, 1), np.nan, "= nan"),
    ],
)
def test_illegal_allocations_are_refused_by_place(place, amount, message):
    allocation = np.zeros((2, 3, 2))
    allocation[place] = amount
    with pytest.raises(InvalidParameterError, match=message):
        BipartiteCluster(**GOOD).check_allocation(allocation)
