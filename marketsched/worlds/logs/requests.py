"""Requests of jobs, per node: Slurm's ReqTRES as ``sacct -P`` prints it, or columns with cores, memory and GPUs.

Those are ``Resource_List`` of PBS's accounting, a table of pods of Kubernetes, or Alibaba's table of services of 2025
(Yang et al., GPU-Disaggregated Serving for Deep Learning Recommendation Models at Scale, NSDI 2025).
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pandas as pd

from marketsched.mechanisms.errors import TraceError
from marketsched.worlds.logs.columns import UTC, columns_for, counts, plain, table_of
from marketsched.worlds.logs.delimited import REPEATED, header_of, read_text_table, repeated
from marketsched.worlds.logs.misreadings import GPUS, MODELS
from marketsched.worlds.logs.pbs_accounting import is_accounting, read_accounting
from marketsched.worlds.logs.reruns import STEPS, WAITING, are_steps, job_ids, one_row_a_job
from marketsched.worlds.logs.text_logs import NOT_ENDED, states_of
from marketsched.worlds.traces.faults import Fault, left_out

CORES = ("resourcelistncpus", "cpu", "requestscpu", "cpurequest", "cpurequests", "cpus", "ncpus", "cores", "slots")
MEMORY = ("resourcelistmem", "memory", "requestsmemory", "memoryrequest", "memoryrequests", "mem")
NODES = ("resourcelistnodect", "nnodes", "nodes")
AMOUNTS = ("cpu", "memory", "gpu")
_KINDS = {"tasks": NODES, "cpu": CORES, "memory": MEMORY, "gpu": GPUS, "gpu_type": MODELS}
EMPTY = "rows left out: no submission, no run or no resources requested"
LEAST_BYTES = 1e6  # smaller numbers without a unit are GiB
_GIB = {"": 1 / 1024**3, "K": 1 / 1024**2, "M": 1 / 1024, "G": 1.0, "T": 1024.0}  # of bytes, with any suffix
_PARTS = {**_GIB, "": 1 / 1024}  # of Slurm, whose unit is MiB
_READ = re.compile(r"(?i)(cpu|mem|node|gres/gpu)\b")  # what of a request is read
_FIELD = re.compile(r"(cpu|mem|node|gres/gpu(?::([^=:]+))?)[=:](\d+(?:\.\d*)?|\.\d+)([KMGT]?)")
_AMOUNT = r"(?i)^(\d+(?:\.\d*)?|\.\d+)([mkgt]?)i?b?$"


def requests_table(path: Path, zone: str = UTC) -> tuple[pd.DataFrame, dict[str, int]]:
    """Return the jobs that ran and ended, of PBS's accounting or a table of text, with what each of their nodes needs.

    Such a table is what ``sacct -aPX -o JobIDRaw,User,Partition,Submit,Start,End,State,ReqTRES`` prints, or has columns
    for cores, memory and GPUs. Fields may stand in any order, and more are passed over, but ``Constraints``, which is
    kept: as the last field with its ``|``, which separate the others. Rows of one job are put together.

    Returns
    -------
    DataFrame
        In order of submission: ``id`` (text: JobID or JobIDRaw; empty without), ``submit_s``, ``start_s`` (the
        submission where no start is recorded) and ``run_s`` (float64, seconds), ``user``, ``partition``,
        ``constraints`` and ``gpu_type`` (text, empty: not named), ``tasks`` (int64: nodes), and of one node ``cpu``
        (cores; a node where a file says neither cores nor memory), ``memory`` (GiB) and ``gpu`` (float64).
    dict of str to int
        Rows left out, by the reason.

    Raises
    ------
    TraceError
        If a field is missing, or no row is left.
    """
    found = (
        read_accounting(path)
        if is_accounting(header_of(path))
        else read_text_table(path, open_end=lambda name: plain(name) == "constraints")
    )
    rows = found.rows.apply(lambda column: column.str.strip())
    by_name = {plain(str(name)): str(name) for name in reversed(rows.columns.tolist())}
    names = columns_for(rows.columns.tolist(), {}, str(path), ("submit_s",))
    of_kind = {name: next((by_name[each] for each in known if each in by_name), None) for name, known in _KINDS.items()}
    tres = by_name.get("reqtres", by_name.get("alloctres"))
    if tres is None and not any(of_kind[name] for name in ("cpu", "memory", "gpu")):
        legal = "sacct -aPX -o JobIDRaw,User,Partition,Submit,Start,End,State,ReqTRES, or columns cpu, memory, gpu"
        raise TraceError("no field reqtres", source=str(path), legal=legal)
    ids = rows[job_ids(by_name)] if job_ids(by_name) else pd.Series("", index=rows.index)
    states = states_of(rows[names["status"]]) if "status" in names else pd.Series("", index=rows.index)
    steps = are_steps(ids)
    waiting = states.isin(NOT_ENDED) & ~steps
    again = repeated(rows, job_ids(by_name)) & ~steps & ~waiting
    counted = {STEPS: int(steps.sum()), WAITING: int(waiting.sum()), REPEATED: int(again.sum()) + found.headers}
    rows = rows[~steps & ~waiting & ~again]
    names = {ours: names[ours] for ours in ("submit_s", "start", "end", "run_s", "user", "queue") if ours in names}
    table, faults, _ = table_of(rows, names, zone)
    faults += found.faults
    if tres is not None:
        requests = rows[tres]
        unread = ~requests.map(_is_read)
        faults += [Fault(int(line), f"{tres} = {text!r}") for line, text in requests[unread].items()]
        table = table[~unread.reindex(table.index)]
        asked = pd.DataFrame(
            [_asked(text) for text in requests.reindex(table.index)], table.index, ["tasks", *AMOUNTS, "gpu_type"]
        )
    else:
        asked = _columns(rows.loc[table.index], of_kind)
    table = table.join(asked)
    for name in AMOUNTS:  # of one node
        table[name] = table[name].astype(np.float64) / table["tasks"]
    table["id"] = ids.reindex(table.index)
    table["constraints"] = rows[by_name["constraints"]].reindex(table.index) if "constraints" in by_name else ""
    table, merged = one_row_a_job(table, ids, states, "tasks")
    table = table.rename(columns={"queue": "partition"})
    for name in ("user", "partition"):
        table[name] = table[name] if name in table else ""
    table["start_s"] = table["start_s"].fillna(table["submit_s"]) if "start_s" in table else table["submit_s"]
    usable = table["submit_s"].notna() & (table["run_s"] > 0) & (table[list(AMOUNTS)].sum(axis=1) > 0)
    counted |= {EMPTY: int((~usable).sum())} | merged | left_out(faults, path, strict=False)
    table = table[usable].sort_values("submit_s", kind="stable", ignore_index=True)
    if table.empty:
        raise TraceError("no job that ran and requested resources", source=str(path), legal="at least one")
    return table, {what: n for what, n in counted.items() if n}


def _columns(rows: pd.DataFrame, of_kind: dict[str, str | None]) -> pd.DataFrame:
    """Return nodes, cores, GiB, GPUs and the type of GPU of rows with a column for each that they have."""
    found = pd.DataFrame(index=rows.index)
    named = of_kind["tasks"]
    found["tasks"] = counts(rows[named]).fillna(1).clip(lower=1).astype(np.int64) if named else 1
    for name in AMOUNTS:
        column = of_kind[name]
        if column is None:
            found[name] = 0.0
            continue
        parts = rows[column].str.extract(_AMOUNT)
        unit = parts[1].str.upper().map(_GIB) if name == "memory" else parts[1].map({"": 1.0, "m": 1e-3})
        number = parts[0].astype(np.float64)
        if name == "memory" and number.max() < LEAST_BYTES:
            unit = unit.where(parts[1] != "", 1.0)
        found[name] = (number * unit.astype(np.float64)).fillna(0.0)
    if of_kind["cpu"] is None and of_kind["memory"] is None:
        found["cpu"] = found["tasks"].astype(np.float64)
    found["gpu_type"] = rows[of_kind["gpu_type"]] if of_kind["gpu_type"] else ""
    return found


def _is_read(text: str) -> bool:
    """Tell whether every amount of a request is read that is of a resource which counts."""
    return all(_FIELD.fullmatch(part) for part in text.split(",") if _READ.match(part))


def _asked(text: str) -> tuple[int, float, float, float, str]:
    """Return nodes, cores, GiB, GPUs and the type of GPU of ``cpu=48,gres/gpu:a100=8,gres/gpu=8,mem=256G,node=2``."""
    node, cpu, memory, gpu, kind = 1.0, 0.0, 0.0, 0.0, ""
    for what, named, number, unit in (each.groups() for part in text.split(",") if (each := _FIELD.fullmatch(part))):
        if what == "cpu":
            cpu = float(number)
        elif what == "mem":
            memory = float(number) * _PARTS[unit]
        elif what == "node":
            node = float(number)
        else:
            gpu = max(gpu, float(number))  # the type and the sum of all types both stand there
            kind = named or kind
    return max(1, round(node)), cpu, memory, gpu, kind
