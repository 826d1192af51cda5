r"""Budgeted selection: the problems P4(s) of the ESDP paper for all s at once, exactly, by dynamic programming.

For every ``s`` in ``0 .. s_max``, over selections ``x`` in {0, 1}^E of channels::

    best[s] = max  variance . x
              s.t. requests.T @ x <= capacities        ESDP (2)
                   value . x >= s                      ESDP (20)

Algorithm 2 of the paper runs over (channel, s, capacity vector). It copies selections from state to
state; here one decision bit per state is kept and selections are read back from the bits, so that
memory is one bit per (channel, s, capacity vector) plus one number per (s, capacity vector). Sums of
values beyond the largest possible one are never touched, and each resource is counted in units of the
greatest common divisor of its requests, up to what all channels together could use.

Unseen channels have variance +inf. Pairs (number of unseen channels, variance of the others) are then
compared in that order, which is what the limit of ever larger variances means.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from marketsched.mechanisms.allocation.esdp.budgeted_problem import MEMORY_LIMIT, BudgetedProblem
from marketsched.mechanisms.checks import LARGEST, float_array, whole_array, whole_parameter
from marketsched.mechanisms.errors import InvalidParameterError


@dataclass(frozen=True, slots=True)
class BudgetedSolution:
    """The optima of all budgets.

    Attributes
    ----------
    best : array of float, shape (s_max + 1,)
        Largest sum of variances with values of at least s; -inf where no selection reaches s,
        +inf where an unseen channel is selected. Exact for whole variances.
    selections : array of bool, shape (s_max + 1, E)
        A selection that attains it; none where there is none.
    unseen : array of int, shape (s_max + 1,)
        Channels of variance +inf in the selection; -1 where infeasible.
    finite : array of float, shape (s_max + 1,)
        Sum of the other variances in the selection; -inf where infeasible.
    """

    best: NDArray[np.float64]
    selections: NDArray[np.bool_]
    unseen: NDArray[np.int64]
    finite: NDArray[np.float64]


def solve_budgeted(
    value: ArrayLike,
    variance: ArrayLike,
    requests: ArrayLike,
    capacities: ArrayLike,
    s_max: int,
    *,
    memory_limit: int = MEMORY_LIMIT,
) -> BudgetedSolution:
    """Solve max variance.x s.t. requests.T @ x <= capacities, value.x >= s, x binary, for s = 0 .. s_max.

    Parameters
    ----------
    value : array_like of int, shape (E,)
        What counts towards the budget s, >= 0.
    variance : array_like of int or float, shape (E,)
        What is maximised, >= 0; +inf for an unseen channel (more of them come first). Whole numbers
        are summed exactly, floats as float64.
    requests : array_like of int, shape (E, K)
        Units of each resource type a channel takes, >= 0. A channel that asks for more than there
        is, is never selected.
    capacities : array_like of int, shape (K,)
        Units there are in the whole cluster, >= 0.
    s_max : int
        Largest budget, >= 0.
    memory_limit : int
        Bytes the table may take.

    Returns
    -------
    BudgetedSolution
        Optima and selections of every s.

    Raises
    ------
    InvalidParameterError
        If shapes disagree, an entry is out of range, or whole variances add up to 2**53 or more.
    TooLargeError
        If the table would take more than ``memory_limit``; the message says how large it would be.

    Notes
    -----
    Cost O(E * (s_max + 1) * prod(capacities + 1)) at most.

    Examples
    --------
    >>> solution = solve_budgeted([1, 2, 2], [5, 3, 4], [[1], [1], [1]], [2], 5)
    >>> solution.best
    array([  9.,   9.,   9.,   9.,   7., -inf])
    >>> solution.selections[4]
    array([False,  True,  True])
    """
    asked = whole_array("requests", requests, (None, None))
    problem = BudgetedProblem(asked, capacities, memory_limit=memory_limit)
    values = whole_array("value", value, (len(asked),))
    variances, unseen = _split_variance(variance, len(asked))
    table = problem.solve(values, variances, whole_parameter("s_max", s_max, 0), unseen=unseen)
    best = np.where(table.unseen > 0, np.inf, table.finite)
    return BudgetedSolution(best, table.selections(), table.unseen, table.finite)


def _split_variance(variance: ArrayLike, n_channels: int) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Return the finite variances (0 where unseen) and which are +inf."""
    given = np.asarray(variance)
    if given.dtype.kind in "iu":
        whole = whole_array("variance", given, (n_channels,))
        total = sum(whole.tolist())
        if total >= LARGEST:
            raise InvalidParameterError(
                f"variance adds up to {total}: expected less than 2**53, so that sums are exact; give floats to round"
            )
        return whole.astype(np.float64), np.zeros(n_channels, dtype=np.bool_)
    if given.dtype.kind != "f":
        return float_array("variance", variance, (n_channels,), lowest=0.0), np.zeros(n_channels, dtype=np.bool_)
    unseen = np.isposinf(given)
    return float_array("variance", np.where(unseen, 0.0, given), (n_channels,), lowest=0.0), unseen
