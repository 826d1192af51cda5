"""OgaSched: every slot from its state against the paper's formulas, legality, threads, timing, bad input."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from marketsched.mechanisms import EventError, InvalidParameterError
from marketsched.mechanisms.allocation import BipartiteCluster, OgaSched
from marketsched.mechanisms.allocation.oga.oga import geometric_step, step_of
from naive_allocation import naive_slot, random_cluster
from refusals import refused

SEEDS = st.integers(0, 2**32)
ALL_CHANNELS, FEW_CHANNELS = 1.0, 0.4


def has_close_dominance(cluster, allocation):
    """Whether two types of a port are dominant up to rounding: the paper leaves open which one counts."""
    held = np.sort(cluster.overhead * allocation.sum(axis=1), axis=1)
    return bool(((held[:, -1] - held[:, -2] < 1e-9) & (held[:, -1] > 0.0)).any())


@given(SEEDS, st.sampled_from([ALL_CHANNELS, FEW_CHANNELS]), st.booleans(), st.sampled_from([1, 30, 1000]))
@example(12039, FEW_CHANNELS, False, 1)  # Newton steps of a lane go round in a circle
def test_every_slot_is_the_formula_applied_to_its_state(seed, density, integers, horizon):
    rng = np.random.default_rng(seed)
    cluster = random_cluster(rng, density=density, integers=integers)
    policy = OgaSched(cluster, horizon)
    for _ in range(4):
        state = policy.allocate()
        arrivals = rng.integers(0, 3, cluster.n_ports) * (rng.random(cluster.n_ports) < 0.6)
        policy.update(arrivals)
        if not has_close_dominance(cluster, state):
            assert policy.allocate() == pytest.approx(naive_slot(cluster, arrivals, state, horizon), abs=1e-9)


@pytest.mark.slow_after(2)
@pytest.mark.compiled
@pytest.mark.parametrize(
    ("n_ports", "n_instances", "density"),
    [(10, 128, 1.0), (10, 128, 0.3), (40, 60, 1.0), (70, 40, 0.9), (1, 40, 1.0), (3, 70, 1.0)],
)
def test_slots_at_larger_sizes_are_the_formula_applied_to_their_state(n_ports, n_instances, density):
    rng = np.random.default_rng(6)
    cluster = random_cluster(rng, n_ports, n_instances, 6, density, contention=6.0)
    policy = OgaSched(cluster, 2000)
    for _ in range(3):
        for _ in range(5):
            policy.update(rng.integers(0, 2, n_ports))
        state, arrivals = policy.allocate(), rng.integers(0, 2, n_ports)
        assert not has_close_dominance(cluster, state)
        policy.update(arrivals)
        assert policy.allocate() == pytest.approx(naive_slot(cluster, arrivals, state, 2000), abs=1e-9)


@pytest.mark.slow_after(3)
@pytest.mark.compiled
@pytest.mark.parametrize(
    ("n_ports", "n_instances", "density"), [(12, 600, 1.0), (20, 600, 0.6), (70, 100, 1.0), (90, 150, 0.6)]
)
def test_results_do_not_depend_on_threads(n_ports, n_instances, density):
    rng = np.random.default_rng(9)
    cluster = random_cluster(rng, n_ports, n_instances, 5, density)
    policies = [OgaSched(cluster, 500, threads=threads) for threads in (1, 2, 3, 50)]
    assert policies[0].n_blocks > 3  # else there is nothing to share
    for _ in range(40):
        arrivals = rng.random(n_ports) < 0.5
        for policy in policies:
            policy.update(arrivals)
        one, *others = (policy.allocate_channels() for policy in policies)
        assert all(np.array_equal(one, other) for other in others)


@pytest.mark.parametrize("density", [0.3, 0.7])
def test_what_no_arrival_touches_does_not_change_by_a_bit(density):
    rng = np.random.default_rng(13)
    cluster = random_cluster(rng, 6, 30, 3, density)
    policy = OgaSched(cluster, 100)
    for _ in range(20):
        policy.update(rng.integers(0, 2, 6))
    before = policy.allocate()
    for _ in range(5):
        policy.update([0, 1, 0, 0, 0, 0])
    away = ~cluster.channels[1]
    assert away.any() and np.array_equal(policy.allocate()[:, away], before[:, away])


def test_schedules_are_asked_for_slots_counted_from_one():
    cluster = BipartiteCluster([[9.0]], [[9.0]], [[True]], "linear", 1.0, 0.0)
    asked = []
    policy = OgaSched(cluster, 10, step=lambda t: asked.append(t) or 0.25, initial=[[[0.0]]])
    for _ in range(3):
        policy.update([1])
    assert asked == [1, 2, 3] and policy.allocate().item() == 0.75
    assert geometric_step(8.0, 0.5)(3) == 1.0
    assert geometric_step(8.0, 1.5, horizon=100)(2) == 18.0


def test_a_growing_step_is_refused_before_it_overflows():
    with pytest.raises(InvalidParameterError, match=r"decay = 1.5: expected at most 1.1202: .* within 2000 slots"):
        geometric_step(25.0, 1.5, horizon=2000)
    assert geometric_step(25.0, 1.1202, horizon=2000)(2000) <= 1e100  # what the line offers is legal
    assert geometric_step(25.0, 1e-9, horizon=2000)(2000) == 0.0
    refused(lambda: geometric_step(0.5, 1.5, horizon=2000), "pass 1e", error=InvalidParameterError)
    endless = geometric_step(25.0, 1.5)
    refused(lambda: step_of(endless, 2000), "step of slot 2000", error=InvalidParameterError)


def test_the_first_allocation_shares_each_instance_by_requests():
    cluster = BipartiteCluster([[6.0], [2.0]], [[4.0], [100.0]], np.ones((2, 2), bool), "log", 1.0, 0.0)
    assert OgaSched(cluster, 10).allocate()[:, :, 0].tolist() == [[3.0, 6.0], [1.0, 2.0]]


def test_strict_timing_by_default_and_peeking_by_name():
    cluster = BipartiteCluster([[2.0], [2.0]], [[2.0]], [[True], [True]], "log", 1.0, 0.0)
    strict, peek = OgaSched(cluster, 10, step=0.5), OgaSched(cluster, 10, step=0.5, peek=True)
    assert (strict.observes, strict.name) == ("nothing", "ogasched")
    assert (peek.observes, peek.name) == ("arrivals", "ogasched-peek")
    assert peek.allocate([1, 0])[:, 0, 0].tolist() == [1.25, 0.0]  # 1 + 0.5 / (1 + 1); the absent port lost its share
    refused(lambda: peek.allocate([1, 0]), "twice", error=EventError)
    peek.update([1, 0])
    assert peek.allocate([1, 1])[1, 0, 0] > 0.0
    refused(lambda: strict.allocate([1, 0]), "observes nothing", error=InvalidParameterError)
    refused(lambda: OgaSched(cluster, 10, peek=True).allocate(), "arrivals has shape", error=InvalidParameterError)


@given(SEEDS)
def test_a_peeking_slot_is_the_formula_after_the_absent_gave_back(seed):
    rng = np.random.default_rng(seed)
    cluster = random_cluster(rng)
    policy = OgaSched(cluster, 50, peek=True)
    state = OgaSched(cluster, 50).allocate()
    for _ in range(3):
        arrivals = rng.integers(0, 2, cluster.n_ports)
        cleared = state * (arrivals > 0)[:, None, None]
        state = policy.allocate(arrivals)
        policy.update(arrivals)
        if not has_close_dominance(cluster, cleared):
            assert state == pytest.approx(naive_slot(cluster, arrivals, cleared, 50), abs=1e-9)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"step": "newton"}, "step = 'newton'"),
        ({"step": -1.0}, "step = -1.0"),
        ({"step": np.nan}, "step = nan"),
        ({"initial": np.zeros((2, 2))}, "allocation has shape"),
        ({"initial": np.full((2, 1, 1), 1.5)}, "instance 0, type 0 sums to 3"),
        ({"initial": [[[2.5]], [[0.0]]]}, "port 0, instance 0, type 0 = 2.5"),
    ],
)
def test_malformed_policies_are_refused_by_name(arguments, message):
    cluster = BipartiteCluster([[2.0], [2.0]], [[2.0]], [[True], [True]], "log", 1.0, 0.0)
    with pytest.raises(InvalidParameterError, match=message):
        OgaSched(**{"cluster": cluster, "horizon": 10, **arguments})


@pytest.mark.parametrize("arrivals", [[1], [1, -1], [1, 0.5], [1, np.nan], "ab", [[1, 0]]])
def test_malformed_arrivals_change_nothing(arrivals):
    cluster = BipartiteCluster([[2.0], [2.0]], [[2.0]], [[True], [True]], "log", 1.0, 0.0)
    policy = OgaSched(cluster, 10)
    before = policy.allocate()
    refused(lambda: policy.update(arrivals), "arrivals", error=InvalidParameterError)
    assert np.array_equal(policy.allocate(), before)


def test_a_schedule_that_gives_no_number_is_refused_before_anything_changes():
    cluster = BipartiteCluster([[2.0], [2.0]], [[2.0]], [[True], [True]], "log", 1.0, 0.0)
    policy = OgaSched(cluster, 10, step=lambda t: np.nan)
    before = policy.allocate()
    refused(lambda: policy.update([1, 0]), "step of slot 1 = nan", error=InvalidParameterError)
    assert np.array_equal(policy.allocate(), before)
