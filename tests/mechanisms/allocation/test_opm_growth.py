"""OPS against the offline optimum: with known rates it gets there, and regret and fit grow as the theorems allow."""

import numpy as np
import pytest

from marketsched.mechanisms.allocation import MachineJobs, Opm, PowerUtility, offline_optimum

UTILITY = PowerUtility(3.0, 0.5)


def instance(seed, machines=10):
    rng = np.random.default_rng(seed)
    return rng.uniform(0.3, 1.0, machines), rng.uniform(0.1, 1.0, machines)


def path_of(prices, rates, horizon, budget, slack=0.0):
    """Return work rate and cost per slot of the fractional path of one job, over the whole horizon."""
    ops = Opm(prices, horizon, known_rates=rates, strict_budget=False, slack=slack, rng=0)
    ops.add_job(0, horizon, budget, UTILITY)
    work = cost = 0.0
    for _ in range(ops.horizon):
        ops.allocate()
        shares = ops.open_fractional[0]
        work, cost = work + rates @ shares, cost + ops.prices @ shares
        ops.update(np.zeros(ops.n_machines))
    return work, cost


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_with_known_rates_the_fractional_path_approaches_the_concave_optimum(seed):
    prices, rates = instance(seed)
    shortfalls = []
    for horizon in (100, 400, 1600):
        budget = 1.5 * horizon
        jobs = MachineJobs([0], [horizon], [budget], [3.0], [0.5])
        best = offline_optimum(jobs, prices, rates, tolerance=1e-9)
        work, cost = path_of(prices, rates, horizon, budget)
        assert cost <= budget * (1.0 + 1.0 / np.sqrt(horizon))
        assert work <= best.works[0] * max(1.0, cost / budget) * (1.0 + 1e-9)
        shortfalls.append(1.0 - UTILITY(work) / best.value)
    # Theorem 2 (Lemma 5): the shortfall is of order 1/sqrt(T); four times the slots, about half of it.
    scaled = np.array(shortfalls) * np.sqrt([100, 400, 1600])
    assert scaled.max() < 1.0 and shortfalls[2] < 0.02 and shortfalls[2] < shortfalls[0]


def test_with_the_theorems_slack_the_fractional_path_keeps_the_budget():
    prices, rates = instance(3)
    horizon = 1600
    budget, slack = 0.25 * 10 * horizon, 8.0 / (0.25**2 * horizon)  # 8 / (rho^2 T), rho = B / (M T): Theorem 2
    assert path_of(prices, rates, horizon, budget, slack)[1] <= budget  # Lemma 3
