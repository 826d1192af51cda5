"""An owner that searches its best lie with the audit's search, against the others' last reports.

Every few days it takes the others' last reports as given, as the audit does, searches for the misreport that pays most
(:func:`marketsched.truthfulness.searches.on_worlds.lies_on_worlds`), and keeps it until the next search. Where all
owners do so in turn that is iterated best response. Under a truthful mechanism a search confirms nothing, and the owner
goes on telling the truth.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from marketsched.agents.lies import Misreport, PublicInformation, Strategy, Truthful
from marketsched.mechanisms.errors import InvalidReportError
from marketsched.mechanisms.legal import Count, OpenShare, legal
from marketsched.mechanisms.sow import StatementOfWork
from marketsched.study.learning.repeated_market import PlayedDay, RepeatedMarket
from marketsched.truthfulness.searches.evaluation import Budget
from marketsched.truthfulness.searches.families import Family
from marketsched.truthfulness.searches.findings import Deviation
from marketsched.truthfulness.searches.on_worlds import lies_on_worlds
from marketsched.truthfulness.situations.market_at_hand import MarketAtHand
from marketsched.truthfulness.situations.owner_at_hand import OwnerAtHand

MORE = 20  # times the plays of a search: how many more a lie may take that seems to pay, until it is decided


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
    """An owner that plays the best lie the audit finds, and searches again every so many days.

    A search takes at most ``max_plays`` plays, and up to 20 times as many more while a lie seems to pay and is not
    confirmed; a lie is played only if it is confirmed to pay, at this ``confidence``. It tries ``families``: each a
    Family, a Misreport, or an object with report(truth, public); None: the menu of the market. ``rng`` draws the worlds
    of the searches.
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
        self.found: list[tuple[int, Deviation | None]] = []  # days played before each search, and the lie it confirmed
        self._days = 0

    def look(self, market: RepeatedMarket, played: PlayedDay, owner: str) -> None:
        """Take note of a day, and search if it is time to."""
        own = [i for i, job in enumerate(played.day.jobs) if job.owner == owner]
        if self._days % self.every == 0 and own:
            at_hand = _at_hand(market, played, own[int(self._rng.integers(len(own)))])
            best = self._best(at_hand, market.menu.strategies if self._families is None else self._families)
            self.strategy = Truthful() if best is None else _AsStrategy(best.misreport)
            self.found.append((self._days, best))
        self._days += 1

    def _best(self, owner: OwnerAtHand, families: Iterable[Any]) -> Deviation | None:
        """Return the confirmed lie inside the model that pays most; None: there is none."""
        lies = [lie for i, given in enumerate(families) for lie in Family.of(i, given).members if lie.inside_model]
        found = lies_on_worlds(
            [owner],
            {owner.name: lies},
            Budget(self.max_plays, None),
            Budget(MORE * self.max_plays, None),
            confidence=self.confidence,
            seed=int(self._rng.integers(2**31)),
        )
        return found.confirmed[0] if found.confirmed else None


def _at_hand(market: RepeatedMarket, played: PlayedDay, place: int) -> OwnerAtHand:
    """Return the owner of one job, which arrived, among all other jobs of the day, which report as they did."""
    pairs = zip(played.day.jobs, played.reports, strict=True)
    jobs = [job if i == place else replace(job, truth=report) for i, (job, report) in enumerate(pairs)]
    (owner,) = MarketAtHand(
        market.factory, jobs, capacity=market.capacity, horizon=market.horizon, max_delay=market.max_delay,
        seed=played.day.seed,
    ).owners([jobs[place].name])  # fmt: skip
    return owner
