"""Credits that renew: a mechanism for clusters without money.

Every account has an income of credits by its share (`purses`). *Regular* nodes cost one credit a node and round, and
are taken away for no other job; *free* nodes cost nothing, and may be. Which of an owner's jobs are regular is decided
for it, by its own order of importance and its own purse (`upgrades`). Values of different owners are never compared,
so that ranks do in place of values. A round:

1. who can bring nothing any more is stopped, or leaves (`departures`);
2. arrivals are free at first;
3. every purse has its income, up to its cap, that of an owner who has just come, too;
4. late jobs that matter become regular;
5. regular runs pay, regular jobs start and take free runs' nodes, free jobs start on the rest (`service`).

Three things are proven (docs/mathematics.md). Any increasing map of the importance of one owner's jobs with 0 at 0
changes nothing, for anybody. In L rounds the regular runs of an owner hold at most its purse and its income of L
rounds, in node-rounds. And a job of c <= (1 - r) C nodes that is regular since round u starts within X rounds and as
many more as all credits of round u + X, w_1 + w_2 + ..., can hold the nodes that it would have, (1 - r) C - c + 1 of
them, not counting those in which its owner cannot pay one. For one job alone regular service is always better than
free: other jobs of its owner lack the credits. So nothing is promised for single jobs; utility is the value of
completed jobs.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from marketsched.mechanisms.auctions.arrival_market import Moved
from marketsched.mechanisms.auctions.waiting_job import NOT_YET, WaitingJob
from marketsched.mechanisms.credits.departures import Usual
from marketsched.mechanisms.credits.on_credit import OnCredit
from marketsched.mechanisms.credits.outlook import Outlook
from marketsched.mechanisms.credits.present import DONE, HERE, JOB
from marketsched.mechanisms.credits.purses import CREDIT, Purses
from marketsched.mechanisms.credits.quiet_rounds import pass_rounds, unchanged_until
from marketsched.mechanisms.credits.saved_work import SavedWork, keep
from marketsched.mechanisms.credits.service import prepay, serve_free, serve_regular
from marketsched.mechanisms.credits.upgrades import Memory, Spans, Upgrade, outlook, upgraded
from marketsched.mechanisms.credits.waits import FREE, NEVER, REGULAR, Waits
from marketsched.mechanisms.law import Signal
from marketsched.mechanisms.legal import Amount, Finite, Maybe, PositiveShare, Share, Whole, legal
from marketsched.mechanisms.mechanism import EventKind, JobClass, JobId, Standing
from marketsched.mechanisms.offers.departures import UNKNOWN
from marketsched.mechanisms.offers.present import Rows, band_of
from marketsched.mechanisms.offers.rates import KEPT, OfferedLoad
from marketsched.mechanisms.schedulers.turns import Accounts, Turns
from marketsched.mechanisms.sow import StatementOfWork
from marketsched.mechanisms.unit import Unit
from marketsched.mechanisms.values import importance

CARRY, PATIENCE = 672.0, 8.0  # quarters of an hour: K and X


class Credits(OnCredit):
    """Regular nodes for credits that renew, free ones for nothing (see the module).

    Parameters
    ----------
    capacity, horizon, max_concurrency, max_duration, max_value, max_delay
        The sizes of the market, as `MarketLimits`.
    shares, newcomers, owners
        As of `Accounts`. A scenario gives the owners of its jobs, so that without ``shares`` each has an equal part; an
        account that is opened later has none, and no income: its jobs stay free, and are tried last.
    income : float
        r, the part of the machine that credits can buy. At 1 there is no bound on starts.
    carry_rounds : float, optional
        K, rounds of income that a purse holds at most; None: those of a week.
    start : float
        The part of it that purses known at the beginning hold then.
    patience : int, optional
        X: a job that has been regular for so many rounds takes nodes whatever that undoes; None: two hours.
    margin : float
        How early a job counts as late, as a part of its announced mean.
    reserve : {"head", "none"}
        Whether the first free job that does not fit keeps nodes (`service`, 3); with "none" narrow jobs may pass it for
        ever.
    round_seconds : float, optional
        Length of a round; None: a quarter of an hour.

    Examples
    --------
    A job without slack is regular at once, and takes the nodes of a free run:

    >>> from marketsched.mechanisms import DeadlineValue, StatementOfWork
    >>> sizes = {"max_concurrency": 2, "max_duration": 9, "max_value": 9.0, "max_delay": 40}
    >>> market = Credits(2, 40, owners=["ann", "bob"], **sizes)
    >>> def come(name, owner, deadline):
    ...     law = [(market.round, 4, 1.0, None)]
    ...     plan = market.submit(name, StatementOfWork(market.round, 2, DeadlineValue(5.0, deadline), law), owner=owner)
    ...     market.arrive(name)
    ...     return [(event.kind.value, event.job) for event in market.advance()]
    >>> come("A", "ann", 40), come("B", "bob", 7)
    ([('start', 'A')], [('requeue', 'A'), ('start', 'B')])
    >>> market.upgrades[0].job, market.purses.credits.round(1).tolist()
    ('B', [236.6, 234.6])
    """

    purses: Purses
    takes_back = True
    free_of_charge: ClassVar[bool] = True
    has_purses: ClassVar[bool] = True
    standing: ClassVar[Standing] = Standing(
        "proved",
        "no money: of an owner's values over work only their own order counts, and no increasing map of that with "
        "0 at 0 changes anything; "
        "a regular job of no more nodes than income leaves unsold starts within a bound, and is taken back for no "
        "other while its owner can pay; free runs may be",
        "accounts with shares; laws of durations and deadlines in reports",
    )

    @legal
    def __init__(
        self,
        *sizes: Any,
        shares: Mapping[str, Any] | None = None,
        newcomers: str = "",
        owners: Iterable[Hashable] | None = None,
        income: PositiveShare = 0.7,
        carry_rounds: Annotated[float | None, Maybe(Finite("(0, inf)"))] = None,
        start: Share = 0.5,
        patience: Annotated[int | None, Maybe(Whole(0))] = None,
        margin: Amount = 1.0,
        reserve: Literal["head", "none"] = "head",
        round_seconds: Annotated[float | None, Maybe(Finite("(0, inf)"))] = None,
        **more: Any,
    ) -> None:
        super().__init__(*sizes, **more)
        self.accounts = Accounts(shares, newcomers, owners)
        unit = Unit.of(round_seconds)
        carry = CARRY * unit.rounds if carry_rounds is None else carry_rounds
        self.purses = Purses(self.accounts, self.capacity, income, carry, start)
        self.turns = Turns(self.accounts, unit.kept(KEPT))
        self._upgrades: dict[JobId, list[Upgrade]] = {}  # until the name of the job is forgotten
        self.patience, self.margin = unit.whole(PATIENCE) if patience is None else patience, margin
        self.reserve = reserve
        self.waits = Waits()
        self._present, self._usual = Rows(JOB), Usual(UNKNOWN * unit.rounds)
        self._offered, self._memory = OfferedLoad(self.capacity, unit.kept(KEPT)), Memory(Spans.of(unit))
        self._in_row: dict[int, WaitingJob] = {}
        self._saved: dict[JobId, SavedWork] = {}  # of jobs with checkpoints
        self._open: dict[int, Upgrade] = {}  # of regular jobs that wait, by row
        self._used_nodes = 0
        self._counts = dict.fromkeys(
            ("jobs", "upgrades", "could_not_pay", "requeues", "node_rounds_lost", "regular_completed", "completed"), 0
        ) | {"beyond_purse": 0}  # jobs that cost more than their owner's purse can hold
        self._paid_undone = 0  # for jobs that were stopped, millionths of a credit

    @property
    def _every_purse(self) -> Sequence[Purses]:
        return (self.purses,)

    @property
    def upgrades(self) -> list[Upgrade]:
        """What became regular, in order, but what is forgotten."""
        for row, each in self._open.items():
            each.unpaid = int(self._present.jobs["unpaid"][row])
        return super().upgrades

    @property
    def load(self) -> int:
        """Nodes of the jobs that ran in the round just cleared and have not ended."""
        return self._used_nodes

    def statistics(self) -> dict[str, float]:
        """Return counts of jobs and upgrades, and the credits of all purses together."""
        credits = self._credits_of_all() | {"credits_undone": self._paid_undone / CREDIT}
        return {name: float(each) for name, each in self._counts.items()} | credits

    def tables(self) -> dict[str, dict[str, Sequence[Any]]]:
        """Return the purses as they are now, and what became regular when."""
        purses, names = self.purses, [str(each) for each in self.accounts.names]
        purses.follow()
        credits = {name: getattr(purses, name) / CREDIT for name in ("incomes", "caps", "held", "spent", "expired")}
        owners = {"owner": names, "part": self.accounts.parts, **credits}
        return {"purses": owners, "upgrades": self._upgrades_by_column(Upgrade)}

    def class_of(self, job: JobId) -> JobClass | None:
        """Return the class of a job that has come, and what it has paid."""
        x = self._jobs.get(job)
        if x is None or self._in_row.get(x.agreed) is not x:
            return None
        row = self._present.jobs[x.agreed]
        return JobClass("regular" if row["since"] > 0 else "free", int(row["paid"]))

    def outlook(self, sow: StatementOfWork, owner: Hashable) -> Outlook:
        """Return what a job of an owner could expect if it were submitted now; nothing is changed."""
        now, width, law = self._round, sow.concurrency, sow.law
        mean = float(law.probabilities @ law.durations / law.probabilities.sum())
        band, number, purses = band_of(width, self.capacity), self.accounts.find(owner), self.purses
        due = WaitingJob("", 0, sow).come(now, None, self.limits.last_useful_completion(sow)).due
        late = math.ceil(due - mean * (1.0 + self.margin) - self._memory.spans.late)
        purse = needed = threshold = 0.0
        if number is not None and number < purses.held.size:
            purse = float(purses.held[number]) / CREDIT
            needed, threshold = outlook(self._present, now, purses, self._memory, self._usual.kappa, number)
        bound = purses.longest_wait(width, self.patience)
        return Outlook(
            cost=width * mean * self._usual.kappa, purse=purse, needed=needed, threshold=threshold,
            late=max(late, int(law.arrivals.min())), important=importance(sow.value, width, mean),
            bound=None if math.isnan(bound) else int(bound), regular_within=self.waits.covered(REGULAR, band),
            free_within=self.waits.covered(FREE, band),
            taken=self.waits.taken / self.waits.runs if self.waits.runs else None,
        )  # fmt: skip

    def foresee(self, x: WaitingJob, signal: Signal) -> None:
        """Note what the job is to its owner, and its ends."""
        x.mean, x.limit = x.announced_mean, x.useful
        x.last_start = x.limit - x.announced[0]
        x.agreed = x.importance  # until it is admitted; then its row
        if x.checkpoint:
            self._saved[x.job] = SavedWork.of(x)

    def clear(self) -> list[Moved]:
        """Clear the current round, and move to the next; return who leaves, whose run is taken back, who starts."""
        now = self._round
        found = self._depart(now)
        self._offered.pass_rounds()
        found += self._admit(now)
        self.purses.pay_income()
        self.turns.fade()
        if self._present.n:
            self._upgrade(now)
            found += self._serve(now)
        self._round, self._any_arrival = now + 1, False
        return found

    def unchanged_until(self) -> int:
        """Return a round before which nothing moves if no job comes or ends; see `quiet_rounds`."""
        if self.purses.held.size != len(self.accounts) or self.turns.used.size != len(self.accounts):
            return self._round  # newcomers have no purse yet
        idle, kappa = self.capacity - self._used_nodes, self._usual.kappa
        return unchanged_until(
            self._present, self._round, idle, self.purses, kappa, self.margin, self._memory.spans.late
        )

    def pass_rounds(self, until: int, ahead: int = 1) -> None:
        """Let the rounds before ``until`` go by; there are no prices."""
        count, self._round, self._any_arrival = until - self._round, until, False
        self._offered.pass_rounds(count)
        pass_rounds(self._present, count, self.purses, self.turns)

    def runs(self, x: WaitingJob) -> bool:
        """Tell whether a job runs."""
        return x.start != NOT_YET

    def end(self, x: WaitingJob) -> float:
        """Let a run end that ran its last round in the one just cleared; it pays nothing."""
        row, work = self._present.jobs[x.agreed], self._saved.get(x.job)
        row["state"], row["used"] = DONE, self._round - x.start + (work.saved if work else 0)
        self._counts["completed"] += 1
        self._counts["regular_completed"] += int(row["since"] > 0)
        self._end_run(x)
        self._leave(x)
        return 0.0

    def ran(self, x: WaitingJob) -> bool:
        """Tell whether a job runs, or did before its run was taken back."""
        return bool(x.start) or (self._in_row.get(x.agreed) is x and bool(self._present.jobs["ran"][x.agreed]))

    # -- one round ------------------------------------------------------------------------------------------

    def _depart(self, now: int) -> list[Moved]:
        """Remove the jobs that can bring nothing any more, and learn from all that have left."""
        gone = self._usual.departed(self._present, now).tolist()
        found, jobs = [], self._present.jobs
        for row in gone:
            x = self._in_row.pop(row)
            if row in self._open:
                waited = self._open.pop(row)
                waited.left, waited.unpaid = now, int(jobs["unpaid"][row])
            if jobs["state"][row] == HERE:
                if not x.start and not jobs["ran"][row]:
                    self.waits.note(REGULAR if jobs["since"][row] else FREE, int(jobs["band"][row]), NEVER)
                kind = EventKind.EVICT if x.start or jobs["ran"][row] else EventKind.DROP
                self._paid_undone += int(jobs["paid"][row])
                if x.start:
                    self._end_run(x)
                self._leave(x)
                found.append((x, kind, 0.0))
        self._present.give_back(gone)
        return found

    def _admit(self, now: int) -> list[Moved]:
        """Let the arrivals of the round wait as free jobs; drop those that come too late."""
        self._arrived.sort(key=lambda x: x.order)
        found = []
        for x in self._arrived:
            width = x.width
            band = band_of(width, self.capacity)
            self._offered.arrives(width, float(self._usual.rounds[band]), self._usual.kappa)
            if now > x.last_start:
                self._leave(x)
                found.append((x, EventKind.DROP, 0.0))
                continue
            owner = self.accounts.number_of(x.owner)
            columns = (owner, width, band, now, x.due, x.last_start, x.mean, x.mean, x.agreed, *[0] * 6, HERE, 0)
            self._counts["beyond_purse"] += self.purses.cap_of(owner) < width * x.mean
            x.agreed = self._present.enter(columns)  # as `JOB`
            self._in_row[x.agreed] = x
            self._counts["jobs"] += 1
        self._arrived = []
        self._memory.admit(len(self.accounts))
        return found

    def _upgrade(self, now: int) -> None:
        """Make late jobs regular, then remember the round's arrivals for later thresholds."""
        jobs, purses = self._present.jobs, self.purses
        for row, cost, threshold in upgraded(self._present, now, purses, self._memory, self._usual.kappa, self.margin):
            x, width, owner = self._in_row[row], int(jobs["width"][row]), int(jobs["owner"][row])
            purse, bound = float(purses.held[owner]) / CREDIT, purses.longest_wait(width, self.patience)
            self._open[row] = Upgrade(x.job, x.owner, now, cost, purse, threshold, bound)
            self._upgrades.setdefault(x.job, []).append(self._open[row])
            self._counts["upgrades"] += 1
        n = self._present.n
        while n and jobs["arrival"][self._present.turn[n - 1]] == now:
            n -= 1
        for row in self._present.turn[n : self._present.n].tolist():
            each = jobs[row]
            self._memory.learn(int(each["owner"]), float(each["important"]), float(each["width"] * each["mean"]), now)

    def _serve(self, now: int) -> list[Moved]:
        """Take nodes back and start runs."""
        present, found = self._present, []
        self._counts["could_not_pay"] += prepay(present, self.purses)
        idle = self.capacity - self._used_nodes
        taken, started = serve_regular(
            present, now, idle, self.purses, self._usual.rounds, self._offered.share, self.patience
        )
        for row in taken.tolist():
            x = self._in_row[row]
            self._counts["requeues"] += 1
            self.waits.taken += 1
            kept = keep(self._saved.get(x.job), self._present.jobs[row], x.limit, now - x.start)
            self._counts["node_rounds_lost"] += x.width * (now - x.start - kept)
            self._end_run(x)
            found.append((x, EventKind.REQUEUE, 0.0))
        found += [self._begin_run(row, now) for row in started.tolist()]
        idle = self.capacity - self._used_nodes
        if idle:
            queue = self._free_queue()
            begun = serve_free(present, now, idle, queue, self._usual.rounds, self.reserve == "head")
            found += [self._begin_run(row, now) for row in begun.tolist()]
        rows = present.turn[: present.n]
        free_runs = rows[(present.jobs["since"][rows] == 0) & (present.jobs["start"][rows] > 0)]
        self.turns.count(present.jobs["owner"][free_runs], present.jobs["width"][free_runs])
        return found

    def _free_queue(self) -> NDArray[np.int64]:
        """Return the rows of waiting free jobs in the order in which they are tried."""
        jobs, rows = self._present.jobs, self._present.turn[: self._present.n]
        rows = rows[(jobs["since"][rows] == 0) & (jobs["start"][rows] == 0)]
        found: NDArray[np.int64] = rows[self.turns.order(jobs["owner"][rows], jobs["important"][rows])]
        return found

    def _begin_run(self, row: int, now: int) -> Moved:
        x = self._in_row[row]
        each = self._present.jobs[row]
        if row in self._open:
            waited = self._open.pop(row)
            waited.started, waited.unpaid = now, int(each["unpaid"])
            self.waits.note(REGULAR, int(each["band"]), now - int(each["since"]))
        else:
            self.waits.runs += 1
            if not each["ran"]:
                self.waits.note(FREE, int(each["band"]), now - int(each["arrival"]))
        x.start = now
        self._used_nodes += x.width
        self._present.jobs["stop"][row] = max(now + 1, min(x.limit, now + self.max_duration))
        return x, EventKind.START, 0.0

    def _end_run(self, x: WaitingJob) -> None:
        """Note that a run has ended."""
        self._used_nodes -= x.width
        x.start = NOT_YET

    def _leave(self, x: WaitingJob) -> None:
        self._saved.pop(x.job, None)
        super()._leave(x)
