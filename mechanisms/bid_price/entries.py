r"""Entries of a menu at arrival: starts at which the nodes are free, and their prices.

A job that has arrived and needs c nodes for d rounds faces every start s from now on with c nodes
free throughout s .. s + d - 1, at the price :math:`c \sum_{t=s}^{s+d-1} p_t`. It gets the entry of
largest surplus, the earliest among equals, and none unless that exceeds 1e-12.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from marketsched.mechanisms.columns import JobColumns, Outcomes

TOLERANCE = 1e-12  # a surplus has to exceed it


@dataclass(frozen=True, slots=True, eq=False)
class ArrivalMenu:
    """The menu of a job when it was served: every start from now on, for any width and duration.

    It does not depend on the job's report.
    """

    now: int  # the round
    free: NDArray[np.int64]  # (horizon - now + 1,), nodes not booked
    prefix: NDArray[np.float64]  # (n + 1,), prices of rounds now, now + 1, ... added up; later rounds cost nothing

    def prices(self, width: int, duration: int, n_starts: int) -> NDArray[np.float64]:
        """Return the price of starts now, now + 1, ..., shape (n_starts,), credits; +inf where nodes are missing.

        Parameters
        ----------
        width, duration : int
            Nodes, rounds, >= 1.
        n_starts : int
            How many; those that would end behind the horizon are +inf.
        """
        found = np.full(max(0, n_starts), np.inf)
        inside = min(n_starts, self.free.size - duration + 1)
        if inside > 0:
            missing = np.concatenate([[0], np.cumsum(self.free < width)])
            open_ = missing[duration : duration + inside] == missing[:inside]
            ends = np.minimum(np.arange(inside + duration), self.prefix.size - 1)
            cost = width * (self.prefix[ends[duration : duration + inside]] - self.prefix[ends[:inside]])
            found[:inside] = np.where(open_, cost, np.inf)
        return found

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ArrivalMenu):
            return NotImplemented
        return (
            self.now == other.now
            and np.array_equal(self.free, other.free)
            and np.array_equal(self.prefix, other.prefix)
        )


@dataclass(frozen=True, slots=True)
class LockedRate:
    """Fixed at the arrival of a job with a hidden duration: the rate it pays if it runs, not the time of its turn."""

    now: int  # the round
    rate: float  # credits per node and round used


def best_entry(
    free: NDArray[np.int64],
    prefix: NDArray[np.float64],
    now: int,
    width: int,
    duration: int,
    values: NDArray[np.float64],
) -> tuple[int, float, float]:
    """Return the favourite entry of a job that arrived in round ``now``.

    Parameters
    ----------
    free : array of int, shape (horizon,)
        Nodes that are not booked; round 1 first.
    prefix : array of float, shape (n + 1,)
        Prices of rounds now .. now + n - 1 added up, from 0; later rounds cost nothing.
    now, width, duration : int
        Round, nodes, rounds.
    values : array of float, shape (n_starts,)
        Credits of starts now, now + 1, ....

    Returns
    -------
    tuple of int, float, float
        Start (0: none), its surplus, and the surplus of the best start if every node were free.
    """
    found, surplus, best = _best_entry_kernel(free, prefix, now, width, duration, values)
    return int(found), float(surplus), float(best)


class _Jobs(NamedTuple):
    """What is read of jobs whose durations are revealed; see `JobColumns`."""

    durations: NDArray[np.int64]  # (n,), rounds
    widths: NDArray[np.int64]  # (n,), nodes
    begins: NDArray[np.int64]  # (n + 1,), of the steps of each value curve
    values: NDArray[np.float64]  # (begins[-1],), credits
    lasts: NDArray[np.int64]  # (begins[-1],), the last completion of each step


class Served(NamedTuple):
    """The arrivals of a round, served together."""

    lost: float  # surplus that they lost to bookings, credits
    density: float  # values per node-round of immediate starts added up
    counts: NDArray[np.int64]  # (m,), how many starts are worth anything to each
    values: NDArray[np.float64]  # (counts.sum(),), credits of those starts, one job after the other


def serve_arrivals(
    rows: NDArray[np.int64],
    now: int,
    jobs: JobColumns,
    counts: NDArray[np.int64],
    free: NDArray[np.int64],
    prefix: NDArray[np.float64],
    density: float,
    outcomes: Outcomes,
) -> Served:
    """Give the jobs that arrive in a round their favourite entries, in order of submission; durations are revealed.

    Parameters
    ----------
    rows : array of int, shape (m,)
        Of ``jobs``.
    now : int
        The round.
    counts : array of int, shape (n_jobs,)
        How many starts from the arrival on are worth anything to each job.
    free, prefix : ndarray
        As of `best_entry`; bookings are taken off ``free``.
    density : float
        Values per node-round so far, to which those of these jobs are added.
    outcomes : Outcomes
        Receives starts and payments.
    """
    own = counts[rows]
    values = np.empty(own.sum())
    columns = _Jobs(jobs.durations, jobs.widths, jobs.begins, jobs.values, jobs.lasts)
    lost, density = _serve_kernel(
        rows, now, columns, own, free, prefix, values, outcomes.starts, outcomes.payments, density
    )
    return Served(float(lost), float(density), own, values)


def entry_price(prefix: NDArray[np.float64], now: int, width: int, start: int, duration: int) -> float:
    """Return the price of ``duration`` rounds from ``start`` on; arguments as of `best_entry`."""
    last = prefix.size - 1
    return width * float(prefix[min(start - now + duration, last)] - prefix[min(start - now, last)])


@njit(cache=True)
def _best_entry_kernel(free, prefix, now, width, duration, values):  # type: ignore[no-untyped-def]
    """Go through the rounds once; ``since`` is the first round from which the nodes have been free."""
    end = prefix.size - 1
    found, surplus, best = 0, 1e-12, 0.0  # TOLERANCE: a kernel uses nothing outside it
    since = now
    for t in range(now, min(now + values.size + duration - 1, free.size + 1)):
        if free[t - 1] < width:
            since = t + 1
        s = t - duration + 1
        if s < now:
            continue
        i = s - now
        utility = values[i] - width * (prefix[min(i + duration, end)] - prefix[min(i, end)])
        best = max(best, utility)
        if s >= since and utility > surplus:
            found, surplus = s, utility
    return found, (surplus if found else 0.0), best


@njit(cache=True)
def _serve_kernel(rows, now, jobs, counts, free, prefix, kept, starts, paid, density):  # type: ignore[no-untyped-def]
    """Give each arrival its favourite entry; fill ``kept`` with its values. Returns lost surplus and densities."""
    durations, widths, begins, values, lasts = jobs
    lost, end, used = 0.0, prefix.size - 1, 0
    for i in range(rows.size):
        j, count = rows[i], counts[i]
        width, duration = widths[j], durations[j]
        own = kept[used : used + count]
        used += count
        step = begins[j]
        for k in range(count):
            while lasts[step] < now + k + duration:
                step += 1
            own[k] = values[step]
        start, surplus, best = _best_entry_kernel(free, prefix, now, width, duration, own)
        lost += best - surplus
        if start:
            begin = min(start - now, end)
            starts[j], paid[j] = start, width * (prefix[min(begin + duration, end)] - prefix[begin])
            for t in range(start - 1, min(start - 1 + duration, free.size)):
                free[t] -= width
        if count:
            highest = 0.0
            for k in range(count):
                highest = max(highest, own[k])
            density += highest / (width * float(duration))
    return lost, density
