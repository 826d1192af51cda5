r"""Announcements to a job: its probability of completion by each time, and the value of an entry to it.

An entry is a class with a patience P. With expected wait w the odds that a run of d rounds is completed within r rounds
from now are those of one of twelve cells: by w = 0 or not, and by :math:`x = (r - w) / d` below 1, 1.1, 1.3, 1.7, 2.5,
or above. A job that has to begin within P rounds has no more than P and its announced mean, however late its deadline
is: r is the smaller of both. A value curve is a staircase, and the surplus of a run of d rounds at rate R,
:math:`W(f) = \max(0, V(f) - R c d)`, is one, too: each of its steps is a prize for completion by a time. So an entry is
worth

.. math:: U = \sum_d p_d \sum_{f \ge t + d} \text{odds}(w, f - t, d) (W(f) - W(f + 1)),

for a value until a deadline the sum of :math:`p_d \cdot \text{odds} \cdot \max(0, V - R c d)` over runs that can
make it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from marketsched.mechanisms.auctions.waiting_job import WaitingJob
from marketsched.mechanisms.columns import JobColumns
from marketsched.mechanisms.errors import InvalidReportError
from marketsched.mechanisms.law import DurationLaw
from marketsched.mechanisms.mechanism import JobId
from marketsched.mechanisms.sow import StatementOfWork
from marketsched.mechanisms.values import TableValue


class Stairs(NamedTuple):
    """A value curve as steps: ``worth[i]`` for completions after ``until[i - 1]``, up to ``until[i]``; 0 after all."""

    until: NDArray[np.int64]  # (n,), times, rising
    worth: NDArray[np.float64]  # (n,), credits, falling


class Report(NamedTuple):
    """What a job reports, given its arrival and what is seen then, in the form that its choice needs."""

    width: int  # nodes
    durations: NDArray[np.int64]  # (n,), rounds, rising
    weights: NDArray[np.float64]  # (n,), adding up to 1
    shortest: int  # of the durations
    longest: int
    mean: float  # rounds
    stairs: Stairs
    last: int  # the last completion worth anything
    highest: float  # value of any completion, credits
    restarts: bool  # whether the job can begin anew
    patience: int  # rounds that it agrees to wait for a start; -1: it does not say
    checkpoint: int  # rounds of its work after which it is saved, each time; 0: never

    def saved(self, rounds: int) -> int:
        """Return how many of the rounds of a run that is taken back are saved."""
        return rounds // self.checkpoint * self.checkpoint if self.checkpoint else 0

    def last_start(self, rate: float, saved: int = 0, worked: int = 0) -> int:
        """Return the last round in which a start could bring anything, at ``rate`` credits per node and round.

        ``saved`` rounds of the work are saved, and it did not end in ``worked``: the law is that of the rest given so.
        """
        shortest = self.shortest
        if saved:
            longer = self.durations[self.durations > worked]
            shortest = int(longer[0]) - saved if longer.size else 1  # an announced law that was wrong says nothing
        return last_worth(self.stairs, rate * self.width * shortest) - shortest

    def stop(self, start: int, rate: float, most: int) -> int:
        """Return the round in which a run is stopped: no later completion would bring what it costs.

        It costs ``rate`` credits per node and round, and takes ``most`` rounds at most.
        """
        cost = rate * self.width
        until, worth = self.stairs
        by: list[int] = [
            min(last, start + int(min(value / cost, most))) if cost > 0 else last
            for last, value in zip(until.tolist(), worth.tolist(), strict=True)
        ]
        return max(start + 1, min(start + most, max(by)))


def check_falling(job: JobId, sow: StatementOfWork) -> None:
    """Refuse values that rise after the first possible end: no run is delayed until it is worth more."""
    if not isinstance(sow.value, TableValue):
        return
    shortest = min((int(min(days)) for shape in sow.shapes for days in shape.on.values()), default=0)
    soonest = int((sow.law.arrivals + (shortest or sow.law.durations)).min())
    rises = sow.value.rises_at(soonest)
    if rises is not None:
        seen = {rises: float(sow.value(rises)), rises - 1: 0.0}
        legal = f"values that do not rise: of all completions from {soonest} on, the first in which the job can end"
        raise InvalidReportError(place="values", value=seen, legal=legal, source=f"job {job!r}")


def falling(jobs: JobColumns) -> bool:
    """Tell whether no value curve rises, in the part that counts."""
    rises = jobs.values[1:] > jobs.values[:-1]
    first = jobs.begins[1:-1]  # of each curve but the first; the curve of a job that is worth nothing may be empty
    rises[first[(first > 0) & (first < jobs.values.size)] - 1] = False  # from one curve to the next
    return not rises.any()


def report_of(x: WaitingJob) -> Report | None:
    """Return what the report of a job that has arrived says; None: no run of it can bring anything."""
    law, last = x.law, x.useful
    if not law.durations.size or x.arrival + law.durations[0] > last:
        return None
    shortest, longest = int(law.durations[0]), int(law.durations[-1])
    worth, until = x.steps(x.arrival + shortest, last)
    stairs = Stairs(np.minimum(until, last), worth)
    return Report(
        x.width, *law, shortest, longest, law.mean, stairs, last, x.highest, x.restarts, x.patience, x.checkpoint
    )


def last_worth(stairs: Stairs, cost: float) -> int:
    """Return the last completion worth more than ``cost``; 0: there is none."""
    if stairs.worth.size == 1:
        return int(stairs.until[0]) if stairs.worth[0] > cost else 0
    good = np.flatnonzero(stairs.worth > cost)
    return int(stairs.until[good[-1]]) if good.size else 0


def announced_values(
    shares: NDArray[np.float64],
    waits: NDArray[np.int64],
    rates: NDArray[np.float64],
    patience: NDArray[np.int64],
    n_offered: int,
    report: Report,
    now: int,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the value of each entry to a job, credits, and its announced probability of completion, shape (2, n).

    ``shares`` are the odds, shape (2, 12), per class and cell; ``waits``, rounds, and ``rates``, credits per node and
    round, have shape (2, n). The job may choose the first ``n_offered`` of the ``patience``; the others are 0.
    """
    values, chances = np.zeros(waits.shape), np.zeros(waits.shape)
    rooms = patience + usual_length(report.mean)
    law = DurationLaw(report.durations, report.weights)
    _entries_kernel(shares, waits, rates, rooms, n_offered, report.width, law, report.stairs, now, values, chances)
    return values, chances


def preferred(values: NDArray[np.float64], first: int) -> tuple[int, int] | None:
    """Return class and column of the entry of largest announced value; None: none is worth taking.

    Of equal ones the most patient, then the spare one. ``first`` is the first class that the job may choose.
    """
    offer, column = _preferred_kernel(values, first)
    return None if offer < 0 else (int(offer), int(column))


def usual_length(mean: float) -> int:
    """Return an announced mean in whole rounds."""
    return max(1, int(mean + 0.5))


def cell_of(wait: int, room: int, length: int) -> int:
    """Return the cell, 0 to 11, of a run of ``length`` rounds that has ``room`` rounds left."""
    return int(_cell_kernel(wait, room, length))


@njit(cache=True)
def _preferred_kernel(values, first):  # type: ignore[no-untyped-def]
    """Return class and column, -1 and -1 for none."""
    best, offer, column = 1e-12, -1, -1  # TOLERANCE: a kernel uses nothing outside it
    for p in range(values.shape[1] - 1, -1, -1):
        for k in range(first, 2):
            if values[k, p] > best:
                best, offer, column = values[k, p], k, p
    return offer, column


@njit(cache=True)
def _cell_kernel(wait, room, length):  # type: ignore[no-untyped-def]
    x = (room - wait) / length
    column = 0 if x < 1.0 else 1 if x < 1.1 else 2 if x < 1.3 else 3 if x < 1.7 else 4 if x < 2.5 else 5
    return column if wait == 0 else column + 6


@njit(cache=True)
def _entries_kernel(  # type: ignore[no-untyped-def]
    shares, waits, rates, rooms, n_offered, width, law, stairs, now, values, chances
):
    """Fill the values and the chances of the entries that are offered."""
    for k in range(2):
        for p in range(n_offered):
            values[k, p], chances[k, p] = _announced_kernel(
                shares[k], waits[k, p], rates[k, p], rooms[p], width, law, stairs, now
            )


@njit(cache=True)
def _announced_kernel(shares, wait, rate, room, width, law, stairs, now):  # type: ignore[no-untyped-def]
    """Return the worth of an entry, and the chance to be completed while it brings anything."""
    (durations, weights), (until, worth) = law, stairs
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
            share = shares[_cell_kernel(wait, min(room, until[i] - now), d)]
            value += weights[q] * share * (net - after)
            by_last = share
        chance += weights[q] * by_last
    return value, chance
