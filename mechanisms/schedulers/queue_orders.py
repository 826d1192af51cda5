"""Orders of a queue without values: by arrival, by requested wall time, or three queues by class.

A class is 0 (patient), 1, 2 (urgent), or any larger number. It is known of a job (the queue or the priority of a log),
or it is the third of the wall times in which the job's own lies, among jobs that arrived in earlier rounds: the
shortest third is the most urgent. Before any has arrived it is 1.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal

import numpy as np
from numba import njit

from marketsched.mechanisms.legal import Whole
from marketsched.mechanisms.mechanism import JobId

Order = Literal["arrival", "request", "class"]
PATIENT, MIDDLE, URGENT = 0, 1, 2


class Thirds:
    """Classes by thirds of wall times, of at most ``longest`` rounds.

    Examples
    --------
    >>> thirds = Thirds(9)
    >>> before = thirds.class_of(4)
    >>> thirds.learn([2, 4, 9])
    >>> before, [thirds.class_of(wall) for wall in (1, 2, 4, 9)]
    (1, [2, 2, 1, 0])
    """

    def __init__(self, longest: int) -> None:
        self._seen = np.zeros(longest + 1, np.int64)  # by wall time

    def class_of(self, wall: int) -> int:
        """Return the class of a job by its wall time, rounds."""
        return int(_class_kernel(self._seen, wall))

    def learn(self, walls: Iterable[int]) -> None:
        """Count wall times of a round that is over."""
        for wall in walls:
            self._seen[wall] += 1


class Line:
    """The places of jobs in a queue, by arrival, shortest requested wall time or most urgent class.

    ``longest`` is the longest wall time, rounds; jobs without a class in ``classes`` are thirds of the wall times.
    InvalidParameterError if a class is no whole number >= 0.
    """

    def __init__(self, order: Order, longest: int, classes: Mapping[Any, Any] | None = None) -> None:
        self.order = order
        self.classes = {job: Whole(0).check(f"classes: {job}", each) for job, each in (classes or {}).items()}
        self._thirds = Thirds(longest)

    def place_of(self, job: JobId, wall: int) -> int:
        """Return the key of a job that arrives with this wall time: smaller ones come first, equal ones by arrival."""
        if self.order == "request":
            return wall
        if self.order == "class":
            known = self.classes.get(job)
            return -(self._thirds.class_of(wall) if known is None else known)
        return 0

    def learn(self, walls: Iterable[int]) -> None:
        """Count the wall times that arrived in a round that is over."""
        if self.order == "class":
            self._thirds.learn(walls)


@njit(cache=True)
def _class_kernel(seen, wall):  # type: ignore[no-untyped-def]
    """Return 2 in the shortest third, 0 in the longest; equal wall times count half."""
    below, total = 0.5 * seen[wall], 0
    for length in range(seen.size):
        total += seen[length]
        if length < wall:
            below += seen[length]
    if total == 0:
        return 1
    return 2 if 3.0 * below < total else 1 if 3.0 * below < 2.0 * total else 0
