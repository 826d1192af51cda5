r"""Nodes kept free for jobs that are in no scenario, adapted to the errors of past rounds.

A share of the nodes is not counted as supply: sigma/ramp in the current round, growing to sigma ``ramp`` rounds
ahead. Sigma grows while jobs lose surplus because nodes are booked (B), and shrinks while nodes
that had a price stay idle (I); both are moving averages (docs/mathematics.md, (31)):

    sigma <- clip(sigma + gain (B - I) / (B + I), 0, .3).
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

RATE = 0.02  # of the moving averages
MOST = 0.3  # of sigma
FIRST_ROUND = 5  # before it there are no prices to judge by


class Slack:
    """The share of nodes kept back.

    Parameters
    ----------
    share : float
        sigma at the beginning, in [0, .3].
    gain : float
        How fast it moves, >= 0; 0: it stays.
    ramp : int
        Rounds ahead from which all of it is kept back; 0: everywhere.
    """

    def __init__(self, share: float, gain: float, ramp: int) -> None:
        self.share, self._gain, self._ramp = share, gain, ramp
        self._blocked, self._idle = 0.0, 0.0

    def of_window(self, n: int) -> NDArray[np.float64]:
        """Return the share of nodes kept back in each of the coming ``n`` rounds, shape (n,)."""
        if not self._ramp:
            return np.full(n, self.share)
        return self.share * np.minimum(1.0, np.arange(1, n + 1) / self._ramp)

    def arrivals_served(self, blocked: float) -> None:
        """Record the surplus that arrivals of a round lost to bookings, credits."""
        self._blocked += RATE * (blocked - self._blocked)

    def round_over(self, now: int, idle: float) -> None:
        """Note what idle nodes of the round were worth at its price, credits, and move the share."""
        self.rounds_over(now, np.array([idle]))

    def rounds_over(self, first: int, idle: NDArray[np.float64]) -> None:
        """Note the same of rounds ``first, first + 1, ...``, in none of which a job arrived after the first."""
        found = _rounds_over_kernel(self.share, self._blocked, self._idle, self._gain, first, idle)
        self.share, self._idle = float(found[0]), float(found[1])


@njit(cache=True)
def _rounds_over_kernel(share, blocked, idle, gain, first, worth):  # type: ignore[no-untyped-def]
    """Return share and idle average after rounds whose idle nodes were worth so much."""
    for i in range(worth.size):
        idle += 0.02 * (worth[i] - idle)  # RATE: a kernel uses nothing outside it
        total = blocked + idle
        if total > 0 and first + i >= 5:  # FIRST_ROUND
            share = min(0.3, max(0.0, share + gain * (blocked - idle) / total))  # MOST
    return share, idle
