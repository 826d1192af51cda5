"""Owners with several jobs: the gain from reports of all of them together, in the market at hand.

No mechanism promises anything about an owner's jobs together: prices that one of its reports moves are those of its
next job. Played are all jobs at one multiple of their values, the first job alone at other values (which tells what it
does to the price of the second), and jobs that are not submitted at all. Gains are exact: all chance is fixed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from marketsched.agents.job import Job
from marketsched.agents.lies import ScaleValue
from marketsched.agents.playing import play
from marketsched.mechanisms.errors import MechanismFault
from marketsched.truthfulness.conduct.all_jobs import AllJobs
from marketsched.truthfulness.conduct.conduct_gains import Sums
from marketsched.truthfulness.searches.evaluation import ROUNDING, Budget, BudgetSpent
from marketsched.truthfulness.situations.guarded_market import Snapshot, no_collection, snapshot
from marketsched.truthfulness.situations.market_at_hand import MarketAtHand

FACTORS = (0.75, 0.5, 0.9, 1.25, 0.25, 2.0)
MOST_WITHHELD = 3  # jobs of an owner that are left out one by one, those worth least first
MOST_OWNERS = 100


@dataclass(frozen=True, slots=True)
class JointGain:
    """The joint report of an owner that gained most, credits. ``words`` is empty if none gained."""

    owner: str
    n_jobs: int
    words: str
    gain: float
    truthful: float


def joint_utility(market: MarketAtHand, mine: Sequence[Job], does: AllJobs, kept: Snapshot | None = None) -> float:
    """Return an owner's utility from all its jobs by what it does with them, all others true, credits.

    ``kept`` is the market at the turn of the first of them; without it the market is played from its first round.

    Raises MechanismFault if the mechanism is at fault.
    """
    entered = 0 if kept is None else market.born[mine[0].truth.birth].index(mine[0])
    open_ = {job.name for job in mine if job.arrival is not None} - {*does.withheld}
    owners = Sums(market.setup, market.born, entered, does, open_)
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
    truthful = joint_utility(market, mine, AllJobs("joint", ""), kept)
    best = JointGain(owner, len(mine), "", 0.0, truthful)
    for does in _conducts(market, mine):
        budget.take()
        try:
            gain = joint_utility(market, mine, does, kept) - truthful
        except MechanismFault:
            continue
        if gain > max(best.gain, ROUNDING * (1 + abs(truthful))):
            best = JointGain(owner, len(mine), does.words, gain, truthful)
    return best


def _conducts(market: MarketAtHand, mine: Sequence[Job]) -> Iterator[AllJobs]:
    """Yield what an owner may do with its jobs."""
    for factor in FACTORS:
        words = f"reports {factor:g} of the value of all its {len(mine)} jobs"
        yield AllJobs("joint", words, {job.name: ScaleValue(factor).report(job.truth, market.public) for job in mine})
    first = mine[0]
    for factor in FACTORS[:4]:
        words = f"reports {factor:g} of the value of its first job {first.name}"
        yield AllJobs("joint", words, {first.name: ScaleValue(factor).report(first.truth, market.public)})
    for job in sorted(mine, key=lambda job: job.truth.value.highest)[:MOST_WITHHELD]:
        yield AllJobs("joint", f"does not submit {job.name}", withheld=(job.name,))
