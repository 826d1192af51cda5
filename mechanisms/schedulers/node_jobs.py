"""Jobs on nodes: what they ask for, what a start is worth to them, and their wall times."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np
from numpy.typing import NDArray

from marketsched.mechanisms.auctions.waiting_job import WaitingJob
from marketsched.mechanisms.legal import LARGEST_WHOLE
from marketsched.mechanisms.resources.bookings import Booking
from marketsched.mechanisms.resources.calendars import Wanted
from marketsched.mechanisms.resources.cluster import Cluster
from marketsched.mechanisms.resources.known import Known
from marketsched.mechanisms.resources.nodes import Key, Run, key_of
from marketsched.mechanisms.resources.shapes import Options

SAME = 9  # digits to which parts of a value are compared


@dataclass(slots=True, eq=False)
class NodeJob:
    """A job that has come and not left.

    What it reported decides about its own owner's jobs alone: ``important`` and ``means``, ``values`` and ``x``'s
    limits. Others see what it asks for, its turn, and whether and since when it runs.
    """

    x: WaitingJob
    owner: int
    options: Options
    lengths: NDArray[np.int64]  # rounds, by option and case
    chances: NDArray[np.float64]  # of the cases
    values: NDArray[np.float64]  # of completions in rounds arrival, ..., as parts of the highest
    means: NDArray[np.float64]  # announced rounds, by option
    wants: list[Wanted]  # what each option asks for
    keys: list[Key]  # of these
    least: int  # the option that takes the least work
    size: float  # nodes of that option, as of the largest share of the whole cluster
    mean: float  # its rounds
    important: float  # value over work
    turn: int = 0  # of arrival
    run: Run | None = None
    booking: Booking | None = None
    row: int = 0  # the option that it has
    ran: int = 0  # how many runs of it were taken back

    def booked_rounds(self, row: int, now: int) -> int:
        """Return how many rounds a run that starts now is booked for."""
        return max(1, min(int(self.lengths[row].max()), self.x.useful - now))

    def worth_most(self, now: int) -> list[int]:
        """Return the options with which a start now is worth most; none if it is worth nothing.

        Only parts of the job's own highest value are compared, so that no scale counts.
        """
        places = now + self.lengths - self.x.arrival
        inside = places < self.values.size
        worth = np.where(inside, self.values[np.minimum(places, self.values.size - 1)], 0.0) @ self.chances
        worth = np.round(worth * self.options.worth, SAME)
        best = float(worth.max())
        return np.flatnonzero(worth == best).tolist() if best > 0 else []


def facts_of(x: WaitingJob, owner: int, known: Known, cluster: Cluster) -> dict[str, Any]:
    """Return the fields of a `NodeJob` at its arrival; without options if it can run nowhere."""
    options, highest = known.options, x.sow.value.highest
    means = known.lengths @ known.chances
    total = np.maximum(cluster.layout.pool_size.sum(axis=0), 1)
    sizes = (options.total / total).max(axis=1, initial=0.0) * cluster.nodes
    least = int(np.argmin(sizes * means / options.worth)) if means.size else 0
    size, mean = (float(sizes[least]), float(means[least])) if means.size else (1.0, 1.0)
    columns = (column.tolist() for column in (options.pool, options.tasks, options.per_node))
    wants = [Wanted(*row) for row in zip(*columns, options.demand, strict=True)]
    return {
        "x": x, "owner": owner, "options": options, "lengths": known.lengths, "chances": known.chances,
        "values": known.values / max(highest, 1e-300), "means": means,
        "wants": wants, "keys": [key_of(each) for each in wants], "least": least, "size": size, "mean": mean,
        "important": highest / (size * mean),
    }  # fmt: skip


@dataclass(slots=True, eq=False, kw_only=True)
class WallJob(NodeJob):
    """A job with its wall times: the longest of its law, by option."""

    shortest: list[int]  # rounds, by option
    ways: list[list[int]]  # options, those of the shortest wall time first, equal ones together
    wall: int  # rounds, of the first

    def in_time(self, now: int) -> list[list[int]]:
        """Return the ways that a start now leaves: those whose shortest runs end while that is worth anything."""
        left = self.x.useful - now
        if left >= max(self.shortest):
            return self.ways
        some = ([row for row in way if self.shortest[row] <= left] for way in self.ways)
        return [way for way in some if way]


def wall_job_of(x: WaitingJob, known: Known, cluster: Cluster) -> WallJob:
    """Return a job at its arrival; without options if it can run nowhere."""
    walls = known.lengths.max(axis=1, initial=1).tolist()
    rows = sorted(range(len(walls)), key=walls.__getitem__)
    ways = [list(way) for _, way in groupby(rows, key=walls.__getitem__)]
    shortest = known.lengths.min(axis=1, initial=LARGEST_WHOLE).tolist()
    facts = facts_of(x, 0, known, cluster)
    return WallJob(**facts, shortest=shortest, ways=ways, wall=min(walls, default=0))
