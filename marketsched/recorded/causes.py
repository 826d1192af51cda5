"""Why recorded jobs waited: each moment of a wait has one cause, the first of `CAUSES` that suffices.

Some causes are seen (nodes in use), others are inferred from the log's own regularities. What is inferred has a
placebo: the share that the same rule finds where users, queues, weeks or starts are shuffled. A cause that does not
find three times its placebo is not believed, and its moments fall to the next.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
from numba import njit
from numpy.typing import NDArray

from marketsched.recorded.levels import LEAST_WAIT_S, Levels, RecordedJobs, levels_of
from marketsched.recorded.pauses import pauses_of
from marketsched.results.recorded_view import WORDS
from marketsched.worlds.logs.partitions import nodes_in_use

HOUR_S, DAY_S, WEEK_S = 3600.0, 86_400.0, 604_800.0
CAUSES = tuple(WORDS)
INFERRED = {"calendar": ("weeks",), "queue_limit": ("queues",), "user_limit": ("users",), "own": ("users", "starts")}
BELIEVED = 3.0  # times its placebo
RELEASE_S, MOVED_S = 60.0, 5400.0  # after an own job's end; by how much the placebo moves starts
PERIOD_S, KEPT_TO, ABOVE, FEWEST_STARTS = 30 * DAY_S, 0.98, 0.7, 10  # of a limit
LENGTHS = np.array([1, 2, 4, 8, 12, 16, 24, 48.0]) * HOUR_S + 1  # classes of requests
EXPECTED, HAPPENED = 5.0, 0.2  # starts in a closed hour, and at most so many of them
MOST_TWINS = 5000  # later jobs of one user and queue that are looked at


class WaitCauses(NamedTuple):
    """Recorded waiting by cause.

    Attributes
    ----------
    table : DataFrame
        Columns ``cause`` (of `CAUSES`, in this order), ``share`` (of all waiting; they add up to 1), ``alone`` (the
        share that the cause alone would explain) and ``placebo`` (of the same rule on shuffled logs; NaN: none).
    seconds : ndarray, shape (n_jobs, n_causes)
        Of each job's wait.
    """

    table: pd.DataFrame
    seconds: NDArray[np.float64]


def causes_of(jobs: RecordedJobs, capacity: int, rng: np.random.Generator, monday_s: float = 0.0) -> WaitCauses:
    """Return why the jobs of a log waited.

    Parameters
    ----------
    jobs : RecordedJobs
        n jobs.
    capacity : int
        Nodes.
    rng : Generator
        Draws the moments that are looked at, and the placebos.
    monday_s : float
        A Monday's midnight on the clock of the log, s.
    """
    n, names = jobs.submit.size, list(CAUSES)
    levels = levels_of(jobs, capacity, rng)
    found = _tests(jobs, levels, capacity, monday_s)
    alone = {name: _share(levels, met) for name, met in found.items()}
    placebo = dict.fromkeys(names, np.nan)
    shuffled = _shuffled(jobs, capacity, rng, monday_s)
    for name, of in INFERRED.items():
        placebo[name] = max(shuffled[each, name] for each in of)
        if not alone[name] > BELIEVED * placebo[name]:
            found[name] = np.zeros(levels.job.size, bool)
    cause = np.full(levels.job.size, len(names) - 1)
    for k in reversed(range(len(names) - 1)):
        cause[found[names[k]]] = k
    seconds = np.zeros((n, len(names)))
    np.add.at(seconds, (levels.job, cause), levels.seconds)
    shares = seconds.sum(axis=0) / max(seconds.sum(), 1e-9)
    alone["unexplained"] = np.nan
    table = {"cause": names, "share": shares, "alone": [alone[x] for x in names], "placebo": list(placebo.values())}
    return WaitCauses(pd.DataFrame(table), seconds)


def together(tables: Sequence[pd.DataFrame], seconds: Sequence[float]) -> pd.DataFrame:
    """Return the causes of several machines, weighted by their waiting time."""
    if len(tables) == 1:
        return tables[0]
    weights = np.array(seconds) / max(sum(seconds), 1e-9)
    figures = ["share", "alone", "placebo"]
    means = np.sum([weight * table[figures].to_numpy() for weight, table in zip(weights, tables, strict=True)], axis=0)
    return tables[0].assign(**dict(zip(figures, means.T, strict=True)))


def _tests(jobs: RecordedJobs, levels: Levels, capacity: int, monday_s: float) -> dict[str, NDArray[np.bool_]]:
    """Return at which moments each cause suffices."""
    nodes, free = jobs.nodes[levels.job], levels.busy + jobs.nodes[levels.job] <= capacity
    return {
        "ineligible": levels.time < jobs.eligible[levels.job],
        "ahead": ~free & (levels.busy - levels.later + nodes > capacity),
        "overtaken": ~free,
        "smaller": free & (levels.busy + nodes > _largest_use(jobs, levels.time)),
        "pause": free & _inside(pauses_of(jobs, capacity), levels.time),
        "twin": free & (levels.time < _twin_starts(jobs)[levels.job]),
        "calendar": free & _closed(jobs, levels, free, monday_s),
        "queue_limit": free & _limited(jobs, levels, free, 1),
        "user_limit": free & _limited(jobs, levels, free, 0),
        "kept": free & levels.kept,
        "own": free & _released(jobs, 0.0)[levels.job],
    }


def _shuffled(
    jobs: RecordedJobs, capacity: int, rng: np.random.Generator, monday_s: float
) -> dict[tuple[str, str], float]:
    """Return the share that each inferred cause alone explains on logs in which there is no such cause."""
    order = rng.permutation(jobs.submit.size)
    mixed = jobs._replace(user=jobs.user[order], queue=jobs.queue[rng.permutation(jobs.submit.size)])
    levels = levels_of(mixed, capacity, rng)
    free = levels.busy + jobs.nodes[levels.job] <= capacity
    turned = np.floor(rng.uniform(0, 168, 2 + int(jobs.end.max() // WEEK_S))) * HOUR_S
    return {
        ("users", "user_limit"): _share(levels, free & _limited(mixed, levels, free, 0)),
        ("queues", "queue_limit"): _share(levels, free & _limited(mixed, levels, free, 1)),
        ("users", "own"): _share(levels, free & _released(mixed, 0.0)[levels.job]),
        ("starts", "own"): _share(levels, free & _released(jobs, MOVED_S)[levels.job]),
        ("weeks", "calendar"): _share(levels, free & _closed(jobs, levels, free, monday_s, turned)),
    }


def _share(levels: Levels, met: NDArray[np.bool_]) -> float:
    return float(levels.seconds[met].sum() / max(levels.seconds.sum(), 1e-9))


def _inside(spans: NDArray[np.float64], time: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Tell which times lie in one of the spans, shape (k, 2), in order."""
    if not len(spans):
        return np.zeros(time.size, bool)
    at = np.searchsorted(spans[:, 0], time, "right") - 1
    return np.asarray((at >= 0) & (time < spans[np.maximum(at, 0), 1]))


def _largest_use(jobs: RecordedJobs, time: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the most nodes that ran at once within half a week of each time, by whole hours."""
    times, use = nodes_in_use(jobs.start, jobs.end, jobs.nodes)
    hours = (times // HOUR_S).astype(np.int64)
    first = hours[0]
    most = np.zeros(int(hours[-1] - first) + 1)
    np.maximum.at(most, hours - first, use)
    last = np.searchsorted(hours, np.arange(most.size) + first, "left") - 1  # what goes on from the hour before
    most = np.maximum(most, np.where(last >= 0, use[np.maximum(last, 0)], 0))
    widest = pd.Series(most).rolling(int(WEEK_S / HOUR_S) + 1, center=True, min_periods=1).max().to_numpy()
    return np.asarray(widest[np.clip((time // HOUR_S).astype(np.int64) - first, 0, most.size - 1)])


def _twin_starts(jobs: RecordedJobs) -> NDArray[np.float64]:
    """Return when the last later job of the same user and queue, as wide and as long, started before each job."""
    order = np.lexsort((jobs.submit, jobs.queue, jobs.user))
    sizes = jobs.nodes, jobs.request, jobs.user, jobs.queue, MOST_TWINS
    return np.asarray(_twins_kernel(order, jobs.submit, jobs.start, *sizes))


@njit(cache=True)
def _twins_kernel(order, submit, start, nodes, request, user, queue, most):  # type: ignore[no-untyped-def]
    found = submit.copy()
    for a in range(order.size):
        j = order[a]
        for b in range(a + 1, min(order.size, a + most)):
            k = order[b]
            if user[k] != user[j] or queue[k] != queue[j] or submit[k] >= start[j]:
                break
            if submit[k] > submit[j] and start[k] < start[j] and nodes[k] >= nodes[j] and request[k] >= request[j]:
                found[j] = max(found[j], start[k])
    return found


def _released(jobs: RecordedJobs, moved_s: float) -> NDArray[np.bool_]:
    """Tell which jobs started within a minute of the end of an own job that ran while they waited."""
    order = np.lexsort((jobs.end, jobs.user))
    times = jobs.submit, jobs.start + moved_s, jobs.end
    return np.asarray(_released_kernel(order, *times, jobs.user, RELEASE_S, LEAST_WAIT_S))


@njit(cache=True)
def _released_kernel(order, submit, start, end, user, release_s, least_s):  # type: ignore[no-untyped-def]
    n, found, first = submit.size, np.zeros(submit.size, np.bool_), 0
    while first < n:
        after = first
        while after < n and user[order[after]] == user[order[first]]:
            after += 1
        ends = end[order[first:after]]
        for a in range(first, after):
            j = order[a]
            if start[j] - submit[j] <= least_s:
                continue
            for b in range(first + np.searchsorted(ends, start[j] - release_s), after):
                k = order[b]
                if end[k] > start[j]:
                    break
                if end[k] > submit[j] and submit[k] <= submit[j] and k != j:
                    found[j] = True
                    break
        first = after
    return found


def _closed(
    jobs: RecordedJobs,
    levels: Levels,
    free: NDArray[np.bool_],
    monday_s: float,
    turned: NDArray[np.float64] | None = None,
) -> NDArray[np.bool_]:
    """Tell at which moments jobs of such a request do not start, by hour and kind of day.

    With ``turned`` each week is turned by so many seconds: its pattern then says nothing.
    """
    lengths = np.digitize(jobs.request, LENGTHS)
    waited = jobs.start - jobs.submit > LEAST_WAIT_S
    cells, shape = _hours(levels.time, monday_s, turned), (LENGTHS.size + 1, 96)
    waiting, started, all_started, came = (np.zeros(shape) for _ in range(4))
    np.add.at(waiting, (lengths[levels.job[free]], cells[free]), levels.seconds[free])
    starts = _hours(jobs.start, monday_s, turned)
    np.add.at(started, (lengths[waited], starts[waited]), 1)
    np.add.at(all_started, (lengths, starts), 1)
    np.add.at(came, (lengths, _hours(jobs.submit, monday_s, turned)), 1)
    expected = waiting * (started.sum(axis=1) / np.maximum(waiting.sum(axis=1), 1.0))[:, None]
    closed = (expected >= EXPECTED) & (started <= HAPPENED * expected)
    closed &= all_started <= HAPPENED * np.maximum(came, expected)
    return np.asarray(closed[lengths[levels.job], cells])


def _hours(time: NDArray[np.float64], monday_s: float, turned: NDArray[np.float64] | None) -> NDArray[np.int64]:
    """Return the hour of the day and the kind of day, 0 to 95: Monday to Thursday, Friday, Saturday, Sunday."""
    passed = time - monday_s
    if turned is not None:
        passed = passed + turned[(time // WEEK_S).astype(np.int64)]
    hour = ((passed // HOUR_S) % 168).astype(np.int64)
    return np.asarray(np.maximum(hour // 24 - 3, 0) * 24 + hour % 24)


def _limited(jobs: RecordedJobs, levels: Levels, free: NDArray[np.bool_], label: int) -> NDArray[np.bool_]:
    """Tell at which moments a job would pass the limit of its user (label 0) or queue (1), in nodes or in runs.

    A limit is a level that 98 % of the starts of 30 days keep to, while 70 % of the waiting with nodes free is above.
    """
    names = (jobs.user, jobs.queue)[label]
    if np.ptp(names) == 0 and label:
        return np.zeros(free.size, bool)
    first, n_names = jobs.submit[0], int(names.max()) + 1
    own = names[levels.job] + n_names * ((levels.time - first) // PERIOD_S).astype(np.int64)
    of_starts = names + n_names * ((jobs.start - first) // PERIOD_S).astype(np.int64)
    found = np.zeros(free.size, bool)
    for what, more in enumerate((jobs.nodes, np.ones(names.size, np.int64))):
        at_starts = pd.Series(levels.started[what, label] + more).groupby(of_starts)
        limit = at_starts.quantile(KEPT_TO, interpolation="higher")[at_starts.size() >= FEWEST_STARTS]
        level = levels.waiting[what, label] + more[levels.job]
        above = free & (level > pd.Series(own).map(limit).to_numpy())
        waiting = pd.Series(levels.seconds * free).groupby(own).sum()
        share = pd.Series(levels.seconds * above).groupby(own).sum() / waiting.where(waiting > 0)
        found |= above & (pd.Series(own).map(share) >= ABOVE).to_numpy()
    return found
