"""The state of a recorded machine while its jobs wait: nodes in use, levels of users and queues, reservations.

Each wait is cut into parts of equal length, with a moment drawn in each: sums over moments are sums over waiting time.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pandas as pd
from numba import njit
from numpy.typing import NDArray

LEAST_WAIT_S = 60.0  # the first minute of a wait is the scheduler's own
MOMENTS, OF_A_JOB = 100_000, 50  # at most, and one more for each job that waited
END, SUBMISSION, START, MOMENT = range(4)  # of equal times in this order


class RecordedJobs(NamedTuple):
    """The jobs of a log with their recorded schedule, by submission; arrays of shape (n,), seconds and nodes.

    Attributes
    ----------
    submit, eligible, start, end, request : ndarray of float64
        ``eligible``: since when it might start, as the log says, else its submission; ``request``: the wall time that
        was asked for, else the run.
    nodes, user, queue : ndarray of int64
        Users and queues are numbered.
    """

    submit: NDArray[np.float64]
    eligible: NDArray[np.float64]
    start: NDArray[np.float64]
    end: NDArray[np.float64]
    request: NDArray[np.float64]
    nodes: NDArray[np.int64]
    user: NDArray[np.int64]
    queue: NDArray[np.int64]


class Levels(NamedTuple):
    """Moments of waits, arrays of shape (m,), and what stood at each start, of shape (2, 2, n).

    Attributes
    ----------
    job : ndarray of int64
        The job that waits.
    time, seconds : ndarray of float64
        The moment, and the waiting time that it stands for.
    busy, later : ndarray of int64
        Nodes in use, and those of jobs that came later than this one.
    kept : ndarray of bool
        The job fits, and an older one does not: EASY's reservation for the first such job would have held this one.
    waiting, started : ndarray of int64, shapes (2, 2, m) and (2, 2, n)
        Nodes and runs (first axis) of the job's user and queue (second) at the moment, and just before its start.
    """

    job: NDArray[np.int64]
    time: NDArray[np.float64]
    seconds: NDArray[np.float64]
    busy: NDArray[np.int64]
    later: NDArray[np.int64]
    kept: NDArray[np.bool_]
    waiting: NDArray[np.int64]
    started: NDArray[np.int64]


def recorded_jobs(runs: pd.DataFrame) -> RecordedJobs:
    """Return the runs of a log whose starts are known.

    Parameters
    ----------
    runs : DataFrame
        The table of a `marketsched.worlds.logs.job_log.JobLog`.
    """
    known = runs[runs["start_s"].notna()]
    submit, start, run = (known[name].to_numpy(np.float64) for name in ("submit_s", "start_s", "run_s"))
    request = known["requested_s"].fillna(known["run_s"]).to_numpy(np.float64)
    user, queue = (pd.factorize(known[name])[0].astype(np.int64) for name in ("user", "queue"))
    nobody = known["user"].eq("").to_numpy()  # jobs of unknown users are nobody else's
    user[nobody] = user.max(initial=0) + 1 + np.arange(nobody.sum())
    eligible = known["eligible_s"].fillna(known["submit_s"]).to_numpy(np.float64)
    return RecordedJobs(
        submit, eligible, start, start + run, request, known["processors"].to_numpy(np.int64), user, queue
    )


def levels_of(jobs: RecordedJobs, capacity: int, rng: np.random.Generator) -> Levels:
    """Return the state of the machine at moments of all waits.

    Parameters
    ----------
    jobs : RecordedJobs
        n jobs.
    capacity : int
        Nodes of the machine.
    rng : Generator
        Draws the moments.
    """
    n = jobs.submit.size
    waits = np.maximum(jobs.start - jobs.submit - LEAST_WAIT_S, 0.0)
    parts = np.ceil(waits / max(waits.sum() / min(MOMENTS, OF_A_JOB * n), 1e-9)).astype(np.int64)
    job = np.repeat(np.arange(n), parts)
    place = np.arange(job.size) - np.repeat(np.cumsum(parts) - parts, parts)
    seconds = waits[job] / parts[job]
    time = jobs.submit[job] + LEAST_WAIT_S + (place + rng.random(job.size)) * seconds
    times = np.concatenate([jobs.end, jobs.submit, jobs.start, time])
    kinds = np.repeat([END, SUBMISSION, START, MOMENT], [n, n, n, job.size])
    whose = np.concatenate([np.tile(np.arange(n), 3), np.arange(job.size)])
    order = np.lexsort((kinds, times))
    labels = np.stack([jobs.user, jobs.queue])
    request_ends = jobs.start + jobs.request
    found = _levels_kernel(
        times[order], kinds[order], whose[order], job, jobs.nodes, request_ends, jobs.request, labels, capacity
    )
    return Levels(job, time, seconds, *found)


@njit(cache=True)
def _levels_kernel(times, kinds, whose, job, nodes, request_ends, requests, labels, capacity):  # type: ignore[no-untyped-def]
    """Return ``busy, later, kept, waiting, started`` of `Levels`."""
    n, m, n_labels = nodes.size, job.size, labels.max() + 1
    busy, later, kept = np.zeros(m, np.int64), np.zeros(m, np.int64), np.zeros(m, np.bool_)
    waiting, started = np.zeros((2, 2, m), np.int64), np.zeros((2, 2, n), np.int64)
    now = np.zeros((2, 2, n_labels), np.int64)  # nodes and runs of users and queues
    sums = np.zeros(n + 1, np.int64)  # Fenwick's tree over jobs: the nodes of those that run
    queue, n_queue = np.empty(n, np.int64), 0  # that wait, in order of submission
    running, n_running = np.empty(n, np.int64), 0  # in order of the ends they asked for
    used, stale, head, shadow, spare = 0, True, -1, 0.0, 0
    for e in range(times.size):
        kind, j = kinds[e], whose[e]
        if kind == MOMENT:
            i, now_s = job[j], times[e]
            busy[j] = used
            rest, k = used, i + 1
            while k > 0:
                rest -= sums[k]
                k -= k & -k
            later[j] = rest
            for s in range(2):
                for what in range(2):
                    waiting[what, s, j] = now[what, s, labels[s, i]]
            if used + nodes[i] > capacity:
                continue
            if stale:
                stale, head = False, -1
                for q in range(n_queue):
                    if used + nodes[queue[q]] > capacity:
                        head = queue[q]
                        break
                if head >= 0:
                    free, r = capacity - used, 0
                    while free < nodes[head] and r < n_running:
                        free += nodes[running[r]]
                        shadow = request_ends[running[r]]
                        r += 1
                    spare = free - nodes[head]
            if 0 <= head < i:
                kept[j] = now_s + requests[i] > max(shadow, now_s + 1.0) and nodes[i] > spare
            continue
        stale = True
        if kind == SUBMISSION:
            at = n_queue  # almost always the last place
            while at > 0 and queue[at - 1] > j:
                queue[at] = queue[at - 1]
                at -= 1
            queue[at] = j
            n_queue += 1
            continue
        sign = 1 if kind == START else -1
        if kind == START:
            at = np.searchsorted(queue[:n_queue], j)
            queue[at : n_queue - 1] = queue[at + 1 : n_queue].copy()
            n_queue -= 1
            for s in range(2):
                for what in range(2):
                    started[what, s, j] = now[what, s, labels[s, j]]
            at = n_running
            while at > 0 and request_ends[running[at - 1]] > request_ends[j]:
                running[at] = running[at - 1]
                at -= 1
            running[at] = j
            n_running += 1
        else:
            at = 0
            while running[at] != j:
                at += 1
            running[at : n_running - 1] = running[at + 1 : n_running].copy()
            n_running -= 1
        used += sign * nodes[j]
        for s in range(2):
            now[0, s, labels[s, j]] += sign * nodes[j]
            now[1, s, labels[s, j]] += sign
        k = j + 1
        while k <= n:
            sums[k] += sign * nodes[j]
            k += k & -k
    return busy, later, kept, waiting, started
