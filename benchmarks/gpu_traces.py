"""Bid prices from their own past against first come on three recorded GPU clusters, durations revealed.

    python benchmarks/gpu_traces.py --out rows.csv --dlrm disaggregated_DLRM_trace.csv --seeds 1100 1101 1102

DLRM: services of Alibaba's trace of 2025 (not in MARKETSCHED_DATA; ``--dlrm`` names the file), each instance kept with
chance one half, three nodes of 4 GPUs and 32 without, rounds of 15 minutes, runs cut to 192. Philly: one in five of the
last 20,000 jobs of Microsoft's trace of 2017, 12 nodes of 8 GPUs and 12 of 2, rounds of 20 minutes, runs cut to 144;
a job of more than 8 GPUs takes whole nodes. Loads are of GPUs, made by closer arrivals. openb: 6,000 pods as of
`benchmarks/openb_cluster.py`. Values and deadlines are drawn by the rule of each workload. Printed are per cent of the
dual bound, and paired differences with 95 % intervals over seeds.
"""

from __future__ import annotations

import argparse
import csv
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

sys.path.insert(0, str(Path(__file__).parent))

from marketsched.config.cluster_requests import RequestedShapes
from marketsched.mechanisms.resources.bid_price import ClusterBidPrice
from marketsched.mechanisms.resources.posted import ClusterFirstCome
from marketsched.results.paired_statistics import spread
from marketsched.worlds.openb import OpenbCluster
from marketsched.worlds.traces.catalogue import TRACES
from marketsched.worlds.workload import Workload
from openb_cluster import bound_of, played, sizes_of

RESOURCES = {"cpu": {}, "memory": {}, "gpu": {"device": True}}
DLRM = {
    "resources": RESOURCES,
    "groups": [
        {"name": "hn", "kind": "hn", "nodes": 3, "each": {"cpu": 64, "memory": 512, "gpu": 4}},
        {"name": "cn", "kind": "cn", "nodes": 32, "each": {"cpu": 128, "memory": 1024}},
    ],
}
PHILLY = {
    "resources": {"gpu": {"device": True}},
    "groups": [
        {"name": "large", "kind": "large", "nodes": 12, "each": {"gpu": 8}},
        {"name": "small", "kind": "small", "nodes": 12, "each": {"gpu": 2}},
    ],
}
NODE = 8  # GPUs


class PhillyShapes(RequestedShapes):
    """Philly's jobs with their GPUs."""

    def table(self, data: object) -> tuple[pd.DataFrame, dict[str, int]]:
        """Return the jobs, with the columns of `requests_table`."""
        table = TRACES["philly-jobs"].read(None).sort_values("timestamp", kind="stable", ignore_index=True)
        tasks = np.maximum(1, -(-table["num_gpus"] // NODE))
        columns = {"cpu": 0.0, "memory": 0.0, "gpu": np.ceil(table["num_gpus"] / tasks), "tasks": tasks}
        submitted = (table["timestamp"] - table["timestamp"].iloc[0]).dt.total_seconds()
        text = {"id": "", "user": table["cluster"], "partition": "", "constraints": "", "gpu_type": ""}
        return pd.DataFrame({"submit_s": submitted, "run_s": table["duration"], **text, **columns}), {}


def dlrm(load: float, seed: int, path: str) -> Workload:
    """Return half of the instances."""
    section: dict[str, Any] = {
        "kind": "sacct-shapes", "path": path, "cluster": DLRM, "round_seconds": 900, "max_duration": 192,
        "most_jobs": 20_000, "kept": 0.5, "load": load,
    }  # fmt: skip
    return RequestedShapes.model_validate(section).build(np.random.default_rng(seed), None)


def philly(load: float, seed: int, path: str) -> Workload:
    """Return a fifth of the last jobs."""
    section: dict[str, Any] = {
        "kind": "sacct-shapes", "path": __file__, "cluster": PHILLY, "round_seconds": 1200, "max_duration": 144,
        "most_jobs": 20_000, "kept": 0.2, "load": load,
    }  # fmt: skip
    return PhillyShapes.model_validate(section).build(np.random.default_rng(seed), None)


def openb(load: float, seed: int, path: str) -> Workload:
    """Return drawn pods."""
    return OpenbCluster(load=load, jobs=6_000).build(np.random.default_rng(seed), None)


WORLDS: dict[str, Callable[[float, int, str], Workload]] = {"dlrm": dlrm, "philly": philly, "openb": openb}
RULES: dict[str, Callable[[Workload], Any]] = {
    "first come": lambda world: ClusterFirstCome(**sizes_of(world)),
    "own past": lambda world: ClusterBidPrice(**sizes_of(world), round_seconds=world.round_seconds),
    "slack .05": lambda world: ClusterBidPrice(**sizes_of(world), round_seconds=world.round_seconds, slack=0.05),
    "own past, 144": lambda world: ClusterBidPrice(**sizes_of(world), round_seconds=world.round_seconds, ahead=144),
}
COLUMNS = ("world", "load", "seed", "rule", "share", "completed", "revenue", "seconds")


def report(table: pd.DataFrame) -> None:
    """Print shares and paired differences to first come."""
    for (world, load), part in table.groupby(["world", "load"], sort=False):
        shares = part.pivot_table(index="seed", columns="rule", values="share")
        words = []
        for rule in [each for each in RULES if each in shares]:
            found, text = spread(shares[rule]), ""
            if rule != "first come":
                more = spread(shares[rule] - shares["first come"])
                text = f" ({more.mean:+.1f} ± {more.high - more.mean:.1f})"
            words.append(f"{rule} {found.mean:.1f} ± {found.high - found.mean:.1f}{text}")
        print(f"{world} {load:g}, {len(shares)} seeds: {'; '.join(words)}")


def main() -> None:
    """Play, write a row each, and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--dlrm", default="", help="disaggregated_DLRM_trace.csv")
    parser.add_argument("--worlds", nargs="+", choices=list(WORLDS), default=list(WORLDS))
    parser.add_argument("--loads", nargs="+", type=float, default=[1.0, 1.5])
    parser.add_argument("--rules", nargs="+", choices=list(RULES), default=["first come", "own past"])
    parser.add_argument("--seeds", nargs="+", type=int, default=[1100, 1101, 1102])
    asked = parser.parse_args()
    rows: list[dict[str, Any]] = []
    if asked.out.exists():
        rows = [
            dict(zip(COLUMNS, row, strict=True)) for row in pd.read_csv(asked.out)[list(COLUMNS)].to_numpy().tolist()
        ]
    known = {(row["world"], row["load"], row["seed"], row["rule"]) for row in rows}
    for seed in asked.seeds:
        for name in asked.worlds:
            for load in asked.loads:
                wanted = [rule for rule in asked.rules if (name, load, seed, rule) not in known]
                if not wanted:
                    continue
                world = WORLDS[name](load, seed, asked.dlrm)
                bound = bound_of(world)
                for rule in wanted:
                    began = time.process_time()
                    found = played(RULES[rule](world), world)
                    cell = {"world": name, "load": load, "seed": seed, "rule": rule}
                    told = {"share": 100 * found["welfare"] / bound, "seconds": time.process_time() - began}
                    rows.append({**cell, **told, "completed": found["completed"], "revenue": found["revenue"]})
                    print(*(f"{x:.2f}" if isinstance(x, float) else x for x in rows[-1].values()), flush=True)
                    with asked.out.open("w", newline="") as file:
                        writer = csv.DictWriter(file, COLUMNS)
                        writer.writeheader()
                        writer.writerows(rows)
    report(pd.DataFrame(rows))


if __name__ == "__main__":
    main()
