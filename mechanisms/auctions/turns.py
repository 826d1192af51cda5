"""Turns of markets at arrival: what a job gets that is served next, by the rule that serves it in a market."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from marketsched.mechanisms.auctions.arrival_market import ArrivalMarket
from marketsched.mechanisms.auctions.waiting_job import NOT_YET, WaitingJob
from marketsched.mechanisms.law import Signal
from marketsched.mechanisms.sow import StatementOfWork


@dataclass(frozen=True, slots=True, eq=False)
class ArrivalTurn:
    """One turn, of jobs whose durations are revealed; ``market`` is a copy, and shares nothing that is changed.

    ``serve_one`` returns the start that a job gets if it is served now, without booking it, and None if it is dropped;
    ``owed`` the credits that it pays for so many rounds.
    """

    market: ArrivalMarket
    serve_one: Callable[[WaitingJob], int | None]
    owed: Callable[[WaitingJob, int], float]

    def look(self, sow: StatementOfWork, signal: Signal, duration: int | None) -> tuple[int, float | None] | None:
        """Return start and payment of a job that comes to this turn with a report; see `Turn`."""
        x = WaitingJob("", 0, sow)
        useful = self.market.limits.last_useful_completion(sow)
        self.market.foresee(x.come(self.market.round, signal, useful), signal)
        start = self.serve_one(x)
        if start is None:
            return NOT_YET, None
        x.start = start
        return self.market.booking_of(x, duration, self.owed)
