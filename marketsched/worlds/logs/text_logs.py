"""Logs that are text: CSV files with any header, what Slurm's ``sacct -P`` prints, and the accounting of PBS."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pandas as pd

from marketsched.mechanisms.errors import TraceError
from marketsched.worlds.logs.columns import KNOWN, columns_for, plain, table_of
from marketsched.worlds.logs.delimited import REPEATED, TextTable, names_in, read_text_table, repeated, separator_of
from marketsched.worlds.logs.job_log import CANCELLED, FAILED, JobLog
from marketsched.worlds.logs.misreadings import not_honoured
from marketsched.worlds.logs.pbs_accounting import read_accounting
from marketsched.worlds.traces.faults import left_out, none_can_be_read

COMPLETED = 1
# States of Slurm (`man sacct`, JOB STATE CODES), LSF and Kubernetes as codes of the Standard Workload Format; others
# have not ended.
STATES = {
    **dict.fromkeys(("COMPLETED", "DONE", "SUCCEEDED"), COMPLETED),
    "CANCELLED": CANCELLED,
    **dict.fromkeys(
        (
            "FAILED",
            "EXIT",
            "TIMEOUT",
            "NODE_FAIL",
            "OUT_OF_MEMORY",
            "BOOT_FAIL",
            "DEADLINE",
            "PREEMPTED",
            "REVOKED",
            "REQUEUED",
        ),
        FAILED,  # a run that was requeued took its nodes, too; one that waits again has a length of 0
    ),
}
NOT_ENDED = (
    *("PENDING", "RUNNING", "SUSPENDED", "RESIZING", "CONFIGURING", "COMPLETING", "STOPPED"),
    *("PEND", "RUN", "PSUSP", "USUSP", "SSUSP", "WAIT"),  # of LSF
)


def csv_log(path: Path, columns: Mapping[str, str] | None = None, strict: bool = False) -> JobLog:
    """Return a table of text as a log.

    Parameters
    ----------
    path : Path
        Columns with any separator, named by a header line (see `marketsched.worlds.logs.columns`).
    columns : mapping of str to str, optional
        Columns of the log, by those of the file that hold them; others are known by their names.
    strict : bool
        Refuse a file with a row that cannot be understood, instead of counting it.

    Raises
    ------
    TraceError
        If a column that is needed is missing, a row has more or fewer fields than the header, or with ``strict``
        a row is malformed; the message names the line.
    """
    found = read_text_table(path)
    if found.faults:  # of sacct, which quotes nothing, some are usual
        first, count = min(found.faults), len(found.faults)
        more = f" (and {count - 1:,} more such rows)" if count > 1 else ""
        legal = "as many fields in each row as the header names"
        raise TraceError(f"{first.what}{more}", source=f"{path}:{first.line}", legal=legal)
    return _log(path, found, columns or {}, strict, f"a table of text, {path.name}")


def sacct_log(path: Path, columns: Mapping[str, str] | None = None, strict: bool = False) -> JobLog:
    """Return what ``sacct -P`` printed, with any of its fields; steps and jobs that have not ended are left out.

    Nodes are ``NNodes``, else ``AllocNodes``, else ``node=`` of ``AllocTRES``; see `csv_log` for the rest.
    """
    found = read_text_table(path)
    return _log(path, found, columns or {}, strict, f"sacct's output, {path.name}")


def pbs_log(path: Path, columns: Mapping[str, str] | None = None, strict: bool = False) -> JobLog:
    """Return the accounting of PBS: its runs that ended, and those that were requeued.

    Nodes are ``Resource_List.nodect``, else ``Resource_List.ncpus`` are counted.
    """
    return _log(path, read_accounting(path), columns or {}, strict, f"the accounting of PBS, {path.name}")


def is_sacct(header: str) -> bool:
    """Tell whether a header is one of ``sacct -P``: fields of Slurm between vertical bars."""
    names = {plain(name) for name in names_in(header)}
    ends = {"elapsed", "elapsedraw"} & names or {"start", "end"} <= names
    return separator_of(header) == "|" and "submit" in names and bool(ends)


def is_table(header: str) -> bool:
    """Tell whether a header names, in words of its own, all that a log needs."""
    try:
        columns_for(names_in(header), {}, "")
    except TraceError:
        return False
    return True


def _log(path: Path, found: TextTable, columns: Mapping[str, str], strict: bool, source: str) -> JobLog:
    names = columns_for(found.rows.columns.tolist(), columns, str(path))
    counted: dict[str, int] = {}
    rows = found.rows
    if (ids := next((name for name in rows.columns if plain(str(name)) in ("jobid", "jobidraw")), None)) is not None:
        steps = rows[ids].str.contains(".", regex=False)
        counted["rows left out: steps of jobs"] = int(steps.sum())
        again = repeated(rows := rows[~steps], ids)
        counted[REPEATED] = int(again.sum())
        rows = rows[~again]
    if "status" in names:
        waiting = _states(rows[names["status"]]).isin(NOT_ENDED)
        counted["rows left out: jobs that had not ended"] = int(waiting.sum())
        rows = rows[~waiting]
    table, faults = table_of(rows, names)
    faults += found.faults
    counted |= left_out(faults, path, strict)
    if table.empty:
        raise none_can_be_read(faults, path)
    if "status" in table:
        table["status"] = _codes(table["status"])
    table = table.rename(columns={"deadline": "deadline_s"})
    renamed = {ours: theirs for ours, theirs in names.items() if ours != theirs and ours in KNOWN}
    about = source + (f" ({', '.join(f'{ours} = {theirs}' for ours, theirs in renamed.items())})" if renamed else "")
    warnings = not_honoured(rows, names)
    return JobLog.of(table.reset_index(drop=True), about, counted=counted, warnings=warnings)


def _states(column: pd.Series[str]) -> pd.Series[str]:
    """Return states without what stands behind them, as in ``CANCELLED by 1000`` or ``NODE_FAIL+``."""
    return column.str.upper().str.extract(r"^\s*([A-Z_]+)")[0].fillna("")


def _codes(column: pd.Series[str]) -> pd.Series[float]:
    numbers = pd.to_numeric(column, errors="coerce").astype(np.float64)
    return numbers.where(numbers.notna(), _states(column).map(STATES).astype(np.float64))
