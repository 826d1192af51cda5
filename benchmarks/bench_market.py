"""Whole markets: how long a run takes, compilation aside, and the dual bound on its outcome."""

from __future__ import annotations

import gc
import math
import os
import time
from collections.abc import Iterator

import numpy as np
import pandas as pd

from harness import Row, benchmark
from marketsched.agents.loop import MarketLoop
from marketsched.agents.market_run import MarketRun
from marketsched.agents.playing import TruthfulOwners, play
from marketsched.agents.setup import MarketSetup
from marketsched.config.scenario import Scenario
from marketsched.mechanisms.registry import get_mechanism
from marketsched.worlds.logs.job_log import JobLog
from marketsched.worlds.logs.market import Window, market_of
from marketsched.worlds.logs.rule import LogRule
from marketsched.worlds.workload import Workload


def _seconds(name: str, seed: int) -> tuple[float, float]:
    """Return the seconds to read the trace and build the jobs, and to play the market."""
    begin = time.perf_counter()
    setup = Scenario.load(name).setup(np.random.default_rng(seed))
    built = time.perf_counter()
    MarketRun(setup).run()
    return built - begin, time.perf_counter() - built


@benchmark
def built_in_scenarios() -> Iterator[Row]:
    """Play each built-in scenario; those on a trace only where MARKETSCHED_DATA names its folder."""
    names = ["synthetic-pipelines"]
    if os.environ.get("MARKETSCHED_DATA"):
        names += ["google-recurring", "saturated"]
    _seconds(names[0], 0)  # compiled
    for name in names:
        building, playing = _seconds(name, 0)
        yield Row(f"market.{name}.build_s", building, "s")
        yield Row(f"market.{name}.play_s", playing, "s", at_most=10)


def _first_come(recurring_jobs: int, birth_rounds: int) -> tuple[int, float]:
    """Return the number of jobs, and the processor seconds of first come, first served with its loop."""
    workload = {"kind": "synthetic-pipelines", "recurring_jobs": recurring_jobs, "birth_rounds": birth_rounds}
    scenario = Scenario.from_dict({"name": "x", "workload": workload, "mechanism": {"name": "first-come"}})
    setup = scenario.setup(np.random.default_rng(0))
    begin = time.process_time()
    play(MarketLoop(setup.mechanism), TruthfulOwners(setup.jobs), setup.horizon)
    return len(setup.jobs), time.process_time() - begin


@benchmark
def first_come_growth() -> Iterator[Row]:
    """Eight times the jobs, on eight times the nodes and in eight times the rounds."""
    usual = gc.get_threshold()
    gc.set_threshold(50_000, 20, 100)  # as the command line sets it
    try:
        n, seconds = _first_come(450, 288)
        yield Row("market.first_come.job_us", seconds / n * 1e6, "us")
        for name, sizes in (("nodes", (3600, 288)), ("rounds", (450, 2304))):
            more, longer = _first_come(*sizes)
            yield Row(f"market.first_come.exponent_{name}", math.log(longer / seconds) / math.log(more / n), "")
    finally:
        gc.set_threshold(*usual)


WHOLE = ("first-come", "easy-backfill", "conservative-backfill", "bid-price")  # play whole markets


def _played(name: str, *, by_rounds: bool, **workload: int) -> tuple[int, float]:
    """Return the number of jobs, and the processor seconds of a market with its log."""
    content = Scenario.load("synthetic-pipelines").with_mechanism(name).to_dict()
    content["workload"] |= workload
    scenario = Scenario.from_dict(content)
    market = MarketRun(scenario.setup(np.random.default_rng(0)), by_rounds=by_rounds)
    begin = time.process_time()
    market.play()
    assert market.played_whole != by_rounds
    return len(market.setup.jobs), time.process_time() - begin


@benchmark
def whole_markets() -> Iterator[Row]:
    """The same market played whole, as columns, and by the loop: some 45,000 jobs, in a day or in ten."""
    sizes = {name: {"recurring_jobs": 4000} for name in WHOLE} | {"posted-price": {"birth_rounds": 2880}}
    for name, workload in sizes.items():
        for each in (False, True):
            _played(name, by_rounds=each, recurring_jobs=20)  # compiled
        n, whole = _played(name, by_rounds=False, **workload)
        _, by_rounds = _played(name, by_rounds=True, **workload)
        yield Row(f"market.whole.{name}.job_us", whole / n * 1e6, "us")
        yield Row(f"market.whole.{name}.times_as_fast", by_rounds / whole, "", at_least=1.0)


HIDDEN = (
    "first-come",
    "easy-backfill",
    "conservative-backfill",
    "bid-price",
    "two-offers",
    "fair-share",
    "fair-turns",
    "largest-value-first",
    "credits",
)
BY_SHARES = ("fair-turns", "credits")  # every owner has an equal part


def _log(n: int, seed: int) -> tuple[Workload, float]:
    """Return the market of a made log of ``n`` runs at load 1, laws of the past, and the processor seconds it took."""
    rng = np.random.default_rng(seed)
    table = pd.DataFrame({"submit_s": np.sort(rng.uniform(0, 60.0 * n, n)), "run_s": rng.lognormal(7, 1, n)})
    table["processors"], table["user"] = 2 ** rng.integers(0, 6, n), rng.integers(0, 100, n)
    table["executable"] = rng.integers(0, 20, n)
    log = JobLog.of(table)
    begin = time.process_time()
    return market_of(log, Window(most_jobs=n, load=1.0), LogRule(), rng=seed), time.process_time() - begin


@benchmark
def logs_of_hidden_durations() -> Iterator[Row]:
    """The market of a log, as columns; played whole, and round by round."""
    _log(300, 1)  # compiled
    workload, seconds = _log(20_000, 1)
    n, sizes = len(workload.jobs), ("capacity", "horizon", "max_delay")
    yield Row("market.log.workload_us", seconds / n * 1e6, "us", at_most=10)
    own = {size: getattr(workload, size) for size in (*sizes, "max_concurrency", "max_duration", "max_value")}
    owners = {"owners": sorted({job.owner for job in workload.jobs})}
    for name in HIDDEN:
        taken, rules = [], own | (owners if name in BY_SHARES else {})
        for by_rounds in (False, False, True):  # the first one compiles
            setup = MarketSetup("log", workload.jobs, get_mechanism(name, **rules), *(own[size] for size in sizes))
            market = MarketRun(setup, by_rounds=by_rounds)
            begin = time.process_time()
            market.play()
            taken.append(time.process_time() - begin)
        yield Row(f"market.log.{name}.job_us", taken[1] / n * 1e6, "us")
        yield Row(f"market.log.{name}.times_as_fast", taken[2] / taken[1], "", at_least=1.0)
