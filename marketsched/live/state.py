"""The state of a live market between two events: its jobs, accounts and records, and what can be looked at."""

from __future__ import annotations

import math
from collections import Counter, defaultdict, deque
from typing import Any

from marketsched.config.sow_codec import sow_from_json
from marketsched.live.accounts import Account, Accounts
from marketsched.live.configuration import LiveConfig
from marketsched.live.job import LiveJob
from marketsched.live.purse_ledger import PurseLedger, check_owner
from marketsched.live.statements import check_signal, signals_of
from marketsched.live.surprise import Records
from marketsched.mechanisms.errors import EventError, UnknownNameError
from marketsched.mechanisms.mechanism import Mechanism, Offer
from marketsched.mechanisms.sow import StatementOfWork
from marketsched.play.replayer import Replayer

PAST_ROUNDS = 60  # whose load and queue are shown


class LiveState:
    """The state of a live market, which its events change (`marketsched.live.machine.LiveMarket`)."""

    def __init__(self, config: LiveConfig) -> None:
        self.config = config
        self.jobs: dict[str, LiveJob] = {}  # open ones by name, in order of submission; the database has the others
        self._ended: dict[str, LiveJob] = {}  # by the event at hand
        self.tally: Counter[str] = Counter()  # of all jobs that were ever submitted, by their state
        self.accounts = Accounts()
        self.usable: int | None = None  # nodes, as last remarked; None: all of them
        self.busy = 0  # nodes of running jobs now; on a cluster as they are counted for `announced_nodes`
        self.past: deque[tuple[int, int, int]] = deque(maxlen=PAST_ROUNDS)  # round, its load, jobs waiting at most
        self.short_rounds = 0  # that were cleared while fewer nodes than the capacity were usable
        self._replayer = Replayer(config, forgets=True)
        for owner in () if self.mechanism.purses is None else self.mechanism.purses.names:
            check_owner(owner)
        self.accounts.renew = self.mechanism.purses is not None
        self._purses = PurseLedger()
        self.reported: list[dict[str, Any]] = []  # arrivals of the open round, in the order of their reports
        # Jobs, by the round that ends what they booked, and by the last round of their arrival.
        self.bookings_end: defaultdict[int, list[str]] = defaultdict(list)
        self.expected: defaultdict[int, list[str]] = defaultdict(list)
        # Owners and nodes of jobs that were taken back, by the last round of their arrival: where starts are settled at
        # submission, nobody else gets these nodes until then.
        self.withheld: defaultdict[int, list[tuple[str, int]]] = defaultdict(list)
        # Jobs and durations of their laws, by the round behind which a run has outlasted that duration.
        self.outlasting: defaultdict[int, list[tuple[str, int]]] = defaultdict(list)
        self.owed = 0  # millionths of a credit: what the open jobs may cost together
        self.records = Records()  # by group of owners: how often jobs came in unlikely cases, or ran so long
        self._closed = False  # True: after the last round, what was left has been removed

    @property
    def round(self) -> int:
        """The open round; one beyond the horizon once the market is over."""
        return self._replayer.open_round

    @property
    def mechanism(self) -> Mechanism:
        """What decides."""
        return self._replayer.mechanism

    @property
    def over(self) -> bool:
        """True after the last round: nothing is submitted any more, and nothing arrives."""
        return self.round > self.config.horizon

    @property
    def rounds_left(self) -> int:
        """How often the market can still be advanced: through its last round, and once more, which closes it.

        In between, jobs whose work was done in the last round are reported as complete.
        """
        return 0 if self._closed else self.config.horizon - self.round + 2

    @property
    def load(self) -> int:
        """Nodes busy in the round cleared last."""
        return self._replayer.load

    @property
    def waiting_at_most(self) -> int:
        """The next higher of 0, 10, 30, 100, 300, ... jobs that came in earlier rounds and have not started.

        It is no count of what others do, and changes with rounds alone.
        """
        return next_step(self.tally["arrived"] - len(self.reported))

    def prices(self, count: int) -> list[float | None] | None:
        """Return the prices of the open round and those after it, credits per node; None: not on sale."""
        count = max(0, min(count, self.config.horizon - self.round + 1))
        prices = self.mechanism.slot_prices(self.round, count)
        return None if prices is None else [p if math.isfinite(p) else None for p in prices.tolist()]

    def job(self, name: str) -> LiveJob:
        """Return an open job; UnknownNameError if there is none of that name."""
        if not isinstance(name, str) or name not in self.jobs:
            raise UnknownNameError(place="job", value=name, legal="a job that is open")
        return self.jobs[name]

    def quote(self, owner: Account, job: str, report: object) -> Offer:
        """Return the plan and price of a submission now; nothing is changed, and nothing drawn.

        Raises MarketschedError if the submission would be refused, in the same words.
        """
        if self.over:
            raise EventError(f"submit in round {self.round}", legal=f"at most the horizon {self.config.horizon}")
        sow = self.statement(report)
        for signal in signals_of(report):
            check_signal(signal)
        return self.mechanism.quote(job, sow)

    def statement(self, report: object) -> StatementOfWork:
        """Return a statement of work that is submitted now; errors as of `sow_from_json`."""
        return sow_from_json(self.round, report, self._replayer.limits)

    @property
    def decides(self) -> str:
        """When starts and prices are settled: ``at submission`` or ``at arrival``."""
        return f"at {self.mechanism.reads_reports}"

    def group_of(self, owner: str) -> str:
        """Return the group that an owner's account belongs to, or its own name."""
        return self.accounts.known[owner].belongs_to


def next_step(count: int) -> int:
    """Return the next higher of 0, 10, 30, 100, 300, ... of a count, which so is not told."""
    step = 10
    while step < count:
        step = step * 3 if str(step)[0] == "1" else step * 10 // 3
    return step if count > 0 else 0
