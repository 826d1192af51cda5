"""Logs that are text: CSV files with any header, what Slurm's ``sacct -P`` prints, and the accounting of PBS."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import numpy as np
import pandas as pd

from marketsched.mechanisms.errors import TraceError
from marketsched.worlds.logs.columns import KNOWN, UTC, columns_for, plain, table_of
from marketsched.worlds.logs.delimited import REPEATED, TextTable, names_in, read_text_table, repeated, separator_of
from marketsched.worlds.logs.job_log import CANCELLED, FAILED, JobLog
from marketsched.worlds.logs.misreadings import not_honoured
from marketsched.worlds.logs.pbs_accounting import read_accounting
from marketsched.worlds.logs.reruns import STEPS, WAITING, are_steps, job_ids, one_row_a_job
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


def csv_log(path: Path, columns: Mapping[str, str] | None = None, strict: bool = False, zone: str = UTC) -> JobLog:
    """Return a table of text as a log.

    Parameters
    ----------
    path : Path
        Columns with any separator, named by a header line (see `marketsched.worlds.logs.columns`).
    columns : mapping of str to str, optional
        Columns of the log, by those of the file that hold them; others are known by their names.
    strict : bool
        Refuse a file with a row that cannot be understood, instead of counting it.
    zone : str
        Of times that name none, as in ``Europe/Berlin``.

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
    return _log(path, found, columns or {}, strict, f"a table of text, {path.name}", zone)


def sacct_log(path: Path, columns: Mapping[str, str] | None = None, strict: bool = False, zone: str = UTC) -> JobLog:
    """Return what ``sacct -P`` printed, with any of its fields; steps and jobs that have not ended are left out.

    Rows of one job are put together (`marketsched.worlds.logs.reruns`).
    Nodes are ``NNodes``, else ``AllocNodes``, else ``node=`` of ``AllocTRES``; see `csv_log` for the rest.
    """
    found = read_text_table(path)
    return _log(path, found, columns or {}, strict, f"sacct's output, {path.name}", zone)


def pbs_log(path: Path, columns: Mapping[str, str] | None = None, strict: bool = False, zone: str = UTC) -> JobLog:
    """Return the accounting of PBS: its runs that ended, and those that were requeued.

    Nodes are ``Resource_List.nodect``, else ``Resource_List.ncpus`` are counted.
    """
    return _log(path, read_accounting(path), columns or {}, strict, f"the accounting of PBS, {path.name}", zone)


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


def _log(path: Path, found: TextTable, columns: Mapping[str, str], strict: bool, source: str, zone: str) -> JobLog:
    names = columns_for(found.rows.columns.tolist(), columns, str(path))
    counted: dict[str, int] = {}
    rows = found.rows
    by_name = {plain(str(name)): str(name) for name in reversed(rows.columns.tolist())}
    if (ids := job_ids(by_name)) is not None:
        steps = are_steps(rows[ids])
        counted[STEPS] = int(steps.sum())
        again = repeated(rows := rows[~steps], ids)
        counted[REPEATED] = int(again.sum())
        rows = rows[~again]
    counted[REPEATED] = counted.get(REPEATED, 0) + found.headers
    if "status" in names:
        waiting = states_of(rows[names["status"]]).isin(NOT_ENDED)
        counted[WAITING] = int(waiting.sum())
        rows = rows[~waiting]
    table, faults, doubts = table_of(rows, names, zone)
    faults += found.faults
    counted |= left_out(faults, path, strict)
    if table.empty:
        raise none_can_be_read(faults, path)
    if ids is not None:
        states = states_of(rows[names["status"]]) if "status" in names else pd.Series("", index=rows.index)
        table, put_together = one_row_a_job(table, rows[ids], states, "processors")
        counted |= put_together
    if "status" in table:
        table["status"] = _codes(table["status"])
    renamed = {ours: theirs for ours, theirs in names.items() if ours != theirs and ours in KNOWN}
    about = source + (f" ({', '.join(f'{ours} = {theirs}' for ours, theirs in renamed.items())})" if renamed else "")
    unread = [str(name) for name in rows.columns if name not in names.values() and name != ids]
    warnings = [*not_honoured(rows.loc[table.index], names), *doubts]
    log = JobLog.of(table.reset_index(drop=True), about, counted=counted, warnings=warnings, unread=unread)
    middle = pd.Timestamp(log.table["submit_s"].median(), unit="s", tz=zone)
    return replace(log, monday_s=log.monday_s - (middle.utcoffset() or timedelta()).total_seconds())


def states_of(column: pd.Series[str]) -> pd.Series[str]:
    """Return states, in capitals, without what stands behind them, as in ``CANCELLED by 1000`` or ``NODE_FAIL+``."""
    return column.str.upper().str.extract(r"^\s*([A-Z_]+)")[0].fillna("")


def _codes(column: pd.Series[str]) -> pd.Series[float]:
    numbers = pd.to_numeric(column, errors="coerce").astype(np.float64)
    return numbers.where(numbers.notna(), states_of(column).map(STATES).astype(np.float64))
