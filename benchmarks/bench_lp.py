"""The relaxed problem through the public function, against the same matrices handed to HiGHS directly."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import highspy
import numpy as np

from harness import Row, benchmark, peak_memory

# What only one side needs is imported by that side, so that it counts in that side's memory alone.
if TYPE_CHECKING:
    from marketsched.mechanisms import StatementOfWork

TOLERANCE = 1e-9  # that of the package; a test of the two optima would not notice a difference, so it is checked
TIMED, HELD = 1200, 2400  # rounds: about 5 10^5 non-zeros where time is measured, 10^6 where memory is
JOBS_A_ROUND, LOAD = 3.5, 1.5
CLASSES = ((1.5, 48), (6.0, 6), (36.0, 1))  # value per node-round, rounds it can wait


def _market(horizon: int) -> tuple[list[StatementOfWork], int]:
    """Return jobs of three classes, cheap ones that can wait to valuable ones that cannot, and the capacity."""
    from marketsched.mechanisms import DeadlineValue, LinearValue, StatementOfWork

    rng = np.random.default_rng(0)
    sows, work = [], 0
    for _ in range(round(JOBS_A_ROUND * horizon)):
        density, slack = CLASSES[rng.choice(3, p=[0.4, 0.3, 0.3])]
        density = float(np.clip(density * np.exp(0.5 * rng.standard_normal()), 1, 40))
        d = int(np.clip(np.ceil(2 * np.exp(1.3 * rng.standard_normal())), 1, 24))
        c, b = int(rng.integers(1, 5)), int(rng.integers(1, horizon - 4))
        full, last = density * c * d, b + d + slack
        curve = DeadlineValue(full, last) if slack < 48 else LinearValue(full, b + d + 5, full / 2 / slack, last)
        sows.append(StatementOfWork(b, c, curve, [(b, d, 1.0)]))
        work += c * d
    return sows, int(work / horizon / LOAD)


def _matrices(horizon: int) -> dict[str, Any]:
    """Return the program as plain arrays: its matrix by columns, right-hand side, objective."""
    from scipy import sparse

    from marketsched.relaxed_lp import PackingProgram, packing, tasks_of_reports

    if packing.TOLERANCE != TOLERANCE:
        raise RuntimeError(f"the package solves to {packing.TOLERANCE}, this benchmark to {TOLERANCE}")
    sows, capacity = _market(horizon)
    program = PackingProgram(tasks_of_reports(sows, horizon), horizon)
    matrix = sparse.vstack([program.usage, program.choice], format="csc")
    right = np.concatenate((np.full(horizon, float(capacity)), program.tasks.weights))
    index = {"start": matrix.indptr.astype(np.int32), "index": matrix.indices.astype(np.int32)}
    method = np.array(program._method(capacity))  # of the two that the package chooses from
    return {
        **index,
        "data": matrix.data,
        "right": right,
        "cost": program.tasks.values / program.scale,
        "method": method,
    }


def _hand_over(given: dict[str, Any]) -> float:
    """Give the arrays to HiGHS, with the options that the public function uses; return the optimum."""
    lp = highspy.HighsLp()
    lp.num_col_, lp.num_row_ = given["cost"].size, given["right"].size
    lp.col_cost_, lp.row_upper_ = -given["cost"], given["right"]
    lp.col_lower_, lp.col_upper_ = np.zeros(lp.num_col_), np.full(lp.num_col_, highspy.kHighsInf)
    lp.row_lower_ = np.full(lp.num_row_, -highspy.kHighsInf)
    matrix = lp.a_matrix_
    matrix.format_ = highspy.MatrixFormat.kColwise
    matrix.start_, matrix.index_, matrix.value_ = given["start"], given["index"], given["data"]
    solver: Any = highspy.Highs()  # type: ignore[no-untyped-call]
    options = {"output_flag": False, "threads": 1, "solver": str(given["method"])}
    tolerances = {"primal_feasibility_tolerance": TOLERANCE, "dual_feasibility_tolerance": TOLERANCE}
    for name, value in {**options, **tolerances}.items():
        solver.setOptionValue(name, value)
    solver.passModel(lp)
    solver.run()
    if solver.getModelStatus() != highspy.HighsModelStatus.kOptimal:
        raise RuntimeError(f"HiGHS ended with {solver.getModelStatus()}")
    solution = solver.getSolution()
    x = np.asarray(solution.col_value)
    np.asarray(solution.row_dual)
    return float(given["cost"] @ x)


def _through_the_public_function() -> None:
    """Do what a user does, in a process of its own."""
    from marketsched.relaxed_lp import offline_bound

    sows, capacity = _market(HELD)
    offline_bound(sows, capacity, HELD)


def _from_a_file(path: str) -> None:
    """Do the same from ready matrices, in a process of its own."""
    with np.load(path) as stored:
        _hand_over(dict(stored))


@cache
def _memory() -> tuple[float, float]:
    """Return the peak memory of both, MB; it is the same in every repeat."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "program.npz"
        np.savez(path, **_matrices(HELD))
        return peak_memory(_through_the_public_function), peak_memory(_from_a_file, str(path))


@benchmark
def total_over_solver() -> Iterator[Row]:
    """Time and memory of an offline bound, statements ready, against the solver alone, matrices ready."""
    from marketsched.relaxed_lp import offline_bound

    sows, capacity = _market(TIMED)
    given = _matrices(TIMED)
    scale = max(float(sow.value.highest) for sow in sows)
    begin = time.perf_counter()
    direct = _hand_over(given)
    solver, begin = time.perf_counter() - begin, time.perf_counter()
    optimum = offline_bound(sows, capacity, TIMED).value / scale
    ours = time.perf_counter() - begin
    if abs(optimum - direct) > 1e-7 * direct:
        raise RuntimeError(f"the two optima differ: {optimum} and {direct}")
    yield Row("lp.nonzeros", float(given["data"].size))
    yield Row("lp.solver_s", solver, "s")
    yield Row("lp.total_over_solver", ours / solver, at_most=1.5)
    used, needed = _memory()
    yield Row("lp.solver_memory", needed, "MB")
    yield Row("lp.memory_over_solver", used / needed, at_most=2)
