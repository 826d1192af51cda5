"""The base of schedulers of the OPM model: jobs arrive, machines are assigned, work is observed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from marketsched.mechanisms.allocation.opm.jobs import JobOffer, OpenJobs, PowerUtility
from marketsched.mechanisms.allocation.opm.kernels import SPENT
from marketsched.mechanisms.arrays import float_array, read_only
from marketsched.mechanisms.errors import EventError, InvalidParameterError
from marketsched.mechanisms.legal import Count, legal


class MachineScheduler(ABC):
    """A policy over machines and jobs: `add_job`, `allocate`, `update`, slot by slot from slot 1.

    ``prices``, shape (M,), are the p_i, credits for one slot of a machine; ``horizon`` is T, None: no last slot.
    """

    core: ClassVar[str] = "opm"
    name: str
    observes: str = "jobs"

    @legal
    def __init__(self, prices: ArrayLike, horizon: Count | None = None) -> None:
        self.prices = float_array("prices", prices, (None,), lowest=0.0).copy()
        if not self.prices.size:
            raise InvalidParameterError("prices has shape (0,): expected at least one machine")
        read_only(self.prices)
        self.n_machines = self.prices.size
        self.horizon = horizon
        self.slot = 0  # slots allocated so far
        self._cheapest = float(self.prices.min())
        self._jobs = OpenJobs()
        self._played = True  # whether the work of slot ``slot`` is known
        self._decision = np.full(self.n_machines, -1, dtype=np.int64)

    @property
    def open_jobs(self) -> NDArray[np.int64]:
        """Labels of the jobs in the cluster, shape (jobs,)."""
        return self._jobs.labels

    @property
    def fit(self) -> float:
        """Fit_T of OPM (8) so far, credits: what all jobs spent less all their budgets."""
        return self._jobs.fit()

    def add_job(
        self,
        job: int,
        deadline: int,
        budget: float,
        utility: PowerUtility,
        demand: float = 1.0,
        limit: int | None = None,
    ) -> None:
        """Take in a job; it may run from the next slot that is allocated, up to its deadline.

        Arguments are those of `JobOffer`; ``demand`` and ``limit`` are of no meaning where every machine holds one
        task. EventError if there was a job of this label before.
        """
        self._add(JobOffer(job, deadline, budget, utility, demand, limit))

    def allocate(self, arriving: Iterable[JobOffer] = ()) -> NDArray[np.int64]:
        """Decide on the next slot: return by machine the label of the job that gets it, or -1; a copy.

        Jobs ``arriving`` come in before it. EventError if the last slot's work is not known, or the horizon is over.
        """
        self._begin_slot(arriving)
        self._decide()
        return self._decision.copy()

    def update(self, work: ArrayLike) -> None:
        """Learn from the work of the machines in the slot, shape (M,), in [0, 1]; idle machines are ignored."""
        if self._played:
            raise EventError(f"update after slot {self.slot}: expected allocate() first")
        self._learn(self._checked_work(work))
        self._played = True

    @abstractmethod
    def _decide(self) -> None:
        """Fill ``_decision`` for slot ``slot``."""

    def _learn(self, work: NDArray[np.float64]) -> None:
        """Learn from the work of slot ``slot``; the base learns nothing."""
        return

    def _add(self, offer: JobOffer) -> int:
        return self._jobs.add(offer, self.slot)

    def _release(self) -> None:
        self._jobs.release(self.slot)

    def _begin_slot(self, arriving: Iterable[JobOffer]) -> None:
        if not self._played:
            raise EventError(f"allocate after slot {self.slot}: expected update(work) of that slot first")
        if self.slot == self.horizon:
            raise EventError(f"allocate after slot {self.slot}: the horizon is {self.horizon}")
        for offer in arriving:
            self._add(offer)
        self.slot += 1
        self._played = False
        self._release()

    def _checked_work(self, work: ArrayLike) -> NDArray[np.float64]:
        given = np.asarray(work)
        if (
            given.dtype == np.float64
            and given.shape == (self.n_machines,)
            and given.min() >= 0.0
            and given.max() <= 1.0
        ):
            return given  # the usual case, without a second look
        return float_array("work", work, (self.n_machines,), lowest=0.0, highest=1.0)

    def spent(self, job: int) -> float:
        """Return the spending of an open job so far, credits; EventError if there is none."""
        return float(self._jobs.table[SPENT, self._jobs.column(job)])
