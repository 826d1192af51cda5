"""How many of openb's GPUs the placement rules give out: the table of Weng et al., Beware of Fragmentation, ATC 2023.

    python benchmarks/openb_allocation.py [--seeds 0 1 2 3 4 5 6 7 8 9] [--rules first best worst fgd]

Pods are drawn with replacement until they have asked for 100 and for 130 % of the GPUs of the whole cluster; each goes
to the node that the rule prefers, if one fits, and stays. Printed is the share of the GPUs that is given out, in per
cent, mean over seeds with Student's 95 % interval, beside the figures of the authors' own simulator (their artifact,
the same pods and nodes). Files are read from the folder that MARKETSCHED_DATA names.
"""

from __future__ import annotations

import argparse

import numpy as np

from marketsched.mechanisms.resources.calendars import Calendars, Wanted
from marketsched.mechanisms.resources.cluster import Cluster, NodeGroup
from marketsched.mechanisms.resources.placement import RULES, Rule, TaskTypes, place
from marketsched.results.paired_statistics import spread
from marketsched.worlds.openb_nodes import RESOURCES
from marketsched.worlds.traces.catalogue import TRACES

ASKED = (1.0, 1.3)  # GPU-demand over GPUs
ARTIFACT = {"best": (92.9, 93.1), "fgd": (95.2, 95.4)}  # per cent


def whole_cluster() -> Cluster:
    """Return all nodes of the file as one pool: pods of the first file accept any model."""
    table = TRACES["openb-nodes"].read()
    rows = table.groupby(["gpu", "cpu_milli", "memory_mib"], sort=True).size().reset_index(name="nodes")
    groups = [
        NodeGroup(f"g{i}", "node", int(n), {"cpu": milli / 1000, "memory": mib / 1024, "gpu": int(gpu)})
        for i, (gpu, milli, mib, n) in enumerate(rows.itertuples(index=False, name=None))
    ]
    return Cluster(RESOURCES, tuple(groups))


def demands() -> np.ndarray:
    """Return what each pod asks for, in parts, shape (n_pods, 3)."""
    pods = TRACES["openb-pods"].read()
    gpu = np.where(pods["num_gpu"] == 1, pods["gpu_milli"], 1000 * pods["num_gpu"].astype(np.int64))
    return np.column_stack([pods["cpu_milli"], pods["memory_mib"], gpu]).astype(np.int64)


def shares(rule: Rule, cluster: Cluster, pods: np.ndarray, seed: int) -> list[float]:
    """Return the share of the GPUs given out each time the demand reaches one of `ASKED`, per cent."""
    rng, calendars, types = np.random.default_rng(seed), Calendars(cluster, 1), TaskTypes(3)
    total, asked, given = int(cluster.layout.pool_size[0, 2]), 0, 0
    found: list[float] = []
    while len(found) < len(ASKED):
        need = pods[rng.integers(len(pods))]
        asked += int(need[2])
        types.add(need)
        wanted = Wanted(0, 1, 1, need)
        room = calendars.room(wanted, 1, 1)
        if room.nodes.size:
            calendars.book(wanted, place(rule, room, wanted, cluster, types), 1, 1)
            given += int(need[2])
        if asked >= ASKED[len(found)] * total:
            found.append(100 * given / total)
    return found


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, nargs="+", default=list(range(10)))
    parser.add_argument("--rules", nargs="+", choices=RULES, default=list(RULES))
    arguments = parser.parse_args()
    cluster, pods = whole_cluster(), demands()
    for rule in arguments.rules:
        rows = np.array([shares(rule, cluster, pods, seed) for seed in arguments.seeds])
        parts = []
        for i, asked in enumerate(ASKED):
            theirs = f", artifact {ARTIFACT[rule][i]:g}" if rule in ARTIFACT else ""
            found = spread(rows[:, i])
            parts.append(f"{asked:.0%}: {found.mean:.1f} +- {found.mean - found.low:.1f}{theirs}")
        print(f"{rule:6} {'   '.join(parts)}", flush=True)


if __name__ == "__main__":
    main()
