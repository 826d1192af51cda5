"""Whole markets by the rule of an `ArrivalMarket`: its own `foresee`, `serve` and `charge`, for jobs that are rows.

It skips report objects, validation and events, and owns the clock of such a market. Every step is the one that the
protocol takes between its checks. The next round that is played is that of the next submission, arrival or end, or the
one up to which the rule promises that nothing moves (`ArrivalMarket.unchanged_until`).
"""

from __future__ import annotations

import math
from collections import defaultdict
from heapq import heappop, heappush
from typing import TYPE_CHECKING

import numpy as np

from marketsched.mechanisms.auctions.waiting_job import WaitingJob
from marketsched.mechanisms.columns import NEVER, Ending, JobColumns, Move, Outcomes
from marketsched.mechanisms.errors import MechanismFault, faults_named
from marketsched.mechanisms.mechanism import EventKind

if TYPE_CHECKING:
    from marketsched.mechanisms.auctions.arrival_market import ArrivalMarket

FAR = 2**62  # a round that no market has
_ENDING = {EventKind.DROP: Ending.DROPPED, EventKind.EVICT: Ending.EVICTED}


class RowsPlay:
    """A market, which has taken no job yet, between two rounds of the play of all ``jobs``."""

    def __init__(self, market: ArrivalMarket, jobs: JobColumns) -> None:
        self._market, self._jobs, self._now = market, jobs, 0
        order, rounds = jobs.by_arrival
        self._births, self._born = [*jobs.births.tolist(), FAR], 0
        self._order, self._arrivals, self._come = order.tolist(), [*rounds.tolist(), FAR], 0
        self._latest = np.minimum(jobs.births + market.max_delay - 1, market.horizon + 1).tolist()
        numbers, names = jobs.owners
        self._owner_of, self._owners, self._names = numbers.tolist(), names, jobs.job_names()
        self._here: dict[int, WaitingJob] = {}  # by row: submitted, and not arrived
        self._ending: defaultdict[int, list[tuple[WaitingJob, int]]] = defaultdict(list)  # by the round after it: a run
        self._ends = [FAR]  # a heap of these rounds
        self._saved: defaultdict[int, int] = defaultdict(int)  # by row: rounds of work that runs taken back have saved

    def advance(self, first: int, until: int, outcomes: Outcomes) -> None:
        """Play rounds ``first .. until``; those in which nothing can move go by together."""
        self._now, market = first, self._market
        with faults_named(market, lambda: f"round {self._now}"):
            while self._now <= until:
                self._play_round(self._now, outcomes)
                self._now += 1
                soon = min(self._births[self._born], self._arrivals[self._come], self._ends[0] - 1, until + 1)
                if soon > self._now and (then := min(soon, market.unchanged_until())) > self._now:
                    self._pass(then, outcomes)
                    self._now = then

    def _play_round(self, now: int, outcomes: Outcomes) -> None:
        market = self._market
        if outcomes.surface is not None:
            outcomes.surface[now - 1] = market.slot_prices(now, outcomes.surface.shape[1])
        while self._births[self._born] == now:
            self._submit(self._born)
            self._born += 1
        while self._arrivals[self._come] == now:
            row = self._order[self._come]
            # Ends are read now: an owner may put its report into the row until the round of its birth.
            useful = min(self._latest[row], self._jobs.ends.item(row))
            market.come(self._here.pop(row), self._jobs.seen(row), useful)
            self._come += 1
        self._note_prices(now, outcomes)
        self._clear(now, outcomes)
        self._complete(now, outcomes)

    def _pass(self, then: int, outcomes: Outcomes) -> None:
        """Let rounds before ``then`` go by, in which nothing moves."""
        surface, rounds = outcomes.surface, slice(self._now - 1, then - 1)
        prices = self._market.pass_rounds(then, 1 if surface is None else max(1, surface.shape[1]))
        if prices is not None:
            outcomes.prices[rounds] = prices[:, 0]
            if surface is not None:
                surface[rounds] = prices[:, : surface.shape[1]]

    def _submit(self, row: int) -> None:
        x = WaitingJob.of_row(self._jobs, row, self._names[row], self._owners[self._owner_of[row]])
        self._here[row] = x
        self._market.enter(x)

    def _note_prices(self, now: int, outcomes: Outcomes) -> None:
        """Note the price of the round and the nodes committed to it, after its arrivals."""
        for column, found in (
            (outcomes.prices, self._market.slot_prices(now, 1)),
            (outcomes.promised, self._market.committed(now, 1)),
        ):
            if found is not None:
                column[now - 1] = found[0]

    def _clear(self, now: int, outcomes: Outcomes) -> None:
        for x, kind, payment in self._market.clear():
            row = x.order
            if kind is EventKind.START:
                outcomes.starts[row] = now
                outcomes.moves.note(now, Move.STARTED, row)
                end = self._end(x, now)
                if end not in self._ending:
                    heappush(self._ends, end)
                self._ending[end].append((x, now))
            elif kind is EventKind.REQUEUE:
                every = int(self._jobs.checkpoints[row])
                self._saved[row] += (now - int(outcomes.starts[row])) // every * every if every else 0
                outcomes.starts[row] = NEVER
                outcomes.moves.note(now, Move.TAKEN_BACK, row)
            else:
                outcomes.leave(row, now, _ENDING[kind], self._finite(x, kind, payment))

    def _end(self, x: WaitingJob, now: int) -> int:
        """Return the round after the last one of a run that begins now."""
        return now + int(self._jobs.durations[x.order]) - self._saved.get(x.order, 0)

    def _complete(self, now: int, outcomes: Outcomes) -> None:
        """Complete the runs whose last round this is, in order of submission."""
        if self._ends[0] > now + 1:
            return
        heappop(self._ends)
        for x, start in sorted(self._ending.pop(now + 1), key=lambda run: run[0].order):
            if self._market.runs(x) and outcomes.starts[x.order] == start:  # it was not taken back
                payment = self._finite(x, EventKind.COMPLETE, self._market.end(x))
                outcomes.payments[x.order] = payment
                outcomes.left[x.order], outcomes.endings[x.order] = now, Ending.COMPLETED

    def _finite(self, x: WaitingJob, kind: EventKind, payment: float) -> float:
        if not math.isfinite(payment):
            found = f"round {self._now}: {kind} of {x.job!r} with payment {payment!r}"
            raise MechanismFault(f"{found}: expected a completion or an eviction with a finite payment, of {x.job!r}")
        return float(payment)
