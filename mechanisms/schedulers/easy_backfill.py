"""Backfilling: a job that fits may pass those before it in the queue without delaying the first of them, or any."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

from marketsched.mechanisms.auctions.waiting_job import WaitingJob
from marketsched.mechanisms.law import Signal
from marketsched.mechanisms.legal import legal
from marketsched.mechanisms.mechanism import JobId, Standing
from marketsched.mechanisms.schedulers.node_jobs import WallJob
from marketsched.mechanisms.schedulers.nodes_queue import NodesQueue
from marketsched.mechanisms.schedulers.queue_orders import Line, Order
from marketsched.mechanisms.schedulers.room import Reserve
from marketsched.mechanisms.schedulers.wall_nodes import WallNodes


class EasyBackfill(NodesQueue):
    """EASY backfilling with wall times as announced (`room` has the rule and its sources), also on a cluster.

    Not truthful: a wall time below the true one, where nothing is stopped at it, lets a job pass others, more so in a
    queue ordered by them; values are not looked at but for when they end. On a cluster a nearer deadline does so, too.

    Parameters
    ----------
    capacity, horizon, max_concurrency, max_duration, max_value, max_delay, kill, drop_hopeless, stop_at_deadline
        As of `QueueScheduler`.
    most_overtaken, cluster
        As of `NodesQueue`.
    reserve : {"none", "head", "all", "strict"} or int
        As of `OrderedQueue`: in order of arrival ``none`` is first fit, and ``strict`` first come, first served.
    order : {"arrival", "request", "class"}
        Who comes first: who arrived first, who requested the shortest wall time, or, of three queues, the urgent one,
        the middle one, then the patient one (`queue_orders`); equal ones by arrival.
    classes : mapping of JobId to int, optional
        Known classes of jobs, 0 (patient) and up; others are thirds of the wall times. Of a log a scenario gives them:
        the log's queues or priorities, or, where it has none, those that values were drawn by (its notes say which).

    Attributes
    ----------
    reserved : dict of JobId to int
        On a cluster, the round from which on the head of the queue was held a place in the round just cleared: of no
        more than one job, and of none where nobody behind it could have started.

    Raises
    ------
    InvalidParameterError
        If a class is no whole number >= 0.

    Examples
    --------
    >>> from marketsched.mechanisms import DeadlineValue, StatementOfWork
    >>> market = EasyBackfill(2, 20, max_concurrency=2, max_duration=5, max_value=9.0, max_delay=15)
    >>> for name, nodes, rounds in (("A", 1, 3), ("B", 2, 2), ("C", 1, 3), ("D", 1, 2)):
    ...     plan = market.submit(name, StatementOfWork(1, nodes, DeadlineValue(4.0, 15), [(1, rounds, 1.0)]))
    >>> for name, rounds in zip("ABCD", (3, 2, 3, 2)):
    ...     market.arrive(name, rounds)
    >>> [event.job for event in market.advance()]  # B would fit in round 4, and C does not delay that
    ['A', 'C']

    On a cluster the head wants all GPUs, which are free from round 4 on; a run of 3 rounds may pass, one of 4 may not:

    >>> from marketsched.mechanisms.resources.cluster import Cluster, NodeGroup, Resource
    >>> from marketsched.mechanisms.resources.shapes import Shape
    >>> cluster = Cluster((Resource("gpu", device=True),), [NodeGroup("a", "a100", 1, {"gpu": 4})])
    >>> sizes = {"max_concurrency": 1, "max_duration": 9, "max_value": 9.0, "max_delay": 40}
    >>> market = EasyBackfill(1, 40, cluster=cluster, **sizes)
    >>> for name, gpus, rounds in ("A", 3, 3), ("head", 4, 2), ("C", 1, 4), ("D", 1, 3):
    ...     shape = Shape({"gpu": gpus}, {"a100": rounds})
    ...     plan = market.submit(name, StatementOfWork.of_shapes(1, DeadlineValue(5.0, 30), 1, [shape], revealed=False))
    >>> for name in ("A", "head", "C", "D"):
    ...     market.arrive(name)
    >>> [event.job for event in market.advance()], market.reserved
    (['A', 'D'], {'head': 4})
    """

    free_of_charge: ClassVar[bool] = True
    standing: ClassVar[Standing] = Standing(
        "baseline",
        "no prices; the first in the queue is never delayed by those behind it",
        "wall times in the reports",
    )

    @legal
    def __init__(
        self,
        *sizes: Any,
        order: Order = "arrival",
        classes: Mapping[Any, Any] | None = None,
        **queue: Any,
    ) -> None:
        super().__init__(*sizes, **queue)
        self._line = Line(order, self.max_duration, classes)
        self._keys: dict[JobId, int] = {}  # of the jobs that have arrived: smaller ones come first
        self.reserved: dict[JobId, int] = {}

    @staticmethod
    def wants_classes(order: str = "arrival", **_: object) -> bool:
        """Tell whether these parameters need the classes of jobs."""
        return order == "class"

    def foresee(self, x: WaitingJob, signal: Signal) -> None:
        """Note the job's place in the queue, too."""
        super().foresee(x, signal)
        if self._line.order != "arrival":
            self._keys[x.job] = self._line.place_of(x.job, x.agreed)

    def serve(self, waiting: Sequence[WaitingJob]) -> list[int | None]:
        """Start whom the room of this round takes; then the round's wall times count."""
        found = super().serve(waiting)
        self._line.learn(x.agreed for x in waiting if x.arrival == self.round and x.agreed)
        return found

    def serve_nodes(self, waiting: list[WallJob], nodes: WallNodes) -> None:
        """Start who is first in the queue, and who may pass its head, for which a place is held."""
        head: WallJob | None = None
        self.reserved.clear()
        for i in self.ranked([job.x for job in waiting]):
            job, has_room = waiting[i], nodes.may_hold(waiting[i].keys)
            if head is not None and has_room and not self.reserved and self.reserve == "head":
                # a place is sought only if it may keep somebody out
                self.reserved[head.x.job] = nodes.hold(head, range(len(head.wants)))
            if not (has_room and nodes.start_soonest(job, self._round)):
                head = head or job

    def ranked(self, waiting: Sequence[WaitingJob]) -> Iterable[int]:
        """Return the places of waiting jobs in the order of the queue."""
        if self._line.order == "arrival":
            return range(len(waiting))
        return sorted(range(len(waiting)), key=lambda i: self._keys[waiting[i].job])

    def _leave(self, x: WaitingJob) -> None:
        super()._leave(x)
        self._keys.pop(x.job, None)


class ConservativeBackfill(EasyBackfill):
    """Conservative backfilling: as `EasyBackfill`, with a reservation for every job that waits.

    Reservations are made anew each round in the order of the queue: one may move back where an earlier job, as others
    end before their wall times, moves ahead.
    """

    standing: ClassVar[Standing] = Standing(
        "baseline",
        "no prices; by wall times nobody in the queue is delayed by those behind it",
        "wall times in the reports",
    )

    def __init__(self, *sizes: Any, reserve: Reserve = "all", **queue: Any) -> None:
        super().__init__(*sizes, reserve=reserve, **queue)
