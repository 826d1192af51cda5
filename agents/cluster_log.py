"""The use of a cluster by a market, round by round: by pool and resource, at what price, and what lies in fragments."""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from marketsched.mechanisms.columns import Ending, Outcomes
from marketsched.mechanisms.resources.bookings import Booking
from marketsched.mechanisms.resources.calendars import Calendars
from marketsched.mechanisms.resources.cluster import Cluster
from marketsched.mechanisms.resources.placement import TaskTypes, fragments

NOW = 1  # the only round of its calendars


class ClusterLog:
    """Keeps account of bookings that run on a cluster; one row per round, pool and resource in the end."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._now = Calendars(cluster, NOW)  # of the present round alone
        self._types = TaskTypes(len(cluster.resources))
        self._running: dict[Hashable, Booking] = {}
        self._used: list[NDArray[np.int64]] = []
        self._prices: list[NDArray[np.float64]] = []
        self._fragments: list[NDArray[np.float64]] = []
        self._income = np.zeros(len(cluster.pool_names))

    def start(self, job: Hashable, booking: Booking) -> None:
        """Note that a job runs from this round on."""
        self._running[job] = booking
        self._types.add(booking.wanted.demand, booking.wanted.tasks)
        self._now.book(booking.wanted, booking.placed, NOW, 1)

    def leave(self, job: Hashable, payment: float = 0.0) -> None:
        """Note that a job is gone from the next round on, and what it paid, credits."""
        booking = self._running.pop(job, None)
        if booking is not None:
            self._now.release(booking.wanted, booking.placed, NOW, NOW + 1)
            self._income[booking.wanted.pool] += payment

    def close_round(self, prices: NDArray[np.float64] | None) -> None:
        """Record the use of this round, before jobs that end with it leave; ``prices`` as `Mechanism.pool_prices`."""
        layout = self._cluster.layout
        self._used.append(layout.pool_size - self._now.pool_free(NOW, 1)[:, :, 0])
        self._prices.append(np.full(layout.pool_size.shape, np.nan) if prices is None else prices[:, :, 0])
        free, devices = (np.ascontiguousarray(each[..., 0], np.int64) for each in self._now.state(NOW, 1))
        self._fragments.append(fragments(free, devices, layout, self._types))

    def play(self, outcomes: Outcomes, first: int, last: int) -> None:
        """Record rounds ``first .. last`` of a market that was played whole."""
        assert outcomes.on_cluster is not None
        starting, ending = (_by_round(column, first, last) for column in (outcomes.starts, outcomes.left))
        for now in range(first, last + 1):
            for row in starting[now]:
                self.start(row, outcomes.on_cluster.bookings[row])
            for row in reversed(ending[now]):
                if outcomes.endings[row] != Ending.COMPLETED:
                    self.leave(row, float(outcomes.payments[row]))
            self.close_round(outcomes.on_cluster.prices[now - 1])
            for row in ending[now]:
                self.leave(row, float(outcomes.payments[row]))

    def table(self) -> pd.DataFrame:
        """Return one row per round, pool and resource.

        ``round``, ``pool``, ``resource``; ``used`` and ``size`` in units of the resource; ``price``, credits per unit
        and round, as announced for this round in it (missing without prices); ``fragmented``, of what is free of a
        device the share that a task like those that ran before could not use (missing of other resources).
        """
        cluster, n = self._cluster, len(self._used)
        parts = np.array([resource.parts for resource in cluster.resources], dtype=np.float64)
        shape = (n, len(cluster.pool_names), parts.size)
        used = np.array(self._used, dtype=np.float64).reshape(shape) / parts
        size = np.broadcast_to(cluster.layout.pool_size / parts, shape)
        prices = np.array(self._prices).reshape(shape) * parts
        lost = np.array(self._fragments).reshape(shape)
        rounds, pools, resources = np.indices(shape)
        names = np.array([resource.name for resource in cluster.resources], dtype=object)
        table = pd.DataFrame(
            {
                "round": rounds.ravel() + 1,
                "pool": np.array(cluster.pool_names, dtype=object)[pools.ravel()],
                "resource": names[resources.ravel()],
                "used": used.ravel(),
                "size": size.ravel(),
                "price": prices.ravel(),
                "fragmented": lost.ravel(),
            }
        )
        return table[table["size"] > 0].reset_index(drop=True)

    def pools(self, last: int) -> pd.DataFrame:
        """Return one row per pool and resource, over rounds 1 to ``last``.

        ``pool``, ``resource``; ``in_use``, a share of what there is; ``fragmented``, of what is free of a device the
        share that a task like those that ran before could not use (NaN of other resources); ``price``, mean credits
        per unit and round (NaN without prices); ``income``, credits, of all jobs of the pool in all rounds.
        """
        rows = self.table()
        rows = rows[rows["round"] <= last]
        free = rows["size"] - rows["used"]
        rows = rows.assign(free=free.where(rows["fragmented"].notna()), lost=free * rows["fragmented"])
        sums = rows.groupby(["pool", "resource"], sort=False).agg(
            {"used": "sum", "size": "sum", "free": "sum", "lost": "sum", "price": "mean"}
        )
        income = dict(zip(self._cluster.pool_names, self._income.tolist(), strict=True))
        found = pd.DataFrame(
            {
                "in_use": sums["used"] / sums["size"],
                "fragmented": sums["lost"] / sums["free"].where(sums["free"] > 0),
                "price": sums["price"],
            }
        ).reset_index()
        return found.assign(income=found["pool"].map(income).astype(np.float64))


def _by_round(rounds: NDArray[np.int64], first: int, last: int) -> dict[int, list[int]]:
    """Return the rows of each of these rounds."""
    found: dict[int, list[int]] = {now: [] for now in range(first, last + 1)}
    for row in np.flatnonzero((rounds >= first) & (rounds <= last)).tolist():
        found[int(rounds[row])].append(row)
    return found
