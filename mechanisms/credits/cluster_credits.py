r"""Credits on a cluster of several resources and kinds of nodes, for jobs whose durations are hidden.

The rules are those of `marketsched.mechanisms.credits.credits`, on nodes:

* an owner has a purse for each pool, or one for all (`pools`); a job becomes regular if one of the pools that it
  accepts has credits for it, and it is important enough among the owner's jobs there;
* importance is value over work: a job's largest share of the whole cluster, as nodes, times its announced mean. No
  price is in it, so that it never changes by itself;
* a job takes the place that leaves least over, among the shapes and pools in which it is worth most;
* a regular job without room takes the free runs of one node, those with the least progress first, where the least
  node-rounds are lost;
* free jobs start in turns of their owners, anew after each start. Equal turns go by the number of the owner.

Any increasing map of the importance of one owner's jobs with 0 at 0 changes nothing, for anybody.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Annotated, Any, ClassVar

import numpy as np

from marketsched.mechanisms.auctions.waiting_job import WaitingJob
from marketsched.mechanisms.credits.cluster_present import PoolUpgrade, Present, present_of
from marketsched.mechanisms.credits.credits import CARRY, PATIENCE
from marketsched.mechanisms.credits.on_credit import OnCredit
from marketsched.mechanisms.credits.pool_upgrades import PoolUpgrades
from marketsched.mechanisms.credits.pools import PoolPurses, PursesOf
from marketsched.mechanisms.credits.purses import Purses
from marketsched.mechanisms.credits.service import MOST_LOST
from marketsched.mechanisms.credits.upgrades import Spans
from marketsched.mechanisms.legal import Amount, Finite, Maybe, PositiveShare, Share, Whole, legal
from marketsched.mechanisms.mechanism import Event, JobClass, JobId, Standing
from marketsched.mechanisms.offers.departures import UNKNOWN
from marketsched.mechanisms.offers.rates import KEPT, OfferedLoad
from marketsched.mechanisms.offers.usual_work import UsualWork
from marketsched.mechanisms.resources.known import Known
from marketsched.mechanisms.schedulers.nodes_market import NodesMarket
from marketsched.mechanisms.schedulers.turns import Accounts, Turns
from marketsched.mechanisms.schedulers.turns_anew import TurnsAnew
from marketsched.mechanisms.unit import Unit


class ClusterCredits(NodesMarket[Present], OnCredit):
    """Regular nodes for credits that renew, on a cluster (see the module).

    Parameters
    ----------
    capacity, horizon, max_concurrency, max_duration, max_value, max_delay, cluster, signals
        As of `NodesMarket`.
    shares, newcomers, owners
        As of `Accounts`.
    income : float
        r, the part of the nodes that credits can buy.
    purses : {"pool", "one"}
        What an owner has a purse for: each pool, so that a regular start has a bound for jobs of one task that take
        less than 1 - r of a node; or all of them, where a node costs more of the pools that are sought more
        (`pool_weights`), and no start has a bound.
    carry_rounds, start, patience, margin, round_seconds
        As of `marketsched.mechanisms.credits.credits.Credits`.

    Examples
    --------
    Two jobs each want all GPUs of the node; the one without slack is regular, and takes them:

    >>> from marketsched.mechanisms import DeadlineValue, StatementOfWork
    >>> from marketsched.mechanisms.resources.cluster import Cluster, NodeGroup, Resource
    >>> from marketsched.mechanisms.resources.shapes import Shape
    >>> cluster = Cluster((Resource("gpu", device=True),), [NodeGroup("a", "a100", 1, {"gpu": 4})])
    >>> sizes = {"max_concurrency": 1, "max_duration": 9, "max_value": 9.0, "max_delay": 40}
    >>> market = ClusterCredits(1, 40, owners=["ann", "bob"], cluster=cluster, **sizes)
    >>> def come(name, owner, deadline):
    ...     shape, now = Shape({"gpu": 4}, {"a100": (4,)}), market.round
    ...     report = StatementOfWork.of_shapes(now, DeadlineValue(5.0, deadline), now, [shape], revealed=False)
    ...     plan = market.submit(name, report, owner=owner)
    ...     market.arrive(name)
    ...     return [(event.kind.value, event.job) for event in market.advance()]
    >>> come("A", "ann", 40), come("B", "bob", 7)
    ([('start', 'A')], [('requeue', 'A'), ('start', 'B')])
    """

    takes_back = True
    standing: ClassVar[Standing] = Standing(
        "tested",
        "no money: of an owner's values over work only their own order counts; a regular job that takes less of a node "
        "than is not sold starts within a bound, unless a start elsewhere becomes worth more to it (not with one purse "
        "for all pools), and is taken back for no other while its owner can pay; free runs may be",
        "accounts with shares; laws of durations, deadlines and needs in reports",
    )

    @legal
    def __init__(
        self,
        *sizes: Any,
        shares: Mapping[str, Any] | None = None,
        newcomers: str = "",
        owners: Iterable[Hashable] | None = None,
        income: PositiveShare = 0.5,
        purses: PursesOf = "pool",
        carry_rounds: Annotated[float | None, Maybe(Finite("(0, inf)"))] = None,
        start: Share = 0.5,
        patience: Annotated[int | None, Maybe(Whole(0))] = None,
        margin: Amount = 1.0,
        round_seconds: Annotated[float | None, Maybe(Finite("(0, inf)"))] = None,
        **nodes: Any,
    ) -> None:
        super().__init__(*sizes, **nodes)
        self.accounts = Accounts(shares, newcomers, owners)
        unit = Unit.of(round_seconds)
        carry = CARRY * unit.rounds if carry_rounds is None else carry_rounds
        self.pools = PoolPurses(self.accounts, self.cluster, income, carry, start, purses)
        self.turns, self.spans = Turns(self.accounts, unit.kept(KEPT)), Spans.of(unit)
        self.patience, self.margin = unit.whole(PATIENCE) if patience is None else patience, margin
        self._offered = OfferedLoad(self.cluster.nodes, unit.kept(KEPT))
        self._came: list[Present] = []  # in this round, and stay
        self._gone: list[tuple[Present, int]] = []  # completed, with the rounds of their run
        self._upgrades: dict[JobId, list[PoolUpgrade]] = {}
        self._choice, self._usual = PoolUpgrades(self.pools, self.spans), UsualWork(UNKNOWN * unit.rounds)
        names = ("jobs", "upgrades", "could_not_pay", "requeues", "node_rounds", "node_rounds_lost", "completed")
        self._counts = dict.fromkeys(names, 0.0)

    @property
    def _every_purse(self) -> Sequence[Purses]:
        return self.pools.every

    def class_of(self, job: JobId) -> JobClass | None:
        """Return the class of a job that has come, and what it has paid."""
        each = self._present.get(job)
        return None if each is None else JobClass("regular" if each.since else "free", each.paid)

    def statistics(self) -> dict[str, float]:
        """Return counts of upgrades and of what was lost, and the credits of all purses together."""
        return self._counts | self._credits_of_all()

    def tables(self) -> Mapping[str, Mapping[str, Sequence[Any]]]:
        """Return the purses as they are now, and what became regular when."""
        purses = self.pools.table([str(each) for each in self.accounts.names], self.cluster.pool_names)
        return {"purses": purses, "upgrades": self._upgrades_by_column(PoolUpgrade)}

    def advance(self) -> list[Event]:
        """Clear the current round and move to the next; return what leaves, runs that are taken back, then starts."""
        self._check_open("advance")
        now = self._round
        events = self._depart(now)
        self._offered.pass_rounds()
        events += self._admit(now)
        self.pools.pay_income(now)
        self.turns.fade()
        self._upgrade(now)
        self._prepay()
        events += self._serve_regular(now)
        events += self._serve_free(now)
        runs = [each for each in self._present.values() if each.run is not None]
        self._counts["node_rounds"] += sum(each.run.size for each in runs if each.run is not None)
        free = [each for each in runs if not each.since]
        self.turns.count(np.array([each.owner for each in free], np.int64), np.array([each.size for each in free]))
        return self._next_round(events)

    # -- one round ------------------------------------------------------------------------------------------

    def _present_of(self, x: WaitingJob, known: Known) -> Present:
        return present_of(
            x, self.accounts.number_of(x.owner), known, self.cluster, self.pools, self.margin, self.spans.late
        )

    def _comes(self, each: Present, stays: bool) -> None:
        self._counts["jobs"] += stays
        self._came += [each] * stays
        self._offered.arrives(each.size, self._usual.rounds(each.band), self._usual.kappa)

    def _completed(self, each: Present, used: int) -> float:
        self._counts["completed"] += 1
        self._gone.append((each, used))
        return 0.0

    def _gave_up(self, each: Present) -> None:
        self._learn(each, 0)

    def _started(self, each: Present, now: int) -> None:
        if each.since:
            each.pays(self.pools, each.row)
            if each.upgrade is not None:
                each.upgrade.started, each.upgrade = now, None

    def _depart(self, now: int) -> list[Event]:
        """Learn from all that have left, too."""
        for each, used in self._gone:
            self._learn(each, used)
        self._gone = []
        return super()._depart(now)

    def _learn(self, each: Present, used: int) -> None:
        """Learn from a job that has left; ``used``: rounds of its run if it is completed."""
        self._usual.learn(each.band, each.size, each.mean, used)
        self.pools.learn(each.options, each.means)
        if each.upgrade is not None:
            each.upgrade.left, each.upgrade = self._round, None

    def _upgrade(self, now: int) -> None:
        """Make late jobs regular, then remember the round's arrivals for later thresholds."""
        kappa, present = self._usual.kappa, self._present.values()
        left = self._choice.left(present, now, kappa)
        for each in present:
            if each.since or each.run is not None or now < each.late:
                continue
            found = self._choice.chosen(each, left, now, kappa)
            if found is not None:
                wanted, cost = each.wants[found.row], int(each.costs[found.row])
                each.since, each.pool = now, wanted.pool
                bound = self.pools.longest_wait(wanted.pool, wanted.demand, wanted.tasks, cost, self.patience)
                name = self.cluster.pool_names[wanted.pool]
                each.upgrade = PoolUpgrade(
                    each.x.job, each.x.owner, name, now, found.cost, found.purse, found.threshold, bound
                )
                self._upgrades.setdefault(each.x.job, []).append(each.upgrade)
                self._counts["upgrades"] += 1
        for each in self._came:
            self._choice.remember(each, now)
        self._came = []

    def _prepay(self) -> None:
        """Let regular runs pay for the round; those whose owner cannot go on as free runs."""
        for each in self._present.values():
            if each.since and each.run is not None and not each.pays(self.pools, each.row):
                each.since = 0
                self._counts["could_not_pay"] += 1

    def _serve_regular(self, now: int) -> list[Event]:
        """Start regular jobs, and take free runs back for them; return the events."""
        waiting = [each for each in self._present.values() if each.since and each.run is None]
        if not waiting:
            return []
        events: list[Event] = []
        behind = sum(each.size * self._usual.rounds(each.band) for each in waiting)
        limit = MOST_LOST * max(1.0, self._offered.share) ** 3
        for each in waiting:
            own = each.size * self._usual.rounds(each.band)
            behind -= own
            rows = [row for row in each.worth_most(now) if self.pools.can_pay(each.owner, *each.prices[row])]
            waited = now - each.since
            if each.upgrade is not None and waited >= self.patience:
                home = each.row_in(each.pool)
                each.upgrade.unpaid += not self.pools.can_pay(each.owner, *each.prices[home])
            if not rows:
                continue
            if not self._start(each, rows, now, events):
                free = [other for other in self._present.values() if other.run is not None and not other.since]
                free.sort(key=lambda other: (now - other.run.start if other.run is not None else 0, -other.turn))
                runs = {other.run: other for other in free if other.run is not None}
                found = self.nodes.taking([each.wants[row] for row in rows], list(runs), now)
                if found is None or (waited < self.patience and found[0] > limit * (own + 2.0 * max(0.0, behind))):
                    continue
                for run in found[1]:
                    self._take_back(runs[run], now, events)
                self._start(each, rows, now, events)
        return events

    def _serve_free(self, now: int) -> list[Event]:
        """Start free jobs in turns of their owners, anew after each start; return the events."""
        events: list[Event] = []
        waiting = (each for each in self._present.values() if not each.since and each.run is None)
        turns = TurnsAnew(waiting, self.turns.used, self.accounts.parts, self.nodes)
        for each in turns:
            if self._start(each, each.worth_most(now), now, events):
                turns.starts(each)
        return events

    def _take_back(self, each: Present, now: int, events: list[Event]) -> None:
        assert each.run is not None
        self._counts["requeues"] += 1
        self._counts["node_rounds_lost"] += each.run.lost(now)
        self._requeue(each, now, events)
