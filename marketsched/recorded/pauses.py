"""Times in which nobody started although jobs waited that fitted: outages, maintenance, reserved machines."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import uniform_filter1d

from marketsched.recorded.levels import RecordedJobs

HOUR_S, WEEK_HOURS = 3600.0, 168
SHORTEST_S, EXPECTED, USERS = 1800.0, 7.0, 2  # of a pause; pairs of a user and an hour with a start; users that wait
ARRIVED_S, BUSIEST = 600.0, 1.5  # a job that waits came so long before the end; activity counts up to this


def pauses_of(jobs: RecordedJobs, capacity: int) -> NDArray[np.float64]:
    """Return first and last second of each pause, shape (n_pauses, 2).

    Parameters
    ----------
    jobs : RecordedJobs
        n jobs.
    capacity : int
        Nodes.
    """
    starts = np.unique(jobs.start)
    expected = _expected_starts(jobs, starts)
    gaps = np.flatnonzero((np.diff(starts) >= SHORTEST_S) & (np.diff(expected) >= EXPECTED))
    order, ends = np.sort(jobs.start), np.sort(jobs.end)
    used_by_start = np.concatenate([[0], np.cumsum(jobs.nodes[np.argsort(jobs.start)])])
    freed_by_end = np.concatenate([[0], np.cumsum(jobs.nodes[np.argsort(jobs.end)])])
    found = []
    for gap in gaps:
        since, until = starts[gap], starts[gap + 1]
        used = used_by_start[np.searchsorted(order, since, "right")]
        used -= freed_by_end[np.searchsorted(ends, since, "right")]
        came = np.searchsorted(jobs.submit, until - ARRIVED_S)
        waits = np.flatnonzero((jobs.start[:came] >= until) & (jobs.nodes[:came] <= capacity - used))
        if np.unique(jobs.user[waits]).size >= USERS:
            found.append((since + 1, until))
    return np.array(found, dtype=np.float64).reshape(-1, 2)


def _expected_starts(jobs: RecordedJobs, times: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return how many pairs of a user and an hour with a start are expected before each time.

    By the hour of the week over the whole log, times the activity of these two weeks.
    """
    first = jobs.submit[0]
    pairs = np.unique(np.stack([((jobs.start - first) // HOUR_S).astype(np.int64), jobs.user]), axis=1)[0]
    counts = np.bincount(pairs).astype(np.float64)
    week = np.arange(counts.size) % WEEK_HOURS
    usual = np.bincount(week, counts, WEEK_HOURS) / np.maximum(np.bincount(week, minlength=WEEK_HOURS), 1)
    activity = uniform_filter1d(counts, 2 * WEEK_HOURS, mode="nearest") / max(counts.mean(), 1e-9)
    total = np.concatenate([[0.0], np.cumsum(usual[week] * np.minimum(activity, BUSIEST))])
    return np.asarray(np.interp((times - first) / HOUR_S, np.arange(counts.size + 1), total))
