r"""The market-driven pools of Armada, as its source has them, in one pool of equal nodes.

Armada ([Armada]_) is a batch scheduler over many Kubernetes clusters, in use since 2020. In its market-driven pools,
each round takes jobs in falling order of bid; what fits is scheduled. The *spot price* is set once: by the first job
after which the scheduled share of the pool exceeds a cutoff, at its bid; if none does, it is 0. Billed are the jobs
taken up to that moment, that one included, at the spot price; what is scheduled after it is not billed. Since pull
request 4868 (April 2026) the queue that set the price pays the highest bid of another queue that is still to be taken,
instead. The rules were read at commit 207cc9e (August 2026): `queue_scheduler.go`, `market_iterator.go`,
`context/queue.go`; pull requests 4070, 4414 and 4868.

Two lies follow: to bid just below the marginal bid and become the queue that sets the price; and to bid so low that one
is scheduled after the price is set, for nothing.

References
----------
.. [Armada] Armada: a multi-cluster batch queuing system, https://github.com/armadaproject/armada.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from marketsched.mechanisms.auctions.round_auction import Bids, RoundAuction, Settlement
from marketsched.mechanisms.auctions.waiting_job import WaitingJob
from marketsched.mechanisms.errors import InvalidParameterError
from marketsched.mechanisms.legal import Count, Range, Share, legal
from marketsched.mechanisms.mechanism import JobId, Standing

VERSIONS = (2024, 2026)


@dataclass(frozen=True)
class _Version(Range[int]):
    """One of `VERSIONS`."""

    def __call__(self, x: object) -> int:
        """Return it, or raise ``ValueError``."""
        if isinstance(x, bool) or x not in VERSIONS:
            raise ValueError(" or ".join(map(str, VERSIONS)))
        return int(x)


class PoolJob(NamedTuple):
    """A job that asks for nodes in a round; ``since`` is the round of its start, None while it waits."""

    price: float  # bid, credits per node-round
    nodes: int
    queue: Hashable
    since: int | None = None


@dataclass(frozen=True, slots=True)
class PoolRound:
    """The result of a round; arrays have one entry a job, in the order given, and prices are credits per node-round."""

    scheduled: NDArray[np.bool_]
    billed: NDArray[np.bool_]
    spot_price: float  # 0 if no job lifts the pool above the cutoff
    setter: Hashable | None  # the queue that set the price
    second_price: float | None  # highest bid of another queue still to be taken then, 0: none; None: no price was set


@legal
def pool_round(jobs: Sequence[PoolJob], capacity: Count, *, cutoff: Share = 0.9) -> PoolRound:
    """Hold one round of a market-driven pool in which running jobs keep their nodes.

    Jobs, given in order of submission, are taken in falling order of bid; of equal bids running ones first, then the
    queues in turn, then the longest running, then the first given. A price is set once the scheduled share of the
    ``capacity`` exceeds ``cutoff``. InvalidParameterError if the running jobs need more nodes than there are.

    Examples
    --------
    Four owners, three nodes: 4 is the bid that fills the pool, and who makes it would pay 2:

    >>> found = pool_round([PoolJob(bid, 1, name) for name, bid in zip("ABCD", (10, 7, 4, 2))], 3)
    >>> found.spot_price, found.setter, found.second_price, found.billed.tolist()
    (4, 'C', 2, [True, True, True, False])
    """
    room = capacity - sum(job.nodes for job in jobs if job.since is not None)
    if room < 0:
        raise InvalidParameterError(f"running jobs need {capacity - room} nodes: expected at most {capacity}")
    scheduled, billed = np.zeros(len(jobs), dtype=np.bool_), np.zeros(len(jobs), dtype=np.bool_)
    order, taken = _in_turn(jobs), 0
    price, setter, second = 0.0, None, None
    for place, i in enumerate(order):
        job = jobs[i]
        if job.since is None:
            if job.nodes > room:
                continue
            room -= job.nodes
        scheduled[i] = True
        taken += job.nodes
        if second is None and taken / capacity > cutoff:
            price, setter = job.price, job.queue
            left = [jobs[k].price for k in order[place + 1 :] if jobs[k].queue != setter]
            second, billed[:] = max(left, default=0.0), scheduled
    return PoolRound(scheduled, billed, price, setter, second)


def _in_turn(jobs: Sequence[PoolJob]) -> list[int]:
    """Return the order in which jobs are taken."""
    queues = list(dict.fromkeys(job.queue for job in jobs))
    running_first = sorted(range(len(jobs)), key=lambda i: (jobs[i].since is None, jobs[i].since or 0, i))
    turns: Counter[tuple[float, bool, Hashable]] = Counter()  # of a queue among equal bids
    key = {}
    for i in running_first:
        tie = (jobs[i].price, jobs[i].since is None, jobs[i].queue)
        key[i] = (-jobs[i].price, jobs[i].since is None, turns[tie], queues.index(jobs[i].queue))
        turns[tie] += 1
    return sorted(key, key=key.__getitem__)


class Armada(RoundAuction):
    """Armada's market-driven pools: one price a round, not paid by those scheduled after it is set.

    A bid is the expected value of a start now per node-round; a queue is an owner. Each round bills the jobs that
    run or start in it, and what a job owes is charged when it completes.

    What the model leaves out: running jobs are not preempted for higher bids, and keep the bid of their start; gangs
    are jobs of several nodes of one kind; there are no other node types, away pools, cordoned clusters, rate limits,
    price bands or priorities of queues. The source calls the change of 2026 "Vickrey-style billing"; that bids are
    true is no promise of its authors.

    Parameters
    ----------
    version : {2024, 2026}
        2024: the queue that sets the spot price pays it, too. 2026 (since pull request 4868): it pays the highest bid
        of another queue that is still to be taken.
    cutoff : float
        Share of the pool that has to be exceeded for a price to be set, in [0, 1]; .9 in Armada's tests.
    capacity, horizon, max_concurrency, max_duration, max_value, max_delay
        The sizes of the market, as `MarketLimits`.

    Examples
    --------
    >>> from marketsched.mechanisms import DeadlineValue, StatementOfWork
    >>> limits = {"max_concurrency": 1, "max_duration": 2, "max_value": 10.0, "max_delay": 9}
    >>> market = Armada(3, 5, version=2026, **limits)
    >>> for name, value in zip("ABCD", (10.0, 7.0, 4.0, 2.0)):
    ...     plan = market.submit(name, StatementOfWork(1, 1, DeadlineValue(value, 2), [(1, 1, 1.0)]))
    >>> for name in "ABCD":
    ...     market.arrive(name, 1)
    >>> [event.job for event in market.advance() if event.kind == "start"]
    ['A', 'B', 'C']
    >>> [market.complete(name).payment for name in "ABC"]
    [4.0, 4.0, 2.0]
    """

    standing: ClassVar[Standing] = Standing(
        "tested",
        "one price a round, as in Armada's market-driven pools",
        "nothing",
        lie="a part of its value",
    )

    @legal
    def __init__(
        self,
        *sizes: Any,
        version: Annotated[int, _Version()] = 2026,
        cutoff: Share = 0.9,
        **more: Any,
    ) -> None:
        super().__init__(*sizes, **more)
        self.version, self.cutoff = version, cutoff
        self._bids: dict[JobId, float] = {}  # of running jobs, credits per node-round
        self._bills: dict[JobId, float] = {}  # of running jobs, credits
        self._price = 0.0
        self._held = False  # whether this round's auction was held

    def serve(self, waiting: Sequence[WaitingJob]) -> list[int | None]:
        """Hold the auction of this round, also where there is no bid: running jobs are billed."""
        self._held = False
        starts = super().serve(waiting)
        if not self._held:
            self._hold((), (), (), ())
        return starts

    def settle(self, bids: Bids, free: int) -> list[Settlement | None]:
        """Schedule in falling order of bid per node-round, and record each round's bill."""
        density = (bids.worth / (bids.nodes * bids.rounds)).tolist()
        won = self._hold(bids.jobs, density, bids.nodes.tolist(), bids.owners)
        return [Settlement() if each else None for each in won]

    def charge(self, x: WaitingJob) -> float:
        """Return the sum of a job's bills."""
        del self._bids[x.job]
        return self._bills.pop(x.job)

    def slot_prices(self, first: int, count: int) -> NDArray[np.float64]:
        """Return the last spot price for each requested round, credits per node."""
        return np.full(count, self._price)

    def _hold(
        self, names: Sequence[JobId], prices: Sequence[float], nodes: Sequence[int], owners: Sequence[Hashable]
    ) -> list[bool]:
        """Hold a round, note its bills, and return which of these waiting jobs are scheduled."""
        self._held = True
        running = list(self._running.values())
        jobs = [PoolJob(self._bids[x.job], x.width, x.owner, x.start) for x in running]
        jobs += [PoolJob(*each) for each in zip(prices, nodes, owners, strict=True)]
        found = pool_round(jobs, self.capacity, cutoff=self.cutoff)
        self._price = found.spot_price
        called = [x.job for x in running] + list(names)
        for name, job, scheduled, billed in zip(called, jobs, found.scheduled, found.billed, strict=True):
            if scheduled:
                self._bids.setdefault(name, job.price)
                owed = job.nodes * self._price_of(job.queue, found) if billed else 0.0
                self._bills[name] = self._bills.get(name, 0.0) + owed
        return [bool(yes) for yes in found.scheduled[len(running) :]]

    def _price_of(self, queue: Hashable, found: PoolRound) -> float:
        if self.version == 2026 and queue == found.setter and found.second_price is not None:
            return found.second_price
        return found.spot_price
