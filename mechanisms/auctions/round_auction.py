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

from abc import ABC, abstractmethod
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from marketsched.mechanisms.checks import finite_parameter, whole_parameter
from marketsched.mechanisms.errors import EventError
from marketsched.mechanisms.mechanism import Event, EventKind, JobId, LaunchPlan
from marketsched.mechanisms.reports import check_report, last_useful_completion
from marketsched.mechanisms.sow import Signal, StatementOfWork

TOLERANCE = 1e-12  # a bid has to exceed it


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


class _Job:
    """A job from submission until it is gone."""

    __slots__ = ("arrival", "job", "limit", "mean", "order", "settlement", "sow", "start", "worth")

    def __init__(self, job: JobId, order: int, sow: StatementOfWork) -> None:
        self.job, self.order, self.sow = job, order, sow
        self.arrival, self.start = 0, 0  # rounds; 0: not yet
        self.limit = 0  # most rounds it may run
        self.mean = 0.0  # expected duration
        self.worth = np.zeros(0)  # of starts arrival, arrival + 1, ...
        self.settlement = Settlement()


class RoundAuction(ABC):
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
        self.capacity = whole_parameter("capacity", capacity, 1)
        self._horizon = whole_parameter("horizon", horizon, 1)
        self.max_concurrency = whole_parameter("max_concurrency", max_concurrency, 1, self.capacity)
        self.max_duration = whole_parameter("max_duration", max_duration, 1)
        self.max_delay = whole_parameter("max_delay", max_delay, 1)
        self.max_value = finite_parameter("max_value", max_value, "(0, inf)")
        self._round = 1
        self._arrived_now = False
        self._jobs: dict[JobId, _Job | None] = {}  # every job ever submitted; None: gone
        self._waiting: dict[JobId, _Job] = {}
        self._running: dict[JobId, _Job] = {}

    @abstractmethod
    def settle(self, bids: Bids, free: int) -> list[Settlement | None]:
        """Return for each bid what its job will be charged, or None if it does not win.

        The nodes of the winners add up to at most ``free``.
        """

    # -- the protocol ----------------------------------------------------------------------------

    @property
    def round(self) -> int:
        """The current round; ``horizon + 1`` once the last one was cleared."""
        return self._round

    @property
    def horizon(self) -> int:
        """T, the last round."""
        return self._horizon

    @property
    def load(self) -> int:
        """Nodes of the jobs that ran in the round just cleared and have not ended."""
        return sum(x.sow.concurrency for x in self._running.values())

    def submit(self, job: JobId, sow: StatementOfWork) -> LaunchPlan:
        """Take a report born in the current round; nothing is promised before the job is ready.

        Raises
        ------
        EventError
            If the market is over, the name was used before, or a job has already arrived in this round.
        InvalidReportError
            If the report is outside the announced limits.
        """
        self._check_open(f"submit of {job!r}")
        if job in self._jobs:
            raise EventError(f"submit of {job!r}: a job of this name was submitted before")
        if self._arrived_now:
            raise EventError(
                f"submit of {job!r} after an arrival of round {self._round}: expected all submissions first"
            )
        check_report(job, sow, self._round, self.max_concurrency, self.max_duration, self.max_value)
        self._jobs[job] = _Job(job, len(self._jobs), sow)
        cases = zip(sow.law.group_arrivals.tolist(), sow.law.group_signals, strict=True)
        return LaunchPlan(job, tuple((a, o, None) for a, o in cases), 0.0)

    def arrive(self, job: JobId, signal: Signal = None) -> None:
        """Observe that ``job`` is ready in the current round; it bids from now on.

        A case that its report excludes never bids: such a job is dropped.

        Raises
        ------
        EventError
            If the market is over, the job is unknown, or it arrived before.
        """
        self._check_open(f"arrive of {job!r}")
        if job not in self._jobs:
            raise EventError(f"arrive of {job!r}: expected a job submitted before")
        x = self._jobs[job]
        if x is None or x.arrival:
            raise EventError(f"arrive of {job!r}: it arrived before")
        self._arrived_now = True
        x.arrival = self._round
        self._foresee(x, signal)
        self._waiting[job] = x

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
            del self._running[x.job]
        waiting = sorted(self._waiting.values(), key=lambda x: x.order)
        dropped = [x for x in waiting if not (x.worth[now - x.arrival :] > TOLERANCE).any()]
        started = self._auction([x for x in waiting if x not in dropped])
        for x in (*overdue, *dropped):
            self._jobs[x.job] = None
        for x in (*dropped, *started):
            del self._waiting[x.job]
        self._running.update((x.job, x) for x in started)
        self._round, self._arrived_now = now + 1, False
        return [
            *(Event(now, EventKind.DROP, x.job) for x in dropped),
            *(Event(now, EventKind.EVICT, x.job) for x in sorted(overdue, key=lambda x: -x.order)),
            *(Event(now, EventKind.START, x.job) for x in started),
        ]

    def complete(self, job: JobId) -> Event:
        """Observe that ``job`` ran its last round in the round just cleared; charge it.

        Raises
        ------
        EventError
            If the job is not running.
        """
        if job not in self._running:
            raise EventError(f"complete of {job!r}: it did not run in round {self._round - 1}")
        x = self._running.pop(job)
        self._jobs[job] = None
        fixed, rate, share = x.settlement
        declared = float(x.sow.value(self._round)) if self._round < x.sow.birth + self.max_delay else 0.0
        payment = fixed + rate * (self._round - x.start) + share * declared
        return Event(self._round - 1, EventKind.COMPLETE, job, self._round, payment)

    def close(self) -> list[Event]:
        """Remove every job still in the market after the last round, most recently submitted first.

        Raises
        ------
        EventError
            If rounds are left.
        """
        if self._round <= self._horizon:
            raise EventError(f"close in round {self._round}: expected all rounds to {self._horizon} cleared first")
        events = []
        for x in reversed([x for x in self._jobs.values() if x is not None]):
            kind = EventKind.EVICT if x.job in self._running else EventKind.CANCEL
            events.append(Event(self._horizon, kind, x.job))
            self._jobs[x.job] = None
        self._running.clear()
        self._waiting.clear()
        return events

    # -- steps -----------------------------------------------------------------------------------

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
        """Note what each start from now on is worth, and how long the job may take."""
        law, now = x.sow.law, self._round
        group = law.group_of(now, signal)
        if group is None:
            return
        points = slice(law.offsets[group], law.offsets[group + 1])
        durations, weights = law.durations[points], law.probabilities[points]
        if not weights.sum() > 0:
            return
        shares = weights / weights.sum()
        last = last_useful_completion(x.sow, self.max_delay, self._horizon)
        worth = np.zeros(max(0, last - int(durations.min()) - now + 1))
        for d, share in zip(durations.tolist(), shares.tolist(), strict=True):
            n = max(0, last - d - now + 1)
            worth[:n] += share * x.sow.value.table(now + d, n)
        x.worth = worth
        x.limit, x.mean = int(durations.max()), float(shares @ durations)

    def _check_open(self, what: str) -> None:
        """Raise if the last round was cleared."""
        if self._round > self._horizon:
            raise EventError(f"{what} in round {self._round}: expected at most the horizon {self._horizon}")


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
