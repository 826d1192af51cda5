"""Whole markets on a cluster: the rule of the protocol for jobs whose owners report what is true."""

from __future__ import annotations

from marketsched.mechanisms.auctions.arrival_market import ArrivalMarket
from marketsched.mechanisms.auctions.rows_play import RowsPlay
from marketsched.mechanisms.auctions.waiting_job import WaitingJob
from marketsched.mechanisms.columns import JobColumns, OnCluster, Outcomes
from marketsched.mechanisms.errors import InvalidReportError
from marketsched.mechanisms.limits import MarketLimits
from marketsched.mechanisms.resources.bookings import Booking, chances_of_cases, real_run
from marketsched.mechanisms.resources.cluster import Cluster
from marketsched.mechanisms.resources.shapes import case_of, cases_of, options_of


class ClusterPlay(RowsPlay):
    """A market on a cluster between two rounds; parameters as of `RowsPlay`."""

    def __init__(self, market: ArrivalMarket, jobs: JobColumns) -> None:
        super().__init__(market, jobs)
        self._cluster: Cluster = market.cluster  # type: ignore[assignment]
        self._noted = OnCluster()

    def advance(self, first: int, until: int, outcomes: Outcomes) -> None:
        """Play rounds ``first .. until``."""
        assert outcomes.on_cluster is not None
        self._noted = outcomes.on_cluster
        super().advance(first, until, outcomes)

    def _clear(self, now: int, outcomes: Outcomes) -> None:
        super()._clear(now, outcomes)
        self._noted.in_use.append(self._market.nodes_in_use() or 0)
        self._noted.prices.append(self._market.pool_prices(now, 1))

    def _end(self, x: WaitingJob, now: int) -> int:
        """Return the round after the last one of a run that begins now, and note what its completion is worth."""
        booking = self._market.booking(x.job)
        assert booking is not None
        length, worth = self._run(x, booking)
        self._noted.bookings[x.order] = booking
        if worth != 1.0:
            self._noted.worths[x.order] = worth
        return now + length

    def _run(self, x: WaitingJob, booking: Booking) -> tuple[int, float]:
        """Return what `real_run` does: a job with one shape starts that, and its tasks run on what it asked for."""
        truth, shapes = x.sow, x.sow.shapes
        case = case_of(shapes, int(self._jobs.durations[x.order]))
        if len(shapes) == 1:
            duration = shapes[0].on[booking.kind][case]
            return (duration, shapes[0].worth) if duration <= booking.length else (booking.length, 0.0)
        chances = chances_of_cases(truth, x.arrival, x.signal)
        return real_run(shapes, case, truth.value, booking, self._cluster, chances)


def all_fit(jobs: JobColumns, limits: MarketLimits) -> bool:
    """Tell whether the market would accept the shapes of every job that is submitted, and each is a case of them."""
    assert limits.cluster is not None
    for row in (jobs.births <= limits.horizon).nonzero()[0].tolist():
        shapes = jobs.stated(row).shapes
        try:
            options_of(shapes, limits.cluster)
        except InvalidReportError:
            return False
        if int(jobs.durations[row]) not in cases_of(shapes):
            return False
    return True
