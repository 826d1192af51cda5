"""Submissions and observations of jobs that are rows of columns: the kernels of prices, plans and paths, in one call.

What is decided is decided by the kernels that the protocol calls one by one: prices (`exponential`), failures
(`failure_table`), plans (`launch_plan`), draws (`draws`, `path_kernels`), narrowed laws (`residual`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from marketsched.mechanisms.kernel_cache import kernel_over
from marketsched.mechanisms.posted.draws import law_kernel
from marketsched.mechanisms.posted.exponential import CAP_TOLERANCE, commit_kernel, price_kernel, price_table_kernel
from marketsched.mechanisms.posted.failure_table import failure_counts_kernel
from marketsched.mechanisms.posted.launch_plan import choose_starts_kernel
from marketsched.mechanisms.posted.path_kernels import (
    BUCKETS,
    BUCKETS_PER_POINT,
    GUIDE,
    HIGH,
    KEY,
    LOW,
    MAY_NEVER,
    OFFSET,
    POINTS,
    STEPS,
    WIDTH,
    Paths,
    place_kernel,
)
from marketsched.mechanisms.posted.residual import not_arrived_kernel, outlived_kernel


class Rows(NamedTuple):
    """What is reported, and what happens, by row; see `JobColumns`. The laws are a `ReportedLaws`."""

    births: NDArray[np.int64]
    durations: NDArray[np.int64]
    widths: NDArray[np.int64]
    begins: NDArray[np.int64]
    values: NDArray[np.float64]
    lasts: NDArray[np.int64]
    useful: NDArray[np.int64]  # last completions that are worth anything in this market
    spans: NDArray[np.int64]  # (n_laws, 2), by law: its shortest and its longest duration, rounds


class Rule(NamedTuple):
    """What holds for all submissions of a round."""

    now: int
    n_paths: int
    root: np.uint64
    stamp: int  # of their draws
    capacity: int
    horizon: int
    max_duration: int
    threshold: float  # with its slack
    tolerance: float  # of ties


class Found(NamedTuple):
    """What becomes of submissions; the last three are sums over all of them."""

    planned: NDArray[np.int64]  # by row: start of the case that happens, 0: none
    estimates: NDArray[np.float64]  # by row, credits
    prices: NDArray[np.float64]  # by row: what it pays if it completes, credits
    welfare: NDArray[np.float64]  # (2,), as of `WelfareLedger`: utility, lowest density
    counts: NDArray[np.int64]  # (6,): jobs, of these in J', bound by the cap, estimates, positive, zeroed


_compiled = kernel_over(
    law_kernel,
    commit_kernel,
    failure_counts_kernel,
    place_kernel,
    choose_starts_kernel,
    not_arrived_kernel,
    Paths,
)


@_compiled
def enter_kernel(chosen, places, used, rows, laws, menu, paths, rule, found):  # type: ignore[no-untyped-def]
    """Submit rows one after the other, into these slots of the paths; see `take_row_kernel`."""
    for i in range(chosen.size):
        starts, _ = plan_row_kernel(chosen[i], rows, laws, menu, paths, rule, found)
        take_row_kernel(chosen[i], starts, places[i : i + 1], used, rows, laws, menu, paths, rule, found)


@_compiled
def plan_row_kernel(row, rows, laws, menu, paths, rule, found):  # type: ignore[no-untyped-def]
    """Return the start of each case of a report at the menu of this moment, and the failures it was chosen at."""
    law, width, last = laws.of[row], rows.widths[row], rows.useful[row]
    own = slice(laws.points[law], laws.points[law + 1])
    cases = slice(laws.cases[law], laws.cases[law + 1])
    first_start = rows.births[row] + laws.waits[own][0]
    shortest, longest = rows.spans[law, 0], rows.spans[law, 1]
    n_starts = max(0, last - shortest - first_start + 1)
    n_rows = first_start - rule.now + n_starts if n_starts > 0 else 1
    steps = slice(rows.begins[row], rows.begins[row + 1])
    worth = _worth(rows.values[steps], rows.lasts[steps], first_start, last, n_starts + longest)
    table, on_sale = np.empty((n_starts, longest)), np.empty(n_starts, np.int64)
    room = menu.supply - width + CAP_TOLERANCE
    price_table_kernel(menu.prices, menu.usage, first_start, width, room, table, on_sale)
    failures = _failures(n_rows, longest, width, paths, rule)
    starts, estimates = np.full(cases.stop - cases.start, -1), np.zeros(3, np.int64)
    begins, arrivals = laws.begins[cases.start + law : cases.stop + law + 1], laws.case_waits[cases] + rows.births[row]
    reported, terms = (begins, arrivals, laws.durations[own], laws.weights[own]), (worth, table, on_sale, failures)
    utility, relaxed, follows, binds = choose_starts_kernel(
        reported, terms, rule.now, first_start, rule.horizon, rule.threshold, rule.tolerance, starts, estimates
    )
    found.estimates[row] = utility
    found.counts[0] += 1
    for i in range(estimates.size):
        found.counts[3 + i] += estimates[i]
    if last > 0:
        lowest = _worth(rows.values[steps], rows.lasts[steps], last, last, 1)[0]
        if lowest > 0:
            found.welfare[1] = min(found.welfare[1], lowest / (width * longest))
    if follows:
        found.counts[1] += 1
        found.welfare[0] += relaxed
        found.counts[2] += binds
    return starts, failures


@njit(cache=True)
def _worth(values, lasts, first, last, count):  # type: ignore[no-untyped-def]
    """Return the values of completions ``first, first + 1, ...``; those after ``last`` are worth nothing."""
    worth, k = np.zeros(count), 0
    for i in range(min(count, last - first + 1)):
        while k < lasts.size and lasts[k] < first + i:
            k += 1
        if k < lasts.size:
            worth[i] = values[k]
    return worth


@_compiled
def _failures(n_rows, n_durations, width, paths, rule):  # type: ignore[no-untyped-def]
    """Return the failure probabilities of starts from now on, as `MonteCarloOracle.table`."""
    table = np.zeros((n_rows, n_durations))
    row, n_rounds = rule.now % paths.loads.shape[1], n_rows + n_durations - 1
    soft, hard = rule.capacity - width, rule.capacity
    if failure_counts_kernel(paths.loads, paths.row_tops, row, n_rounds, soft, hard, table):
        for i in range(n_rows):
            for k in range(n_durations):
                table[i, k] = table[i, k] / rule.n_paths
    left = rule.horizon - rule.now + 1
    for i in range(max(0, left - n_durations), n_rows):
        for k in range(max(0, left - i), n_durations):
            table[i, k] = 1.0
    return table


@_compiled
def take_row_kernel(row, starts, place, used, rows, laws, menu, paths, rule, found):  # type: ignore[no-untyped-def]
    """Follow the plan of a report: note its price, force it on the prices, draw its outcomes.

    ``used`` (2,), modified in place: the entries of `Paths.points` and of `Paths.guides` that hold laws.
    """
    law, width, slot = laws.of[row], rows.widths[row], place[0]
    own = slice(laws.points[law], laws.points[law + 1])
    durations, weights = laws.durations[own], laws.weights[own]
    size = durations.size
    firsts, lasts = np.empty(size, np.int64), np.full(size, -1)
    for g in range(starts.size):
        at = laws.cases[law] + law + g
        for k in range(laws.begins[at], laws.begins[at + 1]):
            firsts[k] = starts[g]
            if starts[g] >= 0:
                lasts[k] = starts[g] + durations[k] - 1
    case, runs = laws.happens[row], rows.durations[row]
    if case >= 0 and starts[case] >= 0:
        found.planned[row] = starts[case]
        if runs <= rule.max_duration:
            found.prices[row] = price_kernel(menu.prices, width, starts[case], runs)
    commit_kernel(menu.usage, menu.prices, menu.base, menu.ratio, menu.room, width, firsts, durations, weights, 0)
    buckets = BUCKETS_PER_POINT * size
    steps = law_kernel(firsts, lasts, weights, paths.points, paths.cumulated, paths.guides, used[0], used[1], buckets)
    for column in range(paths.slots.shape[1]):
        paths.slots[slot, column] = 0
    paths.slots[slot, OFFSET], paths.slots[slot, POINTS], paths.slots[slot, HIGH] = used[0], size, size
    paths.slots[slot, GUIDE], paths.slots[slot, BUCKETS], paths.slots[slot, STEPS] = used[1], buckets, steps
    paths.slots[slot, MAY_NEVER], paths.slots[slot, WIDTH], paths.slots[slot, KEY] = 1, width, row
    blocks = (0, paths.loads.shape[0])
    place_kernel(paths, place, rule.now, rule.n_paths, -1, rule.root, rule.stamp, blocks)
    used[0] += size + 2
    used[1] += buckets


@_compiled
def settle_kernel(live, now, max_duration, rows, laws, paths, comes, planned):  # type: ignore[no-untyped-def]
    """Condition on what did not happen before round ``now``; return the slots whose laws were narrowed.

    As `ResidualTracker._settle`. ``live`` are all slots; rows with ``comes`` arrived, and are launched as ``planned``.
    """
    narrowed, n = np.empty_like(live), 0
    for slot in live:
        row, low, high = paths.slots[slot, KEY], paths.slots[slot, LOW], paths.slots[slot, HIGH]
        if low >= high:
            continue
        law = laws.of[row]
        own = slice(laws.points[law], laws.points[law + 1])
        if not comes[row]:
            least = not_arrived_kernel(laws.waits[own], low, high, now - rows.births[row])
        elif planned[row] + laws.durations[own][low] > now:
            least = low
        else:
            least = outlived_kernel(laws.durations[own], laws.weights[own], low, high, now - planned[row])
            if least == high:  # it outlived its law
                behind = paths.slots[slot, OFFSET] + paths.slots[slot, POINTS] + 1
                paths.points[0, behind], paths.points[1, behind] = planned[row], planned[row] + max_duration - 1
        if least != low:
            paths.slots[slot, LOW] = least
            narrowed[n] = slot
            n += 1
    return narrowed[:n]
