"""The exact optimum in hindsight: equal to trying everything, and honest about what it did not prove."""

import _thread
import sys
import threading
import time

import numpy as np
import pytest

from draws import many
from marketsched.mechanisms import DeadlineValue, InvalidParameterError, SolverError, StatementOfWork
from marketsched.mechanisms.auctions.flat_price import best_first_come, first_come_welfare
from marketsched.mechanisms.realised import RealisedJobs
from marketsched.relaxed_lp import dual_bound, hindsight, hindsight_optimum, offline_bound, packing, realised_bound
from naive_programs import best_schedule, random_jobs, worth
from refusals import refused


def faults(jobs, capacity, horizon, optimum, max_delay=None):
    """What is wrong with a schedule, from the statements alone."""
    found, load, value = [], [0] * (horizon + 2), 0.0
    if optimum.starts.shape != (len(jobs),):
        return ["shape"]
    for (sow, arrival, d), s in zip(jobs, optimum.starts.tolist(), strict=True):
        if s == 0:
            continue
        if arrival is None or s < arrival:
            found.append("starts before it arrives")
            continue
        value += worth(sow, s + d, horizon, max_delay)
        for t in range(s, s + d):
            if t > horizon:
                found.append("runs beyond the horizon")
                break
            load[t] += sow.concurrency
    if max(load) > capacity:
        found.append("overload")
    if abs(value - optimum.value) > 1e-9 * max(1.0, value):
        found.append("value")
    if not optimum.bound >= optimum.value or optimum.gap != optimum.bound - optimum.value:
        found.append("bound")
    return found


def crowd(n_jobs=60, horizon=24, seed=0, capacity=6):
    """Jobs that compete hard: the search takes a while."""
    rng = np.random.default_rng(seed)
    jobs = []
    for _ in range(n_jobs):
        b, d = int(rng.integers(1, horizon - 6)), int(rng.integers(1, 7))
        curve = DeadlineValue(float(rng.uniform(1, 9)) * d, b + d + int(rng.integers(0, 9)))
        jobs.append((StatementOfWork(b, int(rng.integers(1, 5)), curve, [(b, d, 1.0)]), b, d))
    return jobs, capacity, horizon


# -- equal to trying everything ----------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(many(300)))
def test_equals_the_best_of_all_schedules(seed):
    rng = np.random.default_rng([21, seed])
    horizon, capacity = int(rng.integers(2, 9)), int(rng.integers(1, 5))
    jobs = random_jobs(rng, int(rng.integers(1, 7)), horizon)
    max_delay = None if rng.random() < 0.5 else int(rng.integers(1, 7))
    optimum = hindsight_optimum(jobs, capacity, horizon, max_delay=max_delay)
    assert faults(jobs, capacity, horizon, optimum, max_delay) == []
    assert optimum.proven and optimum.gap <= 1e-9 * max(1.0, optimum.value)
    assert optimum.value == pytest.approx(best_schedule(jobs, capacity, horizon, max_delay), rel=1e-9)


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("seed", range(many(10, least=3)))
def test_between_first_come_and_the_relaxed_bounds(seed):
    jobs, capacity, horizon = crowd(25, 16, seed)
    realised = RealisedJobs.build(jobs, horizon=horizon, max_delay=99)
    optimum = hindsight_optimum(realised, capacity, horizon)
    assert optimum.proven and faults(jobs, capacity, horizon, optimum) == []
    assert hindsight_optimum(jobs, capacity, horizon).value == pytest.approx(optimum.value, rel=1e-12)
    assert best_first_come(realised, capacity, horizon).welfare <= optimum.value + 1e-9
    relaxed = realised_bound(realised, capacity, horizon).value
    assert optimum.value <= relaxed * (1 + 1e-9) <= dual_bound(realised, capacity, horizon).value * (1 + 2e-9)
    assert relaxed == pytest.approx(offline_bound([sow for sow, _, _ in jobs], capacity, horizon).value, rel=1e-9)


def test_the_knapsack_inside(capfd):
    """Values and widths of a knapsack; the dearest or the densest first would be worse. The solver prints nothing."""
    rows = [(60.0, 5), (50.0, 4), (44.0, 4), (5.0, 1)]
    jobs = [(StatementOfWork(1, c, DeadlineValue(v, 2), [(1, 1, 1.0)]), 1, 1) for v, c in rows]
    optimum = hindsight_optimum(jobs, 8, 1)
    assert optimum.value == 94.0 and optimum.starts.tolist() == [0, 1, 1, 0]
    assert optimum.value == best_schedule(jobs, 8, 1) and optimum.proven
    assert capfd.readouterr() == ("", "")


# -- stopped -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "limit",
    [
        {"node_limit": 0},
        pytest.param({"node_limit": 3}, marks=pytest.mark.slow),
        {"time_limit": 1e-3},
        pytest.param({"time_limit": 0.05}, marks=pytest.mark.slow),
    ],
)
def test_a_stopped_search_claims_nothing_it_did_not_prove(limit):
    jobs, capacity, horizon = crowd()
    stopped = hindsight_optimum(jobs, capacity, horizon, **limit)
    assert not stopped.proven and stopped.gap > 1e-6 * stopped.value
    assert faults(jobs, capacity, horizon, stopped) == []
    realised = RealisedJobs.build(jobs, horizon=horizon, max_delay=99)
    assert stopped.value >= first_come_welfare(realised, capacity, horizon, 0.0).welfare
    relaxed = realised_bound(realised, capacity, horizon).value
    assert stopped.value <= relaxed and np.isfinite(stopped.bound)


@pytest.mark.parametrize("seed", range(many(60)))
def test_bounds_of_a_stopped_search_hold(seed):
    rng = np.random.default_rng([22, seed])
    jobs, capacity = random_jobs(rng, 6, 8), int(rng.integers(1, 4))
    stopped = hindsight_optimum(jobs, capacity, 8, node_limit=0)
    best = best_schedule(jobs, capacity, 8)
    assert stopped.value <= best + 1e-9 <= stopped.bound + 2e-9 and faults(jobs, capacity, 8, stopped) == []
    if stopped.proven:
        assert stopped.value == pytest.approx(best, rel=1e-9)


@pytest.mark.parametrize(("module", "limit"), [(hindsight, "MOST_STARTS"), (packing, "MOST_NONZEROS")])
def test_what_is_too_large_is_not_searched(monkeypatch, module, limit):
    monkeypatch.setattr(module, limit, 50)
    jobs, capacity, horizon = crowd()
    optimum = hindsight_optimum(jobs, capacity, horizon)
    assert not optimum.proven and optimum.seconds == 0.0 and faults(jobs, capacity, horizon, optimum) == []


@pytest.mark.slow
def test_ctrl_c_stops_the_search():
    jobs, capacity, horizon = crowd(300, 120)
    timer = threading.Timer(1.0, _thread.interrupt_main)
    timer.start()
    began = time.perf_counter()
    with pytest.raises(KeyboardInterrupt):
        hindsight_optimum(jobs, capacity, horizon, time_limit=60)
    assert time.perf_counter() - began < 30
    assert not [thread for thread in threading.enumerate() if thread.name == "hindsight" and thread.is_alive()]


# -- a wrong schedule is noticed ---------------------------------------------------------------------------


def tampered(optimum, jobs):
    """Damaged copies of a schedule, by name."""
    run = int(np.flatnonzero(optimum.starts)[0])
    idle = int(np.flatnonzero(optimum.starts == 0)[0])
    early, extra, late = (optimum.starts.copy() for _ in range(3))
    early[run] = jobs[run][1] - 1
    extra[idle] = jobs[idle][1]
    late[run] = 99
    return {"early": early, "extra": extra, "late": late}


@pytest.mark.parametrize("kind", ["early", "extra", "late"])
def test_a_tampered_schedule_is_caught(kind):
    """Negative control, for the checker of this file and for the one inside."""
    jobs, capacity, horizon = crowd(30, 16, 1)
    optimum = hindsight_optimum(jobs, capacity, horizon, node_limit=0)
    starts = tampered(optimum, jobs)[kind]
    copy = type(optimum)(optimum.value, starts, False, optimum.bound, optimum.gap, 0, 0.0)
    assert faults(jobs, capacity, horizon, copy) != []
    realised = RealisedJobs.build(jobs, horizon=horizon, max_delay=99)
    hindsight._check_schedule(realised, optimum.starts, capacity)
    if kind == "extra":  # perhaps it just fits: fill the round
        starts = np.where(optimum.starts > 0, optimum.starts, [a for _, a, _ in jobs])
    with pytest.raises(SolverError, match="HiGHS returned a schedule"):
        hindsight._check_schedule(realised, starts, capacity)


# -- ends --------------------------------------------------------------------------------------------------


def test_jobs_that_cannot_run():
    curve = DeadlineValue(5.0, 9)
    wide, never, late = (StatementOfWork(1, c, curve, [(1, 2, 1.0)]) for c in (3, 1, 1))
    jobs = [(wide, 1, 2), (never, None, 2), (late, 9, 2)]
    optimum = hindsight_optimum(jobs, 2, 9)
    assert (optimum.value, optimum.bound, optimum.gap, optimum.proven) == (0.0, 0.0, 0.0, True)
    assert optimum.starts.tolist() == [0, 0, 0]
    best = hindsight_optimum([*jobs, (late, 1, 2)], 2, 9)
    assert best.value == 5.0 and best.proven and best.starts.tolist() == [0, 0, 0, best.starts[3]]


SOW = StatementOfWork(1, 1, DeadlineValue(1.0, 5), [(1, 1, 1.0)])
REALISED = RealisedJobs.build([(SOW, 1, 1)], horizon=9, max_delay=9)


@pytest.mark.parametrize(
    ("jobs", "options", "message"),
    [
        ([], {}, "jobs is empty"),
        ([(SOW, 1, 1)], {"node_limit": -1}, "node_limit = -1"),
        ([(SOW, 1, 1)], {"max_delay": 0}, "max_delay = 0"),
        (REALISED, {"horizon": 5}, "horizon = 5: expected 9"),
        (REALISED, {"max_delay": 9}, "max_delay = 9: expected None"),
    ],
)
def test_bad_arguments_are_named(jobs, options, message):
    arguments = {"capacity": 2, "horizon": 9, **options}
    with pytest.raises(ValueError, match=message) as caught:
        hindsight_optimum(jobs, **arguments)
    assert isinstance(caught.value, InvalidParameterError)


def test_a_missing_solver_is_an_error_that_says_what_to_do(monkeypatch):
    jobs, capacity, horizon = crowd(20, 12, 0)
    monkeypatch.setitem(sys.modules, "highspy", None)
    refused(lambda: hindsight_optimum(jobs, capacity, horizon), "pip install highspy", error=SolverError)


def test_any_other_end_is_an_error(monkeypatch):
    import highspy

    jobs, capacity, horizon = crowd(20, 12, 0)
    monkeypatch.setattr(highspy.Highs, "getModelStatus", lambda self: highspy.HighsModelStatus.kSolveError)
    refused(lambda: hindsight_optimum(jobs, capacity, horizon), "ended with ", "kSolveError", error=SolverError)


@pytest.mark.parametrize("seed", range(12))
def test_jobs_of_very_different_worth_all_count(seed):
    """Values over seven decades: what is proven optimal is optimal to a billionth of the dearest job."""
    rng = np.random.default_rng(seed)
    jobs = []
    for _ in range(5):
        d, birth, worth_it = int(rng.integers(1, 3)), int(rng.integers(1, 4)), float(10.0 ** rng.uniform(0, 7))
        jobs.append((StatementOfWork(birth, 1, DeadlineValue(worth_it, birth + d + 1), [(birth, d, 1.0)]), birth, d))
    found = hindsight_optimum(jobs, 2, 8)
    best = best_schedule(jobs, 2, 8)
    highest = max(sow.value.highest for sow, _, _ in jobs)
    assert found.proven
    assert abs(found.value - best) <= 2e-8 * highest
    assert found.bound >= best - 1e-9 * highest
