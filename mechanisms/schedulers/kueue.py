r"""Kueue's admission fair sharing: in a cluster queue the local queue with the least decayed usage goes first.

Usage of a queue, by resource, is sampled: after a time :math:`\Delta` with the admitted amounts q it is

.. math:: u \leftarrow (1 - \alpha) u + \alpha q, \qquad \alpha = 1 - 2^{-\Delta / h},

with h the half-life. A workload that is admitted adds an *entry penalty* at once, :math:`\alpha` of a sampling interval
times its amounts, so that a queue does not enter many workloads between two samples. Workloads are tried in order of

.. math:: \sum_r w_r (u_r + p_r) / w,

with p the penalties that are not in u yet, :math:`w_r` the weight of a resource (1 where none is given) and w that of
the queue; a queue whose weight is not above 0 comes last. Equal ones go first come, first served. What does not fit
waits, and with ``StrictFIFO`` all behind it.

Source: Kueue at commit ff69552e79 (August 2026, after 0.19.2): `pkg/util/admissionfairsharing`, `pkg/cache/queue/afs`,
`pkg/cache/queue/cluster_queue.go`, `pkg/controller/core/{localqueue,workload}_controller.go`.
"""

from __future__ import annotations

import heapq
import math
from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from marketsched.mechanisms.auctions.arrival_market import NOT_YET, WaitingJob
from marketsched.mechanisms.auctions.rows_play import play_rows
from marketsched.mechanisms.columns import JobColumns, Outcomes
from marketsched.mechanisms.errors import InvalidParameterError
from marketsched.mechanisms.legal import Amount, Finite, Positive, legal
from marketsched.mechanisms.mechanism import Standing
from marketsched.mechanisms.schedulers.fair_share import HOUR_S, ROUND_S
from marketsched.mechanisms.schedulers.queue_scheduler import QueueScheduler

Amounts = Mapping[str, float]  # by resource


def forgotten(seconds: float, half_life_s: float) -> float:
    """Return alpha, the share of usage that is forgotten after so many seconds; 0 where there is no half-life.

    Examples
    --------
    >>> forgotten(600.0, 600.0), forgotten(600.0, 0.0)
    (0.5, 0.0)
    """
    return 0.0 if half_life_s == 0 else 1.0 - math.pow(0.5, seconds / half_life_s)


def decayed(used: Amounts, admitted: Amounts, alpha: float) -> dict[str, float]:
    """Return usage after a time in which alpha of it is forgotten and these amounts are admitted, by resource."""
    names = dict.fromkeys([*used, *admitted])
    return {name: (1 - alpha) * used.get(name, 0.0) + alpha * admitted.get(name, 0.0) for name in names}


def entry_penalty(requested: Amounts, sampling_s: float, half_life_s: float) -> dict[str, float]:
    """Return the addition to a queue's usage when a workload is admitted, by resource."""
    alpha = forgotten(sampling_s, half_life_s)
    return {name: alpha * amount for name, amount in requested.items()}


def weighted_usage(used: Amounts, penalties: Amounts, weight: float, resource_weights: Amounts) -> float:
    """Return the number that queues are ordered by, the smallest first.

    Examples
    --------
    >>> weighted_usage({"cpu": 4, "gpu": 2}, {"gpu": 1}, 2.0, {"gpu": 5.0})
    9.5
    """
    total = 0.0
    for name in sorted({*used, *penalties}):
        total += resource_weights.get(name, 1.0) * (used.get(name, 0.0) + penalties.get(name, 0.0))
    return total / weight if weight > 0 else math.inf


@dataclass
class Ledger:
    """The usage of a queue, and the penalties of workloads that are reserved and not admitted yet.

    Attributes
    ----------
    used : dict of str to float
        Decayed usage by resource.
    penalties : dict
        Amounts by workload; a workload has one at most.
    """

    used: dict[str, float] = field(default_factory=dict)
    penalties: dict[Hashable, dict[str, float]] = field(default_factory=dict)

    def push(self, workload: Hashable, penalty: Amounts) -> None:
        """Note the penalty of a workload; a new one takes the place of the old."""
        self.penalties[workload] = dict(penalty)

    def drop(self, workload: Hashable) -> dict[str, float]:
        """Take the penalty of a workload back, and return it; empty if there is none."""
        return self.penalties.pop(workload, {})

    def settle(self, workload: Hashable) -> None:
        """Move the penalty of a workload that is admitted into the usage; without one nothing happens."""
        for name, amount in self.drop(workload).items():
            self.used[name] = self.used.get(name, 0.0) + amount

    def pending(self) -> dict[str, float]:
        """Return the sum of all penalties, by resource; resources of which none is left do not appear."""
        sums: defaultdict[str, float] = defaultdict(float)
        for penalty in self.penalties.values():
            for name, amount in penalty.items():
                sums[name] += amount
        return {name: amount for name, amount in sums.items() if amount}


class Kueue(QueueScheduler):
    """One cluster queue with usage-based admission; each owner has a local queue (see the module).

    Not modelled: cohorts, borrowing and preemption, flavours, topology, priorities of workloads, several
    resources (the functions above take them), the time between a reservation and the admission (it is none).

    Parameters
    ----------
    capacity, horizon, max_concurrency, max_duration, max_value, max_delay, drop_hopeless
        As of `QueueScheduler`.
    half_life_hours : float
        ``usageHalfLifeTime``, hours; 168. 0: no usage is kept, and all queues are equal.
    sampling_minutes : float
        ``usageSamplingInterval``, minutes; 5. It scales the entry penalty.
    weights : mapping of str to float, optional
        Of owners' queues, >= 0; 1 where none is given.
    strict : bool
        True: ``StrictFIFO``; False: ``BestEffortFIFO``.
    kill : bool
        Whether a run ends at its wall time; jobs on Kubernetes do not, by default.
    round_seconds : float, optional
        Length of a round; None: 300.
    """

    free_of_charge: ClassVar[bool] = True
    standing: ClassVar[Standing] = Standing(
        "baseline",
        "no prices; queues who used less go first, as in Kueue's admission fair sharing",
        "nothing",
    )

    @legal
    def __init__(
        self,
        capacity: int,
        horizon: int,
        *,
        half_life_hours: Amount = 168.0,
        sampling_minutes: Positive = 5.0,
        weights: Mapping[str, Any] | None = None,
        strict: bool = False,
        kill: bool = False,
        round_seconds: float | None = None,
        **queue: Any,
    ) -> None:
        super().__init__(capacity, horizon, kill=kill, **queue)
        self.round_s, self.half_life_s = round_seconds or ROUND_S, half_life_hours * HOUR_S
        self.sampling_s, self.strict = sampling_minutes * 60.0, strict
        if weights is not None and not isinstance(weights, Mapping):
            raise InvalidParameterError(place="weights", value=weights, legal="numbers by owner")
        weight = Finite("[0, inf)")
        self.queue_weights = {name: weight.check(f"weights: {name}", each) for name, each in (weights or {}).items()}
        self.ledgers: dict[Hashable, Ledger] = {}
        self._ran: defaultdict[Hashable, float] = defaultdict(float)  # nodes by owner in the last round

    def play(self, jobs: JobColumns, outcomes: Outcomes, until: int) -> bool:
        """Play many rounds at once; see `Mechanism.play`."""
        return play_rows(self, Kueue, jobs, outcomes, until)

    def serve(self, waiting: Sequence[WaitingJob]) -> list[int | None]:
        """Take the sample of the round before, then admit one workload after the other."""
        self._sample()
        found: list[int | None] = [None if self._hopeless(x) else NOT_YET for x in waiting]
        queues: defaultdict[Hashable, list[int]] = defaultdict(list)
        for i, x in enumerate(waiting):
            if found[i] is not None:
                queues[x.owner].append(i)
        free = self.capacity - self.load
        heads = [(self.usage_of(owner), places.pop(0)) for owner, places in queues.items()]
        heapq.heapify(heads)
        while heads and free:
            _, place = heapq.heappop(heads)
            x = waiting[place]
            if x.width <= free:
                found[place] = self.round
                free -= x.width
                self._admit(x)
            elif self.strict:
                break
            if queues[x.owner]:
                heapq.heappush(heads, (self.usage_of(x.owner), queues[x.owner].pop(0)))
        return found

    def usage_of(self, owner: Hashable) -> float:
        """Return the usage by which an owner's queue is ordered."""
        ledger = self.ledgers.get(owner) or Ledger()
        return weighted_usage(ledger.used, ledger.pending(), self.queue_weights.get(str(owner), 1.0), {})

    def _admit(self, x: WaitingJob) -> None:
        """Charge the entry penalty."""
        ledger = self.ledgers.setdefault(x.owner, Ledger())
        ledger.push(x.job, entry_penalty({"nodes": x.width}, self.sampling_s, self.half_life_s))
        ledger.settle(x.job)
        self._ran[x.owner] += x.width

    def _sample(self) -> None:
        """Let the usage of all queues follow what ran in the round before."""
        alpha = forgotten(self.round_s, self.half_life_s)
        for owner, ledger in self.ledgers.items():
            ledger.used = decayed(ledger.used, {"nodes": self._ran[owner]}, alpha)
        self._ran.clear()
        for x in self._running.values():
            self._ran[x.owner] += x.width
