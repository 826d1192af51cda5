r"""Dominant resource fairness by owner, with decay, on a cluster; for jobs whose durations may be hidden.

The use of owner k of resource r is :math:`u_{kr} = \sum_t \delta^{\,now - t} a_{krt}`, with a its share of the whole
cluster in round t, and δ from the half-life. Each round the owner goes first whose dominant share, over its part s of
the machine,

.. math:: \max_r u_{kr} / s_k,

is least, anew after each start, with the job that came first. Who finds no room waits, and keeps nobody waiting. Values
are not looked at but for when they end (`wall_times`), and no run is taken back.

References
----------
A. Ghodsi, M. Zaharia, B. Hindman, A. Konwinski, S. Shenker and I. Stoica, *Dominant resource fairness: fair allocation
of multiple resource types*, NSDI 2011: there the shares are of what runs now, and demands may be split at will.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from marketsched.mechanisms.auctions.waiting_job import WaitingJob
from marketsched.mechanisms.legal import Count, Positive, legal
from marketsched.mechanisms.mechanism import Event, Standing
from marketsched.mechanisms.resources.nodes import Nodes
from marketsched.mechanisms.schedulers.by_shares import BySharesMarket
from marketsched.mechanisms.schedulers.fair_share import HOUR_S, ROUND_S
from marketsched.mechanisms.schedulers.multifactor import kept
from marketsched.mechanisms.schedulers.turns import Accounts
from marketsched.mechanisms.schedulers.turns_anew import TurnsAnew
from marketsched.mechanisms.schedulers.wall_times import WallJob, WallTimeMarket


class ClusterDominantShare(WallTimeMarket, BySharesMarket):
    """Owners by their decayed dominant share (see the module).

    Not truthful: an owner who splits its jobs among several accounts has a share for each.

    Parameters
    ----------
    capacity, horizon, max_concurrency, max_duration, max_value, max_delay, cluster, signals
        As of `NodesMarket`.
    shares, newcomers, owners
        As of `Accounts`. Owners without a part come last, among themselves by their dominant shares.
    half_life_hours : float
        Of use; seven days, as of `FairShare`.
    round_seconds : float, optional
        Length of a round; None: 300.

    Examples
    --------
    Ann's jobs take half of the cores each, Bob's a quarter of the GPUs: after his first one his share is still less.

    >>> from marketsched.mechanisms import DeadlineValue, StatementOfWork
    >>> from marketsched.mechanisms.resources.cluster import Cluster, NodeGroup, Resource
    >>> from marketsched.mechanisms.resources.shapes import Shape
    >>> parts = (Resource("cpu"), Resource("gpu", device=True))
    >>> cluster = Cluster(parts, [NodeGroup("a", "a100", 1, {"cpu": 8, "gpu": 4})])
    >>> sizes = {"max_concurrency": 1, "max_duration": 9, "max_value": 9.0, "max_delay": 40}
    >>> market = ClusterDominantShare(1, 40, owners=["ann", "bob"], cluster=cluster, **sizes)
    >>> jobs = [(f"{owner}-{i}", owner) for owner in ("ann", "bob") for i in (1, 2, 3)]
    >>> for name, owner in jobs:
    ...     shape = Shape({"cpu": 4} if owner == "ann" else {"cpu": 1, "gpu": 1}, {"a100": 3})
    ...     report = StatementOfWork.of_shapes(1, DeadlineValue(5.0, 30), 1, [shape], revealed=False)
    ...     plan = market.submit(name, report, owner=owner)
    >>> for name, _ in jobs:
    ...     market.arrive(name)
    >>> [event.job for event in market.advance()]
    ['ann-1', 'bob-1', 'bob-2', 'bob-3']
    """

    standing: ClassVar[Standing] = Standing(
        "baseline",
        "no prices; the owner goes first whose use of the resource that it used most, decayed, is least for its share",
        "accounts with shares; wall times and needs in the reports",
        lie="a second account",
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
        half_life_hours: Positive = 168.0,
        round_seconds: float | None = None,
        **nodes: Any,
    ) -> None:
        super().__init__(capacity, horizon, **nodes)
        self.accounts = Accounts(shares, newcomers, owners)
        self._kept = kept(half_life_hours * HOUR_S, round_seconds or ROUND_S)  # of use, from a round to the next
        self._total = np.maximum(self.cluster.layout.pool_size.sum(axis=0), 1)
        self.used = np.zeros((len(self.accounts), self._total.size))  # shares of the cluster times rounds, by owner

    def advance(self) -> list[Event]:
        """Clear the current round and move to the next; return what leaves, then starts."""
        self._check_open("advance")
        now = self._round
        events = self._depart(now) + self._admit(now)
        new = len(self.accounts) - len(self.used)
        self.used = np.concatenate([self._kept * self.used, np.zeros((new, self._total.size))])
        waiting = (each for each in self._present.values() if each.run is None)
        turns = DominantTurns(waiting, self.used, self.accounts.parts, self.nodes)
        for each in turns:
            if self._start_soonest(each, now, events):
                turns.starts_with(each, self._share_of(each))
        for each in self._present.values():
            if each.run is not None:
                self.used[each.owner] += self._share_of(each)
        return self._next_round(events)

    def _account_of(self, x: WaitingJob) -> int:
        return self.accounts.number_of(x.owner)

    def _share_of(self, each: WallJob) -> NDArray[np.float64]:
        """Return the share of the whole cluster that a run takes of each resource."""
        found: NDArray[np.float64] = each.options.total[each.row] / self._total
        return found


class DominantTurns(TurnsAnew[WallJob]):
    """Equally important jobs by the dominant shares of their owners, then by arrival; see `TurnsAnew`."""

    def __init__(
        self, waiting: Iterable[WallJob], used: NDArray[np.float64], parts: NDArray[np.float64], nodes: Nodes
    ) -> None:
        super().__init__(waiting, used.max(axis=1, initial=0.0), parts, nodes)
        self._by_resource = used.copy()

    def starts_with(self, each: WallJob, share: NDArray[np.float64]) -> None:
        """Count the shares of a job that has started."""
        self._by_resource[each.owner] += share
        self._used[each.owner] = float(self._by_resource[each.owner].max())
