"""Markets in which `advance` alone decides who starts, without a look at each waiting job."""

from __future__ import annotations

from collections.abc import Sequence

from marketsched.mechanisms.auctions.arrival_market import ArrivalMarket
from marketsched.mechanisms.auctions.waiting_job import NOT_YET, WaitingJob
from marketsched.mechanisms.mechanism import Event, EventKind


class AdvanceMarket(ArrivalMarket):
    """A market that serves jobs when a round is cleared; nothing is paid unless `complete` says so."""

    def serve(self, waiting: Sequence[WaitingJob]) -> Sequence[int | None]:
        """Decide nothing: `advance` does."""
        return [NOT_YET] * len(waiting)

    def charge(self, x: WaitingJob) -> float:
        """Return 0: nothing is paid here."""
        return 0.0

    def _next_round(self, events: list[Event]) -> list[Event]:
        """Move to the next round; return the events of the one just cleared, starts last."""
        self._round, self._any_arrival = self._round + 1, False
        return sorted(events, key=lambda event: event.kind is EventKind.START)
