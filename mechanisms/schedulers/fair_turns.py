"""Fair turns: owners in turn by decayed use over share, and inside an owner its own order (`turns`).

Each round the waiting jobs are tried in that order, and whoever fits beside the reservation for the first that does
not (`room`) starts; no run is taken back. On a cluster turns are anew after each start, use is a job's largest share of
the cluster, as nodes, and a job takes the place that leaves least over among the shapes and pools in which a start now
is worth most to it. There are no prices. Values of different owners are never compared, so there is no scale to
inflate, and ranks do in place of values.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from marketsched.mechanisms.auctions.waiting_job import WaitingJob
from marketsched.mechanisms.law import Signal
from marketsched.mechanisms.legal import PositiveShare, legal
from marketsched.mechanisms.mechanism import Standing
from marketsched.mechanisms.schedulers.node_jobs import WallJob
from marketsched.mechanisms.schedulers.nodes_queue import NodesQueue
from marketsched.mechanisms.schedulers.turns import Accounts, BySharesMarket, Turns
from marketsched.mechanisms.schedulers.turns_anew import TurnsAnew
from marketsched.mechanisms.schedulers.wall_nodes import WallNodes

KEPT = 0.99  # of use, a quarter of an hour


class FairTurns(NodesQueue, BySharesMarket):
    """Owners in turn, each with its own order of importance (see the module).

    Not truthful: one that names a nearer deadline, or another mean, than the true one may start earlier.

    Parameters
    ----------
    capacity, horizon, max_concurrency, max_duration, max_value, max_delay, drop_hopeless, stop_at_deadline
        As of `QueueScheduler`.
    reserve, most_overtaken, cluster
        As of `NodesQueue`; on a cluster no place is held for anybody.
    shares, newcomers, owners
        As of `Accounts`. A scenario gives the owners of its jobs, so that without ``shares`` each of them has an equal
        part, and an account that is opened later has none.
    kept : float, optional
        The part of use that is left a round later; None: .99 of a quarter of an hour's.
    kill : bool
        Whether a run ends at its wall time.

    Examples
    --------
    Ann has used the machine, so Bob goes first, with the job that matters more to him:

    >>> from marketsched.mechanisms import DeadlineValue, StatementOfWork
    >>> market = FairTurns(1, 9, owners=["ann", "bob"], max_concurrency=1, max_duration=2, max_value=9.0, max_delay=9)
    >>> def come(name, owner, value):
    ...     report = StatementOfWork(market.round, 1, DeadlineValue(value, 8), [(market.round, 1, 1.0, None)])
    ...     plan = market.submit(name, report, owner=owner)
    >>> come("A", "ann", 9.0)
    >>> market.arrive("A")
    >>> [event.job for event in market.advance()], market.complete("A").payment
    (['A'], 0.0)
    >>> come("B", "ann", 9.0)
    >>> come("C", "bob", 1.0)
    >>> come("D", "bob", 2.0)
    >>> for name in "BCD":
    ...     market.arrive(name)
    >>> [event.job for event in market.advance()]
    ['D']
    """

    standing: ClassVar[Standing] = Standing(
        "tested",
        "no prices; owners who used less of their share go first, with the job that matters most to them: only the "
        "order of an owner's own values over work counts, never their size",
        "accounts with shares, wall times in the reports, and each owner's own order",
    )

    @legal
    def __init__(
        self,
        *sizes: Any,
        shares: Mapping[str, Any] | None = None,
        newcomers: str = "",
        owners: Iterable[Hashable] | None = None,
        kept: PositiveShare | None = None,
        **queue: Any,
    ) -> None:
        super().__init__(*sizes, **queue)
        self.accounts = Accounts(shares, newcomers, owners)
        self.turns = Turns(self.accounts, self.unit.kept(KEPT) if kept is None else kept)
        self._of: dict[Hashable, tuple[int, float]] = {}  # of present jobs: the owner's number, and the importance

    def foresee(self, x: WaitingJob, signal: Signal) -> None:
        """Note whose the job is, and how much it matters to its owner, too."""
        super().foresee(x, signal)
        number = self.accounts.number_of(x.owner)
        if self.nodes is None:
            self._of[x.job] = number, x.importance
        else:
            self._there[x.job].owner = number

    def serve(self, waiting: Sequence[WaitingJob]) -> list[int | None]:
        """Start whom the room of this round takes, and count what runs."""
        self.turns.fade()
        found = super().serve(waiting)
        runs = [*self._running.values(), *(x for x, start in zip(waiting, found, strict=True) if start)]
        self.turns.count(*self._use_of(runs))
        return found

    def pass_rounds(self, until: int, ahead: int = 1) -> None:
        """Let the rounds before ``until`` go by; there are no prices."""
        count, self._round, self._any_arrival = until - self._round, until, False
        self.turns.pass_rounds(*self._use_of(self._running.values()), count)

    def _use_of(self, runs: Iterable[WaitingJob]) -> tuple[NDArray[np.int64], NDArray[Any]]:
        """Return whose each run is, and its nodes."""
        if self.nodes is not None:
            there = [self._there[x.job] for x in sorted(runs, key=lambda x: (x.arrival, x.order))]
            sizes = np.array([self._size_of(job) for job in there])
            owners = np.array([job.owner for job in there], np.int64)
            return owners, sizes.reshape(owners.size, *self.turns.used.shape[1:])
        owners, nodes = np.array([(self._of[x.job][0], x.width) for x in runs], np.int64).reshape(-1, 2).T
        return owners.copy(), nodes.copy()

    def _size_of(self, job: WallJob) -> Any:
        """Return what a run on nodes counts as use."""
        return job.size

    def ranked(self, waiting: Sequence[WaitingJob]) -> Iterable[int]:
        """Return the places of waiting jobs: owners in turn, and inside an owner what matters most."""
        owners, important = zip(*(self._of[x.job] for x in waiting), strict=True)
        order: list[int] = self.turns.order(np.array(owners), np.array(important)).tolist()
        return order

    def serve_nodes(self, waiting: list[WallJob], nodes: WallNodes) -> None:
        """Start jobs in turns of their owners, anew after each start."""
        turns = TurnsAnew(waiting, self.turns.used, self.accounts.parts, nodes)
        for job in turns:
            if nodes.start(job, job.worth_most(self._round), self._round):
                turns.starts(job)

    def _leave(self, x: WaitingJob) -> None:
        super()._leave(x)
        self._of.pop(x.job, None)
