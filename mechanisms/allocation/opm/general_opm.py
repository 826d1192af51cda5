"""OPM in the general setting of Section V-C: demands, capacities, and limits on tasks per job.

A machine of capacity ``C_i`` holds several tasks, of demand ``r_j`` each, OPM (102); a job runs at most
``u_j`` tasks at once, OPM (103), and at most one on a machine. Dual and primal steps are those of
`Opm`; shares are then projected (P5, `project_general`) and rounded (`dependent_rounding`).

Some points of P5 as printed cannot be rounded with the right expectations (see `dependent_rounding`). Shares are
therefore kept, on every machine, within the larger of two sets that can: ``sum_j z <= floor(C_i / r_max)``, or
``sum_j r_j z <= C_i - r_max``, where ``r_max`` is the largest demand of an open job that fits on the machine.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from marketsched.mechanisms.allocation.opm.dependent_rounding import TOLERANCE, round_kernel
from marketsched.mechanisms.allocation.opm.jobs import JobOffer
from marketsched.mechanisms.allocation.opm.kernels import (
    COST,
    COST_BEFORE,
    DEMAND,
    DONE,
    JOB,
    LIMIT,
    WORK,
    dual_kernel,
    pay_kernel,
)
from marketsched.mechanisms.allocation.opm.primal_dual import PrimalDual
from marketsched.mechanisms.allocation.opm.projections import project_general
from marketsched.mechanisms.arrays import float_array, read_only
from marketsched.mechanisms.errors import InvalidParameterError
from marketsched.mechanisms.legal import OpenShare, legal

FLOATS = NDArray[np.float64]


def roundable_rules(demands: FLOATS, capacities: FLOATS) -> tuple[FLOATS, FLOATS, FLOATS]:
    """Return weights (n_jobs, M), capacities (M,) and upper ends (n_jobs, M) within which every share can be rounded.

    To be handed to `project_general`: per machine either weights 1 and ``floor(C_i / r_max)``, or demands and
    ``C_i - r_max``, whichever admits more tasks of mean demand; the upper end is 0 where a task does not fit at all.
    """
    fits = demands[:, None] <= capacities[None, :] * (1.0 + TOLERANCE)
    sizes = np.where(fits, demands[:, None], 0.0)
    largest = np.maximum(sizes.max(axis=0, initial=0.0), 1e-300)
    mean = np.maximum(sizes.sum(axis=0) / np.maximum(fits.sum(axis=0), 1), 1e-300)
    whole = np.where(fits.any(axis=0), np.floor(capacities / largest * (1.0 + TOLERANCE)), 0.0)
    left = np.maximum(capacities - largest, 0.0)
    by_count = (whole * mean >= left) | ~fits.any(axis=0)
    weights = np.where(by_count[None, :], 1.0, demands[:, None])
    return weights, np.where(by_count, whole, left), fits.astype(np.float64)


class GeneralOpm(PrimalDual):
    """OPM with demands, capacities and limits: parameters are those of `Opm`, and two more.

    Jobs are added with ``demand`` and ``limit``; decisions are lists of tasks.

    Parameters
    ----------
    capacities : array_like of float, shape (M,)
        C_i >= 0, in the unit of demands.
    tolerance : float
        Of the projection, see `project_general`: shares are feasible whatever it is.

    Examples
    --------
    >>> from marketsched.mechanisms.allocation.opm.jobs import PowerUtility
    >>> opm = GeneralOpm([0.5, 0.5], [2.0, 1.0], horizon=100, primal_step=1.0, rng=1)
    >>> for job in (0, 1):
    ...     opm.add_job(job, 100, budget=60.0, utility=PowerUtility(2.0, 0.5), demand=1.0, limit=2)
    >>> tasks = opm.allocate()
    >>> np.bincount(tasks[:, 1], minlength=2)
    array([2, 1])
    """

    _name = "general-opm"

    @legal
    def __init__(
        self, prices: ArrayLike, capacities: ArrayLike, horizon: int, *, tolerance: OpenShare = 1e-9, **parameters: Any
    ) -> None:
        super().__init__(prices, horizon, **parameters)
        if not self.redraw:
            raise InvalidParameterError(place="redraw", value=False, legal="true where machines hold several tasks")
        m = self.n_machines
        self.capacities = float_array("capacities", capacities, (m,), lowest=0.0).copy()
        read_only(self.capacities)
        self.tolerance = tolerance
        self._before = self.rates
        self._shares = np.zeros((0, m))
        self._machine_prices, self._job_prices = np.zeros(m), np.zeros(0)
        self._rules: tuple[FLOATS, FLOATS, FLOATS] | None = None
        self._tasks = np.zeros((0, 2), dtype=np.int64)

    @property
    def open_fractional(self) -> FLOATS:
        """Shares of the last allocated slot of the jobs of `open_jobs`, shape (jobs, M)."""
        return self._shares.copy()

    def allocate(self, arriving: Iterable[JobOffer] = ()) -> NDArray[np.int64]:
        """Decide on the next slot; return tasks by machine, shape (n_tasks, 2): job's label, machine's number."""
        self._begin_slot(arriving)
        self._decide()
        return self._tasks.copy()

    def update(self, work: ArrayLike) -> None:
        """Learn from the work of all tasks of each machine together, shape (M,): at most 1 per task."""
        super().update(work)

    def _checked_work(self, work: ArrayLike) -> FLOATS:
        given = float_array("work", work, (self.n_machines,), lowest=0.0)
        most = np.bincount(self._tasks[:, 1], minlength=self.n_machines)
        over = np.flatnonzero(given > most)
        if over.size:
            i = int(over[0])
            raise InvalidParameterError(f"work[{i}] = {given[i]}: expected at most {most[i]}, the number of its tasks")
        return given

    def _learn(self, work: FLOATS) -> None:
        self._plays += np.bincount(self._tasks[:, 1], minlength=self.n_machines)
        self._works += work

    def _add(self, offer: JobOffer) -> int:
        if offer.demand > self.capacities.max():
            raise InvalidParameterError(
                f"demand of job {offer.job!r} = {offer.demand}: expected at most {self.capacities.max():g}, "
                "the largest capacity"
            )
        label = super()._add(offer)
        self._shares = np.concatenate([self._shares, np.zeros((1, self.n_machines))])
        self._job_prices = np.append(self._job_prices, 0.0)
        self._rules = None
        return label

    def _release(self) -> None:
        for into, last in self._jobs.release(self.slot):
            self._shares[into], self._job_prices[into] = self._shares[last], self._job_prices[last]
            self._shares, self._job_prices = self._shares[:last], self._job_prices[:last]
            self._rules = None

    def _decide(self) -> None:
        table, n = self._jobs.table, self._jobs.count
        before, rates = self._before, self.rates  # the gradient is that of slot t - 1
        self._before = rates
        if n == 0:
            self._tasks = np.zeros((0, 2), dtype=np.int64)
            return
        steps = np.zeros((2, self._jobs.capacity))
        dual_kernel(
            table, n, self.slot, 1.0 / self.price_scale, self.dual_step, self.primal_step, self.slack, self.floor,
            steps[0], steps[1]
        )  # fmt: skip
        prices = self.prices / self.price_scale
        self._shares += steps[0, :n, None] * before - steps[1, :n, None] * prices
        self._project(table[DEMAND, :n], table[LIMIT, :n])
        table[COST_BEFORE, :n] = table[COST, :n]
        table[COST, :n], planned = self._shares @ prices, self._shares @ rates
        table[WORK, :n] += planned
        self._draw(n)

    def _project(self, demands: FLOATS, limits: FLOATS) -> None:
        if self._rules is None:
            self._rules = roundable_rules(demands, self.capacities)
        weights, room, top = self._rules
        found = project_general(
            self._shares, weights, room, limits, top=top, start=(self._machine_prices, self._job_prices),
            tolerance=self.tolerance
        )  # fmt: skip
        self._shares, self._machine_prices, self._job_prices = found.shares, found.machine_prices, found.job_prices

    def _draw(self, n: int) -> None:
        table = self._jobs.table
        order = np.argsort(-table[DEMAND, :n], kind="stable")
        machines, rows = np.nonzero(round_kernel(self._shares, order, self._rng).T)
        kept = pay_kernel(rows, machines, self.prices, self._cheapest, table, n, self.strict_budget)
        self._tasks = np.stack([table[JOB, rows[kept]].astype(np.int64), machines[kept]], axis=1)
        if table[DONE, :n].any():
            self._jobs.mark_done()
