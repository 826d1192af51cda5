r"""Purses on a cluster, one for each pool or one for all, and what a job costs.

With a purse for each pool a credit buys one of its nodes for a round. A job costs its largest share of a node in any
resource, of the smallest node of the pool that can hold it, times its tasks; a share of a device counts as all of it.
Each pool p has an income of :math:`r N_p s` a round for an owner with the part s.

So a node that regular runs leave too little of for a job of one task and cost f is paid more than 1 - f for, and a job
with :math:`f < 1 - r` that is regular in a pool whose nodes can all hold it starts within

.. math:: X + \lfloor \textstyle\sum_k w_{kp}(u + X) / (N_p (1 - f - r)) \rfloor

rounds, as under `marketsched.mechanisms.credits.credits` (docs/mathematics.md).

With one purse for all pools a node of pool p costs :math:`\pi_p` credits a round (`pool_weights`), and the income is
:math:`r N s`. It promises no bound: everybody may spend all of it on one pool.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from marketsched.mechanisms.credits.pool_weights import PoolWeights
from marketsched.mechanisms.credits.purses import CREDIT, Purses
from marketsched.mechanisms.resources.cluster import Cluster
from marketsched.mechanisms.resources.node_shares import NodeShares, holding
from marketsched.mechanisms.resources.shapes import Options
from marketsched.mechanisms.schedulers.turns import Accounts

PursesOf = Literal["pool", "one"]


class PoolPurses:
    """A purse of each owner for each pool, or one for all pools; ``income``, ``carry`` and ``start`` as of `Purses`.

    ``every`` has the purses; ``purse_of`` says by pool which of them pays, ``nodes`` how many nodes it has, and
    ``weights`` what a node costs: 1 with a purse for each.
    """

    def __init__(
        self, accounts: Accounts, cluster: Cluster, income: float, carry: float, start: float, of: PursesOf = "pool"
    ) -> None:
        self._cluster, self._income, self._one = cluster, income, of == "one"
        self.nodes = np.diff(cluster.layout.pool_begin)
        sizes = [cluster.nodes] if self._one else self.nodes.tolist()
        self.every = [Purses(accounts, int(n), income, carry, start) for n in sizes]
        self.purse_of = np.zeros(self.nodes.size, np.int64) if self._one else np.arange(self.nodes.size)
        self.weights = PoolWeights(cluster)
        self._shares = NodeShares(cluster)

    def of_pool(self, pool: int) -> Purses:
        """Return the purses that pay in a pool."""
        return self.every[int(self.purse_of[pool])]

    def pay_income(self, now: int) -> None:
        """Begin a round."""
        for purses in self.every:
            purses.pay_income()
        if self._one:
            self.weights.renew(now)

    def learn(self, options: Options, means: NDArray[np.float64]) -> None:
        """Note a job that has left, for the weights."""
        if self._one and means.size:
            self.weights.learn(options, means)

    def charge(self, pool: int, cost: int) -> int:
        """Return what a round that costs so much of a pool's nodes costs now, millionths of a credit."""
        return math.ceil(cost * self.weights.of_pool[pool]) if self._one else cost

    def can_pay(self, owner: int, pool: int, cost: int) -> bool:
        """Tell whether an owner can pay for that."""
        return bool(self.of_pool(pool).held[owner] >= self.charge(pool, cost))

    def pay(self, owner: int, pool: int, cost: int) -> int:
        """Take it, if it is there; return it, millionths of a credit, or 0."""
        if not self.can_pay(owner, pool, cost):
            return 0
        charged, purses = self.charge(pool, cost), self.of_pool(pool)
        purses.held[owner] -= charged
        purses.spent[owner] += charged
        return charged

    def table(self, owners: Sequence[str], pools: Sequence[str]) -> dict[str, list[Any]]:
        """Return the purses as a table: a row for each pool and owner, by their names; credits.

        The pool of a purse for all of them is ``all``.
        """
        columns = ("incomes", "caps", "held", "spent", "expired")
        found: dict[str, list[Any]] = {name: [] for name in ("owner", "pool", *columns)}
        for pool, each in zip(["all"] if self._one else pools, self.every, strict=True):
            each.follow()
            found["owner"] += owners
            found["pool"] += [pool] * len(owners)
            for name in columns:
                found[name] += (getattr(each, name) / CREDIT).tolist()
        return found

    def costs(self, options: Options) -> NDArray[np.int64]:
        """Return what each option costs a round, millionths of a node of its pool, shape (n,)."""
        return np.ceil(CREDIT * options.tasks * self._shares.of(options)).astype(np.int64)

    def longest_wait(self, pool: int, demand: NDArray[np.int64], tasks: int, cost: int, ahead: int) -> float:
        """Return the rounds within which a job that is regular in a pool starts; nan: it has no bound.

        As long as no start elsewhere is worth more to it.
        """
        if self._one:
            return math.nan
        purses, nodes = self.of_pool(pool), int(self.nodes[pool])
        left = nodes * (1.0 - cost / CREDIT - self._income)
        if tasks > 1 or left <= 0 or len(holding(self._cluster.layout, pool, demand)) < nodes:
            return math.nan
        most = np.minimum(purses.held + ahead * purses.incomes, np.maximum(purses.held, purses.caps)).sum() / CREDIT
        return float(ahead + math.floor(most / left + 1e-9))
