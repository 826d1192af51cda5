"""Environments: steps a second of `MarketEnv` and `OwnerEnv`, beside the same markets in a bare loop.

The market is a day of `synthetic-pipelines` at bid prices. *Bare* is `MarketRun` over the same setups: what playing
them costs without observations, actions and rewards. In `MarketEnv` all owners decide, and tell the truth: it has to
play what the bare loop plays. In `OwnerEnv` one owner decides, so that a step plays all rounds to its next job; eight
of them in Gymnasium's `SyncVectorEnv` take turns in one process, each in a market of its own. In `OwnersVectorEnv` all
owners of one market are a vector: a step is a turn, and each job that is reported in it is a step of one owner. Making
the markets is left out: it is the same everywhere.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator
from functools import cache

import gymnasium
import numpy as np

from harness import Row, benchmark
from marketsched.agents.market_run import MarketRun
from marketsched.agents.setup import MarketSetup
from marketsched.config.scenario import Scenario
from marketsched.env import MarketEnv, OwnerEnv, OwnersVectorEnv

REPEATS, SIDE_BY_SIDE, STEPS = 1, 8, 16
AT_MOST = 3.0  # times the bare loop
AT_LEAST = 10.0  # steps of owners in a vector, over those of single owners


class Prepared:
    """One market, made again for every play, and the seconds that this takes."""

    def __init__(self, mechanism: str = "bid-price") -> None:
        self._scenario = Scenario.load("synthetic-pipelines").with_mechanism(mechanism)
        self.seconds = 0.0

    def setup(self, rng: np.random.Generator) -> MarketSetup:
        """Return the market of a seed."""
        begin = time.perf_counter()
        made = self._scenario.setup(rng)
        self.seconds += time.perf_counter() - begin
        return made


def _bare(source: Prepared, seed: int) -> tuple[float, int]:
    """Return seconds and jobs of a market in a bare loop."""
    setup = source.setup(np.random.default_rng(np.random.SeedSequence(seed)))
    begin = time.perf_counter()
    result = MarketRun(setup).run()
    return time.perf_counter() - begin, len(result.jobs)


def _all_owners(source: Prepared, env: MarketEnv, seed: int) -> tuple[float, int]:
    """Return seconds and steps of a market whose owners all tell the truth."""
    begin, made, steps = time.perf_counter(), source.seconds, 0
    env.reset(seed=seed)
    while env.agents:
        env.step(dict.fromkeys(env.agents, env.menu.truth))
        steps += 1
    return time.perf_counter() - begin - (source.seconds - made), steps


def _side_by_side(source: Prepared) -> float:
    """Return steps a second of single owners, several markets in one process."""
    env = gymnasium.vector.SyncVectorEnv([lambda: OwnerEnv(source)] * SIDE_BY_SIDE)
    env.reset(seed=1)
    truth = np.full(SIDE_BY_SIDE, env.envs[0].get_wrapper_attr("menu").truth)
    begin, made = time.perf_counter(), source.seconds
    for _ in range(STEPS // SIDE_BY_SIDE):
        env.step(truth)
    return STEPS / (time.perf_counter() - begin - (source.seconds - made))


def _vector(source: Prepared, seed: int) -> float:
    """Return owners' steps a second of a day in which all owners are a vector and tell the truth."""
    env = OwnersVectorEnv(source)
    seen, _ = env.reset(seed=seed)
    truth = np.full(env.num_envs, env.menu.truth)
    begin, made, steps, over = time.perf_counter(), source.seconds, 0, False
    while not over:
        steps += int((seen[:, 0] == 1).sum())
        seen, _, ended, _, _ = env.step(truth)
        over = bool(ended.all())
    return steps / (time.perf_counter() - begin - (source.seconds - made))


@cache
def _compiled() -> tuple[Prepared, MarketEnv]:
    """Return the market and its environment after each was played once: kernels are compiled."""
    source = Prepared()
    env = MarketEnv(source)
    _bare(source, 0)
    _all_owners(source, env, 0)
    return source, env


@benchmark
def environments() -> Iterator[Row]:
    """Play the same days bare and as environments."""
    source, env = _compiled()
    bare, played, steps, ratios, jobs = [], [], 0, [], 0
    for seed in range(1, 1 + REPEATS):
        seconds, jobs = _bare(source, seed)
        own, steps = _all_owners(source, env, seed)
        bare.append(jobs / seconds)
        played.append(steps / own)
        ratios.append(own / seconds)
    yield Row("env.bare.jobs_a_second", statistics.median(bare), "/s")
    yield Row("env.all_owners.steps_a_second", statistics.median(played), "/s")
    yield Row("env.all_owners.jobs_a_step", jobs / steps, "")
    yield Row("env.all_owners.over_bare", statistics.median(ratios), "", at_most=AT_MOST)
    single, vector = _side_by_side(source), _vector(source, 1)
    yield Row(f"env.one_owner.{SIDE_BY_SIDE}_side_by_side.steps_a_second", single, "/s")
    yield Row("env.one_owner.first_come.steps_a_second", _side_by_side(Prepared("first-come")), "/s")
    yield Row("env.vector.owners_steps_a_second", vector, "/s")
    yield Row("env.vector.over_single_owners", vector / single, "", at_least=AT_LEAST)
