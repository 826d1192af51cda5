r"""Auctions held afresh in every round: the frame that spot, pay-as-bid and VCG share.

In each round the free nodes are offered to the jobs that are ready, wait and fit into these nodes. A job's bid is what
it declares a start in this round to be worth, :math:`V(\tau + d)`; durations hidden: the expected worth, by its own
law given arrival and signal. Winners start at once and keep their nodes until they complete; losers wait and bid
again, and are dropped once no later start is worth anything. No job is evicted for another. What a winner pays is
settled by the rule of the auction and charged when it completes.

The auctioneer is short-sighted: it maximises what starts now, whatever comes later. That makes even
the best rule truthful within a round only; `audit` measures what waiting, or hurrying, can gain.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Hashable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from marketsched.mechanisms.auctions.arrival_market import TOLERANCE, ArrivalMarket
from marketsched.mechanisms.auctions.hidden_turn import expected_worth
from marketsched.mechanisms.auctions.waiting_job import NOT_YET, WaitingJob
from marketsched.mechanisms.errors import InvalidParameterError
from marketsched.mechanisms.law import Signal
from marketsched.mechanisms.mechanism import JobId


class Bids(NamedTuple):
    """The bids of one round, in order of submission; arrays of shape (n_bids,).

    Jobs wider than the free nodes wait without a bid: a rule that has to see them overrides `ArrivalMarket.serve`.

    Attributes
    ----------
    worth : ndarray of float
        Of a start now, credits, > 0; of a hidden duration the mean by the report.
    nodes : ndarray of int
        Asked for, at most those that are free.
    rounds : ndarray of float
        Mean duration by the report, given the arrival and what was seen: where durations are hidden a lie moves it.
        `Settlement.rate` charges the rounds used, which no report moves.
    jobs, owners : sequence
        Names of the jobs and of their owners.
    """

    worth: NDArray[np.float64]
    nodes: NDArray[np.int64]
    rounds: NDArray[np.float64]
    jobs: Sequence[JobId] = ()
    owners: Sequence[Hashable] = ()


class Settlement(NamedTuple):
    """The future charge of a winner: ``fixed`` + ``rate`` x rounds used + ``share`` x declared value, credits.

    Examples
    --------
    >>> agreed = Settlement(fixed=1.0, rate=0.5)  # a fee, and half a credit a round
    >>> agreed.fixed + agreed.rate * 4 + agreed.share * 9.0  # of a run of 4 rounds
    3.0
    """

    fixed: float = 0.0
    rate: float = 0.0
    share: float = 0.0


class RoundAuction(ArrivalMarket):
    """A mechanism that holds an auction in every round; a subclass decides the winners and their payments.

    Parameters
    ----------
    capacity, horizon, max_concurrency, max_duration, max_value, max_delay
        The sizes of the market, as `MarketLimits`.

    Examples
    --------
    The highest bid gets its nodes and pays half of the bid:

    >>> from marketsched.mechanisms import DeadlineValue, RoundAuction, Settlement, StatementOfWork
    >>> class HalfPrice(RoundAuction):
    ...     def settle(self, bids, free):
    ...         best = int(bids.worth.argmax())
    ...         return [Settlement(fixed=worth / 2) if i == best else None for i, worth in enumerate(bids.worth)]
    >>> market = HalfPrice(1, 5, max_concurrency=1, max_duration=2, max_value=9.0, max_delay=9)
    >>> for name, value in (("A", 3.0), ("B", 5.0)):
    ...     plan = market.submit(name, StatementOfWork(1, 1, DeadlineValue(value, 3), [(1, 1, 1.0)]))
    >>> for name in "AB":
    ...     market.arrive(name, 1)
    >>> [event.job for event in market.advance()], float(market.complete("B").payment)
    (['B'], 2.5)
    """

    @abstractmethod
    def settle(self, bids: Bids, free: int) -> list[Settlement | None]:
        """Return for each bid what its job will be charged, or None if it does not win.

        Bids are of the jobs that fit into the ``free`` nodes; the nodes of the winners add up to at most ``free``. An
        answer of another length or type is refused.
        """

    def foresee(self, x: WaitingJob, signal: Signal) -> None:
        """Record the value of each start from now on, and the longest duration.

        A case that its report excludes is worth nothing: such a job is dropped.
        """
        law = x.law
        x.worth = np.zeros(0) if x.excluded else expected_worth(x, law)
        if law.durations.size:
            x.limit, x.mean = int(law.durations[-1]), law.mean

    def serve(self, waiting: Sequence[WaitingJob]) -> list[int | None]:
        """Hold the auction of this round: winners start, those without any start of worth are dropped."""
        now = self.round
        hopeful = [x for x in waiting if (_coming(x, now) > TOLERANCE).any()]
        winners = self._auction(sorted(hopeful, key=lambda x: x.order))
        waits_on = {x.job for x in hopeful}
        return [now if x.job in winners else NOT_YET if x.job in waits_on else None for x in waiting]

    def charge(self, x: WaitingJob) -> float:
        """Return the charge of a winner by its settlement and its duration."""
        agreed: Settlement = x.agreed
        declared = x.value(self.round) if self.round <= x.useful else 0.0
        return agreed.fixed + agreed.rate * (self.round - x.start) + agreed.share * declared

    def _auction(self, hopeful: list[WaitingJob]) -> set[JobId]:
        """Offer the free nodes to these jobs, in order of submission; return the names of the winners."""
        now, free = self.round, self.capacity - self.load
        bidding = [x for x in hopeful if _coming(x, now)[0] > TOLERANCE and x.width <= free]
        if not bidding:
            return set()
        bids = Bids(
            np.array([_coming(x, now)[0] for x in bidding]),
            np.array([x.width for x in bidding], dtype=np.int64),
            np.array([x.mean for x in bidding]),
            tuple(x.job for x in bidding),
            tuple(x.owner for x in bidding),
        )
        winners, settled = set(), self.settle(bids, free)
        many = isinstance(settled, Sequence) and len(settled) == len(bidding)
        if not (many and all(x is None or type(x) is Settlement for x in settled)):
            raise InvalidParameterError(
                place=f"{type(self).__name__}.settle(bids, free)",
                value=settled,
                legal=f"a list of {len(bidding)} answers, one for each bid: a Settlement, or None if it does not win",
            )
        for x, settlement in zip(bidding, settled, strict=True):
            if settlement is not None:
                x.agreed = settlement
                winners.add(x.job)
        return winners


def _coming(x: WaitingJob, now: int) -> NDArray[np.float64]:
    """Return what starts in rounds ``now``, ``now + 1``, ... are worth."""
    assert x.worth is not None
    return x.worth[now - x.arrival :]


def by_density(bids: Bids, free: int) -> tuple[list[int], float]:
    """Return who wins if the highest bids per node-round are served first, and the highest one that lost.

    A bid that does not fit any more is passed over, and the next lower one may still fit. Equal bids: the earlier
    submission first. The highest losing bid is in credits per node-round, 0 if all win.
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
