"""The nodes of a cluster as they are now: what fits, where best, and whose nodes a job could take.

Nothing is booked ahead, so that a round is all there is of `Calendars`. A task goes to the node with least left over
(`marketsched.mechanisms.resources.placement`, best fit); jobs without devices keep off nodes that have some.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from marketsched.mechanisms.resources.bookings import Booking
from marketsched.mechanisms.resources.calendars import Calendars, Placed, Room, Wanted
from marketsched.mechanisms.resources.cluster import Cluster
from marketsched.mechanisms.resources.placement import TaskTypes, place

if TYPE_CHECKING:
    from marketsched.mechanisms.schedulers.node_jobs import NodeJob

NOW = 1  # the only round of the calendars
Key = tuple[int, int, int, bytes]  # of what a job asks for: equal ones have room at the same time
KEPT_OFF = 10.0  # added to the score of a node with devices, for a job without


@dataclass(slots=True, eq=False)
class Run:
    """What a run holds."""

    wanted: Wanted
    placed: Placed
    start: int  # round
    size: float  # nodes, as of the largest share of the whole cluster
    until: int = 0  # the round from which on it is gone, at the latest

    def lost(self, now: int) -> float:
        """Return the node-rounds that are lost if it is taken back."""
        return self.size * (now - self.start)


def key_of(wanted: Wanted) -> Key:
    """Return what tells requests apart."""
    return wanted.pool, wanted.tasks, wanted.per_node, wanted.demand.tobytes()


class Nodes:
    """What is free, and who runs where."""

    def __init__(self, cluster: Cluster, rounds: int = 1) -> None:
        self.cluster = cluster
        self._calendars = Calendars(cluster, rounds)
        self._types = TaskTypes(len(cluster.resources))
        self._device = cluster.layout.device_parts > 0
        self._weights = np.where(self._device, 2.0, 1.0)
        self._has_devices = cluster.layout.size[:, self._device].sum(axis=1) > 0
        # what has found no room since something of the pool was given back
        self._full: list[set[Key]] = [set() for _ in cluster.pool_names]
        self.runs: dict[Run, None] = {}

    def take(self, run: Run) -> None:
        """Give a run what it was placed on."""
        self._calendars.book(run.wanted, run.placed, NOW, 1)
        self.runs[run] = None

    def give_back(self, run: Run) -> None:
        """Take it away again."""
        self._calendars.release(run.wanted, run.placed, NOW, NOW + 1)
        del self.runs[run]
        self._full[run.wanted.pool].clear()

    def begin(self, job: NodeJob, row: int, placed: Placed, now: int, length: int) -> None:
        """Let a job run with an option on a place that is free, for at most so many rounds."""
        wanted = job.wants[row]
        job.run, job.row = Run(wanted, placed, now, job.size, now + length), row
        self.take(job.run)
        kind, shape = self.cluster.pool_kinds[wanted.pool], int(job.options.shape[row])
        job.booking = Booking(shape, kind, now, length, wanted, placed, np.zeros(length + 1))

    def end(self, job: NodeJob) -> None:
        """Let the run of a job end."""
        assert job.run is not None
        self.give_back(job.run)
        job.run = job.booking = None

    def in_use(self) -> int:
        """Return on how many nodes something runs."""
        return len({node for run in self.runs for node in run.placed.nodes.tolist()})

    def fits(self, wanted: Wanted) -> bool:
        """Tell whether there is room now."""
        return self._calendars.fits(wanted, NOW, 1)

    def may_hold(self, keys: Iterable[Key]) -> bool:
        """Tell whether one of these (`key_of`) may have room: not all of them are known to have none."""
        for key in keys:  # a loop: this is asked of every waiting job in every round
            if key not in self._full[key[0]]:
                return True
        return False

    def best(self, wanted: Iterable[tuple[int, Wanted]]) -> tuple[int, Placed] | None:
        """Return which of these, equally good ones, leaves least, and its place; None: none has room."""
        return self._best_of((i, each, self._room(each)) for i, each in wanted)

    def _room(self, wanted: Wanted) -> Room | None:
        """Return where there is room now; None: there is not enough."""
        key = key_of(wanted)
        if key in self._full[wanted.pool]:
            return None
        room = self._room_in(wanted, NOW, 1)
        if room is None:
            self._full[wanted.pool].add(key)
        return room

    def _room_in(self, wanted: Wanted, first: int, rounds: int) -> Room | None:
        """Return where there is room in rounds from ``first`` on; None: there is not enough."""
        room = self._calendars.room(wanted, first, rounds)
        return room if int(room.tasks.sum()) >= wanted.tasks else None

    def _best_of(self, wanted: Iterable[tuple[int, Wanted, Room | None]]) -> tuple[int, Placed] | None:
        """Return which of these leaves least in its room, and its place there."""
        found: tuple[float, int, Wanted, Room] | None = None
        for i, each, room in wanted:
            if room is None:
                continue
            scores = self._scores(each, room)
            least = float(scores.min())
            if found is None or least < found[0] - 1e-12:
                if each.tasks == 1:
                    one = int(np.flatnonzero(scores <= least + 1e-12)[0])
                    room = Room(*(column[one : one + 1] for column in room))
                found = least, i, each, room
        if found is None:
            return None
        _, i, each, room = found
        return i, place("best", room, each, self.cluster, self._types)

    def _scores(self, wanted: Wanted, room: Room) -> NDArray[np.float64]:
        size = self.cluster.layout.size[room.nodes]
        left = np.where(size > 0, (room.free - wanted.demand) / np.maximum(size, 1), 0.0)
        scores: NDArray[np.float64] = left @ self._weights
        if not wanted.demand[self._device].any():
            scores += KEPT_OFF * self._has_devices[room.nodes]
        return scores

    def taking(self, wanted: Sequence[Wanted], free: Sequence[Run], now: int) -> tuple[float, list[Run]] | None:
        """Return the least loss, node-rounds, with which free runs can make room for one of these, and these runs.

        None of ``wanted`` has room now; ``free`` may be taken back, those with the least progress first. None of the
        runs returned could stay; None: all are not enough.
        """
        best: tuple[float, list[Run]] | None = None
        for each in wanted:
            own = [run for run in free if run.wanted.pool == each.pool]
            for among in self._groups(each, own):
                victims = self._needed(each, among, np.inf if best is None else best[0], now)
                if victims is not None:
                    lost = sum(run.lost(now) for run in victims)
                    if best is None or lost < best[0]:
                        best = lost, victims
        return best

    def _groups(self, wanted: Wanted, free: Sequence[Run]) -> list[list[Run]]:
        """Return the runs of each node for a job of one task, else those of the whole pool."""
        if wanted.tasks > 1:
            return [list(free)]
        of_node: dict[int, list[Run]] = {}
        for run in free:
            for node in run.placed.nodes.tolist():
                of_node.setdefault(node, []).append(run)
        return [of_node[node] for node in sorted(of_node)]

    def _needed(self, wanted: Wanted, free: Sequence[Run], most: float, now: int) -> list[Run] | None:
        """Return the runs of a group that have to go; None: they are not enough. Nothing is changed."""
        book, release = self._calendars.book, self._calendars.release
        gone: list[Run] = []
        enough = False
        for run in free:
            release(run.wanted, run.placed, NOW, NOW + 1)
            gone.append(run)
            enough = self.fits(wanted)
            if enough:
                break
        needed = []
        for run in reversed(gone):  # the most progress first: it stays if the others are enough
            book(run.wanted, run.placed, NOW, 1)
            if enough and not self.fits(wanted):
                release(run.wanted, run.placed, NOW, NOW + 1)
                needed.append(run)
        for run in needed:
            book(run.wanted, run.placed, NOW, 1)
        return needed if enough else None
