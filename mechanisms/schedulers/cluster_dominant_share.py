r"""Dominant resource fairness by owner, with decay, on a cluster; for jobs whose durations may be hidden.

The use of owner k of resource r is :math:`u_{kr} = \sum_t \delta^{\,now - t} a_{krt}`, with a its share of the whole
cluster in round t, and δ from the half-life. Each round the owner goes first whose dominant share, over its part s of
the machine,

.. math:: \max_r u_{kr} / s_k,

is least, anew after each start, with the job that came first. Who finds no room waits, and keeps nobody waiting. Values
are not looked at but for when they end (`nodes_queue`), and no run is taken back.

References
----------
A. Ghodsi, M. Zaharia, B. Hindman, A. Konwinski, S. Shenker and I. Stoica, *Dominant resource fairness: fair allocation
of multiple resource types*, NSDI 2011: there the shares are of what runs now, and demands may be split at will.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from marketsched.mechanisms.auctions.waiting_job import WaitingJob
from marketsched.mechanisms.law import Signal
from marketsched.mechanisms.legal import Positive, legal
from marketsched.mechanisms.mechanism import Standing
from marketsched.mechanisms.schedulers.fair_share import HOUR_S, ROUND_S
from marketsched.mechanisms.schedulers.fair_turns import FairTurns
from marketsched.mechanisms.schedulers.multifactor import kept
from marketsched.mechanisms.schedulers.node_jobs import WallJob
from marketsched.mechanisms.schedulers.turns_anew import TurnsAnew
from marketsched.mechanisms.schedulers.wall_nodes import WallNodes


class ClusterDominantShare(FairTurns):
    """Owners by their decayed dominant share (see the module).

    Not truthful: an owner who splits its jobs among several accounts has a share for each.

    Parameters
    ----------
    capacity, horizon, max_concurrency, max_duration, max_value, max_delay, cluster, signals
        As of `NodesQueue`.
    shares, newcomers, owners, kept
        As of `FairTurns`. Owners without a part come last, among themselves by their dominant shares.
    half_life_hours : float
        Of use, where ``kept`` is not given; seven days, as of `FairShare`.
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

    places_all: ClassVar[bool] = True

    @legal
    def __init__(
        self,
        *sizes: Any,
        half_life_hours: Positive = 168.0,
        round_seconds: float | None = None,
        **turns: Any,
    ) -> None:
        faded = kept(half_life_hours * HOUR_S, round_seconds or ROUND_S)  # of use, from a round to the next
        super().__init__(*sizes, round_seconds=round_seconds, **{"kept": faded, **turns})
        self._total = np.maximum(self.cluster.layout.pool_size.sum(axis=0), 1)
        self.turns.used = np.zeros((len(self.accounts), self._total.size))  # shares of the cluster, by owner

    def foresee(self, x: WaitingJob, signal: Signal) -> None:
        """Note the job, which is as important as any other."""
        super().foresee(x, signal)
        self._there[x.job].important = 0.0

    def serve_nodes(self, waiting: list[WallJob], nodes: WallNodes) -> None:
        """Start jobs in turns of their owners, anew after each start."""
        used, parts = self.turns.used.copy(), self.accounts.parts
        turns = TurnsAnew(waiting, used.max(axis=1, initial=0.0), parts, nodes)
        for job in turns:
            if nodes.start_soonest(job, self._round):
                used[job.owner] += self._size_of(job)
                turns.used[job.owner] = float(used[job.owner].max())

    def _size_of(self, job: WallJob) -> NDArray[np.float64]:
        """Return the share of the whole cluster that a run takes of each resource."""
        share: NDArray[np.float64] = job.options.total[job.row] / self._total
        return share
