"""Small clusters with random bookings on them, for tests of what fits."""

from __future__ import annotations

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp

from marketsched.mechanisms.resources.calendars import Calendars, Placed, Wanted
from marketsched.mechanisms.resources.cluster import Cluster, NodeGroup, Resource
from marketsched.mechanisms.resources.placement import RULES, TaskTypes, place

CPU, MEMORY, GPU = Resource("cpu"), Resource("memory"), Resource("gpu", parts=10, device=True)


def small_cluster(rng: np.random.Generator) -> Cluster:
    """Return two pools of one to four nodes each, with cores, memory and up to four devices of ten parts."""
    groups = [
        NodeGroup(
            f"g{i}",
            "ab"[i % 2],
            int(rng.integers(1, 3)),
            {"cpu": int(rng.integers(2, 9)), "memory": int(rng.integers(2, 9)), "gpu": int(rng.integers(0, 5))},
        )
        for i in range(4)
    ]
    return Cluster((CPU, MEMORY, GPU), groups)


def random_wanted(rng: np.random.Generator, cluster: Cluster) -> Wanted:
    """Return tasks that may fit or not: of devices none, a share, or one or two whole ones."""
    gpu = int(rng.choice([0, 0, 2, 3, 5, 7, 10, 10, 20]))
    demand = np.array([rng.integers(0, 4), rng.integers(0, 4), gpu], dtype=np.int64)
    if not demand.any():
        demand[0] = 1
    tasks = int(rng.integers(1, 7))
    return Wanted(int(rng.integers(0, len(cluster.pool_names))), tasks, int(rng.integers(1, tasks + 1)), demand)


def filled(rng: np.random.Generator, cluster: Cluster, reach: int, n: int) -> tuple[Calendars, list[tuple]]:
    """Return calendars with what fits of ``n`` random bookings, and those bookings."""
    calendars, types, booked = Calendars(cluster, reach), TaskTypes(len(cluster.resources)), []
    for _ in range(n):
        wanted, start = random_wanted(rng, cluster), int(rng.integers(1, reach))
        length = int(rng.integers(1, reach - start + 1))
        types.add(wanted.demand)
        if calendars.fits(wanted, start, length):
            placed = placed_by(str(rng.choice(RULES)), calendars, wanted, start, length, types)
            calendars.book(wanted, placed, start, length)
            booked.append((wanted, placed, start, start + length))
    return calendars, booked


def placed_by(rule, calendars: Calendars, wanted: Wanted, start: int, length: int, types: TaskTypes) -> Placed:
    """Place by one rule."""
    return place(rule, calendars.room(wanted, start, length), wanted, calendars.cluster, types)


def fits_by_milp(cluster: Cluster, free, devices, wanted: Wanted) -> bool:
    """Tell whether tasks can be placed: every task on a node, its devices one by one, every round a constraint.

    ``free`` (n_nodes, n_resources, n_rounds) and ``devices`` (n_devices, n_rounds) are parts; devices are resource 2.
    """
    layout, need = cluster.layout, int(wanted.demand[2])
    nodes = range(layout.pool_begin[wanted.pool], layout.pool_begin[wanted.pool + 1])
    places = [(i, x) for i in range(wanted.tasks) for x in nodes]
    shares = [(i, y) for i, x in places for y in range(layout.device_begin[x, 2], layout.device_begin[x, 3])]
    place_of, share_of = ({key: n for n, key in enumerate(keys)} for keys in (places, shares))
    size, rows, lows, highs = len(places) + len(shares), [], [], []

    def constrain(entries, low, high):
        row = np.zeros(size)
        for column, weight in entries:
            row[column] += weight
        rows.append(row), lows.append(low), highs.append(high)

    each, units = (10, need // 10) if need >= 10 else (need, 1 if need else 0)
    for i in range(wanted.tasks):
        constrain([(place_of[i, x], 1.0) for x in nodes], 1, 1)
        for x in nodes:
            own = [
                (len(places) + share_of[i, y], 1.0) for y in range(layout.device_begin[x, 2], layout.device_begin[x, 3])
            ]
            constrain([*own, (place_of[i, x], -units)], 0, 0)
    for x in nodes:
        constrain([(place_of[i, x], 1.0) for i in range(wanted.tasks)], 0, wanted.per_node)
        for k in (0, 1):
            for t in range(free.shape[2]):
                own = [(place_of[i, x], wanted.demand[k]) for i in range(wanted.tasks)]
                constrain(own, -np.inf, free[x, k, t])
        for y in range(layout.device_begin[x, 2], layout.device_begin[x, 3]):
            for t in range(devices.shape[1]):
                own = [(len(places) + share_of[i, y], each) for i in range(wanted.tasks)]
                constrain(own, -np.inf, devices[y, t])
    found = milp(
        np.zeros(size), constraints=LinearConstraint(np.array(rows), lows, highs), integrality=1, bounds=Bounds(0, 1)
    )
    return found.status == 0
