"""Bid prices: seconds in the mechanism alone, of whole markets and per round as markets grow."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from harness import Row, benchmark
from marketsched.agents.loop import MarketLoop
from marketsched.agents.playing import TruthfulOwners, play
from marketsched.config.scenario import Scenario
from marketsched.worlds.workload import Workload

ROUNDS = 144  # half a day


class Clocked:
    """A mechanism, and the seconds of this process spent in its protocol."""

    def __init__(self, mechanism: Any) -> None:
        self._inner, self.seconds = mechanism, 0.0

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._inner, name)
        if name not in ("submit", "arrive", "advance", "complete"):
            return found

        def call(*given: Any, **named: Any) -> Any:
            begin = time.process_time()
            try:
                return found(*given, **named)
            finally:
                self.seconds += time.process_time() - begin

        return call


def _scenario(name: str, **workload: Any) -> Scenario:
    data = Scenario.load(name).with_mechanism("bid-price").to_dict()
    return Scenario.from_dict({**data, "workload": {**data["workload"], **workload}})


def _seconds(scenario: Scenario, workload: Workload) -> float:
    """Return the seconds that the mechanism takes for a market."""
    clocked: Any = Clocked(scenario.mechanism.build(workload, np.random.default_rng(0)))
    play(MarketLoop(clocked), TruthfulOwners(workload.jobs), workload.horizon)
    return float(clocked.seconds)


def _per_round(**workload: Any) -> float:
    """Return milliseconds of a round in which jobs are born, of synthetic-pipelines, one play."""
    scenario = _scenario("synthetic-pipelines", **workload)
    built = scenario.workload.build(np.random.default_rng(0), None)
    return float(_seconds(scenario, built) / built.birth_rounds * 1e3)


@benchmark
def growth() -> Iterator[Row]:
    """Half a day; ten times the jobs on ten times the nodes, and ten times the nodes alone."""
    _per_round(recurring_jobs=20)  # compiled
    base = _scenario("synthetic-pipelines").workload.build(np.random.default_rng(0), None)
    usual = _per_round(birth_rounds=ROUNDS)
    yield Row("bid_price.synthetic.round_ms", usual, "ms")
    more = _per_round(birth_rounds=ROUNDS, recurring_jobs=10 * 400)
    yield Row("bid_price.ten_times_jobs_and_nodes.round_ms", more, "ms")
    yield Row("bid_price.ten_times_jobs_and_nodes.ratio", more / usual, "x", at_most=15)
    wide = _per_round(birth_rounds=ROUNDS, capacity=10 * base.capacity)
    yield Row("bid_price.ten_times_nodes.round_ms", wide, "ms")
    yield Row("bid_price.ten_times_nodes.ratio", wide / usual, "x", at_most=2)


@benchmark
def recorded() -> Iterator[Row]:
    """Two days of google-recurring, 16,700 jobs, on the nodes of the scenario and on a third of them."""
    if not os.environ.get("MARKETSCHED_DATA"):
        return
    for name, nodes, most in (("google", 125, 2.0), ("google_load_2.4", 42, None)):
        scenario = _scenario("google-recurring", capacity=nodes)
        built = scenario.workload.build(np.random.default_rng(0), None)
        seconds = _seconds(scenario, built)
        yield Row(f"bid_price.{name}.mechanism_s", seconds, "s", at_most=most)
        yield Row(f"bid_price.{name}.round_ms", seconds / built.birth_rounds * 1e3, "ms")
