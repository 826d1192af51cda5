"""Whole markets by the rule of an `ArrivalMarket`: its own `serve` and `charge`, for jobs that are rows of columns.

Nothing but what the rule itself takes is left of a round: no report is made or checked, and no event.
"""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from marketsched.mechanisms.auctions.arrival_market import ArrivalMarket, WaitingJob
from marketsched.mechanisms.columns import Ending, JobColumns, Outcomes


class RowsPlay:
    """A market between two rounds.

    Parameters
    ----------
    market : ArrivalMarket
        Has taken no job yet; it defines `ArrivalMarket.foresee_row`.
    jobs : JobColumns
        All jobs.
    """

    def __init__(self, market: ArrivalMarket, jobs: JobColumns) -> None:
        self._market, self._jobs = market, jobs
        self._order, self._rounds = jobs.by_arrival
        self._useful = jobs.useful(market.max_delay, market.horizon).tolist()
        numbers, names = jobs.owners
        self._owner_of, self._owners = numbers.tolist(), names
        self._names = jobs.job_names() if market.by_name else range(jobs.n)
        self._ending: defaultdict[int, list[WaitingJob]] = defaultdict(list)  # by the round after its last one
        self._priced = market.slot_prices(1, 1) is not None

    def advance(self, first: int, until: int, outcomes: Outcomes) -> None:
        """Play rounds ``first .. until``."""
        bounds = np.searchsorted(self._rounds, np.arange(first, until + 2)).tolist()
        for now, begin, end in zip(range(first, until + 1), bounds[:-1], bounds[1:], strict=True):
            if self._priced:
                self._note_prices(now, outcomes)
            for row in self._order[begin:end].tolist() if begin < end else ():
                x = WaitingJob.of_row(row, self._jobs, self._useful[row], self._owners[self._owner_of[row]])
                x.job = self._names[row]
                self._market.arrive_row(x, self._jobs)
            self._clear(now, outcomes)
            self._complete(now, outcomes)

    def _note_prices(self, now: int, outcomes: Outcomes) -> None:
        """Note the prices of the round and of those ahead, as they stand before it is cleared."""
        count = 1 if outcomes.surface is None else max(1, outcomes.surface.shape[1])
        prices = self._market.slot_prices(now, count)
        assert prices is not None
        outcomes.prices[now - 1] = prices[0]
        if outcomes.surface is not None:
            outcomes.surface[now - 1] = prices[: outcomes.surface.shape[1]]

    def _clear(self, now: int, outcomes: Outcomes) -> None:
        cleared = self._market.clear()
        for x in cleared.dropped:
            outcomes.left[x.order], outcomes.endings[x.order] = now, Ending.DROPPED
        for x, payment in cleared.stopped:
            outcomes.left[x.order], outcomes.endings[x.order] = now, Ending.EVICTED
            outcomes.payments[x.order] = payment
        for x in cleared.started:
            outcomes.starts[x.order] = now
            self._ending[self._end(x)].append(x)

    def _end(self, x: WaitingJob) -> int:
        """Return the round after the last one of a run that has begun."""
        return int(x.start + self._jobs.durations[x.order])

    def _complete(self, now: int, outcomes: Outcomes) -> None:
        """Complete the runs whose last round this is, in order of submission."""
        for x in sorted(self._ending.pop(now + 1, ()), key=lambda x: x.order):
            if self._market.runs(x):
                outcomes.payments[x.order] = self._market.complete_row(x)
                outcomes.left[x.order], outcomes.endings[x.order] = now, Ending.COMPLETED


def play_rows(
    market: ArrivalMarket,
    home: type[ArrivalMarket],
    jobs: JobColumns,
    outcomes: Outcomes,
    until: int,
    kind: type[RowsPlay] = RowsPlay,
) -> bool:
    """Play many rounds at once by the rule of the class ``home``; see `Mechanism.play`."""
    if not market.can_play(home, jobs):
        return False
    if market.by_rows is None:
        market.by_rows = kind(market, jobs)
    market.by_rows.advance(market.round, until, outcomes)
    return True
