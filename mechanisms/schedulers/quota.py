"""Queues with quotas by resource and kind of node, in cohorts that lend and borrow; lenders reclaim by preemption.

Each owner's jobs wait in a queue, first in, first out. Of the queues' heads those go first that stay within their
quota, then those of the queue whose share of what is borrowed (`quota_tree`) is least once the head has started, then
the one that came first; in a tree of cohorts the same choice is made at each cohort. A head that does not fit lets
those behind it pass, but in a *strict* queue. While the first job of the queue with the least share, of equal ones the
first to come, finds no nodes, a place is held for it by wall times, and others start only beside that (``reserve``). A
head within its queue's quota that finds the nodes lent away takes them back: from queues of its tree that borrow, the
largest share first, the latest start first, and only from runs that have lasted for the minimum. A preempted job keeps
its place in its queue and starts again from the beginning. Values are not looked at but for when they end
(`nodes_queue`).

Not modelled of Kueue: priorities of workloads, preemption among borrowers, topology, partial admission.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import Any, ClassVar, Literal, NamedTuple

from marketsched.mechanisms.auctions.waiting_job import WaitingJob
from marketsched.mechanisms.errors import InvalidParameterError, shortened
from marketsched.mechanisms.legal import Amount, legal
from marketsched.mechanisms.mechanism import JobId, Standing
from marketsched.mechanisms.schedulers.fair_share import HOUR_S, ROUND_S
from marketsched.mechanisms.schedulers.node_jobs import WallJob
from marketsched.mechanisms.schedulers.nodes_queue import NodesQueue
from marketsched.mechanisms.schedulers.quota_tree import Demand, QuotaNode, quota_tree
from marketsched.mechanisms.schedulers.wall_nodes import WallNodes


class Quota(NodesQueue):
    """Queues with quotas (see the module), on identical nodes and on clusters.

    Not truthful: a nearer deadline shortens the wall time, and a second account has a queue of its own.

    Parameters
    ----------
    capacity, horizon, max_concurrency, max_duration, max_value, max_delay, cluster, signals
        As of `NodesQueue`.
    queues : mapping, optional
        By name: ``{"red": {"nominal": 8, "borrow": 4, "lend": 2, "weight": 2, "cohort": "x", "owners": ["ann"],
        "strict": true, "reclaim": false}}``; amounts are nodes, on a cluster ``{"a100": {"gpu": 8}}``. By default a
        queue has no quota, borrows and lends without limit, reclaims, and serves the owner of its own name. A scenario
        may name a file of Kueue's objects instead (`marketsched.config.kueue`).
    cohorts : mapping, optional
        By name: ``nominal``, ``borrow``, ``lend``, ``weight``, ``parent``. None: the root has the rest of the cluster.
    others : str
        The queue of owners whom no queue names. Empty: each has a queue without quota in the root.
    min_run_hours : float
        The time, hours, for which a run cannot be preempted; 1. It bounds how often a job is preempted.
    reserve : {"head", "none"}
        Whether a place is held for the first job of the queue with the least share.
    kind_weights : mapping of str to float, optional
        Weights of kinds of nodes in shares; 1 where none is given.
    owners : iterable of hashable, optional
        Owners who all need a queue where ``cohorts`` are stated.
    round_seconds : float, optional
        Length of a round; None: 300.

    Raises
    ------
    InvalidParameterError
        As of `quota_tree`, or if two queues name an owner, one has no queue, or ``others`` is none of the queues.

    Examples
    --------
    Ann's queue owns two of four nodes and lent them; she takes them back from Bob's latest run:

    >>> from marketsched.mechanisms import DeadlineValue, StatementOfWork
    >>> sizes = {"max_concurrency": 4, "max_duration": 9, "max_value": 9.0, "max_delay": 40}
    >>> market = Quota(4, 40, queues={"ann": {"nominal": 2}}, min_run_hours=0, **sizes)
    >>> for name in "AB":
    ...     report = StatementOfWork(1, 2, DeadlineValue(5.0, 30), [(1, 8, 1.0, None)])
    ...     plan = market.submit(name, report, owner="bob")
    >>> for name in "AB":
    ...     market.arrive(name)
    >>> [event.job for event in market.advance()]
    ['A', 'B']
    >>> report = StatementOfWork(2, 2, DeadlineValue(5.0, 30), [(2, 8, 1.0, None)])
    >>> plan = market.submit("C", report, owner="ann")
    >>> market.arrive("C")
    >>> [(event.kind.value, event.job) for event in market.advance()]
    [('requeue', 'B'), ('start', 'C')]
    """

    takes_back = True
    places_all: ClassVar[bool] = True
    standing: ClassVar[Standing] = Standing(
        "baseline",
        "no prices; queues with quotas lend and borrow, as ClusterQueues of Kueue do",
        "wall times and needs in the reports; owners cannot choose their queue",
        lie="a second account",
    )

    @legal
    def __init__(
        self,
        *sizes: Any,
        queues: Mapping[str, Any] | None = None,
        cohorts: Mapping[str, Any] | None = None,
        others: str = "",
        min_run_hours: Amount = 1.0,
        reserve: Literal["head", "none"] = "head",
        kind_weights: Mapping[str, Any] | None = None,
        owners: Iterable[Hashable] = (),
        round_seconds: float | None = None,
        **nodes: Any,
    ) -> None:
        super().__init__(*sizes, reserve=reserve, round_seconds=round_seconds, **nodes)
        tables = {} if queues is None else queues
        if not isinstance(tables, Mapping):
            raise InvalidParameterError(place="queues", value=queues, legal="tables by name; a file in scenarios alone")
        self.queues, self.tops = quota_tree(tables, cohorts, self.cluster, kind_weights or {})
        self._of_owner: dict[str, QuotaNode] = {}
        for name, given in tables.items():
            for owner in given.get("owners", [name]):
                if owner in self._of_owner:
                    raise InvalidParameterError(place=f"queues: {name}: owners", value=owner, legal="one queue each")
                self._of_owner[str(owner)] = self.queues[name]
        lone = owners if cohorts is not None else ()  # the root of stated cohorts has nothing to lend
        without = [str(owner) for owner in lone if str(owner) not in self._of_owner]
        if others not in self.queues and (others or without):
            legal = f"a queue ({', '.join(self.queues)}) for {', '.join(without) or 'owners without one'}"
            raise InvalidParameterError(place="others", value=others, legal=shortened(legal))
        self._others, self._min_run = others, min_run_hours * HOUR_S / (round_seconds or ROUND_S)  # rounds
        self._held: dict[JobId, tuple[QuotaNode, Demand]] = {}  # by running job
        self._due: WallJob | None = None  # for which a place was held in the last round

    @staticmethod
    def wants_owners(queues: object = None, others: str = "", **_: object) -> bool:
        """Tell whether these parameters need the names of all owners."""
        return isinstance(queues, str) and not others

    def queue_of(self, owner: Hashable) -> QuotaNode:
        """Return the queue of an owner; one that is new opens a queue, or joins that of ``others``."""
        name = str(owner)
        if name not in self._of_owner:
            root = self.tops[0]
            if self._others not in self.queues:
                self.queues[name] = QuotaNode(f"queues: {name}", root, {}, root.cells)
            self._of_owner[name] = self.queues[self._others or name]
        return self._of_owner[name]

    def serve_nodes(self, waiting: list[WallJob], nodes: WallNodes) -> None:
        """Serve the heads of the queues, as long as one can start or reclaim."""
        lines: dict[QuotaNode, list[WallJob]] = {}  # the first one to be served last
        for job in reversed(waiting):
            lines.setdefault(self.queue_of(job.x.owner), []).append(job)
        if lines and self.reserve == "head":
            self._serve_first(lines, nodes)
        heads = {queue: head for queue, line in lines.items() if (head := self._head(queue, line, nodes)) is not None}
        while (queue := self._first(heads)) is not None:
            head, line = heads.pop(queue), lines[queue]
            rows = [row for row in head.rows if queue.fits(self._demand(head.job, row))]  # others have started since
            if self._start(head.job, rows, nodes) or (not head.rows and self._reclaim(queue, head, nodes)):
                line.pop()
                due = self._due
                if not head.rows and due is not None and due.run is None and (rows := self._usable(due)):
                    nodes.hold(due, rows)  # anew: runs are gone
            elif not head.rows:
                _pass_over(queue, line)
            if (after := self._head(queue, line, nodes)) is not None:  # also where its room has gone meanwhile
                heads[queue] = after

    # -- one round ------------------------------------------------------------------------------------------

    def _serve_first(self, lines: Mapping[QuotaNode, list[WallJob]], nodes: WallNodes) -> None:
        """Hold a place for the first job of the queue with the least share; once it has nodes, it goes first."""
        queue = min(lines, key=lambda queue: (queue.share(), lines[queue][-1].turn))
        job, before, self._due = lines[queue][-1], self._due, None
        rows = self._usable(job)
        if rows and nodes.best((row, job.wants[row]) for row in rows) is None:
            self._due = job
            nodes.hold(job, rows)
        elif job is before:
            ways = ([row for row in way if queue.fits(self._demand(job, row))] for way in job.in_time(self._round))
            if any(self._start(job, way, nodes) for way in ways):
                lines[queue].pop()

    def _usable(self, job: WallJob) -> list[int]:
        """Return the options of a job that its queue could have if nobody else used anything."""
        queue = self.queue_of(job.x.owner)
        return [row for way in job.ways for row in way if queue.may_use(self._demand(job, row))]

    def _head(self, queue: QuotaNode, line: list[WallJob], nodes: WallNodes) -> Head | None:
        """Return the first job of a queue that can start or reclaim; drop from the line those that cannot now."""
        while line:
            job, options = line[-1], list[tuple[int, Demand]]()
            for borrows in False, True:
                for way in job.in_time(self._round):
                    demands = [(row, self._demand(job, row)) for row in way]
                    able = [(row, own) for row, own in demands if queue.borrows(own) == borrows and queue.fits(own)]
                    if nodes.room_for(job, [row for row, _ in able], self._round) is not None:
                        return Head.of(queue, job, [row for row, _ in able], able[0])
                    options += [] if borrows else [each for each in demands if not queue.borrows(each[1])]
            if options and queue.reclaims:
                return Head.of(queue, job, [], options[0])
            _pass_over(queue, line)
        return None

    def _first(self, heads: Mapping[QuotaNode, Head]) -> QuotaNode | None:
        """Return the queue whose head goes first; of separate trees the one whose head came first."""
        found = [queue for top in self.tops if (queue := first_below(top, heads)) is not None]
        return min(found, key=lambda queue: heads[queue].job.turn, default=None)

    def _reclaim(self, queue: QuotaNode, head: Head, nodes: WallNodes) -> bool:
        """Preempt runs that borrow for a head within its quota, and start it; tell whether that was enough."""
        row, demand = head.choice
        wanted, gone = head.job.wants[row], list[WallJob]()

        def fits() -> bool:
            return queue.fits(demand) and nodes.fits(wanted)

        for job in self._borrowers(queue, demand):
            if fits():
                break
            if borrowing(self._held[job.x.job][0], queue, demand):
                self._lift(job, nodes)
                gone.append(job)
        enough = fits()
        for job in reversed(list(gone)):  # the smallest share first: it stays if the others are enough
            self._put_back(job, nodes)
            if enough and not fits():
                self._lift(job, nodes)
            else:
                gone.remove(job)
        for job in gone:
            self._put_back(job, nodes)
            self.requeue(job.x)
            nodes.end(job)
            self._release(job)
            job.ran += 1
        if enough:
            nodes.let_go()  # quotas go before places that are held
        return enough and self._start(head.job, [row], nodes)

    def _borrowers(self, queue: QuotaNode, demand: Demand) -> list[WallJob]:
        """Return the jobs whose runs may be preempted for a queue, the largest share first, then the latest start."""
        found = []
        for job in self._there.values():
            if job.run is not None and self._round - job.run.start >= max(
                1, self._min_run
            ):  # none that starts in this round
                owner = self._held[job.x.job][0]
                if borrowing(owner, queue, demand):
                    found.append((-owner.share(), -job.run.start, -job.turn, job))
        return [job for *_, job in sorted(found, key=lambda each: each[:3])]

    def _demand(self, job: WallJob, row: int) -> Demand:
        return self.tops[0].cells.demand(int(job.options.pool[row]), job.options.total[row].tolist())

    def _start(self, job: WallJob, rows: list[int], nodes: WallNodes) -> bool:
        """Start a job of a queue with one of these options if one has room; tell whether it did."""
        if not nodes.start(job, rows, self._round):
            return False
        queue, demand = self.queue_of(job.x.owner), self._demand(job, job.row)
        queue.use(demand)
        self._held[job.x.job] = queue, demand
        return True

    def _release(self, job: WallJob) -> None:
        queue, demand = self._held.pop(job.x.job)
        queue.release(demand)

    def _leave(self, x: WaitingJob) -> None:
        if x.job in self._held:
            self._release(self._there[x.job])
        super()._leave(x)

    def _lift(self, job: WallJob, nodes: WallNodes) -> None:
        """Take a run off its nodes and its queue's use, to see what then fits."""
        queue, demand = self._held[job.x.job]
        queue.release(demand)
        assert job.run is not None
        nodes.give_back(job.run)

    def _put_back(self, job: WallJob, nodes: WallNodes) -> None:
        """Undo `_lift`."""
        queue, demand = self._held[job.x.job]
        queue.use(demand)
        assert job.run is not None
        nodes.take(job.run)


class Head(NamedTuple):
    """The job of a queue that is tried next; without ``rows`` it has to reclaim."""

    job: WallJob
    rows: list[int]  # options that have room, equally good ones
    choice: tuple[int, Demand]  # an option, and what it takes
    order: tuple[bool, float, int]  # among heads of one cohort: whether it borrows, share with it, turn

    @classmethod
    def of(cls, queue: QuotaNode, job: WallJob, rows: list[int], choice: tuple[int, Demand]) -> Head:
        """Return the head with its place among those of its cohort."""
        return cls(job, rows, choice, (queue.borrows(choice[1]), queue.share(choice[1]), job.turn))


def _pass_over(queue: QuotaNode, line: list[WallJob]) -> None:
    """Take the head from the line; from a strict queue all that wait behind it, too."""
    if queue.strict:
        line.clear()
    else:
        line.pop()


def first_below(node: QuotaNode, heads: Mapping[QuotaNode, Head]) -> QuotaNode | None:
    """Return the queue below a cohort whose head goes first; None: it has none."""
    best: tuple[tuple[bool, float, int], QuotaNode] | None = None
    for child in node.children:
        queue = first_below(child, heads) if child.children else child
        if queue is None or (head := heads.get(queue)) is None:
            continue
        order, demand = head.order, head.choice[1]
        if child is not queue:
            for at in queue.path():
                if at is child:
                    break
                demand = at.beyond(demand)
            order = child.borrows(demand), child.share(demand), head.job.turn
        if best is None or order < best[0]:
            best = order, queue
    return None if best is None else best[1]


def borrowing(owner: QuotaNode, queue: QuotaNode, demand: Demand) -> bool:
    """Tell whether a queue, or a cohort above it that is not above another queue, uses more than its quota."""
    above = set(queue.path())
    return any(at.borrows(demand, more=0.0) for at in owner.path() if at not in above)
