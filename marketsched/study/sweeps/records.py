"""One run of a sweep, in whichever process: a task goes in, the text of a record comes out.

A record holds only what a table or a manifest needs: the figures of the run, one row for a market and
one per policy for a cluster, or the error the run ended with. It is made where the run was made, and
is carried and kept as text, so that nothing on the way can change it.
"""

from __future__ import annotations

import json
import math
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from marketsched.config.scenario import Scenario
from marketsched.results.views import flat
from marketsched.study.sweeps.runs import SweepRun

DONE, FAILED = "done", "failed"
LONGEST_ERROR = 500  # characters of an error that a table, a manifest and a terminal show


class SweepTask(NamedTuple):
    """One run, as it is sent to a worker. ``data``: folder of traces; None: the worker's own."""

    key: str
    scenario: str
    seed: int
    optimum: bool
    data: str | None


def perform(task: SweepTask) -> str:
    """Run ``task`` and return its record as JSON; whatever the run raises is a record, too."""
    begin = time.perf_counter()
    try:
        outcome = {"status": DONE, "rows": _rows(task)}
    except BaseException as error:  # SystemExit too, and what asynchronous code cancels itself with
        outcome = failure(error)
    return _record(task, outcome, round(time.perf_counter() - begin, 6))


def failure(error: BaseException) -> dict[str, Any]:
    """Return the record of a run that ended with ``error``."""
    message, kind = " ".join(str(error).split()), type(error).__name__
    line = _printable(f"{kind}: {message}" if message else kind)
    if len(line) > LONGEST_ERROR:
        line = f"{line[:LONGEST_ERROR]} ..."
    return {"status": FAILED, "error": line, "traceback": _printable("".join(traceback.format_exception(error)))}


def killed(task: SweepTask) -> str:
    """Return the record of a run whose process died whenever it was tried, in the same words wherever that was."""
    error = "WorkerDied: its process died every time, as one does that is killed or out of memory"
    return _record(task, {"status": FAILED, "error": error}, 0.0)


def _record(task: SweepTask, outcome: Mapping[str, Any], seconds: float) -> str:
    return json.dumps({"run": task.key, "seed": task.seed, **outcome, "seconds": seconds}, ensure_ascii=False)


def is_record(record: Any, key: str) -> bool:
    """Say whether ``record`` is all that the record of the run ``key`` has to be."""
    if not isinstance(record, Mapping) or record.get("run") != key or not isinstance(record.get("seconds"), float):
        return False
    if record.get("status") == FAILED:
        return isinstance(record.get("error"), str)
    rows = record.get("rows")
    return record.get("status") == DONE and isinstance(rows, list) and bool(rows) and all(map(bool, rows))


def _rows(task: SweepTask) -> list[dict[str, Any]]:
    from marketsched.play.running import run  # numba and pandas: a faulty sweep is refused without them

    scenario = Scenario.from_dict(json.loads(task.scenario))
    found = run(scenario, task.seed, data=task.data, optimum=task.optimum)
    figures = {name: value for name, value in found.outcome.items() if name not in ("name", "meta")}
    rows = [figures] if scenario.kind == "market" else found.records()
    return [{name: _value(value) for name, value in flat(row)} for row in rows]


def _value(value: Any) -> Any:
    """Return ``value`` as JSON knows it; numbers keep every digit, and stay NaN or infinite."""
    if isinstance(value, str):
        return _printable(value)
    if value is None or isinstance(value, (bool, int, float)):
        return value
    if hasattr(value, "tolist"):  # NumPy arrays and scalars
        return _value(value.tolist())
    if isinstance(value, Iterable):
        return [_value(each) for each in value]
    return _printable(str(value))


def _printable(text: str) -> str:
    """Return ``text`` with halves of characters, as in names of files that are not UTF-8, written by number."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


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
