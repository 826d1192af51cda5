"""Why jobs waited: each round of a wait has one cause, known from arrivals, starts, ends and nodes alone, for any rule.

*Earlier*: the runs of jobs that arrived earlier leave no room. *Overtaken*: they leave room, and runs of later arrivals
take it. *Idle*: the job fits beside all runs, and the rule leaves it. The three add up to the wait.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numba import njit
from numpy.typing import NDArray

HOUR_S = 3600.0
HOURS = ("median_wait_hours", "q90_wait_hours", "longest_wait_hours", "longest_overtaken_hours")
WIDE = 0.05  # share of the jobs


class Causes(NamedTuple):
    """Rounds that each job waited, by cause; each of shape (n_jobs,)."""

    earlier: NDArray[np.int64]
    overtaken: NDArray[np.int64]
    idle: NDArray[np.int64]


def causes_of_waits(
    arrivals: NDArray[np.int64],
    left: NDArray[np.int64],
    nodes: NDArray[np.int64],
    runs: NDArray[np.int64],
    capacity: int,
) -> Causes:
    """Return why each job waited.

    Parameters
    ----------
    arrivals : ndarray, shape (n_jobs,)
        Rounds; of equal ones the first job in the array came first.
    left : ndarray, shape (n_jobs,)
        The first round in which it no longer waited: its last start, or the round in which it left without one.
    nodes : ndarray, shape (n_jobs,)
        Of each job.
    runs : ndarray, shape (n_runs, 3)
        Job, first round and first round without it of every run, also of those that were taken back.
    capacity : int
        Nodes.

    Examples
    --------
    Two nodes. A takes one for four rounds; B, which wants both, comes in round 2, and C takes the other in round 3:

    >>> arrivals, left, nodes = np.array([[1, 2, 3], [1, 9, 3], [1, 2, 1]])
    >>> runs = np.array([[0, 1, 5], [1, 9, 10], [2, 3, 8]])
    >>> [each[1].tolist() for each in causes_of_waits(arrivals, left, nodes, runs, 2)]
    [3, 3, 1]
    """
    runs = runs[np.lexsort((runs[:, 1], runs[:, 0]))]
    times = np.unique(np.concatenate([arrivals, left, runs[:, 1], runs[:, 2]]))
    since, until, begin, end = (np.searchsorted(times, each) for each in (arrivals, left, runs[:, 1], runs[:, 2]))
    busy = np.zeros(times.size, np.int64)
    np.add.at(busy, begin, nodes[runs[:, 0]])
    np.subtract.at(busy, end, nodes[runs[:, 0]])
    first = np.searchsorted(runs[:, 0], np.arange(arrivals.size + 1))
    order, lengths = np.argsort(arrivals, kind="stable"), np.diff(times, append=times[-1:])
    found = _causes_kernel(order, since, until, nodes, begin, end, first, lengths, np.cumsum(busy), capacity)
    return Causes(*found)


@njit(cache=True)
def _causes_kernel(order, since, until, nodes, begin, end, first, lengths, busy, capacity):  # type: ignore[no-untyped-def]
    """Return rounds by cause and job, shape (3, n); jobs are taken in the order of their arrivals."""
    found, earlier = np.zeros((3, nodes.size), np.int64), np.zeros(lengths.size, np.int64)
    for i in order:
        run, k, left = first[i], since[i], capacity - nodes[i]
        while k < until[i]:
            if run < first[i + 1] and begin[run] <= k:  # a run that was taken back
                k = end[run]
                run += 1
                continue
            found[0 if earlier[k] > left else 1 if busy[k] > left else 2, i] += lengths[k]
            k += 1
        for run in range(first[i], first[i + 1]):
            earlier[begin[run] : end[run]] += nodes[i]
    return found


def waits_figures(
    jobs: pd.DataFrame,
    taken_back: NDArray[np.int64],
    offered: NDArray[np.float64],
    capacity: int,
    last_round: int,
    round_seconds: float,
) -> dict[str, Any]:
    """Return the longest wait and the longest time overtaken of a market, hours, and what its widest jobs get.

    Parameters
    ----------
    jobs : DataFrame
        The table ``jobs`` of the market.
    taken_back : ndarray of int, shape (n, 3)
        Row in ``jobs``, first round and first round without it of each run that was taken back.
    offered : ndarray, shape (n_jobs,)
        The largest value that each job can have, credits.
    capacity, last_round, round_seconds
        Of the market.

    Returns
    -------
    dict
        `HOURS`, jobs that left unserved included: the median, 90th percentile and longest of waits, and the longest
        time overtaken; ``wait_with_nodes_free``, the share of all waiting while enough nodes were idle;
        ``overtaken_job``;
        ``wide_share``, the part of their offered value that the widest 5 % of the jobs get, with all as wide as the
        narrowest of these.
    """
    came = jobs["arrival"].notna().to_numpy()
    row = np.cumsum(came) - 1  # of jobs that arrived
    jobs, offered = jobs[came], offered[came]
    if not len(jobs):
        return {**dict.fromkeys(HOURS, 0.0), "wait_with_nodes_free": np.nan, "overtaken_job": "", "wide_share": np.nan}
    arrivals, start = (jobs[name].fillna(0).to_numpy(np.int64) for name in ("arrival", "start"))
    end = jobs["completion"].fillna(jobs["removed"]).fillna(last_round + 1).to_numpy(np.int64)
    nodes = jobs["declared_concurrency"].fillna(jobs["concurrency"]).to_numpy(np.int64)
    ran = np.flatnonzero(start)
    lost = np.column_stack([row[taken_back[:, 0]], taken_back[:, 1:]])
    runs = np.concatenate([np.column_stack([ran, start[ran], end[ran]]), lost])
    causes = causes_of_waits(arrivals, np.where(start > 0, start, end), nodes, runs, capacity)
    hours, longest = round_seconds / HOUR_S, int(causes.overtaken.argmax())
    wide = nodes >= np.sort(nodes)[-max(1, round(WIDE * nodes.size))]
    value = jobs["value"].to_numpy(np.float64)
    waits = causes.earlier + causes.overtaken + causes.idle
    median, tenth = np.quantile(waits, (0.5, 0.9))
    found = (median, tenth, waits.max(), causes.overtaken[longest])
    return {
        **{name: hours * float(each) for name, each in zip(HOURS, found, strict=True)},
        "wait_with_nodes_free": float(causes.idle.sum() / waits.sum()) if waits.any() else np.nan,
        "overtaken_job": str(jobs["name"].iloc[longest]),
        "wide_share": float(value[wide].sum() / offered[wide].sum()) if offered[wide].any() else np.nan,
    }
