r"""Entries of a menu at arrival: starts at which the nodes are free, and their prices.

A job that has arrived and needs c nodes for d rounds faces every start s from now on with c nodes
free throughout s .. s + d - 1, at the price :math:`c \sum_{t=s}^{s+d-1} p_t`. It gets the entry of
largest surplus, the earliest among equals, and none unless that exceeds 1e-12.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numba import njit
from numpy.typing import NDArray

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
