"""The rank of an owner's jobs is kept between rounds: thresholds are those of a plain walk through its last jobs."""

from dataclasses import dataclass

import numpy as np
import pytest

from draws import many
from marketsched.mechanisms.credits.cluster_present import Present
from marketsched.mechanisms.credits.pool_upgrades import PoolUpgrades
from marketsched.mechanisms.credits.pools import PoolPurses
from marketsched.mechanisms.credits.purses import CREDIT
from marketsched.mechanisms.credits.upgrades import FEWEST, REMEMBERED, Spans
from marketsched.mechanisms.resources.cluster import Cluster, NodeGroup
from marketsched.mechanisms.schedulers.turns import Accounts
from node_requests import CPU

CLUSTER = Cluster((CPU,), [NodeGroup("a", "a", 2, {"cpu": 8}), NodeGroup("c", "c", 4, {"cpu": 8})])
KAPPA = 0.7


def threshold(jobs, of, income, left, now):
    """Walk through an owner's jobs as pairs of importance and credits in each pool, with their arrivals."""
    own = [(important, sum(work[pool] for pool in of), at) for important, work, at in jobs[-REMEMBERED:]]
    own = [row for row in own if row[1] > 0]
    if len(own) < FEWEST:
        return 0.0
    total = sum(work for _, work, _ in own)
    a_round = total / max(Spans().shortest, now - min(at for *_, at in own) + 1.0) * KAPPA
    most, above = (income + max(0.0, left) / Spans().savings_last) / a_round * total, 0.0
    for important, work, _ in sorted(own, key=lambda row: -row[0]):
        above += work
        if above > most:
            return important
    return 0.0


@dataclass
class Options:
    """The pools that a job accepts."""

    pool: np.ndarray


@dataclass
class Coming:
    """What of a job counts."""

    owner: int
    options: Options
    costs: np.ndarray
    means: np.ndarray
    important: float
    row_in = Present.row_in


def coming(rng, owner):
    """Return what of a job counts, its importance, and its credits by pool while all pools weigh the same."""
    pools = [[0], [1], [0, 1]][rng.integers(3)]
    mean, important = float(rng.integers(1, 40)), float(rng.integers(1, 9))
    pools = pools[:: rng.choice([-1, 1])]  # in either order
    costs = rng.integers(1, 9, len(pools)) * CREDIT // 8
    job = Coming(owner, Options(np.array(pools)), costs, np.full(len(pools), mean), important)
    nodes = np.array([2, 4])
    work = np.zeros(2)
    work[pools] = costs / CREDIT * mean * nodes[pools] / nodes[pools].sum()
    return job, work


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("of", ["pool", "one"])
def test_kept_ranks_give_the_threshold_of_a_plain_walk(of):
    above_0 = 0
    for seed in range(many(20)):
        rng = np.random.default_rng(seed)
        pools = PoolPurses(Accounts(None, "", ["ann", "bob"]), CLUSTER, 0.5, 8.0, 1.0, of)
        choice, known = PoolUpgrades(pools, Spans()), {0: [], 1: []}
        for now in range(1, 140):
            owner = int(rng.integers(2))
            if of == "one" and now % 8 == 0:  # weights move
                pools.weights.of_pool = rng.uniform(0.2, 2.0, 2)
            for asked in (0, 1):
                pool, left = int(rng.integers(2)), float(rng.uniform(-1, 40))
                income = float(pools.of_pool(pool).incomes[asked]) / CREDIT
                weighed = [(important, work * pools.weights.of_pool, at) for important, work, at in known[asked]]
                expected = threshold(weighed, [pool] if of == "pool" else [0, 1], income, left, now)
                assert choice._threshold(asked, pool, left, now, KAPPA) == expected
                above_0 += expected > 0
            job, work = coming(rng, owner)
            choice.remember(job, now)
            known[owner].append((job.important, work, now))
    assert above_0 > 50 * many(20)
