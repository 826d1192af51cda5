"""Conservative backfilling: every job in the queue has a reservation, which no other may delay.

A job that arrives gets the earliest start at which its nodes are free for its wall time beside what runs and what is
reserved. Each round the reservations are made anew, in order of arrival: a job whose nodes are free earlier, as
others have ended before their wall times, moves ahead; none moves back (unless a job outlives its wall time, within
``grace`` or with ``kill: false``). Where durations are revealed this is `first-come` at price 0.

Source: A. Mu'alem and D. Feitelson, *Utilization, predictability, workloads, and user runtime estimates in scheduling
the IBM SP2 with backfilling*, TPDS 2001.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from marketsched.mechanisms.auctions.waiting_job import NOT_YET, WaitingJob
from marketsched.mechanisms.mechanism import Standing
from marketsched.mechanisms.schedulers.backfilling import plan_kernel
from marketsched.mechanisms.schedulers.queue_scheduler import QueueScheduler


class ConservativeBackfill(QueueScheduler):
    """Conservative backfilling with wall times as announced (see the module).

    With ``drop_hopeless`` a job is dropped on arrival if its reservation is too late to be worth anything.
    """

    free_of_charge: ClassVar[bool] = True
    standing: ClassVar[Standing] = Standing(
        "baseline",
        "no prices; a reservation for every job at its arrival, moved back only by runs that outlive their wall times",
        "wall times in the reports",
    )

    def serve(self, waiting: Sequence[WaitingJob]) -> list[int | None]:
        """Plan the queue; start who has this round, and drop who has none."""
        if not waiting:
            self.reserved = {}
            return []
        now, before = self.round, self.reserved
        widths = np.array([x.width for x in waiting], dtype=np.int64)
        lengths = np.array([x.agreed for x in waiting], dtype=np.int64)
        ends_at = [x.last_start if self.drop_hopeless else self.horizon for x in waiting]
        latest = np.array(ends_at, dtype=np.int64) - now
        planned = np.array([before.get(x.job, now - 1) - now for x in waiting], dtype=np.int64)
        free = np.full(max(0, int(latest.max())) + int(lengths.max()) + 1, self.capacity, dtype=np.int64)
        for end, width in self._ends():
            free[: end - now] -= width
        starts = plan_kernel(free, widths, lengths, latest, planned).tolist()
        self.reserved = {x.job: now + s for x, s in zip(waiting, starts, strict=True) if s > 0}
        none = None if self.drop_hopeless else NOT_YET
        return [now if s == 0 else NOT_YET if s > 0 else none for s in starts]
