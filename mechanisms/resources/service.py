"""The turn of one arrival: its favourite entry for which there is room is placed and booked, in one compiled call."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from marketsched.mechanisms.kernel_cache import kernel_over
from marketsched.mechanisms.resources.bookings import Booking
from marketsched.mechanisms.resources.calendars import (
    Calendars,
    Placed,
    Requests,
    Wanted,
    _change_kernel,
    _first_that_fits_kernel,
    _room_kernel,
)
from marketsched.mechanisms.resources.known import Known
from marketsched.mechanisms.resources.menus import _entries_kernel, _quoted_kernel
from marketsched.mechanisms.resources.placement import RULES, Rule, TaskTypes, _placed_kernel


class Terms(NamedTuple):
    """What holds for every arrival of a round."""

    now: int  # the round
    prefix: NDArray[np.float64]  # (n_pools, n_resources, n + 1), prices of rounds now, now + 1, ... added up
    rounds_left: int  # from the current one to the horizon: no booking is longer
    phi: float  # share of the price of booked rounds that is paid for those not used
    placement: Rule


def book_favourite(known: Known, terms: Terms, calendars: Calendars, types: TaskTypes) -> tuple[float, Booking | None]:
    """Book the entry of largest surplus for which a placement exists (`marketsched.mechanisms.resources.menus`).

    The booking is taken off the calendars; ``types`` are past tasks, for the rule `fgd`. Returns what the job lost
    since the cluster is not empty, credits: the surplus of its best entry less that of the entry booked; and its
    booking, None if no entry of positive surplus has room.
    """
    cluster, options = calendars.cluster, known.options
    found = _serve_kernel(
        calendars.free, cluster.layout, options, known.lengths, known.chances, known.values,
        terms.prefix, types.frequent, RULES.index(terms.placement), terms.now - calendars.first, terms.rounds_left,
        terms.phi,
    )  # fmt: skip
    lost, row, start, length, nodes, tasks, devices, parts, costs = found
    if row < 0:
        return lost, None
    costs.flags.writeable = False  # copies of a market share it
    pool = int(options.pool[row])
    wanted = Wanted(pool, int(options.tasks[row]), int(options.per_node[row]), options.demand[row])
    placed, kind, first = Placed(nodes, tasks, devices, parts), cluster.pool_kinds[pool], terms.now + start
    return lost, Booking(int(options.shape[row]), kind, first, length, wanted, placed, costs, terms.phi)


_compiled = kernel_over(_room_kernel, _entries_kernel, _placed_kernel)


@_compiled
def _serve_kernel(calendar, layout, options, lengths, chances, values, prefix, types, rule, now, rounds_left, phi):  # type: ignore[no-untyped-def]
    """Return what the job lost, the row of its option (-1: none), start after ``now``, length, placement and costs."""
    totals = np.empty(options.demand.shape, np.int64)
    for o, k in np.ndindex(totals.shape):
        totals[o, k] = options.tasks[o] * options.demand[o, k]
    surplus, rows, starts, booked = _entries_kernel(
        prefix, options.pool, totals, options.worth, lengths, chances, values, rounds_left, phi
    )
    none = np.empty(0, np.int64)
    if surplus.size == 0:
        return 0.0, -1, 0, 0, none, none, none, none, np.empty(0)
    order = np.argsort(-surplus, kind="mergesort")  # equal ones stay in their order
    i = _first_that_fits_kernel(
        calendar, layout, now + starts[order], booked[order], rows[order],
        Requests(options.pool, options.tasks, options.per_node, options.demand),
    )  # fmt: skip
    if i < 0:
        return surplus[order[0]], -1, 0, 0, none, none, none, none, np.empty(0)
    lost, i = surplus[order[0]] - surplus[order[i]], order[i]
    o, start, length = rows[i], starts[i], booked[i]
    g, demand, begin = options.pool[o], options.demand[o], now + start
    room = _room_kernel(calendar, layout, g, begin, begin + length, demand, options.per_node[o])
    nodes, tasks, numbers, parts = _placed_kernel(rule, options.tasks[o], demand, room, layout, types)
    _change_kernel(calendar, g, demand, Placed(nodes, tasks, numbers, parts), begin, begin + length, -1)
    return lost, o, start, length, nodes, tasks, numbers, parts, _quoted_kernel(prefix, g, totals[o], start, length)
