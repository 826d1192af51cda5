"""Jobs of the OPM model: their utility, what a job states when it arrives, and the jobs still in the cluster.

A job may be executed in part: its utility is concave in the work done by the deadline. The paper has
``f_j(X) = v_j X^beta``, with beta in [0.5, 1) in its evaluation; any exponent in (0, 1] is allowed here.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from marketsched.mechanisms.allocation.opm.kernels import (
    ARRIVAL,
    BUDGET,
    DEADLINE,
    DEMAND,
    DONE,
    EXPONENT,
    JOB,
    LIMIT,
    N_FIELDS,
    QUAD,
    SPENT,
    WEIGHT,
)
from marketsched.mechanisms.errors import EventError, InvalidParameterError
from marketsched.mechanisms.legal import Amount, Finite, Positive, PositiveShare, Whole, check_fields, legal

FLOOR = 1e-2  # work per slot; where the slope of a job that has done next to nothing is taken


@dataclass(frozen=True, slots=True)
class PowerUtility:
    """``f(X) = weight * X ** exponent`` for work ``X >= 0``: credits for a unit of work, and beta in (0, 1].

    Examples
    --------
    >>> f = PowerUtility(3.0, 0.5)
    >>> f(4.0), f.slope(4.0)
    (6.0, 0.75)
    """

    weight: Positive
    exponent: PositiveShare

    def __post_init__(self) -> None:
        check_fields(self)

    @legal
    def __call__(self, work: Amount) -> float:
        """Return the utility of ``work`` units, in credits."""
        return float(self.weight * work**self.exponent)

    @legal
    def slope(self, work: Amount, floor: Positive = FLOOR) -> float:
        """Return the slope at ``work``, or at ``floor`` if that is larger: at 0 it would be infinite."""
        at = max(work, floor)
        return float(self.weight * self.exponent * at ** (self.exponent - 1.0))


LARGEST_LABEL = 2**53  # labels and slots lie in a table of float64


@dataclass(frozen=True, slots=True)
class JobOffer:
    """The statement of a job at its arrival; ``demand`` and ``limit`` are for `GeneralOpm`.

    Examples
    --------
    See `FairScheduler`, whose ``add_job`` makes one.
    """

    job: int  # its label in decisions, >= 0, not used before
    deadline: int  # d_j, the last slot in which it may run
    budget: float  # B_j, credits
    utility: PowerUtility  # f_j, of the work done by the deadline
    demand: float = 1.0  # r_j, units of a machine's capacity that one task takes
    limit: int | None = None  # u_j, most tasks in one slot; None: one per machine


class OpenJobs:
    """The jobs in the cluster, one column each of a table of numbers (rows: see `opm_kernels`).

    Columns 0 to ``count - 1`` are in use; a job that leaves is replaced by the last one.
    """

    def __init__(self) -> None:
        self.table = np.zeros((N_FIELDS, QUAD))
        self.count = 0
        self._known: set[int] = set()
        self._next_deadline = np.inf
        self._done = False
        self._left_fit = 0.0

    @property
    def capacity(self) -> int:
        """Columns of the table, a multiple of four."""
        return self.table.shape[1]

    @property
    def labels(self) -> NDArray[np.int64]:
        """Labels of the open jobs, shape (count,), in the order of their columns."""
        return self.table[JOB, : self.count].astype(np.int64)

    def column(self, job: int) -> int:
        """Return the column of an open job; EventError if there is none."""
        columns = np.flatnonzero(self.table[JOB, : self.count] == job)
        if not columns.size:
            raise EventError(f"job {job!r}: not in the cluster")
        return int(columns[0])

    def add(self, offer: JobOffer, now: int) -> int:
        """Take in a job that arrives in slot ``now`` and may run from the next one on; return its label."""
        job = Whole(0, LARGEST_LABEL).check("job", offer.job)
        if job in self._known:
            raise EventError(f"job {job}: a job of this label was added before")
        deadline = Whole(1, LARGEST_LABEL).check(f"deadline of job {job}", offer.deadline)
        if deadline <= now:
            raise InvalidParameterError(
                f"deadline of job {job} = {deadline}: expected a slot after the present one, {now}"
            )
        budget = Finite("(0, inf)").check(f"budget of job {job}", offer.budget)
        demand = Finite("(0, inf)").check(f"demand of job {job}", offer.demand)
        limit = np.inf if offer.limit is None else Whole(1).check(f"limit of job {job}", offer.limit)
        if not isinstance(offer.utility, PowerUtility):
            raise InvalidParameterError(f"utility of job {job} = {offer.utility!r}: expected a PowerUtility")
        if self.count == self.capacity:
            self.table = np.concatenate([self.table, np.zeros_like(self.table)], axis=1)
        column = self.table[:, self.count]
        column[:] = 0.0
        column[[JOB, ARRIVAL, DEADLINE, BUDGET]] = job, now, deadline, budget
        column[[WEIGHT, EXPONENT, DEMAND, LIMIT]] = offer.utility.weight, offer.utility.exponent, demand, limit
        self._known.add(job)
        self.count += 1
        self._next_deadline = min(self._next_deadline, deadline)
        return job

    def mark_done(self) -> None:
        """Say that some job has the mark ``DONE`` by now, and is to be released."""
        self._done = True

    def release(self, slot: int) -> list[tuple[int, int]]:
        """Let jobs go that are done or whose deadline is before ``slot``.

        Returns moves ``(into, last)``, in order: column ``last``, the last one in use, was moved to ``into``.
        """
        if not self._done and slot <= self._next_deadline:
            return []
        used = self.table[:, : self.count]
        moves = []
        for column in np.flatnonzero((used[DEADLINE] < slot) | (used[DONE] > 0.0))[::-1].tolist():
            self._left_fit += self.table[SPENT, column] - self.table[BUDGET, column]
            self.count -= 1
            self.table[:, column] = self.table[:, self.count]
            self.table[:, self.count] = 0.0
            moves.append((column, self.count))
        self._done = False
        self._next_deadline = self.table[DEADLINE, : self.count].min(initial=np.inf)
        return moves

    def fit(self) -> float:
        """Return Fit_T of OPM (8) so far, credits: what all jobs spent less all their budgets."""
        over = self.table[SPENT, : self.count] - self.table[BUDGET, : self.count]
        return float(self._left_fit + over.sum())
