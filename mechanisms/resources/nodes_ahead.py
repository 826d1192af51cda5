"""The nodes of a cluster as they are now and in one later round, in which a job is held a place (EASY backfilling).

Runs only end between the two, so that a job for which there is room in both rounds beside what is held does not delay
the one it is held for, and one that ends by then cannot.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import groupby
from operator import itemgetter

from marketsched.mechanisms.resources.calendars import Placed, Room, Wanted
from marketsched.mechanisms.resources.cluster import Cluster
from marketsched.mechanisms.resources.nodes import NOW, Key, Nodes, Run, key_of

THEN = NOW + 1  # the other round of the calendars
Ways = Iterable[list[tuple[int, Wanted]]]  # requests, the better ones first, equally good ones together


class NodesAhead(Nodes):
    """Nodes with a place that is held from round ``then`` on; 0: none is."""

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster, THEN)
        self.then = 0
        self._beside: set[Key] = set()  # what has found no room beside the place that is held

    def hold(self, ways: Callable[[int], Ways], ends: Iterable[tuple[int, Run]]) -> int:
        """Hold a place in the first round in which there is one; return that round.

        ``ways`` returns what is asked for in a round: some of it has room once all runs of its pool have ended, and
        none has now. ``ends`` are rounds from which on runs are gone, at the latest; at least all runs of the pools
        that are asked for.
        """
        self._calendars.copy(NOW, THEN)
        self._beside.clear()
        by_round: Callable[[tuple[int, Run]], int] = itemgetter(0)
        for then, ended in groupby(sorted(ends, key=by_round), key=by_round):
            for _, run in ended:
                self._calendars.release(run.wanted, run.placed, THEN, THEN + 1)
            for wanted in ways(then):
                found = self._best_of((i, each, self._room_in(each, THEN, 1)) for i, each in wanted)
                if found is not None:
                    asked = dict(wanted)[found[0]]
                    self._calendars.book(asked, found[1], THEN, 1)
                    self.then = then
                    return then
        raise AssertionError("a job that the empty nodes of a pool hold fits once all runs there have ended")

    def let_go(self) -> None:
        """Hold nothing any more."""
        self.then = 0

    def best_beside(self, wanted: Iterable[tuple[int, Wanted]]) -> tuple[int, Placed] | None:
        """Return what `best` does, of places that leave alone what is held."""
        return self._best_of((i, each, self._room_beside(each)) for i, each in wanted)

    def keep(self, run: Run) -> None:
        """Note that a run which has begun will still be there when the place is needed."""
        self._calendars.book(run.wanted, run.placed, THEN, 1)

    def _room_beside(self, wanted: Wanted) -> Room | None:
        key = key_of(wanted)
        if key in self._full[wanted.pool] or key in self._beside:
            return None
        room = self._room_in(wanted, NOW, THEN)
        if room is None:
            self._beside.add(key)
        return room
