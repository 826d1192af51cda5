"""Jobs of the OPM model as arrays: arrival, deadline, budget, weight and exponent of the utility."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from marketsched.mechanisms.allocation.opm.jobs import JobOffer, PowerUtility
from marketsched.mechanisms.arrays import float_array, read_only, whole_array
from marketsched.mechanisms.errors import InvalidParameterError


@dataclass(frozen=True, slots=True)
class MachineJobs:
    """N jobs, job j in place j of every array; arrays are copied and read-only.

    Times are whole slots: a job that arrives in slot ``a`` (0: before the first) may run in slots ``a + 1`` to its
    deadline.

    Parameters
    ----------
    arrivals, deadlines : array_like of int, shape (N,)
        a_j >= 0 and d_j > a_j.
    budgets : array_like of float, shape (N,)
        B_j > 0, credits.
    weights, exponents : array_like of float, shape (N,)
        v_j > 0 and beta_j in (0, 1] of f_j(X) = v_j X^beta_j.
    demands, limits : array_like, shape (N,), or None
        r_j > 0 and u_j >= 1 of the general setting; None: 1 each, and no limit.

    Examples
    --------
    >>> jobs = MachineJobs([0, 1], [4, 3], [9.0, 5.0], [1.0, 2.0], [0.5, 0.5])
    >>> jobs.deadlines - jobs.arrivals
    array([4, 2])
    """

    arrivals: NDArray[np.int64]
    deadlines: NDArray[np.int64]
    budgets: NDArray[np.float64]
    weights: NDArray[np.float64]
    exponents: NDArray[np.float64]
    demands: NDArray[np.float64] | None = field(default=None)
    limits: NDArray[np.int64] | None = field(default=None)

    def __post_init__(self) -> None:
        arrivals = whole_array("arrivals", self.arrivals)
        shape = arrivals.shape
        deadlines = whole_array("deadlines", self.deadlines, shape, 1)
        late = np.flatnonzero(deadlines <= arrivals)
        if late.size:
            j = int(late[0])
            raise InvalidParameterError(
                f"deadlines[{j}] = {deadlines[j]}: expected a slot after arrivals[{j}] = {arrivals[j]}"
            )
        arrays = {
            "arrivals": arrivals,
            "deadlines": deadlines,
            "budgets": _positive("budgets", self.budgets, shape),
            "weights": _positive("weights", self.weights, shape),
            "exponents": _positive("exponents", self.exponents, shape, 1.0),
        }
        if self.demands is not None:
            arrays["demands"] = _positive("demands", self.demands, shape)
        if self.limits is not None:
            arrays["limits"] = whole_array("limits", self.limits, shape, 1)
        for name, array in arrays.items():
            read_only(array)
            object.__setattr__(self, name, array)

    @property
    def size(self) -> int:
        """N."""
        return int(self.arrivals.size)

    @property
    def horizon(self) -> int:
        """T, the last deadline; 0 without jobs."""
        return int(self.deadlines.max(initial=0))

    @property
    def durations(self) -> NDArray[np.int64]:
        """d_j - a_j, slots in which the job may run."""
        return self.deadlines - self.arrivals

    def offer(self, job: int) -> JobOffer:
        """Return what job ``job`` states about itself."""
        utility = PowerUtility(float(self.weights[job]), float(self.exponents[job]))
        demand = 1.0 if self.demands is None else float(self.demands[job])
        limit = None if self.limits is None else int(self.limits[job])
        return JobOffer(job, int(self.deadlines[job]), float(self.budgets[job]), utility, demand, limit)

    def utilities(self, works: ArrayLike) -> NDArray[np.float64]:
        """Return f_j(X_j) of every job; ``works`` has shape (N,)."""
        return self.weights * np.asarray(works, dtype=np.float64) ** self.exponents

    def utilities_per_slot(self, works: ArrayLike) -> NDArray[np.float64]:
        """Return (d_j - a_j) f_j(X_j / (d_j - a_j)), as OPM (6) counts utility; shape (N,)."""
        return self.durations * self.utilities(np.asarray(works) / self.durations)


def _positive(
    name: str, x: ArrayLike, shape: tuple[int | None, ...], highest: float | None = None
) -> NDArray[np.float64]:
    array = float_array(name, x, shape, lowest=0.0, highest=highest).copy()
    zero = np.flatnonzero(array == 0.0)
    if zero.size:
        raise InvalidParameterError(f"{name}[{int(zero[0])}] = 0: expected a number > 0")
    return array
