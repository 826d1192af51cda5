r"""Realised jobs as plain arrays: the input of hindsight bounds and comparisons.

Job :math:`j` became ready in round :math:`a_j`, ran :math:`d_j` rounds on :math:`c_j` nodes, and a
start in round :math:`s \ge a_j` was worth :math:`V_j(s + d_j)`, where V is 0 for completions at or
after birth + S and after T + 1 (the horizon ends the market; docs/mathematics.md 1 and 10). Values
of all useful starts lie in one array, job after job, so that compiled code can walk through it.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from marketsched.mechanisms.errors import InvalidParameterError
from marketsched.mechanisms.legal import Count, Whole, legal
from marketsched.mechanisms.limits import LAST_ROUND, last_useful_completion
from marketsched.mechanisms.memory import check_memory
from marketsched.mechanisms.sow import StatementOfWork

NEVER = 0  # arrival of a job that never arrives


@dataclass(frozen=True, slots=True, eq=False)
class RealisedJobs:
    """Realised jobs; those born in the same round stand in order of submission. Arrays are read-only.

    ``values[offsets[j] + k]`` is what job ``j`` is worth if it starts in round
    ``arrivals[j] + k``, in credits. Later starts are worth nothing; a job that never arrives, or
    runs longer than the platform allows, has no start at all.
    """

    births: NDArray[np.int64]  # (n_jobs,), rounds
    arrivals: NDArray[np.int64]  # (n_jobs,), rounds; NEVER for a job that never arrives
    durations: NDArray[np.int64]  # (n_jobs,), rounds
    concurrency: NDArray[np.int64]  # (n_jobs,), nodes
    offsets: NDArray[np.int64]  # (n_jobs + 1,)
    values: NDArray[np.float64]  # (offsets[-1],), credits
    horizon: int  # T, last round

    @classmethod
    @legal
    def build(
        cls,
        jobs: Iterable[tuple[StatementOfWork, int | None, int]],
        *,
        horizon: Annotated[int, Whole(1, LAST_ROUND)],
        max_delay: Count,
        max_duration: Count | None = None,
    ) -> RealisedJobs:
        """Collect true statements of work and what became of them.

        Parameters
        ----------
        jobs : iterable of (StatementOfWork, arrival, duration)
            Those born in the same round in order of submission. The arrival is a round >= birth, or
            None if the job never arrives; it may lie outside the statement's own law.
        horizon : int
            T, the last round.
        max_delay : int
            S: completions at birth + S or later are worth nothing.
        max_duration : int, optional
            D_max: jobs that run longer break the contract and are worth nothing. None: no limit.

        Raises
        ------
        InvalidParameterError
            If a job arrives before its birth.
        TooLargeError
            If there is too little memory for the values of all starts.

        Examples
        --------
        >>> from marketsched.mechanisms.values import TableValue
        >>> sow = StatementOfWork(1, 2, TableValue({4: 8.0, 5: 6.5, 6: 2.0}), [(2, 2, 1.0)])
        >>> jobs = RealisedJobs.build([(sow, 2, 2), (sow, None, 2)], horizon=4, max_delay=12)
        >>> jobs.values, jobs.offsets
        (array([8. , 6.5]), array([0, 2, 2]))
        """
        births, arrivals, durations, concurrency, sizes = (array("q") for _ in range(5))
        curves = []
        for index, job in enumerate(_each(jobs)):
            sow, arrival, duration = _one(index, job)
            d = Whole(1).check(f"jobs[{index}] duration", duration)
            a = NEVER if arrival is None else Whole(sow.birth).check(f"jobs[{index}] arrival", arrival)
            last = last_useful_completion(sow, max_delay, horizon)
            n_starts = max(0, last - d - a + 1)
            if a == NEVER or (max_duration is not None and d > max_duration):
                n_starts = 0
            curves.append(sow.value)
            births.append(sow.birth)
            arrivals.append(a)
            durations.append(d)
            concurrency.append(sow.concurrency)
            sizes.append(n_starts)
        check_memory(
            f"the values of {sum(sizes)} starts of {len(sizes)} jobs",
            2 * 8.0 * sum(sizes),
            "fewer jobs, or a smaller max_delay or horizon",
        )
        offsets = np.zeros(len(sizes) + 1, dtype=np.int64)
        np.cumsum(sizes, out=offsets[1:])
        values, filled = np.empty(sum(sizes)), 0
        for value, a, d, count in zip(curves, arrivals, durations, sizes, strict=True):
            if count:
                values[filled : filled + count] = value.table(a + d, count)
                filled += count
        born, ready, ran, nodes = (
            np.array(each, dtype=np.int64) for each in (births, arrivals, durations, concurrency)
        )
        for column in (born, ready, ran, nodes, offsets, values):
            column.flags.writeable = False
        return cls(born, ready, ran, nodes, offsets, values, horizon)

    def check_horizon(self, horizon: int) -> None:
        """Raise InvalidParameterError if ``horizon`` is not the one the jobs were built for."""
        if horizon != self.horizon:
            raise InvalidParameterError(
                place="horizon", value=horizon, legal=f"{self.horizon}, the horizon of these jobs"
            )

    @property
    def n_jobs(self) -> int:
        """Number of jobs, those without any start included."""
        return self.arrivals.size

    @property
    def useful(self) -> NDArray[np.bool_]:
        """Which jobs have a start worth something, shape (n_jobs,)."""
        return np.diff(self.offsets) > 0


def _each(jobs: Any) -> Iterator[Any]:
    """Return what goes through the jobs, one at a time: a list of a million would be one array too many."""
    try:
        return iter(jobs)
    except TypeError:
        raise InvalidParameterError(
            place="jobs", value=jobs, legal="(StatementOfWork, arrival, duration) for each job"
        ) from None


def _one(index: int, job: Any) -> tuple[StatementOfWork, int | None, int]:
    """Return the three entries of a job, or say what it is."""
    fields = job if type(job) is tuple else tuple(job) if isinstance(job, Iterable) else ()
    if len(fields) != 3 or not isinstance(fields[0], StatementOfWork):
        raise InvalidParameterError(place=f"jobs[{index}]", value=job, legal="(StatementOfWork, arrival, duration)")
    return fields
