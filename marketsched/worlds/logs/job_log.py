"""A log of jobs in one form: every format is read into it before a market is made.

Rows that cannot be jobs are left out and counted; a field that is malformed is an error of the reader.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import pandas as pd

from marketsched.mechanisms.errors import InvalidParameterError
from marketsched.worlds.logs.partitions import MOST_NAMED, observed_nodes, partition_nodes

MOST_PROCESSORS = 1_000_000  # of one run
LONGEST_SECONDS = 1e11
REQUIRED = ("submit_s", "run_s", "processors")
OPTIONAL = ("start_s", "requested_s", "user", "executable", "queue", "urgency", "status", "value", "deadline_s",
            "eligible_s", "priority", "account", "log_id", "qos", "requests", "lost_s")  # fmt: skip
NO_USERS = "no column says whose a job is: each has an owner of its own, and fair share is first come"
FAILED, CANCELLED = 0, 5  # field 11 of the Standard Workload Format


@dataclass(frozen=True, eq=False)
class JobLog:
    """The usable runs of a log, in order of submission.

    Parameters
    ----------
    table : DataFrame
        One row per run: ``submit_s, run_s, requested_s`` (float64, seconds; NaN: no request is known), ``start_s``
        (float64, on the clock of ``submit_s`` and not before it; NaN: not known),
        ``processors`` (int64), ``user, executable, queue`` (text; empty: not known), ``urgency`` (int64, 0 to 2,
        2 is the most urgent; -1: not known), ``value`` (float64, credits; NaN: not known), ``deadline_s`` (float64,
        on the clock of ``submit_s``; NaN: not known), and as recorded ``eligible_s`` (float64, as ``deadline_s``),
        ``priority`` (float64), ``account``, ``log_id`` (the job's own number), ``qos``, ``requests`` (text, of Slurm's
        ReqTRES) and ``lost_s`` (float64, seconds of earlier runs of the same job).
    source : str
        Its machine, and the acknowledgement.
    nodes : int, optional
        Size of the machine, where the log says it.
    counted : mapping
        Rows that were left out or put in order, by the reason.
    warnings : tuple of str
        What the log says of its jobs that is not honoured, and what it does not say, a sentence each.
    monday_s : float
        The midnight before a Monday where the machine stands, on the clock of ``submit_s``; by default as of a clock
        that counts from 1970 in that zone.
    """

    table: pd.DataFrame = field(repr=False)
    source: str = "a log"
    nodes: int | None = None
    counted: Mapping[str, int] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    monday_s: float = 4 * 86_400.0

    @classmethod
    def of(
        cls,
        table: pd.DataFrame,
        source: str = "a log",
        nodes: int | None = None,
        counted: Mapping[str, int] | None = None,
        warnings: Sequence[str] = (),
        unread: Sequence[str] = (),
    ) -> JobLog:
        """Bring a table into this form.

        Parameters
        ----------
        table : DataFrame
            Columns `REQUIRED`, and any of `OPTIONAL`; -1 and NaN stand for "not known".
        source, nodes
            As above.
        counted : mapping, optional
            Rows that a reader has left out.
        warnings : sequence of str
            What a reader does not honour.
        unread : sequence of str
            Columns of the file that are not read.

        Raises
        ------
        InvalidParameterError
            If a required column is missing or holds something else than numbers, or no run is left.
        """
        missing = [name for name in REQUIRED if name not in table]
        if missing:
            raise InvalidParameterError(f"no column {', '.join(missing)}", place="log", legal=", ".join(REQUIRED))
        rows = pd.DataFrame({name: _numbers(table, name) for name in REQUIRED})
        rows["requested_s"] = _numbers(table, "requested_s") if "requested_s" in table else np.nan
        rows.loc[~rows["requested_s"].between(0, LONGEST_SECONDS, inclusive="right"), "requested_s"] = np.nan
        for name in ("value", "deadline_s", "start_s", "eligible_s", "priority", "lost_s"):
            rows[name] = _numbers(table, name) if name in table else np.nan
            rows.loc[~(rows[name] >= 0), name] = np.nan
        rows.loc[rows["deadline_s"] > LONGEST_SECONDS, "deadline_s"] = np.nan
        rows.loc[~rows["start_s"].between(rows["submit_s"], LONGEST_SECONDS), "start_s"] = np.nan
        rows["lost_s"] = rows["lost_s"].fillna(0.0)
        for name in ("user", "executable", "queue", "account", "log_id", "qos", "requests"):
            rows[name] = _names(table[name]) if name in table else ""
        rows["urgency"] = _urgencies(table) if "urgency" in table else -1
        status = _numbers(table, "status") if "status" in table else pd.Series(np.nan, index=rows.index)
        usable, left_out = _usable(rows)
        counted = {**(counted or {}), **left_out}
        for code, what in ((FAILED, "failed"), (CANCELLED, "cancelled")):
            counted[f"runs that {what if code == FAILED else 'were cancelled'}, kept: they took their nodes"] = int(
                (usable & (status == code)).sum()
            )
        rows = rows[usable]
        if rows.empty:
            raise InvalidParameterError("no run is usable", legal="a submission, a length, processors")
        counted["rows before an earlier submission, sorted"] = int((rows["submit_s"].diff() < 0).sum())
        rows = rows.astype({"processors": np.int64}).sort_values("submit_s", kind="stable", ignore_index=True)
        found = [*warnings, *([] if rows["user"].ne("").any() else [NO_USERS])]
        source += f"; not read: {', '.join(unread)}" if unread else ""
        return cls(rows, source, nodes, {what: n for what, n in counted.items() if n}, tuple(found))

    @cached_property
    def observed(self) -> int | None:
        """The nodes that ran at once; None where too few starts are recorded."""
        return observed_nodes(self.table)

    @cached_property
    def partitions(self) -> dict[str, int]:
        """The nodes of each partition, by name; empty where queues share nodes, or there is one."""
        return partition_nodes(self.table, self.observed)

    def of_partition(self, name: str) -> JobLog:
        """Return the log of the runs of one queue alone, on nodes of its own; of all of them for an empty name.

        Raises
        ------
        InvalidParameterError
            If there is none of this name.
        """
        own = self.table["queue"].eq(name)
        if name and not own.any():
            names = ", ".join(sorted(map(str, self.table["queue"].unique()))[:MOST_NAMED])
            raise InvalidParameterError(
                place="partition", value=name, legal=f"one of the log's queues: {names or 'it has none'}"
            )
        return replace(self, table=self.table[own].reset_index(drop=True), nodes=None) if name else self


def _usable(rows: pd.DataFrame) -> tuple[pd.Series[bool], dict[str, int]]:
    """Return which rows can be jobs, and how many cannot, each counted under the first reason."""
    reasons = {
        "rows left out: no submission time": ~(rows["submit_s"] >= 0),
        "rows left out: an end before the start": rows["run_s"] < 0,
        "rows left out: no run time": rows["run_s"].isna(),
        "rows left out: a run of 0 s": rows["run_s"] == 0,
        "rows left out: no processors": ~(rows["processors"] >= 1),
        f"rows left out: more than {MOST_PROCESSORS:,} processors": rows["processors"] > MOST_PROCESSORS,
        "rows left out: a time of more than 3,000 years": (rows[["submit_s", "run_s"]] > LONGEST_SECONDS).any(axis=1),
    }
    usable, counted = pd.Series(True, index=rows.index), {}
    for reason, bad in reasons.items():
        counted[reason] = int((usable & bad).sum())
        usable &= ~bad
    return usable, counted


def _urgencies(table: pd.DataFrame) -> pd.Series[int]:
    found = _numbers(table, "urgency").fillna(-1)
    wrong = found[~found.isin((-1, 0, 1, 2))]
    if not wrong.empty:
        raise InvalidParameterError(
            f"column urgency holds {wrong.iloc[0]:g}", place="log", legal="0, 1, 2, -1: not known"
        )
    return found.astype(np.int64)


def _numbers(table: pd.DataFrame, name: str) -> pd.Series[float]:
    try:
        found = table[name].astype(np.float64)
    except (ValueError, TypeError):
        raise InvalidParameterError(f"column {name} holds text", place="log", legal="numbers, -1: not known") from None
    if not np.isfinite(found.dropna()).all():
        raise InvalidParameterError(f"column {name} has an infinite number", place="log", legal="finite numbers")
    return found


def _names(column: pd.Series[str]) -> pd.Series[str]:
    """Return names as text; -1 and what is missing become empty."""
    text = column.astype(str).where(column.notna(), "")
    text = text.str.removesuffix(".0") if column.dtype.kind == "f" else text
    return text.where(~text.isin(["-1", "nan", "None"]), "")
