"""The log of a market that was played as columns: the rows that the loop would have written, in its order.

In a round come submissions and arrivals in order of submission, then what its clearing moved, then completions; after
the last round the jobs that are left, the last one first. A rule that notes no `Moves` moves jobs in one order: drops,
removals (the job submitted last first), starts. A job that was removed before it is ready does not arrive.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from marketsched.agents.market_log import EVENT, ROUND, STATEMENT, MarketLog, RowKind
from marketsched.mechanisms.columns import Ending, JobColumns, Move, Outcomes

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
    """Return the log of the first ``played`` rounds of a market.

    Parameters
    ----------
    jobs : JobColumns
        What was reported, and is true.
    outcomes : Outcomes
        Of these rounds.
    played : int
        Rounds.
    closes : bool
        Whether the jobs that are left are removed after them.
    """
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
