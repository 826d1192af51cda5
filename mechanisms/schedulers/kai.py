r"""KAI's time-based fair share: queues get their quota, and what is left by weight, corrected by what they have used.

Of each resource a queue gets at first what it deserves, if it asks for as much. What is left is divided among those
queues of the highest priority that are not satisfied, then among those of the next. In each turn queue i may take the
share :math:`P_i / \sum P` of what is left, rounded down to whole units unless that satisfies it, with

.. math:: P_i = \max(0, W_i + k (W_i - U_i));

W is its over-quota weight over those of all that still ask for something, U what it has used over what the cluster
could give in a sliding window, which may forget by halves, and k the significance of the past. Turns end once none is
satisfied by its share. What rounding leaves goes in single units to the largest remainder, of equal ones to the oldest.

Jobs are taken from the queue that is not above its fair share, then from one that stays within its quota, of higher
priority, with a share at all, with the smallest part of its share in use, with the smallest share, the oldest.

Source: KAI-Scheduler at commit 72de64fc (March 2026, after v0.13.0-rc1): `plugins/proportion/resource_division`,
`queue_order`, `resource_share`, `cache/usagedb`; `docs/developer/designs/time-based-fairshare`.
"""

from __future__ import annotations

import heapq
import math
from collections import defaultdict, deque
from collections.abc import Hashable, Mapping, MutableMapping, Sequence
from typing import Any, ClassVar

from marketsched.mechanisms.auctions.arrival_market import NOT_YET, WaitingJob
from marketsched.mechanisms.auctions.rows_play import play_rows
from marketsched.mechanisms.columns import JobColumns, Outcomes
from marketsched.mechanisms.errors import InvalidParameterError
from marketsched.mechanisms.legal import Amount, Finite, Positive, legal
from marketsched.mechanisms.mechanism import Standing
from marketsched.mechanisms.schedulers.fair_share import HOUR_S, ROUND_S
from marketsched.mechanisms.schedulers.kai_queues import Holding, Order, Queue, order_of
from marketsched.mechanisms.schedulers.queue_scheduler import QueueScheduler


@legal
def divide(
    total: Amount, queues: Mapping[Hashable, Queue], significance: Amount = 0.0
) -> tuple[dict[Hashable, float], float]:
    """Divide a resource among queues; return their fair shares and the remainder.

    Where quotas exceed what there is, fair shares do, too.

    Parameters
    ----------
    total : float
        Units of the resource.
    queues : mapping of hashable to Queue
        By name.
    significance : float
        k; 0: the past does not count.

    Examples
    --------
    Two queues want all of ten units; one has used the cluster alone:

    >>> queues = {"old": Queue(request=10, used=1.0), "new": Queue(request=10, created=1)}
    >>> divide(10, queues), divide(10, queues, 0.5)
    (({'old': 5.0, 'new': 5.0}, 0.0), ({'old': 3.0, 'new': 7.0}, 0.0))
    """
    shares: dict[Hashable, float] = {}
    left = float(total)
    for name, queue in queues.items():
        shares[name] = min(total if math.isinf(queue.deserved) else queue.deserved, queue.wanted)
        left -= shares[name]
    return shares, divide_over_quota(left, queues, shares, significance) if left > 0 else 0.0


def divide_over_quota(
    left: float, queues: Mapping[Hashable, Queue], shares: MutableMapping[Hashable, float], significance: float = 0.0
) -> float:
    """Divide the remainder after quotas: increase fair shares, and return what remains. Parameters as of `divide`."""
    remainders: dict[int, dict[Hashable, float]] = {}
    for priority in sorted({queue.priority for queue in queues.values()}, reverse=True):
        level = {name: queue for name, queue in queues.items() if queue.priority == priority}
        left, remainders[priority] = _up_to_shares(left, level, shares, significance)
    for level_remainders in remainders.values():
        for name in sorted(level_remainders, key=lambda n: (-level_remainders[n], queues[n].created)):
            if left <= 0:
                return left
            given = min(1.0, left)
            shares[name] += given
            left -= given
    return left


def _up_to_shares(
    left: float, queues: Mapping[Hashable, Queue], shares: MutableMapping[Hashable, float], significance: float
) -> tuple[float, dict[Hashable, float]]:
    """Divide among queues of one priority; return what is left, and the fractions that queues did not get."""
    remainders: dict[Hashable, float] = {}
    again = True
    while again and left > 0:
        again, amount = False, left
        parts = _parts(queues, shares, significance)
        total = sum(parts.values())
        if total == 0:
            break
        for name, part in parts.items():
            queue, fair = queues[name], amount * part / total
            wanted = max(0.0, queue.wanted - shares[name])
            if left == 0 or queue.weight == 0:
                continue
            if wanted <= fair:
                given = wanted
                remainders.pop(name, None)
            else:
                given = math.floor(fair)
                if fair > given:
                    remainders[name] = fair - given
            if given > 0:
                shares[name] += given
                left -= given
                again = again or wanted < fair
    return left, remainders


def _parts(
    queues: Mapping[Hashable, Queue], shares: Mapping[Hashable, float], significance: float
) -> dict[Hashable, float]:
    """Return P of every queue that is not satisfied."""
    asking = {name: queue for name, queue in queues.items() if queue.wanted > shares[name]}
    weights = sum(queue.weight for queue in asking.values())
    if weights == 0:
        return {}
    portions = {name: queue.weight / weights for name, queue in asking.items()}
    return {name: max(0.0, w + significance * (w - queues[name].used)) for name, w in portions.items()}


class Kai(QueueScheduler):
    """One pool of nodes, and a queue for each owner (see the module).

    Not modelled: reclaim and preemption of running jobs, consolidation, gangs, topology, fractions of
    nodes, departments above queues, several resources at once (`divide` is called for each; `kai_queues.goes_first`
    orders queues by all), jobs that may not be preempted, minimal run times; and tumbling windows.

    Parameters
    ----------
    capacity, horizon, max_concurrency, max_duration, max_value, max_delay, drop_hopeless
        As of `QueueScheduler`.
    significance : float
        k, ``kValue``; 1.
    window_hours : float
        ``windowSize``; 168.
    half_life_hours : float
        ``halfLifePeriod``; 0, the default: none.
    queues : mapping, optional
        By owner: ``{"ann": {"deserved": 4, "weight": 2, "allowed": 8, "priority": 1}}``. Without: quota 0, weight 1, no
        limit, priority 0.
    kill : bool
        Whether a run ends at its wall time; jobs on Kubernetes do not, by default.
    round_seconds : float, optional
        Length of a round; None: 300.
    """

    free_of_charge: ClassVar[bool] = True
    standing: ClassVar[Standing] = Standing(
        "baseline",
        "no prices; queues who used less of a window get more, as in KAI's time-based fair share",
        "nothing",
    )

    @legal
    def __init__(
        self,
        capacity: int,
        horizon: int,
        *,
        significance: Amount = 1.0,
        window_hours: Positive = 168.0,
        half_life_hours: Amount = 0.0,
        queues: Mapping[str, Any] | None = None,
        kill: bool = False,
        round_seconds: float | None = None,
        **queue: Any,
    ) -> None:
        super().__init__(capacity, horizon, kill=kill, **queue)
        hours = (round_seconds or ROUND_S) / HOUR_S
        self.significance = significance
        self.window = max(1, round(window_hours / hours))  # rounds
        self.kept = 0.5 ** (hours / half_life_hours) if half_life_hours else 1.0
        self._rules = {name: _rules(name, given) for name, given in (queues or {}).items()}
        self._ran: Mapping[Hashable, float] = {}  # nodes by owner in the last round
        self._past: deque[dict[Hashable, float]] = deque()  # nodes by owner, round by round
        self._used: defaultdict[Hashable, float] = defaultdict(float)  # node-rounds, decayed
        self._offered = 0.0  # those of the cluster
        self._created: dict[Hashable, int] = {}
        self.shares: dict[Hashable, float] = {}

    def play(self, jobs: JobColumns, outcomes: Outcomes, until: int) -> bool:
        """Play many rounds at once; see `Mechanism.play`."""
        return play_rows(self, Kai, jobs, outcomes, until)

    def serve(self, waiting: Sequence[WaitingJob]) -> list[int | None]:
        """Take the sample of the round before, divide the nodes, and start one job after the other."""
        self._sample()
        held: defaultdict[Hashable, float] = defaultdict(float)
        for x in self._running.values():
            held[x.owner] += x.width
        self._ran = held
        found: list[int | None] = [None if self._hopeless(x) else NOT_YET for x in waiting]
        lines: defaultdict[Hashable, deque[int]] = defaultdict(deque)
        for i, x in enumerate(waiting):
            if found[i] is not None:
                lines[x.owner].append(i)
        free = self.capacity - self.load
        if not lines or not free:
            return found
        queues = {owner: self._queue(owner, held, lines, waiting) for owner in {**held, **lines}}
        self.shares, _ = divide(self.capacity, queues, self.significance)

        def place(owner: Hashable) -> tuple[Order, int]:
            first = lines[owner].popleft()
            need = waiting[first].width
            return order_of(Holding(queues[owner], self.shares[owner], held[owner], need, self.capacity)), first

        heads = [place(owner) for owner in lines]
        heapq.heapify(heads)
        while heads and free:
            _, i = heapq.heappop(heads)
            x = waiting[i]
            nodes = x.width
            if nodes <= free and held[x.owner] + nodes <= queues[x.owner].allowed:
                found[i] = self.round
                free -= nodes
                held[x.owner] += nodes
            if lines[x.owner]:
                heapq.heappush(heads, place(x.owner))
        return found

    def _queue(
        self,
        owner: Hashable,
        held: Mapping[Hashable, float],
        lines: Mapping[Hashable, Sequence[int]],
        waiting: Sequence[WaitingJob],
    ) -> Queue:
        """Return an owner's queue in this round."""
        created = self._created.setdefault(owner, len(self._created))
        request = held.get(owner, 0.0) + sum(waiting[i].width for i in lines.get(owner, ()))
        used = self._used[owner] / self._offered if self._offered > 0 else 0.0
        return Queue(request=request, used=used, created=created, **self._rules.get(str(owner), {}))

    def _sample(self) -> None:
        """Add what ran in the round before to the window, and take out what has left it."""
        if self.round == 1:
            return
        if self.kept < 1.0:
            for owner in self._used:
                self._used[owner] *= self.kept
            self._offered *= self.kept
        self._past.append(dict(self._ran))
        self._offered += self.capacity
        for owner, nodes in self._ran.items():
            self._used[owner] += nodes
        if len(self._past) > self.window:
            weight = self.kept**self.window
            self._offered -= self.capacity * weight
            for owner, nodes in self._past.popleft().items():
                self._used[owner] = max(0.0, self._used[owner] - nodes * weight)


def _rules(owner: str, given: Any) -> dict[str, Any]:
    """Return the parameters of a queue."""
    known = ("deserved", "weight", "allowed", "priority")
    if not isinstance(given, Mapping) or not set(given) <= set(known):
        raise InvalidParameterError(place=f"queues: {owner}", value=given, legal=f"some of {', '.join(known)}")
    amount = Finite("[0, inf)")
    return {name: amount.check(f"queues: {owner}: {name}", x) for name, x in given.items()}
