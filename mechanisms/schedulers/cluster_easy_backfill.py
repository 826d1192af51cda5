"""EASY backfilling on a cluster of several resources and kinds of nodes, for jobs whose durations may be hidden.

Jobs start in the order of a queue as long as they find room. The first that finds none, the head, is held a place on
nodes: in the first round in which, by wall times, one of its options has room, the place that leaves least over. Behind
it a job starts if it finds room now, and either ends by then or leaves alone what is held. Each round the place is
sought anew, so that runs which end early let the head start earlier, and nobody behind it delays it.

The wall time is the longest of a job's law, and a run ends by it, or where its end would be worth nothing any more.
Values are not looked at but for when they end (`wall_times`).

References
----------
D. Lifka, *The ANL/IBM SP scheduling system*, JSSPP 1995, which `marketsched.mechanisms.schedulers.room` has on
identical nodes. On several resources a place is one on nodes and devices, not a number of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from operator import attrgetter
from typing import Any, ClassVar

from marketsched.mechanisms.legal import Count, legal
from marketsched.mechanisms.mechanism import Event, JobId, Standing
from marketsched.mechanisms.schedulers.queue_orders import Line, Order
from marketsched.mechanisms.schedulers.wall_times import WallJob, WallTimeMarket


class ClusterEasyBackfill(WallTimeMarket):
    """A queue with a place held for its head, on a cluster (see the module).

    Not truthful: a nearer deadline shortens the wall time, and lets a job pass others.

    Parameters
    ----------
    capacity, horizon, max_concurrency, max_duration, max_value, max_delay, cluster, signals
        As of `NodesMarket`.
    order : {"arrival", "request", "class"}
        Who comes first, as of `EasyBackfill`; the wall time is that of the option with the shortest.
    classes : mapping of JobId to int, optional
        Known classes of jobs, 0 (patient) and up; others are thirds of the wall times.

    Attributes
    ----------
    reserved : dict of JobId to int
        The round from which on the head of the queue was held a place in the round just cleared: of no more than one
        job, and of none where nobody behind it could have started.

    Raises
    ------
    InvalidParameterError
        If a class is no whole number >= 0.

    Examples
    --------
    The head wants all GPUs, which are free from round 4 on; a job of 3 rounds may pass, one of 4 may not:

    >>> from marketsched.mechanisms import DeadlineValue, StatementOfWork
    >>> from marketsched.mechanisms.resources.cluster import Cluster, NodeGroup, Resource
    >>> from marketsched.mechanisms.resources.shapes import Shape
    >>> cluster = Cluster((Resource("gpu", device=True),), [NodeGroup("a", "a100", 1, {"gpu": 4})])
    >>> sizes = {"max_concurrency": 1, "max_duration": 9, "max_value": 9.0, "max_delay": 40}
    >>> market = ClusterEasyBackfill(1, 40, cluster=cluster, **sizes)
    >>> for name, gpus, rounds in ("A", 3, 3), ("head", 4, 2), ("C", 1, 4), ("D", 1, 3):
    ...     shape = Shape({"gpu": gpus}, {"a100": rounds})
    ...     plan = market.submit(name, StatementOfWork.of_shapes(1, DeadlineValue(5.0, 30), 1, [shape], revealed=False))
    >>> for name in ("A", "head", "C", "D"):
    ...     market.arrive(name)
    >>> [event.job for event in market.advance()], market.reserved
    (['A', 'D'], {'head': 4})
    """

    standing: ClassVar[Standing] = Standing(
        "baseline",
        "no prices; the first in the queue is held a place on nodes, and never delayed by those behind it",
        "wall times and needs in the reports",
    )

    @legal
    def __init__(
        self,
        capacity: Count,
        horizon: Count,
        *,
        order: Order = "arrival",
        classes: Mapping[Any, Any] | None = None,
        **nodes: Any,
    ) -> None:
        super().__init__(capacity, horizon, **nodes)
        self._line = Line(order, self.max_duration, classes)
        self._came: list[int] = []  # wall times of this round
        self.reserved: dict[JobId, int] = {}

    @staticmethod
    def wants_classes(order: str = "arrival", **_: object) -> bool:
        """Tell whether these parameters need the classes of jobs."""
        return order == "class"

    def advance(self) -> list[Event]:
        """Clear the current round and move to the next; return what leaves, then starts."""
        self._check_open("advance")
        now = self._round
        events = self._depart(now) + self._admit(now)
        self._serve_queue(now, events)
        self._line.learn(self._came)
        self._came.clear()
        return self._next_round(events)

    def _comes(self, each: WallJob, stays: bool) -> None:
        if each.means.size:
            each.place = self._line.place_of(each.x.job, each.wall)
            self._came.append(each.wall)

    def _serve_queue(self, now: int, events: list[Event]) -> None:
        """Start who is first in the queue, and who may pass its head."""
        waiting = [each for each in self._present.values() if each.run is None]
        waiting.sort(key=attrgetter("place"))
        head: WallJob | None = None
        self.reserved.clear()
        for each in waiting:
            has_room = self.nodes.may_hold(each.keys)
            if head is None:
                if not (has_room and self._start_soonest(each, now, events)):
                    head = each
            elif has_room:  # a place is sought only if it may keep somebody out
                if not self.reserved:
                    self.reserved[head.x.job] = self._hold(head, range(len(head.wants)))
                self._start_soonest(each, now, events)
        self.nodes.let_go()
