"""Markets on nodes that look at no values, only at when they end: a job takes the shortest wall time that has room.

The wall time of an option is the longest that its law has for it. Of options with equal wall times the one that leaves
least over is taken, and none with which even the shortest run would end too late to be worth anything.
"""

from __future__ import annotations

from collections.abc import Container, Iterable
from dataclasses import dataclass
from itertools import groupby
from typing import Any, ClassVar

from marketsched.mechanisms.auctions.waiting_job import WaitingJob
from marketsched.mechanisms.mechanism import Event
from marketsched.mechanisms.resources.calendars import Placed
from marketsched.mechanisms.resources.known import Known
from marketsched.mechanisms.resources.nodes_ahead import NodesAhead, Ways
from marketsched.mechanisms.schedulers.nodes_market import NodeJob, NodesMarket, facts_of


@dataclass(slots=True, eq=False, kw_only=True)
class WallJob(NodeJob):
    """A job with its wall times; its values count for nothing (``important`` is 0)."""

    shortest: list[int]  # rounds, by option
    ways: list[list[int]]  # options, those of the shortest wall time first, equal ones together
    wall: int  # rounds, of the first
    place: int = 0  # in a queue: smaller ones come first

    def in_time(self, now: int) -> list[list[int]]:
        """Return the ways that a start now leaves: those whose shortest runs end while that is worth anything."""
        left = self.x.limit - now
        if left >= max(self.shortest):
            return self.ways
        some = ([row for row in way if self.shortest[row] <= left] for way in self.ways)
        return [way for way in some if way]


class WallTimeMarket(NodesMarket[WallJob]):
    """What such markets share; parameters as of `NodesMarket`."""

    nodes: NodesAhead
    free_of_charge: ClassVar[bool] = True

    def __init__(self, *args: Any, **sizes: Any) -> None:
        super().__init__(*args, **sizes)
        self.nodes = NodesAhead(self.cluster)

    def _account_of(self, x: WaitingJob) -> int:
        """Return the place of a job's owner; 0 where owners count for nothing."""
        return 0

    def _present_of(self, x: WaitingJob, known: Known) -> WallJob:
        facts = facts_of(x, self._account_of(x), known, self.cluster) | {"important": 0.0}
        walls = known.lengths.max(axis=1, initial=1).tolist()
        rows = sorted(range(len(walls)), key=walls.__getitem__)
        ways = [list(way) for _, way in groupby(rows, key=walls.__getitem__)]
        shortest = known.lengths.min(axis=1, initial=self.max_duration).tolist()
        return WallJob(**facts, shortest=shortest, ways=ways, wall=min(walls, default=1))

    def _start_soonest(self, each: WallJob, now: int, events: list[Event]) -> bool:
        """Start a job in the first of its ways that has room; tell whether it did."""
        return any(self._start(each, way, now, events) for way in each.in_time(now))

    def _start(self, each: WallJob, rows: Iterable[int], now: int, events: list[Event]) -> bool:
        """Start a job with one of these options, of equal wall times, if that takes no place which is held."""
        rows = list(rows)
        found = self._room_for(each, rows, now)
        if found is None:
            return False
        beyond = self._beyond(each, rows, now)
        self._begin(each, *found, now, events)
        if beyond and each.run is not None:
            self.nodes.keep(each.run)
        return True

    def _room_for(self, each: WallJob, rows: list[int], now: int) -> tuple[int, Placed] | None:
        find = self.nodes.best_beside if self._beyond(each, rows, now) else self.nodes.best
        return find((row, each.wants[row]) for row in rows)

    def _beyond(self, each: WallJob, rows: list[int], now: int) -> bool:
        """Tell whether a run that starts now would last until a place is held."""
        return bool(rows) and 0 < self.nodes.then < now + self._booked_rounds(each, rows[0], now)

    def _hold(self, head: WallJob, rows: Container[int]) -> int:
        """Hold a job a place with one of these options; return the round from which on it is held.

        Even if by wall times it is too late for the job then: runs may end earlier.
        """
        pools = {wanted.pool for wanted in head.wants}
        ends = [
            (each.booking.start + each.booking.length, each.run)
            for each in self._present.values()
            if each.run is not None and each.booking is not None and each.run.wanted.pool in pools
        ]

        def wanted(ways: list[list[int]]) -> Ways:
            found = ([(row, head.wants[row]) for row in way if row in rows] for way in ways)
            return [way for way in found if way]

        return self.nodes.hold(lambda then: wanted(head.in_time(then)) or wanted(head.ways), ends)
