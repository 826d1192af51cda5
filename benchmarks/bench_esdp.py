"""ESDP's dynamic program for all budgets at once, against the same problems one by one by HiGHS.

The size is the paper's (Table 3): 8 ports, 40 servers, 3 resource types, edges of probability 0.1,
capacities 2, requests 1 to 2, statistics of a run of 2,000 slots, alpha 0.5. Budgets out of reach
count, too: P4(s, t) is posed for all s in S(t), and HiGHS is asked for each.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import Bounds, LinearConstraint, milp

from harness import Row, benchmark, time_interleaved
from marketsched.mechanisms.allocation import Esdp, play_slots, published_channels
from marketsched.mechanisms.allocation.esdp.budgeted import BudgetedProblem
from marketsched.mechanisms.allocation.esdp.schedules import scale_of

SLOTS = 2000
EVERY = 8  # HiGHS is timed on every eighth budget, reachable and not, and its time multiplied


def _problem(seed: int = 0) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any], int]:
    """Return value, variance, requests, capacities and s_max as ESDP has them after `SLOTS` slots."""
    rng = np.random.default_rng(seed)
    instance = published_channels(rng)
    channels = instance.channels
    policy = Esdp(channels.requests, channels.capacities, channels.ports, n_ports=channels.n_ports)
    play_slots(policy, instance.environment(rng), SLOTS)
    scale, s_max = scale_of(policy.slack(SLOTS + 1), policy.largest)
    scaled = policy.statistics.scaled(policy.exploration(SLOTS + 1), scale)
    if scaled.unseen.any():
        raise RuntimeError("a channel was never used: expected none after so many slots")
    return scaled.values, scaled.variances.astype(np.int64), channels.requests, channels.capacities, s_max


def _highs(value: NDArray[Any], variance: NDArray[Any], rules: NDArray[Any], capacities: NDArray[Any], s: int) -> float:
    """Return the optimum of one budget, -inf where there is none."""
    limits = LinearConstraint(rules, ub=np.append(capacities, -s))
    result = milp(-variance, constraints=limits, integrality=np.ones(len(value)), bounds=Bounds(0, 1))
    return -np.inf if result.status == 2 else float(-result.fun)


def _solved(
    value: NDArray[Any], variance: NDArray[Any], requests: NDArray[Any], capacities: NDArray[Any], s_max: int
) -> NDArray[np.float64]:
    """Return the optima of all budgets, once the selections that attain them are read back, too."""
    table = BudgetedProblem(requests, capacities).solve(value, variance.astype(np.float64), s_max)
    for s in range(s_max + 1):
        table.selection(s)
    return table.finite


@benchmark
def program_for_all_budgets() -> Iterator[Row]:
    """Time both, and check that they agree."""
    value, variance, requests, capacities, s_max = _problem()
    best = _solved(value, variance, requests, capacities, s_max)
    rules = np.vstack([requests.T, -value])
    budgets = range(0, s_max + 1, EVERY)

    def one_by_one() -> list[float]:
        return [_highs(value, variance, rules, capacities, s) for s in budgets]

    for s, optimum in zip(budgets, one_by_one(), strict=True):
        if not (optimum == best[s] or abs(optimum - best[s]) <= 1e-4 * optimum):  # HiGHS's own gap
            raise RuntimeError(f"HiGHS finds {optimum} for s = {s}, the dynamic program {best[s]}")
    reachable = [s for s in budgets if np.isfinite(best[s])]
    program, part, in_reach = time_interleaved(
        [
            lambda: _solved(value, variance, requests, capacities, s_max),
            one_by_one,
            lambda: [_highs(value, variance, rules, capacities, s) for s in reachable],
        ],
        rounds=7,
    )
    yield Row("esdp.milp_over_dp", part * (s_max + 1) / len(budgets) / program, at_least=1000.0)
    yield Row("esdp.milp_of_reachable_over_dp", in_reach * EVERY / program)
    yield Row("esdp.dp_all_budgets", program * 1e6, "us")
    yield Row("esdp.budgets", float(s_max + 1))
    yield Row("esdp.budgets_reachable", float(np.isfinite(best).sum()))


@benchmark
def slots() -> Iterator[Row]:
    """Time a slot of the whole loop: observation, decision, utilities, oracle, learning."""
    rng = np.random.default_rng(1)
    instance = published_channels(rng)
    channels, world = instance.channels, instance.environment(rng)

    def run() -> None:
        policy = Esdp(channels.requests, channels.capacities, channels.ports, n_ports=channels.n_ports)
        play_slots(policy, world, SLOTS)

    (seconds,) = time_interleaved([run], rounds=5)
    yield Row("esdp.slot", seconds / SLOTS * 1e6, "us")
