"""An owner that searches its best lie with the audit's search, against the others' last reports.

Every few days it takes the others' last reports as given, as the audit does, searches for the
misreport that pays most (:func:`marketsched.truthfulness.searches.searching.search`), and keeps it until the
next search. Where all owners do so in turn that is iterated best response. Under a mechanism that is
truthful a search confirms nothing, and the owner goes on telling the truth.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from marketsched.agents.job import Job
from marketsched.agents.lies import Misreport, PublicInformation, Strategy, Truthful
from marketsched.mechanisms.errors import InvalidReportError
from marketsched.mechanisms.legal import Count, OpenShare, legal
from marketsched.mechanisms.sow import StatementOfWork
from marketsched.study.learning.repeated_market import PlayedDay, RepeatedMarket
from marketsched.truthfulness.searches.findings import Deviation, Deviations
from marketsched.truthfulness.searches.own_lies import OwnLie
from marketsched.truthfulness.searches.searching import search
from marketsched.truthfulness.situations.described import Other
from marketsched.truthfulness.situations.situation import Situation

LOOKS, MORE = 3, 4  # searches, each with so many times the plays of the one before, if there were too few


@dataclass(frozen=True)
class _AsStrategy:
    """A misreport that was found for one job, as a strategy for later ones; where it is illegal, the truth."""

    misreport: Misreport

    def report(self, truth: StatementOfWork, public: PublicInformation) -> StatementOfWork:
        try:
            self.misreport.check(truth, public)
            claim = self.misreport.report(truth, public)
        except InvalidReportError:
            return truth
        return claim if claim.birth == truth.birth else truth


class BestResponding:
    """An owner that plays the best lie the audit finds.

    Parameters
    ----------
    every : int
        Days between two searches.
    max_plays : int
        Of one search; where a lie seems to pay and cannot be confirmed in so many, four times as many, twice.
    families : iterable, optional
        The lies to try, as for `search`; by default the menu of the market.
    confidence : float
        Of a search: a lie is played only if it is confirmed to pay.
    rng : Generator
        Draws the worlds of the searches.

    Attributes
    ----------
    strategy : Strategy
        The current strategy.
    found : list of (int, Deviation or None)
        The lie that each search confirmed, with the number of days played before.
    """

    @legal
    def __init__(
        self,
        *,
        every: Count = 25,
        max_plays: Count = 4000,
        families: Iterable[Any] | None = None,
        confidence: OpenShare = 0.95,
        rng: np.random.Generator,
    ) -> None:
        self.every = every
        self.max_plays = max_plays
        self.confidence = confidence
        self._families = None if families is None else list(families)
        self._rng = rng
        self.strategy: Strategy = Truthful()
        self.found: list[tuple[int, Deviation | None]] = []
        self._days = 0

    def look(self, market: RepeatedMarket, played: PlayedDay, owner: str) -> None:
        """Take note of a day, and search if it is time to."""
        own = [place for place, job in enumerate(played.day.jobs) if job.owner == owner]
        if self._days % self.every == 0 and own:
            situation = _situation(market, played, own[int(self._rng.integers(len(own)))])
            # As they stand in the menu: the optimiser is to change nothing about them.
            families = [OwnLie(s) for s in market.menu.strategies] if self._families is None else self._families
            best = self._searched(situation, families).best(inside_model=True)
            self.strategy = Truthful() if best is None else _AsStrategy(best.misreport)
            self.found.append((self._days, best))
        self._days += 1

    def _searched(self, situation: Situation, families: list[Any]) -> Deviations:
        """Search, with more plays if they were too few to confirm what seems to pay."""
        seed = int(self._rng.integers(2**31))
        for factor in (MORE**look for look in range(LOOKS)):
            deviations = search(
                situation,
                budget_seconds=None,
                max_plays=self.max_plays * factor,
                confidence=1 - (1 - self.confidence) / LOOKS,
                seed=seed,
                families=families,
            )
            seems = any(tried.gain > 0 and tried.inside_model for tried in deviations.tried)
            if deviations.best(inside_model=True) is not None or not seems:
                break
        return deviations


def _situation(market: RepeatedMarket, played: PlayedDay, place: int) -> Situation:
    """Return the owner of one job among all other jobs, which report as they did."""
    jobs, job = played.day.jobs, played.day.jobs[place]
    others = [
        Other.of(i, _as_reported(other, report))
        for i, (other, report) in enumerate(zip(jobs, played.reports, strict=True))
        if i != place
    ]
    return Situation(
        market.factory,
        job.truth,
        tuple(others),
        capacity=market.capacity,
        horizon=market.horizon,
        max_delay=market.max_delay,
        name=job.name,
        ahead=sum(other.truth.birth == job.truth.birth for other in jobs[:place]),
    )


def _as_reported(job: Job, report: StatementOfWork) -> Job:
    return replace(job, truth=report)
