"""Who ran when under each mechanism: what plots of schedules are made of.

One row per mechanism and job of one seed, and one for each run that was taken back and did not last. Jobs that never
started have no rounds; one that was evicted has the rounds it ran.
"""

from __future__ import annotations

import heapq

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from marketsched.agents.result import nodes_in_use
from marketsched.results.waits import bounded_slowdowns

COLUMNS = (
    "mechanism", "job", "owner", "class", "nodes", "arrival", "start", "end", "completed", "bounded_slowdown",
    "taken_back",
)  # fmt: skip


def schedule_table(
    jobs: pd.DataFrame,
    mechanism: str,
    last_round: int,
    round_seconds: float | None = None,
    taken_back: NDArray[np.int64] | None = None,
) -> pd.DataFrame:
    """Return when each job of a market ran.

    Parameters
    ----------
    jobs : DataFrame
        The table ``jobs`` of the market.
    mechanism : str
        The label of the rows.
    last_round : int
        Of the market: what still ran then ends after it.
    round_seconds : float, optional
        Length of a round, for the bounded slowdown; None: 10 s.
    taken_back : ndarray of int, shape (n, 3), optional
        Row in ``jobs``, first round and first round without it of each run that was taken back.

    Returns
    -------
    DataFrame
        Columns `COLUMNS`. ``start`` and ``end`` (first round without it) are 0 where a job never ran; ``class`` is -1
        where jobs have none; ``bounded_slowdown`` is NaN unless the job was completed. Rows with ``taken_back`` are
        runs before the one in the job's own row, and stand behind those of all jobs.
    """
    start = jobs["start"].fillna(0).to_numpy(dtype=np.int64)
    end = jobs["completion"].fillna(jobs["removed"]).fillna(last_round + 1).to_numpy(dtype=np.int64)
    nodes = jobs["declared_concurrency"].fillna(jobs["concurrency"]).to_numpy(dtype=np.int64)
    classes = jobs["class"].fillna(-1).to_numpy(dtype=np.int64) if "class" in jobs else np.full(len(jobs), -1)
    columns = {
        "mechanism": mechanism,
        "job": jobs["name"].to_numpy(),
        "owner": jobs["owner"].to_numpy(),
        "class": classes,
        "nodes": nodes,
        "arrival": jobs["arrival"].fillna(0).to_numpy(dtype=np.int64),
        "start": start,
        "end": np.where(start > 0, end, 0),
        "completed": (jobs["outcome"] == "completed").to_numpy(),
        "bounded_slowdown": bounded_slowdowns(jobs, round_seconds),
        "taken_back": False,
    }
    table = pd.DataFrame(columns, columns=list(COLUMNS))
    if taken_back is None or not taken_back.size:
        return table
    job, begin, after = taken_back.T
    lost = {"start": begin, "end": after, "completed": False, "bounded_slowdown": np.nan, "taken_back": True}
    runs: pd.DataFrame = table.iloc[job].assign(**lost)
    return pd.concat([table, runs], ignore_index=True)


def own_rows(schedules: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of jobs, one each, without those of runs that were taken back."""
    return schedules.loc[~schedules["taken_back"]]


def busy_nodes(schedule: pd.DataFrame, last_round: int) -> NDArray[np.int64]:
    """Return how many nodes are busy in each round of one schedule, shape (last_round,)."""
    ran = schedule[schedule["start"] > 0]
    start, end, nodes = (ran[name].to_numpy(dtype=np.int64) for name in ("start", "end", "nodes"))
    return nodes_in_use(start, end, nodes, last_round)


def busiest_window(schedules: pd.DataFrame, length: int, last_round: int) -> int:
    """Return the first of ``length`` rounds in which the most nodes wait, over all mechanisms together."""
    came = schedules[schedules["arrival"] > 0].sort_values("start", kind="stable")
    before = came[came["start"] > 0].groupby(["mechanism", "job"])["end"].shift()  # where an earlier run was taken back
    since = before.reindex(came.index).fillna(came["arrival"]).to_numpy(dtype=np.int64)
    until = np.where(came["start"] > 0, came["start"], came["arrival"] + 1).astype(np.int64)
    waiting = nodes_in_use(since, until, came["nodes"].to_numpy(dtype=np.int64), last_round)
    sums = np.convolve(waiting, np.ones(min(length, waiting.size), dtype=np.int64), mode="valid")
    return int(sums.argmax()) + 1


def node_rows(schedule: pd.DataFrame, capacity: int, first: int, length: int) -> NDArray[np.int64]:
    """Return which job is on which node in a window: each job takes the lowest nodes that are free when it starts.

    Parameters
    ----------
    schedule : DataFrame
        Of one mechanism.
    capacity : int
        Nodes.
    first, length : int
        The window, rounds.

    Returns
    -------
    ndarray of int, shape (capacity, length)
        Row of the schedule, -1: free.

    Examples
    --------
    >>> jobs = pd.DataFrame({"start": [1, 1, 3], "end": [3, 5, 4], "nodes": [2, 1, 1]})
    >>> node_rows(jobs, 3, 2, 3)
    array([[ 0,  2, -1],
           [ 0, -1, -1],
           [ 1,  1,  1]])
    """
    grid = np.full((capacity, length), -1, dtype=np.int64)
    inside = (schedule["start"] > 0) & (schedule["start"] < first + length) & (schedule["end"] > first)
    places = np.flatnonzero(inside.to_numpy())
    starts, ends, nodes = (schedule[name].to_numpy(dtype=np.int64) for name in ("start", "end", "nodes"))
    free, ending = np.ones(capacity, dtype=bool), list[tuple[int, int, NDArray[np.int64]]]()
    for i in places[np.argsort(starts[places], kind="stable")].tolist():
        while ending and ending[0][0] <= starts[i]:
            free[heapq.heappop(ending)[2]] = True
        taken = np.flatnonzero(free)[: nodes[i]]
        free[taken] = False
        heapq.heappush(ending, (int(ends[i]), i, taken))
        grid[taken, max(0, starts[i] - first) : ends[i] - first] = i
    return grid
