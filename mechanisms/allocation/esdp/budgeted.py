"""Budgeted selection: the problems P4(s) of the ESDP paper for all s at once, exactly, by dynamic programming.

For every ``s`` in ``0 .. s_max``, over selections ``x`` in {0, 1}^E of channels::

    best[s] = max  variance . x
              s.t. requests.T @ x <= capacities        ESDP (2)
                   value . x >= s                      ESDP (20)

Algorithm 2 of the paper copies selections from state to state; here one decision bit per (channel, s, capacity vector)
is kept, and selections are read back from the bits. Sums of values beyond the largest possible one are never touched,
and each resource is counted in units of the greatest common divisor of its requests.

Unseen channels have variance +inf. Pairs (number of unseen channels, variance of the others) are then compared in that
order, which is what the limit of ever larger variances means.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from marketsched.mechanisms.allocation.esdp.budgeted_kernels import (
    _lexicographic_table_kernel,
    _reach_kernel,
    _select_kernel,
    _table_kernel,
)
from marketsched.mechanisms.arrays import whole_array
from marketsched.mechanisms.errors import InvalidParameterError, TooLargeError
from marketsched.mechanisms.legal import Memory, legal
from marketsched.mechanisms.memory import readable_size

MEMORY_LIMIT = 2**30
"""Bytes a table may take unless the caller says otherwise."""


class BudgetedProblem:
    """The constraints of a budgeted selection, prepared once for many values and variances.

    Requests (E, K) and capacities (K,) are whole numbers >= 0; TooLargeError if ``memory_limit`` holds no table.
    """

    @legal
    def __init__(self, requests: ArrayLike, capacities: ArrayLike, *, memory_limit: Memory = MEMORY_LIMIT) -> None:
        asked = whole_array("requests", requests, (None, None))
        if asked.shape[1] == 0:
            raise InvalidParameterError("requests has no column: expected one per resource type, at least one")
        there = whole_array("capacities", capacities, (asked.shape[1],))
        self.memory_limit = memory_limit
        fit = (asked <= there).all(axis=1)
        unit = np.maximum(np.gcd.reduce(asked[fit], axis=0), 1)
        asked[fit] //= unit
        self.n_channels = len(asked)
        self._requests = asked
        self._fit = fit
        self._capacities = np.minimum(there // unit, asked[fit].sum(axis=0))
        sizes = [int(c) + 1 for c in self._capacities]
        self.n_cells = math.prod(sizes)
        least = self.n_cells * 16  # a gain and a reach per capacity vector
        check_table(least, self.memory_limit, 1, self._capacities)
        self._strides = np.array([math.prod(sizes[k + 1 :]) for k in range(len(sizes))], dtype=np.int64)

    def solve(
        self,
        values: NDArray[np.int64],
        variances: NDArray[np.float64],
        s_max: int,
        *,
        unseen: NDArray[np.bool_] | None = None,
        among: NDArray[np.bool_] | None = None,
    ) -> SelectionTable:
        """Return the table for s = 0 .. s_max; arrays have shape (E,).

        ``values`` (>= 0) count towards s, and ``variances`` (finite, >= 0) are maximised. Channels that are ``unseen``
        have variance +inf; only those ``among`` may be selected, all by default.
        """
        check_table(16 * (s_max + 1), self.memory_limit, s_max + 1, self._capacities[:0])  # the optima themselves
        usable = self._fit if among is None else self._fit & among
        channels = np.flatnonzero(usable)
        # A value beyond s_max counts as s_max: a budget is used up either way.
        counted = np.minimum(values[channels], s_max)
        requests = self._requests[channels]
        reach = np.zeros(self.n_cells, dtype=np.int64)
        _reach_kernel(counted, requests, self._capacities, self._strides, reach)
        n_sums = min(s_max, int(reach[-1])) + 1
        hidden = None if unseen is None or not unseen[channels].any() else unseen[channels]
        groups = -(-self.n_cells // 8)
        cell_bytes = 8 if hidden is None else 12
        needed = n_sums * (len(channels) * groups + self.n_cells * cell_bytes)
        check_table(needed, self.memory_limit, n_sums, self._capacities)
        decisions = np.zeros((len(channels), groups, n_sums), dtype=np.uint8)
        best = np.empty((self.n_cells, n_sums))
        best[:, 0] = 0.0
        reach[:] = 0
        shape = (self._capacities, self._strides)
        if hidden is None:
            _table_kernel(counted, variances[channels], requests, *shape, best, reach, decisions)
            counts = np.zeros(n_sums, dtype=np.int64)
        else:
            gains = np.where(hidden, 0.0, variances[channels])
            table = np.empty(best.shape, dtype=np.int32)
            table[:, 0] = 0
            _lexicographic_table_kernel(counted, hidden, gains, requests, *shape, table, best, reach, decisions)
            counts = table[-1].astype(np.int64)

        def read(s: int, marked: NDArray[np.bool_]) -> None:
            _select_kernel(counted, requests, self._strides, decisions, self.n_cells - 1, s, marked)

        return SelectionTable(s_max, best[-1].copy(), counts, channels, self.n_channels, read)


class SelectionTable:
    """The optima of all budgets, and how to read back the selections that attain them; arrays have shape (s_max + 1,).

    ``finite`` is the sum of finite variances of each optimum, -inf where no selection reaches s; ``unseen`` the number
    of its unseen channels, -1 there. ``read`` marks which of ``channels`` attain the optimum of s.
    """

    def __init__(
        self,
        s_max: int,
        finite: NDArray[np.float64],
        unseen: NDArray[np.int64],
        channels: NDArray[np.intp],
        n_channels: int,
        read: Callable[[int, NDArray[np.bool_]], None],
    ) -> None:
        beyond = s_max + 1 - len(finite)
        self.unseen = np.concatenate((unseen, np.full(beyond, -1, dtype=np.int64)))
        self.finite = np.where(self.unseen >= 0, np.concatenate((finite, np.zeros(beyond))), -np.inf)
        self._channels, self._n_channels, self._read = channels, n_channels, read

    def choice(self) -> int:
        """Return the budget s of ESDP (21); see `choose_budget`."""
        return choose_budget(self.finite, self.unseen)

    def selection(self, s: int) -> NDArray[np.bool_]:
        """Return the selection that attains the optimum of ``s``, shape (E,); none if s is infeasible."""
        chosen = np.zeros(self._n_channels, dtype=np.bool_)
        if self.unseen[s] >= 0:
            marked = np.zeros(len(self._channels), dtype=np.bool_)
            self._read(s, marked)
            chosen[self._channels] = marked
        return chosen


def choose_budget(finite: NDArray[np.float64], unseen: NDArray[np.int64]) -> int:
    """Return s of ESDP (21): most unseen channels, then the largest ``s + sqrt(best[s])``, then the smallest s.

    Both are those of a `SelectionTable`; unseen channels never rise in s: the first entry is the largest.
    """
    candidates = np.flatnonzero(unseen == unseen[0])
    return int(candidates[np.argmax(candidates + np.sqrt(finite[candidates]))])


def check_table(needed: int, limit: int, n_sums: int, capacities: NDArray[np.int64]) -> None:
    """Raise TooLargeError if a table over sums of values and capacities needs more than ``limit`` bytes."""
    if needed <= limit:
        return
    sizes = capacities.tolist()
    shown = ", ".join(map(str, sizes[:8])) + (", ..." if len(sizes) > 8 else "")
    raise TooLargeError(
        f"the table over {n_sums} sums of values and {math.prod(c + 1 for c in sizes)} capacity vectors (capacities "
        f"{shown}) takes {readable_size(needed)}, the limit is {readable_size(limit)}: expected coarser units or "
        "fewer resources, a larger slack delta(t) or smaller alpha (fewer sums), or a larger memory_limit"
    )
