"""Owners with several jobs: the gain from reports of all of them together, in the market at hand.

No mechanism promises anything about an owner's jobs together: prices that one of its reports moves are those of its
next job. Played are all jobs at one multiple of their values, the first job alone at other values (which tells what it
does to the price of the second), and jobs that are not submitted at all. Gains are exact: all chance is fixed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from marketsched.agents.job import Job
from marketsched.agents.lies import ScaleValue
from marketsched.agents.playing import play
from marketsched.mechanisms.errors import InvalidReportError, MechanismFault
from marketsched.mechanisms.mechanism import Event, EventKind
from marketsched.mechanisms.sow import StatementOfWork
from marketsched.truthfulness.searches.evaluation import ROUNDING, Budget, BudgetSpent
from marketsched.truthfulness.situations.guarded_market import Snapshot, no_collection, snapshot
from marketsched.truthfulness.situations.market_at_hand import MarketAtHand
from marketsched.truthfulness.situations.true_owners import TrueOwners, worth

FACTORS = (0.75, 0.5, 0.9, 1.25, 0.25, 2.0)
MOST_WITHHELD = 3  # jobs of an owner that are left out one by one, those worth least first
MOST_OWNERS = 100

Reports = Mapping[str, StatementOfWork | None]  # by job, in place of the truth; None: not submitted


@dataclass(frozen=True, slots=True)
class JointGain:
    """The joint report of an owner that gained most, credits. ``words`` is empty if none gained."""

    owner: str
    n_jobs: int
    words: str
    gain: float
    truthful: float


class _Together(TrueOwners):
    """All report truly but one owner, whose utility is added up over its jobs."""

    def __init__(self, market: MarketAtHand, mine: Sequence[Job], reports: Reports, entered: int) -> None:
        super().__init__(market.setup, market.born, entered)
        self._reports = reports
        self._open = {job.name for job in mine if job.arrival is not None and reports.get(job.name, job) is not None}
        self.utility = 0.0

    @property
    def over(self) -> bool:  # type: ignore[override]
        """True once all its jobs have left the market."""
        return not self._open

    def submit(self, job: Job, market: Any, place: int) -> None:
        report = self._reports.get(job.name, job.truth)
        if report is not None:
            market.submit(job.name, report, job, job.truth.concurrency, owner=job.owner, own=job.name in self._reports)

    def hear(self, events: Sequence[Event], market: Any) -> None:
        super().hear(events, market)
        for event in events:
            if event.job in self._open and event.kind is not EventKind.START:
                self._open.discard(event.job)
                done = event.completion if event.kind is EventKind.COMPLETE else None
                self.utility += worth(self.by_name[event.job], done, self._setup) - event.payment


def joint_utility(market: MarketAtHand, mine: Sequence[Job], reports: Reports, kept: Snapshot | None = None) -> float:
    """Return an owner's utility from all its jobs under these reports, all others true, credits.

    ``kept`` is the market at the turn of the first of them; without it the market is played from its first round.

    Raises InvalidReportError if the mechanism refuses a report, MechanismFault if it is at fault.
    """
    first = mine[0]
    entered = 0 if kept is None else market.born[first.truth.birth].index(first)
    owners = _Together(market, mine, reports, entered)
    with no_collection():
        play(market.fresh() if kept is None else kept.copy(), owners, market.setup.horizon)
    return owners.utility


def joint_gains(market: MarketAtHand, budget: Budget, seed: int = 0) -> list[JointGain]:
    """Play joint reports of owners with several jobs, in an order drawn from ``seed``, until the budget ends.

    Returns the best of each owner all of whose joint reports were played, those that gain most first.
    """
    jobs: defaultdict[str, list[Job]] = defaultdict(list)
    for job in market.setup.jobs:
        jobs[job.owner].append(job)
    several = [owner for owner, mine in jobs.items() if sum(job.arrival is not None for job in mine) > 1]
    order = np.random.default_rng([0x301E7, seed]).permutation(len(several))[:MOST_OWNERS]
    found: list[JointGain] = []
    try:
        for owner in (several[i] for i in order):
            found.append(_best(market, owner, jobs[owner], budget))
    except BudgetSpent:
        pass
    return sorted(found, key=lambda one: -one.gain)


def _best(market: MarketAtHand, owner: str, mine: Sequence[Job], budget: Budget) -> JointGain:
    budget.take()
    kept = snapshot(market.at_turn(mine[0].name))
    truthful = joint_utility(market, mine, {}, kept)
    best = JointGain(owner, len(mine), "", 0.0, truthful)
    for words, reports in _conducts(market, mine):
        budget.take()
        try:
            gain = joint_utility(market, mine, reports, kept) - truthful
        except (InvalidReportError, MechanismFault):
            continue
        if gain > max(best.gain, ROUNDING * (1 + abs(truthful))):
            best = JointGain(owner, len(mine), words, gain, truthful)
    return best


def _conducts(market: MarketAtHand, mine: Sequence[Job]) -> Iterator[tuple[str, Reports]]:
    """Yield joint reports, in words and by job."""
    for factor in FACTORS:
        lie = ScaleValue(factor)
        yield (
            f"reports {factor:g} of the value of all its {len(mine)} jobs",
            {job.name: lie.report(job.truth, market.public) for job in mine},
        )
    first = mine[0]
    for factor in FACTORS[:4]:
        report = ScaleValue(factor).report(first.truth, market.public)
        yield f"reports {factor:g} of the value of its first job {first.name}", {first.name: report}
    for job in sorted(mine, key=lambda job: job.truth.value.highest)[:MOST_WITHHELD]:
        yield f"does not submit {job.name}", {job.name: None}
