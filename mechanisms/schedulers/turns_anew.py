"""Owners in turn, anew after each start: who used least for its share goes first, with its most important job."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from marketsched.mechanisms.resources.nodes import Nodes
from marketsched.mechanisms.schedulers.node_jobs import NodeJob

J = TypeVar("J", bound=NodeJob)

LEAST = 1e-9  # node-rounds: who has used nothing goes by shares


class TurnsAnew(Generic[J]):
    """Waiting jobs, given by arrival, in the order in which they are tried; those known to have no room are left out.

    One that does not start changes nobody's turn, so that leaving it out changes nothing; nothing is given back to
    ``nodes`` meanwhile. ``used`` and ``parts`` are by owner; those without a part come last, among themselves by use.
    Equal ones go by number: by importance, one owner's scale would move others.
    """

    def __init__(
        self, waiting: Iterable[J], used: NDArray[np.float64], parts: NDArray[np.float64], nodes: Nodes
    ) -> None:
        self._parts, self._nodes, self._own = parts, nodes, dict[int, list[J]]()
        for each in waiting:
            if nodes.may_hold(each.keys):
                self._own.setdefault(each.owner, []).append(each)
        for jobs in self._own.values():  # the last one is tried first
            jobs.sort(key=lambda each: (each.important, -each.turn))
        self.used = {owner: float(used[owner]) for owner in self._own}

    def __iter__(self) -> Iterator[J]:
        """Yield the jobs; `starts` is to be called of those that start."""
        heap = [self._turn_of(owner) for owner in self._own]
        heapq.heapify(heap)
        while heap:
            *_, owner = heapq.heappop(heap)
            jobs = self._own[owner]
            while jobs and not self._nodes.may_hold(jobs[-1].keys):
                jobs.pop()
            if jobs:
                yield jobs.pop()
            if jobs:
                heapq.heappush(heap, self._turn_of(owner))

    def starts(self, each: J) -> None:
        """Count the use of a job that has started."""
        self.used[each.owner] += each.size

    def _turn_of(self, owner: int) -> tuple[bool, float, int]:
        part, used = float(self._parts[owner]), self.used[owner]
        return (True, used, owner) if part <= 0 else (False, (used + LEAST) / part, owner)
