"""The small markets in which the mechanism paper's statements are measured."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from marketsched.agents.loop import NEVER, Fate, MarketLoop
from marketsched.agents.playing import play
from marketsched.mechanisms import (
    Event,
    ExactOracle,
    ExponentialPricing,
    LinearValue,
    MonteCarloOracle,
    PostedPriceMechanism,
    PostedPricing,
    StatementOfWork,
    TableValue,
)

HORIZON = 30
SAMPLES = 400  # per submission, where failure probabilities are looked at


def night_shift(*, certain: bool) -> dict[str, Any]:
    """Return a scenario of 240 jobs in a stream and a valuable one; arrivals and durations certain, or not."""
    uncertain = {
        1: [{"arrival": 2, "duration": 3, "probability": 0.6}, {"arrival": 3, "duration": 4, "probability": 0.4}],
        2: [{"arrival": 2, "duration": 4, "probability": 0.9}],
    }
    sure = {width: [{"arrival": 2, "duration": 4, "probability": 1}] for width in uncertain}
    needs = sure if certain else uncertain
    deadline = {"kind": "deadline", "value": 9, "deadline": 12}
    linear = {"kind": "linear", "value": 24, "from": 6, "slope": 2, "deadline": 10}
    statements: list[dict[str, Any]] = [
        {"probability": 0.7, "concurrency": 1, "value": deadline, "requirements": needs[1]},
        {"probability": 0.2, "concurrency": 2, "value": linear, "requirements": needs[2]},
        {"probability": 0.1, "nothing": True},
    ]
    last = {
        "probability": 1,
        "concurrency": 2,
        "value": {"kind": "deadline", "value": 60, "deadline": 25},
        "requirements": [{"arrival": 20, "duration": 4, "probability": 1}],
    }
    return {
        "name": "night shift",
        "workload": {
            "kind": "mixtures",
            "capacity": 24,
            "horizon": 60,
            "max_concurrency": 2,
            "max_duration": 4,
            "max_value": 60,
            "max_delay": 20,
            "jobs": [
                {
                    "name": "nightly",
                    "stream": "nightly",
                    "birth": 1,
                    "copies": 240,
                    "every": 0.16,
                    "statements": statements,
                },
                {"name": "audit", "stream": "audit", "birth": 20, "statements": [last]},
            ],
        },
        "mechanism": {"name": "exponential"},
    }


def failure_share(
    seed: int, capacity: int, delay: int, epsilon: float, delta: float, *, capped: bool = True
) -> tuple[float, float]:
    """Return the share of submissions that meet a failure probability above ``delta``, and the highest usage.

    Jobs of one node and one round, worth less the later they run; each becomes ready in one of the next
    ``delay`` rounds, or never (one in ten). Prices are far below values, so that the relaxed supply
    C' fills up; usage is the highest expected one of a round, in shares of C'. With ``capped`` false
    prices are 0 whatever is sold: the premise of Lemma 4.3, usage up to C', is then broken.
    """
    pricing = ExponentialPricing(floor=1e-3, ceiling=0.4) if capped else PostedPricing(prices=[0.0])
    rng = np.random.default_rng(np.random.SeedSequence([seed, capacity, round(epsilon * 1000)]))
    oracle = MonteCarloOracle(samples=SAMPLES, refresh="round", rng=rng)
    limits = {"max_concurrency": 1, "max_duration": 1, "max_value": float(delay + 1), "max_delay": delay}
    rules: dict[str, Any] = {"epsilon": epsilon, "threshold": 0.0, "rng": rng, **limits}
    market = PostedPriceMechanism(capacity, HORIZON, pricing, oracle, **rules)
    crowd = _Crowd(capacity, delay, delta, oracle, rng)
    play(MarketLoop(market), crowd, HORIZON)
    usage = float(market.committed(1, HORIZON).max()) / ((1 - epsilon) * capacity)
    return crowd.over_delta / max(-(-crowd.seen // 10), 1), usage


class _Crowd:
    """The owners of `failure_share`; every tenth one looks at the failure probabilities before it submits."""

    over = False

    def __init__(
        self, capacity: int, delay: int, delta: float, oracle: MonteCarloOracle, rng: np.random.Generator
    ) -> None:
        self.seen = self.over_delta = 0
        self._capacity, self._delay, self._delta, self._oracle, self._rng = capacity, delay, delta, oracle, rng

    def act(self, market: MarketLoop) -> None:
        """Submit as many jobs as there are nodes, as long as they can still be done."""
        now, delay = market.now, self._delay
        for i in range(self._capacity if now <= HORIZON - delay else 0):
            self.seen += 1
            self.over_delta += bool((self._oracle.failure_table(1) > self._delta).any()) if i % 10 == 0 else 0
            ready = np.sort(self._rng.choice(np.arange(now, now + delay - 1), size=3, replace=False))
            worth = LinearValue(float(delay), now + 1, 0.5, now + delay)
            name = f"{now}-{i}"
            market.submit(name, StatementOfWork(now, 1, worth, [(int(t), 1, 0.3) for t in ready]), NEVER, 1)
            drawn = int(self._rng.integers(0, 10)) // 3
            if drawn < 3:
                market.ready(name, Fate(int(ready[drawn]), 1, 1))

    def hear(self, events: Sequence[Event], market: MarketLoop) -> None:
        """Nothing that happens changes what they submit."""


def sampling_error(seed: int, samples: int) -> float:
    """Return the largest error of a table of failure probabilities from this many fresh paths.

    Six jobs of up to two nodes, each with three outcomes, on three nodes; the exact table is enumerated.
    """
    draws = np.random.default_rng(np.random.SeedSequence([seed, 28]))
    jobs = []
    for _ in range(6):
        ready, lengths = draws.integers(1, 5, size=3), draws.integers(1, 3, size=3)
        cases = {(int(t), int(d)) for t, d in zip(ready, lengths, strict=True)}
        worth = TableValue({int(t): 4.0 for t in range(2, 6)})
        jobs.append(StatementOfWork(1, int(draws.integers(1, 3)), worth, [(t, d, 1 / len(cases)) for t, d in cases]))
    tables = []
    for oracle in (ExactOracle(), MonteCarloOracle(samples=samples, refresh="submission", rng=draws)):
        limits = {"max_concurrency": 2, "max_duration": 2, "max_value": 4.0, "max_delay": 4}
        # Every plan is taken: the history does not depend on estimates.
        free: dict[str, Any] = {"epsilon": -2.0, "threshold": 1.0, **limits}
        market = PostedPriceMechanism(3, 8, PostedPricing(prices=[0.0]), oracle, **free)
        for i, job in enumerate(jobs):
            market.submit(f"job-{i}", job)
        tables.append(np.array(oracle.failure_table(1)))
    return float(np.abs(tables[0] - tables[1]).max())


def toy_values(rounds: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return probability of being ready in each round, and value of starting in it, shapes (rounds,).

    Ready in round t with probability 2^(t - n - 1), else in round 1; worth 2^(n - t + 1) credits.
    """
    t = np.arange(1, rounds + 1)
    probability: NDArray[np.float64] = np.asarray(2.0 ** (t - rounds - 1), dtype=np.float64)
    probability[0] += 2.0**-rounds
    return probability, np.asarray(2.0 ** (rounds - t + 1), dtype=np.float64)


def best_reservations(probability: NDArray[np.float64], value: NDArray[np.float64]) -> list[float]:
    """Return the best expected value of 1, 2, ... reserved blocks.

    A block in round t serves the job if it is ready by then and no earlier block served it: a dynamic
    program over the last block taken.
    """
    n = len(value)
    ready_by = np.concatenate([[0.0], np.cumsum(probability)])
    best = np.full((n + 1, n + 1), -np.inf)
    best[0, 0] = 0.0
    for k in range(1, n + 1):
        for last in range(k, n + 1):
            gained = (ready_by[last] - ready_by[:last]) * value[last - 1]
            best[k, last] = float((best[k - 1, :last] + gained).max())
    return [float(x) for x in best[1:].max(axis=1)]


def toy_scenario(rounds: int, jobs: int, nodes: int) -> dict[str, Any]:
    """Return many such jobs at once."""
    probability, value = toy_values(rounds)
    ready = range(1, rounds + 1)
    statement = {
        "probability": 1,
        "concurrency": 1,
        "value": {"kind": "table", "values": {t + 1: float(v) for t, v in zip(ready, value, strict=True)}},
        "requirements": [
            {"arrival": t, "duration": 1, "probability": float(p)} for t, p in zip(ready, probability, strict=True)
        ],
    }
    workload = {
        "kind": "mixtures",
        "capacity": nodes,
        "horizon": rounds + 1,
        "max_concurrency": 1,
        "max_duration": 1,
        "max_value": 2.0**rounds,
        "max_delay": rounds + 2,
        "jobs": [{"name": "job", "stream": "job", "birth": 1, "copies": jobs, "every": 0, "statements": [statement]}],
    }
    rules = {"name": "exponential", "oracle": {"kind": "monte-carlo", "samples": 2000, "refresh": 0.1}}
    return {"name": "toy", "workload": workload, "mechanism": rules}
