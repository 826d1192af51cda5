"""Queues in front of identical nodes or of a cluster: the room for a job is a number of nodes, or a place on nodes.

On a cluster values are not looked at but for when they end. The wall time of an option, a shape in a pool, is the
longest that the job's law has for it; a run ends by it, or where its end would be worth nothing any more. Of equally
good options the one that leaves least over is taken, and none with which even the shortest run would end too late.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from marketsched.mechanisms.auctions.waiting_job import NOT_YET, WaitingJob
from marketsched.mechanisms.errors import InvalidParameterError
from marketsched.mechanisms.law import Signal
from marketsched.mechanisms.mechanism import JobId
from marketsched.mechanisms.resources.bookings import Booking
from marketsched.mechanisms.resources.cluster import Cluster
from marketsched.mechanisms.resources.cluster_market import ClusterMarket
from marketsched.mechanisms.resources.known import known_at_arrival
from marketsched.mechanisms.schedulers.node_jobs import WallJob, wall_job_of
from marketsched.mechanisms.schedulers.queue_scheduler import OrderedQueue
from marketsched.mechanisms.schedulers.wall_nodes import WallNodes
from marketsched.mechanisms.signals import Signals

FIXED = ("kill", "grace", "drop_hopeless", "stop_at_deadline", "most_overtaken")  # not to be chosen on nodes


class NodesQueue(OrderedQueue, ClusterMarket):
    """An `OrderedQueue` that also plays on a cluster, where durations may be hidden (see the module).

    Parameters
    ----------
    capacity, horizon, max_concurrency, max_duration, max_value, max_delay, cluster, signals
        As of `ClusterMarket`.
    reserve
        As of `OrderedQueue`; on a cluster ``head`` or ``none``.
    kill, grace, drop_hopeless, stop_at_deadline, most_overtaken, round_seconds
        As of `OrderedQueue`; on a cluster all but the last are fixed.
    """

    places_all: ClassVar[bool] = False  # whether identical nodes are a cluster of one kind, too

    def __init__(
        self, *sizes: Any, cluster: Cluster | None = None, signals: Signals = "durations", **queue: Any
    ) -> None:
        super().__init__(*sizes, cluster=cluster, signals=signals, **queue)
        self._there: dict[JobId, WallJob] = {}  # jobs that came to nodes
        self._turn = 0
        placed = self.places_all or self.limits.cluster is not None
        self.nodes = WallNodes(self.cluster) if placed else None
        if placed:
            wrong = [name for name in FIXED if name in queue] + ["reserve"] * (self.reserve not in ("head", "none"))
            for name in wrong:
                legal = "head or none on a cluster" if name == "reserve" else "nothing on a cluster"
                raise InvalidParameterError(place=name, value=getattr(self, name, queue.get(name)), legal=legal)

    def foresee(self, x: WaitingJob, signal: Signal) -> None:
        """Note the wall times of the job, and how it can run on nodes."""
        if self.nodes is None:
            return super().foresee(x, signal)
        known = known_at_arrival(x.sow, self.nodes.cluster, self._round, signal, self.limits, self._signals)
        self._there[x.job] = job = wall_job_of(x, known, self.nodes.cluster)
        x.agreed, x.last_start = job.wall, x.useful - int(known.lengths.min(initial=x.useful + 1))
        return None

    def serve(self, waiting: Sequence[WaitingJob]) -> list[int | None]:
        """Start whom the room of this round takes."""
        if self.nodes is None:
            return super().serve(waiting)
        there = [self._there[x.job] for x in waiting]
        for job in there:
            if not job.turn:
                self._turn += 1
                job.turn = self._turn
        self.serve_nodes([job for job in there if self._round <= job.x.last_start], self.nodes)
        self.nodes.let_go()
        found = list[int | None]()
        for x, job in zip(waiting, there, strict=True):
            x.limit = 0 if job.booking is None else job.booking.length
            found.append(self._round if x.limit else NOT_YET if self._round <= x.last_start else None)
        return found

    def serve_nodes(self, waiting: list[WallJob], nodes: WallNodes) -> None:
        """Start whom the nodes take, of jobs in order of arrival."""
        raise NotImplementedError

    def unchanged_until(self) -> int:
        """Return a round before which nothing moves if no job comes or ends; none is promised on nodes."""
        return super().unchanged_until() if self.nodes is None else self._round

    def ran(self, x: WaitingJob) -> bool:
        """Tell whether a job runs, or did before its run was taken back."""
        there = self._there.get(x.job)
        return super().ran(x) or (there is not None and there.ran > 0)

    def booking(self, job: JobId) -> Booking | None:
        """Return the booking of a running job of a cluster; None: nothing, or identical nodes."""
        there = self._there.get(job)
        return None if there is None or self.limits.cluster is None else there.booking

    def nodes_in_use(self) -> int | None:
        """Return on how many nodes something runs. None on identical nodes, where widths add up."""
        return None if self.nodes is None or self.limits.cluster is None else self.nodes.in_use()

    def _leave(self, x: WaitingJob) -> None:
        super()._leave(x)
        there = self._there.pop(x.job, None)
        if self.nodes is not None and there is not None and there.run is not None:
            self.nodes.end(there)
