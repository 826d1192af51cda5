r"""Purses by pool of a cluster, and what a job costs there.

A credit of a pool buys one of its nodes for a round. A job costs its largest share of a node in any resource, of the
smallest node of the pool that can hold it, times its tasks; a share of a device counts as all of it. Each pool p has
an income of :math:`r N_p s` a round for an owner with the part s.

So a node that regular runs leave too little of for a job of one task and cost f is paid more than 1 - f for, and a job
with :math:`f < 1 - r` that is regular in a pool whose nodes can all hold it starts within

.. math:: X + \lfloor \textstyle\sum_k w_{kp}(u + X) / (N_p (1 - f - r)) \rfloor

rounds, as under `marketsched.mechanisms.credits.credits` (docs/mathematics.md). A purse for all pools would promise
nothing: everybody could spend it on one pool.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from marketsched.mechanisms.credits.purses import CREDIT, Purses
from marketsched.mechanisms.resources.cluster import Cluster
from marketsched.mechanisms.resources.shapes import Options
from marketsched.mechanisms.schedulers.turns import Accounts


class PoolPurses:
    """A purse of each owner for each pool.

    Parameters
    ----------
    accounts : Accounts
        Who the owners are.
    cluster : Cluster
        Whose pools.
    income, carry, start : float
        r, K and the part of the cap that is there in the first round, as of `Purses`.

    Attributes
    ----------
    of_pool : list of Purses
        By the number of the pool.
    nodes : ndarray of int, shape (n_pools,)
        Nodes of each.
    """

    def __init__(self, accounts: Accounts, cluster: Cluster, income: float, carry: float, start: float) -> None:
        self._cluster, self._income = cluster, income
        self.nodes = np.diff(cluster.layout.pool_begin)
        self.of_pool = [Purses(accounts, int(n), income, carry, start) for n in self.nodes]

    def pay_income(self) -> None:
        """Begin a round."""
        for purses in self.of_pool:
            purses.pay_income()

    def can_pay(self, owner: int, pool: int, cost: int) -> bool:
        """Tell whether an owner has so many millionths of a credit in a pool."""
        return bool(self.of_pool[pool].held[owner] >= cost)

    def pay(self, owner: int, pool: int, cost: int) -> bool:
        """Take them, if they are there; tell whether they were."""
        if not self.can_pay(owner, pool, cost):
            return False
        self.of_pool[pool].held[owner] -= cost
        self.of_pool[pool].spent[owner] += cost
        return True

    def table(self, owners: Sequence[str], pools: Sequence[str]) -> dict[str, list[Any]]:
        """Return the purses as a table: a row for each pool and owner, by their names; credits."""
        columns = ("incomes", "caps", "held", "spent", "expired")
        found: dict[str, list[Any]] = {name: [] for name in ("owner", "pool", *columns)}
        for pool, each in zip(pools, self.of_pool, strict=True):
            each.follow()
            found["owner"] += owners
            found["pool"] += [pool] * len(owners)
            for name in columns:
                found[name] += (getattr(each, name) / CREDIT).tolist()
        return found

    def costs(self, options: Options) -> NDArray[np.int64]:
        """Return what each option costs a round, millionths of a credit of its pool, shape (n,)."""
        layout, found = self._cluster.layout, np.zeros(options.pool.size, np.int64)
        device = np.maximum(layout.device_parts, 1)
        for i, pool in enumerate(options.pool.tolist()):
            demand = options.demand[i]
            charged = np.where(layout.device_parts > 0, -(-demand // device) * device, demand)
            size = self._sizes(pool, demand)
            share = np.where(size > 0, charged / np.maximum(size, 1), 0.0).max()
            found[i] = math.ceil(CREDIT * int(options.tasks[i]) * min(1.0, float(share)))
        return found

    def longest_wait(self, pool: int, demand: NDArray[np.int64], tasks: int, cost: int, ahead: int) -> float:
        """Return the rounds within which a job that is regular in a pool starts; nan: it has no bound."""
        purses, nodes = self.of_pool[pool], int(self.nodes[pool])
        left = nodes * (1.0 - cost / CREDIT - self._income)
        if tasks > 1 or left <= 0 or self._sizes(pool, demand, count=True) < nodes:
            return math.nan
        most = np.minimum(purses.held + ahead * purses.incomes, np.maximum(purses.held, purses.caps)).sum() / CREDIT
        return float(ahead + math.floor(most / left + 1e-9))

    def _sizes(self, pool: int, demand: NDArray[np.int64], *, count: bool = False) -> NDArray[np.int64] | int:
        """Return the least size, by resource, of the pool's nodes that can hold such a task; or how many these are."""
        layout = self._cluster.layout
        sizes = layout.size[layout.pool_begin[pool] : layout.pool_begin[pool + 1]]
        able = sizes[(sizes >= demand).all(axis=1)]
        return len(able) if count else able.min(axis=0)
