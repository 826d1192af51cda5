"""Instance families: ranges, degrees, repetition, and what is refused."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from draws import many
from marketsched.mechanisms import InvalidParameterError
from marketsched.mechanisms.allocation import pai_like_instance, published_instance, small_integer_instance
from marketsched.mechanisms.allocation.oga.instances import DEVICE_RANGES, regular_channels

MACHINES = np.array([[96.0, 512.0, 2.0], [64.0, 512.0, 8.0], [96.0, 384.0, 0.0]])


def seeded(seed=0):
    return np.random.default_rng(seed)


def test_the_published_family_has_the_papers_default_settings():
    cluster = published_instance(seeded())
    low, high = np.array(DEVICE_RANGES).T
    assert (cluster.n_ports, cluster.n_instances, cluster.n_types) == (10, 128, 6)
    assert cluster.channels.all()
    assert (cluster.capacities == np.floor(cluster.capacities)).all()
    assert ((cluster.capacities >= low) & (cluster.capacities <= high)).all()
    assert (cluster.capacities.max(axis=0)[3:] == high[3:]).all()  # both ends occur where there are few values
    assert (cluster.capacities.min(axis=0)[3:] == low[3:]).all()
    assert ((cluster.requirements >= 10 * low) & (cluster.requirements <= 10 * high)).all()
    assert ((cluster.alpha >= 1.0) & (cluster.alpha <= 1.5)).all()
    assert ((cluster.overhead >= 0.3) & (cluster.overhead <= 0.5)).all()
    assert np.bincount(cluster.gain.ravel(), minlength=4).min() > 128  # mixed: 192 of each expected, sigma 12


def test_parameters_scale_what_they_should():
    small, large = (published_instance(seeded(), contention=level, overhead=(0.01, 0.015)) for level in (1.0, 5.0))
    assert np.allclose(large.requirements, 5.0 * small.requirements)
    assert np.array_equal(large.capacities, small.capacities)
    assert (large.overhead <= 0.015).all()
    two_types = published_instance(seeded(), ranges=[(1, 1), (2, 4)], gain="log", alpha=(2.0, 2.0))
    assert two_types.n_types == 2
    assert (two_types.capacities[:, 0] == 1).all()
    assert (two_types.gain == 1).all()
    assert (two_types.alpha == 2.0).all()


def test_pai_like_machines_and_jobs():
    cluster = pai_like_instance(seeded(), MACHINES, n_instances=300, contention=2.0, share=(0.25, 0.5))
    rows = {tuple(row) for row in MACHINES}
    assert {tuple(row) for row in cluster.capacities} == rows
    for requirement in cluster.requirements:  # a job is of one machine's proportions
        fits = [(2 * 0.25 * m <= requirement).all() and (requirement <= 2 * 0.5 * m).all() for m in MACHINES]
        assert any(fits)


def test_contention_one_asks_for_what_there_is():
    """Averages over many machines and ports, with an interval of four standard errors."""
    asked = []
    for seed in range(200):
        cluster = pai_like_instance(seeded(seed), [[8.0, 2.0]], n_instances=4, n_ports=6, ports_per_instance=3)
        asked.append(cluster.requirements.mean(axis=0) * 3 / [8.0, 2.0])
    error = np.std(asked, axis=0) / np.sqrt(len(asked))
    assert (np.abs(np.mean(asked, axis=0) - 1.0) < 4 * error).all()


@settings(deadline=None, max_examples=many(40))
@given(st.integers(0, 2**32), st.integers(1, 6), st.integers(1, 6), st.floats(0, 1))
def test_small_integer_instances_are_small_and_whole(seed, n_ports, n_instances, density):
    cluster = small_integer_instance(seeded(seed), n_ports=n_ports, n_instances=n_instances, density=density)
    for array, most in [(cluster.requirements, 3), (cluster.capacities, 5)]:
        assert np.isin(array, np.arange(most + 1)).all()
    assert cluster.channels.any(axis=1).all()
    assert np.isin(cluster.alpha, [1.0, 2.0]).all()
    assert np.isin(cluster.overhead, [0.25, 0.5]).all()


@settings(deadline=None, max_examples=many(60))
@given(st.integers(0, 2**32), st.integers(1, 9), st.integers(1, 9), st.data())
def test_channels_are_regular_and_leave_no_port_out(seed, n_ports, n_instances, data):
    degree = data.draw(st.integers(1, n_ports))
    if degree * n_instances < n_ports:
        with pytest.raises(InvalidParameterError, match="at least one channel"):
            regular_channels(seeded(seed), n_ports, n_instances, degree)
        return
    channels = regular_channels(seeded(seed), n_ports, n_instances, degree)
    assert (channels.sum(axis=0) == degree).all()
    assert channels.any(axis=1).all()


@settings(deadline=None, max_examples=many(60))
@given(st.integers(0, 2**32), st.integers(2, 9), st.integers(2, 40), st.data())
def test_a_mean_degree_is_met_as_nearly_as_whole_channels_allow(seed, n_ports, n_instances, data):
    mean = data.draw(st.floats(1, n_ports))
    if round(mean * n_instances) < n_ports:
        return
    channels = regular_channels(seeded(seed), n_ports, n_instances, mean)
    degrees = channels.sum(axis=0)
    assert abs(channels.sum() - mean * n_instances) <= 0.5
    assert set(degrees.tolist()) <= {int(mean), int(np.ceil(mean))}
    assert channels.any(axis=1).all()


@pytest.mark.parametrize(
    "make", [published_instance, small_integer_instance, lambda rng: pai_like_instance(rng, MACHINES)]
)
def test_the_seed_decides(make):
    same, again, other = make(seeded(1)), make(seeded(1)), make(seeded(2))
    for name in ("requirements", "capacities", "channels", "gain", "alpha", "overhead"):
        assert np.array_equal(getattr(same, name), getattr(again, name))
    assert not np.array_equal(same.capacities, other.capacities)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda rng: published_instance(rng, ports_per_instance=11), r"ports_per_instance = 11.*: .*\[1, 10\]"),
        (lambda rng: published_instance(rng, n_instances=2, ports_per_instance=3), "at least one channel"),
        (lambda rng: published_instance(rng, gain="square"), "gain = 'square'.*mixed"),
        (lambda rng: published_instance(rng, alpha=(0.0, 0.0)), "alpha"),
        (lambda rng: published_instance(rng, overhead=(0.5, 1.5)), "overhead"),
        (lambda rng: published_instance(rng, overhead=(0.5, 0.3)), "low <= high"),
        (lambda rng: published_instance(rng, alpha=(1.0, 1.2, 1.5)), "a pair"),
        (lambda rng: published_instance(rng, ranges=[(0.5, 2)]), "whole numbers"),
        (lambda rng: published_instance(rng, ranges=[]), "ranges"),
        (lambda rng: pai_like_instance(rng, []), "machines"),
        (lambda rng: pai_like_instance(rng, [[1.0], [0.0]]), "all have something"),
        (lambda rng: pai_like_instance(rng, [[np.nan]]), r"machines\[0, 0\] = nan"),
        (lambda rng: pai_like_instance(rng, MACHINES, share=(0.0, 0.0)), "share"),
    ],
)
def test_bad_input_is_named(make, message):
    with pytest.raises(InvalidParameterError, match=message):
        make(seeded())
