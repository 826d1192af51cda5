"""Mechanisms on openb's cluster of several kinds and resources, at several loads, as shares of the dual bound.

    python benchmarks/openb_cluster.py --out table.csv [--loads 0.8 1 1.3 1.6 2] [--seeds 700 701] [--rows laws history]
    python benchmarks/openb_cluster.py --out kinds.csv --loads 1.3 --alternatives none two three any --rows laws

Every row of the CSV file is a load, seed, list of accepted kinds and contestant: its welfare, and the bound (29) over
pools, which knows the future. Rows that the file has are not played again. Printed are means over seeds with Student's
95 % interval, and paired differences between ``laws`` and the others. Pods and nodes are read from the folder that
MARKETSCHED_DATA names; values, deadlines, speeds and owners are made up (`marketsched.worlds.openb`).
"""

from __future__ import annotations

import argparse
import csv
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from marketsched.agents.job import Job
from marketsched.agents.loop import MarketLoop
from marketsched.agents.playing import TruthfulOwners, play
from marketsched.mechanisms import EventKind
from marketsched.mechanisms.mechanism import Mechanism
from marketsched.mechanisms.resources.bid_price import ClusterBidPrice
from marketsched.mechanisms.resources.cluster import Cluster, NodeGroup, Resource
from marketsched.mechanisms.resources.posted import ClusterExponential, ClusterFirstCome
from marketsched.mechanisms.resources.shapes import Shape
from marketsched.mechanisms.schedulers.cluster_queue import ClusterQueue
from marketsched.mechanisms.sow import StatementOfWork
from marketsched.mechanisms.statement_law import StatementLaw
from marketsched.relaxed_lp.pooled_duality import pooled_bound
from marketsched.relaxed_lp.pooled_jobs import pooled_jobs
from marketsched.results.paired_statistics import spread
from marketsched.worlds.openb import OpenbCluster
from marketsched.worlds.workload import Workload

LOADS = (0.8, 1.0, 1.3, 1.6, 2.0)
COLUMNS = ("load", "seed", "alternatives", "row", "welfare", "bound", "completed", "revenue", "seconds")
BOUND_STEPS = 600
SLOTS_WITHOUT_GPU = 8  # of a node


def sizes_of(workload: Workload) -> dict[str, Any]:
    """Return the sizes that mechanisms of a cluster take."""
    names = ("capacity", "horizon", "max_concurrency", "max_duration", "max_value", "max_delay", "cluster")
    return {name: getattr(workload, name) for name in names}


def slot_view(workload: Workload, rng: np.random.Generator | None) -> Workload:
    """Return the market that counts slots: a GPU with its share of a node's cores and memory, an eighth of a CPU node.

    With ``rng`` every job names one kind, drawn by the slots of those that it accepts; else all.
    """
    return _viewed(workload, rng, lambda group: int(group.each["gpu"]) or SLOTS_WITHOUT_GPU)


def node_view(workload: Workload, rng: np.random.Generator | None) -> Workload:
    """Return the market that counts whole nodes; ``rng`` as of `slot_view`."""
    return _viewed(workload, rng, lambda group: 1)


def _viewed(workload: Workload, rng: np.random.Generator | None, slots_of: Callable[[NodeGroup], int]) -> Workload:
    """Count slots in place of resources. Groups of nodes are kinds of their own: their slots differ."""
    cluster = workload.cluster
    assert cluster is not None
    slots = [slots_of(group) for group in cluster.groups]
    groups = [
        NodeGroup(group.name, group.name, group.nodes, {"slot": n})
        for group, n in zip(cluster.groups, slots, strict=True)
    ]
    weights: dict[str, float] = {kind: 0.0 for kind in cluster.kinds}
    for group, n in zip(cluster.groups, slots, strict=True):
        weights[group.kind] += n * group.nodes
    jobs = []
    for job in workload.jobs:
        (shape,) = job.truth.shapes
        kinds = list(shape.kinds)
        if rng is not None:
            p = np.array([weights[kind] for kind in kinds])
            kinds = [kinds[rng.choice(len(kinds), p=p / p.sum())]]
        needs: dict[int, dict[str, tuple[int, ...]]] = {}
        for group, n in zip(cluster.groups, slots, strict=True):
            if group.kind in kinds:
                share = max(
                    need / group.each[name] if group.each[name] else np.inf for name, need in shape.each.items()
                )
                if share <= 1 + 1e-12:
                    needs.setdefault(max(1, int(np.ceil(n * share - 1e-9))), {})[group.name] = shape.on[group.kind]
        shapes = [Shape({"slot": slot}, on) for slot, on in needs.items()]
        birth = job.truth.birth
        if shapes:
            truth = StatementOfWork.of_shapes(birth, job.truth.value, birth, shapes)
            d = int(truth.requirements[0].duration)
            jobs.append(Job(job.name, job.owner, truth, birth, d, d, job.tags))
    return replace(workload, jobs=tuple(jobs), cluster=Cluster((Resource("slot"),), tuple(groups)))


def bound_of(workload: Workload) -> float:
    """Return the dual bound with pools, credits."""
    assert workload.cluster is not None
    rows = [(job.truth, job.arrival, job.duration) for job in workload.jobs]
    jobs = pooled_jobs(rows, workload.cluster, horizon=workload.horizon, max_delay=workload.max_delay)
    return pooled_bound(jobs, workload.cluster.layout.pool_size, workload.horizon, steps=BOUND_STEPS).value


def played(mechanism: Mechanism, workload: Workload) -> dict[str, Any]:
    """Play a market of truthful owners; return welfare and revenue, credits, and how many jobs are done."""
    events = play(MarketLoop(mechanism), TruthfulOwners(workload.jobs), workload.horizon)
    truth: dict[Any, StatementOfWork] = {job.name: job.truth for job in workload.jobs}
    done = [event for event in events if event.kind is EventKind.COMPLETE]
    welfare = sum(event.worth * float(truth[event.job].value(event.completion or 0)) for event in done)
    return {"welfare": welfare, "completed": len(done), "revenue": sum(event.payment for event in done)}


def densities(workload: Workload) -> np.ndarray:
    """Return the value of each job per round and largest share of the whole cluster, credits."""
    assert workload.cluster is not None
    total = {
        resource.name: sum(group.nodes * group.each.get(resource.name, 0) for group in workload.cluster.groups)
        for resource in workload.cluster.resources
    }
    found = []
    for job in workload.jobs:
        (shape,) = job.truth.shapes
        share = max(need / total[name] for name, need in shape.each.items())
        found.append(job.truth.value.highest / (share * min(d for (d,) in shape.on.values())))
    return np.array(found)


Maker = Callable[[Workload, Callable[[], list[StatementLaw]], int], Mechanism]


def _bid(**rules: Any) -> Maker:
    return lambda world, laws, seed: ClusterBidPrice(**sizes_of(world), round_seconds=world.round_seconds, **rules)


def _laws(world: Workload, laws: Callable[[], list[StatementLaw]], seed: int) -> Mechanism:
    return ClusterBidPrice(**sizes_of(world), forecast="laws", laws=laws(), rng=np.random.default_rng(seed))


def _future(world: Workload, laws: Callable[[], list[StatementLaw]], seed: int) -> Mechanism:
    known = [StatementLaw.of(job.truth) for job in world.jobs]
    return ClusterBidPrice(**sizes_of(world), forecast="laws", laws=known, scenarios=1, rng=np.random.default_rng(seed))


def _queue(**rules: Any) -> Maker:
    return lambda world, laws, seed: ClusterQueue(**sizes_of(world), **rules)


def _exponential(world: Workload, laws: Callable[[], list[StatementLaw]], seed: int) -> Mechanism:
    floor, ceiling = np.quantile(densities(world), [0.01, 0.99])
    return ClusterExponential(**sizes_of(world), floor=float(floor), ceiling=float(ceiling))


View = Callable[[Workload, "np.random.Generator | None"], Workload]
ROWS: dict[str, tuple[Maker, View | None, bool]] = {  # contestant, view of the market, whether one kind is drawn
    "laws": (_laws, None, False),
    "history": (_bid(), None, False),
    "history-144": (_bid(ahead=144), None, False),
    "first-come": (lambda world, laws, seed: ClusterFirstCome(**sizes_of(world)), None, False),
    "density": (_queue(order="density"), None, False),
    "future": (_future, None, False),
    "exponential": (_exponential, None, False),
    "fifo": (_queue(order="fifo"), None, False),
    "backfill": (_queue(order="fifo", reserve=True), None, False),
    "dominant-share": (_queue(order="dominant-share"), None, False),
    "slots": (_bid(), slot_view, False),
    "slots-one-kind": (_bid(), slot_view, True),
    "nodes": (_bid(), node_view, False),
    "nodes-one-kind": (_bid(), node_view, True),
}


def rows_of(arguments: argparse.Namespace, known: set[tuple[str, ...]]) -> Iterator[dict[str, Any]]:
    """Play what is not known yet."""
    for seed in arguments.seeds:
        for load in arguments.loads:
            for kinds in arguments.alternatives:
                cell = {"load": load, "seed": seed, "alternatives": kinds}
                asked = [row for row in arguments.rows if (*map(str, cell.values()), row) not in known]
                if not asked:
                    continue
                recipe = OpenbCluster(load=load, jobs=arguments.jobs, alternatives=kinds)
                workload = recipe.build(np.random.default_rng(seed), None)
                bound = bound_of(workload)
                for row in asked:
                    maker, view, one = ROWS[row]
                    world = workload if view is None else view(workload, np.random.default_rng(seed) if one else None)
                    laws = _laws_of(recipe, workload, seed)
                    began = time.process_time()
                    found = played(maker(world, laws, seed), world)
                    yield {**cell, "row": row, "bound": bound, "seconds": time.process_time() - began, **found}


def _laws_of(recipe: OpenbCluster, workload: Workload, seed: int) -> Callable[[], list[StatementLaw]]:
    return lambda: recipe.statement_laws(workload, np.random.default_rng(seed), None)


def report(table: pd.DataFrame) -> None:
    """Print shares of the bound, differences to the first contestant, and what more kinds are worth."""
    table = table.assign(share=100 * table["welfare"] / table["bound"])
    for kinds, part in table.groupby("alternatives", sort=False):
        shares = part.pivot_table(index=["load", "seed"], columns="row", values="share")
        rows = [row for row in ROWS if row in shares]
        loads = sorted(part["load"].unique())
        print(f"\nper cent of the bound, kinds accepted: {kinds}; seeds: {sorted(part['seed'].unique().tolist())}")
        print(f"{'':16}" + "".join(f"{load:>16}" for load in loads))
        for row in rows:
            print(f"{row:16}" + "".join(f"{_cell(shares.loc[load, row]):>16}" for load in loads))
        for row in rows[1:]:
            differences = shares[rows[0]] - shares[row]
            label = f"{rows[0]} less {row}"
            print(f"{label:28}" + "".join(f"{_cell(differences.loc[load], '+'):>16}" for load in loads))
    if table["alternatives"].nunique() > 1 and "none" in set(table["alternatives"]):
        worth = table.pivot_table(index=["row", "load", "seed"], columns="alternatives", values=["welfare", "bound"])
        print("\nper cent more than with one kind")
        for what in ("welfare", "bound"):
            gains = 100 * (worth[what].div(worth[what]["none"], axis=0) - 1)
            for (row, load), part in gains.groupby(level=[0, 1]):
                cells = "  ".join(f"{kinds}: {_cell(part[kinds], '+')}" for kinds in part if kinds != "none")
                print(f"{what:8} {row:12} {load:4}  {cells}")


def _cell(values: pd.Series, sign: str = "") -> str:
    found = spread(values.dropna())
    half = "" if np.isnan(found.low) else f" +- {found.mean - found.low:.1f}"
    return f"{found.mean:{sign}.1f}{half}"


def main() -> None:
    """Play what the file lacks, then print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--loads", type=float, nargs="+", default=list(LOADS))
    parser.add_argument("--seeds", type=int, nargs="+", default=[700, 701])
    parser.add_argument("--rows", nargs="+", choices=list(ROWS), default=["laws", "history", "first-come", "density"])
    parser.add_argument("--alternatives", nargs="+", default=["recorded"])
    parser.add_argument("--jobs", type=int, default=6000)
    arguments = parser.parse_args()
    known: set[tuple[str, ...]] = set()
    if arguments.out.exists():
        with arguments.out.open() as file:
            known = {(row["load"], row["seed"], row["alternatives"], row["row"]) for row in csv.DictReader(file)}
    with arguments.out.open("a", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS)
        if not known:
            writer.writeheader()
        for row in rows_of(arguments, known):
            writer.writerow(row)
            file.flush()
            share = row["welfare"] / row["bound"]
            print(f"{row['load']} {row['seed']} {row['alternatives']} {row['row']}: {share:.3f}", flush=True)
    report(pd.read_csv(arguments.out))


if __name__ == "__main__":
    main()
