"""The offline optimum: against cvxpy, closed forms, and its own certificate."""

import cvxpy as cp
import numpy as np
import pytest

from marketsched.mechanisms.allocation import MachineJobs, Opm, offline_optimum
from marketsched.mechanisms.allocation.opm.offline import regret
from marketsched.mechanisms.errors import InvalidParameterError, SolverError, TooLargeError
from refusals import refused


def instance(seed, n=5, machines=4, horizon=20):
    rng = np.random.default_rng(seed)
    arrivals = rng.integers(0, horizon - 1, n)
    deadlines = np.minimum(horizon, arrivals + rng.integers(1, horizon, n))
    budgets = rng.uniform(0.2, 2.0, n) * (deadlines - arrivals)
    jobs = MachineJobs(arrivals, deadlines, budgets, rng.uniform(1, 5, n), rng.choice([0.5, 0.75, 1.0], n))
    return jobs, rng.uniform(0.2, 1.0, machines), rng.uniform(0.05, 1.0, machines)


def by_slots(jobs, prices, rates, amplitudes):
    """Solve P1 with a variable for every job, machine and slot."""
    slots = np.arange(1, jobs.horizon + 1)
    there = (jobs.arrivals[:, None] < slots) & (slots <= jobs.deadlines[:, None])
    shares = [cp.Variable((prices.size, slots.size), nonneg=True) for _ in range(jobs.size)]
    rules = [sum(shares) <= 1]
    utilities = []
    for j, x in enumerate(shares):
        per_machine = x @ there[j].astype(float)
        rules += [prices @ per_machine <= jobs.budgets[j]]
        utilities.append(amplitudes[j] * cp.power(rates @ per_machine, float(jobs.exponents[j])))
    problem = cp.Problem(cp.Maximize(sum(utilities)), rules)
    problem.solve(solver=cp.CLARABEL)
    return problem.value


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("objective", ["utility", "per-slot"])
def test_the_optimum_is_that_of_a_program_over_all_slots(seed, objective):
    jobs, prices, rates = instance(seed)
    found = offline_optimum(jobs, prices, rates, objective=objective, tolerance=1e-7)
    amplitudes = jobs.weights * (jobs.durations ** (1.0 - jobs.exponents) if objective == "per-slot" else 1.0)
    assert found.value == pytest.approx(by_slots(jobs, prices, rates, amplitudes), rel=1e-5)
    assert found.value <= found.bound and found.gap <= 1e-7


def test_works_are_worth_the_value():
    jobs, prices, rates = instance(0, n=12, machines=7, horizon=40)
    rates[2:4], prices[2:4] = 0.6, 0.5  # two machines of one kind
    found = offline_optimum(jobs, prices, rates)
    assert jobs.utilities(found.works).sum() == pytest.approx(found.value) and found.gap <= 1e-4


@pytest.mark.parametrize("seed", range(3))
def test_no_run_with_known_speeds_beats_the_bound(seed):
    jobs, prices, rates = instance(seed, n=8, machines=6, horizon=50)
    best = offline_optimum(jobs, prices, rates)
    opm = Opm(prices, jobs.horizon, primal_step=0.3, known_rates=rates, rng=1)
    works = np.zeros(jobs.size)
    for slot in range(1, jobs.horizon + 1):
        for j in np.flatnonzero(jobs.arrivals == slot - 1).tolist():
            opm.add_job(j, int(jobs.deadlines[j]), float(jobs.budgets[j]), jobs.offer(j).utility)
        decision = opm.allocate()
        np.add.at(works, decision[decision >= 0], rates[decision >= 0])
        opm.update(rates)
    assert 0.3 * best.bound < jobs.utilities(works).sum() <= best.bound
    per_slot = offline_optimum(jobs, prices, rates, objective="per-slot")
    assert regret(jobs, per_slot, works) > 0.0


def test_what_cannot_be_solved_is_named():
    jobs, prices, rates = instance(0)
    refused(lambda: offline_optimum(jobs, prices, rates, objective="welfare"), "objective", error=InvalidParameterError)
    refused(lambda: offline_optimum(jobs, prices, np.zeros(4)), "highest rate 0", error=InvalidParameterError)
    refused(lambda: offline_optimum(jobs, prices, np.full(4, 1.5)), "rates[0]", error=InvalidParameterError)
    with pytest.raises(SolverError, match="after 1 programs"):
        offline_optimum(jobs, prices, rates, tolerance=1e-12, max_programs=1)
    many = MachineJobs(np.arange(3000), np.arange(3000) + 3000, np.ones(3000), np.ones(3000), np.full(3000, 0.5))
    refused(lambda: offline_optimum(many, [1.0], [0.5]), "variables", error=TooLargeError)
