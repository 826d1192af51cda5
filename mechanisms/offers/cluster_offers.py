r"""Two offers on a cluster of several resources and kinds of nodes, for jobs whose durations are hidden.

The rules are those of `marketsched.mechanisms.offers.two_offers`, on nodes. A job is offered regular nodes, or spare
ones at a fifth of the rate, each with every posted patience, for each of its shapes and the pools that it accepts. A
round of run costs R times the job's size (its largest share of the whole cluster, as nodes) and the price of patience;
it is paid on completion, for the rounds of the run that was completed. The job gets the entry that is announced to be
worth most to it. A round:

1. who can bring nothing any more, or has waited as long as it agreed to, is stopped, or leaves;
2. rates are posted, from jobs that have left and sizes that came before (`rates`);
3. arrivals choose: expected waits from what others see of those present (`cluster_waits`), odds from what became of
   jobs that stood alike (`announced`);
4. regular jobs, then spare ones, each in order of arrival + patience, start on the node on which they leave least over.
   A job without room takes back spare runs of one node, those that began last first, where the least node-rounds are
   lost, and only if these are not more than a part of its own usual work; a spare job only from those whose latest
   start lies far behind its own.

Of what a present job reported only its entry moves any other job: shape and pools, class, and arrival + patience. So
inside an entry the truth about value, law and deadline is optimal ex post, and between entries it is optimal if the
announced odds are believed (docs/mathematics.md). A duration that is revealed at arrival is a law of one case.
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from marketsched.mechanisms.auctions.waiting_job import WaitingJob
from marketsched.mechanisms.legal import Finite, Maybe, Share, legal
from marketsched.mechanisms.mechanism import Event, EventKind, JobId, Standing, Truthful
from marketsched.mechanisms.offers.announced import cell_of, check_falling, preferred, usual_length
from marketsched.mechanisms.offers.cluster_present import GROUPS, Offered, Way, offered_of, ways_of
from marketsched.mechanisms.offers.cluster_waits import Seen
from marketsched.mechanisms.offers.departures import LATE_ODDS, UNKNOWN, Odds, announced_and_happened, shares_of
from marketsched.mechanisms.offers.hidden_jobs import BOTH, REGULAR_ALONE
from marketsched.mechanisms.offers.menu import Entries, announced
from marketsched.mechanisms.offers.patience import ONE, posted, posted_rates
from marketsched.mechanisms.offers.present import REGULAR, SPARE
from marketsched.mechanisms.offers.rates import KEPT, Rates
from marketsched.mechanisms.offers.service import APART, MOST_LOST
from marketsched.mechanisms.offers.usual_work import UsualWork
from marketsched.mechanisms.offers.waits import AHEAD
from marketsched.mechanisms.resources.known import Known
from marketsched.mechanisms.resources.node_shares import NodeShares
from marketsched.mechanisms.resources.nodes import Run
from marketsched.mechanisms.schedulers.node_jobs import NodeJob
from marketsched.mechanisms.schedulers.nodes_market import NodesMarket
from marketsched.mechanisms.sow import StatementOfWork
from marketsched.mechanisms.unit import Unit


class Entry(NamedTuple):
    """An entry of a menu: class and column of its entries for a way to run."""

    way: Way
    entries: Entries
    offer: int
    column: int


class ClusterOffers(NodesMarket[Offered]):
    """Two offers on a cluster (see the module).

    Parameters
    ----------
    capacity, horizon, max_concurrency, max_duration, max_value, max_delay, cluster, signals
        As of `NodesMarket`.
    spare : bool
        False: regular nodes alone are offered, in order of arrival, without a choice of patience; the choice of shape
        and pools still depends on announced odds. A job whose report says that it cannot restart (``restarts=False``)
        is offered regular nodes alone in any case.
    late_odds : float
        As of `marketsched.mechanisms.offers.two_offers.TwoOffers`.
    round_seconds : float, optional
        Length of a round; None: a quarter of an hour.

    Examples
    --------
    The first job takes a spare node at no charge yet, the second one waits for it:

    >>> from marketsched.mechanisms import DeadlineValue, StatementOfWork
    >>> from marketsched.mechanisms.resources.cluster import Cluster, NodeGroup, Resource
    >>> from marketsched.mechanisms.resources.shapes import Shape
    >>> cluster = Cluster((Resource("gpu", device=True),), [NodeGroup("a", "a100", 1, {"gpu": 4})])
    >>> sizes = {"max_concurrency": 1, "max_duration": 9, "max_value": 9.0, "max_delay": 40}
    >>> market = ClusterOffers(1, 40, cluster=cluster, **sizes)
    >>> for name in "AB":
    ...     shape = Shape({"gpu": 4}, {"a100": (2, 4)})
    ...     report = StatementOfWork.of_shapes(1, DeadlineValue(5.0, 30), 1, [shape], (0.5, 0.5), revealed=False)
    ...     plan = market.submit(name, report)
    >>> for name in "AB":
    ...     market.arrive(name)
    >>> [(event.kind.value, event.job) for _ in range(2) for event in market.advance()]
    [('start', 'A')]
    >>> market.complete("A").payment, [(event.kind.value, event.job) for event in market.advance()]
    (0.0, [('start', 'B')])
    """

    truthful: ClassVar[Truthful] = "none"
    truthful_hidden: ClassVar[Truthful] = "none"
    standing: ClassVar[Standing] = Standing(
        "proved",
        "a job that asks for more than it needs, or names fewer kinds, may start sooner, one that names a later "
        "deadline may choose more patience, which costs less; spare runs may be taken back; "
        "all this for owners who care for the credits that they pay",
        "jobs that have left",
        "as where they are revealed, given its offer (shape and pools, class and patience), truth is best for each "
        "job, whatever happens, and in the choice between the offers that its law and deadline allow it is best if the "
        "announced odds are believed",
        but="shapes and kinds other than the true ones, a later deadline, and odds that are not believed",
    )

    @legal
    def __init__(
        self,
        *sizes: Any,
        spare: bool = True,
        late_odds: Share = LATE_ODDS,
        round_seconds: Annotated[float | None, Maybe(Finite("(0, inf)"))] = None,
        **nodes: Any,
    ) -> None:
        super().__init__(*sizes, **nodes)
        self.takes_back = self._spare = spare
        self.unit = unit = Unit.of(round_seconds)
        self.learnt, self.usual = Odds(GROUPS, late_odds), UsualWork(UNKNOWN * unit.rounds)
        self.rates = Rates(self.cluster.nodes, *(BOTH if spare else REGULAR_ALONE), unit.kept(KEPT))
        self.patience = posted(unit) if spare else ONE
        self._n_pools, self._shares = len(self.cluster.pool_names), NodeShares(self.cluster)
        self._seen = Seen(self._n_pools)
        self._victims: dict[Run, Offered] | None = None  # spare runs; None: not known in this state
        self._latest = 0  # start of them
        self._gone: list[Offered] = []  # of whom something is to be learnt
        self._figures = np.zeros((2, 2, 3))  # as of `HiddenJobs`
        self._counts = dict.fromkeys(("requeues", "node_rounds", "node_rounds_lost"), 0.0)

    def slot_prices(self, first: int, count: int) -> NDArray[np.float64]:
        """Return the price of rounds, credits per node: the regular rate."""
        return np.full(count, self.rates.posted[REGULAR])

    def statistics(self) -> dict[str, float]:
        """Return the rates, odds as announced and observed (of jobs, and weighted by value), and evictions."""
        return announced_and_happened(self.rates.posted, self._figures) | self._counts

    def advance(self) -> list[Event]:
        """Clear the current round and move to the next; return what leaves, runs that are taken back, then starts."""
        self._check_open("advance")
        now = self._round
        events = self._depart(now)
        self.rates.post(now, self.learnt)
        events += self._admit(now)
        self._serve(now, events)
        self._counts["node_rounds"] += sum(run.size for run in self.nodes.runs)
        return self._next_round(events)

    # -- one round ------------------------------------------------------------------------------------------

    def _check_submission(self, job: JobId, sow: StatementOfWork) -> None:
        """Refuse values that rise, too."""
        super()._check_submission(job, sow)
        check_falling(job, sow)

    def _present_of(self, x: WaitingJob, known: Known) -> Offered:
        return offered_of(x, known, self.cluster, self._shares)

    def _depart(self, now: int) -> list[Event]:
        """Learn from all that have left, too."""
        events = super()._depart(now)
        for each in self._gone:
            self._learn(each)
        self._gone = []
        return events

    def _learn(self, each: Offered) -> None:
        """Learn from a job that has left."""
        way = each.way
        assert way is not None
        report, done = way.report, each.used > 0
        figures = np.array([1.0, each.chance, done and each.in_time])
        self._figures[each.offer] += figures, report.highest * figures
        self.usual.learn(way.band, way.size, report.mean, each.used)
        work = way.size * (each.used if done else report.mean * self.usual.kappa)
        density = report.highest / (way.size * report.mean)
        self.learnt.learn(each.offer, each.group, each.cell, in_time=done and each.in_time, density=density, work=work)

    def _gave_up(self, each: Offered) -> None:
        self._gone.append(each)

    def _completed(self, each: Offered, used: int) -> float:
        assert each.way is not None
        each.used, each.in_time = used, self._round <= each.way.report.last
        self._gone.append(each)
        return each.rate * used

    def _leave(self, x: WaitingJob) -> None:
        each = self._present.get(x.job)
        super()._leave(x)
        if each is not None:
            self._seen.leave(each.place)

    def _comes(self, each: Offered, stays: bool) -> None:
        if each.sizes.size:
            row = int(each.sizes.argmin())  # whatever way it chooses
            self.rates.arrives(float(each.sizes[row]), self.usual.rounds(each.band_of(row)), self.usual.kappa)

    def _stays(self, each: Offered, now: int) -> bool:
        """Let a job that arrives take the entry it likes best; return whether it takes one."""
        found = self._preferred(each, now)
        if found is None:
            return False
        self._take(each, found, now)
        return True

    def _take(self, each: Offered, entry: Entry, now: int) -> None:
        """Let a job take an entry."""
        way, entries, offer, column = entry
        report, patience, length = way.report, int(entries.patience[column]), usual_length(way.report.mean)
        each.way, each.size, each.offer, each.latest = way, way.size, offer, now + patience
        each.rate, each.chance = float(entries.rates[offer, column]), float(entries.chances[offer, column])
        room = min(report.last - now, patience + length)
        each.cell, each.group = cell_of(int(entries.waits[offer, column]), room, length), way.group
        each.x.last_start = min(each.latest, report.last_start(each.rate))
        each.keys = [each.keys[row] for row in way.rows]
        each.place = self._seen.enter(way, offer, each.latest)

    def _preferred(self, each: Offered, now: int) -> Entry | None:
        """Return the entry of largest announced value; None: none is worth taking."""
        best: Entry | None = None
        for way in ways_of(each, now, self._n_pools, self.unit):
            entries = self.entries(each, way, now)
            found = preferred(entries.values, SPARE if self._spare and way.report.restarts else REGULAR)
            if found is not None and (
                best is None or entries.values[found] > best.entries.values[best.offer, best.column]
            ):
                best = Entry(way, entries, *found)
        return best

    def entries(self, each: Offered, way: Way, now: int) -> Entries:
        """Return the entries of a way as they are announced to a job that arrives."""
        rates = posted_rates(self.rates.posted, self.patience, self.usual.overall) * way.size
        usual = self.usual.by_band
        fits = any(self.nodes.fits(each.wants[row]) for row in way.rows)
        most_lost = MOST_LOST * way.size * float(usual[way.band])
        latest, kappa, most = now + self.patience, self.usual.kappa, self.unit.whole(AHEAD)
        waits = self._seen.expected_waits(way, now, latest, usual, kappa, most_lost, fits=fits, most=most)
        shares = shares_of(self.learnt.odds, self.learnt.grouped[:, way.group])
        return announced(shares, self.patience, rates, waits, way.report, now)

    # -- service --------------------------------------------------------------------------------------------

    def _booked_rounds(self, each: Offered, row: int, now: int) -> int:
        """Book a round more than a run can have: what is not done by then is stopped, and pays nothing."""
        assert each.way is not None
        each.stop = each.way.report.stop(now, each.rate, self.max_duration)
        return each.stop + 1 - now

    def _over(self, each: Offered, now: int) -> bool:
        return now > each.x.last_start if each.run is None else now >= each.stop

    def _started(self, each: Offered, now: int) -> None:
        assert each.run is not None
        self._seen.runs(each.place, now, each.run.wanted.pool)
        if each.offer == SPARE:
            self._victims = None

    def _serve(self, now: int, events: list[Event]) -> None:
        """Take nodes back and start runs."""
        waiting = [each for each in self._present.values() if each.run is None]
        for each in sorted(waiting, key=lambda each: (-each.offer, each.latest, each.turn)):
            assert each.way is not None
            if self.nodes.may_hold(each.keys) and self._start(each, each.way.rows, now, events):
                continue
            if self._make_room(each, now, events):
                self._start(each, each.way.rows, now, events)

    def _make_room(self, each: Offered, now: int, events: list[Event]) -> bool:
        """Take spare runs back for a job if that is worth it; tell whether it has room now."""
        assert each.way is not None
        runs = self._may_go(each)
        if not runs:
            return False
        found = self.nodes.taking([each.wants[row] for row in each.way.rows], list(runs), now)
        if found is None or found[0] > MOST_LOST * each.size * self.usual.rounds(each.way.band):
            return False
        for run in found[1]:
            self._take_back(runs[run], now, events)
        return True

    def _may_go(self, each: Offered) -> dict[Run, Offered]:
        """Return the spare runs that a job may take back, those that began last first."""
        if self._victims is None:
            spare = [other for other in self._present.values() if other.run is not None and other.offer == SPARE]
            spare.sort(key=lambda other: (other.x.start, other.turn), reverse=True)
            self._victims = {other.run: other for other in spare if other.run is not None}
            self._latest = max((other.latest for other in spare), default=0)
        if each.offer == REGULAR:
            return self._victims
        after = each.latest + self.unit.whole(APART)
        if self._latest <= after:
            return {}
        return {run: other for run, other in self._victims.items() if other.latest > after}

    def _end_run(self, each: NodeJob) -> None:
        super()._end_run(each)
        self._victims = None

    def _take_back(self, each: Offered, now: int, events: list[Event]) -> None:
        assert each.run is not None
        self._counts["requeues"] += 1
        self._counts["node_rounds_lost"] += each.run.lost(now)
        each.ran += 1
        self._end_run(each)
        self._seen.runs(each.place, 0, 0)
        events.append(Event(now, EventKind.REQUEUE, each.x.job))
