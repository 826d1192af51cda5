"""The log of a running market: events row by row, in little memory."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from marketsched.mechanisms.columns import Ending, JobColumns, Move, Outcomes


class RowKind(IntEnum):
    """The kinds of rows of the events table; lower case there."""

    SUBMIT = 0  # a statement of work was submitted
    ARRIVE = 1  # the job became ready
    DROP = 2  # arrived, and the plan says not to run
    CANCEL = 3  # removed before its first round
    EVICT = 4  # removed after at least one round
    START = 5  # executes its first round
    COMPLETE = 6  # done, and charged
    CLOSE = 7  # removed because the market closed after its last round
    REQUEUE = 8  # its run was taken back, and the job stays


# Rows of the log, in no more bytes than they need. Rounds count from 1, so 0 stands for "none".
EVENT = np.dtype(
    {
        "names": ["round", "kind", "job", "again", "completion", "payment", "value"],
        "formats": ["u4", "u1", "u4", "?", "u4", "f8", "f8"],
    }
)
STATEMENT = np.dtype({"names": ["job", "declared", "planned", "estimate"], "formats": ["u4", "i8", "u4", "f8"]})
ROWS_TOGETHER = 4096  # rows of the log that become an array at once
ROUNDS_TOGETHER = 512  # rows of the price surface that it begins with
ROUND = np.dtype([("load", "i8"), ("promised", "f8"), ("price", "f8")])


class _Growing:
    """An array that grows at its end, in place while no view of it is held: there is never a second copy."""

    def __init__(self, array: NDArray[Any], used: int = 0) -> None:
        self._array = array
        self._used = used
        self._shown = used > 0

    def __len__(self) -> int:
        return self._used

    def extend(self, rows: NDArray[Any]) -> None:
        wanted = self._used + len(rows)
        if wanted > len(self._array):
            size = max(wanted, len(self._array) + len(self._array) // 2)
            if self._shown or not self._array.flags.owndata:  # after unpickling the memory is numpy's, and cannot grow
                longer = np.empty((size, *self._array.shape[1:]), self._array.dtype)
                longer[: self._used] = self._array[: self._used]
                self._array, self._shown = longer, False
            else:
                self._array.resize((size, *self._array.shape[1:]), refcheck=False)
        self._array[self._used : wanted] = rows
        self._used = wanted

    def first(self, count: int) -> NDArray[Any]:
        """Return the first ``count`` rows; they stay as they are."""
        self._shown = True
        return self._array[:count]


class _Rows:
    """Rows of one kind, kept as an array but for the last few: as tuples they take many times the memory."""

    def __init__(self, dtype: np.dtype[np.void], rows: NDArray[np.void] | None = None) -> None:
        self._dtype = dtype
        self._rows = _Growing(np.empty(ROWS_TOGETHER, dtype)) if rows is None else _Growing(rows, len(rows))
        self._last: list[tuple[Any, ...]] = []

    def append(self, row: tuple[Any, ...]) -> None:
        self._last.append(row)
        if len(self._last) == ROWS_TOGETHER:
            self._put_away()

    def _put_away(self) -> None:
        if not self._last:
            return
        self._rows.extend(np.array(self._last, dtype=self._dtype))
        self._last.clear()

    def __len__(self) -> int:
        return len(self._rows) + len(self._last)

    def first(self, count: int) -> NDArray[np.void]:
        """Return the first ``count`` rows."""
        self._put_away()
        return self._rows.first(count)


@dataclass
class MarketLog:
    """What happened, in order. Rows after the last finished round are left out of the tables."""

    events: _Rows = field(default_factory=lambda: _Rows(EVENT))
    statements: _Rows = field(default_factory=lambda: _Rows(STATEMENT))
    rounds: list[tuple[int, float, float]] | NDArray[np.void] = field(default_factory=list)  # as `ROUND`
    surfaces: _Growing | None = None  # of float32, one row per round; None: no prices
    finished: tuple[int, int, int] = (0, 0, 0)  # rows of rounds, events, statements
    counts: list[int] = field(default_factory=lambda: [0] * len(RowKind))  # of events so far, by kind
    value: float = 0.0  # credits so far
    payment: float = 0.0

    def submit(self, now: int, job: int, again: bool, declared: int, planned: int | None, estimate: float) -> None:
        """Note a submission: nodes declared, planned start of the case that will happen, (3)."""
        self.statements.append((job, declared, planned or 0, estimate))
        self.event(now, RowKind.SUBMIT, job, again)

    def event(
        self,
        now: int,
        kind: RowKind,
        job: int,
        again: bool,
        completion: int | None = None,
        payment: float = 0.0,
        value: float = 0.0,
    ) -> None:
        """Note an event of the job at place ``job`` of the workload."""
        self.events.append((now, kind, job, again, completion or 0, payment, value))
        self.counts[kind] += 1
        self.value += value
        self.payment += payment

    def close_round(self, load: int, promised: float, price: float, surface: NDArray[np.float64] | None) -> None:
        """Record the round; from here on it counts as finished."""
        assert isinstance(self.rounds, list)
        self.rounds.append((load, promised, price))
        if surface is not None:
            if self.surfaces is None:
                self.surfaces = _Growing(np.empty((ROUNDS_TOGETHER, surface.size), np.float32))
            with np.errstate(over="ignore"):  # a price too high for a float32 is shown as not on sale
                self.surfaces.extend(surface.astype(np.float32)[None])
        self.finished = (len(self.rounds), len(self.events), len(self.statements))

    @classmethod
    def of(
        cls,
        events: NDArray[np.void],
        statements: NDArray[np.void],
        rounds: NDArray[np.void],
        surface: NDArray[np.float32] | None,
    ) -> MarketLog:
        """Return the log of rounds that were played at once; arguments as of `EVENT`, `STATEMENT` and `ROUND`."""
        surfaces = None if surface is None else _Growing(surface, len(surface))
        log = cls(_Rows(EVENT, events), _Rows(STATEMENT, statements), rounds, surfaces)
        log.counts = np.bincount(events["kind"], minlength=len(RowKind)).tolist()
        log.value, log.payment = float(events["value"].sum()), float(events["payment"].sum())
        log.finished = (rounds.size, events.size, statements.size)
        return log


_ROW_OF = np.array([0, RowKind.DROP, RowKind.CANCEL, RowKind.EVICT, RowKind.COMPLETE], np.uint8)  # by `Ending`
_ROW_OF_MOVE = np.array([RowKind.START, RowKind.REQUEUE, 0], np.uint8)  # by `Move`; of `Move.LEFT` the ending says it
assert tuple(Move) == (Move.STARTED, Move.TAKEN_BACK, Move.LEFT)


class Reports(NamedTuple):
    """The columns of `JobColumns` that rows of a log need."""

    births: NDArray[np.int64]  # (n,), rounds of submission
    arrivals: NDArray[np.int64]  # (n,), rounds; 0: never
    widths: NDArray[np.int64]  # (n,), nodes
    begins: NDArray[np.int64]  # (n + 1,), of the steps of the value curves
    values: NDArray[np.float64]  # (begins[-1],), credits
    lasts: NDArray[np.int64]  # (begins[-1],), completion times


class Runs(NamedTuple):
    """What became of the jobs, as in `Outcomes`."""

    starts: NDArray[np.int64]  # (n,), first rounds; 0: never
    left: NDArray[np.int64]  # (n,), last rounds; 0: never
    endings: NDArray[np.uint8]  # (n,), `Ending`
    payments: NDArray[np.float64]  # (n,), credits
    moves: NDArray[np.int64]  # (n_moves, 3), round, `Move` and job of each


def played_log(jobs: JobColumns, outcomes: Outcomes, played: int, *, closes: bool) -> MarketLog:
    """Return the log of the first ``played`` rounds of a market; ``closes``: jobs that are left are removed after."""
    moves = outcomes.moves.table()
    n_rows = _rows_of(jobs, outcomes, moves, played, closes)
    events, load = np.zeros(n_rows, EVENT), np.zeros(played + 2, np.int64)
    reports = Reports(jobs.births, jobs.arrivals, jobs.widths, jobs.begins, jobs.values, jobs.lasts)
    runs = Runs(outcomes.starts, outcomes.left, outcomes.endings, outcomes.payments, moves)
    _events_kernel(reports, jobs.max_delay, runs, _ROW_OF, _ROW_OF_MOVE, played, closes, events, load)
    if outcomes.on_cluster is not None:
        load[1 : played + 1] = outcomes.on_cluster.in_use[:played]
        worths = np.ones(jobs.n)
        worths[list(outcomes.on_cluster.worths)] = list(outcomes.on_cluster.worths.values())
        events["value"] *= worths[events["job"]]
    submitted = int(np.searchsorted(jobs.births, played, side="right"))
    statements = np.zeros(submitted, STATEMENT)
    statements["job"], statements["declared"] = np.arange(submitted), jobs.widths[:submitted]
    statements["planned"], statements["estimate"] = outcomes.planned[:submitted], outcomes.estimates[:submitted]
    rounds = np.empty(played, ROUND)
    rounds["load"], rounds["price"] = load[1 : played + 1], outcomes.prices[:played]
    rounds["promised"] = outcomes.promised[:played]
    surface = None if outcomes.surface is None else outcomes.surface[:played]
    return MarketLog.of(events, statements, rounds, surface)


def _rows_of(jobs: JobColumns, outcomes: Outcomes, moves: NDArray[np.int64], played: int, closes: bool) -> int:
    """Return the number of events in the first rounds."""
    came = np.where((outcomes.left > 0) & (outcomes.left < jobs.arrivals), 0, jobs.arrivals)
    happened = [each[(each > 0) & (each <= played)].size for each in (jobs.births, came, outcomes.starts)]
    gone = (outcomes.left > 0) & (outcomes.left <= played)
    left = int(np.count_nonzero(gone))
    moved = happened[2] + left
    if len(moves):
        moved = len(moves) + int(np.count_nonzero(outcomes.endings[gone] == Ending.COMPLETED))
    return happened[0] + happened[1] + moved + (happened[0] - left if closes else 0)


@njit(cache=True)
def _events_kernel(reports, max_delay, runs, row_of, row_of_move, played, closes, events, load):  # type: ignore[no-untyped-def]
    """Fill the columns of the log by a counting sort on (round, phase), and the nodes busy in each round."""
    births, arrivals, _, begins, values, lasts = reports
    starts, left, endings, payments, moves = runs
    rounds, kinds, places = events["round"], events["kind"], events["job"]
    completions, paid, worth = events["completion"], events["payment"], events["value"]
    n, phases, noted = births.size, 6, moves.shape[0] > 0
    at = np.zeros((played + 1) * phases + 1, np.int64)
    for j in range(n):
        for phase in range(phases):
            when = _when(births[j], arrivals[j], starts[j], left[j], endings[j], phase, noted)
            if 0 < when <= played:
                at[when * phases + phase + 1] += 1
    for i in range(moves.shape[0]):
        at[moves[i, 0] * phases + 3] += 1
    for i in range(1, at.size):
        at[i] += at[i - 1]
    for k in range(n):
        for phase in range(phases):
            j = n - 1 - k if phase == 3 else k  # removals: the job submitted last first
            when = _when(births[j], arrivals[j], starts[j], left[j], endings[j], phase, noted)
            if not 0 < when <= played:
                continue
            x = at[when * phases + phase]
            at[when * phases + phase] += 1
            rounds[x], places[x] = when, j
            if phase == 0:
                kinds[x] = 0  # RowKind.SUBMIT
            elif phase == 1:
                kinds[x] = 1  # RowKind.ARRIVE
            elif phase == 4:
                kinds[x] = 5  # RowKind.START
            else:
                kinds[x], paid[x] = row_of[endings[j]], payments[j]
            if phase == 5:
                completions[x] = when + 1
                if when < births[j] + max_delay - 1:
                    worth[x] = _step_at(values[begins[j] : begins[j + 1]], lasts[begins[j] : begins[j + 1]], when + 1)
    for i in range(moves.shape[0]):
        when, move, j = moves[i]
        x = at[when * phases + 2]
        at[when * phases + 2] += 1
        rounds[x], places[x] = when, j
        kinds[x] = row_of[endings[j]] if move == 2 else row_of_move[move]  # Move.LEFT
        if move == 2:
            paid[x] = payments[j]
    _loads_kernel(reports.widths, runs, played, load)
    if closes:
        x = rounds.size
        for j in range(n):
            if births[j] <= played and left[j] == 0:
                x -= 1
                rounds[x], kinds[x], places[x] = played, 7, j  # RowKind.CLOSE


@njit(cache=True)
def _loads_kernel(widths, runs, played, load):  # type: ignore[no-untyped-def]
    """Fill the nodes busy in each round."""
    starts, left, endings, _, moves = runs
    for j in range(widths.size):  # the last run of each job
        if 0 < starts[j] <= played:
            after = left[j] + (endings[j] == 4) if 0 < left[j] <= played else played + 1  # Ending.COMPLETED
            load[starts[j]] += widths[j]
            load[after] -= widths[j]
    began = np.zeros(widths.size, np.int64)
    for i in range(moves.shape[0]):  # those that were taken back
        when, move, j = moves[i]
        if move == 0:  # Move.STARTED
            began[j] = when
        elif move == 1:
            load[began[j]] += widths[j]
            load[when] -= widths[j]
    for t in range(1, played + 1):
        load[t] += load[t - 1]


@njit(cache=True)
def _when(birth, arrival, start, leaves, ending, phase, noted):  # type: ignore[no-untyped-def]
    """Return the round in which a job has an event of this phase: 0, never; none of those that moves have ``noted``."""
    if noted and 2 <= phase <= 4:
        return 0
    if phase == 0:
        return birth
    if phase == 1:
        return 0 if 0 < leaves < arrival else arrival
    if phase == 4:
        return start
    wanted = ending == 1 if phase == 2 else ending in (2, 3) if phase == 3 else ending == 4
    return leaves if wanted else 0


@njit(cache=True)
def _step_at(values, lasts, completion):  # type: ignore[no-untyped-def]
    """Return the value of one completion time, by the steps of one curve."""
    for k in range(values.size):
        if completion <= lasts[k]:
            return values[k]
    return 0.0
