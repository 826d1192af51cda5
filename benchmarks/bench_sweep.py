"""Sweeps: what two worker processes bring over one, and what a run costs beside the run itself.

Size: runs of about half a second each, 6 in one process and 12 in two; then 100 runs of milliseconds.
"""

from __future__ import annotations

import json
import multiprocessing
import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import marketsched
from harness import Row, benchmark, on_request

RUNS = 6  # in one process; twice as many in two
LONG = {"name": "long", "cluster": {"slots": 1000, "policies": ["ogasched"], "instance": {"kind": "small-integer"}}}
SHORT = {
    "name": "short",
    "workload": {
        **{"kind": "jobs", "capacity": 2, "horizon": 6, "max_concurrency": 1},
        **{"max_duration": 2, "max_value": 4, "max_delay": 6},
        "jobs": [
            {
                **{"name": "A", "birth": 1, "concurrency": 1, "arrival": 2, "duration": 2},
                "value": {"kind": "deadline", "value": 4, "deadline": 5},
                "requirements": [{"arrival": 2, "duration": 2, "probability": 1}],
            }
        ],
    },
    "mechanism": {"pricing": {"kind": "posted", "prices": [0.5]}},
}


def swept(scenario: dict[str, Any], runs: int, workers: int) -> tuple[float, list[float]]:
    """Return the time a whole sweep takes, processes started and table written, and the time of each run."""
    with tempfile.TemporaryDirectory() as folder:
        begin = time.perf_counter()
        found = marketsched.sweep([(scenario, seed) for seed in range(runs)], Path(folder) / "sweep", workers=workers)
        seconds = time.perf_counter() - begin
        if found.failed or not found.complete:
            raise RuntimeError(f"the sweep failed: {dict(found.failed)}")
        told = json.loads((Path(folder) / "sweep" / "meta.json").read_text())
        return seconds, [run["seconds"] for run in told["durations"]]


@cache
def of_half_a_second() -> dict[str, Any]:
    """Return the long scenario with as many slots as fill half a second."""
    slots = 2000
    seconds = 0.0
    for _ in range(2):
        scenario = {**LONG, "cluster": {**LONG["cluster"], "slots": slots}}  # type: ignore[dict-item]
        _, each = swept(scenario, 3, 1)
        seconds = min(each)
        slots = max(100, round(0.5 * slots / seconds))
    return {**LONG, "cluster": {**LONG["cluster"], "slots": slots}}  # type: ignore[dict-item]


def bare(scenario: dict[str, Any], runs: int) -> float:
    """Return the time two processes take for the same runs with no sweep around them."""
    context = multiprocessing.get_context("spawn")
    begin = time.perf_counter()
    processes = [context.Process(target=_run_each, args=(scenario, range(first, runs, 2))) for first in (0, 1)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
        if process.exitcode:
            raise RuntimeError(f"a process ended with status {process.exitcode}")
    return time.perf_counter() - begin


def _run_each(scenario: dict[str, Any], seeds: Sequence[int]) -> None:
    for seed in seeds:
        marketsched.run(scenario, seed)


@benchmark
def two_processes_over_one() -> Iterator[Row]:
    """Runs per second of two processes over twice those of one, whole sweeps timed in turn.

    What else the machine does takes more from two processes than from one, so the first figure wants quiet
    cores. The second compares with two processes and no sweep around them, the third says how much of the
    time the two were in a run: these are the sweep's own part.
    """
    scenario = of_half_a_second()
    one, each = swept(scenario, RUNS, 1)
    two, both = swept(scenario, 2 * RUNS, 2)
    yield Row("sweep.efficiency", one / two, "of twice one core", at_least=0.85)
    yield Row("sweep.of_bare_processes", bare(scenario, 2 * RUNS) / two, "of their speed")
    yield Row("sweep.busy_share", sum(both) / (2 * two), "of two processes")
    yield Row("sweep.run_seconds", statistics.median(each), "s")


@cache
def compiled() -> None:
    """Sweep once, so that the kernels of the short runs are compiled and kept."""
    swept(SHORT, 1, 1)


@benchmark
@on_request
def thousand_short_runs() -> Iterator[Row]:
    """A thousand runs of a twentieth of a second in two processes, and in one; about 75 seconds in all."""
    half = of_half_a_second()
    slots = half["cluster"]["slots"] // 10
    scenario = {**half, "cluster": {**half["cluster"], "slots": slots}}
    two, both = swept(scenario, 1000, 2)
    one, each = swept(scenario, 1000, 1)
    yield Row("sweep.short_runs_efficiency", one / (2 * two), "of twice one core", at_least=0.85)
    yield Row("sweep.short_runs_busy_share", sum(both) / (2 * two), "of two processes")
    yield Row("sweep.short_run_seconds", statistics.median(each), "s")


@benchmark
def beside_the_runs() -> Iterator[Row]:
    """Time of a sweep without its runs and without its start, for each run: sent, checked, flushed, in the table."""
    compiled()
    runs = 100
    few, of_few = swept(SHORT, 1, 1)
    many, of_many = swept(SHORT, runs + 1, 1)
    overhead = ((many - sum(of_many)) - (few - sum(of_few))) / runs
    yield Row("sweep.overhead", 1000.0 * overhead, "ms a run", at_most=30.0)
