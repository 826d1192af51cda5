"""OPM with demands, capacities and limits (Section V-C)."""

import numpy as np
import pytest

from marketsched.mechanisms.allocation import (
    GammaAvailability,
    GeneralEnvironment,
    GeneralOpm,
    MachineJobs,
    Opm,
    PowerUtility,
)
from marketsched.mechanisms.allocation.slot_loop import slot_by_slot
from marketsched.mechanisms.errors import DecisionError, EventError, InvalidParameterError
from refusals import refused

CAPACITIES = np.array([1.0, 2.0, 0.7, 4.0, 1.5])
PRICES = np.array([0.3, 0.9, 0.5, 0.2, 1.0])


def general_jobs(seed=0, n=10, horizon=40):
    rng = np.random.default_rng(seed)
    arrivals = rng.integers(0, horizon // 2, n)
    deadlines = np.minimum(horizon, arrivals + rng.integers(5, horizon, n))
    return MachineJobs(
        arrivals, deadlines, rng.uniform(0.2, 2.0, n) * (deadlines - arrivals), rng.uniform(1, 5, n), np.full(n, 0.6),
        rng.uniform(0.2, 1.2, n), rng.integers(1, 4, n),
    )  # fmt: skip


def world_of(jobs):
    return GeneralEnvironment(jobs, PRICES, CAPACITIES, GammaAvailability(5, 1), 2)


@pytest.mark.parametrize("seed", range(4))
def test_every_slot_is_legal_and_budgets_hold(seed):
    jobs = general_jobs(seed)
    opm = GeneralOpm(PRICES, CAPACITIES, jobs.horizon, primal_step=0.5, rng=seed)
    costs, drawn, planned, ran = np.zeros(jobs.size), 0, 0.0, 0
    for tasks, outcome in slot_by_slot(opm, world_of(jobs), jobs.horizon):  # the environment refuses what is not legal
        shares, rows = opm.open_fractional, opm.open_jobs
        demands = jobs.demands[rows]
        assert (demands @ shares <= CAPACITIES * (1 + 1e-9)).all()
        assert (shares.sum(axis=1) <= jobs.limits[rows] + 1e-9).all()
        np.add.at(costs, tasks[:, 0], PRICES[tasks[:, 1]])
        drawn, planned, ran = drawn + len(tasks), planned + shares.sum(), ran + outcome.measures["work"]
    assert (costs <= jobs.budgets).all()
    assert drawn > 50 and ran > 10.0
    assert drawn <= planned + 5.0 * np.sqrt(planned)  # strict budgets only ever take tasks away


def test_with_one_task_per_machine_it_is_opm():
    jobs = general_jobs(3)
    simple = MachineJobs(jobs.arrivals, jobs.deadlines, jobs.budgets, jobs.weights, jobs.exponents)
    general = GeneralOpm(PRICES, np.ones(5), 40, primal_step=0.2, known_rates=np.full(5, 0.6), strict_budget=False,
                         tolerance=1e-15, rng=0)  # fmt: skip
    opm = Opm(PRICES, 40, primal_step=0.2, known_rates=np.full(5, 0.6), strict_budget=False, rng=0)
    for slot in range(1, 41):
        offers = [simple.offer(j) for j in np.flatnonzero(simple.arrivals == slot - 1).tolist()]
        general.allocate(offers)
        opm.allocate(offers)
        np.testing.assert_array_equal(general.open_jobs, opm.open_jobs)
        np.testing.assert_allclose(general.open_fractional, opm.open_fractional, atol=1e-5)
        general.update(np.zeros(5))
        opm.update(np.zeros(5))


@pytest.mark.parametrize(
    ("tasks", "message"),
    [
        ([[0, 0], [1, 0]], "machine 0 demand more"),
        ([[0, 1], [0, 3]], "job 0 runs more tasks"),
        ([[1, 3], [1, 3]], "twice"),
        ([[2, 0]], "task 0 names a job"),
        ([[0, 9]], "task 0 names a job"),
        ([0, 1], "shape"),
    ],
)
def test_illegal_tasks_are_refused(tasks, message):
    jobs = MachineJobs(
        [0, 0, 5], [9, 9, 9], [9.0, 9.0, 9.0], [1.0] * 3, [0.5] * 3, demands=[0.6, 0.6, 0.1], limits=[1, 2, 1]
    )
    with pytest.raises(DecisionError, match=message):
        world_of(jobs).play(np.array(tasks))


def test_a_stopped_task_of_a_job_that_could_go_on_is_a_migration():
    jobs = MachineJobs([0], [9], [9.0], [1.0], [0.5], demands=[0.5], limits=[3])
    world = world_of(jobs)
    world.play(np.array([[0, 0], [0, 1]]))
    assert world.play(np.array([[0, 1], [0, 3]])).measures["migrations"] == 1.0


def test_bad_input_is_named():
    opm = GeneralOpm(PRICES, CAPACITIES, 10, rng=0)
    with pytest.raises(InvalidParameterError, match=r"demand of job 0 = 5.0: expected at most 4"):
        opm.add_job(0, 9, 5.0, PowerUtility(1.0, 0.5), demand=5.0)
    with pytest.raises(InvalidParameterError, match="limit of job 0"):
        opm.add_job(0, 9, 5.0, PowerUtility(1.0, 0.5), limit=0)
    refused(lambda: GeneralOpm(PRICES, [1.0], 10), "capacities", error=InvalidParameterError)
    assert opm.allocate().shape == (0, 2)
    with pytest.raises(InvalidParameterError, match=r"work\[1\] = 0.5: expected at most 0"):
        opm.update([0.0, 0.5, 0.0, 0.0, 0.0])
    opm.update(np.zeros(5))
    refused(lambda: opm.update(np.zeros(5)), "expected allocate", error=EventError)
    with pytest.raises(InvalidParameterError, match=r"demands\[0\] = 9.0"):
        world_of(MachineJobs([0], [9], [9.0], [1.0], [0.5], demands=[9.0]))
