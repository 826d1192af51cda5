r"""The wait of a new job on a cluster: work that waits before it, over the nodes that run where it could.

Of a present job nothing counts but the way that it runs (size and pools), its class, its latest start, its turn, and
whether and since when it runs; its length is the usual one of its band, times :math:`\kappa`. A job that has room now
waits 0 rounds, and so does a regular one beside a spare run of at least its share of a node that it could take back;
else 1 and the work of those that stand before the entry and accept one of its pools, over the sizes of the runs there:
of all runs for a spare entry, of regular ones for a regular one.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from marketsched.mechanisms.offers.cluster_present import Way
from marketsched.mechanisms.offers.waits import AHEAD

SEEN = np.dtype(
    [
        ("here", "i8"),
        ("offer", "i8"),
        ("latest", "i8"),
        ("start", "i8"),  # 0: it waits
        ("pool", "i8"),  # in which it runs
        ("size", "f8"),
        ("share", "f8"),
        ("band", "i8"),
    ]
)


class Seen:
    """What others see of the jobs that are present, as columns."""

    def __init__(self, n_pools: int) -> None:
        self.jobs: NDArray[np.void] = np.zeros(64, dtype=SEEN)
        self.accepts = np.zeros((64, n_pools), dtype=np.bool_)
        self._free = list(range(63, -1, -1))

    def enter(self, way: Way, offer: int, latest: int) -> int:
        """Add a job that waits; return its place."""
        if not self._free:
            size = self.jobs.size
            self.jobs = np.concatenate([self.jobs, np.zeros(size, dtype=SEEN)])
            self.accepts = np.concatenate([self.accepts, np.zeros_like(self.accepts)])
            self._free = list(range(2 * size - 1, size - 1, -1))
        place = self._free.pop()
        self.jobs[place] = 1, offer, latest, 0, 0, way.size, way.share, way.band
        self.accepts[place] = way.pools
        return place

    def runs(self, place: int, start: int, pool: int) -> None:
        """Note that a job runs since ``start``; 0: it waits again."""
        self.jobs["start"][place], self.jobs["pool"][place] = start, pool

    def leave(self, place: int) -> None:
        """Remove a job."""
        self.jobs["here"][place] = 0
        self._free.append(place)

    def expected_waits(
        self,
        way: Way,
        now: int,
        latest: NDArray[np.int64],
        usual: NDArray[np.float64],
        kappa: float,
        most_lost: float,
        *,
        fits: bool,
        most: int = AHEAD,
    ) -> NDArray[np.int64]:
        """Return the expected waits of a job, rounds, as spare and as regular job, shape (2, n), at most ``most``.

        ``latest`` are the latest starts that it could choose, rising; ``usual`` rounds are by band; ``kappa`` is real
        over announced work, ``most_lost`` the node-rounds that a spare run may lose to it; ``fits``: it has room now.
        """
        waits = np.empty((2, latest.size), dtype=np.int64)
        _waits_kernel(
            self.jobs, self.accepts, way.pools, way.share, now, latest, usual * kappa, most_lost, fits, most, waits
        )
        return waits


@njit(cache=True)
def _waits_kernel(  # type: ignore[no-untyped-def]
    jobs, accepts, pools, share, now, latest, lengths, most_lost, fits, most, waits
):
    """Fill ``waits``."""
    if fits:
        waits[:] = 0
        return
    here, offer, start, pool, by = jobs["here"], jobs["offer"], jobs["start"], jobs["pool"], jobs["latest"]
    size, shares, band = jobs["size"], jobs["share"], jobs["band"]
    work = np.zeros((2, latest.size))
    running, of_all = np.zeros(2), 0.0  # regular jobs stand before all spare ones
    room = False
    for i in range(jobs.size):
        if here[i] == 0:
            continue
        if start[i] > 0:
            if pools[pool[i]]:
                running[offer[i]] += size[i]
                if offer[i] == 0 and shares[i] >= share and size[i] * (now - start[i]) <= most_lost:
                    room = True
            continue
        shared = False
        for g in range(pools.size):
            shared = shared or (pools[g] and accepts[i, g])
        if shared:
            p, own = np.searchsorted(latest, by[i]), size[i] * lengths[band[i]]
            if p < latest.size:
                work[offer[i], p] += own
            of_all += own * offer[i]
    regular, spare = 0.0, 0.0
    for p in range(latest.size):
        regular += work[1, p]
        spare += work[0, p]
        waits[0, p] = min(most, 1 + int((of_all + spare) / max(1e-9, running[0] + running[1])))
        waits[1, p] = 0 if room else min(most, 1 + int(regular / max(1e-9, running[1])))
