"""A job that has come to a cluster of credits, and what became of it."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from marketsched.mechanisms.auctions.arrival_market import WaitingJob
from marketsched.mechanisms.credits.nodes import Run
from marketsched.mechanisms.credits.pools import PoolPurses
from marketsched.mechanisms.credits.purses import CREDIT
from marketsched.mechanisms.credits.usual_work import band_on_nodes
from marketsched.mechanisms.mechanism import JobId
from marketsched.mechanisms.resources.bookings import Booking
from marketsched.mechanisms.resources.calendars import Wanted
from marketsched.mechanisms.resources.cluster import Cluster
from marketsched.mechanisms.resources.known import Known
from marketsched.mechanisms.resources.shapes import Options
from marketsched.mechanisms.values import ValueCurve

SAME = 9  # digits to which parts of a value are compared


@dataclass(slots=True)
class PoolUpgrade:
    """A job that becomes regular in a pool, and what came of it; fields as of `Upgrade` of identical nodes."""

    job: JobId
    owner: Hashable
    pool: str
    round: int
    cost: float
    purse: float
    threshold: float
    bound: float
    started: int = 0
    left: int = 0
    unpaid: int = 0


@dataclass(slots=True, eq=False)
class Present:
    """A job that has come and not left.

    What it reported decides about its own owner's jobs alone: ``important`` and ``means``, ``values``, ``last`` and
    ``last_start``. Others see what it asks for, its class, its turn, and whether and since when it runs.
    """

    x: WaitingJob
    owner: int
    options: Options
    lengths: NDArray[np.int64]  # rounds, by option and case
    chances: NDArray[np.float64]  # of the cases
    values: NDArray[np.float64]  # of completions in rounds arrival, ..., as parts of the highest
    means: NDArray[np.float64]  # announced rounds, by option
    costs: NDArray[np.int64]  # millionths of a credit a round, by option
    size: float  # nodes, of the option that takes the least work
    mean: float  # rounds, of that option
    important: float
    band: int
    turn: int = 0  # of arrival
    run: Run | None = None
    booking: Booking | None = None
    row: int = 0  # the option that it has
    since: int = 0  # the round since which it is regular; 0: it is free
    pool: int = 0  # in which it became regular
    ran: int = 0  # how many runs of it were taken back
    paid: int = 0  # millionths of a credit
    upgrade: PoolUpgrade | None = None  # while it waits for a regular start

    def wanted(self, row: int) -> Wanted:
        """Return what an option asks for."""
        o = self.options
        return Wanted(int(o.pool[row]), int(o.tasks[row]), int(o.per_node[row]), o.demand[row])

    def price(self, row: int) -> tuple[int, int]:
        """Return the pool of an option, and what it costs there a round, millionths of a credit."""
        return int(self.options.pool[row]), int(self.costs[row])

    def pays(self, pools: PoolPurses, row: int) -> bool:
        """Let its owner pay for a round of an option; tell whether it could."""
        pool, cost = self.price(row)
        could = pools.pay(self.owner, pool, cost)
        self.paid += cost * could
        return could

    def row_in(self, pool: int) -> int:
        """Return the first option in a pool that it accepts."""
        return int(np.flatnonzero(self.options.pool == pool)[0])

    def worth_most(self, now: int) -> list[int]:
        """Return the options with which a start now is worth most; none if it is worth nothing.

        Only parts of the job's own highest value are compared, so that no scale counts.
        """
        places = now + self.lengths - self.x.arrival
        inside = places < self.values.size
        worth = np.where(inside, self.values[np.minimum(places, self.values.size - 1)], 0.0) @ self.chances
        worth = np.round(worth * self.options.worth, SAME)
        best = float(worth.max())
        return np.flatnonzero(worth == best).tolist() if best > 0 else []


def present_of(
    x: WaitingJob, owner: int, known: Known, value: ValueCurve, cluster: Cluster, pools: PoolPurses
) -> Present:
    """Return a job at its arrival; without options if it can run nowhere."""
    options, layout = known.options, cluster.layout
    means, costs = known.lengths @ known.chances, pools.costs(options)
    total = np.maximum(layout.pool_size.sum(axis=0), 1)
    sizes = (options.total / total).max(axis=1, initial=0.0) * cluster.nodes
    size, mean, band = 1.0, 1.0, 0
    if means.size:
        row = int(np.argmin(sizes * means / options.worth))
        size, mean = float(sizes[row]), float(means[row])
        device = bool(options.demand[row][layout.device_parts > 0].any())
        band = band_on_nodes(float(costs[row]) / CREDIT, device=device)
    values = known.values / max(value.highest, 1e-300)
    important = value.highest / (size * mean)
    return Present(x, owner, options, known.lengths, known.chances, values, means, costs, size, mean, important, band)
