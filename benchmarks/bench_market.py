"""Whole markets: how long a run takes, compilation aside, and the dual bound on its outcome."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator

import numpy as np

from harness import Row, benchmark
from marketsched.agents.market import Market
from marketsched.config.scenario import Scenario


def _seconds(name: str, seed: int) -> tuple[float, float]:
    """Return the seconds to read the trace and build the jobs, and to play the market."""
    begin = time.perf_counter()
    setup = Scenario.load(name).setup(np.random.default_rng(seed))
    built = time.perf_counter()
    market = Market(setup)
    market.run()
    return built - begin, time.perf_counter() - built


@benchmark
def built_in_scenarios() -> Iterator[Row]:
    """Play each built-in scenario; those on a trace only where MARKETSCHED_DATA names its folder."""
    names = ["synthetic-pipelines"]
    if os.environ.get("MARKETSCHED_DATA"):
        names += ["google-recurring", "saturated"]
    _seconds(names[0], 0)  # compiled
    for name in names:
        building, playing = np.median([_seconds(name, seed) for seed in range(3)], axis=0)
        yield Row(f"market.{name}.build_s", float(building), "s")
        yield Row(f"market.{name}.play_s", float(playing), "s", at_most=10)
