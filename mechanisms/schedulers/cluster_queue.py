"""Schedulers of a cluster that know true reports: jobs wait in some order, and start on nodes that have room.

Each round the waiting jobs are tried in order. A job starts now with the shape and in the pool in which it is worth
most, if some placement of it exists; otherwise it waits. Orders:

* ``fifo``: by arrival;
* ``density``: most value first, over the rounds and the largest share of the whole cluster that the job would take;
* ``dominant-share``: the job of the owner first whose running jobs have the smallest dominant share (Ghodsi et al.,
  Dominant resource fairness, NSDI 2011), anew after every start.

With ``reserve`` the first job of the order that finds no room now is held the best later start that the calendars of
the nodes have, and those behind it start only beside that (EASY backfilling). Where a duration is hidden, a start is
worth what the law of the report expects, and a run holds its place for the longest of the law, or until its end would
be worth nothing; then it is stopped. There are no prices, and every owner gains by exaggerating: these are yardsticks,
not mechanisms to run.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterator, Sequence
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from marketsched.mechanisms.auctions.arrival_market import TOLERANCE
from marketsched.mechanisms.auctions.waiting_job import NOT_YET, WaitingJob
from marketsched.mechanisms.law import Signal
from marketsched.mechanisms.legal import legal
from marketsched.mechanisms.mechanism import JobId, Standing
from marketsched.mechanisms.resources.bookings import Booking
from marketsched.mechanisms.resources.calendars import Calendars, Requests, Wanted
from marketsched.mechanisms.resources.cluster_market import ClusterMarket
from marketsched.mechanisms.resources.known import known_at_arrival
from marketsched.mechanisms.resources.placement import Rule, TaskTypes, place
from marketsched.mechanisms.resources.shapes import Options

Order = Literal["fifo", "density", "dominant-share"]


class _Waiting(NamedTuple):
    """How a job that has arrived can run."""

    options: Options
    lengths: NDArray[np.int64]  # (n_options,), rounds; the longest that is possible
    cases: NDArray[np.int64]  # (n_options, n_cases), rounds
    chances: NDArray[np.float64]  # (n_cases,)
    shares: NDArray[np.float64]  # (n_options,), the largest of the whole cluster that all tasks take
    values: NDArray[np.float64]  # credits of completions in rounds arrival, arrival + 1, ..., and of later ones, 0


class ClusterQueue(ClusterMarket):
    """A queue in front of a cluster (see the module).

    Parameters
    ----------
    capacity, horizon, max_concurrency, max_duration, max_value, max_delay, cluster, signals
        As of `ClusterMarket`.
    order : {"fifo", "density", "dominant-share"}
        The order of the queue.
    reserve : bool
        Whether the first job without room is held a later start.
    placement : {"first", "best", "worst", "fgd"}
        Which nodes a job gets (`marketsched.mechanisms.resources.placement`).
    """

    free_of_charge: ClassVar[bool] = True
    standing: ClassVar[Standing] = Standing(
        "baseline", "no prices: welfare if every report were true", "true values, durations and shapes"
    )

    @legal
    def __init__(
        self,
        *sizes: Any,
        order: Order = "fifo",
        reserve: bool = False,
        placement: Rule = "best",
        **more: Any,
    ) -> None:
        super().__init__(*sizes, **more)
        self.order, self.reserve, self.placement = order, reserve, placement
        self.calendars = Calendars(self.cluster, self.max_delay + self.max_duration + 1)
        self._types = TaskTypes(len(self.cluster.resources))
        self._total = np.maximum(self.cluster.layout.pool_size.sum(axis=0), 1)
        self._ways: dict[JobId, _Waiting] = {}
        self._held: dict[JobId, tuple[Booking, float]] = {}  # with the share of the cluster
        self._shares: defaultdict[Hashable, float] = defaultdict(float)  # of owners, of what they run

    def foresee(self, x: WaitingJob, signal: Signal) -> None:
        """Note how the job can run, and what completions are worth."""
        known = known_at_arrival(x.sow, self.cluster, self.round, signal, self.limits, self._signals)
        options, lengths = known.options, known.lengths.max(axis=1, initial=1)
        shares = (options.total / self._total).max(axis=1, initial=0.0)
        shares, values = np.maximum(shares, TOLERANCE), np.append(known.values, 0.0)
        self._ways[x.job] = _Waiting(options, lengths, known.lengths, known.chances, shares, values)
        x.last_start = self.round + known.values.size - 1 - int(known.lengths.min(initial=known.values.size))
        for demand, tasks in zip(options.demand, options.tasks.tolist(), strict=True):
            self._types.add(demand, tasks)

    def serve(self, waiting: Sequence[WaitingJob]) -> list[int | None]:
        """Start those that find room, in order."""
        now, found = self.round, dict[JobId, int | None]()
        self.calendars.move_to(now)
        reserved: Booking | None = None
        for x in self._in_order([x for x in waiting if now <= x.last_start]):
            found[x.job] = NOT_YET
            booking = self._room_now(x)
            if booking is not None:
                self._hold(x, booking)
                found[x.job] = now
            elif self.reserve and reserved is None:
                reserved = self._reservation(x)
                if reserved is not None:
                    self.calendars.book(reserved.wanted, reserved.placed, reserved.start, reserved.length)
        if reserved is not None:
            end = reserved.start + reserved.length
            self.calendars.release(reserved.wanted, reserved.placed, reserved.start, end)
        return [found.get(x.job) for x in waiting]

    def charge(self, x: WaitingJob) -> float:
        """Return 0: there are no prices."""
        return 0.0

    def booking(self, job: JobId) -> Booking | None:
        """Return the booking of a running job of a cluster; None: nothing, or identical nodes."""
        held = self._held.get(job)
        return None if held is None or self.limits.cluster is None else held[0]

    def nodes_in_use(self) -> int | None:
        """Return on how many nodes something runs. None on identical nodes, where widths add up."""
        if self.limits.cluster is None:
            return None
        return len({node for booking, _ in self._held.values() for node in booking.placed.nodes.tolist()})

    def _hold(self, x: WaitingJob, booking: Booking) -> None:
        """Take what a job gets off the calendars."""
        ways = self._ways[x.job]
        of_option = (ways.options.shape == booking.shape) & (ways.options.pool == booking.wanted.pool)
        share = float(ways.shares[of_option][0])
        self.calendars.book(booking.wanted, booking.placed, booking.start, booking.length)
        self._held[x.job] = booking, share
        self._shares[x.owner] += share
        x.limit = booking.length

    def _leave(self, x: WaitingJob) -> None:
        booking, share = self._held.pop(x.job, (None, 0.0))
        if booking is not None:
            self._shares[x.owner] -= share
            self.calendars.release(booking.wanted, booking.placed, self.round, booking.start + booking.length)
        self._ways.pop(x.job, None)
        super()._leave(x)

    def _in_order(self, waiting: list[WaitingJob]) -> Iterator[WaitingJob]:
        """Yield the jobs in their order; starts between two of them count."""
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
        """Return the value of a start now over usual rounds and largest share of the cluster; of the best option."""
        ways = self._ways[x.job]
        return float((self._worth(x, self.round) / (ways.cases @ ways.chances * ways.shares)).max())

    def _worth(self, x: WaitingJob, start: int) -> NDArray[np.float64]:
        """Return what a start in this round is worth with each option, expected over the law."""
        ways = self._ways[x.job]
        place = np.minimum(start + ways.cases - x.arrival, ways.values.size - 1)
        found: NDArray[np.float64] = ways.values[place] @ ways.chances * ways.options.worth
        return found

    def _kept_for(self, x: WaitingJob, rows: NDArray[np.int64], starts: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the rounds that are kept for runs: the longest that are possible, until they are worth nothing."""
        useful = x.arrival + self._ways[x.job].values.size - 2  # the last completion of value
        return np.maximum(1, np.minimum(self._ways[x.job].lengths[rows], useful - starts))

    def _room_now(self, x: WaitingJob) -> Booking | None:
        """Return what the job gets if it starts now with the option worth most that has room."""
        worth = self._worth(x, self.round)
        rows = np.argsort(-worth, kind="stable")
        rows = rows[worth[rows] > TOLERANCE]
        return self._first(x, rows, np.full(rows.size, self.round))

    def _reservation(self, x: WaitingJob) -> Booking | None:
        """Return the later start worth most that has room, the earliest among equals."""
        n, starts = self._ways[x.job].lengths.size, np.arange(self.round + 1, x.last_start + 1)
        if not starts.size:
            return None
        worth = np.concatenate([self._worth(x, int(start)) for start in starts])
        ranked = np.argsort(-worth, kind="stable")
        ranked = ranked[worth[ranked] > TOLERANCE]
        return self._first(x, ranked % n, starts[ranked // n])

    def _first(self, x: WaitingJob, rows: NDArray[np.int64], starts: NDArray[np.int64]) -> Booking | None:
        """Return the first of these options and starts for which a placement exists, with that placement."""
        o, lengths = self._ways[x.job].options, self._kept_for(x, rows, starts)
        i = self.calendars.first_that_fits(starts, lengths, rows, Requests(o.pool, o.tasks, o.per_node, o.demand))
        if i < 0:
            return None
        row, start = int(rows[i]), int(starts[i])
        length, pool = int(lengths[i]), int(o.pool[row])
        wanted = Wanted(pool, int(o.tasks[row]), int(o.per_node[row]), o.demand[row])
        room = self.calendars.room(wanted, start, length)
        placed = place(self.placement, room, wanted, self.cluster, self._types)
        kind = self.cluster.pool_kinds[pool]
        return Booking(int(o.shape[row]), kind, start, length, wanted, placed, np.zeros(length + 1))
