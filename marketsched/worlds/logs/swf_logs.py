"""Logs in Standard Workload Format."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from zoneinfo import ZoneInfo

from marketsched.worlds.logs.job_log import JobLog
from marketsched.worlds.traces.faults import Fault, left_out, none_can_be_read
from marketsched.worlds.traces.swf import FIELDS, read_swf
from marketsched.worlds.traces.tables import open_lines

PARTS = (2, 3, 4)  # codes of status: a part of a run that goes on, and the last part of one
UNREAD = ("cpu_s", "memory_kb", "requested_memory_kb", "group", "partition", "preceding_job", "think_s")
SUMMED_UP = "rows left out: parts of a run that has a line of its own"
_MACHINE = re.compile(rb";\s*(MaxProcs|MaxNodes):\s*(\d+)")
_CLOCK = re.compile(rb";\s*(UnixStartTime|TimeZoneString):\s*(\S+)")
_THANKS = re.compile(rb";\s*Acknowledge:\s*(\S.*)")


def is_swf(first: str) -> bool:
    """Tell whether the first line of a file is one of this format."""
    return first.startswith(";") or len(first.split()) >= len(FIELDS)


def swf_log(path: Path, strict: bool = False) -> JobLog:
    """Return a log in Standard Workload Format; allocated processors, or the requested ones where those are unknown.

    Rows that are malformed are left out and counted; with ``strict`` the first one is an error.
    """
    faults: list[Fault] = []
    table = read_swf(path, faults)
    counted = left_out(faults, path, strict)
    if faults and table.empty:
        raise none_can_be_read(faults, path)
    part = table["status"].isin(PARTS)
    if (part := part & table["job"].isin(table.loc[~part, "job"])).any():
        table, counted[SUMMED_UP] = table[~part], int(part.sum())
    table["processors"] = table["processors"].where(table["processors"] > 0, table["requested_processors"])
    table["start_s"], table["log_id"] = table["submit_s"] + table["wait_s"], table["job"]
    clock: dict[bytes, str] = {}
    machine, thanks = None, "a log in Standard Workload Format"
    with open_lines(path) as file:
        for line in file:
            if not line.startswith(b";"):
                break
            if found := _MACHINE.match(line):  # processors are what is counted, wherever both are named
                machine = int(found[2]) if found[1] == b"MaxProcs" or machine is None else machine
            elif found := _CLOCK.match(line):
                clock[found[1]] = found[2].decode("utf-8", "replace")
            elif found := _THANKS.match(line):
                thanks = (
                    f"a log in Standard Workload Format, with thanks to {found[1].decode('utf-8', 'replace').strip()}"
                )
    unread = [name for name in UNREAD if (table[name] >= 0).any()]
    log = JobLog.of(table, thanks, machine or None, counted, unread=unread)
    return replace(log, monday_s=_monday(log, clock))


def _monday(log: JobLog, clock: dict[bytes, str]) -> float:
    """Return a Monday's midnight on the clock of a log, by what its header says of it."""
    try:
        began = int(clock[b"UnixStartTime"])
        middle = datetime.fromtimestamp(began + log.table["submit_s"].median(), ZoneInfo(clock[b"TimeZoneString"]))
    except (KeyError, ValueError, OSError, OverflowError):  # an unknown zone is a KeyError
        return log.monday_s
    offset = middle.utcoffset()
    return log.monday_s - began - (offset.total_seconds() if offset else 0.0)
