"""Jobs of the highest declared value first: an upper reference under true reports.

Jobs are served by declared value, if they start now and take their expected time, over nodes and expected rounds,
highest first. Where nodes are missing, running jobs of lower density are evicted, the lowest first, if the newcomer is
worth ``ratio`` times what they are worth together. They wait again if they can restart. There are no prices, so that
every owner gains by declaring more.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from marketsched.mechanisms.auctions.arrival_market import TOLERANCE
from marketsched.mechanisms.auctions.waiting_job import NOT_YET, WaitingJob
from marketsched.mechanisms.law import Signal
from marketsched.mechanisms.legal import Natural, Positive, legal
from marketsched.mechanisms.mechanism import JobId, Standing
from marketsched.mechanisms.schedulers.queue_scheduler import QueueScheduler


class LargestValueFirst(QueueScheduler):
    """The highest declared value per node-round first, with preemption (see the module).

    Parameters
    ----------
    capacity, horizon, max_concurrency, max_duration, max_value, max_delay, kill
        As of `QueueScheduler`; jobs that are worth nothing any more are dropped.
    preempt : bool
        Whether running jobs may be evicted for a more valuable one.
    ratio : float
        How many times the value of those that are evicted it must be worth.
    most_preemptions : int, optional
        A job that has been evicted so often is left alone. None: a job may lose its run again and again.
    """

    free_of_charge: ClassVar[bool] = True
    standing: ClassVar[Standing] = Standing(
        "baseline",
        "no prices: welfare if every report were true; jobs are evicted for more valuable ones",
        "true values",
        lie="a larger value",
    )

    @legal
    def __init__(
        self,
        capacity: int,
        horizon: int,
        *,
        preempt: bool = True,
        ratio: Positive = 2.0,
        most_preemptions: Natural | None = None,
        **sizes: Any,
    ) -> None:
        super().__init__(capacity, horizon, **sizes)
        self.preempt, self.ratio, self.most_preemptions = preempt, ratio, most_preemptions
        self.takes_back = preempt
        self._held: dict[JobId, tuple[float, float]] = {}  # of running jobs: value, and value per node-round
        self._preempted: Counter[JobId] = Counter()  # how often

    def foresee(self, x: WaitingJob, signal: Signal) -> None:
        """Note the law of the duration, and the steps of the value, too."""
        super().foresee(x, signal)
        law = x.law
        x.agreed = law, x.steps(x.arrival + 1, x.useful)

    def serve(self, waiting: Sequence[WaitingJob]) -> list[int | None]:
        """Start the most valuable jobs; evict jobs worth much less for them."""
        now, free = self.round, self.capacity - self.load
        worth = [self._worth(x) for x in waiting]
        found: list[int | None] = [None if now > x.last_start else NOT_YET for x in waiting]
        density = [w / (x.width * max(1.0, x.agreed[0].mean)) for w, x in zip(worth, waiting, strict=True)]
        for i in sorted(range(len(waiting)), key=lambda i: -density[i]):
            if worth[i] <= TOLERANCE:
                break
            x = waiting[i]
            for victim in self._victims(x.width - free, worth[i], density[i]):
                free += victim.width
                self._preempted[victim.job] += 1
                (self.requeue if victim.restarts else self.stop)(victim)
            if x.width <= free:
                found[i] = now
                free -= x.width
                self._held[x.job] = (worth[i], density[i])
        return found

    def _worth(self, x: WaitingJob) -> float:
        """Return the expected value of a start now, credits."""
        (durations, weights), (values, lasts) = x.agreed
        ends = self.round + durations
        steps = np.minimum(lasts.searchsorted(ends), values.size - 1)
        return float(weights @ np.where(ends <= min(x.useful, lasts[-1]), values[steps], 0.0)) if values.size else 0.0

    def ran(self, x: WaitingJob) -> bool:
        """Tell whether a job runs, or did before its run was taken back."""
        return super().ran(x) or x.job in self._preempted

    def _victims(self, missing: int, worth: float, density: float) -> list[WaitingJob]:
        """Return the jobs to evict for so many more nodes; none, if that is not worth it or not enough."""
        if missing <= 0 or not self.preempt:
            return []
        victims, lost, most = [], 0.0, self.most_preemptions
        runs = [x for x in self._running.values() if most is None or self._preempted[x.job] < most]
        for x in sorted(runs, key=lambda x: self._held[x.job][1]):
            own, its_density = self._held[x.job]
            lost += own
            if its_density >= density or worth < self.ratio * lost:
                return []
            victims.append(x)
            missing -= x.width
            if missing <= 0:
                return victims
        return []

    def _leave(self, x: WaitingJob) -> None:
        super()._leave(x)
        self._held.pop(x.job, None)
        self._preempted.pop(x.job, None)
