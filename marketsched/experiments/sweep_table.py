"""One tidy table of a sweep: a row for every run, or for every policy of a run, in the order of the sweep.

Columns: ``case`` (number of the scenario with its changes), ``scenario``, the labels of the cases,
``seed``, ``run``, ``status`` (``done`` or ``failed``), ``error``, then the figures. Durations are not
among them: equal sweeps have equal tables, to the byte.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from marketsched.experiments.sweep_runs import SweepRun

if TYPE_CHECKING:
    import pyarrow as pa


def sweep_rows(runs: Sequence[SweepRun], records: Mapping[str, Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the rows of all runs that have a record, each with all it knows, in the order of ``runs``."""
    labels = list(dict.fromkeys(name for run in runs for name in run.case.labels))
    taken = {"case", "scenario", *labels, "seed", "run", "status", "error"}
    rows: list[dict[str, Any]] = []
    for run in runs:
        record = records.get(run.key)
        if record is None:
            continue
        row = {
            "case": run.case.number,
            "scenario": run.case.scenario.name,
            **{_free(name, _FIXED): run.case.labels.get(name) for name in labels},
            "seed": run.seed,
            "run": run.key,
            "status": record["status"],
            "error": record.get("error"),
        }
        for figures in record.get("rows") or [{}]:
            rows.append({**row, **{_free(name, taken): value for name, value in figures.items()}})
    return rows


_FIXED = frozenset({"case", "scenario", "seed", "run", "status", "error"})


def _free(name: str, taken: frozenset[str] | set[str]) -> str:
    """Return ``name`` as a column, with a word before it if there is a column of that name."""
    return f"{'label' if taken is _FIXED else 'result'}.{name}" if name in taken else name


def arrow_table(rows: Sequence[Mapping[str, Any]], about: Mapping[str, Any]) -> pa.Table:
    """Return ``rows`` as a table, with ``about`` as JSON under ``marketsched`` in its schema.

    A column holds truth values, whole numbers, numbers or strings; what is of no single kind, or a
    list, stands there as JSON. What is not known is null; no column holds NaN.
    """
    import pyarrow as pa

    names = list(dict.fromkeys(name for row in rows for name in row))
    columns = [_column([row.get(name) for row in rows]) for name in names]
    table = pa.Table.from_arrays(columns, names=names)
    return table.replace_schema_metadata({b"marketsched": json.dumps(about, sort_keys=True).encode()})


def _column(values: list[Any]) -> pa.Array:
    import pyarrow as pa

    kinds = {type(value) for value in values if value is not None}
    values = [None if isinstance(value, float) and math.isnan(value) else value for value in values]
    if kinds == {bool}:
        return pa.array(values, pa.bool_())
    if kinds == {int} and all(value is None or -(2**63) <= value < 2**63 for value in values):
        return pa.array(values, pa.int64())
    if kinds and kinds <= {int, float}:
        return pa.array([None if value is None else float(value) for value in values], pa.float64())
    told = [value if value is None or isinstance(value, str) else json.dumps(value, sort_keys=True) for value in values]
    return pa.array(told, pa.string())
