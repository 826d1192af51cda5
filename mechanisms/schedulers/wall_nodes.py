"""The nodes of a cluster as they are now and in one later round, in which a job is held a place (EASY backfilling).

Runs only end between the two, so that a job for which there is room in both rounds beside what is held does not delay
the one it is held for, and one that ends by then cannot.
"""

from __future__ import annotations

from collections.abc import Callable, Container
from itertools import groupby
from operator import attrgetter

from marketsched.mechanisms.resources.calendars import Placed, Room, Wanted
from marketsched.mechanisms.resources.cluster import Cluster
from marketsched.mechanisms.resources.nodes import NOW, Key, Nodes, Run, key_of
from marketsched.mechanisms.schedulers.node_jobs import WallJob

THEN = NOW + 1  # the other round of the calendars


class WallNodes(Nodes):
    """Nodes with a place that is held from round ``then`` on; 0: none is."""

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster, THEN)
        self.then = 0
        self._beside: set[Key] = set()  # what has found no room beside the place that is held

    def start_soonest(self, job: WallJob, now: int) -> bool:
        """Start a job in the first of its ways that has room; tell whether it did."""
        return any(self.start(job, way, now) for way in job.in_time(now))

    def start(self, job: WallJob, rows: list[int], now: int) -> bool:
        """Start a job with one of these options, of equal wall times, if that takes no place which is held."""
        found = self.room_for(job, rows, now)
        if found is None:
            return False
        beyond = self._beyond(job, rows, now)
        self.begin(job, *found, now, job.booked_rounds(found[0], now))
        if beyond and job.run is not None:  # it will still be there when the place is needed
            self._calendars.book(job.run.wanted, job.run.placed, THEN, 1)
        return True

    def room_for(self, job: WallJob, rows: list[int], now: int) -> tuple[int, Placed] | None:
        """Return which of these options leaves least, and its place, which leaves alone what is held."""
        room = self._room_beside if self._beyond(job, rows, now) else self._room
        return self._best_of((row, job.wants[row], room(job.wants[row])) for row in rows)

    def _beyond(self, job: WallJob, rows: list[int], now: int) -> bool:
        """Tell whether a run that starts now would last until a place is held."""
        return bool(rows) and 0 < self.then < now + job.booked_rounds(rows[0], now)

    def hold(self, head: WallJob, rows: Container[int]) -> int:
        """Hold a job a place with one of these options in the first round in which there is one; return that round.

        None has room now. Even if by wall times it is too late for the job then: runs may end earlier.
        """
        self._calendars.copy(NOW, THEN)
        self._beside.clear()
        pools = {wanted.pool for wanted in head.wants}

        def usable(ways: list[list[int]]) -> list[list[int]]:
            return [way for each in ways if (way := [row for row in each if row in rows])]

        by_round: Callable[[Run], int] = attrgetter("until")
        ends = sorted((run for run in self.runs if run.wanted.pool in pools), key=by_round)
        for then, ended in groupby(ends, key=by_round):
            for run in ended:
                self._calendars.release(run.wanted, run.placed, THEN, THEN + 1)
            for way in usable(head.in_time(then)) or usable(head.ways):
                found = self._best_of((row, head.wants[row], self._room_in(head.wants[row], THEN, 1)) for row in way)
                if found is not None:
                    self._calendars.book(head.wants[found[0]], found[1], THEN, 1)
                    self.then = then
                    return then
        raise AssertionError("a job that the empty nodes of a pool hold fits once all runs there have ended")

    def let_go(self) -> None:
        """Hold nothing any more."""
        self.then = 0

    def _room_beside(self, wanted: Wanted) -> Room | None:
        key = key_of(wanted)
        if key in self._full[wanted.pool] or key in self._beside:
            return None
        room = self._room_in(wanted, NOW, THEN)
        if room is None:
            self._beside.add(key)
        return room
