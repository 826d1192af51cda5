"""The one search for lies, of `audit` and `check_truthful`: in one market, and which lies go on to fresh worlds."""

from __future__ import annotations

from collections.abc import Mapping

from marketsched.agents.lies import CopyLaw, Misreport
from marketsched.mechanisms.sow import StatementOfWork
from marketsched.truthfulness.searches.own_lies import FixedReport
from marketsched.truthfulness.searches.reading import Reading
from marketsched.truthfulness.searches.screened import Gain, Screened, first_of
from marketsched.truthfulness.searches.screening import Screening
from marketsched.truthfulness.situations.market_at_hand import MarketAtHand
from marketsched.truthfulness.situations.promises import promise_of

# Up to which share of the budget each phase goes on.
SCREEN, OWN_LAW, FAMILIES, READING = 0.4, 0.5, 0.65, 1.0
AT_HAND = 0.25  # of the plays, for the market at hand, where fresh worlds have to decide
ON_WORLDS = 0.6  # of the plays, for fresh worlds
DECIDING = 4.0  # times the plays of an audit: how many more a lie may take that seems to pay, until it is decided
OWNERS, OWN = 24, 3  # on fresh worlds: owners, and lies of each that gained at hand

FIRST = 4  # owners of whom a certificate names a lie


def look_at_hand(screening: Screening, seed: int) -> None:
    """Look for lies in one market. Errors as of `GuardedMarket`."""
    budget = screening.budget
    budget.allow(SCREEN)
    screening.screen(seed, None if budget.most_plays is None else int(budget.most_plays * SCREEN))
    budget.allow(OWN_LAW)
    screening.own_laws([*first_of(screening.found.paying), *screening.found.paying])
    if screening.found.best_counted is None:
        budget.allow(FAMILIES)
        screening.families()
    budget.allow(READING)
    if screening.found.best_counted is None:
        Reading(screening, seed).run()
    screening.sharpen()


def _anywhere(gain: Gain) -> Misreport:
    """Return a lie that needs no others' announced reports: the report itself, where it was made of them."""
    report = gain.conduct.statements[0].report
    return FixedReport(report) if gain.misreport.kind == CopyLaw.kind else gain.misreport


def needs_worlds(screened: Screened | None, named: Mapping[str, StatementOfWork]) -> bool:
    """Tell whether gains have to be shown on fresh worlds.

    They do where the mechanism draws, or promises truth up to regret alone, or a certificate names a lie.
    """
    if named or screened is None or not screened.owners:
        return bool(named)
    return decided_on_worlds(screened.market) or any(g.drew for g in screened.gains)


def decided_on_worlds(market: MarketAtHand) -> bool:
    """Tell whether a mechanism draws under true reports, or promises truth up to regret alone."""
    mechanism = market.setup.mechanism
    regret = any(promise_of(mechanism, job.truth, "mixed") == "up to regret" for job in market.setup.jobs)
    return regret or any(played.drew for played in market.outcomes.values())


def lies_for_worlds(screened: Screened | None, named: Mapping[str, StatementOfWork]) -> dict[str, list[Misreport]]:
    """Return by job the lies to be played on fresh worlds: of few owners those that did best at hand.

    First come owners of whom a certificate names a lie, then those that gained most, then the others of the screen, in
    its order (half of them pay or lose under the truth). Beside its own lies each owner has the fixed lies.
    """
    if not needs_worlds(screened, named):
        return {}
    names = list(named)[:FIRST]
    fixed: list[Misreport] = []
    own: dict[str, list[Misreport]] = {}
    if screened is not None:
        names += [g.owner.name for g in first_of(screened.paying)]
        names += [owner.name for owner in screened.owners]
        fixed = screened.promoted()
        for g in screened.paying:
            own.setdefault(g.owner.name, []).append(_anywhere(g))
    found: dict[str, list[Misreport]] = {}
    for name in list(dict.fromkeys(names))[:OWNERS]:
        certified: list[Misreport] = [FixedReport(named[name])] if name in named else []
        found[name] = list(dict.fromkeys([*own.get(name, [])[:OWN], *fixed, *certified]))
    return found
