"""Queues of KAI: what one has of a resource, and which of two goes first, by all resources.

A queue counts as above its fair share only if it is so in every resource, and as within its quota if it is so in every
resource. After that the larger part of its share that it uses of any resource decides, its dominant share.

Source: KAI-Scheduler at commit 72de64fc: `plugins/proportion/queue_order` and `resource_share`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

NO_SHARE = 1000.0  # the part of its share that a unit counts for where a queue has none
Order = tuple[bool, bool, int, bool, float, float, float, int]


@dataclass(frozen=True, slots=True)
class Queue:
    """A queue and one resource.

    Attributes
    ----------
    deserved : float
        Its quota; infinite: all there is.
    weight : float
        For what is over quota.
    request : float
        What its jobs have and ask for.
    allowed : float
        The most it may get.
    priority : int
        Larger ones are served first.
    used : float
        What it has used over what the cluster could give.
    created : int
        Its place by age, the oldest first.
    """

    deserved: float = 0.0
    weight: float = 1.0
    request: float = 0.0
    allowed: float = math.inf
    priority: int = 0
    used: float = 0.0
    created: int = 0

    @property
    def wanted(self) -> float:
        """What it asks for, as far as it is allowed."""
        return min(self.allowed, self.request)


@dataclass(frozen=True, slots=True)
class Holding:
    """What a queue has of one resource; all amounts in its units.

    Attributes
    ----------
    queue : Queue
        The queue.
    share, allocated, job, total : float
        Its fair share, what its jobs have, what its next job asks for, and what there is.
    """

    queue: Queue
    share: float
    allocated: float
    job: float = 0.0
    total: float = math.inf

    @property
    def allocatable(self) -> float:
        """What it may have: the larger of quota and fair share, as far as it is allowed; perhaps infinite."""
        return min(self.queue.allowed, max(self.queue.deserved, self.share))

    @property
    def with_job(self) -> float:
        """What it has once its next job runs."""
        return self.allocated + self.job

    @property
    def without_share(self) -> bool:
        """Whether it would use what it may have nothing of."""
        return self.allocatable == 0 and self.with_job > 0

    def part(self, amount: float) -> float:
        """Return an amount over what it may have, or over what there is."""
        allocatable = self.total if math.isinf(self.allocatable) else self.allocatable
        return amount * NO_SHARE if allocatable == 0 else amount / allocatable


def order_of(held: Holding) -> Order:
    """Return the place of a queue among others where there is one resource, the smallest first."""
    return (
        held.allocated > held.share,
        held.with_job > held.queue.deserved,
        -held.queue.priority,
        held.without_share,
        held.part(held.with_job),
        held.part(held.allocated),
        held.allocatable,
        held.queue.created,
    )


def dominant_share(held: Mapping[str, Holding], *, with_job: bool = False) -> float:
    """Return the largest part of its shares that a queue uses, over its resources."""
    return max((each.part(each.with_job if with_job else each.allocated) for each in held.values()), default=0.0)


def goes_first(left: Mapping[str, Holding], right: Mapping[str, Holding]) -> bool:
    """Return whether the next job comes from ``left``.

    Parameters
    ----------
    left, right : mapping of str to Holding
        Of each queue, by resource, the same resources in both.

    Examples
    --------
    Both queues use half of their processors, and one all of its memory:

    >>> small, large = Queue(deserved=4.0), Queue(deserved=4.0, created=1)
    >>> one = {"cpu": Holding(small, 4.0, 2.0), "mem": Holding(small, 4.0, 4.0)}
    >>> goes_first(one, {"cpu": Holding(large, 4.0, 2.0), "mem": Holding(large, 4.0, 1.0)})
    False
    """
    ranks = [_rank(held) for held in (left, right)]
    if ranks[0] != ranks[1]:
        return ranks[0] < ranks[1]
    may_have = [[each.allocatable for each in held.values()] for held in (left, right)]
    if may_have[0] != may_have[1]:
        if all(a <= b for a, b in zip(*may_have, strict=True)):
            return True
        if all(b <= a for a, b in zip(*may_have, strict=True)):
            return False
    return _first(left).created < _first(right).created


def _rank(held: Mapping[str, Holding]) -> tuple[bool, bool, int, bool, float, float]:
    """Return what decides before the amounts that queues may have are compared, the smallest first."""
    return (
        all(each.allocated > each.share for each in held.values()),
        any(each.with_job > each.queue.deserved for each in held.values()),
        -_first(held).priority,
        any(each.without_share for each in held.values()),
        dominant_share(held, with_job=True),
        dominant_share(held),
    )


def _first(held: Mapping[str, Holding]) -> Queue:
    """Return the queue, whose priority and age are the same in all resources."""
    return next(iter(held.values())).queue
