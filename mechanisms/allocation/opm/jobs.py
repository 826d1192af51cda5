"""Jobs of the OPM model: what a job states when it arrives, and the table of jobs still in the cluster."""

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
from marketsched.mechanisms.allocation.opm.utilities import PowerUtility
from marketsched.mechanisms.checks import finite_parameter, whole_parameter
from marketsched.mechanisms.errors import EventError, InvalidParameterError

LARGEST_LABEL = 2**53  # labels and slots lie in a table of float64


@dataclass(frozen=True, slots=True)
class JobOffer:
    """What a job states about itself when it arrives.

    Attributes
    ----------
    job : int
        Its label, a whole number >= 0.
    deadline : int
        d_j, the last slot in which it may run.
    budget : float
        B_j, credits.
    utility : PowerUtility
        f_j, of the work done by the deadline.
    demand : float
        r_j, units of a machine's capacity that one task takes; for `GeneralOpm`.
    limit : int or None
        u_j, most tasks in one slot; for `GeneralOpm`. None: one per machine.
    """

    job: int
    deadline: int
    budget: float
    utility: PowerUtility
    demand: float = 1.0
    limit: int | None = None


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
        self._left_fit = self._left_excess = 0.0

    @property
    def capacity(self) -> int:
        """Columns of the table, a multiple of four."""
        return self.table.shape[1]

    @property
    def labels(self) -> NDArray[np.int64]:
        """Labels of the open jobs, shape (count,), in the order of their columns."""
        return self.table[JOB, : self.count].astype(np.int64)

    def column(self, job: int) -> int:
        """Return the column of an open job.

        Raises
        ------
        EventError
            If there is none of this label.
        """
        columns = np.flatnonzero(self.table[JOB, : self.count] == job)
        if not columns.size:
            raise EventError(f"job {job}: not in the cluster")
        return int(columns[0])

    def add(self, offer: JobOffer, now: int) -> None:
        """Take in a job that arrives in slot ``now`` and may run from the next one on.

        Raises
        ------
        InvalidParameterError
            If a number is out of range, the deadline is in the past, or the utility is not a `PowerUtility`.
        EventError
            If there was a job of this label before.
        """
        job = whole_parameter("job", offer.job, 0, LARGEST_LABEL)
        if job in self._known:
            raise EventError(f"job {job}: a job of this label was added before")
        deadline = whole_parameter(f"deadline of job {job}", offer.deadline, 1, LARGEST_LABEL)
        if deadline <= now:
            raise InvalidParameterError(
                f"deadline of job {job} = {deadline}: expected a slot after the present one, {now}"
            )
        budget = finite_parameter(f"budget of job {job}", offer.budget, "(0, inf)")
        demand = finite_parameter(f"demand of job {job}", offer.demand, "(0, inf)")
        limit = np.inf if offer.limit is None else whole_parameter(f"limit of job {job}", offer.limit, 1)
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

    def mark_done(self) -> None:
        """Say that some job has the mark ``DONE`` by now, and is to be released."""
        self._done = True

    def release(self, slot: int) -> list[tuple[int, int]]:
        """Let jobs go that are done or whose deadline is before ``slot``.

        Returns
        -------
        list of (int, int)
            Moves ``(into, last)``, in order: column ``last``, the last one in use, was moved to ``into``.
        """
        if not self._done and slot <= self._next_deadline:
            return []
        used = self.table[:, : self.count]
        moves = []
        for column in np.flatnonzero((used[DEADLINE] < slot) | (used[DONE] > 0.0))[::-1].tolist():
            over = self.table[SPENT, column] - self.table[BUDGET, column]
            self._left_fit += over
            self._left_excess += max(0.0, over)
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

    def excess(self) -> float:
        """Return what jobs spent beyond their budgets, credits; no job's savings make up for another's excess."""
        over = self.table[SPENT, : self.count] - self.table[BUDGET, : self.count]
        return float(self._left_excess + np.maximum(over, 0.0).sum())
