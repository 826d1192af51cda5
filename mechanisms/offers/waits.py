r"""The wait of a new job: a calendar of the next 100 hours, filled with the present jobs that stand before it.

Nothing but nodes, class, patience, checkpoint, turn and start of a present job counts; its length is the usual one
:math:`\bar m` of its width. Work of which e rounds are done, those saved at checkpoints included, goes on for
:math:`\max(1, \bar m - e, e / 2)` rounds; a waiting job starts as soon as there is room in the calendar of its own
class for :math:`\bar m` rounds, or for what its saved work leaves of them. Regular jobs stand in both calendars, spare
jobs in that of spare jobs; and in the regular one, too, a spare run that the job that asks could not take nodes from by
itself: what it would lose is more than :math:`b c \bar m(c)` (see `service`). Of its own class those stand before it
whose arrival + patience is not later than its own; where they will start does not depend on it, so one pass over them
answers for every patience that it could choose.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from marketsched.mechanisms.offers.present import Present

AHEAD = 400  # quarters of an hour
WIDTHS = 64


class Calendars:
    """Free nodes ahead as one round sees them, and who waits.

    ``free``, shape (2, ahead), is beside what runs: for a spare job also beside the regular jobs that wait, for a
    regular one as if it could take nodes from every spare run. ``runs``, shape (n, 3), has nodes, rounds that it would
    lose and rounds still to run of each spare run. ``line``, shape (m, 5), has class, latest start, nodes, expected
    start (rounds from now) and expected rounds of those that wait and are expected to start in sight, in the order of
    the queue; jobs one after the other that are alike in all of these but nodes are one row, with the nodes of all.
    """

    def __init__(self, ahead: int = AHEAD) -> None:
        self.free = np.empty((2, ahead), dtype=np.int64)
        self.runs = np.empty((0, 3), dtype=np.int64)
        self.line = np.empty((0, 5), dtype=np.int64)

    def fill(
        self, present: Present, now: int, capacity: NDArray[np.int64] | int, usual_rounds: NDArray[np.float64]
    ) -> None:
        """Fill the calendars with those who are present; ``capacity`` are nodes not booked, by round from now on."""
        self.free[:] = capacity
        runs, line = np.empty((present.n, 3), dtype=np.int64), np.empty((present.n, 5), dtype=np.int64)
        n_runs, n_line = _fill_kernel(present.jobs, present.queue(), now, usual_rounds, self.free, runs, line)
        self.runs, self.line = runs[:n_runs], line[:n_line]


def expected_waits(
    free: NDArray[np.int64],
    runs: NDArray[np.int64],
    line: NDArray[np.int64],
    latest: NDArray[np.int64],
    width: int,
    mean: float,
    most_lost: float,
) -> NDArray[np.int64]:
    r"""Return the expected waits of a job, rounds, as spare and as regular job, shape (2, n), from `Calendars`.

    As many as the calendars have: no start is in sight. ``latest`` are the latest starts that it could choose, rising;
    ``mean`` its announced mean, rounds; ``most_lost`` the node-rounds that a spare run may lose to it,
    :math:`b c \bar m(c)`.
    """
    waits = np.empty((2, latest.size), dtype=np.int64)
    _waits_kernel(free, runs, line, latest, width, max(1, int(mean + 0.5)), most_lost, waits)
    return waits


@njit(cache=True)
def _first_fit_kernel(free, first, width, length):  # type: ignore[no-untyped-def]
    """Return the first of ``length`` rounds in a row with ``width`` nodes free, from ``first`` on; else the size."""
    row = 0
    for t in range(first, free.size):
        row = row + 1 if free[t] >= width else 0
        if row >= length:
            return t + 1 - length
    return free.size


@njit(cache=True)
def _take_kernel(free, begin, length, width):  # type: ignore[no-untyped-def]
    """Take nodes of some rounds, as far as the calendar goes."""
    for t in range(begin, min(free.size, begin + length)):
        free[t] -= width


@njit(cache=True)
def _left_kernel(usual, done):  # type: ignore[no-untyped-def]
    """Return for how many rounds work goes on of which some are done."""
    return max(1, int(max(max(1.0, 0.5 * done), usual - done) + 0.5))


@njit(cache=True)
def _fill_kernel(jobs, queue, now, usual_rounds, calendars, runs, line):  # type: ignore[no-untyped-def]
    """Draw down both calendars; fill ``runs`` and ``line``. Returns how many of each."""
    offer, width, start, band, state = jobs["offer"], jobs["width"], jobs["start"], jobs["band"], jobs["state"]
    latest, every, saved = jobs["latest"], jobs["every"], jobs["saved"]
    n_runs = n_line = n_regular = 0
    for j in queue:  # regular jobs first
        n_regular += offer[j] == 1
        if start[j] == 0 or state[j] != 0:
            continue
        age = now - start[j]
        length = _left_kernel(usual_rounds[band[j]], saved[j] + age)
        _take_kernel(calendars[0], 0, length, width[j])
        if offer[j] == 1:
            _take_kernel(calendars[1], 0, length, width[j])
        else:
            runs[n_runs, 0], runs[n_runs, 2] = width[j], length
            runs[n_runs, 1] = age % every[j] if every[j] > 0 else age
            n_runs += 1
    found = np.empty((2, WIDTHS), dtype=np.int64)  # the last jobs of some widths, and where they were found to start
    for which in (1, 0):
        own, first = calendars[which].copy(), 0  # no node is free before it
        found[0] = -1
        more = alike = begin = length = nodes = 0  # nodes that wait to be taken, of jobs alike; how many more fit there
        for j in queue[:n_regular] if which == 1 else queue[n_regular:]:
            if start[j] > 0 or state[j] != 0:
                continue
            if more > 0 and width[j] == alike and saved[j] == 0:
                more -= 1
            else:
                _take_kernel(own, begin, length, nodes)
                if which == 1:
                    _take_kernel(calendars[0], begin, length, nodes)
                more = nodes = 0
                while first < own.size and own[first] <= 0:
                    first += 1
                if first == own.size:  # nobody behind it starts in sight, or is in anybody's way
                    break
                if saved[j] > 0:
                    length = _left_kernel(usual_rounds[band[j]], saved[j])
                    begin = _first_fit_kernel(own, first, width[j], length)
                else:  # nodes only get scarcer: not before the last job of its width, which is as long: of one band
                    length, place = max(1, int(usual_rounds[band[j]] + 0.5)), width[j] % WIDTHS
                    begin = max(first, found[1, place]) if found[0, place] == width[j] else first
                    begin = _first_fit_kernel(own, begin, width[j], length)
                    found[0, place], found[1, place] = width[j], begin
                if begin == own.size:
                    continue
                alike = width[j]
                more = own[begin : begin + length].min() // alike - 1 if saved[j] == 0 else 0
            nodes += width[j]
            if n_line == 0 or line[n_line - 1, 0] != which or line[n_line - 1, 1] != latest[j] or nodes == width[j]:
                line[n_line, 0], line[n_line, 1], line[n_line, 2] = which, latest[j], 0
                line[n_line, 3], line[n_line, 4] = begin, length
                n_line += 1
            line[n_line - 1, 2] += width[j]
        _take_kernel(own, begin, length, nodes)
        if which == 1:
            _take_kernel(calendars[0], begin, length, nodes)
    return n_runs, n_line


@njit(cache=True)
def _waits_kernel(calendars, runs, line, latest, width, length, most_lost, waits):  # type: ignore[no-untyped-def]
    """Fill ``waits`` with first fits; runs that stay have their nodes, and who stands before a patience has its own."""
    i = 0
    for which in (1, 0):  # as in the line
        own = calendars[which].copy()
        if which == 1:
            for r in range(runs.shape[0]):
                if runs[r, 0] * runs[r, 1] > most_lost:
                    _take_kernel(own, 0, runs[r, 2], runs[r, 0])
        while i < line.shape[0] and line[i, 0] > which:
            i += 1
        wait = _first_fit_kernel(own, 0, width, length)
        for p in range(latest.size):
            moved = False
            while i < line.shape[0] and line[i, 0] == which and line[i, 1] <= latest[p]:
                _take_kernel(own, line[i, 3], line[i, 4], line[i, 2])
                moved = True
                i += 1
            if moved:  # more stand before it: it cannot fit earlier
                wait = _first_fit_kernel(own, wait, width, length)
            waits[which, p] = wait
