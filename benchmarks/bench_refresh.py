"""What keeping paths does to the estimates, and what drawing them afresh costs.

A small overloaded market (``synthetic-pipelines`` with durations hidden, on half its nodes,
overbooked), very few paths so that the effect shows (it falls as 1/n), sixteen seeds. ``planned`` is
the mean of (estimate - fresh estimate) at the planned launches, ``table`` over all launches
considered; intervals are Student's over seeds.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import stats

from harness import Row, benchmark, once
from marketsched.agents.market import Market
from marketsched.config.scenario import Scenario

SEEDS = 16
MODES: tuple[float | str, ...] = (0.0, 0.1, "round", "submission")


def _scenario(refresh: float | str) -> Scenario:
    """Return the market; about 37 nodes would be enough for it."""
    oracle = {"kind": "monte-carlo", "samples": 32, "refresh": refresh, "probe_every": 5}
    mechanism: dict[str, Any] = {"name": "posted-price", "epsilon": -0.3, "threshold": 0.05, "oracle": oracle}
    mechanism["pricing"] = {"kind": "exponential", "floor": 0.02, "ceiling": 20}
    workload = {"kind": "synthetic-pipelines", "recurring_jobs": 130, "birth_rounds": 144, "capacity": 20}
    workload["durations"] = "hidden"
    return Scenario.from_dict({"name": "refresh", "workload": workload, "mechanism": mechanism})


def _one_run(refresh: float | str, seed: int) -> tuple[float, float, float, float]:
    """Return both biases, the share of estimates above 0, and the seconds the market took."""
    setup = _scenario(refresh).setup(np.random.default_rng(seed))
    begin = time.perf_counter()
    Market(setup).run()
    seconds = time.perf_counter() - begin
    found = setup.mechanism.statistics()
    return found["bias"], found["bias_table"], found["estimates_positive"] / found["estimates"], seconds


@benchmark
@once
def bias_of_kept_paths() -> Iterator[Row]:
    """Compare the modes on the same seeds."""
    _one_run(0.0, 0)  # compiled
    runs = {mode: np.array([_one_run(mode, seed) for seed in range(SEEDS)]) for mode in MODES}
    critical = stats.t.ppf(0.975, SEEDS - 1)
    for mode, found in runs.items():
        half = critical * found.std(axis=0, ddof=1) / np.sqrt(SEEDS)
        for column, name in enumerate(("planned", "table")):
            mean, reach = float(found[:, column].mean()), float(half[column])
            interval = (mean - reach, mean, mean + reach)
            yield Row.of_values(f"refresh.{mode}.bias_{name}", interval, f"+- {reach:.1g}")
        yield Row.of_values(f"refresh.{mode}.time_over_kept", found[:, 3] / runs[0.0][:, 3], "x")
    yield Row.of_values("refresh.estimates_above_0", runs[0.0][:, 2])
