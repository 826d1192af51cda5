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
from numpy.typing import NDArray

from marketsched.mechanisms.auctions.arrival_market import TOLERANCE
from marketsched.mechanisms.auctions.waiting_job import NOT_YET, WaitingJob
from marketsched.mechanisms.law import DurationLaw, Signal
from marketsched.mechanisms.legal import Natural, Positive, legal
from marketsched.mechanisms.limits import LAST_ROUND
from marketsched.mechanisms.mechanism import JobId, Standing
from marketsched.mechanisms.schedulers.queue_scheduler import QueueScheduler


class Declared:
    """The declared value of a job, as of `steps_of`: of a start now, in expectation over its duration."""

    def __init__(self, law: DurationLaw, values: NDArray[np.float64], lasts: NDArray[np.int64], useful: int) -> None:
        self._law, self._values, self._lasts = law, np.append(values, 0.0), np.minimum(lasts, useful)
        self.mean = max(1.0, law.mean)
        self.worth, self.until = 0.0, 0  # of starts up to this round

    def at(self, now: int) -> float:
        """Return the expected value of a start in round ``now``, credits; rounds are asked for in order."""
        if now > self.until:
            steps = self._lasts.searchsorted(now + self._law.durations)
            later = self._lasts[steps[steps < self._lasts.size]] - self._law.durations[steps < self._lasts.size]
            self.worth, self.until = float(self._law.weights @ self._values[steps]), int(later.min(initial=LAST_ROUND))
        return self.worth


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
        *sizes: Any,
        preempt: bool = True,
        ratio: Positive = 2.0,
        most_preemptions: Natural | None = None,
        **more: Any,
    ) -> None:
        super().__init__(*sizes, **more)
        self.preempt, self.ratio, self.most_preemptions = preempt, ratio, most_preemptions
        self.takes_back = preempt
        self._held: dict[JobId, tuple[float, float]] = {}  # of running jobs: value, and value per node-round
        self._preempted: Counter[JobId] = Counter()  # how often
        self._still = 0  # a round before which the last decisions hold if no job comes or ends

    def foresee(self, x: WaitingJob, signal: Signal) -> None:
        """Note the law of the duration, and the steps of the value, too."""
        super().foresee(x, signal)
        law = x.law
        x.agreed = Declared(law, *x.steps(x.arrival + 1, x.useful), x.useful)

    def serve(self, waiting: Sequence[WaitingJob]) -> list[int | None]:
        """Start the most valuable jobs; evict jobs worth much less for them."""
        now, free = self.round, self.capacity - self.load
        found: list[int | None] = [None if now > x.last_start else NOT_YET for x in waiting]
        worth = [x.agreed.at(now) for x in waiting]
        density = [w / (x.width * x.agreed.mean) for w, x in zip(worth, waiting, strict=True)]
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
        still = (min(x.agreed.until, x.last_start) + 1 for x in waiting)
        moved = self._requeued or self._stopped or any(start != NOT_YET for start in found)
        self._still = now if moved else min(still, default=self.horizon + 1)
        return found

    def unchanged_until(self) -> int:
        """Return a round before which nothing moves if no job comes or ends: values stay, and nobody moved before."""
        return max(self._round, min(self._still, min(self._ending, default=self._still)))

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
        self._still = 0  # its nodes are free
        self._held.pop(x.job, None)
        self._preempted.pop(x.job, None)
