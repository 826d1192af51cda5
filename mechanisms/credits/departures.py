r"""Jobs that leave at the beginning of a round, and what they teach: usual durations, real over announced work.

A run is stopped where completing could be worth nothing any more; a waiting job leaves when it can make it no more.
As in `marketsched.mechanisms.offers.departures`, the mean that jobs of a band of widths announced is kept with .97 a
departure, and :math:`\kappa`, real over announced node-rounds of completed jobs, with .98.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from marketsched.mechanisms.offers.departures import UNKNOWN
from marketsched.mechanisms.offers.present import Rows


class Usual:
    """What jobs usually announce, mean rounds by band of widths (at first ``unknown``), and how much of it is true."""

    def __init__(self, unknown: float = UNKNOWN) -> None:
        self.rounds = np.full(5, unknown)
        self._announced = np.zeros((5, 2))  # by band: rounds and jobs
        self._work = np.ones(2)  # real and announced node-rounds

    @property
    def kappa(self) -> float:
        """Real over announced node-rounds of completed jobs."""
        return float(self._work[0] / self._work[1])

    def departed(self, present: Rows, now: int) -> NDArray[np.int64]:
        """Learn from all jobs that have left; remove and return their rows: `HERE` are those that leave now."""
        gone = np.empty(present.n, dtype=np.int64)
        present.n, n_gone = _departed_kernel(present.in_turn, now, self._announced, self.rounds, self._work, gone)
        return gone[:n_gone]


@njit(cache=True)
def _departed_kernel(present, now, announced, rounds, work, gone):  # type: ignore[no-untyped-def]
    """Keep in ``turn`` who stays, write into ``gone`` who does not; return how many of each."""
    jobs, turn = present
    start, stop, last_start, state = jobs["start"], jobs["stop"], jobs["last_start"], jobs["state"]
    width, band, mean, used = jobs["width"], jobs["band"], jobs["mean"], jobs["used"]
    stay, n_gone = 0, 0
    for i in range(turn.size):
        j = turn[i]
        runs = start[j] > 0
        if state[j] == 0 and ((runs and now < stop[j]) or (not runs and now <= last_start[j])):
            turn[stay] = j
            stay += 1
            continue
        usual = announced[band[j]]
        usual[0] = 0.97 * usual[0] + mean[j]
        usual[1] = 0.97 * usual[1] + 1.0
        if state[j] == 1:
            work[0] = 0.98 * work[0] + width[j] * used[j]
            work[1] = 0.98 * work[1] + width[j] * mean[j]
        gone[n_gone] = j
        n_gone += 1
    if n_gone:
        overall = announced[:, 0].sum() / announced[:, 1].sum()
        for b in range(rounds.size):
            rounds[b] = announced[b, 0] / announced[b, 1] if announced[b, 1] > 0.5 else overall
    return stay, n_gone
