"""Markets on nodes that look at no values, only at when they end: a job takes the shortest wall time that has room.

The wall time of an option is the longest that its law has for it. Of options with equal wall times the one that leaves
least over is taken, and none with which even the shortest run would end too late to be worth anything.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from typing import ClassVar

from marketsched.mechanisms.auctions.waiting_job import WaitingJob
from marketsched.mechanisms.mechanism import Event
from marketsched.mechanisms.resources.known import Known
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

    free_of_charge: ClassVar[bool] = True

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
