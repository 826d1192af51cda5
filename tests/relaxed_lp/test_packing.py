"""The packing program: optimal by its certificate, right whatever the solver did, compiled once."""

import sys
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from draws import many
from marketsched.mechanisms import DeadlineValue, InvalidParameterError, SolverError, StatementOfWork, TooLargeError
from marketsched.relaxed_lp import PackingProgram, packing, tasks_of_laws, tasks_of_plans, tasks_of_reports
from naive_programs import optimum, random_statement, starts_of_plans, starts_of_reports
from refusals import refused


def instance(seed, revealed=True, n_jobs=8, scale=1.0):
    """A random program, its supply, and its variables by definition."""
    rng = np.random.default_rng([7, seed])
    horizon, supply = int(rng.integers(3, 10)), float(rng.uniform(0.3, 4))
    sows = [random_statement(rng, horizon, revealed=revealed) for _ in range(n_jobs)]
    build, naive = (tasks_of_reports, starts_of_reports) if revealed else (tasks_of_plans, starts_of_plans)
    return PackingProgram(build(sows, horizon), horizon), supply * scale, naive(sows, horizon)


def crowd(n_jobs=400, horizon=120, seed=0):
    """A program that takes the solver a while."""
    rng = np.random.default_rng(seed)
    sows = []
    for _ in range(n_jobs):
        b, d = int(rng.integers(1, horizon - 20)), int(rng.integers(1, 12))
        curve = DeadlineValue(float(rng.uniform(1, 9)) * d, b + d + int(rng.integers(0, 20)))
        sows.append(StatementOfWork(b, int(rng.integers(1, 4)), curve, [(b, d, 1.0)]))
    return PackingProgram(tasks_of_reports(sows, horizon), horizon), 12.0


def violations(program, supply, solution):
    """How far the solution is from satisfying each condition of Karush, Kuhn and Tucker, in units of its scale."""
    x, prices, tasks = solution.allocation, solution.prices, program.tasks
    surplus = tasks.values - program.usage.T @ prices
    profit = np.zeros(tasks.n_tasks)  # the dual variable of each task
    np.maximum.at(profit, program.column_task, surplus)
    room, left = supply - program.usage @ x, tasks.weights - program.choice @ x
    money, nodes = max(1.0, float(tasks.values.max(initial=0.0))), max(1.0, supply)
    total = max(1.0, solution.value)
    return {
        "allocation >= 0": -x.min(initial=0.0),
        "slots": -room.min() / nodes,
        "tasks": -left.min(initial=0.0),
        "prices >= 0": -prices.min() / money,
        "profit >= surplus": (surplus - profit[program.column_task]).max(initial=0.0) / money,
        "prices only where full": float(prices @ room) / total,
        "profit only where used up": float(profit @ left) / total,
        "starts only where best": float((profit[program.column_task] - surplus) @ x) / total,
    }


# -- optimal -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("revealed", [True, False])
@pytest.mark.parametrize("seed", range(many(60)))
def test_certificate_and_an_independent_solution(seed, revealed):
    program, supply, naive = instance(seed, revealed)
    solution = program.solve(supply)
    assert max(violations(program, supply, solution).values()) <= 1e-7
    assert solution.optimal and 0 <= solution.gap <= 1e-7 * max(1.0, solution.value)
    assert solution.value == pytest.approx(optimum(naive, supply, program.horizon), rel=1e-7, abs=1e-7)


@pytest.mark.parametrize(("supply", "method"), [(3.0, "simplex"), (12.0, "simplex"), (40.0, "ipm"), (60.0, "ipm")])
def test_certificate_of_larger_programs(supply, method):
    program, _ = crowd()
    assert program._method(supply) == method
    assert max(violations(program, supply, program.solve(supply)).values()) <= 1e-7


def test_a_wrong_certificate_is_found():
    """Negative control: each kind of damage breaks one of the conditions."""
    program, supply = crowd(60, 40)
    supply = 4.0
    solution = program.solve(supply)
    assert max(violations(program, supply, solution).values()) <= 1e-7

    def damaged(**changes):
        parts = {"allocation": solution.allocation, "prices": solution.prices, "value": solution.value, **changes}
        return violations(program, supply, type("Damaged", (), parts)).values()

    used = int(np.argmax(solution.allocation))
    more, less = solution.allocation.copy(), solution.allocation.copy()
    more[used] += 0.01
    less[used] -= 0.01
    assert max(damaged(allocation=more)) > 1e-4
    assert max(damaged(allocation=less)) > 1e-7
    assert max(damaged(prices=solution.prices * 1.01)) > 1e-4
    assert max(damaged(prices=solution.prices * 0.99)) > 1e-4


@pytest.mark.parametrize("revealed", [True, False])
@pytest.mark.parametrize("seed", range(10))
def test_matrices_are_those_of_the_definition(seed, revealed):
    program, _, naive = instance(seed, revealed)
    job = program.tasks.jobs[program.column_task]
    value, weight = program.tasks.values, program.tasks.weights[program.column_task]
    found = np.column_stack((job, program.column_start, value, weight, program.usage.toarray().T))
    rounds = range(1, program.horizon + 1)
    expected = [[v.task[0], v.start, v.value, v.weight, *(v.usage.get(t, 0.0) for t in rounds)] for v in naive]
    rows = [sorted(np.round(part, 9).tolist()) for part in (found, np.array(expected).reshape(-1, found.shape[1]))]
    assert np.array(rows[0]) == pytest.approx(np.array(rows[1]), abs=1e-8)
    choice = program.choice.toarray()
    assert (choice.sum(axis=0) == 1).all()
    assert (choice[program.column_task, np.arange(program.tasks.n_starts)] == 1).all()


# -- proven, whatever the solver did -----------------------------------------------------------------------


@given(st.integers(0, 30), st.data())
def test_any_prices_bound_every_allocation(seed, data):
    program, supply, naive = instance(seed, seed % 2 == 0)
    prices = data.draw(st.lists(st.floats(0, 10), min_size=program.horizon, max_size=program.horizon))
    best = optimum(naive, supply, program.horizon)
    assert program.dual_value(np.array(prices), supply) >= best - 1e-9


@settings(max_examples=many(50))
@given(st.integers(0, 30), st.integers(0, 2**32 - 1))
def test_nonsense_from_the_solver_is_made_feasible_and_bounded(seed, noise):
    program, supply, naive = instance(seed)
    rng = np.random.default_rng(noise)

    class Nonsense:
        def run(self, supply, method, time_limit):
            x = rng.normal(0, 1, program.tasks.n_starts)
            return x, rng.normal(0, 1, program.horizon), False, 0.0

    program._compiled = Nonsense()
    solution = program.solve(supply)
    best = optimum(naive, supply, program.horizon)
    found = violations(program, supply, solution)
    assert max(found[name] for name in ("allocation >= 0", "slots", "tasks", "prices >= 0")) <= 1e-12
    assert solution.value <= best + 1e-9 <= solution.dual_value + 2e-9
    assert solution.gap == solution.dual_value - solution.value
    assert program.dual_value(solution.prices, supply) == pytest.approx(solution.dual_value, rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("status", ["infeasible", "unbounded", "infeasible_or_unbounded", "optimal_inaccurate", None])
def test_any_other_end_is_an_error(monkeypatch, status):
    import cvxpy

    program, supply, _ = instance(0)
    monkeypatch.setattr(cvxpy.Problem, "status", property(lambda self: status))
    with pytest.raises(SolverError, match=f"status {status!r}: expected 'optimal'"):
        program.solve(supply)


def test_a_solver_that_fails_is_an_error(monkeypatch):
    import cvxpy

    def fail(self, *args, **kwargs):
        raise cvxpy.error.SolverError("it broke")

    program, supply, _ = instance(0)
    monkeypatch.setattr(cvxpy.Problem, "solve", fail)
    refused(lambda: program.solve(supply), "HiGHS failed: it broke", error=SolverError)


def test_a_missing_solver_is_an_error_that_says_what_to_do(monkeypatch):
    import cvxpy

    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "highspy", None)
        program, supply, _ = instance(0)
        refused(lambda: program.solve(supply), "pip install cvxpy highspy", error=SolverError)
    monkeypatch.setattr(cvxpy, "installed_solvers", lambda: ["CLARABEL"])
    refused(lambda: program.solve(supply), "does not find its solver HIGHS", error=SolverError)


# -- ends --------------------------------------------------------------------------------------------------


def test_nothing_to_place():
    late = StatementOfWork(5, 1, DeadlineValue(1.0, 5), [(5, 1, 1.0)])
    program = PackingProgram(tasks_of_laws([late], 9), 9)
    solution = program.solve(2)
    assert (solution.value, solution.dual_value, solution.gap, solution.optimal) == (0.0, 0.0, 0.0, True)
    assert solution.prices.tolist() == [0.0] * 9 and solution.allocation.size == 0
    assert program.dual_value(np.ones(9), 2.0) == 18.0


def test_bad_input_is_named():
    tasks = tasks_of_reports([StatementOfWork(4, 1, DeadlineValue(1.0, 9), [(4, 1, 1.0)])], 9)
    with pytest.raises(InvalidParameterError, match="horizon = 5: expected at least 8, a task's start"):
        PackingProgram(tasks, 5)
    program = PackingProgram(tasks, 9)
    with pytest.raises(InvalidParameterError, match="task 0 has no start"):
        PackingProgram(replace(tasks, offsets=np.array([0, 0])), 9)
    for supply in (0, -1.0, np.nan, np.inf, True, "2"):
        with pytest.raises(InvalidParameterError, match="supply = "):
            program.solve(supply)
    for limit in (0, np.nan):
        with pytest.raises(InvalidParameterError, match="time_limit = "):
            program.solve(1, time_limit=limit)


def test_a_program_too_large_for_memory_is_refused_before_it_is_built(monkeypatch):
    sow = StatementOfWork(1, 1, DeadlineValue(1.0, 5), [(1, 2, 1.0)])
    monkeypatch.setattr(packing, "MOST_NONZEROS", 5)
    with pytest.raises(TooLargeError, match="6 non-zeros: expected at most 5"):
        PackingProgram(tasks_of_reports([sow], 9), 9)
    assert PackingProgram(tasks_of_reports([sow], 3), 3).solve(1).value == pytest.approx(1)
