r"""What jobs on a cluster usually announce, and how much of it is true.

The mean that jobs of a band announced is kept with .97 a departure, and :math:`\kappa`, real over announced work of
completed jobs, with .98, as in `marketsched.mechanisms.credits.departures`. Bands are by the largest share of a node
that a job takes, with and without devices.
"""

from __future__ import annotations

from bisect import bisect_left

import numpy as np
from numpy.typing import NDArray

from marketsched.mechanisms.offers.departures import UNKNOWN

BANDS = (0.3, 0.6)  # largest shares of a node: jobs up to each, and larger ones
N_BANDS = 2 * (len(BANDS) + 1)
ANNOUNCED_KEPT, REAL_KEPT = 0.97, 0.98


def band_on_nodes(share: float, *, device: bool) -> int:
    """Return the band, 0 to 5, of a job that takes this share of a node, and devices or none.

    Examples
    --------
    >>> band_on_nodes(0.3, device=False), band_on_nodes(0.31, device=False), band_on_nodes(1.0, device=True)
    (0, 1, 5)
    """
    return (len(BANDS) + 1) * device + bisect_left(BANDS, share)


class UsualWork:
    """What was learnt from jobs that have left; before any has, jobs announce ``unknown`` rounds."""

    def __init__(self, unknown: float = UNKNOWN) -> None:
        self._unknown = unknown
        self._announced = np.zeros((N_BANDS, 2))  # by band: rounds and jobs
        self._work = np.ones(2)  # real and announced node-rounds

    @property
    def kappa(self) -> float:
        """Real over announced work of completed jobs."""
        return float(self._work[0] / self._work[1])

    def rounds(self, band: int) -> float:
        """Return the mean that jobs of a band announce, or all jobs while none of the band is known."""
        rounds, jobs = self._announced[band]
        return float(rounds / jobs) if jobs > 0.5 else self.overall

    @property
    def overall(self) -> float:
        """Return the mean that all jobs announce, rounds."""
        rounds, jobs = self._announced.sum(axis=0).tolist()
        return rounds / jobs if jobs > 0.5 else self._unknown

    @property
    def by_band(self) -> NDArray[np.float64]:
        """Return `rounds` of every band, shape (n,)."""
        return np.array([self.rounds(band) for band in range(N_BANDS)])

    def learn(self, band: int, size: float, mean: float, used: int) -> None:
        """Note a job that has left: its size in nodes, its announced mean, and rounds used; 0: it is not completed."""
        self._announced[band] = ANNOUNCED_KEPT * self._announced[band] + (mean, 1.0)
        if used:
            self._work = REAL_KEPT * self._work + (size * used, size * mean)
