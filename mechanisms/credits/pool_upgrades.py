r"""Which free jobs on a cluster become regular, and in which pool.

The rule of `marketsched.mechanisms.credits.upgrades`, pool by pool. Of the pools that a late job accepts, those are
tried first in which its owner's purse, less what the owner's regular jobs there still need, lasts longest. The job
becomes regular in the first whose purse covers it and in which it is important enough: at least as important as the
jobs of the owner that the income of that pool pays for. A job that accepts several pools counts in each by its nodes.
With one purse for all pools the same holds with the credits that a job costs in each, and with all work of the owner.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from marketsched.mechanisms.credits.cluster_present import Present
from marketsched.mechanisms.credits.pools import PoolPurses
from marketsched.mechanisms.credits.purses import CREDIT
from marketsched.mechanisms.credits.upgrades import FEWEST, REMEMBERED, SAVINGS_LAST, SHORTEST


class Chosen(NamedTuple):
    """The pool in which a job becomes regular, by its option there."""

    row: int
    cost: float  # credits that it is expected to take
    purse: float
    threshold: float


class PoolUpgrades:
    """The last jobs of each owner, and the choice of those that become regular."""

    def __init__(self, pools: PoolPurses) -> None:
        self._pools = pools
        self._memory: dict[int, deque[tuple[float, NDArray[np.float64], int]]] = {}  # importance, work by pool, arrival

    def remember(self, each: Present, now: int) -> None:
        """Let a job count for the thresholds of later ones: its work in credits, divided among the pools it accepts."""
        nodes, work = self._pools.nodes, np.zeros(self._pools.nodes.size)
        accepted = np.unique(each.options.pool)
        for pool in accepted.tolist():
            row = each.row_in(pool)
            work[pool] = each.costs[row] / CREDIT * each.means[row] * nodes[pool] / nodes[accepted].sum()
        self._memory.setdefault(each.owner, deque(maxlen=REMEMBERED)).append((each.important, work, now))

    def needed(self, present: Iterable[Present], now: int, kappa: float) -> NDArray[np.float64]:
        """Return the credits that regular jobs still need, by purse and owner."""
        pools = self._pools
        found = np.zeros((len(pools.every), pools.every[0].held.size))
        for each in present:
            if each.since:
                row = each.row if each.run is not None else each.row_in(each.pool)
                run = now - each.run.start if each.run is not None else 0
                rounds = max(1.0, float(each.means[row]) * kappa - run)
                pool, cost = each.price(row)
                found[pools.purse_of[pool], each.owner] += pools.charge(pool, cost) / CREDIT * rounds
        return found

    def chosen(self, each: Present, needed: NDArray[np.float64], now: int, kappa: float) -> Chosen | None:
        """Return where a late job becomes regular, and count what it needs; None: nowhere."""
        pools, of = each.options.pool.tolist(), self._pools.purse_of
        purses = [float(self._pools.of_pool(pool).held[each.owner]) / CREDIT for pool in pools]
        left = [purse - float(needed[of[pool], each.owner]) for purse, pool in zip(purses, pools, strict=True)]
        costs = [self._pools.charge(*each.price(row)) / CREDIT for row in range(len(pools))]
        for row in sorted(range(len(pools)), key=lambda row: (-left[row] / costs[row], row)):
            cost = float(costs[row] * each.means[row] * kappa)
            if left[row] < cost:
                continue
            threshold = self._threshold(each.owner, pools[row], left[row], now, kappa)
            if each.important >= threshold:
                needed[of[pools[row]], each.owner] += costs[row] * max(1.0, float(each.means[row]) * kappa)
                return Chosen(row, cost, purses[row], threshold)
        return None

    def _threshold(self, owner: int, pool: int, left: float, now: int, kappa: float) -> float:
        """Return the importance from which on an owner can pay for all its jobs in a pool."""
        paid = self._pools.purse_of == self._pools.purse_of[pool]
        weights = np.where(paid, self._pools.weights.of_pool, 0.0)
        known = self._memory.get(owner, ())
        own = [(important, float(work @ weights), at) for important, work, at in known if work[paid].any()]
        if len(own) < FEWEST:
            return 0.0
        total = sum(work for _, work, _ in own)
        a_round = total / max(SHORTEST, now - min(at for *_, at in own) + 1.0) * kappa
        can_pay = float(self._pools.of_pool(pool).incomes[owner]) / CREDIT + max(0.0, left) / SAVINGS_LAST
        most, above = can_pay / max(1e-9, a_round) * total, 0.0
        for important, work, _ in sorted(own, key=lambda row: -row[0]):
            above += work
            if above > most:
                return important
        return 0.0
