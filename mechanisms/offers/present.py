"""The present jobs of hidden duration, as columns that the rules of the two offers read.

Of a job that is present the rules use its nodes, its entry (class and latest start), its turn, its checkpoint, and
whether and since when it runs. What else it reported stands here in three numbers that end its own stay
(``last_start``, ``stop``, and ``in_time`` by its own curve) and in four that teach once it has left (``mean``,
``density``, ``cell``, ``group``).
"""

from __future__ import annotations

from bisect import bisect_left
from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

SPARE, REGULAR = 0, 1
HERE, DONE, LOST = 0, 1, 2
BANDS = (0.02, 0.06, 0.15, 0.35)  # shares of the machine: jobs up to each, and wider ones, have usual durations

JOB = np.dtype(
    [
        ("offer", "i8"),  # SPARE or REGULAR
        ("width", "i8"),  # nodes
        ("band", "i8"),  # of its width
        ("start", "i8"),  # first round of its run; 0: it waits
        ("stop", "i8"),  # the round in which its run is stopped
        ("ran", "i8"),  # how many runs of it were taken back
        ("every", "i8"),  # rounds of its work after which it is saved, each time; 0: a run that is taken back loses all
        ("saved", "i8"),  # rounds of its work that runs which were taken back have saved
        ("latest", "i8"),  # its arrival and the patience of its entry: its place in the queue
        ("last_start", "i8"),  # it leaves if it waits afterwards: no later than that
        ("state", "i8"),  # HERE; DONE or LOST: it has left, and teaches when the next round is cleared
        ("used", "i8"),  # DONE: rounds of its run
        ("in_time", "i8"),  # DONE: whether it was worth anything
        ("cell", "i8"),  # where it stood at its arrival, of the twelve of its offer
        ("group", "i8"),  # of jobs alike in nodes and announced length
        ("mean", "f8"),  # announced, rounds
        ("density", "f8"),  # announced value per node and expected round, credits
        ("rate", "f8"),  # locked, credits per node and round
    ]
)


GROUP_WIDTHS, GROUP_LONGEST = (0.06, 0.35), (4, 24)  # of groups of jobs: shares of the machine; quarters of an hour
GROUPS = 9


def group_of(width: int, capacity: int, longest: float) -> int:
    """Return the group, 0 to 8, of a job by its nodes and its longest announced duration, quarters of an hour."""
    return 3 * bisect_left(GROUP_WIDTHS, width / capacity) + bisect_left(GROUP_LONGEST, longest)


def band_of(width: int, capacity: int) -> int:
    """Return the band of widths, 0 to 4, of a job with ``width`` nodes.

    Examples
    --------
    >>> [band_of(width, 100) for width in (1, 2, 3, 15, 36)]
    [0, 0, 1, 2, 4]
    """
    return bisect_left(BANDS, width / capacity)


class InTurn(NamedTuple):
    """The present jobs, as kernels read and change them."""

    jobs: NDArray[np.void]  # (m,), rows, those that are free included
    turn: NDArray[np.int64]  # (n,), rows of those present, in order of arrival


class Rows:
    """Rows of jobs, each its own while it is present; the first ``n`` of ``turn`` are rows in order of arrival."""

    def __init__(self, columns: np.dtype[np.void]) -> None:
        self.jobs: NDArray[np.void] = np.zeros(64, dtype=columns)
        self.turn = np.zeros(64, dtype=np.int64)
        self.n = 0
        self._free = list(range(63, -1, -1))

    @property
    def in_turn(self) -> InTurn:
        """Views of the present jobs, valid until the next one enters."""
        return InTurn(self.jobs, self.turn[: self.n])

    def enter(self, columns: tuple[Any, ...]) -> int:
        """Add a job, the last to arrive; return its row."""
        if not self._free:
            size = self.jobs.size
            self.jobs = np.concatenate([self.jobs, np.zeros(size, dtype=self.jobs.dtype)])
            self.turn = np.concatenate([self.turn, np.zeros(size, dtype=np.int64)])
            self._free = list(range(2 * size - 1, size - 1, -1))
        row = self._free.pop()
        self.jobs[row] = columns
        self.turn[self.n] = row
        self.n += 1
        return row

    def give_back(self, rows: list[int]) -> None:
        """Let the rows of jobs that have left be used again."""
        self._free += rows


class Present(Rows):
    """Rows of `JOB`."""

    def __init__(self) -> None:
        super().__init__(JOB)
        self._queue: NDArray[np.int64] | None = None  # until somebody leaves

    def add(
        self, offer: int, width: int, band: int, *,
        rate: float, latest: int, last_start: int, cell: int, group: int, mean: float, density: float, every: int = 0,
    ) -> int:  # fmt: skip
        """Add a job, the last to arrive; return its row."""
        ends = (latest, min(last_start, latest))
        return self.enter(
            (offer, width, band, 0, 0, 0, every, 0, *ends, HERE, 0, 0, cell, group, mean, density, rate)
        )  # as `JOB`

    def enter(self, columns: tuple[Any, ...]) -> int:
        """Add a job, the last to arrive; return its row."""
        row = super().enter(columns)
        if self._queue is not None:  # behind all that it does not go before
            place = _place_kernel(self.jobs, self._queue, row)
            self._queue = np.concatenate([self._queue[:place], self.turn[self.n - 1 : self.n], self._queue[place:]])
        return row

    def queue(self) -> NDArray[np.int64]:
        """Return the rows in the order in which they are served: regular jobs first, then by latest start, by turn."""
        if self._queue is None:
            rows = self.turn[: self.n]
            self._queue = rows[np.lexsort((self.jobs["latest"][rows], -self.jobs["offer"][rows]))]
        return self._queue

    def victims(self) -> NDArray[np.int64]:
        """Return the rows of spare runs in the order in which they are taken back: who began last, by turn the last."""
        rows = self.turn[: self.n][::-1]
        start = self.jobs["start"][rows]
        of = (self.jobs["offer"][rows] == SPARE) & (start > 0) & (self.jobs["state"][rows] == HERE)
        found: NDArray[np.int64] = rows[of][np.argsort(-start[of], kind="stable")]
        return found

    def give_back(self, rows: list[int]) -> None:
        """Let the rows of jobs that have left be used again."""
        super().give_back(rows)
        if rows:
            self._queue = None


@njit(cache=True)
def _place_kernel(jobs, queue, row):  # type: ignore[no-untyped-def]
    """Return how many jobs of a queue go before one that comes."""
    offer, latest = jobs["offer"], jobs["latest"]
    low, high = 0, queue.size
    while low < high:
        middle = (low + high) // 2
        j = queue[middle]
        if offer[j] > offer[row] or (offer[j] == offer[row] and latest[j] <= latest[row]):
            low = middle + 1
        else:
            high = middle
    return low
