"""The best entry of a menu on a cluster for a job as it is: prices and calendars as they were, tested here once more.

Nothing of the mechanism's own search is used but the list of the ways in which a job can run. That no other booking is
worth more to it is the theorem's part (`marketsched.mechanisms.resources.bid_price`): a booking is of use if a true
shape can run inside, and then that shape has an entry that costs no more.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from marketsched.mechanisms.limits import MarketLimits
from marketsched.mechanisms.resources.cluster import Cluster
from marketsched.mechanisms.resources.known import known_at_arrival
from marketsched.mechanisms.resources.menus import ClusterMenu
from marketsched.mechanisms.resources.shapes import Options
from marketsched.mechanisms.sow import StatementOfWork


def best_on_cluster(
    menu: ClusterMenu, truth: StatementOfWork, duration: int, cluster: Cluster, limits: MarketLimits
) -> tuple[float, str]:
    """Return the largest true surplus among the entries of a menu for which a placement exists, and it in words.

    ``menu`` is what the job faced when it was served; ``duration``, the rounds that the platform saw at arrival, tells
    the case of its law. Credits, 0 for not running at all.
    """
    known = known_at_arrival(truth, cluster, menu.now, duration, limits)
    options, found = known.options, list[tuple[float, int, int]]()
    for o, d in enumerate(known.lengths[:, 0].tolist() if known.lengths.size else []):
        last = min(known.values.size - d, limits.horizon - menu.now + 1 - d + 1)
        starts = np.arange(max(0, last))
        values = float(options.worth[o]) * known.values[starts + d]
        surplus = values - _costs(menu, int(options.pool[o]), options.total[o], starts, d)
        found += [(float(surplus[s]), o, s) for s in np.flatnonzero(surplus > 0).tolist()]
    for surplus_, o, s in sorted(found, reverse=True):
        d = int(known.lengths[o, 0])
        if has_room(menu, cluster, options, o, s, d):
            pool = cluster.pool_names[options.pool[o]]
            return surplus_, f"shape {options.shape[o]} in round {menu.now + s} on {pool} was to be had"
    return 0.0, ""


def has_room(menu: ClusterMenu, cluster: Cluster, options: Options, o: int, start: int, length: int) -> bool:
    """Tell whether the tasks of an option fit on the nodes of its pool throughout these rounds after the menu's own."""
    layout, rounds, left = cluster.layout, slice(start, start + length), int(options.tasks[o])
    pool, demand = int(options.pool[o]), options.demand[o].tolist()
    if start + length > menu.free.shape[2]:
        return False
    for x in range(int(layout.pool_begin[pool]), int(layout.pool_begin[pool + 1])):
        fit = int(options.per_node[o])
        for k, need in enumerate(demand):
            parts = int(layout.device_parts[k])
            if need and not parts:
                fit = min(fit, int(menu.free[x, k, rounds].min()) // need)
            elif need:
                own = menu.devices[layout.device_begin[x, k] : layout.device_begin[x, k + 1], rounds]
                least = own.min(axis=1) if own.size else np.zeros(0, dtype=np.int64)
                whole = int((least == parts).sum()) // max(1, need // parts)
                fit = min(fit, whole if need >= parts else int((least // need).sum()))
        left -= fit
    return left <= 0


def _costs(
    menu: ClusterMenu, pool: int, total: NDArray[np.int64], starts: NDArray[np.int64], length: int
) -> NDArray[np.float64]:
    """Return what so many rounds from each start on cost, credits."""
    last = menu.prefix.shape[2] - 1
    ends, begins = np.minimum(starts + length, last), np.minimum(starts, last)
    costs = np.zeros(starts.size)
    for k, parts in enumerate(total.tolist()):  # in the mechanism's order: sums are rounded alike
        costs += parts * (menu.prefix[pool, k, ends] - menu.prefix[pool, k, begins])
    return costs
