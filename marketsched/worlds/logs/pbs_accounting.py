"""The accounting files of PBS: records ``date;type;job;key=value ...``, one a line, as text by key.

Source: PBS Professional, Administrator's Guide, "Accounting". Read are the records of a run's end (E) and of a run that
was requeued (R); times of jobs are in seconds since 1970, so the dates of the records are not needed.
"""

from __future__ import annotations

import re
from pathlib import Path

import pandas as pd

from marketsched.mechanisms.errors import TraceError
from marketsched.worlds.logs.delimited import TextTable
from marketsched.worlds.traces.faults import Fault
from marketsched.worlds.traces.tables import open_lines

KEYS = ("user", "jobname", "queue", "ctime", "start", "end", "Resource_List.nodect", "Resource_List.ncpus",
        "Resource_List.ngpus", "Resource_List.mem", "Resource_List.walltime", "account", "etime")  # fmt: skip
TERMINATED = ("271", "143")  # exit status of a job that `qdel` ended: SIGTERM, counted from 256 or from 128
_RECORD = re.compile(r"\d\d/\d\d/\d{4} \d\d:\d\d:\d\d;[A-Za-z];")
_PAIR = re.compile(r"(?:^|\s)([\w.]+)=(\"[^\"]*\"|\S*)")


def is_accounting(line: str) -> bool:
    """Tell whether the first line of a file is a record."""
    return bool(_RECORD.match(line))


def read_accounting(path: Path) -> TextTable:
    """Return the runs of one file or of several days' files put together, a row each: `KEYS` and ``state``.

    Raises
    ------
    TraceError
        If no run has ended.
    """
    rows: dict[int, dict[str, str]] = {}
    faults: list[Fault] = []
    with open_lines(path) as file:
        for number, line in enumerate(file, 1):
            if not line.strip():
                continue
            parts = line.decode("utf-8", "replace").rstrip("\r\n").split(";", 3)
            if len(parts) < 4:
                faults.append(Fault(number, f"{len(parts)} parts between ';', not 4"))
            elif parts[1] in ("E", "R") and "[]" not in parts[2]:  # the jobs of an array have records of their own
                rows[number] = {"jobid": parts[2], **_row(parts[1], parts[3])}
    if not rows:
        raise TraceError("no record of a run that ended", source=str(path), legal="records of type E")
    table = pd.DataFrame.from_dict(rows, orient="index", columns=["jobid", *KEYS, "state"], dtype="str")
    return TextTable(table.loc[:, (table != "").any()], faults)


def _row(kind: str, text: str) -> dict[str, str]:
    """Return a record's values by key; empty where it has none."""
    values = {key: value.strip('"') for key, value in _PAIR.findall(text)}
    status = values.get("Exit_status", "")
    ended = "COMPLETED" if status in ("0", "") else "CANCELLED" if status in TERMINATED else "FAILED"
    return {**{key: values.get(key, "") for key in KEYS}, "state": "REQUEUED" if kind == "R" else ended}
