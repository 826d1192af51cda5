"""One tidy table of a sweep: a row for every run, or for every policy of a run, in the order of the sweep.

Columns: ``case`` (number of the scenario with its changes), ``scenario``, the labels of the cases,
``seed``, ``run``, ``status`` (``done`` or ``failed``), ``error``, then the figures. Durations are not
among them: equal sweeps have equal tables, to the byte.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from marketsched.study.sweeps.runs import SweepRun

if TYPE_CHECKING:
    import pyarrow as pa


def sweep_rows(
    runs: Sequence[SweepRun], record_of: Callable[[str], Mapping[str, Any] | None]
) -> Iterator[dict[str, Any]]:
    """Give the rows of all runs that have a record, each with all it knows, in the order of ``runs``."""
    labels = list(dict.fromkeys(name for run in runs for name in run.case.labels))
    taken = {"case", "scenario", *labels, "seed", "run", "status", "error"}
    for run in runs:
        record = record_of(run.key)
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
            yield {**row, **{_free(name, taken): value for name, value in figures.items()}}


_FIXED = frozenset({"case", "scenario", "seed", "run", "status", "error"})


def _free(name: str, taken: frozenset[str] | set[str]) -> str:
    """Return ``name`` as a column, with a word before it if there is a column of that name."""
    return f"{'label' if taken is _FIXED else 'result'}.{name}" if name in taken else name


def arrow_table(rows: Iterable[Mapping[str, Any]], about: Mapping[str, Any]) -> pa.Table:
    """Return ``rows`` as a table, with ``about`` as JSON under ``marketsched`` in its schema.

    Rows are taken one by one: only their values are held, and each text once.

    A column holds truth values, whole numbers, numbers or strings; what is of no single kind, or a
    list, stands there as JSON. Unknown values are null; no column holds NaN.
    """
    import pyarrow as pa

    values: dict[str, list[Any]] = {}
    texts: dict[str, str] = {}
    count = 0
    for row in rows:
        for name, value in row.items():
            column = values.setdefault(name, [])
            column.extend([None] * (count - len(column)))
            column.append(texts.setdefault(value, value) if isinstance(value, str) else value)
        count += 1
    names = list(values)
    for column in values.values():
        column.extend([None] * (count - len(column)))
    table = pa.Table.from_arrays([_column(values.pop(name)) for name in names], names=names)
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
    text = [value if value is None or isinstance(value, str) else json.dumps(value, sort_keys=True) for value in values]
    return pa.array(text, pa.string())
