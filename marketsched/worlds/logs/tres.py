"""Requests of jobs of a Slurm cluster: the trackable resources that ``sacct -P`` prints, per node."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pandas as pd

from marketsched.mechanisms.errors import TraceError
from marketsched.worlds.logs.columns import lengths, plain, times
from marketsched.worlds.logs.delimited import REPEATED, read_text_table, repeated
from marketsched.worlds.logs.text_logs import NOT_ENDED
from marketsched.worlds.traces.faults import Fault, left_out

NEEDED = ("submit", "reqtres")
_PARTS = {"": 1 / 1024, "K": 1 / 1024**2, "M": 1 / 1024, "G": 1.0, "T": 1024.0}  # GiB; Slurm's unit is MiB
_READ = re.compile(r"(?i)(cpu|mem|node|gres/gpu)\b")  # what of a request is read
_FIELD = re.compile(r"(cpu|mem|node|gres/gpu(?::([^=:]+))?)[=:](\d+(?:\.\d*)?|\.\d+)([KMGT]?)")


def tres_table(path: Path) -> tuple[pd.DataFrame, dict[str, int]]:
    """Return the jobs of ``sacct -aPX -o JobIDRaw,User,Partition,Submit,Start,End,State,ReqTRES`` that ran and ended.

    Fields may stand in any order; ``Elapsed`` stands for ``Start`` and ``End``, and more fields are passed over, but
    ``Constraints``, which is kept: as the last field with its ``|``, which separate the others.

    Returns
    -------
    DataFrame
        In order of submission: ``id`` (text: JobIDRaw or JobID; empty without), ``submit_s``, ``start_s`` (the
        submission where no start is recorded) and ``run_s`` (float64, seconds), ``user``, ``partition``,
        ``constraints`` and ``gpu_type`` (text, empty: not named), ``tasks`` (int64: nodes), and of one node ``cpu``
        (cores), ``memory`` (GiB) and ``gpu`` (float64).
    dict of str to int
        Rows left out, by the reason.

    Raises
    ------
    TraceError
        If a field is missing, or no row is left.
    """
    found = read_text_table(path, open_end=lambda name: plain(name) == "constraints")
    rows = found.rows.apply(lambda column: column.str.strip())
    by_name = {plain(str(name)): str(name) for name in reversed(rows.columns.tolist())}
    missing = [name for name in NEEDED if name not in by_name]
    if "elapsed" not in by_name and not {"start", "end"} <= set(by_name):
        missing.append("elapsed")
    if missing:
        legal = "sacct -aPX -o JobIDRaw,User,Partition,Submit,Start,End,State,ReqTRES"
        raise TraceError(f"no field {', '.join(missing)}", source=str(path), legal=legal)

    def field(name: str) -> pd.Series[str]:
        return rows[by_name[name]] if name in by_name else pd.Series("", index=rows.index)

    ran = lengths(field("elapsed")) if "elapsed" in by_name else times(field("end")) - times(field("start"))
    requests = field("reqtres")
    lines = zip(requests.index.tolist(), requests.tolist(), strict=True)
    unread = [Fault(line, f"ReqTRES = {text!r}") for line, text in lines if not _is_read(text)]
    asked = requests.map(_asked)
    ids = by_name.get("jobidraw", by_name.get("jobid"))
    submitted = times(field("submit"))
    table = pd.DataFrame(
        {
            "id": rows[ids] if ids else "",
            "submit_s": submitted,
            "start_s": times(field("start")).fillna(submitted),
            "run_s": ran,
            "user": field("user"),
            "partition": field("partition"),
            "constraints": field("constraints"),
            "gpu_type": asked.map(lambda each: each[4]),
            "tasks": asked.map(lambda each: max(1, round(each[0]))),
            **{name: asked.map(lambda each, i=i: each[i]) for i, name in ((1, "cpu"), (2, "memory"), (3, "gpu"))},
        }
    )
    steps = rows[ids].str.contains(".", regex=False) if ids else pd.Series(False, index=rows.index)
    waiting = field("state").str.upper().str.extract(r"^\s*([A-Z_]+)")[0].isin(NOT_ENDED)
    again = repeated(rows, ids) & ~steps & ~waiting
    counted = {
        "rows left out: steps of jobs": int(steps.sum()),
        "rows left out: not ended": int((waiting & ~steps).sum()),
        REPEATED: int(again.sum()),
    }
    usable = table["submit_s"].notna() & (table["run_s"] > 0) & (table[["cpu", "memory", "gpu"]].sum(axis=1) > 0)
    faults = [*found.faults, *(fault for fault in unread if not steps[fault.line] and not waiting[fault.line])]
    keep = ~steps & ~waiting & ~again & ~table.index.isin([fault.line for fault in faults])
    counted["rows left out: no submission, no run or no resources requested"] = int((keep & ~usable).sum())
    counted |= left_out(faults, path, strict=False)
    table = table[keep & usable].sort_values("submit_s", kind="stable", ignore_index=True)
    if table.empty:
        raise TraceError("no job that ran and requested resources", source=str(path), legal="at least one")
    for name in ("cpu", "memory", "gpu"):  # of one node
        table[name] = table[name].astype(np.float64) / table["tasks"]
    return table, {what: n for what, n in counted.items() if n}


def _is_read(text: str) -> bool:
    """Tell whether every amount of a request is read that is of a resource which counts."""
    return all(_FIELD.fullmatch(part) for part in text.split(",") if _READ.match(part))


def _asked(text: str) -> tuple[float, float, float, float, str]:
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
    return node, cpu, memory, gpu, kind
