"""First come, first served at a flat price where durations are known: the earliest start that is worth its cost."""

from __future__ import annotations

from numba import njit


@njit(cache=True)
def earliest_start_kernel(free, width, first, duration, values, lasts, last, cost):  # type: ignore[no-untyped-def]
    """Return the earliest start >= ``first`` with room whose completion is worth more than ``cost``; else 0.

    ``free[r - 1]`` are the nodes free in round r; ``values`` and ``lasts`` the steps of the value curve, of which
    completions up to ``last`` count.
    """
    worth_it = 0  # the last completion that is worth it
    for k in range(values.size):
        if values[k] > cost:
            worth_it = min(lasts[k], last)
    step, since = 0, first  # all rounds since..t have room
    for t in range(first, worth_it):
        if free[t - 1] < width:
            since = t + 1
        elif t - since + 1 >= duration:
            while lasts[step] < t + 1:
                step += 1
            if values[step] > cost:
                return t - duration + 1
    return 0


@njit(cache=True)
def first_come_kernel(  # type: ignore[no-untyped-def]
    rows, arrivals, durations, widths, begins, values, lasts, useful, price, free, starts
):
    """Serve jobs of known durations in this order; fill ``starts``, draw ``free`` down in place.

    Returns the value of their completions and their payments, added up.
    """
    welfare, revenue = 0.0, 0.0
    for j in rows:
        width, duration, begin, end = widths[j], durations[j], begins[j], begins[j + 1]
        cost = price * width * duration
        start = earliest_start_kernel(
            free, width, arrivals[j], duration, values[begin:end], lasts[begin:end], useful[j], cost
        )
        if start > 0:
            starts[j] = start
            step = begin
            while lasts[step] < start + duration:
                step += 1
            welfare += values[step]
            revenue += cost
            for t in range(start, start + duration):
                free[t - 1] -= width
    return welfare, revenue
