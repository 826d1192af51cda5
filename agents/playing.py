"""A market loop and the owners in it, played round by round; the simplest owners report truly at birth."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Protocol

from marketsched.agents.job import Job
from marketsched.agents.loop import MarketLoop
from marketsched.mechanisms.mechanism import Event


class Owners(Protocol):
    """The owners of a market together: who reports what, and when."""

    @property
    def over(self) -> bool:
        """True once the rest of the market is of no interest."""
        ...

    def act(self, market: MarketLoop) -> None:
        """Submit the statements due in round ``market.now``."""
        ...

    def hear(self, events: Sequence[Event], market: MarketLoop) -> None:
        """Take note of what happened in the round just cleared, which is ``market.now - 1``."""
        ...


def play(market: MarketLoop, owners: Owners, last: int) -> list[Event]:
    """Play round by round up to ``last``, or until the owners are through; return all events."""
    events: list[Event] = []
    while market.now <= last:
        owners.act(market)
        now = market.clear()
        owners.hear(now, market)
        events += now
        if owners.over:
            break
    return events


class TruthfulOwners:
    """Owners that report their true statements at birth; those born together in the order of ``jobs``."""

    over = False

    def __init__(self, jobs: Iterable[Job]) -> None:
        self._born: dict[int, list[Job]] = defaultdict(list)
        for job in jobs:
            self._born[job.truth.birth].append(job)

    def act(self, market: MarketLoop) -> None:
        """Submit the jobs born in this round."""
        for job in self._born.get(market.now, ()):
            self.submit(job, market)

    def submit(self, job: Job, market: MarketLoop) -> None:
        """Submit the true statement of one job, in the name of its owner."""
        market.submit(job.name, job.truth, job, job.truth.concurrency, owner=job.owner)

    def hear(self, events: Sequence[Event], market: MarketLoop) -> None:
        """Their reports do not depend on events."""
