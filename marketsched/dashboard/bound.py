r"""A bound on welfare that grows with the run: no schedule exceeds it.

For any prices :math:`\lambda \ge 0`, (29) of the jobs bounds every schedule in hindsight. Looking only at
schedules that are done by the end of round t, the same weak duality gives

.. math:: D_t(\lambda) = C \sum_{u \le t} \lambda_u
   + \sum_j \max\Big(0, \max_{s + d_j - 1 \le t} V_j(s + d_j) - c_j \sum_{u=s}^{s+d_j-1} \lambda_u\Big)

With the prices that minimise (29) the last value is the dual bound itself.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from marketsched.mechanisms.realised import RealisedJobs


def bound_by_round(jobs: RealisedJobs, capacity: int, prices: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the bound on the welfare of all that is done by the end of rounds 1 .. T, credits, shape (T,).

    ``capacity`` is C, nodes; wider jobs are left out, for no schedule runs them. ``prices`` are credits per node and
    round, >= 0, of shape (T,), round 1 first.
    """
    before = np.concatenate([[0.0], np.cumsum(prices)])  # before[t]: of rounds 1 .. t
    growth = np.zeros(jobs.horizon + 1)
    for j in np.flatnonzero(jobs.useful & (jobs.concurrency <= capacity)).tolist():
        values = jobs.values[jobs.offsets[j] : jobs.offsets[j + 1]]
        first, d = int(jobs.arrivals[j]) - 1, int(jobs.durations[j])  # rounds before the start, and of the run
        ends = before[first + d : first + d + values.size]
        surplus = values - jobs.concurrency[j] * (ends - before[first : first + values.size])
        best = np.maximum.accumulate(np.maximum(surplus, 0.0))
        growth[first + d : first + d + values.size] += np.diff(best, prepend=0.0)
    bound: NDArray[np.float64] = capacity * before[1:] + np.cumsum(growth)[1:]
    return bound
