"""Compiled kernels of gang selection; see `esdp_gang` for the problem and its public names.

The table is that of `budgeted_kernels` with one more index: ``placed``, the tasks of the job at hand
that are placed already, counted up to its minimum. Capacity vectors run over (server, resource type).
Tasks are processed from the last of the last job to the first of the first. Each entry holds a pair
(unseen placements, gain of the others), compared in that order; -1 unseen placements: infeasible.
"""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True)
def _gang_table_kernel(  # type: ignore[no-untyped-def]
    values, unseen, gains, requests, servers, offsets, sizes, strides, firsts, jobs, caps, counts, best, decisions
):
    """Fill the tables; what is left in ``counts[0]`` and ``best[0]`` are the optima of all jobs.

    ``firsts[q]:firsts[q + 1]`` are the placements of task q, ``jobs[q]`` its job, ``caps`` the minimum
    of each job (0: no minimum above one). ``decisions[q, placed, cell, s]`` is 0 for "not placed", else
    one plus the placement's number within its task.
    """
    n_cells, n_sums = counts.shape[1], counts.shape[2]
    fitting = np.empty(values.size, np.int64)
    counts[0, :, 0] = 0
    for q in range(jobs.size - 1, -1, -1):
        cap = caps[jobs[q]]
        if q == jobs.size - 1 or jobs[q + 1] != jobs[q]:
            for placed in range(1, cap + 1):
                for cell in range(n_cells):
                    for s in range(n_sums):
                        counts[placed, cell, s] = counts[0, cell, s] if placed == cap else -1
                        best[placed, cell, s] = best[0, cell, s]
        for placed in range(cap + 1):
            after = min(placed + 1, cap)
            for cell in range(n_cells - 1, -1, -1):
                n_fitting = 0
                for p in range(firsts[q], firsts[q + 1]):
                    if _fits(cell, requests, p, servers[p], sizes, strides):
                        fitting[n_fitting] = p
                        n_fitting += 1
                for s in range(n_sums - 1, -1, -1):
                    count, value, choice = counts[placed, cell, s], best[placed, cell, s], 0
                    for i in range(n_fitting):
                        p = fitting[i]
                        source, rest = cell - offsets[p], max(s - values[p], 0)
                        with_it = counts[after, source, rest]
                        if with_it < 0:
                            continue
                        with_it += unseen[p]
                        gained = best[after, source, rest] + gains[p]
                        if with_it > count or (with_it == count and gained > value):
                            count, value, choice = with_it, gained, p - firsts[q] + 1
                    counts[placed, cell, s], best[placed, cell, s] = count, value
                    decisions[q, placed, cell, s] = choice


@njit(cache=True)
def _fits(cell, requests, p, server, sizes, strides):  # type: ignore[no-untyped-def]
    """Return whether placement ``p`` fits into the capacity vector ``cell``."""
    n_types = requests.shape[1]
    for k in range(n_types):
        at = server * n_types + k
        if (cell // strides[at]) % sizes[at] < requests[p, k]:
            return False
    return True


@njit(cache=True)
def _gang_select_kernel(values, offsets, firsts, jobs, caps, decisions, cell, s, chosen):  # type: ignore[no-untyped-def]
    """Mark in ``chosen`` the placements that attain the optimum of budget ``s`` with all capacity."""
    placed = 0
    for q in range(jobs.size):
        if q > 0 and jobs[q] != jobs[q - 1]:
            placed = 0
        choice = decisions[q, placed, cell, s]
        if choice > 0:
            p = firsts[q] + choice - 1
            chosen[p] = True
            cell -= offsets[p]
            s = max(s - values[p], 0)
            placed = min(placed + 1, caps[jobs[q]])
