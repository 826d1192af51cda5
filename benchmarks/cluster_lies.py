"""Lies of an owner about all of its jobs on clusters, durations hidden: what it gains under `cluster-credits`.

    python benchmarks/cluster_lies.py --seeds 1210 --worlds openb dlrm --dlrm disaggregated_DLRM_trace.csv

The markets are those of `benchmarks/cluster_owners.py`. The busiest owners lie, one at a time: announced means twice or
half as long (laws moved by two places of the grid, as far as it goes), slack twice or half, half of the jobs from a
fresh account without a share, or from a second account with half of the share. Printed is the gain in what is delivered
to the owner by its true values, in per cent of what truth delivers: the mean over draws (an owner in a market) with
Student's 95 % interval, the lower end once the number of lies is counted, and how many gain.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))

from cluster_owners import GRID, RULES, WORLDS, World, world_at
from marketsched.agents.job import Job
from marketsched.agents.loop import MarketLoop
from marketsched.agents.playing import TruthfulOwners, play
from marketsched.mechanisms import DeadlineValue, EventKind
from marketsched.mechanisms.resources.shapes import Shape
from marketsched.mechanisms.sow import StatementOfWork
from marketsched.results.paired_statistics import spread


def moved_law(steps: int) -> Callable[[Job, int], Job]:
    """Return a lie: durations so many places of the grid later."""

    def lie(job: Job, _: int) -> Job:
        law, (shape,) = job.truth.law, job.truth.shapes
        chances = np.zeros(len(GRID))
        for duration, chance in zip(law.durations.tolist(), law.probabilities.tolist(), strict=True):
            chances[min(max(GRID.index(duration) + steps, 0), len(GRID) - 1)] += chance
        kept = np.maximum(chances, 1e-9)  # no duration is excluded
        one = Shape(shape.each, dict.fromkeys(shape.kinds, GRID))
        birth, value = job.truth.birth, job.truth.value
        law_told = (kept / kept.sum()).tolist()
        told = StatementOfWork.of_shapes(birth, value, birth, [one], law_told, revealed=False)
        return replace(job, truth=told)

    return lie


def slack(factor: float) -> Callable[[Job, int], Job]:
    """Return a lie: the time between birth and deadline, times a factor."""

    def lie(job: Job, _: int) -> Job:
        birth, value = job.truth.birth, job.truth.value
        deadline = birth + max(2, round(factor * (value.last - birth)))
        return replace(job, truth=job.truth.moved(birth, DeadlineValue(value.highest, deadline)))

    return lie


def elsewhere(job: Job, place: int) -> Job:
    """Let every second job come from another account."""
    return replace(job, owner="second") if place % 2 else job


LIES: dict[str, tuple[Callable[[Job, int], Job], bool]] = {  # and whether the second account has half of the share
    "means x 2": (moved_law(2), False),
    "means x .5": (moved_law(-2), False),
    "slack x .5": (slack(0.5), False),
    "slack x 2": (slack(2.0), False),
    "half from a fresh account": (elsewhere, False),
    "two accounts, half of the share each": (elsewhere, True),
}


def delivered(world: World, jobs: list[Job], rule: str, shares: dict[str, float]) -> dict[str, float]:
    """Play reports; return what is delivered of each job by its true value."""
    kind, parameters = RULES[rule]
    delay = max(world.max_delay, 1 + max(job.truth.value.last - job.truth.birth for job in jobs))
    market = kind(
        world.cluster.nodes, world.horizon + delay, max_concurrency=1, max_duration=GRID[-1], max_delay=delay,
        max_value=max(job.truth.value.highest for job in jobs), cluster=world.cluster, shares=shares, **parameters,
    )  # fmt: skip
    events = play(MarketLoop(market), TruthfulOwners(jobs), world.horizon)
    truth: dict[Any, StatementOfWork] = {job.name: job.truth for job in world.jobs}
    done = [e for e in events if e.kind is EventKind.COMPLETE]
    return {str(e.job): float(truth[e.job].value(e.completion or 0)) for e in done}


def told_of(what: str, gains: list[float], lies: int) -> None:
    """Print the gains of a lie, of so many that are tried."""
    found, all_of_them = spread(gains), spread(gains, 1 - 0.05 / lies)
    up, down = sum(gain > 0 for gain in gains), sum(gain < 0 for gain in gains)
    print(
        f"{what}: {found.mean:+.1f} ± {found.high - found.mean:.1f} %, at least {all_of_them.low:+.1f} counting lies; "
        f"of {len(gains)} {up} gain and {down} lose",
        flush=True,
    )


def main() -> None:
    """Play the lies, and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", nargs="+", type=int, default=[1210])
    parser.add_argument("--worlds", nargs="+", choices=list(WORLDS), default=["openb"])
    parser.add_argument("--dlrm", default="", help="disaggregated_DLRM_trace.csv")
    parser.add_argument("--load", type=float, default=1.3)
    parser.add_argument("--owners", type=int, default=10)
    parser.add_argument("--rules", nargs="+", choices=list(RULES), default=["credits, pool"])
    parser.add_argument("--lies", nargs="+", choices=list(LIES), default=list(LIES))
    asked = parser.parse_args()
    for name in asked.worlds:
        gains: dict[tuple[str, str], list[float]] = {}
        for seed in asked.seeds:
            world = world_at(name, asked.load, seed, asked.dlrm)
            busiest = [owner for owner, _ in Counter(job.owner for job in world.jobs).most_common(asked.owners)]
            equal = dict.fromkeys((str(job.owner) for job in world.jobs), 1.0)
            for rule in asked.rules:
                honest = delivered(world, world.jobs, rule, equal)
                for lie in asked.lies:
                    for owner in busiest:
                        told, halves = LIES[lie]
                        mine = [job for job in world.jobs if job.owner == owner]
                        lied = {job.name: told(job, i) for i, job in enumerate(mine)}
                        shares = equal | ({str(owner): 0.5, "second": 0.5} if halves else {})
                        got = delivered(world, [lied.get(job.name, job) for job in world.jobs], rule, shares)
                        before, after = (sum(d.get(str(j.name), 0.0) for j in mine) for d in (honest, got))
                        gains.setdefault((rule, lie), []).append(100 * (after / max(before, 1e-9) - 1))
                    told_of(f"{name}, {rule}, {lie}, up to seed {seed}", gains[rule, lie], len(asked.lies))


if __name__ == "__main__":
    main()
