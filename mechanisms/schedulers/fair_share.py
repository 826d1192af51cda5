r"""Slurm's multifactor priority with fair share, and EASY backfilling behind it.

The job with the highest priority goes first; of jobs with equal priority, the one that came first. A priority is the
integer part of

.. math:: w_a \min(1, a / A) + w_f F + w_s c / C + w_q q / Q,

with a the age of the job since its arrival, A the age at which it counts most, F the fair-share factor of its owner
(`marketsched.mechanisms.schedulers.share_tree`), c its nodes of C, and q / Q the priority of its owner's QOS over the
highest; it is at least 1. Usage is node-rounds times the QOS's factor, and decays from round to round by the factor
`multifactor.kept`.

The model leaves out partitions, billing weights (see `multifactor.billed`) and weights of single resources, which are
equal for all jobs of one pool of equal nodes. It also leaves out priorities of associations, nice values, the site's
factor, reservations, limits of groups, preemption, and ``PriorityFlags=DEPTH_OBLIVIOUS``. Slurm computes priorities
every ``PriorityCalcPeriod`` (five minutes); the model computes them in every round in which a job that waits fits.

Source: Slurm's page *Multifactor Priority Plugin*; `priority_multifactor.c` at the tag slurm-22-05-8-1.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from marketsched.mechanisms.auctions.waiting_job import WaitingJob
from marketsched.mechanisms.errors import InvalidParameterError
from marketsched.mechanisms.law import Signal
from marketsched.mechanisms.legal import Amount, Finite, Named, Positive, legal
from marketsched.mechanisms.mechanism import Standing
from marketsched.mechanisms.schedulers.multifactor import age_factor, job_size_factor, kept
from marketsched.mechanisms.schedulers.queue_scheduler import OrderedQueue
from marketsched.mechanisms.schedulers.share_tree import ShareTree

HOUR_S = 3600.0
ROUND_S = 300.0  # of a market whose rounds have no length
LARGEST_UNIT, LEAST_KEPT = 1e100, 1e-50  # sums of usage stay finite
RULES = ("fair-tree", "classic")
PLAIN = (0.0, 1.0)  # priority and usage factor of a QOS that says nothing of them


class FairShare(OrderedQueue):
    """EASY backfilling in the order of multifactor priority (see the module).

    Not truthful: an owner who splits its jobs among several accounts has a share for each.

    Parameters
    ----------
    capacity, horizon, max_concurrency, max_duration, max_value, max_delay, kill, drop_hopeless
        As of `QueueScheduler`.
    reserve, most_overtaken
        As of `OrderedQueue`.
    rule : {"classic", "fair-tree"}
        Of the fair-share factor: classic, Slurm's ``PriorityFlags=NO_FAIR_TREE``, or fair tree, its default since
        19.05.
    shares : mapping of str to float, optional
        Accounts and owners with their shares, as of `ShareTree`; None: each owner has one, at the top, or in its
        account and each account at the top, of a log that has accounts.
    newcomers : str
        The account of owners that ``shares`` does not name, as in ``"guests/"``; empty: the top.
    qos : mapping, optional
        By owner, the QOS of its jobs: ``{"ann": {"priority": 10, "usage_factor": 2}}``; 0 and 1 where nothing is given.
        The name of a job stands for that job alone.
    weight_age, weight_fair_share, weight_size, weight_qos : float
        w_a, w_f, w_s, w_q, >= 0.
    favor_small : bool
        True: the size counts as 1 - c / C.
    by_reservation : bool
        True: a job that ends before its wall time is charged for all of it. Slurm charges for the time it ran.
    half_life_hours, max_age_hours : float
        Of usage, and A; seven days each, Slurm's defaults.
    round_seconds : float, optional
        Length of a round; None: 300.
    """

    free_of_charge: ClassVar[bool] = True
    has_accounts: ClassVar[bool] = True  # those of a log stand in `shares`
    standing: ClassVar[Standing] = Standing(
        "baseline",
        "no prices; owners who used less go first",
        "wall times in the reports",
        lie="a second account",
    )

    @legal
    def __init__(
        self,
        *sizes: Any,
        rule: Annotated[str, Named(RULES)] = "classic",
        shares: Mapping[str, Any] | None = None,
        newcomers: str = "",
        qos: Mapping[str, Any] | None = None,
        weight_age: Amount = 1000.0,
        weight_fair_share: Amount = 10_000.0,
        weight_size: Amount = 1000.0,
        weight_qos: Amount = 0.0,
        favor_small: bool = False,
        by_reservation: bool = False,
        half_life_hours: Positive = 168.0,
        max_age_hours: Positive = 168.0,
        round_seconds: float | None = None,
        **queue: Any,
    ) -> None:
        super().__init__(*sizes, round_seconds=round_seconds, **queue)
        self.rule, self.tree = rule, ShareTree(shares, newcomers)
        self.weights = (weight_age, weight_fair_share, weight_size, weight_qos)
        self.favor_small, self.by_reservation = favor_small, by_reservation
        self.round_s = round_seconds or ROUND_S
        self.max_age_s = max_age_hours * HOUR_S
        self.kept = max(kept(half_life_hours * HOUR_S, self.round_s), LEAST_KEPT)  # of usage, from a round to the next
        self._qos = {name: _quality(name, given) for name, given in (qos or {}).items()}
        self._highest_qos = max((priority for priority, _ in self._qos.values()), default=0.0)
        self._today = 1.0  # usage stands in node-rounds of round 0: what one of today counts beside those
        self._settled = 1  # runs are counted up to this round, without it

    @property
    def usage(self) -> dict[Hashable, float]:
        """The usage of each owner that has submitted, decayed up to the round just cleared, node-rounds."""
        self._settle()
        return {owner: self.tree.usage(owner) / self._today / self.kept for owner in self.tree}

    def foresee(self, x: WaitingJob, signal: Signal) -> None:
        """Give its owner a share from its first job on, too."""
        super().foresee(x, signal)
        self.tree.use(x.owner, 0.0)

    def _settle(self) -> None:
        """Let usage decay up to the current round, and count what ran in the rounds before it, in one sum."""
        rounds, self._settled = self._round - self._settled, self._round
        if not rounds:
            return
        decay = self.kept**rounds
        if self._today > LARGEST_UNIT * decay:
            self.tree.scale(decay / self._today)
            self._today = 1.0
        else:
            self._today /= decay
        summed = rounds if self.kept == 1.0 else self.kept * (1.0 - decay) / (1.0 - self.kept)
        for x in self._running.values():
            self._count(x, summed)

    def _leave(self, x: WaitingJob) -> None:
        if x.job in self._running:
            self._settle()
        super()._leave(x)

    def charge(self, x: WaitingJob) -> float:
        """Return 0; where the rule charges by reservation, add the rest of the wall time to the account's usage."""
        if self.by_reservation:
            self._count(x, max(0, x.start + x.agreed - self.round))
        return super().charge(x)

    def _count(self, x: WaitingJob, rounds: float) -> None:
        """Count the nodes that a job uses, or has reserved, in so many rounds."""
        _, usage_factor = self._quality_of(x)
        self.tree.use(x.owner, rounds * self._today * usage_factor * x.width)

    def _quality_of(self, x: WaitingJob) -> tuple[float, float]:
        """Return priority and usage factor of a job's QOS."""
        return (self._qos.get(str(x.job)) or self._qos.get(str(x.owner), PLAIN)) if self._qos else PLAIN

    def ranked(self, waiting: Sequence[WaitingJob]) -> list[int]:
        """Return the places of waiting jobs, highest priority first."""
        order: list[int] = np.argsort(-self.priorities(waiting), kind="stable").tolist()
        return order

    def priorities(self, waiting: Sequence[WaitingJob]) -> NDArray[np.float64]:
        """Return the priorities of waiting jobs in this round, whole numbers, shape (n,)."""
        (age, share, size, quality), (of_age, of_share, of_size, of_quality) = self.weights, self.factors(waiting)
        return np.maximum(1.0, np.trunc(age * of_age + share * of_share + size * of_size + quality * of_quality))

    def factors(self, waiting: Sequence[WaitingJob]) -> tuple[NDArray[np.float64], ...]:
        """Return the factors of age, fair share, size and QOS of waiting jobs in this round, each in [0, 1]."""
        arrivals, widths = np.array([(x.arrival, x.width) for x in waiting], np.float64).reshape(-1, 2).T
        self._settle()
        shares = self.tree.classic() if self.rule == "classic" else self.tree.fair_tree()
        qualities = np.array([self._quality_of(x)[0] for x in waiting] if self._highest_qos else 0.0)
        return (
            age_factor((self.round - arrivals) * self.round_s, self.max_age_s),
            np.array([shares[x.owner] for x in waiting]),
            job_size_factor(widths, self.capacity, favor_small=self.favor_small),
            qualities / (self._highest_qos or 1.0),
        )


def _quality(owner: str, given: Any) -> tuple[float, float]:
    """Return priority and usage factor of a QOS."""
    known = dict(zip(("priority", "usage_factor"), PLAIN, strict=True))
    if not isinstance(given, Mapping) or not given.keys() <= known.keys():
        raise InvalidParameterError(place=f"qos: {owner}", value=given, legal="some of priority, usage_factor")
    amount = Finite("[0, inf)")
    read = {name: amount.check(f"qos: {owner}: {name}", x) for name, x in given.items()}
    return (known | read)["priority"], (known | read)["usage_factor"]
