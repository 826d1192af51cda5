"""Standard Workload Format of the Parallel Workloads Archive: logs of HPC machines.

18 blank-separated numbers a line, -1 = not known; lines that begin with ``;`` are the header. Some logs have fields of
their own behind the 18: they are passed over. Source of the two logs: the archive of D. Feitelson, Hebrew University,
free use with an acknowledgement. The workload log from the NASA Ames iPSC/860 was graciously provided by Bill Nitzberg;
the one from the HPC2N cluster (Seth) by Ake Sandgren.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from marketsched.mechanisms.errors import InvalidParameterError, TraceError
from marketsched.worlds.traces.faults import Fault
from marketsched.worlds.traces.tables import BLOCK_ROWS, open_lines

# Name, and whether the value is measured (float64, NaN = not known) or a code or count (int64, -1 = not known).
FIELDS = {
    "job": "int64",
    "submit_s": "float64",
    "wait_s": "float64",
    "run_s": "float64",
    "processors": "int64",
    "cpu_s": "float64",
    "memory_kb": "float64",
    "requested_processors": "int64",
    "requested_s": "float64",
    "requested_memory_kb": "float64",
    "status": "int64",
    "user": "int64",
    "group": "int64",
    "executable": "int64",
    "queue": "int64",
    "partition": "int64",
    "preceding_job": "int64",
    "think_s": "float64",
}


def read_swf(path: Path, faults: list[Fault] | None = None) -> pd.DataFrame:
    """Return the jobs of a log in Standard Workload Format, plain or gzip, one column per field of :data:`FIELDS`.

    Measured values are float64 with NaN for "not known" (names end in their unit: seconds, kB); codes and counts are
    int64 with -1. Malformed lines go to ``faults`` and are left out; None: the first one is an error. MissingDataError
    without the file; TraceError, which names file and line, if it is cut short, damaged or (without ``faults``)
    malformed.
    """
    return pd.concat(stream_swf(path, faults=faults), ignore_index=True)


def stream_swf(path: Path, rows: int = BLOCK_ROWS, faults: list[Fault] | None = None) -> Iterator[pd.DataFrame]:
    """Yield the table of :func:`read_swf` in blocks of at most ``rows`` lines of the file."""
    if rows < 1:
        raise InvalidParameterError(f"rows = {rows}: expected at least 1 row a block")
    with open_lines(path) as file:
        done = n_jobs = 0
        while lines := list(islice(file, rows)):
            table = _parse(path, lines, done, faults)
            table.index = pd.RangeIndex(n_jobs, n_jobs + len(table))
            yield table
            done += len(lines)
            n_jobs += len(table)
        if not done:
            raise TraceError(f"{path}: the file is empty: expected lines of {len(FIELDS)} numbers")


def _is_data(line: bytes) -> bool:
    return not line.startswith(b";") and not line.isspace()


def _fields(line: bytes) -> list[bytes]:
    return line.split(None, len(FIELDS))[: len(FIELDS)]


def _parse(path: Path, lines: list[bytes], done: int, faults: list[Fault] | None) -> pd.DataFrame:
    """Parse lines ``done + 1`` and on of the file."""
    data = [line for line in lines if _is_data(line)]
    numbers = _numbers(data)
    if numbers is None:
        found = [Fault(i, what) for i, line in enumerate(lines, done + 1) if (what := _fault(line))]
        if faults is None:
            raise TraceError(f"{path}:{found[0].line}: {found[0].what}")
        faults += found
        numbers = _numbers([line for line in data if not _fault(line)])
        assert numbers is not None
    columns = {}
    for k, (name, dtype) in enumerate(FIELDS.items()):
        x = numbers[:, k]
        columns[name] = x.astype(np.int64) if dtype == "int64" else np.where(x == -1, np.nan, x)
    return pd.DataFrame(columns)


def _numbers(data: list[bytes]) -> NDArray[np.float64] | None:
    """Return the fields of each line, shape (n, 18); None if one is malformed."""
    if not data:
        return np.zeros((0, len(FIELDS)))
    fields = [_fields(line) for line in data]
    try:
        if any(len(line) != len(FIELDS) for line in fields):
            return None
        numbers = np.array(fields).astype(np.float64)
    except ValueError:
        return None
    whole = numbers[:, [dtype == "int64" for dtype in FIELDS.values()]]
    legal = np.isfinite(numbers).all() and (numbers >= -1).all() and (whole % 1 == 0).all()
    return numbers if legal else None


def _fault(line: bytes) -> str:
    """Return what is wrong with a line; empty: nothing."""
    if not _is_data(line):
        return ""
    fields = [field.decode("utf-8", "replace") for field in _fields(line)]
    if len(fields) < len(FIELDS):
        return f"{len(fields)} fields: expected {len(FIELDS)} numbers"
    for field, (name, dtype) in zip(fields, FIELDS.items(), strict=True):
        try:
            x = float(field)
        except ValueError:
            x = np.nan
        if not np.isfinite(x) or x < -1 or (dtype == "int64" and x % 1 != 0):
            kind = "a whole number" if dtype == "int64" else "a number"
            return f"{name} = {field[:80]!r}: expected {kind} >= 0, or -1"
    return ""
