"""Fair turns on a cluster of several resources and kinds of nodes, for jobs whose durations may be hidden.

The rule is that of `marketsched.mechanisms.schedulers.fair_turns`, on nodes (`nodes_market`): each round the owner that
used least for its share goes first, with its most important job, anew after each start. Use is in nodes, by the largest
share of the whole cluster that a job takes, and fades. A job that finds no room waits, and keeps nobody waiting. It
takes the place that leaves least over, of the shapes and pools in which a start now is worth most to it. No run is
taken back.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import Annotated, Any, ClassVar

import numpy as np

from marketsched.mechanisms.auctions.waiting_job import WaitingJob
from marketsched.mechanisms.legal import Count, Finite, Maybe, PositiveShare, legal
from marketsched.mechanisms.mechanism import Event, Standing
from marketsched.mechanisms.resources.known import Known
from marketsched.mechanisms.schedulers.by_shares import BySharesMarket
from marketsched.mechanisms.schedulers.fair_turns import KEPT
from marketsched.mechanisms.schedulers.nodes_market import NodeJob, NodesMarket, facts_of
from marketsched.mechanisms.schedulers.turns import Accounts, Turns
from marketsched.mechanisms.schedulers.turns_anew import TurnsAnew
from marketsched.mechanisms.unit import Unit


class ClusterFairTurns(NodesMarket[NodeJob], BySharesMarket):
    """Owners in turn on a cluster, each with its own order of importance (see the module).

    Not truthful: one that names a nearer deadline, or another mean, than the true one may start earlier.

    Parameters
    ----------
    capacity, horizon, max_concurrency, max_duration, max_value, max_delay, cluster, signals
        As of `NodesMarket`.
    shares, newcomers, owners
        As of `Accounts`. A scenario gives the owners of its jobs, so that without ``shares`` each of them has an equal
        part, and an account that is opened later has none.
    kept : float, optional
        The part of use that is left a round later; None: .99 of a quarter of an hour's.
    round_seconds : float, optional
        Length of a round; None: a quarter of an hour.

    Examples
    --------
    Two jobs of Ann and one of Bob want half of the GPUs of the node each; Bob's goes before Ann's lesser one:

    >>> from marketsched.mechanisms import DeadlineValue, StatementOfWork
    >>> from marketsched.mechanisms.resources.cluster import Cluster, NodeGroup, Resource
    >>> from marketsched.mechanisms.resources.shapes import Shape
    >>> cluster = Cluster((Resource("gpu", device=True),), [NodeGroup("a", "a100", 1, {"gpu": 4})])
    >>> sizes = {"max_concurrency": 1, "max_duration": 9, "max_value": 9.0, "max_delay": 40}
    >>> market = ClusterFairTurns(1, 40, owners=["ann", "bob"], cluster=cluster, **sizes)
    >>> for name, owner, value in ("A", "ann", 2.0), ("B", "ann", 9.0), ("C", "bob", 0.1):
    ...     shape = Shape({"gpu": 2}, {"a100": (2, 8)})
    ...     report = StatementOfWork.of_shapes(1, DeadlineValue(value, 30), 1, [shape], (0.5, 0.5), revealed=False)
    ...     plan = market.submit(name, report, owner=owner)
    >>> for name in "ABC":
    ...     market.arrive(name)
    >>> [event.job for event in market.advance()]
    ['B', 'C']
    """

    standing: ClassVar[Standing] = Standing(
        "tested",
        "no prices; owners who used less of their share go first, with the job that matters most to them: only the "
        "order of an owner's own values over work counts, never their size",
        "accounts with shares, and each owner's own order",
    )

    @legal
    def __init__(
        self,
        capacity: Count,
        horizon: Count,
        *,
        shares: Mapping[str, Any] | None = None,
        newcomers: str = "",
        owners: Iterable[Hashable] | None = None,
        kept: PositiveShare | None = None,
        round_seconds: Annotated[float | None, Maybe(Finite("(0, inf)"))] = None,
        **nodes: Any,
    ) -> None:
        super().__init__(capacity, horizon, **nodes)
        self.accounts = Accounts(shares, newcomers, owners)
        self.turns = Turns(self.accounts, Unit.of(round_seconds).kept(KEPT) if kept is None else kept)

    def advance(self) -> list[Event]:
        """Clear the current round and move to the next; return what leaves, then starts."""
        self._check_open("advance")
        now = self._round
        events = self._depart(now) + self._admit(now)
        self.turns.fade()
        waiting = (each for each in self._present.values() if each.run is None)
        turns = TurnsAnew(waiting, self.turns.used, self.accounts.parts, self.nodes)
        for each in turns:
            if self._start(each, each.worth_most(now), now, events):
                turns.starts(each)
        runs = [each for each in self._present.values() if each.run is not None]
        self.turns.count(np.array([each.owner for each in runs], np.int64), np.array([each.size for each in runs]))
        return self._next_round(events)

    def _present_of(self, x: WaitingJob, known: Known) -> NodeJob:
        return NodeJob(**facts_of(x, self.accounts.number_of(x.owner), known, self.cluster))
