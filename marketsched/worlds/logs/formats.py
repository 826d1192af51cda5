"""A log in a file: its format found, and read as a `JobLog`."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import Any

from marketsched.mechanisms.errors import InvalidParameterError, MissingDataError
from marketsched.worlds.logs import FORMATS, LogFormat
from marketsched.worlds.logs.columns import UTC
from marketsched.worlds.logs.delimited import header_of
from marketsched.worlds.logs.job_log import JobLog
from marketsched.worlds.traces.catalogue import TRACES
from marketsched.worlds.traces.trace import Source, data_folder

SACCT = (
    "what sacct -a -P --noconvert -S 2026-03-01 -o JobID,User,Account,JobName,Partition,Submit,Start,End,Timelimit,"
    "NNodes,State prints"
)
BJOBS = (
    "what bjobs -a -o \"user stat queue submit_time start_time finish_time slots delimiter='|'\" prints, "
    "with LSB_DISPLAY_YEAR=y"
)
PBS = "accounting files of PBS (server_priv/accounting)"
PODS = "CSV with namespace, creationTimestamp, startTime, completionTime, cpu, nvidia.com/gpu"
# What is printed for people, by its first line: what it is, and what can be read in its place.
PRINTED = {
    r"\s*JobI[Dd](Raw)? .*\b(State|Elapsed|Submit|ExitCode|NNodes|AllocCPUS)\b": ("sacct's fixed widths", SACCT),
    r"\s*JOBID\s.*\b(ST|STATE|NODELIST)\b": ("squeue's list, which has no jobs that ended", SACCT),
    r"JobId=\d": ("scontrol's list, which has few jobs that ended", SACCT),
    r"\s*PARTITION\s+AVAIL": ("sinfo's list of nodes, not of jobs", SACCT),
    r"-{20,}$|Cluster[/|]": ("a report of sreport, which has sums and no jobs", SACCT),
    r"Summary of time|JOBID\s+USER\s+JOB_NAME\s+PEND": ("a summary of bhist, which has no times of submission", BJOBS),
    r"JOBID\s+USER\s+STAT\s|Job <\d+>|Accounting information about jobs": ("a list of LSF without separator", BJOBS),
    r"[Jj]ob [Ii][Dd][:\s]|\s*Req'd": ("qstat's list of jobs", PBS),
    r"(NAMESPACE\s+)?NAME\s+(READY|STATUS|COMPLETIONS)\s": ("kubectl's list, which has no times", PODS),
}


def format_of(path: Path) -> str:
    """Return the format of a file, by its columns, its first line or its name.

    Raises
    ------
    InvalidParameterError
        If it is none of `FORMATS`.
    """
    by_name = next((kind for kind, form in FORMATS.items() if _plain_name(path).endswith(form.endings)), "")
    if by_name == "swf":  # a log with damaged header lines is one, too
        return by_name
    header = header_of(path)
    for first, (what, legal) in PRINTED.items():
        if re.match(first, header):
            raise InvalidParameterError(what, source=str(path), legal=legal)
    for kind, form in FORMATS.items():
        if _has_columns(header, form) or (form.begins and _function(form.begins)(header)) or kind == by_name:
            return kind  # by its name alone: its reader says which column it misses
    raise InvalidParameterError(
        f"first line {header.strip()[:80]!r}",
        source=str(path),
        legal=f"a scenario in YAML, or a log: {', '.join(FORMATS)} (docs/logs.md)",
    )


def _plain_name(path: Path) -> str:
    return path.name.removesuffix(".gz")


def _has_columns(header: str, form: LogFormat) -> bool:
    """Tell whether a header names the columns of a format's trace."""
    if not form.trace:
        return False
    trace, names = TRACES[form.trace], header.split(",")
    columns = [column.name for column in trace.columns]
    return names == columns or (trace.any_order and sorted(names) == sorted(columns))


def _function(named: str) -> Callable[..., Any]:
    """Return a function of this room, named as `LogFormat` has it."""
    module, _, name = named.partition(":")
    found: Callable[..., Any] = getattr(import_module(f"marketsched.worlds.logs.{module}"), name)
    return found


def find_log(path: str, data: Source = None) -> Path:
    """Return where a log is: the path itself, or that name in the data folder.

    Raises
    ------
    MissingDataError
        If there is no such file, and no data folder that could hold it.
    """
    own = Path(path)
    if own.is_file():
        return own
    try:
        inside = data_folder(data) / path
    except MissingDataError as error:
        raise MissingDataError(f"{path}: no such file; {error}") from None
    return inside if inside.is_file() else own


def read_log(
    path: Path, kind: str, columns: Mapping[str, str] | None = None, strict: bool = False, zone: str = UTC
) -> JobLog:
    """Return the log in a file of this format; the last few that were read are kept while the file stays as it is.

    Parameters
    ----------
    path : Path
        The file.
    kind : str
        Of `FORMATS`.
    columns : mapping of str to str, optional
        Of a table of text: as `csv_log` has it.
    strict : bool
        Refuse a malformed row, of a format that counts them.
    zone : str
        Of a table of text: of times that name none.

    Raises
    ------
    InvalidParameterError
        If columns or a zone are named of a format that has its own, or ``strict`` is said of one that is always so.
    MissingDataError, TraceError
        If the file is not there, or damaged.
    """
    form = FORMATS[kind]
    if columns and not form.text:
        raise InvalidParameterError(place="columns", value=columns, legal=f"nothing: {kind} has columns of its own")
    if zone != UTC and not form.text:
        raise InvalidParameterError(place="zone", value=zone, legal=f"nothing: {kind} has times of its own")
    if strict and not form.counts:
        raise InvalidParameterError(place="strict", value=strict, legal=f"nothing: {kind} is always read so")
    try:
        state = path.stat()
    except OSError as error:
        raise MissingDataError(f"{path}: {error.strerror}: expected the file of a log") from None
    return _read(path, kind, tuple((columns or {}).items()), strict, zone, state.st_mtime_ns, state.st_size)


@lru_cache(maxsize=2)
def _read(
    path: Path, kind: str, columns: tuple[tuple[str, str], ...], strict: bool, zone: str, changed: int, size: int
) -> JobLog:
    form = FORMATS[kind]
    read: Callable[..., JobLog] = _function(form.read)
    try:
        if form.text:
            return read(path, dict(columns), strict, zone)
        return read(path, strict) if form.counts else read(path)
    except InvalidParameterError as error:
        raise error if error.source else error.within(str(path)) from None
