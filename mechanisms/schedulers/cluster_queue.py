"""Schedulers of a cluster that are told the truth: jobs wait in some order, and start on nodes that have room.

Each round the waiting jobs are asked in order. A job starts now with the shape and in the pool in which it is worth
most, if some placement of it exists; otherwise it waits. Orders:

* ``fifo``: by arrival;
* ``density``: most value first, over the rounds and the largest share of the whole cluster that the job would take;
* ``dominant-share``: the job of the owner first whose running jobs have the smallest dominant share (Ghodsi et al.,
  Dominant resource fairness, NSDI 2011), anew after every start.

With ``reserve`` the first job of the order that finds no room now is held the best later start that the calendars of
the nodes have, and those behind it start only beside that (EASY backfilling). There are no prices, and every owner
gains by exaggerating: these are yardsticks, not mechanisms to run.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterator, Sequence
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from marketsched.mechanisms.auctions.arrival_market import NOT_YET, TOLERANCE, ArrivalMarket, WaitingJob
from marketsched.mechanisms.legal import legal
from marketsched.mechanisms.limits import MarketLimits
from marketsched.mechanisms.mechanism import JobId, Standing
from marketsched.mechanisms.resources.bookings import Booking
from marketsched.mechanisms.resources.calendars import Calendars, Placed, Wanted
from marketsched.mechanisms.resources.cluster import Cluster
from marketsched.mechanisms.resources.placement import Rule, TaskTypes, place
from marketsched.mechanisms.resources.shapes import Options, options_of
from marketsched.mechanisms.sow import Signal

Order = Literal["fifo", "density", "dominant-share"]


class _Ways(NamedTuple):
    """How a job that has arrived can run."""

    options: Options
    lengths: NDArray[np.int64]  # (n_options,), rounds
    shares: NDArray[np.float64]  # (n_options,), the largest of the whole cluster that all tasks take


class _Held(NamedTuple):
    """What a running job holds."""

    option: int
    wanted: Wanted
    placed: Placed
    end: int  # first round without it
    share: float


class ClusterQueue(ArrivalMarket):
    """A queue in front of a cluster (see the module).

    Parameters
    ----------
    cluster : Cluster
        The nodes.
    horizon, max_duration, max_value, max_delay
        The sizes of the market, as `MarketLimits`.
    order : {"fifo", "density", "dominant-share"}
        Which job is asked first.
    reserve : bool
        Whether the first job without room is held a later start.
    placement : {"first", "best", "worst", "fgd"}
        Which nodes a job gets (`marketsched.mechanisms.resources.placement`).
    """

    cluster: Cluster
    standing: ClassVar[Standing] = Standing(
        "baseline", "no prices, no truth: welfare if every report were true", "true values, durations and shapes"
    )

    @legal
    def __init__(
        self,
        cluster: Cluster,
        horizon: int,
        *,
        max_duration: int,
        max_value: float,
        max_delay: int,
        max_concurrency: int = 1,
        order: Order = "fifo",
        reserve: bool = False,
        placement: Rule = "best",
    ) -> None:
        sizes: dict[str, Any] = {"max_duration": max_duration, "max_value": max_value, "max_delay": max_delay}
        super().__init__(cluster.nodes, horizon, max_concurrency=1, **sizes)
        self.limits = MarketLimits(cluster.nodes, horizon, max_concurrency, **sizes, cluster=cluster)
        self.cluster, self.order, self.reserve, self.placement = cluster, order, reserve, placement
        self.calendars = Calendars(cluster, max_delay + max_duration + 1)
        self._types = TaskTypes(len(cluster.resources))
        self._total = np.maximum(cluster.layout.pool_size.sum(axis=0), 1)
        self._ways: dict[JobId, _Ways] = {}
        self._held: dict[JobId, _Held] = {}
        self._shares: defaultdict[Hashable, float] = defaultdict(float)  # of owners, of what they run

    def foresee(self, x: WaitingJob, signal: Signal) -> None:
        """Note how the job can run, and what completions are worth."""
        options = options_of(x.sow.shapes, self.cluster)
        case = x.sow.law.points_of(self.round, signal)
        lengths = options.durations[:, case].max(axis=1)
        self._ways[x.job] = _Ways(options, lengths, (options.total / self._total).max(axis=1))
        x.last_start = self.limits.last_useful_completion(x.sow) - int(lengths.min())
        x.worth = x.sow.value.table(self.round + 1, max(0, self.limits.last_useful_completion(x.sow) - self.round))
        x.limit = self.max_duration
        for demand, tasks in zip(options.demand, options.tasks.tolist(), strict=True):
            self._types.add(demand, tasks)

    def serve(self, waiting: Sequence[WaitingJob]) -> list[int | None]:
        """Start those that find room, in order."""
        now, found = self.round, dict[JobId, int | None]()
        self.calendars.move_to(now)
        reserved: _Held | None = None
        for x in self._in_order([x for x in waiting if now <= x.last_start]):
            found[x.job] = NOT_YET
            held = self._room_now(x)
            if held is not None:
                self._held[x.job] = held
                self.calendars.book(held.wanted, held.placed, now, held.end - now)
                self._shares[x.owner] += held.share
                x.limit, found[x.job] = held.end - now, now
            elif self.reserve and reserved is None:
                reserved, at = self._reservation(x)
                if reserved is not None:
                    self.calendars.book(reserved.wanted, reserved.placed, at, reserved.end - at)
                    start = at
        if reserved is not None:
            self.calendars.release(reserved.wanted, reserved.placed, start, reserved.end)
        return [found.get(x.job) for x in waiting]

    def charge(self, x: WaitingJob) -> float:
        """Return 0: there are no prices."""
        return 0.0

    def booking(self, job: JobId) -> Booking | None:
        """Return what a running job holds, for nothing; None: it does not run."""
        held = self._held.get(job)
        if held is None:
            return None
        start, kind = self._jobs[job].start, self.cluster.pool_kinds[held.wanted.pool]
        shape, length = int(self._ways[job].options.shape[held.option]), held.end - start
        return Booking(shape, kind, start, length, held.wanted, held.placed, np.zeros(length + 1))

    def _leave(self, x: WaitingJob) -> None:
        held = self._held.pop(x.job, None)
        if held is not None:
            self._shares[x.owner] -= held.share
            self.calendars.release(held.wanted, held.placed, self.round, held.end)
        self._ways.pop(x.job, None)
        super()._leave(x)

    def _in_order(self, waiting: list[WaitingJob]) -> Iterator[WaitingJob]:
        """Yield the jobs as they are asked; starts between two of them count."""
        if self.order == "fifo":
            yield from waiting
        elif self.order == "density":
            yield from sorted(waiting, key=lambda x: -self._density(x))
        else:
            of_owner: dict[Hashable, list[WaitingJob]] = {}
            for x in reversed(waiting):
                of_owner.setdefault(x.owner, []).append(x)
            while of_owner:
                owner = min(of_owner, key=lambda o: (self._shares[o], of_owner[o][-1].order))
                yield of_owner[owner].pop()
                if not of_owner[owner]:
                    del of_owner[owner]

    def _density(self, x: WaitingJob) -> float:
        """Return the value of a start now over rounds and largest share of the cluster; of the best option."""
        ways = self._ways[x.job]
        return float((self._worth(x, self.round) / (ways.lengths * np.maximum(ways.shares, TOLERANCE))).max())

    def _worth(self, x: WaitingJob, start: int) -> NDArray[np.float64]:
        """Return what a start in this round is worth with each option."""
        ways, worth = self._ways[x.job], x.worth
        assert worth is not None
        place = start + ways.lengths - x.arrival - 1
        found = np.zeros(place.size)
        known = place < worth.size
        found[known] = (worth[place[known]]) * ways.options.worth[known]
        return found

    def _room_now(self, x: WaitingJob) -> _Held | None:
        """Return what the job gets if it starts now with the option worth most that has room."""
        worth = self._worth(x, self.round)
        rows = np.argsort(-worth, kind="stable")
        rows = rows[worth[rows] > TOLERANCE]
        return self._first(x, rows, np.full(rows.size, self.round))[0]

    def _reservation(self, x: WaitingJob) -> tuple[_Held | None, int]:
        """Return the later start worth most that has room, the earliest among equals."""
        n = self._ways[x.job].lengths.size
        starts = np.arange(self.round + 1, x.last_start + 1)
        if not starts.size:
            return None, 0
        worth = np.concatenate([self._worth(x, int(start)) for start in starts])
        ranked = np.argsort(-worth, kind="stable")
        ranked = ranked[worth[ranked] > TOLERANCE]
        return self._first(x, ranked % n, starts[ranked // n])

    def _first(self, x: WaitingJob, rows: NDArray[np.int64], starts: NDArray[np.int64]) -> tuple[_Held | None, int]:
        """Return the first of these options and starts for which a placement exists, with that placement."""
        ways = self._ways[x.job]
        o = ways.options
        i = self.calendars.first_that_fits(starts, ways.lengths[rows], rows, o.pool, o.tasks, o.per_node, o.demand)
        if i < 0:
            return None, 0
        row, start = int(rows[i]), int(starts[i])
        length = int(ways.lengths[row])
        wanted = Wanted(int(o.pool[row]), int(o.tasks[row]), int(o.per_node[row]), o.demand[row])
        room = self.calendars.room(wanted, start, length)
        placed = place(self.placement, room, wanted, self.cluster, self._types)
        return _Held(row, wanted, placed, start + length, float(ways.shares[row])), start
