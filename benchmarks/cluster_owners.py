"""What owners get of their own value on clusters of several resources, durations hidden: `cluster-credits` and others.

    python benchmarks/cluster_owners.py --out cells.csv --seeds 990 991 992

Eight cells: openb (5,000 recorded pods with cores, memory, GPUs or a share of one and the kinds that they accept; 20
owners are drawn, with sizes as 1/rank) and half of the instances of Alibaba's DLRM trace (`--dlrm` names the file; its
services are the owners; 3 nodes with 4 GPUs and 32 without, rounds of 15 minutes), at loads .8, 1.0, 1.3 and 1.6 of
GPUs. Without that file Google's trace of 2011 (3,000 jobs of one task with users, cores and memory, on nodes of two
sizes) can stand in (`--worlds openb google`). Values and
deadlines are drawn (classes 40/40/20 %, densities 1, 3, 9 times a log-normal of deviation .7 a node and round, slack 2,
1 and .25 times the longest of the law). The law of a job is 98 % of what the last ten jobs alike took, and 2 % spread
over all durations, which are rounded to a grid. Nothing is charged.

W is the value delivered in % of the dual bound, which knows all durations; own the share of an owner's value, a mean
over owners with five jobs or more; q10 the worst tenth of them; lost the part of the node-rounds that was lost.
"""

from __future__ import annotations

import argparse
import csv
import sys
import time
from collections import defaultdict
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).parent))

from gpu_traces import DLRM
from marketsched.agents.job import Job
from marketsched.agents.loop import MarketLoop
from marketsched.agents.playing import TruthfulOwners, play
from marketsched.config.cluster_requests import RequestedShapes
from marketsched.mechanisms import DeadlineValue, EventKind
from marketsched.mechanisms.auctions.waiting_job import WaitingJob
from marketsched.mechanisms.credits.cluster_credits import ClusterCredits
from marketsched.mechanisms.law import Signal
from marketsched.mechanisms.offers.cluster_offers import ClusterOffers
from marketsched.mechanisms.resources.cluster import Cluster, NodeGroup, Resource
from marketsched.mechanisms.resources.shapes import Shape
from marketsched.mechanisms.schedulers.cluster_dominant_share import ClusterDominantShare
from marketsched.mechanisms.schedulers.cluster_queue import ClusterQueue
from marketsched.mechanisms.schedulers.easy_backfill import EasyBackfill
from marketsched.mechanisms.schedulers.fair_turns import FairTurns
from marketsched.mechanisms.sow import StatementOfWork
from marketsched.relaxed_lp.pooled_duality import pooled_bound
from marketsched.relaxed_lp.pooled_jobs import pooled_jobs
from marketsched.results.paired_statistics import spread
from marketsched.worlds.openb import OpenbCluster
from marketsched.worlds.traces.catalogue import TRACES

GRID = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 144, 192)  # rounds
UNIFORM, ALIKE, FEWEST = 0.02, 10, 3
GOOGLE_JOBS, GOOGLE_ROUND_S, PARTS = 3_000, 60.0, 16_384
HALF, WHOLE = 1 / 16, 1 / 8  # nodes, of Google's largest machine: jobs of one task take .03 of that on average
LOADS = (0.8, 1.0, 1.3, 1.6)
COLUMNS = ("world", "load", "seed", "rule", "W", "own", "q10", "lost", "regular", "bounded", "beyond", "seconds")


class Asked(NamedTuple):
    """A recorded job: what it asks for, where, and whose it is."""

    birth: int
    owner: str
    each: dict[str, float]
    kinds: tuple[str, ...]
    duration: int


class World(NamedTuple):
    """A market."""

    jobs: list[Job]
    cluster: Cluster
    horizon: int
    max_delay: int
    bound: float


class FirstCome(FairTurns):
    """All jobs are of one owner, and go by arrival."""

    def foresee(self, x: WaitingJob, signal: Signal) -> None:
        """Let the first job be the most important."""
        super().foresee(x, signal)
        self._there[x.job].owner, self._there[x.job].important = 0, -float(x.order)


RULES: dict[str, tuple[type[Any], dict[str, Any]]] = {
    "first come": (FirstCome, {}),
    "easy": (EasyBackfill, {}),
    "dominant share": (ClusterDominantShare, {}),
    "dominant share, 6 h": (ClusterDominantShare, {"half_life_hours": 5.76}),  # .99 a round, as of turns
    "queue, reserve": (ClusterQueue, {"reserve": True}),
    "queue, dominant share": (ClusterQueue, {"order": "dominant-share"}),
    "turns": (FairTurns, {}),
    "offers": (ClusterOffers, {}),
    "offers, regular": (ClusterOffers, {"spare": False}),
    "credits, one, r .9": (ClusterCredits, {"purses": "one", "income": 0.9}),
    "credits, pool": (ClusterCredits, {"purses": "pool"}),
    "credits, one": (ClusterCredits, {"purses": "one"}),
    "credits, one, r .7": (ClusterCredits, {"purses": "one", "income": 0.7}),
    "credits, pool, r .7": (ClusterCredits, {"purses": "pool", "income": 0.7}),
}


def openb(load: float, rng: np.random.Generator, path: str) -> tuple[list[Asked], Cluster]:
    """Return pods of openb, and the cluster for the load."""
    drawn = OpenbCluster(load=load, jobs=5_000, rounds=576, speed_spread=(0.0, 0.0)).build(rng, None)
    assert drawn.cluster is not None
    weights = 1 / np.arange(1, 21)
    whose = rng.choice(20, len(drawn.jobs), p=weights / weights.sum()).tolist()
    rows = []
    for job, owner in zip(drawn.jobs, whose, strict=True):
        shape = job.truth.shapes[0]
        rows.append(Asked(job.truth.birth, f"o{owner}", dict(shape.each), shape.kinds, job.duration))
    return rows, drawn.cluster


def dlrm(load: float, rng: np.random.Generator, path: str) -> tuple[list[Asked], Cluster]:
    """Return half of the instances of the DLRM trace, and their cluster."""
    section: dict[str, Any] = {
        "kind": "sacct-shapes", "path": path, "cluster": DLRM, "round_seconds": 900, "max_duration": GRID[-1],
        "most_jobs": 20_000, "kept": 0.5, "load": load,
    }  # fmt: skip
    found = RequestedShapes.model_validate(section).build(rng, None)
    assert found.cluster is not None
    shapes = [job.truth.shapes[0] for job in found.jobs]
    rows = [
        Asked(job.truth.birth, str(job.owner), dict(shape.each), shape.kinds, job.duration)
        for job, shape in zip(found.jobs, shapes, strict=True)
    ]
    return rows, found.cluster


def google(load: float, rng: np.random.Generator, path: str) -> tuple[list[Asked], Cluster]:
    """Return jobs of one task of Google's trace, a window drawn at random, and nodes of two sizes for the load."""
    table = TRACES["google-demand"].read(None)
    needs = table[["cpu_req", "mem_req"]]
    fits = (needs > 0).all(axis=1) & (needs <= WHOLE).all(axis=1) & (table["n_tasks"] == 1) & table["run_s"].notna()
    table = table[fits]
    first = int(rng.integers(0, len(table) - GOOGLE_JOBS))
    table = table.iloc[first : first + GOOGLE_JOBS]
    births = ((table["submit_s"] - table["submit_s"].iloc[0]) // GOOGLE_ROUND_S).astype(int) + 1
    durations = np.clip(np.ceil(table["run_s"] / GOOGLE_ROUND_S), 1, GRID[-1]).astype(int)
    each = [
        {"cpu": max(1, round(c * PARTS)) / PARTS, "memory": max(1, round(m * PARTS)) / PARTS}
        for c, m in zip(table["cpu_req"], table["mem_req"], strict=True)
    ]
    work = {k: float(sum(e[k] * d for e, d in zip(each, durations, strict=True))) for k in ("cpu", "memory")}
    pairs = max(1, round(max(work.values()) / load / int(births.max()) / (HALF + WHOLE)))
    parts = (Resource("cpu", parts=PARTS), Resource("memory", parts=PARTS))
    groups = [
        NodeGroup(name, name, pairs, {"cpu": size, "memory": size}) for name, size in (("half", HALF), ("whole", WHOLE))
    ]
    rows = [
        Asked(birth, f"u{user}", need, ("whole",) if max(need.values()) > HALF else ("half", "whole"), duration)
        for birth, user, need, duration in zip(births.tolist(), table["user"], each, durations.tolist(), strict=True)
    ]
    return rows, Cluster(parts, tuple(groups))


WORLDS = {"openb": openb, "dlrm": dlrm, "google": google}


def law_of(past: list[int]) -> tuple[NDArray[np.float64], int]:
    """Return the probabilities of the grid after these durations, and the longest of them."""
    counts = np.array([past.count(d) for d in GRID], dtype=np.float64)
    return (1 - UNIFORM) * counts / counts.sum() + UNIFORM / len(GRID), max(past)


def world_at(name: str, load: float, seed: int, path: str = "") -> World:
    """Draw a market; ``path``: of the DLRM trace."""
    rows, cluster = WORLDS[name](load, np.random.default_rng([seed, 1]), path)
    rng, n = np.random.default_rng([seed, 2]), len(rows)
    group = np.searchsorted([0.4, 0.8], rng.random(n), side="right")
    densities = np.array([1.0, 3.0, 9.0])[group] * np.exp(0.7 * rng.standard_normal(n))
    slack = np.array([2.0, 1.0, 0.25])[group] * rng.uniform(0.5, 1.5, n)
    total = dict(zip((r.name for r in cluster.resources), cluster.layout.pool_size.sum(0).tolist(), strict=True))
    parts = {r.name: r.parts for r in cluster.resources}
    past: defaultdict[Any, list[int]] = defaultdict(list)
    jobs, real, every = [], [], list[int]()
    for i, row in enumerate(rows):
        need = tuple(sorted(row.each.items()))
        known = past[row.owner, need] if len(past[row.owner, need]) >= FEWEST else past[need]
        known = known if len(known) >= FEWEST else every or [GRID[5]]
        chances, longest = law_of(known[-ALIKE:])
        duration = min(GRID, key=lambda d: abs(d - row.duration))
        for key in ((row.owner, need), need):
            past[key].append(duration)
        every.append(duration)
        size = max(amount * parts[k] / total[k] for k, amount in row.each.items()) * cluster.nodes
        value = float(densities[i] * size * (chances @ np.array(GRID)))
        deadline = row.birth + longest + int(np.ceil(slack[i] * longest)) + 2
        curve = DeadlineValue(value, deadline)
        shape = Shape(row.each, dict.fromkeys(row.kinds, GRID))
        truth = StatementOfWork.of_shapes(row.birth, curve, row.birth, [shape], chances.tolist(), revealed=False)
        jobs.append(Job(f"j{i}", row.owner, truth, row.birth, duration))
        if row.birth + duration <= deadline:
            one = Shape(row.each, dict.fromkeys(row.kinds, (duration,)))
            real.append((StatementOfWork.of_shapes(row.birth, curve, row.birth, [one]), row.birth, duration))
    horizon = max(job.truth.value.last for job in jobs)
    delay = 1 + max(job.truth.value.last - job.truth.birth for job in jobs)
    flat = pooled_jobs(real, cluster, horizon=horizon, max_delay=delay)
    return World(jobs, cluster, horizon, delay, pooled_bound(flat, cluster.layout.pool_size, horizon, steps=100).value)


def played(world: World, rule: str) -> tuple[dict[str, float], Any, list[Any]]:
    """Play a market; return its figures, the rule and the events."""
    kind, parameters = RULES[rule]
    owners = list(dict.fromkeys(job.owner for job in world.jobs))
    began = time.process_time()
    given = {"owners": owners} if kind not in (ClusterQueue, EasyBackfill, ClusterOffers) else {}
    market = kind(
        world.cluster.nodes, world.horizon, max_concurrency=1, max_duration=GRID[-1], max_delay=world.max_delay,
        max_value=max(job.truth.value.highest for job in world.jobs), cluster=world.cluster, **given, **parameters,
    )  # fmt: skip
    events = play(MarketLoop(market), TruthfulOwners(world.jobs), world.horizon)
    seconds = time.process_time() - began
    done = {e.job: e.completion or 0 for e in events if e.kind is EventKind.COMPLETE and e.worth > 0}
    total, got, count = defaultdict[str, float](float), defaultdict[str, float](float), defaultdict[str, int](int)
    for job in world.jobs:
        total[job.owner] += job.truth.value.highest
        count[job.owner] += 1
        got[job.owner] += float(job.truth.value(done[job.name])) if job.name in done else 0.0
    shares = [got[owner] / total[owner] for owner in total if count[owner] >= 5]
    figures = market.statistics()
    upgrades = market.upgrades if isinstance(market, ClusterCredits) else []
    beyond = sum((u.started or u.left or market.round) - u.round - u.unpaid > u.bound for u in upgrades)
    found = {
        "W": 100 * sum(got.values()) / world.bound, "own": 100 * float(np.mean(shares)),
        "q10": 100 * float(np.quantile(shares, 0.1)),
        "lost": 100 * figures.get("node_rounds_lost", 0.0) / max(1e-9, figures.get("node_rounds", 1.0)),
        "regular": len(upgrades), "bounded": sum(np.isfinite(u.bound) for u in upgrades), "beyond": beyond,
        "seconds": seconds,
    }  # fmt: skip
    return found, market, events


def first_of(world: World, jobs: int) -> World:
    """Return a market of its first so many jobs; 0: all of them."""
    if not jobs:
        return world
    first = world.jobs[:jobs]
    return world._replace(jobs=first, horizon=max(job.truth.value.last for job in first))


def works_of(world: World) -> NDArray[np.float64]:
    """Return the work of each job: its largest share of the cluster, in nodes, times its announced mean."""
    sizes = world.cluster.layout.pool_size.sum(0).tolist()
    parts = {
        r.name: world.cluster.nodes * r.parts / size for r, size in zip(world.cluster.resources, sizes, strict=True)
    }
    laws = [job.truth.law for job in world.jobs]
    means = [float(law.probabilities @ law.durations / law.probabilities.sum()) for law in laws]
    shares = [max(amount * parts[k] for k, amount in job.truth.shapes[0].each.items()) for job in world.jobs]
    works: NDArray[np.float64] = np.array(shares) * np.array(means)
    return works


def by_seed(rows: list[dict[str, Any]], rule: str, figure: str) -> NDArray[np.float64]:
    """Return the mean of a figure over the cells, for each seed."""
    own = [row for row in rows if row["rule"] == rule]
    seeds = sorted({row["seed"] for row in own})
    return np.array([np.mean([row[figure] for row in own if row["seed"] == seed]) for seed in seeds])


def told_of(figures: list[NDArray[np.float64]], form: str) -> str:
    """Return means over seeds, with Student's 95 % intervals."""
    spreads = [spread(each) for each in figures]
    return ", ".join(f"{each.mean:{form}} ± {each.high - each.mean:.1f}" for each in spreads)


def summary(rows: list[dict[str, Any]]) -> None:
    """Print means over the cells, with intervals over seeds, and each rule less the first, seed by seed."""
    rules, names = list(dict.fromkeys(row["rule"] for row in rows)), ("W", "own", "q10")
    for rule in rules:
        own, figures = [row for row in rows if row["rule"] == rule], [by_seed(rows, rule, name) for name in names]
        worlds = sorted({row["world"] for row in own})
        lost = {name: np.mean([row["lost"] for row in own if row["world"] == name]) for name in worlds}
        counts = [sum(int(row[name]) for row in own) for name in ("regular", "bounded", "beyond")]
        what = f"W, own, q10 {told_of(figures, '.1f')}; lost {', '.join(f'{w} {x:.1f}' for w, x in lost.items())} %"
        print(f"{rule}: {what};")
        print(f"  {counts[0]:,} regular, {counts[1]:,} with a bound, {counts[2]} beyond it")
        if rule != rules[0]:
            less = [figure - by_seed(rows, rules[0], name) for figure, name in zip(figures, names, strict=True)]
            print(f"  less {rules[0]}: {told_of(less, '+.1f')}")


def main() -> None:
    """Play what the file lacks, and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seeds", nargs="+", type=int, default=[990, 991, 992])
    parser.add_argument("--worlds", nargs="+", default=["openb", "dlrm"])
    parser.add_argument("--dlrm", default="", help="disaggregated_DLRM_trace.csv")
    parser.add_argument("--loads", nargs="+", type=float, default=list(LOADS))
    parser.add_argument("--rules", nargs="+", default=["first come", "turns", "credits, one", "credits, pool"])
    asked = parser.parse_args()
    rows: list[dict[str, Any]] = []
    for seed in asked.seeds:
        for name in asked.worlds:
            for load in asked.loads:
                world = world_at(name, load, seed, asked.dlrm)
                for rule in asked.rules:
                    found, *_ = played(world, rule)
                    rows.append({"world": name, "load": load, "seed": seed, "rule": rule, **found})
                    told = ", ".join(f"{key} {value:.1f}" for key, value in found.items())
                    print(f"{name} {load:g} {seed} {rule}: {told}", flush=True)
                    with asked.out.open("w", newline="") as file:
                        writer = csv.DictWriter(file, COLUMNS)
                        writer.writeheader()
                        writer.writerows(rows)
    summary(rows)


if __name__ == "__main__":
    main()
