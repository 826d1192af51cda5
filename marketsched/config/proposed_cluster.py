"""A scenario proposed for a log with requests: the cluster that its jobs must have had, to be corrected by hand.

A log records what each job requested, not what there was. A kind of node is as large as the largest request for one
of its nodes, and there are as many as ran at once. Both are *lower bounds*; ``sinfo`` has the cluster as it is.
"""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import yaml
from numpy.typing import NDArray

from marketsched.worlds.logs.requests import requests_table

HEAD = """\
# A cluster that the requests in {file} must have had, {jobs:,} jobs. The log does not record nodes: `each` is the
# largest request for a node of the kind, `nodes` what ran at once, so both may be too low. What there is says
#     sinfo -o "%P %D %c %m %G"      (Slurm; pbsnodes -aS; kubectl get nodes)
"""
UNITS = {"cpu": {"unit": "core", "parts": 1000}, "memory": {"unit": "GiB", "parts": 1024}, "gpu": {"device": True}}


def proposed_scenario(path: Path) -> str:
    """Return a scenario of kind ``sacct-shapes``, in YAML, with one group of nodes for each kind that jobs name.

    A job's kind is the type of its GPUs, else a type among its constraints, else the type that most jobs of its
    partition name, else its partition.

    Parameters
    ----------
    path : Path
        Of ``sacct -P``, PBS or Kubernetes; see `marketsched.worlds.logs.requests.requests_table`.

    Raises
    ------
    TraceError
        If a field is missing, or no job ran.
    """
    jobs, counted = requests_table(path)
    kinds = _kinds(jobs)
    groups = [_group(str(kind), of_kind) for kind, of_kind in jobs.groupby(kinds)]
    used = [name for name in UNITS if any(name in group["each"] for group in groups)]
    lines = [
        *(f"{line}\n" for line in HEAD.format(file=path.name, jobs=len(jobs)).splitlines()),
        *(f"# {what}: {n:,}\n" for what, n in counted.items()),
        f"name: {_flow(path.stem)}\n",
        "workload:\n  kind: sacct-shapes\n",
        f"  path: {_flow(str(path))}\n",
        "  cluster:\n    resources:\n",
        *(f"      {name}: {_flow(UNITS[name])}\n" for name in used),
        "    groups:\n",
        *(f"    - {_flow(group)}\n" for group in groups),
    ]
    return "".join(lines)


def _kinds(jobs: pd.DataFrame) -> pd.Series[str]:
    """Return the kind of node of each job."""
    types = set(jobs["gpu_type"]) - {""}
    by_constraint = jobs["constraints"].map(lambda text: next((x for x in re.split(r"\W+", text) if x in types), ""))
    kinds = jobs["gpu_type"].where(jobs["gpu_type"] != "", by_constraint)
    named = kinds != ""
    usual = kinds[named].groupby(jobs["partition"][named]).agg(lambda found: found.value_counts().index[0])
    kinds = kinds.where(named, jobs["partition"].map(lambda name: usual.get(name, name)))
    return kinds.where(kinds != "", np.where(jobs["gpu"] > 0, "gpu", "node"))


def _group(kind: str, jobs: pd.DataFrame) -> dict[str, Any]:
    """Return a group of nodes that holds the jobs as they ran."""
    begin = jobs["start_s"].to_numpy()
    end = begin + jobs["run_s"].to_numpy()
    tasks = jobs["tasks"].to_numpy()
    each, nodes = dict[str, int](), int(tasks.max())
    for name in UNITS:
        request = jobs[name].to_numpy()
        if request.max() > 0:
            each[name] = math.ceil(request.max())
            nodes = max(nodes, math.ceil(_most_at_once(begin, end, tasks * request) / each[name]))
    return {"name": kind, "kind": kind, "nodes": nodes, "each": each}


def _most_at_once(begin: NDArray[np.float64], end: NDArray[np.float64], amount: NDArray[np.float64]) -> float:
    """Return the largest sum of amounts over a moment; what ends then is gone before what begins."""
    moments = np.concatenate([end, begin])
    order = np.argsort(moments, kind="stable")
    return float(np.cumsum(np.concatenate([-amount, amount])[order]).max())


def _flow(value: object) -> str:
    """Return a value as YAML on one line."""
    return yaml.safe_dump(value, default_flow_style=True, sort_keys=False, width=math.inf).removesuffix("...\n").strip()
