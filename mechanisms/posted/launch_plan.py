r"""Launch plans: the best start for each case of arrival and signal, equations (3)-(4).

.. math::
   \hat u(L) = \sum_{a,d,o} P(a,d,o)\,(1 - \tilde f(s,c,d))\,(V(s+d) - \pi(s,c,d)), \quad s = L(a,o)

and :math:`L_j` maximises it separately for each (a, o). Ties: the job is not run unless the best
value is positive; among equal values the smallest start. Starts are scanned upwards and replace the
best only if better by more than a tolerance.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from marketsched.mechanisms.law import Law

ZERO_TOLERANCE = 1e-12  # slack of the threshold, and of ties for V_max up to 1e4

MADE, POSITIVE, ZEROED = range(3)  # what is counted about estimates


class Terms(NamedTuple):
    """What starts ``first_start + i`` and durations ``k + 1`` are worth, cost, and risk."""

    values: NDArray[np.float64]  # (n_starts + max duration,), V of completions first_start, ...; credits
    prices: NDArray[np.float64]  # (n_starts, n_durations), credits; +inf: not on sale
    longest: NDArray[np.int64]  # (n_starts,), longest duration on sale, rounds
    failures: NDArray[np.float64]  # (>= first_start - now + n_starts, n_durations), before thresholding; row 0 is now


class Choice(NamedTuple):
    """The outcome of planning one report."""

    starts: NDArray[np.int64]  # (n_groups,), -1: not run
    utility: float  # (3), credits
    relaxed_utility: float  # expected value minus price of the plan, as if nothing ever failed
    follows_menu: bool  # the plan also maximises (10): the job is in J'
    cap_binds: bool  # the hard cap took away a start of positive relaxed utility
    estimates: NDArray[np.int64]  # (3,): estimates looked at, of these positive, of these zeroed


def tie_tolerance(max_value: float) -> float:
    """Return the tolerance of ties: 1e-12, scaled with V_max above 1e4."""
    return ZERO_TOLERANCE * max(1.0, max_value / 1e4)


def choose_starts(
    law: Law,
    terms: Terms,
    *,
    now: int,
    first_start: int,
    horizon: int,
    threshold: float,
    tolerance: float,
) -> Choice:
    """Choose the best start of every case of a report, with its data for the run.

    ``terms`` are values, menu prices and estimated failures of all starts; ``threshold`` is theta of (13): estimates up
    to it count as 0; ``tolerance`` is that of ties.
    """
    starts = np.full(law.group_arrivals.size, -1, dtype=np.int64)
    estimates = np.zeros(3, dtype=np.int64)
    cases = (law.offsets, law.group_arrivals, law.durations, law.probabilities)
    utility, relaxed, follows, cap_binds = choose_starts_kernel(
        cases, tuple(terms), now, first_start, horizon, threshold + ZERO_TOLERANCE, tolerance, starts, estimates
    )
    return Choice(starts, utility, relaxed, follows, cap_binds, estimates)


@njit(cache=True)
def choose_starts_kernel(  # type: ignore[no-untyped-def]
    cases, terms, now, first_start, horizon, threshold, tolerance, starts, estimates
):
    """Fill ``starts`` and ``estimates``; return (3), the relaxed utility, and two flags.

    ``cases`` are offsets, arrivals, durations and weights of a `Law`, ``terms`` those of `Terms`, as plain tuples:
    numba takes these a microsecond faster than named ones, and every report is planned by a call.
    """
    offsets, arrivals, durations, weights = cases
    values, prices, longest, failures = terms
    n_starts = prices.shape[0]
    total, total_relaxed = 0.0, 0.0
    follows, cap_binds = True, False
    for g in range(arrivals.size):
        best, best_relaxed, chosen_relaxed = 0.0, 0.0, 0.0
        for i in range(arrivals[g] - first_start, n_starts):
            s = first_start + i
            u, u_relaxed, on_sale, worth = 0.0, 0.0, True, False
            for k in range(offsets[g], offsets[g + 1]):
                weight, d = weights[k], durations[k]
                if weight <= 0.0:
                    continue
                value = values[i + d]
                worth = worth or value > 0.0
                on_sale = on_sale and d <= longest[i] and prices[i, d - 1] < np.inf
                gain = weight * (value - prices[i, d - 1])
                u_relaxed += gain
                if s + d - 1 > horizon:
                    continue  # fails for certain
                failure = failures[s - now, d - 1]
                estimates[0] += 1
                if failure > 0.0:
                    estimates[1] += 1
                    if failure <= threshold:
                        estimates[2] += 1
                        failure = 0.0
                u += (1.0 - min(failure, 1.0)) * gain
            if not worth:
                continue
            if not on_sale:
                cap_binds = cap_binds or u_relaxed > tolerance
                continue
            best_relaxed = max(best_relaxed, u_relaxed)
            if u > best + tolerance:
                best, chosen_relaxed = u, u_relaxed
                starts[g] = s
        total += best
        total_relaxed += chosen_relaxed
        # Sums of a few dozen terms of the size of the values: rounding stays far below 1e-9 of them.
        follows = follows and best_relaxed <= chosen_relaxed + 1e-9 * max(1.0, best_relaxed)
    return total, total_relaxed, follows, cap_binds
