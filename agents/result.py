"""The result of a market run: one log while it runs, tidy tables afterwards.

The log is the single source: the tables are computed from it, up to the last finished round, so an
interrupted run gives the tables of everything that was finished.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from marketsched.agents.job import Job
from marketsched.agents.job_table import JobTable, table_of
from marketsched.agents.market_log import ROUND, STATEMENT, MarketLog, RowKind
from marketsched.mechanisms.columns import NEVER

OUTCOMES = ("completed", "dropped", "cancelled", "evicted", "never_arrived", "unfinished")
# Outcome after an event of each kind, as a place in OUTCOMES; -1: the event changes nothing.
_OUTCOME_AFTER = np.array([5, -1, 1, 2, 3, -1, 0, -1, -1], dtype=np.int8)


@dataclass(frozen=True)
class RunResult:
    """Tables and figures of one run. Rounds count from 1; money is in credits, load in nodes.

    Attributes
    ----------
    events : DataFrame
        One row per event, in the order in which they happened. ``round``; ``event`` (submit,
        arrive, drop, cancel, evict, start, requeue, complete, close); ``job`` (as in ``jobs``); ``statement``
        (the name the mechanism knows it by, ``"<job>+"`` when submitted again); ``owner``;
        ``completion`` (time s + d), ``payment`` and ``value`` (true value of that completion):
        missing, 0 and 0 unless complete.
    jobs : DataFrame
        One row per job of the workload, in its order. ``name``; ``owner``; one column per tag;
        ``birth``; ``submitted`` (round of the first submission); ``resubmitted`` (bool);
        ``concurrency`` (nodes needed); ``declared_concurrency`` (nodes held); ``arrival``;
        ``duration`` (real, rounds); ``planned_start`` (the plan's start for the case that occurs); ``start`` (first
        round of its last run; missing if that was taken back); ``completion`` (start + what was left of the
        duration); ``removed`` (round of the drop, cancellation or eviction); ``runs`` (how often it started) and
        ``lost_node_rounds`` (of runs taken back or evicted, less what they saved); ``outcome`` (one of ``OUTCOMES``);
        ``value``, ``payment``, ``utility`` (realised); ``estimated_utility`` (of the plan). Of a job that was
        submitted again, declared concurrency, plan and outcome are those of the second statement.
        ``never_arrived``: submitted, but not ready by the end. ``unfinished``: still running,
        waiting or not yet submitted at the end.
    rounds : DataFrame
        One row per round: ``round``; counts of events ``submitted``, ``arrived``, ``dropped``,
        ``started``, ``completed``, ``cancelled``, ``evicted``, ``requeued``; ``load`` (nodes busy); ``demand``
        (nodes, if every job started at its arrival); ``promised`` (expected nodes committed to the
        round by all plans) and ``price`` (of a node in this round), both after its last
        submission, hence final; missing if the mechanism has no such notion.
    outcome : dict
        ``name``, ``complete`` (bool: all rounds were played), ``rounds``, ``horizon``, ``capacity``,
        ``jobs``, ``submitted``, ``resubmitted``, the count of each outcome, ``requeues`` (runs taken back),
        ``lost_node_rounds``, ``welfare``, ``revenue``,
        ``owners_utility``, ``utilisation`` (busy share of capacity x rounds), ``utilisation_open``
        (the same up to the last submission), ``demand_share``
        (the same for ``demand``), ``peak_load``, ``peak_demand``, ``price_lowest``,
        ``price_median``, ``price_highest`` (of the rounds up to the last submission, after which
        the market only empties; None without prices), and under ``mechanism`` the mechanism's own
        statistics.
    price_surface : ndarray of float32, shape (n_rounds, lookahead), or None
        Row ``t - 1``: prices of slots ``t, t + 1, ...`` at the start of round ``t``.

    Examples
    --------
    >>> import marketsched
    >>> result = marketsched.run("stochastic-mix", seed=7)
    >>> int((result.events["event"] == "submit").sum()) == len(result.jobs)
    True
    """

    event_rows: EventRows
    job_rows: JobRows
    rounds: pd.DataFrame
    outcome: dict[str, Any]
    price_surface: NDArray[np.float32] | None = None

    @cached_property
    def summary(self) -> pd.DataFrame:
        """The outcome as a data frame of one row, with dots between the levels of nested figures."""
        return pd.json_normalize(self.outcome)

    @cached_property
    def events(self) -> pd.DataFrame:
        """One row per event; made from ``event_rows`` at the first access."""
        return self.event_rows.frame()

    @cached_property
    def jobs(self) -> pd.DataFrame:
        """One row per job; made from ``job_rows`` at the first access."""
        return self.job_rows.frame()


class TableWords:
    """Names of jobs and owners as pandas keeps strings, each made once and when it is read first."""

    def __init__(self, jobs: JobTable) -> None:
        self._jobs = jobs

    @cached_property
    def names(self) -> Any:
        """Names of the jobs."""
        return _words(self._jobs.names)

    @cached_property
    def owners(self) -> Any:
        """Names of their owners."""
        return _words(self._jobs.owner_words)


class EventRows:
    """The ``events`` table before it is one: rows of the log, shape (n_events,), a fifth of the table's memory."""

    def __init__(self, rows: NDArray[np.void], jobs: Sequence[Job], words: TableWords | None = None) -> None:
        self._rows = rows
        self._words = words or TableWords(table_of(jobs))

    def __len__(self) -> int:
        return self._rows.size

    def frame(self, begin: int = 0, end: int | None = None, columns: Container[str] | None = None) -> pd.DataFrame:
        """Return rows ``begin .. end - 1`` as the table has them; None: all that follow. ``columns``: see `JobRows`."""
        rows = self._rows[begin:end]
        words = _words([kind.name.lower() for kind in RowKind])
        names = statements = self._words.names.take(rows["job"])
        if rows["again"].any():
            statements = statements.copy()
            statements[rows["again"]] = names[rows["again"]] + "+"
        whole = pd.DataFrame(
            {
                "round": rows["round"].astype(np.int64),
                "event": words.take(rows["kind"]),
                "job": names,
                "statement": statements,
                "owner": self._words.owners.take(rows["job"]),
                "completion": _rounds_or_missing(rows["completion"]),
                "payment": rows["payment"],
                "value": rows["value"],
            },
            index=pd.RangeIndex(begin, begin + rows.size),
        )
        return whole if columns is None else whole[[name for name in whole if name in columns]]


class JobRows:
    """The ``jobs`` table before it is one: the log's entries of each job, in a tenth of the table's memory.

    Where a job has several rows of a kind in the log, the last counts. ``last`` is the last finished round,
    ``complete`` whether it is the last of all.
    """

    def __init__(
        self,
        events: NDArray[np.void],
        statements: NDArray[np.void],
        jobs: Sequence[Job],
        last: int,
        complete: bool,
        words: TableWords | None = None,
    ) -> None:
        self._jobs = table_of(jobs)
        self._words = words or TableWords(self._jobs)
        n_jobs, kinds, of = len(jobs), events["kind"], events["job"]

        def latest(what: str, *wanted: RowKind) -> NDArray[Any]:
            where = np.flatnonzero(np.isin(kinds, wanted))
            return _last(of[where], events[what][where], n_jobs)

        self.resubmitted = latest("again", RowKind.SUBMIT)
        first = np.flatnonzero((kinds == RowKind.SUBMIT) & ~events["again"])
        self.submitted = _last(of[first], events["round"][first], n_jobs)
        self.start, self.completion = latest("round", RowKind.START), latest("completion", RowKind.COMPLETE)
        self.value = latest("value", RowKind.COMPLETE)
        self.payment = latest("payment", RowKind.COMPLETE, RowKind.EVICT)
        after, where = _OUTCOME_AFTER[kinds], np.flatnonzero(_OUTCOME_AFTER[kinds] >= 0)
        unfinished, never = OUTCOMES.index("unfinished"), OUTCOMES.index("never_arrived")
        self.outcome = _last(of[where], after[where], n_jobs, default=unfinished)
        if complete:
            arrivals = self._jobs.arrivals
            absent = (arrivals == 0) | (arrivals > last)
            self.outcome[(self.outcome == unfinished) & (self.submitted > 0) & absent] = never
        gone = np.isin(self.outcome, [OUTCOMES.index(word) for word in ("dropped", "cancelled", "evicted")])
        self.removed = np.where(gone, latest("round", RowKind.DROP, RowKind.CANCEL, RowKind.EVICT), 0).astype(np.uint32)
        stated = {what: _last(statements["job"], statements[what], n_jobs) for what in STATEMENT.names or ()}
        self.declared, self.planned, self.estimate = stated["declared"], stated["planned"], stated["estimate"]
        self.runs = np.bincount(of[kinds == RowKind.START], minlength=n_jobs).astype(np.uint32)
        self.lost_runs, taken_back = lost_runs(events)
        self.start[latest("kind", RowKind.START, RowKind.REQUEUE) == RowKind.REQUEUE] = 0
        job, first_round, after_it = self.lost_runs.T
        lost, rounds = np.zeros(n_jobs, dtype=np.int64), after_it - first_round
        every, stay = self._jobs.checkpoints[job], self.outcome[job] != OUTCOMES.index("evicted")
        rounds = np.where((every > 0) & taken_back & stay, rounds % np.maximum(1, every), rounds)
        np.add.at(lost, job, self.declared[job] * rounds)
        self.lost, self.requeues = lost, int(np.count_nonzero(kinds == RowKind.REQUEUE))
        self.taken_back = self.lost_runs[taken_back]
        self.pools: NDArray[np.object_] | None = None  # on a cluster, the pool in which each job ran, or None

    def __len__(self) -> int:
        return len(self._jobs)

    def frame(self, begin: int = 0, end: int | None = None, columns: Container[str] | None = None) -> pd.DataFrame:
        """Return rows ``begin .. end - 1`` as the table has them; None: all that follow; and all ``columns``."""
        part = slice(begin, len(self) if end is None else min(end, len(self)))
        own, pools = self._columns(part), self.pools
        if pools is not None:
            own |= {"pool": lambda: pools[part]}
        table = self._jobs
        words = self._words
        names: dict[str, Callable[[], Any]] = {"name": lambda: words.names[part], "owner": lambda: words.owners[part]}
        tags = _tag_columns(table, part, taken={*names, *own})
        made = {name: make() for name, make in (names | tags | own).items() if columns is None or name in columns}
        return pd.DataFrame(made, index=pd.RangeIndex(part.start, max(part.start, part.stop)))

    def _columns(self, part: slice) -> dict[str, Callable[[], Any]]:
        """Return how each column that is neither a name nor a tag is made."""
        words, jobs = _words(OUTCOMES), self._jobs
        return {
            "birth": lambda: jobs.births[part],
            "submitted": lambda: _rounds_or_missing(self.submitted[part]),
            "resubmitted": lambda: self.resubmitted[part],
            "concurrency": lambda: jobs.widths[part],
            "declared_concurrency": lambda: _rounds_or_missing(self.declared[part]),
            "arrival": lambda: _rounds_or_missing(jobs.arrivals[part]),
            "duration": lambda: jobs.durations[part],
            "planned_start": lambda: _rounds_or_missing(self.planned[part]),
            "start": lambda: _rounds_or_missing(self.start[part]),
            "completion": lambda: _rounds_or_missing(self.completion[part]),
            "removed": lambda: _rounds_or_missing(self.removed[part]),
            "runs": lambda: self.runs[part].astype(np.int64),
            "lost_node_rounds": lambda: self.lost[part],
            "outcome": lambda: words.take(self.outcome[part]),
            "value": lambda: self.value[part],
            "payment": lambda: self.payment[part],
            "utility": lambda: self.value[part] - self.payment[part],
            "estimated_utility": lambda: self.estimate[part],
        }

    def summary(self) -> dict[str, Any]:
        """Return the summary's figures of all jobs, as plain Python numbers."""
        counts = np.bincount(self.outcome, minlength=len(OUTCOMES)).tolist()
        return {
            "jobs": len(self),
            "submitted": int(np.count_nonzero(self.submitted)),
            "resubmitted": int(np.count_nonzero(self.resubmitted)),
            **dict(zip(OUTCOMES, counts, strict=True)),
            "requeues": self.requeues,
            "lost_node_rounds": int(self.lost.sum()),
            "welfare": float(self.value.sum()),
            "revenue": float(self.payment.sum()),
            "owners_utility": float((self.value - self.payment).sum()),
        }


def build_result(
    log: MarketLog,
    jobs: Sequence[Job],
    *,
    name: str,
    capacity: int,
    horizon: int,
    statistics: Mapping[str, Any],
) -> RunResult:
    """Build the tables of all finished rounds of ``log``; ``statistics`` are the mechanism's own, for the summary."""
    n_rounds, n_events, n_statements = log.finished
    events, statements = log.events.first(n_events), log.statements.first(n_statements)
    jobs = table_of(jobs)
    words = TableWords(jobs)
    job_rows = JobRows(events, statements, jobs, n_rounds, n_rounds == horizon, words)
    rounds = _round_table(events, np.array(log.rounds[:n_rounds], dtype=ROUND), jobs)
    summary = {"name": name, "complete": n_rounds == horizon, "rounds": n_rounds, "horizon": horizon}
    summary |= {"capacity": capacity} | job_rows.summary() | _summary(rounds, capacity)
    summary["mechanism"] = dict(statistics)
    surface = log.surfaces.first(n_rounds) if log.surfaces is not None and n_rounds else None
    return RunResult(EventRows(events, jobs, words), job_rows, rounds, summary, surface)


def _tag_columns(jobs: JobTable, part: slice, taken: set[str]) -> dict[str, Callable[[], Any]]:
    """One column per tag that any job has, None where a job has it not; ``tag_`` before a taken name."""

    def column(tag: str) -> Callable[[], Any]:
        return lambda: jobs.tag(tag, part)

    return {"tag_" + tag if tag in taken else tag: column(tag) for tag in jobs.tags}


def _round_table(events: NDArray[np.void], rounds: NDArray[np.void], jobs: Sequence[Job]) -> pd.DataFrame:
    """Count events per round, beside what was noted when the round closed."""
    n_rounds = rounds.size
    columns: dict[str, Any] = {"round": np.arange(1, n_rounds + 1)}
    for word, kind in (
        ("submitted", RowKind.SUBMIT),
        ("arrived", RowKind.ARRIVE),
        ("dropped", RowKind.DROP),
        ("started", RowKind.START),
        ("completed", RowKind.COMPLETE),
        ("cancelled", RowKind.CANCEL),
        ("evicted", RowKind.EVICT),
        ("requeued", RowKind.REQUEUE),
    ):
        columns[word] = np.bincount(events["round"][events["kind"] == kind], minlength=n_rounds + 1)[1:]
    columns["load"] = rounds["load"]
    columns["demand"] = _demand(jobs, n_rounds)
    columns["promised"] = rounds["promised"]
    columns["price"] = rounds["price"]
    return pd.DataFrame(columns)


def _demand(jobs: Sequence[Job], n_rounds: int) -> NDArray[np.int64]:
    """Nodes that would be busy in each round if every job started at its arrival."""
    table = table_of(jobs)
    there = table.arrivals != NEVER
    first = table.arrivals[there]
    return nodes_in_use(first, first + table.durations[there], table.widths[there], n_rounds)


def nodes_in_use(
    first: NDArray[np.int64], after: NDArray[np.int64], nodes: NDArray[np.int64], n_rounds: int
) -> NDArray[np.int64]:
    """Return the nodes busy in rounds 1 .. ``n_rounds``, shape (n_rounds,).

    ``first`` and ``after`` are each job's first round and the first no longer held; as ``nodes``, shape (n_jobs,).
    """
    change = np.zeros(n_rounds + 2, dtype=np.int64)
    np.add.at(change, np.minimum(first, n_rounds + 1), nodes)
    np.add.at(change, np.minimum(after, n_rounds + 1), -nodes)
    return np.cumsum(change)[1 : n_rounds + 1]


def _summary(rounds: pd.DataFrame, capacity: int) -> dict[str, Any]:
    """Figures of the rounds, as plain Python numbers."""
    room = max(capacity * len(rounds), 1)
    last = int(rounds.loc[rounds["submitted"] > 0, "round"].max()) if rounds["submitted"].any() else 0
    prices = rounds["price"].to_numpy()[:last]
    prices = prices[np.isfinite(prices)]  # NaN: the mechanism has no slot prices; inf: the slot is sold out
    return {
        "utilisation": float(rounds["load"].sum() / room),
        "utilisation_open": float(rounds["load"].to_numpy()[:last].sum() / max(capacity * last, 1)),
        "demand_share": float(rounds["demand"].sum() / room),
        "peak_load": int(rounds["load"].max()) if len(rounds) else 0,
        "peak_demand": int(rounds["demand"].max()) if len(rounds) else 0,
        "price_lowest": float(prices.min()) if prices.size else None,
        "price_median": float(np.median(prices)) if prices.size else None,
        "price_highest": float(prices.max()) if prices.size else None,
    }


def lost_runs(events: NDArray[np.void] | Mapping[str, NDArray[Any]]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return job, first round and first round without it of each run that was taken back or evicted, shape (n, 3).

    The second array, shape (n,), tells whether the run was taken back, and its job stayed.
    """
    rows = np.flatnonzero(np.isin(events["kind"], (RowKind.START, RowKind.REQUEUE, RowKind.EVICT)))
    rows = rows[np.argsort(events["job"][rows], kind="stable")]  # each job's together, as they happened
    job, kind, when = (events[name][rows].astype(np.int64) for name in ("job", "kind", "round"))
    ended = np.flatnonzero((kind[1:] != RowKind.START) & (kind[:-1] == RowKind.START) & (job[1:] == job[:-1]))
    return np.column_stack([job[ended], when[ended], when[ended + 1]]), kind[ended + 1] == RowKind.REQUEUE


def _last(jobs: NDArray[Any], values: NDArray[Any], n_jobs: int, default: int = 0) -> NDArray[Any]:
    """Return per job the last of its ``values``; ``default`` if there is none."""
    found = np.full(n_jobs, default, dtype=values.dtype)
    found[jobs] = values  # of repeated indices NumPy keeps the last
    return found


def _rounds_or_missing(rounds: NDArray[Any]) -> pd.arrays.IntegerArray:
    """Rounds as nullable integers; 0 stands for none in the log."""
    return pd.arrays.IntegerArray(rounds.astype(np.int64), rounds == 0)


def _words(words: Any) -> Any:
    """Names as a pandas column of strings."""
    return pd.array(words, dtype="str")
