"""Gang policies in the slot loop: steps, the entropy's projection, the rule in every slot, and the bound above."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from draws import many
from gangs import naive_reward, random_allocation, random_gang, violations
from marketsched.mechanisms import InvalidParameterError
from marketsched.mechanisms.allocation import (
    BernoulliArrivals,
    ClusterEnvironment,
    Drf,
    GangOga,
    GangRepaired,
    OgaSched,
    RecordedArrivals,
)
from marketsched.mechanisms.allocation.oga.gang_oga import entropy_width, project_entropy
from marketsched.mechanisms.allocation.slot_loop import slot_by_slot
from marketsched.mechanisms.arrays import read_only
from peeking import find_peeking

SEEDS = st.integers(0, 2**32)
BOTH = pytest.mark.parametrize("geometry", ["euclidean", "entropy"])


def task_gradient(gang, counts, y):
    """Return the subgradient as a dense array of tasks."""
    layout = gang.relaxed.layout
    return layout.to_dense(gang.spread(gang.merged.channel_gradient(counts, gang.merge(layout.to_channels(y)))))


# -- the subgradient ---------------------------------------------------------------------------------------


@settings(deadline=None, max_examples=many(60))
@given(SEEDS, SEEDS)
def test_the_line_through_a_point_is_above_the_reward_everywhere(seed, other):
    """The subgradient's own inequality, also at ties of the overhead, which whole numbers make common."""
    gang = random_gang(seed)
    counts = np.random.default_rng(other).integers(0, 2, gang.n_ports)
    here = np.round(random_allocation(gang, other))
    gradient = task_gradient(gang, counts, here)
    value = naive_reward(gang, counts, here)
    for k in range(4):
        there = random_allocation(gang, other + k)
        assert naive_reward(gang, counts, there) <= value + (gradient * (there - here)).sum() + 1e-9


# -- the two steps -----------------------------------------------------------------------------------------


@settings(deadline=None, max_examples=many(200))
@given(st.data(), st.integers(1, 6))
def test_the_entropy_projection_has_its_optimality_conditions(data, n):
    whole = st.integers(0, 4).map(float)
    numbers = st.lists(whole | st.floats(1e-9, 1e6), min_size=n, max_size=n)
    z, a = np.array(data.draw(numbers)), np.array(data.draw(numbers))
    c = data.draw(whole | st.floats(0, 10))
    out = project_entropy(z, *map(read_only, (a, np.array([c]), np.array([0, n]))))
    slack = 1e-12 * max(1.0, c)
    assert ((out >= 0) & (out <= a)).all()
    assert out.sum() <= c + slack
    inside = (out < a) & (z > 0)  # there, ln(out / z) is minus the price of capacity, the same for all
    scale = (out[inside] / z[inside]).max(initial=0.0) if inside.any() else 1.0
    assert np.allclose(out[inside], scale * z[inside], rtol=1e-9, atol=1e-300)
    assert scale <= 1.0
    if inside.any() and scale < 1.0:  # a price is paid only for capacity that is used up
        assert out.sum() >= c * (1 - 1e-9) - slack
        capped = (out >= a) & (z > 0)
        assert (z[capped] * scale >= a[capped] * (1 - 1e-9)).all()  # at that price they would want more
    if np.minimum(z, a).sum() <= c:
        assert np.array_equal(out, np.minimum(z, a))


@settings(deadline=None, max_examples=many(30))
@given(SEEDS)
def test_the_first_state_shares_in_proportion_and_is_within_the_width(seed):
    gang = random_gang(seed)
    flat = gang.relaxed.fair_shares()
    gang.relaxed.check_channel_array(flat)
    used, asked = gang.relaxed.used(flat), gang.relaxed.used(gang.relaxed.bounds)
    assert np.allclose(used, np.minimum(gang.relaxed.capacities, asked), rtol=1e-12)
    y = gang.relaxed.layout.to_channels(random_allocation(gang, seed))
    some = y > 0
    divergence = (y[some] * np.log(y[some] / flat[some])).sum() - y.sum() + flat.sum()
    assert divergence <= entropy_width(gang.relaxed) + 1e-9


@settings(deadline=None, max_examples=many(40))
@given(SEEDS, st.sampled_from([0.25, 1.0, 3.0]))
def test_one_step_of_either_kind(seed, eta):
    gang = random_gang(seed)
    layout, relaxed = gang.relaxed.layout, gang.relaxed
    counts = np.random.default_rng(seed).integers(0, 2, gang.n_ports)
    start = random_allocation(gang, seed)
    gradient = task_gradient(gang, counts, start)
    policy = GangOga(gang, 9, step=eta)
    policy.state = layout.to_channels(start)
    policy.update(counts)
    # the nearest legal point: no legal point is on the other side of it
    moved, landed = start + eta * gradient, layout.to_dense(policy.state)
    for k in range(4):
        assert ((random_allocation(gang, seed + k) - landed) * (moved - landed)).sum() <= 1e-7
    policy = GangOga(gang, 9, step=eta, geometry="entropy")
    policy.state = layout.to_channels(start)
    policy.update(counts)
    grown = np.maximum(start, 1e-9 * relaxed.requirements[:, None, :]) * np.exp(eta * gradient)
    grown = layout.to_channels(grown)
    expected = project_entropy(grown, relaxed.bounds, relaxed.capacities.ravel(), layout.columns)
    assert np.allclose(policy.state, expected, rtol=1e-12, atol=1e-15)


# -- in the slot loop --------------------------------------------------------------------------------------


@BOTH
@pytest.mark.parametrize("share", [0.0, 0.5])
def test_the_rule_holds_in_every_slot(geometry, share):
    gang = random_gang(11, share=share, n_ports=4, n_instances=5)
    policy = GangOga(gang, 150, geometry=geometry)
    environment = ClusterEnvironment(gang, BernoulliArrivals(0.7, np.random.default_rng(1), gang.n_ports))
    launched = 0.0
    for decision, outcome in slot_by_slot(policy, environment, 150):
        gang.relaxed.check_channel_array(policy.state)
        y = gang.relaxed.layout.to_dense(decision)
        assert violations(gang, y) == []
        (counts,) = outcome.feedback
        assert outcome.measures["reward"] == pytest.approx(naive_reward(gang, counts, y), rel=1e-9, abs=1e-9)
        launched += outcome.measures["launched"]
        assert outcome.measures["launched"] == counts @ gang.launched(decision)
    assert launched > 0


def policies(gang, horizon):
    """Return fresh policies of every kind."""
    return [
        GangOga(gang, horizon),
        GangOga(gang, horizon, geometry="entropy"),
        GangRepaired(OgaSched(gang.merged, horizon), gang),
        GangRepaired(Drf(gang.merged), gang),
    ]


@pytest.mark.slow_after(1)
@BOTH
def test_the_states_regret_in_the_relaxed_problem_is_below_the_bound_and_falls(geometry):
    gang = random_gang(21, n_ports=4, n_instances=6, whole=False)
    mean_regret = []
    for horizon in (100, 1600):
        arrivals = BernoulliArrivals(0.7, np.random.default_rng(1), gang.n_ports)
        environment = ClusterEnvironment(gang, arrivals)
        policy, earned = GangOga(gang, horizon, geometry=geometry), 0.0
        for _, outcome in slot_by_slot(policy, environment, horizon):
            gains, overheads = gang.channel_rewards(outcome.feedback[0], policy.state)
            earned += gains.sum() - overheads.sum()
        regret = gang.merged.best_fixed_allocation(environment.arrival_counts).upper - earned
        assert regret <= gang.relaxed.regret_bound(horizon)
        mean_regret.append(regret / horizon)
    assert mean_regret[1] < mean_regret[0] / 2  # like 1 / sqrt(T): a quarter


def test_gang_policies_do_not_peek():
    gang = random_gang(3)
    counts = np.random.default_rng(0).integers(0, 2, (8, gang.n_ports))
    other = counts.copy()
    other[5] = 1 - other[5]
    for pair in zip(policies(gang, 8), policies(gang, 8), strict=True):
        worlds = [
            (p, ClusterEnvironment(gang, RecordedArrivals(c))) for p, c in zip(pair, (counts, other), strict=True)
        ]
        assert find_peeking(*worlds, 5) is None


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda gang: GangOga(gang, 5, step="adam"), "step = 'adam'"),
        (lambda gang: GangOga(gang, 5, step=-1.0), "step = -1.0"),
        (lambda gang: GangOga(gang, 5, step=lambda t: np.nan).update([1, 1, 1]), "step of slot 1 = nan"),
        (lambda gang: GangOga(gang, 5).update([1, -1, 0]), r"arrivals\[1\] = -1"),
        (lambda gang: ClusterEnvironment(gang, RecordedArrivals([[1, 2, 1]])), "can get 2 jobs"),
        (lambda gang: ClusterEnvironment(gang, RecordedArrivals([[1]])), "arrivals have 1 ports: expected 3"),
    ],
)
def test_bad_input_is_named(make, message):
    with pytest.raises(InvalidParameterError, match=message):
        make(random_gang(3))
