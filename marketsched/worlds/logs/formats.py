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
from marketsched.worlds.logs.delimited import header_of
from marketsched.worlds.logs.job_log import JobLog
from marketsched.worlds.traces.catalogue import TRACES
from marketsched.worlds.traces.trace import Source, data_folder

SUMMARY_OF_LSF = re.compile(r"Summary of time in seconds|JOBID\s+USER\s+JOB_NAME\s+PEND")  # what `bhist` prints


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
    for kind, form in FORMATS.items():
        if _has_columns(header, form) or (form.begins and _function(form.begins)(header)) or kind == by_name:
            return kind  # by its name alone: its reader says which column it misses
    if SUMMARY_OF_LSF.match(header):
        raise InvalidParameterError(
            "a summary of bhist, which has no times of submission",
            source=str(path),
            legal="what bjobs -a -o \"user stat queue submit_time start_time finish_time slots delimiter='|'\" prints, "
            "with LSB_DISPLAY_YEAR=y",
        )
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
    inside = data_folder(data) / path
    return inside if inside.is_file() else own


def read_log(path: Path, kind: str, columns: Mapping[str, str] | None = None, strict: bool = False) -> JobLog:
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

    Raises
    ------
    InvalidParameterError
        If columns are named of a format that has its own, or ``strict`` is said of one that is always so.
    MissingDataError, TraceError
        If the file is not there, or damaged.
    """
    form = FORMATS[kind]
    if columns and not form.text:
        raise InvalidParameterError(place="columns", value=columns, legal=f"nothing: {kind} has columns of its own")
    if strict and not form.counts:
        raise InvalidParameterError(place="strict", value=strict, legal=f"nothing: {kind} is always read so")
    try:
        state = path.stat()
    except OSError as error:
        raise MissingDataError(f"{path}: {error.strerror}: expected the file of a log") from None
    return _read(path, kind, tuple((columns or {}).items()), strict, state.st_mtime_ns, state.st_size)


@lru_cache(maxsize=2)
def _read(path: Path, kind: str, columns: tuple[tuple[str, str], ...], strict: bool, changed: int, size: int) -> JobLog:
    form = FORMATS[kind]
    read: Callable[..., JobLog] = _function(form.read)
    try:
        if form.text:
            return read(path, dict(columns), strict)
        return read(path, strict) if form.counts else read(path)
    except InvalidParameterError as error:
        raise error if error.source else error.within(str(path)) from None
