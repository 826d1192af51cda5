r"""Multifactor priority with fair share, as Slurm documents it, and EASY backfilling behind it.

The queue is in order of priority, highest first (of equals, first come first):

.. math:: w_a \min(1, a / A) + w_f 2^{-U/S} + w_s c / C,

with a the age of the job since its arrival, A the age at which it counts most, c its nodes; U the share of its owner in
all node-rounds used, each of which counts half as much after every half-life, and S the owner's share, one over
the owners seen so far. Source: Slurm's documentation, *Multifactor Priority Plugin* (age, job size, and the classic
fair-share factor :math:`F = 2^{-U_E/S}`).
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Hashable, Sequence
from typing import Any, ClassVar

from marketsched.mechanisms.auctions.arrival_market import WaitingJob
from marketsched.mechanisms.legal import Amount, Positive, legal
from marketsched.mechanisms.mechanism import Standing
from marketsched.mechanisms.schedulers.easy_backfill import EasyBackfill

HOUR_S = 3600.0
ROUND_S = 300.0  # of a market whose rounds have no length
LARGEST_UNIT, LEAST_KEPT = 1e100, 1e-50  # sums of usage stay finite


class FairShare(EasyBackfill):
    """EASY backfilling in the order of multifactor priority (see the module).

    Not truthful: an owner who splits its jobs among several accounts has a share for each.

    Parameters
    ----------
    capacity, horizon, max_concurrency, max_duration, max_value, max_delay, kill, drop_hopeless
        As of `QueueScheduler`.
    weight_age, weight_fair_share, weight_size : float
        w_a, w_f, w_s, >= 0.
    half_life_hours, max_age_hours : float
        Of usage, and A; seven days each, Slurm's defaults.
    round_seconds : float, optional
        Length of a round; None: 300.
    """

    standing: ClassVar[Standing] = Standing(
        "baseline",
        "no prices, no truth; owners who used less go first",
        "wall times in the reports",
    )

    @legal
    def __init__(
        self,
        capacity: int,
        horizon: int,
        *,
        weight_age: Amount = 1000.0,
        weight_fair_share: Amount = 10_000.0,
        weight_size: Amount = 1000.0,
        half_life_hours: Positive = 168.0,
        max_age_hours: Positive = 168.0,
        round_seconds: float | None = None,
        **queue: Any,
    ) -> None:
        super().__init__(capacity, horizon, **queue)
        self.weights = (weight_age, weight_fair_share, weight_size)
        hours = (round_seconds or ROUND_S) / HOUR_S
        self.max_age = max_age_hours / hours  # rounds
        self.kept = max(0.5 ** (hours / half_life_hours), LEAST_KEPT)  # of usage, from a round to the next
        # By owner, in node-rounds of round 0: what decays is what a node-round of today counts beside those of before.
        self._usage: defaultdict[Hashable, float] = defaultdict(float)
        self._total, self._today = 0.0, 1.0

    @property
    def usage(self) -> dict[Hashable, float]:
        """What each owner that has asked has used, node-rounds of today."""
        return {owner: used / self._today for owner, used in self._usage.items()}

    def serve(self, waiting: Sequence[WaitingJob]) -> list[int | None]:
        """Decay usage, start who comes first, and count the nodes of this round."""
        self._today /= self.kept
        if self._today > LARGEST_UNIT:
            self._usage = defaultdict(float, {owner: used / self._today for owner, used in self._usage.items()})
            self._total, self._today = self._total / self._today, 1.0
        for x in waiting:
            self._usage[x.owner] += 0.0  # whoever has asked has a share
        found = super().serve(waiting)
        for x in self._running.values():
            self._count(x)
        for x, start in zip(waiting, found, strict=True):
            if start:
                self._count(x)
        return found

    def _count(self, x: WaitingJob) -> None:
        """Count the nodes that a job uses in this round."""
        used = self._today * x.sow.concurrency
        self._usage[x.owner] += used
        self._total += used

    def order(self, waiting: Sequence[WaitingJob]) -> list[int]:
        """Return the places of waiting jobs, highest priority first."""
        return sorted(range(len(waiting)), key=lambda i: -self.priority(waiting[i]))

    def priority(self, x: WaitingJob) -> float:
        """Return the priority of a waiting job in this round."""
        age, share, size = self.weights
        used = self._usage[x.owner] / self._total if self._total > 0 else 0.0
        waited = min(1.0, (self.round - x.arrival) / self.max_age)
        fair = math.pow(2.0, -used * len(self._usage))
        return age * waited + share * fair + size * x.sow.concurrency / self.capacity
