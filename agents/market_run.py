"""A market played once, round by round: owners decide, the mechanism clears, the log notes what happened.

It uses :mod:`marketsched.agents.loop`, and keeps its order of a round: the owners whose
turn it is submit (those born in this round in the order of the workload, late ones included, then those
who submit again), then come arrivals, clearing and completions. Who acts in a round is read off
calendars; nothing loops over all owners.

`marketsched.agents.market.Market` is the same as a Mesa model. Here is no Mesa: importing it takes as long as
playing a few thousand jobs, and who only wants the tables has no use for it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from marketsched.agents.cluster_log import ClusterLog
from marketsched.agents.job import Job
from marketsched.agents.lies import Strategy, Truthful, submission_delay
from marketsched.agents.loop import MarketLoop
from marketsched.agents.market_log import MarketLog, RowKind, played_log
from marketsched.agents.owner_state import OwnerState
from marketsched.agents.result import RunResult, build_result
from marketsched.agents.setup import MarketSetup
from marketsched.mechanisms.columns import JobColumns, Outcomes
from marketsched.mechanisms.errors import EventError, InvalidParameterError, MechanismFault, faults_named
from marketsched.mechanisms.mechanism import Event, EventKind, Mechanism
from marketsched.mechanisms.memory import check_memory

MOST_AHEAD = 288  # columns of the price surface at most, in rounds: a day of five minutes each

ROUNDS_TOGETHER = 64  # that a mechanism is asked to play at once; a hundredth of a longer market

_KINDS: dict[EventKind, RowKind] = {  # owners here take no job back
    kind: RowKind[kind.name] for kind in EventKind if kind is not EventKind.WITHDRAW
}


class MarketRun:
    """A market of job owners over one mechanism.

    Parameters
    ----------
    setup : MarketSetup
        The market to play.
    lookahead : int, optional
        Slots ahead whose prices are kept each round; by default ``max_delay``, at most 288.
    by_rounds : bool
        Whether the loop plays each round, also where the mechanism can play whole markets (`Mechanism.play`).

    Attributes
    ----------
    running : bool
        Whether rounds are left; False, too, once a round was interrupted.
    rounds_together : int
        How many a mechanism that plays whole markets is asked for at a time; may be set before the first.

    Raises
    ------
    TooLargeError
        If the log of all rounds does not fit into memory.
    """

    running: bool

    def __init__(self, setup: MarketSetup, *, lookahead: int | None = None, by_rounds: bool = False) -> None:
        self.running = True
        self._by_rounds = by_rounds
        self.rounds_together = max(ROUNDS_TOGETHER, setup.horizon // 100)
        self.setup = setup
        self.mechanism = setup.mechanism
        self.public = setup.public
        self.round = 0
        self.load = 0
        self.lookahead = min(setup.max_delay, MOST_AHEAD) if lookahead is None else lookahead
        if self.lookahead < 0:
            raise InvalidParameterError(f"lookahead = {lookahead!r}: expected a number of rounds >= 0")
        columns = 0 if setup.mechanism.slot_prices(1, 1) is None else self.lookahead
        check_memory(
            f"the log of {setup.horizon} rounds, each with {columns} prices",
            setup.horizon * (200.0 + 12.0 * columns),  # float32: as they are noted, and again as a table
            "a smaller horizon",
        )
        self._table = setup.table
        self._loop = MarketLoop(setup.mechanism)
        self._in_round = False
        self._columns: JobColumns | None = None  # of a market that its mechanism plays as a whole
        self._outcomes = Outcomes.empty(0, 0, None)
        self._noted: MarketLog | None = None  # the log of those, once somebody has looked at it
        self._owners: dict[Any, OwnerState] = {}  # active statements by name
        self._to_return: dict[int, list[OwnerState]] = defaultdict(list)
        self._log = MarketLog()
        self._on_cluster = None if setup.cluster is None else ClusterLog(setup.cluster)
        # Of each job of a cluster: the pool in which it started last; -1: nowhere.
        self._pool_of = np.full(0 if setup.cluster is None else len(setup.jobs), -1)
        self._strategies = setup.strategies
        rounds = self._rounds_of_entry()
        self._entering = np.argsort(rounds, kind="stable").astype(np.uint32)  # places of jobs, as they enter
        self._entry_rounds = rounds[self._entering]

    def run(self, progress: Callable[[int], None] | None = None) -> RunResult:
        """Play all rounds that are left and return the tables.

        After an interruption (``KeyboardInterrupt`` is not caught) :meth:`result` still gives the
        tables of all finished rounds. ``progress`` is called after each round with its number.

        Raises EventError if an earlier round was interrupted.
        """
        self.play(progress)
        return self.result()

    def play(self, progress: Callable[[int], None] | None = None) -> None:
        """Play all rounds that are left, as `run` does, and make no tables.

        A mechanism that plays whole markets (`Mechanism.play`) is asked for many rounds at a time, where every owner
        reports what is true; ``progress`` is then called with the last of them.
        """
        self._check_whole()
        with faults_named(self.mechanism, lambda: f"round {self.round + 1}"):
            if self._play_columns(progress):
                return
            while self.running:
                self.step()
                if progress is not None:
                    progress(self.round)

    def _play_columns(self, progress: Callable[[int], None] | None) -> bool:
        """Play all rounds as columns; False if owners or mechanism want the loop, which then plays them."""
        if self._columns is None:
            plays = type(self.mechanism).play is not Mechanism.play and not self._by_rounds
            if self.round or not plays or not self._reports_truth():
                return False
            self._columns = self._table.columns(self.setup.max_delay)
            if self._columns is None:
                return False
            ahead = self.lookahead if self.mechanism.slot_prices(1, 1) is not None else None
            self._outcomes = Outcomes.empty(self._columns.n, self.setup.horizon, ahead, shaped=self._columns.shaped)
        while self.running:
            until = min(self.setup.horizon, self.round + self.rounds_together)
            if not self.mechanism.play(self._columns, self._outcomes, until):
                self._columns = None
                return False
            if self.mechanism.round != until + 1:
                at = f"played rounds {self.round + 1} to {until}, and is in round {self.mechanism.round}"
                raise MechanismFault(f"{type(self.mechanism).__name__}: {at}", legal=f"round {until + 1} after it")
            self._note_on_cluster(self.round + 1, until)
            self.round, self.running, self._noted = until, until < self.setup.horizon, None
            if progress is not None:
                progress(until)
        self._check_loads()
        return True

    def _note_on_cluster(self, first: int, last: int) -> None:
        """Note what rounds that were played whole took of a cluster."""
        if self._on_cluster is not None and self._outcomes.on_cluster is not None:
            self._on_cluster.play(self._outcomes, first, last)
            began = (self._outcomes.starts >= first) & (self._outcomes.starts <= last)
            for row in np.flatnonzero(began).tolist():
                self._pool_of[row] = self._outcomes.on_cluster.bookings[row].wanted.pool

    def _check_loads(self) -> None:
        """Raise if a mechanism that played all rounds at once runs more nodes than there are."""
        loads = self.log.rounds["load"]  # type: ignore[call-overload]
        over = np.flatnonzero(loads > self.setup.capacity)
        self.load = int(loads[-1]) if loads.size else 0
        if over.size:
            raise _too_many(int(over[0]) + 1, int(loads[over[0]]), self.setup.capacity)

    @property
    def played_whole(self) -> bool:
        """Whether the mechanism plays many rounds at a time."""
        return self._columns is not None

    def _reports_truth(self) -> bool:
        """Tell whether every owner submits the truth at birth, once, in the order of the workload."""
        truthful = not self.setup.differ and type(self.setup.strategy) is Truthful
        return truthful and not self.setup.resubmit and bool((self._entering[1:] > self._entering[:-1]).all())

    def step(self) -> None:
        """Play one round.

        Raises EventError if the last round was played, an earlier one was interrupted, or the mechanism runs more
        nodes than there are.
        """
        now = self.round + 1
        if now > self.setup.horizon:
            raise EventError(f"round {now} lies beyond the horizon {self.setup.horizon}: the market is over")
        self._check_whole()
        self._in_round, self.running = True, False  # until the round is whole: an interrupted market cannot go on
        surface = self._prices(now, self.lookahead)
        self._submissions(now)
        for entry in self._loop.arrivals():
            owner = self._owners[entry.name]
            self._log.event(now, RowKind.ARRIVE, owner.index, owner.resubmitted)
        promised, prices = self._promised(now), self._prices(now, 1)
        for event in self._loop.advance():
            if self._on_cluster is not None and event.kind is EventKind.START:
                booking = self.mechanism.booking(event.job)
                if booking is not None:
                    self._on_cluster.start(event.job, booking)
                    self._pool_of[self._owners[event.job].index] = booking.wanted.pool
            elif self._on_cluster is not None and event.kind is EventKind.REQUEUE:
                self._on_cluster.leave(event.job)
            self._hear(event, now)
        if self._on_cluster is not None:
            self._on_cluster.close_round(self.mechanism.pool_prices(now, 1))
        self.load = self._loop.load
        if self.load > self.setup.capacity:
            raise _too_many(now, self.load, self.setup.capacity)
        for event in self._loop.completions():
            self._hear(event, now)
        if now == self.setup.horizon:
            self._close()
        self._log.close_round(self.load, promised, np.nan if prices is None else float(prices[0]), surface)
        self.round = now
        self._in_round, self.running = False, now < self.setup.horizon

    @property
    def log(self) -> MarketLog:
        """The log so far, with running totals; read-only."""
        if self._columns is None:
            return self._log
        if self._noted is None:
            closes = self.round == self.setup.horizon == self.mechanism.horizon
            self._noted = played_log(self._columns, self._outcomes, self.round, closes=closes)
        return self._noted

    def pools(self) -> pd.DataFrame | None:
        """Return the use of every pool and resource by round (`ClusterLog`); None: nodes are identical."""
        return None if self._on_cluster is None else self._on_cluster.table()

    def pool_figures(self) -> pd.DataFrame | None:
        """Return use, fragments, price and income by pool and resource until the last birth; None: identical nodes."""
        return None if self._on_cluster is None else self._on_cluster.pools(self._table.last_birth)

    def result(self) -> RunResult:
        """Return the tables of all finished rounds; ``summary["complete"]`` tells if that is all."""
        result = build_result(
            self.log,
            self._table,
            name=self.setup.name,
            capacity=self.setup.capacity,
            horizon=self.setup.horizon,
            statistics=self.mechanism.statistics(),
        )
        cluster = self.mechanism.cluster
        if self._on_cluster is not None and cluster is not None:
            result.job_rows.pools = np.array([*cluster.pool_names, None], object)[self._pool_of]
        return result

    def offered(self) -> NDArray[np.float64]:
        """Return the largest value that each job can have, credits, shape (n_jobs,)."""
        return self._table.offered(self.setup.max_delay)

    def _check_whole(self) -> None:
        if self._in_round:
            raise EventError(f"round {self.round + 1} was interrupted: its market cannot go on, only result() is left")

    def _strategy(self, index: int) -> Strategy:
        """Return how the owner of a job reports."""
        return self.setup.strategy if self._strategies is None else self._strategies[index]  # type: ignore[return-value]

    def _rounds_of_entry(self) -> NDArray[np.int64]:
        """Return the round in which each owner reports first, shape (n_jobs,)."""
        births = self._table.births
        if self._strategies is None:
            return births + submission_delay(self._strategy(0))
        return births + np.array([submission_delay(each) for each in self._strategies], dtype=np.int64)

    def _owner(self, job: Job, index: int, strategy: Strategy) -> OwnerState:
        """Return the owner of a job that enters the market."""
        return OwnerState(job, index, strategy, self.setup.max_delay)

    def _submissions(self, now: int) -> None:
        """Owners whose turn it is report; each sees its plan before the next one reports."""
        begin, end = self._entry_rounds.searchsorted((now, now + 1))
        for index in self._entering[begin:end].tolist():
            self._submit(self._owner(self.setup.jobs[index], index, self._strategy(index)), now)
        for owner in self._to_return.pop(now, ()):
            self._submit(owner, now)

    def _submit(self, owner: OwnerState, now: int) -> None:
        watch = getattr(owner.strategy, "watch", None)
        if watch is not None:
            watch(self)
        report = owner.declare(self.public)
        job = owner.job
        plan = owner.plan = self._loop.submit(owner.name, report, job, job.truth.concurrency, owner=job.owner)
        self._owners[owner.name] = owner
        # A job that is ready before its submission arrives with it.
        planned = None if job.arrival is None else plan.start(max(job.arrival, now), job.signal)
        self._log.submit(now, owner.index, owner.resubmitted, report.concurrency, planned, plan.estimated_utility)

    def _close(self) -> None:
        """After the last round a mechanism that can close removes every job it still has."""
        for event in self._loop.close() if self.mechanism.horizon == self.setup.horizon else ():
            owner = self._owners.pop(event.job)
            owner.observe(event)
            self._log.event(event.round, RowKind.CLOSE, owner.index, owner.resubmitted)
            owner.leave()

    def _hear(self, event: Event, now: int) -> None:
        """Hand one event to its owner, and do what follows from it in the real world."""
        owner = self._owners[event.job]
        owner.observe(event)
        money = (event.completion, owner.payment, owner.value)  # a run that is stopped may pay; else none, 0 and 0
        self._log.event(event.round, _KINDS[event.kind], owner.index, owner.resubmitted, *money)
        if not event.kind.leaves:
            return
        if self._on_cluster is not None:
            self._on_cluster.leave(event.job, owner.payment)
        del self._owners[owner.name]
        again = now + 1 + submission_delay(owner.strategy)
        comes_back = event.kind is EventKind.DROP and self.setup.resubmit and again <= self.setup.horizon
        if comes_back and owner.reconsider(now + 1, self.public):
            self._to_return[again].append(owner)
        else:
            owner.leave()

    def _prices(self, now: int, count: int) -> NDArray[np.float64] | None:
        """Prices of slots ``now .. now + count - 1``, if the mechanism has slot prices."""
        prices = self.mechanism.slot_prices(now, count)
        return None if prices is None else np.asarray(prices, dtype=np.float64)

    def _promised(self, now: int) -> float:
        """Expected nodes committed to this round, if the mechanism keeps count."""
        committed = self.mechanism.committed(now, 1)
        return np.nan if committed is None else float(np.asarray(committed)[0])


def _too_many(now: int, load: int, capacity: int) -> EventError:
    return EventError(f"round {now}: the mechanism runs {load} nodes, capacity is {capacity}")
