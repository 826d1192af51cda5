"""A market that stops before each turn of the owners whose actions come from outside.

`OwnersTurns` plays `MarketRun` with one change: the action given for the turn, an entry of a menu of strategies,
decides how the jobs of chosen owners are reported. The rounds between two turns are played through, by the mechanism at
once where it can (`PlayedTurns`). All that is random comes from the setup, so with the action "truth" everywhere the
tables are those of the market without learners deciding.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from marketsched.agents.job import Job
from marketsched.agents.learning import Bids, ReportMenu
from marketsched.agents.lies import PublicInformation
from marketsched.agents.market_run import MarketRun
from marketsched.agents.owner_state import OwnerState
from marketsched.agents.result import RunResult
from marketsched.agents.setup import MarketSetup
from marketsched.mechanisms.errors import EventError
from marketsched.mechanisms.sow import StatementOfWork
from marketsched.study.learning.played_turns import PlayedTurns

PRICES = 8  # prices an owner observes, each a mean over an eighth of the rounds in which a job born now can earn
OBSERVED = (
    "has a job to report",
    "rounds played",
    "nodes",
    "highest value",
    "highest value per node-round",
    "mean duration",
    "mean wait until ready",
    "rounds until worthless",
    *(f"price {k + 1} of {PRICES}" for k in range(PRICES)),
    "last action",
    "last utility",
    "mean utility",
    "jobs over",
    "jobs that earned",
)


# jobs_over: how many left; surplus, paid: credits; started: how many ran; wait: rounds from arrival to start, summed.
OUTCOME = ("jobs_over", "surplus", "paid", "started", "wait")


class _Told:
    """The strategy of one job: reports as the action of the owner's turn says, and passes the utility on."""

    def __init__(self, market: OwnersTurns, job: Job) -> None:
        self._market, self._job = market, job
        self._action: float | None = None

    def report(self, truth: StatementOfWork, public: PublicInformation) -> StatementOfWork:
        """Return the report; a job that is submitted again keeps its action."""
        if self._action is None:
            self._action = self._market.action_of(self._job.owner)
        return self._market.menu.strategy_of(self._action).report(truth, public)

    def see(self, owner: OwnerState) -> None:
        """Pass on what became of the job; called once, when it leaves the market."""
        self._market.job_over(self._job, owner.utility, owner.payment, owner.start)


class OwnersTurns:
    """A market in which the actions of some owners, entries of the menu, come from outside.

    The setup is fresh, and used up; owners that are not in ``owners`` report as it says.
    """

    def __init__(self, setup: MarketSetup, owners: Collection[str], menu: ReportMenu | Bids) -> None:
        self.menu = menu
        own = set(setup.table.owners).intersection(owners)
        rows = [row for row, owner in enumerate(setup.table.owners) if owner in own]
        self._jobs_of = {row: setup.jobs[row] for row in rows}
        self._born: dict[int, dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
        self._left: dict[str, int] = dict.fromkeys(own, 0)  # jobs that are still to leave the market
        for row, job in self._jobs_of.items():
            self._born[job.truth.birth][job.owner].append(row)
            self._left[job.owner] += 1
        self._place = {owner: k for k, owner in enumerate(sorted(own))}
        self._jobs = np.array([self._left[owner] for owner in self._place])
        # Of each owner: its last action, last utility, sum of utilities, jobs over, jobs with a utility.
        self._past = np.zeros((len(own), 5))
        self._past[:, 0] = -1.0
        # By owner, of its jobs that left during the last turn: credits earned; and figures as `OUTCOME` names them.
        self.earned: dict[str, float] = {}
        self.outcomes: dict[str, dict[str, float]] = {}
        self._actions: Mapping[str, float] = {}
        self._whole = PlayedTurns.of(setup, rows, menu)
        self.market: MarketRun | PlayedTurns = self._of_loop(setup, own) if self._whole is None else self._whole
        self.public = setup.public
        self._unit = self.public.max_value or max((job.truth.value.highest for job in setup.jobs), default=1.0) or 1.0
        self._longest = self.public.max_duration or max((job.duration for job in setup.jobs), default=1)
        self._play_on()

    def _of_loop(self, setup: MarketSetup, own: Collection[str]) -> MarketRun:
        """Return the market that the loop plays."""
        others = setup.strategy_of
        return MarketRun(replace(setup, strategy=lambda job: _Told(self, job) if job.owner in own else others(job)))

    @property
    def played_whole(self) -> bool:
        """Whether the mechanism plays all rounds between two turns at once."""
        return self._whole is not None

    @property
    def over(self) -> bool:
        """Whether all rounds are played."""
        return not self.market.running

    @property
    def owners(self) -> list[str]:
        """Owners that still have a job to report or in the market, in order of their names."""
        return [] if self.over else sorted(owner for owner, left in self._left.items() if left)

    def act(self, actions: Mapping[str, float]) -> dict[str, float]:
        """Report the jobs that are due, and play until others are, or to the end; return what owners earned meanwhile.

        ``actions`` are places in the menu by owner: who is due and not among them tells the truth, who is not due is
        passed over. Earnings are those of jobs that left the market, credits: true value less payment. EventError if
        the market is over.
        """
        self._actions = actions
        self.earned, self.outcomes = {}, {}
        if self._whole is None:
            self._step()
        else:
            if not self._whole.running:
                raise EventError(f"act: all {self.public.horizon} rounds are played: the market is over")
            for row in sorted(row for rows in self.due.values() for row in rows):
                job = self._jobs_of[row]
                strategy = self.menu.strategy_of(self.action_of(job.owner))
                self._whole.report(row, job, strategy.report(job.truth, self.public))
        self._play_on()
        return self.earned

    def result(self) -> RunResult:
        """Return the tables of all rounds that were played."""
        return self.market.result()

    def action_of(self, owner: str) -> float:
        """Return the action of this turn, and remember it."""
        action = self._actions.get(owner, self.menu.truth)
        self._past[self._place[owner], 0] = action
        return action

    def job_over(self, job: Job, utility: float, payment: float, start: int | None) -> None:
        """Take note of a job that has left the market."""
        past = self._past[self._place[job.owner]]
        came = self.outcomes.setdefault(job.owner, dict.fromkeys(OUTCOME, 0.0))
        came["jobs_over"] += 1.0
        came["surplus"] += utility
        came["paid"] += payment
        if start is not None and job.arrival is not None:
            came["started"] += 1.0
            came["wait"] += float(start - job.arrival)
        past[1] = utility
        past[2:] += utility, 1.0, utility != 0.0
        self._left[job.owner] -= 1
        self.earned[job.owner] = self.earned.get(job.owner, 0.0) + utility

    def _step(self) -> None:
        assert isinstance(self.market, MarketRun)
        self.market.step()

    def _play_on(self) -> None:
        """Play to the round before the next turn."""
        if self._whole is None:
            while self.market.running and self.market.round + 1 not in self._born:
                self._step()
        elif self._whole.running:
            coming = min((born for born in self._born if born > self._whole.round), default=self.public.horizon + 1)
            self._whole.play(min(coming - 1, self.public.horizon))
            for row, utility, payment, start in self._whole.over():
                self.job_over(self._jobs_of[row], utility, payment, start)
        # By owner, the places of the jobs that are born in the coming round; empty once the market is over.
        self.due = self._born.pop(self.market.round + 1, {}) if self.market.running else {}

    def observations(self, owners: Sequence[str]) -> NDArray[np.float32]:
        """Return the observations of owners before their turn, shape (len(owners), len(OBSERVED)), in [-1, 1].

        Their type, public prices and their own past, as `OBSERVED` lists them: values, utilities and prices as shares
        of the largest legal value, rounds as shares of the horizon or of S. Of several jobs born in one round the first
        is described.
        """
        seen = np.zeros((len(owners), len(OBSERVED)))
        seen[:, 1] = self.market.round / self.public.horizon
        for row, owner in enumerate(owners):
            if owner in self.due:
                seen[row, :8] = self._type(self._jobs_of[self.due[owner][0]].truth, self.market.round + 1)
        seen[:, 8 : 8 + PRICES] = self.prices()
        places = [self._place[owner] for owner in owners]
        action, last, total, gone, paying = self._past[places].T
        jobs = self._jobs[places]
        past = (self.menu.share(action), last / self._unit, total / np.maximum(1.0, gone) / self._unit)
        seen[:, -5:] = np.stack((*past, gone / jobs, paying / jobs), axis=1)
        return np.clip(seen, -1.0, 1.0).astype(np.float32)

    def _type(self, truth: StatementOfWork, now: int) -> list[float]:
        law, public = truth.law, self.public
        mass = law.probabilities.sum() or 1.0
        mean = float(law.durations @ law.probabilities) / mass
        arrival = float(law.arrivals @ law.probabilities) / mass
        highest = float(truth.value.highest)
        values = truth.value.table(now, public.max_delay)
        until = float(np.count_nonzero(values > 0.0))
        return [
            1.0,
            self.market.round / public.horizon,
            truth.concurrency / public.widest,
            highest / self._unit,
            highest / (truth.concurrency * max(mean, 1.0)) / self._unit,
            mean / self._longest,
            (arrival - now) / public.max_delay,
            until / public.max_delay,
        ]

    def price(self) -> float:
        """Return the public price of a node in the next round, credits; 0 where there is none, or no next round."""
        if self.market.round >= self.public.horizon:
            return 0.0
        found = self.market.mechanism.slot_prices(self.market.round + 1, 1)
        return 0.0 if found is None else float(np.asarray(found)[0])

    def prices(self) -> NDArray[np.float64]:
        """Return the public prices of a node-round ahead, each a mean over S / 8 rounds; zeros where there are none."""
        ahead = min(self.public.max_delay, self.public.horizon - self.market.round)
        found = self.market.mechanism.slot_prices(self.market.round + 1, ahead) if ahead > 0 else None
        if found is None:
            return np.zeros(PRICES)
        parts = np.array_split(np.asarray(found, dtype=np.float64), PRICES)
        return np.array([part.mean() if part.size else 0.0 for part in parts]) / self._unit
