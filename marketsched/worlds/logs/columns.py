"""Columns of foreign tables: found by the names that logs use or that a user gives, and the meaning of their fields.

A time is a number of seconds or an ISO 8601 date and time, or a date as LSF or PBS write it; without a zone it is of
the zone that is given, UTC by default. The first of two equal local times is read, unless its row then went back. A
length is a number of seconds, or ``[days-]hours:minutes:seconds``. A run's length may also be the time between its
start and its end. Processors are whole: Kubernetes' ``500m`` of one takes one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd

from marketsched.mechanisms.errors import TraceError
from marketsched.mechanisms.legal import Range
from marketsched.worlds.traces.faults import Fault

# Names that logs use for each column of a `JobLog`, letters and digits alone, in lower case; the first one found wins.
KNOWN: dict[str, tuple[str, ...]] = {
    "submit_s": ("submits", "submit", "submittime", "submitted", "submittedat", "submission", "submissiontime",
                 "created", "createdat", "creationtime", "creationtimestamp", "ctime", "qtime"),
    "run_s": ("runs", "run", "runtime", "elapsedraw", "elapsed", "duration", "durations", "runseconds"),
    "processors": ("processors", "procs", "nnodes", "allocnodes", "nodes", "resourcelistnodect", "alloctres", "reqtres",
                   "ncpus", "cpus", "cpu", "alloccpus", "cores", "slots", "nprocs", "requestscpu", "cpurequest",
                   "cpurequests", "resourcelistncpus", "gpus", "nvidiacomgpu"),
    "start": ("start", "starttime", "started", "startedat", "dispatchtime", "scheduledtime"),
    "end": ("end", "endtime", "ended", "finished", "finishedat", "finishtime", "completed", "completedat",
            "completiontime", "deletiontime"),
    "requested_s": ("requesteds", "timelimitraw", "timelimit", "requestedtime", "walltime", "timerequested",
                    "resourcelistwalltime", "runtimelimit", "runlimit"),
    "user": ("user", "username", "userid", "owner", "account", "team", "namespace", "project", "group", "appname"),
    "executable": ("executable", "jobname", "application", "program", "name"),
    "queue": ("queue", "partition", "role"),
    "urgency": ("urgency",),
    "status": ("status", "state", "stat"),
    "account": ("account",),
    "log_id": ("jobid", "jobidraw", "job", "id"),
    "qos": ("qos",),
    "eligible": ("eligible", "eligibletime", "etime"),
    "priority": ("priority",),
    "requests": ("reqtres",),
    "value": ("value", "values", "worth"),
    "deadline": ("deadline", "deadlines", "due"),
}  # fmt: skip
MOMENTS = ("submit_s", "eligible", "start", "end", "deadline")  # in their order, but for the last
RECORDS = ("eligible", "priority")  # what is no number here is no fault of the row
UNKNOWN = ("", "-1", "unknown", "none", "n/a", "nan", "null", "unlimited", "partition_limit")  # in lower case
MINUTES = ("timelimitraw", "runtimelimit", "runlimit")  # of Slurm and of LSF: in minutes
# Dates of other systems, as in LSF's "Sun Mar 01 10:00:02 2026".
DATES = ("%a %b %d %H:%M:%S %Y", "%b %d %H:%M:%S %Y", "%b %d %H:%M %Y", "%Y/%m/%d %H:%M:%S", "%Y/%m/%d %H:%M")
# Orders of day and month, as in PBS's "03/31/2026 10:00:02": only a column that can be read in one of the two is read.
MONTH_FIRST, DAY_FIRST = "%m/%d/%Y", "%d/%m/%Y"
_SLASHES = r"^\d{1,2}/\d{1,2}/\d{4} "
_ESTIMATE = r" [ELX]$"  # behind a time of LSF
_ZONE = r"(?:[Zz]|[+-]\d\d(?::?\d\d)?)$"
UTC = "UTC"
HOUR_S, NEAR_S = 3600.0, 60.0  # what clocks change by, and how near to it a length may be
_CLOCK = r"^(?:(\d+)-)?(?:(\d+):)?(\d+):(\d+(?:\.\d+)?)$"


@dataclass(frozen=True)
class AnyColumns(Range[Any]):
    """A mapping from columns of a log to those of a file, as in ``{user: User, submit_s: Submit}``."""

    def __call__(self, x: object) -> dict[str, str]:
        """Return the mapping, or raise ``ValueError``."""
        if not isinstance(x, Mapping) or not all(isinstance(each, str) and each for pair in x.items() for each in pair):
            raise ValueError("a table of names, as in {user: User, submit_s: Submit}")
        if unknown := [name for name in x if name not in KNOWN]:
            near = [ours for ours, known in KNOWN.items() if plain(unknown[0]) in known]
            near = near or get_close_matches(unknown[0], KNOWN, 1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise ValueError(f"keys of {', '.join(KNOWN)} (not {unknown[0]!r}{hint})")
        return dict(x)


@dataclass(frozen=True)
class AnyZone(Range[str]):
    """The name of a time zone, as in ``Europe/Berlin``."""

    def __call__(self, x: object) -> str:
        """Return the name, or raise ``ValueError``."""
        if isinstance(x, str):
            with suppress(ValueError, OSError, KeyError):
                return str(ZoneInfo(x))
        raise ValueError("a time zone, as Europe/Berlin")


def plain(name: str) -> str:
    """Return a name's letters and digits, in lower case."""
    return re.sub(r"[^a-z0-9]", "", name.lower())


def columns_for(
    names: Sequence[str], given: Mapping[str, str], place: str, needed: Sequence[str] = ("submit_s", "processors")
) -> dict[str, str]:
    """Return the column of the file for each column of a log that it has.

    Parameters
    ----------
    names : sequence of str
        Columns of the file.
    given : mapping of str to str
        Some of them, as a user says.
    place : str
        What to call the file in an error.
    needed : sequence of str
        Columns that it has to have, beside the length of runs.

    Raises
    ------
    TraceError
        If a given column is not there, or one that every log needs is not found.
    """
    seen = ", ".join(names)[:400]
    for ours, theirs in given.items():
        if theirs not in names:
            raise TraceError(f"columns.{ours}: no column {theirs!r}", source=place, legal=f"one of {seen}")
    by_plain = {plain(name): name for name in reversed(names)}
    found = {ours: by_plain[each] for ours, known in KNOWN.items() for each in reversed(known) if each in by_plain}
    found |= given
    if found.get("account") == found.get("user"):
        found.pop("account", None)
    missing = [ours for ours in needed if ours not in found]
    if "run_s" not in found and not {"start", "end"} <= set(found):
        missing.insert(len(missing) and missing[0] == "submit_s", "run_s")
    if missing:
        how = ",".join(f"{ours}=COLUMN" for ours in missing)
        legal = f"--columns {how}, each one of {seen}"
        raise TraceError(f"no column is known to be {', '.join(missing)}", source=place, legal=legal)
    return found


def times(text: pd.Series[str], zone: str = UTC, *, first: bool = True) -> pd.Series[float]:
    """Return times in seconds; NaN where a field is no time, or could be read as two.

    Parameters
    ----------
    text : Series of str
        The times.
    zone : str
        Of those that name none.
    first : bool
        Which of two is read in an hour that the zone has twice.
    """
    found = pd.to_numeric(text, errors="coerce").astype(np.float64)
    dated = found.isna() & text.str.contains("-", regex=False)
    own = dated & text.str.contains(_ZONE, regex=True)
    found[own] = _seconds(pd.to_datetime(text[own], format="ISO8601", utc=True, errors="coerce"), UTC, first)
    rest = dated & ~own
    found[rest] = _seconds(pd.to_datetime(text[rest], format="ISO8601", errors="coerce"), zone, first)
    text = text.str.replace(_ESTIMATE, "", regex=True)
    for style in (*DATES, *_orders(text)):
        other = found.isna() & text.str.contains(r"[A-Za-z/]", regex=True)
        if not other.any():
            break
        found[other] = _seconds(pd.to_datetime(text[other], format=style, errors="coerce"), zone, first)
    return _amount(found)


def _orders(text: pd.Series[str]) -> tuple[str, ...]:
    """Return the formats of dates whose day and month stand in the only order that all of them can have."""
    dates = text[text.str.contains(_SLASHES, regex=True)].str.split(" ").str[0]
    fits = [
        order
        for order in (MONTH_FIRST, DAY_FIRST)
        if len(dates) and pd.to_datetime(dates, format=order, errors="coerce").notna().all()
    ]
    return tuple(f"{fits[0]} {clock}" for clock in ("%H:%M:%S", "%H:%M")) if len(fits) == 1 else ()


def _seconds(stamps: pd.Series[pd.Timestamp], zone: str, first: bool) -> pd.Series[float]:
    """Return instants in seconds since 1970; those without a zone are of this one."""
    if stamps.dt.tz is None:
        stamps = stamps.dt.tz_localize(zone, ambiguous=np.full(len(stamps), first), nonexistent="shift_forward")
    return (stamps - pd.Timestamp(0, tz=UTC)) / pd.Timedelta(seconds=1)


def lengths(text: pd.Series[str], unit: float = 1.0) -> pd.Series[float]:
    """Return lengths in seconds, plain numbers times ``unit``; NaN where a field is none."""
    found = unit * pd.to_numeric(text, errors="coerce").astype(np.float64)
    clock = text.str.extract(_CLOCK).astype(np.float64)
    missing = clock[[0, 1]].fillna(0.0)
    seconds = 86_400.0 * missing[0] + 3600.0 * missing[1] + 60.0 * clock[2] + clock[3]
    return _amount(found.where(found.notna(), seconds))


def counts(text: pd.Series[str], wanted: str = "node") -> pd.Series[float]:
    """Return whole numbers: a part counts as one. NaN where a field is no number.

    Read are numbers, the ``wanted`` of Slurm's ``cpu=8,gres/gpu=2,node=1``, and Kubernetes' thousandths (``500m``).
    """
    tres = text.str.extract(rf"(?:^|,){re.escape(wanted)}=(\d+)")[0]
    thousandths = pd.to_numeric(text.str.extract(r"^(\d+)m$")[0], errors="coerce") / 1000.0
    found = amounts(tres.where(tres.notna(), text)).fillna(thousandths)
    return -(-found // 1)  # rounded up


def amounts(text: pd.Series[str]) -> pd.Series[float]:
    """Return numbers of at least 0; NaN where a field is none."""
    return _amount(pd.to_numeric(text, errors="coerce").astype(np.float64))


def urgencies(text: pd.Series[str]) -> pd.Series[float]:
    """Return 0, 1 or 2, NaN where there is anything else."""
    found = amounts(text)
    return found.where(found.isin((0, 1, 2)))


def _amount(x: pd.Series[float]) -> pd.Series[float]:
    """Return what is finite and at least 0, NaN elsewhere."""
    return x.where(np.isfinite(x) & (x >= 0))


def table_of(
    rows: pd.DataFrame, names: Mapping[str, str], zone: str = UTC
) -> tuple[pd.DataFrame, list[Fault], list[str]]:
    """Return the columns of a log, the rows whose fields could not be understood, and doubts about its clock.

    Parameters
    ----------
    rows : DataFrame
        Text, by lines of the file.
    names : mapping of str to str
        As `columns_for` gives it.
    zone : str
        Of times that name none.
    """
    text = rows.apply(lambda column: column.str.strip())
    known = {ours: ~text[theirs].str.lower().isin(UNKNOWN) for ours, theirs in names.items()}
    read: dict[str, Any] = {"run_s": lengths, "requested_s": lengths, "processors": counts, "urgency": urgencies}
    read |= {"value": amounts, "priority": amounts}
    run = lengths(text[names["run_s"]]) if "run_s" in names else None
    clock, doubts = _moments({each: text[names[each]] for each in MOMENTS if each in names}, zone, run)
    table: dict[str, pd.Series[Any]] = {}
    faults: dict[int, Fault] = {}
    for ours, theirs in names.items():
        if ours in clock:
            table[ours] = clock[ours]
        elif ours in read:
            extra = {"unit": 60.0} if ours == "requested_s" and plain(theirs) in MINUTES else {}
            table[ours] = read[ours](text[theirs], **extra)
        else:
            table[ours] = text[theirs].where(known[ours], "")
            continue
        if ours in RECORDS or (ours in ("start", "end") and "run_s" in names):  # only a record of what happened
            continue
        for line in rows.index[known[ours] & table[ours].isna()]:
            faults.setdefault(int(line), Fault(int(line), f"{theirs} = {text.at[line, theirs][:40]!r}"))
    doubts += _other_clock(table, zone)
    if "run_s" not in table:
        table["run_s"] = table["end"] - table["start"]
    elif "start" not in table and "end" in table:
        table["start"] = table["end"] - table["run_s"]
    table.pop("end", None)
    seconds = {"start": "start_s", "eligible": "eligible_s", "deadline": "deadline_s"}
    frame = pd.DataFrame(table, index=rows.index).rename(columns=seconds)
    return frame[~frame.index.isin(list(faults))], list(faults.values()), doubts


def _moments(
    text: Mapping[str, pd.Series[str]], zone: str, run: pd.Series[float] | None
) -> tuple[dict[str, pd.Series[float]], list[str]]:
    """Return the moments of each row, which lie in the order of `MOMENTS`, and a doubt about those that stand twice."""
    found: dict[str, pd.Series[float]] = {}
    twice, before = pd.Series(False, index=next(iter(text.values())).index), None
    for name, column in text.items():
        found[name] = early = times(column, zone)
        if zone != UTC:
            late = times(column, zone, first=False)
            twice |= early != late.where(early.notna(), early)
            if before is not None:
                gone_back = early < before
                if name == "end" and run is not None:
                    gone_back |= (early - before - run).abs() > (late - before - run).abs()
                found[name] = late.where(gone_back, early)
            before = found[name] if before is None else found[name].fillna(before)
    said = f"{int(twice.sum()):,} of {len(twice):,} rows have a time in the hour that {zone} has twice"
    return found, [f"{said}: it is the first, unless their order says the second"] if twice.any() else []


def _other_clock(table: Mapping[str, pd.Series[float]], zone: str) -> list[str]:
    """Say how many rows go back in time, or last an hour more or less than lies between their start and end."""
    if "start" not in table:
        return []
    odd = table["start"] < table["submit_s"]
    if "end" in table:
        odd |= table["end"] < table["start"]
        if "run_s" in table:
            shift = (table["end"] - table["start"] - table["run_s"]).abs()
            odd |= (shift - HOUR_S).abs() < NEAR_S
    how = "--zone Europe/Berlin, say, reads local times" if zone == UTC else "their zone is another"
    said = "rows start before their submission, end before their start, or miss an hour, as where clocks change"
    return [f"{int(odd.sum()):,} of {len(odd):,} {said}: {how}"] if odd.any() else []
