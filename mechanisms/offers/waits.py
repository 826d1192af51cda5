r"""The wait of a new job: a calendar of the next 400 rounds, filled with the present jobs.

Nothing but nodes, class, turn and start of a present job counts; its length is the usual one :math:`\bar m` of its
width. A run of e rounds goes on for :math:`\max(1, \bar m - e, e / 2)` rounds; a waiting job starts as soon as
there is room for :math:`\bar m` rounds in the calendar of its own class. Regular jobs stand in both calendars, spare
jobs in that of spare jobs; and in the regular one, too, a spare run that the job that asks could not take nodes
from by itself: :math:`c_i e_i > b c \bar m(c)` (see `service`).
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from marketsched.mechanisms.offers.present import Present

AHEAD = 400  # rounds


class Calendars:
    """Free nodes ahead as one round sees them, for every job that arrives in it.

    Attributes
    ----------
    free : ndarray of int, shape (2, AHEAD)
        For a spare job, and for a regular one that could take nodes from every spare run.
    runs : ndarray of int, shape (n, 3)
        Nodes, rounds run and rounds still to run of each spare run.
    """

    def __init__(self) -> None:
        self.free = np.empty((2, AHEAD), dtype=np.int64)
        self.runs = np.empty((0, 3), dtype=np.int64)

    def fill(
        self, present: Present, now: int, capacity: NDArray[np.int64] | int, usual_rounds: NDArray[np.float64]
    ) -> None:
        """Fill the calendars with those who are present; ``capacity`` are nodes not booked, by round from now on."""
        self.free[:] = capacity
        runs = np.empty((present.n, 3), dtype=np.int64)
        n_runs = _fill_kernel(present.jobs, present.turn, present.n, now, usual_rounds, self.free, runs)
        self.runs = runs[:n_runs]

    def add_spare(self, width: int, usual_rounds: float) -> None:
        """Let one more spare job wait, behind all others."""
        _place_kernel(self.free[0], width, max(1, int(usual_rounds + 0.5)))


def expected_waits(
    calendars: NDArray[np.int64], runs: NDArray[np.int64], width: int, mean: float, most_lost: float
) -> tuple[int, int]:
    r"""Return the expected waits of a job, rounds, as spare and as regular job; `AHEAD`: none is in sight.

    Parameters
    ----------
    calendars, runs
        As `Calendars` has them.
    width : int
        Its nodes.
    mean : float
        Its announced mean, rounds.
    most_lost : float
        Node-rounds that a spare run may lose to it, :math:`b c \bar m(c)`.
    """
    spare, regular = _waits_kernel(calendars, runs, width, max(1, int(mean + 0.5)), most_lost)
    return int(spare), int(regular)


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
def _place_kernel(free, width, length):  # type: ignore[no-untyped-def]
    """Take the nodes of a job that starts as soon as they are free."""
    begin = _first_fit_kernel(free, 0, width, length)
    for t in range(begin, min(free.size, begin + length)):
        free[t] -= width


@njit(cache=True)
def _fill_kernel(jobs, turn, n, now, usual_rounds, calendars, runs):  # type: ignore[no-untyped-def]
    """Draw down both calendars; fill ``runs``. Returns how many spare jobs run."""
    offer, width, start, band, state = jobs["offer"], jobs["width"], jobs["start"], jobs["band"], jobs["state"]
    n_runs, ahead = 0, calendars.shape[1]
    for which in (1, 0):
        for waiting in (False, True):
            own = calendars[which]
            first = 0  # no node is free before it
            for i in range(n):
                j = turn[i]
                if offer[j] != which or (start[j] == 0) != waiting or state[j] != 0:
                    continue
                usual, begin = usual_rounds[band[j]], 0
                if waiting:
                    length = max(1, int(usual + 0.5))
                    begin = _first_fit_kernel(own, first, width[j], length)
                else:
                    age = now - start[j]
                    length = max(1, int(max(max(1.0, 0.5 * age), usual - age) + 0.5))
                    if which == 0:
                        runs[n_runs, 0], runs[n_runs, 1], runs[n_runs, 2] = width[j], age, length
                        n_runs += 1
                for t in range(begin, min(ahead, begin + length)):
                    calendars[0, t] -= width[j]
                    if which == 1:
                        calendars[1, t] -= width[j]
                while first < ahead and own[first] <= 0:
                    first += 1
    return n_runs


@njit(cache=True)
def _waits_kernel(calendars, runs, width, length, most_lost):  # type: ignore[no-untyped-def]
    """Return the first fits in the spare and in the regular calendar, in which runs that stay have their nodes."""
    regular = calendars[1]
    copied = False
    for i in range(runs.shape[0]):
        if runs[i, 0] * runs[i, 1] > most_lost:
            if not copied:
                regular, copied = regular.copy(), True
            for t in range(min(regular.size, runs[i, 2])):
                regular[t] -= runs[i, 0]
    return _first_fit_kernel(calendars[0], 0, width, length), _first_fit_kernel(regular, 0, width, length)
