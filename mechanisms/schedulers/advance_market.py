"""Markets in which `advance` alone decides who starts, without a look at each waiting job."""

from __future__ import annotations

from collections.abc import Sequence

from marketsched.mechanisms.auctions.arrival_market import NOT_YET, ArrivalMarket, WaitingJob


class AdvanceMarket(ArrivalMarket):
    """A market that serves jobs when a round is cleared; nothing is paid unless `complete` says so."""

    def serve(self, waiting: Sequence[WaitingJob]) -> Sequence[int | None]:
        """Decide nothing: `advance` does."""
        return [NOT_YET] * len(waiting)

    def charge(self, x: WaitingJob) -> float:
        """Return 0: nothing is paid here."""
        return 0.0
