"""A job that has come to a cluster of offers: the ways in which it could run, and the entry that it took."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from marketsched.mechanisms.auctions.waiting_job import WaitingJob
from marketsched.mechanisms.offers.announced import Report, Stairs
from marketsched.mechanisms.offers.present import GROUP_LONGEST
from marketsched.mechanisms.offers.usual_work import N_BANDS, band_on_nodes
from marketsched.mechanisms.resources.cluster import Cluster
from marketsched.mechanisms.resources.known import Known
from marketsched.mechanisms.resources.node_shares import NodeShares
from marketsched.mechanisms.schedulers.node_jobs import NodeJob, facts_of
from marketsched.mechanisms.unit import Unit

GROUPS = N_BANDS * (len(GROUP_LONGEST) + 1)


class Way(NamedTuple):
    """A shape of a statement with the pools in which it is to run: what an entry names beside class and patience.

    Where durations differ between the pools, the longest of each case counts, so that no announcement is too good.
    """

    rows: list[int]  # options
    report: Report  # of a job of one node, so that a rate is one for all that the job takes
    size: float  # nodes, as of its largest share of the whole cluster
    share: float  # the largest of a node, of the pool where it takes least
    band: int  # of jobs whose usual durations are learnt together
    group: int  # of jobs whose odds are: by band and longest duration
    pools: NDArray[np.bool_]  # (n_pools,)


@dataclass(slots=True, eq=False, kw_only=True)
class Offered(NodeJob):
    """A job that has come and not left; of its report others see the way, the class and the patience of its entry."""

    sizes: NDArray[np.float64]  # by option
    shares: NDArray[np.float64]  # of a node, by option
    device: NDArray[np.bool_]  # whether it takes devices, by option
    way: Way | None = None  # until it has chosen
    place: int = -1  # of `Seen`
    offer: int = 0
    latest: int = 0  # the last round in which it may start
    stop: int = 0  # the round in which its run is stopped
    rate: float = 0.0  # locked, credits a round
    cell: int = 0
    group: int = 0
    chance: float = 0.0
    used: int = 0  # rounds of its run, once it is done
    in_time: bool = False

    def band_of(self, row: int) -> int:
        """Return the band of usual durations of an option."""
        return band_on_nodes(float(self.shares[row]), device=bool(self.device[row]))


def offered_of(x: WaitingJob, known: Known, cluster: Cluster, shares: NodeShares) -> Offered:
    """Return a job at its arrival; without options if it can run nowhere."""
    options, layout = known.options, cluster.layout
    sizes = (options.total / np.maximum(layout.pool_size.sum(axis=0), 1)).max(axis=1, initial=0.0) * cluster.nodes
    device = options.demand[:, layout.device_parts > 0].sum(axis=1) > 0
    return Offered(**facts_of(x, 0, known, cluster), sizes=sizes, shares=shares.of(options), device=device)


def ways_of(each: Offered, now: int, n_pools: int, unit: Unit) -> Iterator[Way]:
    """Yield the ways in which a job could be in time: of each shape all pools, then without the slowest, and so on."""
    for shape in np.unique(each.options.shape).tolist():
        rows = np.flatnonzero(each.options.shape == shape)
        rows = rows[np.argsort(each.means[rows], kind="stable")]
        last = rows.size
        while last:
            way = way_of(each, rows[:last], now, n_pools, unit)
            if way is not None:
                yield way
            slowest = each.means[rows[last - 1]]
            while last and each.means[rows[last - 1]] == slowest:
                last -= 1


def way_of(each: Offered, rows: NDArray[np.int64], now: int, n_pools: int, unit: Unit) -> Way | None:
    """Return the way to run with some options of one shape; None: no run of it can bring anything."""
    report = _report_of(each, rows, now)
    if report is None:
        return None
    pools = np.zeros(n_pools, dtype=np.bool_)
    pools[each.options.pool[rows]] = True
    least = int(rows[each.shares[rows].argmin()])
    band, longest = each.band_of(least), bisect_left(GROUP_LONGEST, report.longest / unit.rounds)
    group = band * (len(GROUP_LONGEST) + 1) + longest
    return Way(rows.tolist(), report, float(each.sizes[least]), float(each.shares[least]), band, group, pools)


def _report_of(each: Offered, rows: NDArray[np.int64], now: int) -> Report | None:
    """Return what a job says of these options; None: no run of it can bring anything."""
    x = each.x
    durations, case = np.unique(each.lengths[rows].max(axis=0), return_inverse=True)
    shortest = int(each.lengths[rows].min())  # it leaves once not even that run would bring anything
    if now + shortest > x.limit:
        return None
    weights = np.bincount(case.ravel(), weights=each.chances, minlength=durations.size).astype(np.float64)
    worth = float(each.options.worth[rows[0]])
    steps, until = x.steps(now + shortest, x.limit)
    stairs = Stairs(np.minimum(until, x.limit), steps * worth)
    return Report(
        1, durations, weights, shortest, int(durations[-1]), float(durations @ weights), stairs, x.limit,
        x.highest * worth, x.restarts, x.patience, 0,
    )  # fmt: skip
