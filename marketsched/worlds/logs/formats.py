"""Each format of a log, read as a `JobLog`: Standard Workload Format, Philly, Google, Alibaba, PBS, tables of text."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from marketsched.mechanisms.errors import InvalidParameterError, MissingDataError
from marketsched.worlds.demand import nodes_of
from marketsched.worlds.logs.delimited import header_of
from marketsched.worlds.logs.job_log import JobLog
from marketsched.worlds.logs.pbs_accounting import is_accounting
from marketsched.worlds.logs.text_logs import csv_log, is_sacct, is_table, pbs_log, sacct_log
from marketsched.worlds.traces.catalogue import TRACES
from marketsched.worlds.traces.faults import Fault, left_out, none_can_be_read
from marketsched.worlds.traces.swf import FIELDS, read_swf
from marketsched.worlds.traces.tables import open_lines
from marketsched.worlds.traces.trace import Source, data_folder

WIDEST_GOOGLE_JOB = 64  # nodes
SUMMARY_OF_LSF = re.compile(r"Summary of time in seconds|JOBID\s+USER\s+JOB_NAME\s+PEND")  # what `bhist` prints
_MACHINE = re.compile(rb";\s*(MaxProcs|MaxNodes):\s*(\d+)")
_THANKS = re.compile(rb";\s*Acknowledge:\s*(\S.*)")
_URGENCY_OF_QOS = {"BE": 0, "Burstable": 1, "Guaranteed": 1, "LS": 2}


def swf_log(path: Path, strict: bool = False) -> JobLog:
    """Return a log in Standard Workload Format; allocated processors, or the requested ones where those are unknown.

    Rows that are malformed are left out and counted; with ``strict`` the first one is an error.
    """
    faults: list[Fault] = []
    table = read_swf(path, faults)
    counted = left_out(faults, path, strict)
    if faults and table.empty:
        raise none_can_be_read(faults, path)
    table["processors"] = table["processors"].where(table["processors"] > 0, table["requested_processors"])
    machine, thanks = None, "a log in Standard Workload Format"
    with open_lines(path) as file:
        for line in file:
            if not line.startswith(b";"):
                break
            if found := _MACHINE.match(line):  # processors are what is counted, wherever both are named
                machine = int(found[2]) if found[1] == b"MaxProcs" or machine is None else machine
            elif found := _THANKS.match(line):
                thanks = (
                    f"a log in Standard Workload Format, with thanks to {found[1].decode('utf-8', 'replace').strip()}"
                )
    return JobLog.of(table, thanks, machine or None, counted)


def philly_log(path: Path) -> JobLog:
    """Return the Philly log: GPUs as processors, the virtual cluster as user."""
    table = TRACES["philly-jobs"].read(path)
    seconds = (table["timestamp"] - table["timestamp"].min()).dt.total_seconds()
    runs = {"submit_s": seconds, "run_s": table["duration"], "processors": table["num_gpus"], "user": table["cluster"]}
    return JobLog.of(pd.DataFrame(runs), TRACES["philly-jobs"].source)


def google_jobs_log(path: Path) -> JobLog:
    """Return Google's jobs of 29 days: one node each, as no width is recorded; those of time 0 are left out."""
    table = TRACES["google-jobs"].read(path)
    table = table[table["submit_s"] > 0].rename(columns={"group": "executable"})
    table["processors"], table["urgency"] = 1, table["sched_class"].clip(upper=2)
    return JobLog.of(table, TRACES["google-jobs"].source)


def google_demand_log(path: Path) -> JobLog:
    """Return Google's jobs of 19 hours: nodes by their tasks and processors, at most `WIDEST_GOOGLE_JOB`."""
    table = TRACES["google-demand"].read(path).rename(columns={"group": "executable"})
    table["processors"] = nodes_of(table["n_tasks"].to_numpy(), table["cpu_req"].to_numpy(), WIDEST_GOOGLE_JOB)
    table["urgency"] = table["sched_class"].clip(upper=2)
    return JobLog.of(table, TRACES["google-demand"].source)


def google_tasks_log(path: Path) -> JobLog:
    """Return Google's starts of tasks within 3 h: one node each, submitted when they began to wait."""
    table = TRACES["google-tasks"].read(path).rename(columns={"group": "executable"})
    table["submit_s"] = table["sched_s"] - table["wait_s"].fillna(0.0)
    table["processors"], table["urgency"] = 1, table["sched_class"].clip(upper=2)
    return JobLog.of(table, TRACES["google-tasks"].source)


def openb_log(path: Path) -> JobLog:
    """Return the pods of openb: GPUs as nodes (a pod without one, or with a share of one, takes one)."""
    table = TRACES["openb-pods"].read(path)
    runs = {
        "submit_s": table["creation_time"],
        "run_s": table["deletion_time"] - table["scheduled_time"],
        "processors": np.maximum(table["num_gpu"].to_numpy(), 1),
        "urgency": table["qos"].map(_URGENCY_OF_QOS).fillna(1),
        "queue": table["qos"],
    }
    return JobLog.of(pd.DataFrame(runs), TRACES["openb-pods"].source)


def spot_gpu_log(path: Path) -> JobLog:
    """Return the jobs of Alibaba's cluster with spot GPUs: GPUs as nodes (a worker with a share of one takes one).

    The organization stands for the user; jobs of high priority are urgent, spot jobs patient; GPUs of all models
    are one pool, the model is the queue.
    """
    table = TRACES["spot-gpu-jobs"].read(path)
    runs = {
        "submit_s": table["submit_time"],
        "run_s": table["duration"],
        "processors": np.maximum(np.ceil(table["gpu_request"]), 1) * table["worker_num"],
        "user": table["organization"],
        "urgency": table["job_type"].map({"Spot": 0, "HP": 2}).fillna(1),
        "queue": table["gpu_model"],
    }
    return JobLog.of(pd.DataFrame(runs), TRACES["spot-gpu-jobs"].source)


class LogFormat(NamedTuple):
    """A format: its description, its reader, and the trace of this format that is read if no path is given."""

    title: str
    read: Callable[..., JobLog]
    trace: str = ""


FORMATS: dict[str, LogFormat] = {
    "swf": LogFormat("A log in Standard Workload Format, plain or gzip.", swf_log),
    "csv": LogFormat("A table of text with a header, whatever its columns are called.", csv_log),
    "sacct": LogFormat("The jobs of a Slurm cluster, as ``sacct -P`` prints them.", sacct_log),
    "pbs": LogFormat("The jobs of a PBS cluster, as its accounting files have them.", pbs_log),
    "philly": LogFormat("The jobs of Microsoft's Philly cluster.", philly_log, "philly-jobs"),
    "google-jobs": LogFormat("Every job of a Google cell in 29 days.", google_jobs_log, "google-jobs"),
    "google-demand": LogFormat("The jobs of 19 hours, with what they ask for.", google_demand_log, "google-demand"),
    "google-tasks": LogFormat("The starts of tasks within 3 hours.", google_tasks_log, "google-tasks"),
    "openb-pods": LogFormat("The pods of Alibaba's GPU cluster.", openb_log, "openb-pods"),
    "spot-gpu": LogFormat("The jobs of Alibaba's cluster with spot GPUs.", spot_gpu_log, "spot-gpu-jobs"),
}


TEXTS = ("csv", "sacct", "pbs")  # formats whose columns may have other names
COUNTING = (*TEXTS, "swf")  # formats whose malformed rows are left out and counted


def format_of(path: Path) -> str:
    """Return the format of a file, by its name and its first line.

    Raises
    ------
    InvalidParameterError
        If it is none of `FORMATS`.
    """
    if path.name.removesuffix(".gz").endswith(".swf"):
        return "swf"
    header = header_of(path)
    names = header.split(",")
    for kind, form in FORMATS.items():
        columns = [column.name for column in TRACES[form.trace].columns] if form.trace else []
        if columns and (names == columns or (TRACES[form.trace].any_order and sorted(names) == sorted(columns))):
            return kind
    if is_sacct(header):
        return "sacct"
    if is_accounting(header):
        return "pbs"
    if is_table(header) or path.name.removesuffix(".gz").endswith((".csv", ".tsv")):
        return "csv"  # its reader says which column it misses
    if header.startswith(";") or len(header.split()) >= len(FIELDS):
        return "swf"
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
        Of a table of text (`TEXTS`): as `csv_log` has it.
    strict : bool
        Of `COUNTING`: refuse a malformed row.

    Raises
    ------
    InvalidParameterError
        If columns are named of a format that has its own, or ``strict`` is said of one that is always so.
    MissingDataError, TraceError
        If the file is not there, or damaged.
    """
    if columns and kind not in TEXTS:
        raise InvalidParameterError(place="columns", value=columns, legal=f"nothing: {kind} has columns of its own")
    if strict and kind not in COUNTING:
        raise InvalidParameterError(place="strict", value=strict, legal=f"nothing: {kind} is always read so")
    try:
        state = path.stat()
    except OSError as error:
        raise MissingDataError(f"{path}: {error.strerror}: expected the file of a log") from None
    return _read(path, kind, tuple((columns or {}).items()), strict, state.st_mtime_ns, state.st_size)


@lru_cache(maxsize=2)
def _read(path: Path, kind: str, columns: tuple[tuple[str, str], ...], strict: bool, changed: int, size: int) -> JobLog:
    read = FORMATS[kind].read
    if kind in TEXTS:
        return read(path, dict(columns), strict)
    return read(path, strict) if kind in COUNTING else read(path)
