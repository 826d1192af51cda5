"""Instances of services with their requests: Alibaba's table of disaggregated recommendation models, of 2025."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from marketsched.mechanisms.errors import TraceError
from marketsched.worlds.logs.columns import amounts, plain
from marketsched.worlds.logs.delimited import read_text_table
from marketsched.worlds.traces.faults import left_out

COLUMNS = {
    "submit_s": "creation_time", "start_s": "scheduled_time", "end_s": "deletion_time", "user": "app_name",
    "partition": "role", "cpu": "cpu_request", "memory": "memory_request", "gpu": "gpu_request",
}  # fmt: skip
NUMBERS = ("submit_s", "start_s", "end_s", "cpu", "memory", "gpu")


def instance_table(path: Path) -> tuple[pd.DataFrame, dict[str, int]]:
    """Return the instances of ``disaggregated_DLRM_trace.csv`` that began and ended inside the trace.

    Other columns (limits, network, disk, how many of a service a node may hold) are passed over. An instance is a job
    of one task; its service is the user, its role the partition, in small letters.

    Returns
    -------
    DataFrame
        As of `marketsched.worlds.logs.requests.requests_table`, in order of creation; the index counts from 0.
    dict of str to int
        Rows left out, by the reason.

    Raises
    ------
    TraceError
        If a column is missing, or no row is left.

    References
    ----------
    Yang et al., GPU-Disaggregated Serving for Deep Learning Recommendation Models at Scale, NSDI 2025.
    """
    found = read_text_table(path)
    by_name = {plain(str(name)): str(name) for name in reversed(found.rows.columns.tolist())}
    missing = [name for name in COLUMNS.values() if plain(name) not in by_name]
    if missing:
        raise TraceError(f"no column {', '.join(missing)}", source=str(path), legal=",".join(COLUMNS.values()))
    table = pd.DataFrame({name: found.rows[by_name[plain(column)]].str.strip() for name, column in COLUMNS.items()})
    for name in NUMBERS:
        table[name] = amounts(table[name])
    table["run_s"] = table["end_s"] - table["start_s"]
    inside = table[["submit_s", "run_s"]].notna().all(axis=1)
    asked = (table["run_s"] > 0) & (table[["cpu", "memory", "gpu"]].sum(axis=1) > 0)
    counted = {
        "rows left out: began before the trace, or not ended in it": int((~inside).sum()),
        "rows left out: no run or no resources requested": int((inside & ~asked).sum()),
        **left_out(found.faults, path, strict=False),
    }
    table = table[inside & asked].sort_values("submit_s", kind="stable", ignore_index=True)
    if table.empty:
        raise TraceError("no instance that began and ended", source=str(path), legal="at least one")
    table["partition"] = table["partition"].str.lower()
    table[["cpu", "memory", "gpu"]] = table[["cpu", "memory", "gpu"]].fillna(0.0)
    empty = pd.Series("", index=table.index)
    table = table.drop(columns=["start_s", "end_s"]).assign(id=empty, constraints=empty, gpu_type=empty, tasks=1)
    return table, {what: n for what, n in counted.items() if n}
