r"""Auctions held afresh in every round: the frame that spot, pay-as-bid and VCG share.

In each round the free nodes are offered to the jobs that are ready and wait. A waiting job's bid is
what it declares a start in this round to be worth, :math:`V(\tau + d)`; durations hidden: the
expected worth, by its own law given arrival and signal. Winners start at once and keep their nodes
until they complete; losers wait and bid again, and are dropped once no later start is worth anything.
Nobody is evicted for another job. What a winner pays is settled by the rule of the auction and
charged when it completes.

The auctioneer is short-sighted: it maximises what starts now, whatever comes later. That makes even
the best rule truthful within a round only; `audit` measures what waiting, or hurrying, can gain.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from marketsched.mechanisms.auctions.arrival_market import NOT_YET, TOLERANCE, ArrivalMarket, WaitingJob
from marketsched.mechanisms.mechanism import Event, EventKind, JobId
from marketsched.mechanisms.sow import Signal, StatementOfWork


class Bids(NamedTuple):
    """The bids of one round, in order of submission; arrays of shape (n_bids,)."""

    worth: NDArray[np.float64]  # credits, > 0, of a start now
    nodes: NDArray[np.int64]  # at most those that are free
    rounds: NDArray[np.float64]  # expected duration


class Settlement(NamedTuple):
    """What a winner will be charged: ``fixed`` + ``rate`` x rounds used + ``share`` x declared value, credits."""

    fixed: float = 0.0
    rate: float = 0.0
    share: float = 0.0


class _Job(WaitingJob):
    """A job, what it bids, and what it will be charged."""

    __slots__ = ("limit", "mean", "settlement", "worth")

    def __init__(self, job: JobId, order: int, sow: StatementOfWork) -> None:
        super().__init__(job, order, sow)
        self.limit = 0  # most rounds it may run
        self.mean = 0.0  # expected duration
        self.worth = np.zeros(0)  # of starts arrival, arrival + 1, ...
        self.settlement = Settlement()


class RoundAuction(ArrivalMarket[_Job]):
    """The frame; a subclass says who wins, and what winners pay.

    Parameters
    ----------
    capacity, horizon : int
        C, nodes; T, last round.
    max_concurrency, max_duration : int
        Largest report accepted, nodes and rounds.
    max_value : float
        Largest value accepted, credits.
    max_delay : int
        S: completions at birth + S or later are worth nothing.

    Raises
    ------
    InvalidParameterError
        If a parameter is out of range.
    """

    def __init__(
        self,
        capacity: int,
        horizon: int,
        *,
        max_concurrency: int,
        max_duration: int,
        max_value: float,
        max_delay: int,
    ) -> None:
        limits = {"max_concurrency": max_concurrency, "max_duration": max_duration, "max_delay": max_delay}
        super().__init__(capacity, horizon, max_value=max_value, **limits)
        self._waiting: list[_Job] = []  # in order of submission

    @abstractmethod
    def settle(self, bids: Bids, free: int) -> list[Settlement | None]:
        """Return for each bid what its job will be charged, or None if it does not win.

        The nodes of the winners add up to at most ``free``.
        """

    def advance(self) -> list[Event]:
        """Clear the current round and move to the next; return drops, evictions, then starts.

        A job that runs longer than its report allows is evicted.

        Raises
        ------
        EventError
            If the last round was cleared before.
        """
        self._check_open("advance")
        now = self._round
        overdue = [x for x in self._running.values() if x.start + x.limit <= now]
        for x in overdue:
            del self._running[x.job]  # its nodes are on offer
        waiting = sorted(self._waiting + self._arrived, key=lambda x: x.order)
        hopeless = {x.job for x in waiting if not (x.worth[now - x.arrival :] > TOLERANCE).any()}
        dropped = [x for x in waiting if x.job in hopeless]
        waiting = [x for x in waiting if x.job not in hopeless]
        started = self._auction(waiting)
        self._waiting = [x for x in waiting if x.start == NOT_YET]
        return self._cleared(dropped, overdue, started)

    def complete(self, job: JobId) -> Event:
        """Observe that ``job`` ran its last round in the round just cleared; charge it.

        Raises
        ------
        EventError
            If the job is not running.
        """
        x = self._completed(job)
        fixed, rate, share = x.settlement
        declared = float(x.sow.value(self._round)) if self._round < x.sow.birth + self.max_delay else 0.0
        payment = fixed + rate * (self._round - x.start) + share * declared
        return Event(self._round - 1, EventKind.COMPLETE, job, self._round, payment)

    def _ticket(self, job: JobId, order: int, sow: StatementOfWork) -> _Job:
        return _Job(job, order, sow)

    def _auction(self, waiting: list[_Job]) -> list[_Job]:
        """Hold the auction of this round; return the winners in order of submission."""
        now, free = self._round, self.capacity - self.load
        bidding = [x for x in waiting if x.worth[now - x.arrival] > TOLERANCE and x.sow.concurrency <= free]
        if not bidding:
            return []
        bids = Bids(
            np.array([x.worth[now - x.arrival] for x in bidding]),
            np.array([x.sow.concurrency for x in bidding], dtype=np.int64),
            np.array([x.mean for x in bidding]),
        )
        winners = []
        for x, settlement in zip(bidding, self.settle(bids, free), strict=True):
            if settlement is not None:
                x.start, x.settlement = now, settlement
                winners.append(x)
        return winners

    def _foresee(self, x: _Job, signal: Signal) -> None:
        """Note what each start from now on is worth, and how long the job may take.

        A case that its report excludes is worth nothing: such a job is dropped.
        """
        law, now = x.sow.law, self._round
        group = law.group_of(now, signal)
        if group is None:
            return
        points = slice(law.offsets[group], law.offsets[group + 1])
        durations, weights = law.durations[points], law.probabilities[points]
        if not weights.sum() > 0:
            return
        shares = weights / weights.sum()
        last = self._last_completion(x.sow)
        worth = np.zeros(max(0, last - int(durations.min()) - now + 1))
        for d, share in zip(durations.tolist(), shares.tolist(), strict=True):
            n = max(0, last - d - now + 1)
            worth[:n] += share * x.sow.value.table(now + d, n)
        x.worth = worth
        x.limit, x.mean = int(durations.max()), float(shares @ durations)


def by_density(bids: Bids, free: int) -> tuple[list[int], float]:
    """Return who wins if the highest bids per node-round are served first, and the highest one that lost.

    A bid that does not fit any more is passed over, and the next lower one may still fit. Equal
    bids: the earlier submission first. The highest losing bid is in credits per node-round, 0 if
    all win.
    """
    density = bids.worth / (bids.nodes * bids.rounds)
    winners, lost = [], 0.0
    for i in np.argsort(-density, kind="stable").tolist():
        if bids.nodes[i] <= free:
            winners.append(i)
            free -= int(bids.nodes[i])
        else:
            lost = max(lost, float(density[i]))
    return winners, lost
