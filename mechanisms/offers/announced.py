r"""Announcements to a job: its probability of completion by each time, and the value of an offer to it.

With expected wait w the odds that a run of d rounds is completed within r rounds from now are those of one of twelve
cells: by w = 0 or not, and by :math:`x = (r - w) / d` below 1, 1.1, 1.3, 1.7, 2.5, or above. A value curve is a
staircase, and the surplus of a run of d rounds at rate R, :math:`W(f) = \max(0, V(f) - R c d)`, is one, too: each of
its steps is a prize for completion by a time. So an offer is worth

.. math:: U = \sum_d p_d \sum_{f \ge t + d} \text{odds}(w, f - t, d) (W(f) - W(f + 1)),

for a value until a deadline the sum of :math:`p_d \cdot \text{odds} \cdot \max(0, V - R c d)` over runs that can
make it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from marketsched.mechanisms.sow import StatementOfWork
from marketsched.mechanisms.values import DeadlineValue


class Stairs(NamedTuple):
    """A value curve as steps: ``worth[i]`` for completions after ``until[i - 1]``, up to ``until[i]``; 0 after all."""

    until: NDArray[np.int64]  # (n,), times, rising
    worth: NDArray[np.float64]  # (n,), credits, falling


class Report(NamedTuple):
    """The report of an arrived job, in the form that its choice needs."""

    width: int
    durations: NDArray[np.int64]  # (n,), rising
    weights: NDArray[np.float64]  # (n,), adding up to 1
    shortest: int  # of the durations
    mean: float  # rounds
    stairs: Stairs
    last: int  # the last completion worth anything


def stairs_of(sow: StatementOfWork, first: int, last: int) -> Stairs:
    """Return the curve of a report for completions ``first .. last``."""
    if last < first:
        return Stairs(np.zeros(0, dtype=np.int64), np.zeros(0))
    if isinstance(sow.value, DeadlineValue):
        return Stairs(np.array([last]), np.array([sow.value.value]))
    table = sow.value.table(first, last - first + 1)
    ends = np.flatnonzero(np.diff(table, append=-1.0))
    return Stairs(first + ends, table[ends])


def last_worth(stairs: Stairs, cost: float) -> int:
    """Return the last completion worth more than ``cost``; 0: there is none."""
    if stairs.worth.size == 1:
        return int(stairs.until[0]) if stairs.worth[0] > cost else 0
    good = np.flatnonzero(stairs.worth > cost)
    return int(stairs.until[good[-1]]) if good.size else 0


def announced_values(
    odds: NDArray[np.float64], waits: tuple[int, int], rates: tuple[float, float], report: Report, now: int
) -> tuple[tuple[float, float], tuple[float, float]]:
    """Return the values of the two offers to a job, credits, and its announced probabilities of completion.

    Parameters
    ----------
    odds : ndarray, shape (2, 12, 2)
        Per offer and cell: completed in time, and left.
    waits : tuple of int
        Expected waits as spare and as regular job, rounds.
    rates : tuple of float
        Spare and regular.
    report : Report
        Of the job.
    now : int
        t, the round of its arrival.
    """
    columns = (report.width, report.durations, report.weights, report.stairs.until, report.stairs.worth)
    found = _both_kernel(odds, *waits, *rates, *columns, now)
    return found[:2], found[2:]


def cell_of(wait: int, room: int, length: int) -> int:
    """Return the cell, 0 to 11, of a run of ``length`` rounds that has ``room`` rounds left."""
    return int(_cell_kernel(wait, room, length))


@njit(cache=True)
def _cell_kernel(wait, room, length):  # type: ignore[no-untyped-def]
    x = (room - wait) / length
    column = 0 if x < 1.0 else 1 if x < 1.1 else 2 if x < 1.3 else 3 if x < 1.7 else 4 if x < 2.5 else 5
    return column if wait == 0 else column + 6


@njit(cache=True)
def _both_kernel(  # type: ignore[no-untyped-def]
    odds, wait, regular_wait, rate, regular_rate, width, durations, weights, until, worth, now
):
    spare = _announced_kernel(odds[0], wait, rate, width, durations, weights, until, worth, now)
    regular = _announced_kernel(odds[1], regular_wait, regular_rate, width, durations, weights, until, worth, now)
    return spare[0], regular[0], spare[1], regular[1]


@njit(cache=True)
def _announced_kernel(odds, wait, rate, width, durations, weights, until, worth, now):  # type: ignore[no-untyped-def]
    """Return the worth of an offer, and the chance to be completed while it brings anything."""
    value, chance = 0.0, 0.0
    for q in range(durations.size):
        d = durations[q]
        cost = rate * width * d
        by_last = 0.0
        for i in range(until.size):
            net = worth[i] - cost
            if net <= 0.0:
                break
            if until[i] - now < d:
                continue
            after = max(0.0, worth[i + 1] - cost) if i + 1 < until.size else 0.0
            cell = _cell_kernel(wait, until[i] - now, d)
            share = odds[cell, 0] / odds[cell, 1]
            value += weights[q] * share * (net - after)
            by_last = share
        chance += weights[q] * by_last
    return value, chance
