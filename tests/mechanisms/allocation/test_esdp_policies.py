"""The baselines and references beside ESDP: worked examples, exactness of their selections."""

import itertools
import math

import numpy as np
import pytest

from marketsched.mechanisms import InvalidParameterError
from marketsched.mechanisms.allocation import (
    Channels,
    Cucb,
    Esdp,
    FollowTheLeader,
    HighestUtilityFirst,
    LongestWaitingFirst,
    LowestCostFirst,
    ThompsonSampling,
    TrueMeanOracle,
)
from refusals import refused

POLICIES = [Esdp, HighestUtilityFirst, LowestCostFirst, LongestWaitingFirst, Cucb, ThompsonSampling, FollowTheLeader]


@pytest.mark.parametrize("policy_class", POLICIES)
def test_every_policy_keeps_the_rules_and_learns_only_from_what_it_used(policy_class):
    rng = np.random.default_rng(1)
    for _ in range(8):
        n = int(rng.integers(1, 9))
        requests, ports = rng.integers(0, 4, (n, 2)), rng.integers(0, 3, n)
        arguments = {"rng": 7} if policy_class is ThompsonSampling else {}
        first, second = (policy_class(requests, [4, 5], ports, n_ports=3, **arguments) for _ in range(2))
        assert first.observes == "arrivals"
        for _ in range(12):
            arrivals, utilities = rng.random(3) < 0.7, rng.random(n)
            selected = first.allocate(arrivals)
            assert selected.dtype == np.bool_
            assert first.channels.violation(selected, arrivals) is None
            assert second.allocate(arrivals).tolist() == selected.tolist()
            first.update(selected, utilities)
            second.update(selected, np.where(selected, utilities, rng.random(n)))


def ranked(policy_class, rank, fill, arrivals=(True, True), **arguments):
    """Return what a baseline uses on five channels of two ports, with means .2 .6 | .7 .1 0 (the last unseen)."""
    requests, capacities, ports = [[2], [1], [3], [1], [1]], [4], [0, 0, 1, 1, 1]
    options = {"fill": fill} if policy_class is LongestWaitingFirst else {"rank": rank, "fill": fill}
    policy = policy_class(requests, capacities, ports, **arguments, **options)
    policy.update([True, True, True, True, False], [0.2, 0.6, 0.7, 0.1, 0.9])
    return np.flatnonzero(policy.allocate(arrivals)).tolist()


def test_highest_utility_first_by_hand():
    # Ports: .8 and .8 tie, the lower number first: .6 (1 unit), .2 (2 units), then port 1: .7 needs 3, 1 is left.
    assert ranked(HighestUtilityFirst, "port", "skip") == [0, 1, 3]
    assert ranked(HighestUtilityFirst, "port", "stop") == [0, 1]
    # Channels: .7 (3), .6 (1): full.
    assert ranked(HighestUtilityFirst, "channel", "skip") == [1, 2]
    assert ranked(HighestUtilityFirst, "channel", "skip", arrivals=(False, True)) == [2, 3]


def test_lowest_cost_first_by_hand():
    costs = {"costs": [0.3, 0.4, 0.9, 0.1, 0.5]}
    # Port 1 has the cheapest channel: .1 (1), .5 (1), then .9 (3) does not fit; port 0: .3 (2).
    assert ranked(LowestCostFirst, "port", "skip", **costs) == [0, 3, 4]
    assert ranked(LowestCostFirst, "port", "stop", **costs) == [3, 4]
    # Channels: .1 (1), .3 (2), .4 (1): full.
    assert ranked(LowestCostFirst, "channel", "skip", **costs) == [0, 1, 3]
    # By default the cost is the share of the cluster: 2/4, 1/4, 3/4, 1/4, 1/4; ties by the higher mean.
    assert ranked(LowestCostFirst, "channel", "stop") == [1, 3, 4]


def test_longest_waiting_first_by_hand():
    policy = LongestWaitingFirst([[1], [1], [1]], [1], [0, 1, 2])
    served = []
    for arrivals in ([1, 1, 1], [1, 1, 1], [0, 1, 1], [1, 1, 1], [1, 0, 0], [1, 1, 1]):
        selected = policy.allocate(arrivals)
        served.append(int(np.flatnonzero(selected)[0]))
        policy.update(selected, selected * 0.5)
    # Waiting after each slot: (0,1,1) (1,0,2) (1,1,0) (0,2,1) (0,2,1) and last port 1.
    assert served == [0, 1, 2, 0, 0, 1]
    assert policy.waiting.tolist() == [1, 0, 2]


def test_rank_and_fill_are_checked():
    refused(lambda: HighestUtilityFirst([[1]], [1], [0], rank="server"), "rank = 'server'", error=InvalidParameterError)
    refused(lambda: LongestWaitingFirst([[1]], [1], [0], fill="half"), "fill = 'half'", error=InvalidParameterError)
    refused(lambda: LowestCostFirst([[1]], [1], [0], costs=[-1.0]), "costs", error=InvalidParameterError)


def best_sum(channels, indices, present):
    """Return the largest sum of indices of present channels that fit, by brute force."""
    every = np.array(list(itertools.product((False, True), repeat=channels.n_channels)))
    every = every[(every @ channels.requests <= channels.capacities).all(axis=1) & ~(every & ~present).any(axis=1)]
    return (every @ indices).max()


def test_oracle_and_index_policies_select_exactly():
    rng = np.random.default_rng(2)
    for _ in range(25):
        n = 7
        channels = Channels(rng.integers(0, 4, (n, 3)), [5, 6, 4], rng.integers(0, 3, n), n_ports=3)
        arrivals, means = rng.random(3) < 0.8, rng.random(n)
        present = channels.present(arrivals)
        oracle = TrueMeanOracle(channels, means)
        chosen = oracle.selection(arrivals)
        assert channels.violation(chosen, arrivals) is None
        assert oracle.value(arrivals) == pytest.approx(best_sum(channels, means, present), rel=1e-12)
        space = (channels.requests, channels.capacities, channels.ports)
        for policy in (FollowTheLeader(*space, n_ports=3), Cucb(*space, width=0.3, n_ports=3)):
            for _ in range(3):
                policy.update([True] * n, rng.random(n))
            seen = policy.statistics
            bonus = math.sqrt(0.3 * math.log(4) / 3) if isinstance(policy, Cucb) else 0.0
            indices = np.minimum(seen.totals / 3 + bonus, 1.0)
            attained = indices[policy.allocate(arrivals)].sum()
            assert attained == pytest.approx(best_sum(channels, indices, present), rel=1e-12)
