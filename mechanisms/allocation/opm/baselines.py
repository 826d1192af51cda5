"""Schedulers that OPM is compared with: fair, deadline-aware, and a fair one that sees the machines' state.

All keep budgets strictly: a job gets no machine that costs more than what is left. They take what `MachineScheduler`
takes. The fourth baseline of the OPM paper, OPM without estimation, is ``Opm(..., estimate=False)``.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from marketsched.mechanisms.allocation.opm.jobs import JobOffer
from marketsched.mechanisms.allocation.opm.kernels import DEADLINE, DONE, JOB, serve_kernel, share_kernel, spare_kernel
from marketsched.mechanisms.allocation.opm.machine_scheduler import MachineScheduler
from marketsched.mechanisms.arrays import bool_array


class FairScheduler(MachineScheduler):
    """Shares machines equally among the jobs in the cluster whose budget has not run out.

    With ``J`` open jobs and ``M`` machines, every job gets ``M // J`` machines or one more, the same
    ones as long as no job comes or goes; with more jobs than machines, jobs take turns.

    Examples
    --------
    >>> from marketsched.mechanisms.allocation.opm.jobs import PowerUtility
    >>> fair = FairScheduler([1.0, 1.0, 1.0, 1.0])
    >>> for job in (3, 7):
    ...     fair.add_job(job, deadline=9, budget=5.0, utility=PowerUtility(1.0, 0.5))
    >>> fair.allocate()
    array([3, 3, 7, 7])
    """

    name = "fair"

    def __init__(self, prices: ArrayLike, horizon: int | None = None) -> None:
        super().__init__(prices, horizon)
        self._machines = np.arange(self.n_machines)
        self._turn = 0

    def _decide(self) -> None:
        self._share(self._machines)

    def _share(self, machines: NDArray[np.int64]) -> None:
        jobs = self._jobs
        self._turn = share_kernel(
            machines, self.prices, self._cheapest, jobs.table, jobs.count, self._turn, self._decision
        )
        if jobs.count and jobs.table[DONE, : jobs.count].any():
            jobs.mark_done()


class StateSeeingFair(FairScheduler):
    """Shares the machines that are available in the slot equally; an upper reference, not a rival.

    It observes the available machines before it decides, which no real scheduler can. A machine that is not available
    still does a little work, at the full price: it is shared, too, but given only to jobs whose budget pays for a fair
    share of all machines until their deadline.

    Examples
    --------
    See `FairScheduler`, which it extends.
    """

    name = "fair-seeing-state"
    observes = "state"

    def allocate(self, arriving: Iterable[JobOffer] = (), available: ArrayLike | None = None) -> NDArray[np.int64]:
        """Decide on the next slot, as `MachineScheduler.allocate`; ``available`` machines, shape (M,), or all."""
        seen = self._machines
        if available is not None:
            seen = np.flatnonzero(bool_array("available", available, (self.n_machines,)))
        self._begin_slot(arriving)
        self._share(seen)
        if seen.size < self.n_machines:
            others = np.setdiff1d(self._machines, seen, assume_unique=True)
            jobs = self._jobs
            spare_kernel(others, self.prices, self.slot, jobs.table, jobs.count, self._turn, self._decision)
        return self._decision.copy()


class DeadlineAware(MachineScheduler):
    """Gives as many machines as it can pay to the job with the closest deadline, then to the next.

    Ties go to the job with the lower label.

    Examples
    --------
    >>> from marketsched.mechanisms.allocation.opm.jobs import PowerUtility
    >>> policy = DeadlineAware([1.0, 1.0, 1.0, 1.0])
    >>> for job, deadline in ((3, 9), (7, 5)):
    ...     policy.add_job(job, deadline=deadline, budget=9.0, utility=PowerUtility(1.0, 0.5))
    >>> policy.allocate()
    array([7, 7, 7, 7])
    """

    name = "deadline-aware"

    def _decide(self) -> None:
        jobs = self._jobs
        used = jobs.table[:, : jobs.count]
        order = np.lexsort((used[JOB], used[DEADLINE]))
        serve_kernel(order, self.prices, self._cheapest, jobs.table, self._decision)
        if jobs.count and used[DONE].any():
            jobs.mark_done()
