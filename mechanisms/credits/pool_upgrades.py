r"""Which free jobs on a cluster become regular, and in which pool.

The rule of `marketsched.mechanisms.credits.upgrades`, pool by pool. Of the pools that a late job accepts, those are
tried first in which its owner's purse, less what the owner's regular jobs there still need, lasts longest. The job
becomes regular in the first whose purse covers it and in which it is important enough: at least as important as the
jobs of the owner that the income of that pool pays for. A job that accepts several pools counts in each by its nodes.
With one purse for all pools the same holds with the credits that a job costs in each, and with all work of the owner.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Iterable
from itertools import accumulate
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from marketsched.mechanisms.credits.cluster_present import Present
from marketsched.mechanisms.credits.pools import PoolPurses
from marketsched.mechanisms.credits.purses import CREDIT
from marketsched.mechanisms.credits.upgrades import FEWEST, REMEMBERED, Spans


class Chosen(NamedTuple):
    """The pool in which a job becomes regular, by its option there."""

    row: int
    cost: float  # credits that it is expected to take
    purse: float
    threshold: float


class Left(NamedTuple):
    """Credits by purse and owner."""

    held: list[list[float]]
    needed: list[list[float]]  # by regular jobs


class Ranked(NamedTuple):
    """The remembered jobs of an owner that a purse pays for, the most important first."""

    important: list[float]
    above: list[float]  # work of the jobs up to each one
    total: float
    since: int  # the first arrival


class PoolUpgrades:
    """The last jobs of each owner, and the choice of those that become regular."""

    def __init__(self, pools: PoolPurses, spans: Spans) -> None:
        self.spans = spans
        self._pools, self._purse_of = pools, pools.purse_of.tolist()
        self._memory: dict[int, deque[tuple[float, NDArray[np.float64], int]]] = {}  # importance, work by pool, arrival
        self._ranked: dict[int, dict[int, Ranked]] = {}  # by owner and purse, until one of its jobs is remembered
        self._weights = pools.weights.of_pool  # with which they were ranked

    def remember(self, each: Present, now: int) -> None:
        """Let a job count for the thresholds of later ones: its work in credits, divided among the pools it accepts."""
        nodes, work = self._pools.nodes, np.zeros(self._pools.nodes.size)
        accepted = np.unique(each.options.pool)
        for pool in accepted.tolist():
            row = each.row_in(pool)
            work[pool] = each.costs[row] / CREDIT * each.means[row] * nodes[pool] / nodes[accepted].sum()
        self._memory.setdefault(each.owner, deque(maxlen=REMEMBERED)).append((each.important, work, now))
        self._ranked.pop(each.owner, None)

    def left(self, present: Iterable[Present], now: int, kappa: float) -> Left:
        """Return what purses hold, and what regular jobs still need of it."""
        pools = self._pools
        found = np.zeros((len(pools.every), pools.every[0].held.size))
        for each in present:
            if each.since:
                row = each.row if each.run is not None else each.row_in(each.pool)
                run = now - each.run.start if each.run is not None else 0
                rounds = max(1.0, float(each.means[row]) * kappa - run)
                pool, cost = each.prices[row]
                found[pools.purse_of[pool], each.owner] += pools.charge(pool, cost) / CREDIT * rounds
        return Left([each.credits.tolist() for each in pools.every], found.tolist())

    def chosen(self, each: Present, left: Left, now: int, kappa: float) -> Chosen | None:
        """Return where a late job becomes regular, and count what it needs; None: nowhere."""
        owner, covered = each.owner, list[tuple[float, int, int, float, float]]()
        for row, (pool, nodes) in enumerate(each.prices):
            purse, price = self._purse_of[pool], self._pools.charge(pool, nodes) / CREDIT
            has = left.held[purse][owner] - left.needed[purse][owner]
            if has >= price * each.rounds[row] * kappa:
                covered.append((-has / price, row, purse, has, price))
        for _, row, purse, has, price in sorted(covered):
            threshold = self._threshold(owner, each.prices[row][0], has, now, kappa)
            if each.important >= threshold:
                left.needed[purse][owner] += price * max(1.0, each.rounds[row] * kappa)
                return Chosen(row, price * each.rounds[row] * kappa, left.held[purse][owner], threshold)
        return None

    def _threshold(self, owner: int, pool: int, left: float, now: int, kappa: float) -> float:
        """Return the importance from which on an owner can pay for all its jobs in a pool."""
        known = self._ranking(owner, pool)
        if len(known.above) < FEWEST:
            return 0.0
        a_round = known.total / max(self.spans.shortest, now - known.since + 1.0) * kappa
        can_pay = float(self._pools.of_pool(pool).incomes[owner]) / CREDIT + max(0.0, left) / self.spans.savings_last
        place = bisect_right(known.above, can_pay / max(1e-9, a_round) * known.total)
        return known.important[place] if place < len(known.above) else 0.0

    def _ranking(self, owner: int, pool: int) -> Ranked:
        """Return the jobs of an owner that count in a pool: ranked anew where another one came, or weights moved."""
        if self._weights is not self._pools.weights.of_pool:
            self._weights, self._ranked = self._pools.weights.of_pool, {}
        purse = self._purse_of[pool]
        of_owner = self._ranked.setdefault(owner, {})
        if purse not in of_owner:
            weights = np.where(self._pools.purse_of == purse, self._weights, 0.0)
            every = ((important, float(work @ weights), at) for important, work, at in self._memory.get(owner, ()))
            own = [row for row in every if row[1] > 0]
            ranked = sorted(own, key=lambda row: -row[0])
            above, total = accumulate(work for _, work, _ in ranked), sum(work for _, work, _ in own)
            since = min((at for *_, at in own), default=0)
            of_owner[purse] = Ranked([important for important, *_ in ranked], list(above), total, since)
        return of_owner[purse]
