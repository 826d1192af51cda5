"""The OPM model's environment: bookkeeping against a naive version, observation rules, baselines, availability."""

import numpy as np
import pytest

from marketsched.mechanisms.allocation import (
    DeadlineAware,
    FairScheduler,
    GammaAvailability,
    MachineEnvironment,
    MachineJobs,
    Opm,
    PowerUtility,
    RecordedAvailability,
    StateSeeingFair,
    availability_from_periods,
)
from marketsched.mechanisms.allocation.slot_loop import slot_by_slot
from marketsched.mechanisms.errors import DecisionError, EventError, InvalidParameterError
from peeking import find_peeking
from refusals import refused


def small_jobs(seed=0, n=12, horizon=60):
    rng = np.random.default_rng(seed)
    arrivals = rng.integers(0, horizon - 1, n)
    deadlines = np.minimum(horizon, arrivals + rng.integers(1, 30, n))
    budgets = rng.uniform(0.2, 6.0, n) * (deadlines - arrivals)
    return MachineJobs(arrivals, deadlines, budgets, rng.uniform(1, 5, n), rng.uniform(0.5, 1.0, n))


def environment(jobs, prices, seed=3):
    return MachineEnvironment(jobs, prices, GammaAvailability(len(prices), seed), seed + 1)


def policies(prices, horizon):
    return [
        Opm(prices, horizon, primal_step=0.5, rng=1),
        Opm(prices, horizon, primal_step=0.5, rng=1, estimate=False),
        FairScheduler(prices),
        DeadlineAware(prices),
        StateSeeingFair(prices),
    ]


@pytest.mark.parametrize("which", range(5))
def test_measures_are_those_of_a_naive_bookkeeper(which):
    jobs, prices = small_jobs(), np.random.default_rng(1).choice([0.2, 0.5, 1.0], 9)
    policy, world = policies(prices, jobs.horizon)[which], environment(jobs, prices)
    works, costs, previous, slot = np.zeros(jobs.size), np.zeros(jobs.size), np.full(9, -1), 0
    for decision, outcome in slot_by_slot(policy, world, world.slots):
        slot += 1
        (work,) = outcome.feedback
        can_pay = lambda j: costs[j] + prices.min() <= jobs.budgets[j]  # noqa: E731
        moved = [p for p, d in zip(previous, decision, strict=True) if p not in (-1, d)]
        expected = {"migrations": sum(jobs.deadlines[p] >= slot and can_pay(p) for p in moved)}
        old_utility, old_excess = jobs.utilities(works).sum(), np.maximum(costs - jobs.budgets, 0).sum()
        for i in range(9):
            if decision[i] >= 0:
                assert jobs.arrivals[decision[i]] < slot <= jobs.deadlines[decision[i]]
                works[decision[i]] += work[i]
                costs[decision[i]] += prices[i]
        assert not work[decision < 0].any()
        expected |= {
            "utility": jobs.utilities(works).sum() - old_utility,
            "work": work.sum(),
            "cost": prices[decision >= 0].sum(),
            "excess": np.maximum(costs - jobs.budgets, 0).sum() - old_excess,
            "idle": (decision < 0).sum(),
            "open": ((jobs.arrivals < slot) & (jobs.deadlines >= slot)).sum(),
        }
        assert outcome.measures == pytest.approx(expected, abs=1e-9)
        previous = decision.copy()
    found = world.outcomes()
    np.testing.assert_allclose(found.works, works)
    np.testing.assert_allclose(found.costs, costs)
    np.testing.assert_allclose(found.utilities, jobs.utilities(works))
    assert (costs <= jobs.budgets).all()  # every policy here is strict


class Peeking(StateSeeingFair):
    """Claims to see jobs only, and looks at the state of the machines of the world it was built around."""

    observes = "jobs"

    def __init__(self, prices, world):
        super().__init__(prices)
        self.world = world

    def allocate(self, arriving=()):
        return super().allocate(arriving, self.world._present() >= 0.5)


def test_who_looks_at_the_state_without_saying_so_is_found():
    jobs, prices = small_jobs(1), np.ones(6)
    recorded = np.random.default_rng(0).random((jobs.horizon, 6)) < 0.6
    other = recorded.copy()
    other[30] = ~other[30]
    worlds = [MachineEnvironment(jobs, prices, RecordedAvailability(a), 2) for a in (recorded, other)]
    # Jobs agree throughout, and the state of slot 31 is drawn after its decision: 31 decisions have to agree.
    assert find_peeking(*((Peeking(prices, world), world) for world in worlds), common_slots=31) == 31
    honest = ((Opm(prices, 60, rng=1, primal_step=1.0), world) for world in worlds)
    assert find_peeking(*honest, common_slots=31) is None


@pytest.mark.parametrize(
    ("decision", "message"),
    [
        ([0, -1], "shape"),
        ([0.0, -1.0, -1.0], "whole numbers"),
        ([-2, -1, -1], "machine 0 is given to job -2"),
        ([-1, 5, -1], "machine 1 is given to job 5"),
        ([-1, -1, 1], "machine 2 is given to job 1 in slot 1"),  # arrives later
    ],
)
def test_decisions_that_are_not_allowed_are_refused_and_the_slot_is_not_played(decision, message):
    jobs = MachineJobs([0, 1], [9, 9], [5.0, 5.0], [1.0, 1.0], [0.5, 0.5])
    world = environment(jobs, np.ones(3))
    world.observation("jobs")
    with pytest.raises(DecisionError, match=message):
        world.play(np.array(decision))
    assert world.play(np.array([0, 0, -1])).measures["cost"] == 2.0


def test_fair_shares_machines_equally_and_jobs_take_turns_when_they_are_more():
    fair = FairScheduler(np.ones(10))
    for job in range(3):
        fair.add_job(job, 99, 1e6, PowerUtility(1.0, 0.5))
    first = fair.allocate()
    assert sorted(np.bincount(first).tolist()) == [3, 3, 4]
    fair.update(np.zeros(10))
    np.testing.assert_array_equal(fair.allocate(), first)  # nobody came or went: nobody moves
    many = FairScheduler(np.ones(2))
    for job in range(5):
        many.add_job(job, 99, 1e6, PowerUtility(1.0, 0.5))
    served = []
    for _ in range(5):
        served.extend(many.allocate().tolist())
        many.update(np.zeros(2))
    assert np.bincount(served).tolist() == [2] * 5


def test_deadline_aware_serves_the_closest_deadline_as_far_as_its_budget_goes():
    policy = DeadlineAware(np.ones(5))
    for job, deadline, budget in ((0, 9, 100.0), (1, 3, 2.0), (2, 3, 1.5)):
        policy.add_job(job, deadline, budget, PowerUtility(1.0, 0.5))
    assert policy.allocate().tolist() == [1, 1, 2, 0, 0]
    policy.update(np.zeros(5))
    assert policy.allocate().tolist() == [0] * 5 and policy.open_jobs.tolist() == [0]


def test_the_state_seeing_reference_uses_available_machines_and_others_if_the_budget_is_plenty():
    rich = StateSeeingFair(np.ones(4))
    rich.add_job(7, 9, 36.0, PowerUtility(1.0, 0.5))  # four machines in nine slots
    assert rich.allocate((), [True, False, True, False]).tolist() == [7, 7, 7, 7]
    policy = StateSeeingFair(np.ones(4))
    policy.add_job(7, 9, 34.0, PowerUtility(1.0, 0.5))
    assert policy.allocate((), [True, False, True, False]).tolist() == [7, -1, 7, -1]
    policy.update(np.zeros(4))
    refused(lambda: policy.allocate((), [True]), "available", error=InvalidParameterError)
    with pytest.raises(EventError):
        policy.update(np.zeros(4))  # the refused slot was not begun


@pytest.mark.compiled
def test_gamma_availability_is_stationary_with_the_periods_asked_for():
    process = GammaAvailability(4000, 5, up=(2.0, 10.0), down=(1.5, 4.0))
    assert process.share == pytest.approx(20 / 26)
    up = np.array([process.next() for _ in range(120)])
    for t in (0, 60, 119):  # stationary from the first slot on
        assert abs(up[t].mean() - process.share) < 5.0 * np.sqrt(process.share * (1 - process.share) / 4000)
    ends = (up[:-1] == 1) & (up[1:] == 0)
    # Periods end once per cycle of mean 26; a down period that misses every middle of a slot is not seen.
    assert ends.mean() == pytest.approx(1 / 26, rel=0.1) and ends.mean() < 1 / 26
    process.begin()
    np.testing.assert_array_equal(process.next(), up[0])


def test_covered_parts_against_a_fine_grid():
    rng = np.random.default_rng(0)
    which, begin = rng.integers(0, 4, 40), np.round(rng.uniform(-5, 40, 40), 2)
    end = begin + np.round(rng.exponential(3.0, 40), 2)
    found = availability_from_periods(which, begin, end, n_machines=4, slots=12, slot_length=3.0)
    grid = (np.arange(3600) + 0.5) / 100.0
    up = ~np.array([((begin[which == m, None] <= grid) & (grid < end[which == m, None])).any(axis=0) for m in range(4)])
    np.testing.assert_allclose(found, up.reshape(4, 12, 300).mean(axis=2).T, atol=1e-6)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"arrivals": [-1]}, "arrivals"),
        ({"deadlines": [2]}, r"deadlines\[0\] = 2: expected a slot after"),
        ({"deadlines": [3.5]}, "deadlines"),
        ({"budgets": [0.0]}, r"budgets\[0\] = 0"),
        ({"weights": [np.nan]}, "weights"),
        ({"exponents": [1.5]}, "exponents"),
        ({"budgets": [1.0, 2.0]}, "budgets has shape"),
        ({"demands": [0.0]}, "demands"),
        ({"limits": [0]}, "limits"),
    ],
)
def test_bad_jobs_are_named(change, message):
    legal = {"arrivals": [2], "deadlines": [5], "budgets": [1.0], "weights": [1.0], "exponents": [0.5]}
    with pytest.raises(InvalidParameterError, match=message):
        MachineJobs(**{**legal, **change})


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda jobs: MachineEnvironment(jobs, [1.0], GammaAvailability(2)), "prices has shape"),
        (lambda jobs: MachineEnvironment(jobs, [1.0], RecordedAvailability(np.ones((3, 1)))), "lasts 3 slots"),
        (lambda jobs: MachineEnvironment(jobs, [1.0], GammaAvailability(1), speeds=((0.7, 0.5), (0, 0.1))), "speeds"),
        (lambda jobs: RecordedAvailability(np.full((2, 2), 1.5)), "available"),
        (lambda jobs: RecordedAvailability(np.zeros((0, 2), dtype=bool)), "available"),
        (lambda jobs: GammaAvailability(1, up=(0.0, 1.0)), "up shape"),
        (
            lambda jobs: availability_from_periods([0], [5.0], [4.0], n_machines=1, slots=1, slot_length=1.0),
            r"ends\[0\]",
        ),
        (lambda jobs: availability_from_periods([2], [0], [4], n_machines=1, slots=1, slot_length=1.0), "machines"),
    ],
)
def test_bad_worlds_are_refused(make, message):
    with pytest.raises(InvalidParameterError, match=message):
        make(small_jobs())
