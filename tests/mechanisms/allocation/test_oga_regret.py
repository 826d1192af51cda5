"""The regret of OgaSched: below the bound for any arrivals, a few percent of the best fixed allocation in practice."""

import numpy as np
import pytest

from marketsched.mechanisms.allocation import BipartiteCluster, OgaSched
from marketsched.mechanisms.allocation.oga.fixed_allocation import best_fixed_allocation
from naive_allocation import random_cluster


def regret_of(cluster, arrivals, step="theory"):
    """Regret over recorded arrivals, at most, and what the best fixed allocation earns."""
    policy, earned = OgaSched(cluster, len(arrivals), step=step), 0.0
    for counts in arrivals:
        gain, overhead = cluster.channel_rewards(counts, policy.allocate_channels())
        earned += gain.sum() - overhead.sum()
        policy.update(counts)
    best = best_fixed_allocation(cluster, arrivals.sum(axis=0))
    return best.upper - earned, best.value


def bernoulli(rng, horizon, n_ports):
    return (rng.random((horizon, n_ports)) < 0.7).astype(np.int64)


def taking_turns(rng, horizon, n_ports):
    """Ports come in long turns, so that what was learnt is wrong as soon as it is learnt."""
    turn = np.arange(horizon) // max(1, horizon // 12) % n_ports
    return (turn[:, None] == np.arange(n_ports)).astype(np.int64)


@pytest.mark.parametrize("draw", [bernoulli, taking_turns])
@pytest.mark.parametrize("gain", ["linear", None])
@pytest.mark.parametrize("step", ["theorem", "theory"])
def test_regret_stays_below_the_bound_for_these_arrivals(draw, gain, step):
    rng = np.random.default_rng(14)
    for horizon in (1, 7, 60):
        cluster = random_cluster(rng, 4, 5, 3, gain=gain)
        regret, _ = regret_of(cluster, draw(rng, horizon, 4), step)
        assert regret <= cluster.regret_bound(horizon)


@pytest.mark.compiled
def test_the_bound_holds_for_the_step_of_its_proof_and_not_for_that_of_each_slots_gradient():
    """One port has a job in a tenth of the slots, on a large instance that the other, of 100 small ones, wants, too."""
    channels = np.zeros((2, 100), dtype=bool)
    channels[0, 0], channels[1] = True, True
    capacities = np.full((100, 1), 1e-3)
    capacities[0] = 1.0
    cluster = BipartiteCluster([[1.0], [1.0]], capacities, channels, "linear", 1.0, 0.0)
    arrivals = np.tile([1, 0] + 9 * [0, 1], 400).reshape(-1, 2)
    bound = cluster.regret_bound(len(arrivals))
    assert regret_of(cluster, arrivals, "theorem")[0] < 0.2 * bound
    assert regret_of(cluster, arrivals, "theory")[0] > 2.0 * bound
    assert not OgaSched(cluster, 9, step="theorem", peek=True).bound_is_compared
