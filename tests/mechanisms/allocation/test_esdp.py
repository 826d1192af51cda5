"""ESDP: statistics by hand, schedules by hand, decisions against brute force, what it sees and when."""

import itertools
import math

import numpy as np
import pytest

from marketsched.mechanisms import InvalidParameterError, TooLargeError
from marketsched.mechanisms.allocation import Esdp
from marketsched.mechanisms.allocation.esdp.channel_policy import ChannelStatistics
from marketsched.mechanisms.allocation.esdp.schedules import (
    EXPLORATIONS,
    SLACKS,
    exploration_sequence,
    scale_of,
    slack_sequence,
)
from refusals import refused


def small_policy(rng, n_channels=7, **parameters):
    """Return a policy of random requests, with a random history in which some channels may be unseen."""
    requests = rng.integers(0, 4, (n_channels, 2))
    policy = Esdp(requests, [5, 6], rng.integers(0, 3, n_channels), n_ports=3, **parameters)
    for _ in range(rng.integers(1, 30)):
        used = rng.random(n_channels) < 0.3
        policy.update(used, rng.random(n_channels))
    return policy


def feasible(policy):
    """Return all selections within the capacities."""
    channels = policy.channels
    every = np.array(list(itertools.product((False, True), repeat=channels.n_channels)))
    return every[(every @ channels.requests <= channels.capacities).all(axis=1)]


def scaled_by_hand(policy):
    """Return s_max, scaled means, scaled variances (0 where unseen) and which are unseen, from counts and totals."""
    seen, t = policy.statistics, policy.statistics.slot
    scale = math.ceil(policy.alpha * policy.channels.n_channels / policy.slack(t))
    n = np.maximum(seen.counts, 1)
    means = np.ceil(scale * (seen.totals / n))
    variances = np.ceil(scale**2 * (policy.exploration(t) / (2 * n)))
    return math.floor(scale * policy.largest), means, np.where(seen.counts == 0, 0, variances), seen.counts == 0


def test_statistics_of_a_history_by_hand():
    seen = ChannelStatistics(4)
    assert (seen.slot, seen.means.tolist(), seen.unseen.tolist()) == (1, [0] * 4, [True] * 4)
    seen.update([1, 1, 0, 0], [0.5, 0.25, 0.9, np.nan])  # what was not used is not looked at
    seen.update([1, 0, 0, 1], [1.0, 0.7, 0.0, 0.0])
    seen.update([0, 0, 0, 1], [0.3, 0.7, 0.0, 1.0])
    assert seen.slot == 4
    assert seen.counts.tolist() == [2, 1, 0, 2]
    assert seen.means.tolist() == [0.75, 0.25, 0.0, 0.5]
    assert seen.variances(6.0).tolist() == [1.5, 3.0, np.inf, 1.5]
    scaled = seen.scaled(6.0, 5)  # 3.75, 1.25, 0, 2.5 and 37.5, 75, inf, 37.5, all rounded up
    assert scaled.values.tolist() == [4, 2, 0, 3]
    assert scaled.variances.tolist() == [38.0, 75.0, 0.0, 38.0]
    assert scaled.unseen.tolist() == [False, False, True, False]


# Worked out with a pocket calculator: ln 2 = 0.693147, ln 1.693147 = 0.526589, ln 1.526589 = 0.423036.
SLACKS_AT_1 = {
    "paper": 1 / 1.526589,
    "log": 1 / 1.693147,
    "loglog": 1 / 0.526589,
    "logloglog": 1 / 1.423036,
    "equation": 1 / (1 - 0.366513),
}
# ln 2000 = 7.600902, ln 8.600902 = 2.151867, ln 3.151867 = 1.147995, ln 7.600902 = 2.028267.
SLACKS_AT_1999 = {
    "paper": 1 / 3.151867,
    "log": 1 / 8.600902,
    "loglog": 1 / 2.151867,
    "logloglog": 1 / 2.147995,
    "equation": 1 / 3.028267,
}
# With m = 10; ln 1999 = 7.600402, ln 8.600402 = 2.151809.
EXPLORATIONS_AT_1999 = {
    "paper": 7.600902 + 40 * 2.151867,
    "loglog": 40 * 2.151867,
    "log": 7.600902,
    "equation": 7.600402 + 40 * 2.151809,
}


def test_every_slack_and_exploration_of_the_paper():
    assert SLACKS.keys() == SLACKS_AT_1.keys()
    for name in SLACKS:
        assert slack_sequence(name)(1) == pytest.approx(SLACKS_AT_1[name], rel=1e-5)
        assert slack_sequence(name)(1999) == pytest.approx(SLACKS_AT_1999[name], rel=1e-5)
    assert EXPLORATIONS.keys() == EXPLORATIONS_AT_1999.keys()
    for name in EXPLORATIONS:
        assert exploration_sequence(name, 10.0)(1999) == pytest.approx(EXPLORATIONS_AT_1999[name], rel=1e-5)
    assert exploration_sequence("equation", 10.0)(1) == 0.0


def test_scale_and_largest_budget():
    assert scale_of(0.4, 16.5) == (42, 693)  # 41.25 up, 42 * 16.5
    assert scale_of(1.0, 2.0) == (2, 4)
    refused(lambda: scale_of(1e-12, 2.0), "scale", error=InvalidParameterError)


def test_own_sequences_are_used_and_checked():
    policy = Esdp([[1]], [1], [0], slack=lambda t: 1 / t, exploration=lambda t: 2.0 * t)
    assert (policy.slack(4), policy.exploration(4)) == (0.25, 8.0)
    assert policy.name == "esdp (delta own, g own)"
    for wrong in (0.0, -1.0, math.nan, math.inf):
        with pytest.raises(InvalidParameterError, match=r"slack\(1\)"):
            Esdp([[1]], [1], [0], slack=lambda t, x=wrong: x).allocate([True])


@pytest.mark.parametrize("alpha", [0.5, 1.0])
def test_decisions_attain_the_largest_index_over_all_selections(alpha):
    rng = np.random.default_rng(1)
    for _ in range(40):
        policy = small_policy(rng, alpha=alpha)
        s_max, means, variances, unseen = scaled_by_hand(policy)
        every = feasible(policy)
        count = every @ unseen.astype(int)
        index = np.minimum(every @ means, s_max) + np.sqrt(every @ variances)
        chosen = policy.allocate([True] * 3)
        assert policy.channels.fits(chosen)
        assert unseen[chosen].sum() == count.max()
        attained = min(means[chosen].sum(), s_max) + math.sqrt(variances[chosen].sum())
        assert attained == pytest.approx(index[count == count.max()].max(), rel=1e-12)


def test_absent_ports_are_switched_off_or_not_planned_for():
    rng = np.random.default_rng(3)
    gained = 0
    for i in range(60):
        zero, plan = (small_policy(np.random.default_rng(i), arrivals=how) for how in ("zero", "plan"))
        arrivals = rng.random(3) < 0.6
        all_ports, zeroed, planned = zero.allocate([True] * 3), zero.allocate(arrivals), plan.allocate(arrivals)
        present = arrivals[zero.channels.ports]
        assert zeroed.tolist() == (all_ports & present).tolist()
        assert not (planned & ~present).any()
        s_max, means, variances, unseen = scaled_by_hand(zero)

        def worth(x, s_max=s_max, means=means, variances=variances, unseen=unseen):
            return unseen[x].sum(), min(means[x].sum(), s_max) + math.sqrt(variances[x].sum())

        assert worth(planned) >= worth(zeroed)
        gained += worth(planned) > worth(zeroed)
    assert gained > 10  # it is not the same thing


BAD = [
    ({"requests": [[3], [1]]}, r"requests\[0, 0\] = 3 is above capacities\[0\] = 2"),
    ({"requests": [[1], [-1]]}, r"requests\[1, 0\] = -1"),
    ({"requests": np.empty((0, 1))}, "requests has shape"),
    ({"capacities": [np.nan]}, r"capacities\[0\] = nan"),
    ({"ports": [0]}, "ports has shape"),
    ({"ports": [0, -1]}, r"ports\[1\] = -1"),
    ({"n_ports": 1}, "n_ports = 1"),
    ({"alpha": 0.0}, "alpha = 0.0"),
    ({"alpha": 1.5}, "alpha = 1.5"),
    ({"slack": 0.5}, "slack = 0.5"),
    ({"arrivals": "guess"}, "arrivals = 'guess'"),
    ({"memory_limit": 0}, "memory_limit = 0"),
]


@pytest.mark.parametrize(("wrong", "said"), BAD)
def test_bad_parameters_are_named(wrong, said):
    with pytest.raises(InvalidParameterError, match=said):
        Esdp(**{"requests": [[1], [1]], "capacities": [2], "ports": [0, 1], **wrong})


def test_a_table_too_large_says_how_large():
    with pytest.raises(TooLargeError, match=r"takes .*iB, the limit is 1 GiB"):
        Esdp(np.full((60, 3), 7) + np.arange(60).reshape(60, 1) % 2, [10**4] * 3, [0] * 60)
    rng = np.random.default_rng(5)
    policy = Esdp(rng.integers(1, 4, (30, 2)), [20, 20], [0] * 30, memory_limit=10**5)
    policy.update([True] * 30, rng.random(30))
    refused(lambda: policy.allocate([True]), "sums of values", error=TooLargeError)


@pytest.mark.parametrize(
    ("selected", "utilities", "said"),
    [
        ([True, False], [1.1, 0.0], r"utilities\[0\] = 1.1"),
        ([True, False], [np.nan, 0.0], r"utilities\[0\] = nan"),
        ([True, False], [-0.1, 0.0], r"utilities\[0\] = -0.1"),
        ([True], [0.5, 0.5], "selected has shape"),
        ([True, False], [0.5], "utilities has shape"),
        ([2, 0], [0.5, 0.5], r"selected\[0\] = 2"),
        (["a", "b"], [0.5, 0.5], "selected"),
    ],
)
def test_bad_feedback_is_named_and_changes_nothing(selected, utilities, said):
    policy = Esdp([[1], [1]], [2], [0, 1])
    with pytest.raises(InvalidParameterError, match=said):
        policy.update(selected, utilities)
    assert (policy.statistics.slot, policy.statistics.counts.tolist()) == (1, [0, 0])
