"""The audit's plays in the market at hand, and in other worlds of the same jobs: many owners, few lies."""

from __future__ import annotations

import uuid
from collections.abc import Mapping

from marketsched.config.named_mechanisms import NamedMechanism
from marketsched.mechanisms.errors import MarketschedError
from marketsched.mechanisms.sow import StatementOfWork
from marketsched.truthfulness.plan import Plan, Purse
from marketsched.truthfulness.searches.evaluation import Budget
from marketsched.truthfulness.searches.joint_reports import JointGain, joint_gains
from marketsched.truthfulness.searches.looking import (
    AT_HAND,
    DECIDING,
    ON_WORLDS,
    decided_on_worlds,
    lies_for_worlds,
    look_at_hand,
)
from marketsched.truthfulness.searches.on_worlds import OnWorlds, lies_on_worlds
from marketsched.truthfulness.searches.plays_ahead import AtHand, PlaysAhead
from marketsched.truthfulness.searches.screened import Screened
from marketsched.truthfulness.searches.screening import Screening
from marketsched.truthfulness.situations.market_at_hand import MarketAtHand

NOT_SHORTENED = (
    "a lie that was answered by a short way (docs/audit.md) ends otherwise when its market is played: the mechanism "
    "does not do what it states, and everything was played"
)


def plays_ahead(entrant: NamedMechanism, plan: Plan) -> PlaysAhead:
    """Return what makes plays of a mechanism ahead in the market of the audit's seed."""
    market = AtHand(uuid.uuid4().hex, entrant.scenario, plan.seed, plan.data, plan.call_seconds)
    return PlaysAhead(market, plan.helpers)


def market_at_hand(entrant: NamedMechanism, plan: Plan, errors: list[str]) -> MarketAtHand | None:
    """Return the market of the audit's seed; None, with the reason: it cannot be built."""
    try:
        market = MarketAtHand.of(entrant.scenario, plan.seed, plan.data, plan.workload)
    except MarketschedError as error:
        errors.append(f"not played at hand: {error}")
        return None
    return market


def screened_at_hand(
    entrant: NamedMechanism,
    market: MarketAtHand | None,
    plan: Plan,
    purse: Purse,
    errors: list[str],
    menus: bool,
    ahead: PlaysAhead,
) -> Screened | None:
    """Play single lies of many owners in the market of the audit's seed; None: there is none.

    ``menus`` tells whether payments are compared with menus at arrival, on which certificates rest.
    """
    what = f"{entrant.label}: lies in the market at hand"
    if market is None:
        return None
    try:
        _ = market.outcomes
    except MarketschedError as error:
        errors.append(f"not played at hand: {error}")
        return Screened(market, truth_fails={"all jobs": str(error)})
    purse.start()
    budget = purse.budget(AT_HAND if decided_on_worlds(market) else 1.0)

    def search() -> Screening:
        screening = Screening(market, budget, lambda _: plan.tell(what, purse.whole(budget.plays)), menus, ahead)
        try:
            look_at_hand(screening, plan.seed)
        except MarketschedError as error:
            errors.append(f"the screen ended early: {error}")
        return screening

    screening = search()
    if not market.shortens:
        errors.append(NOT_SHORTENED)
        budget = purse.budget(AT_HAND if decided_on_worlds(market) else 1.0)
        screening = search()
    purse.stop()
    purse.note("the screen", budget.plays, budget)
    found = screening.found
    for job, reason in list(found.truth_fails.items())[:1]:
        errors.append(f"{len(found.truth_fails)} owners left out of the screen; {job}: {reason}")
    return found


def on_worlds(
    entrant: NamedMechanism,
    market: MarketAtHand | None,
    screened: Screened | None,
    named: Mapping[str, StatementOfWork],
    plan: Plan,
    purse: Purse,
    errors: list[str],
) -> OnWorlds:
    """Play lies on fresh worlds where the market at hand decides nothing: see `needs_worlds`.

    ``named`` has lies that certificates name, by job.
    """
    lies = lies_for_worlds(screened, named)
    if not lies or market is None:
        return OnWorlds()
    what = f"{entrant.label}: lies on fresh worlds"
    plan.tell(what, purse.whole())
    purse.start()
    budget, more = purse.further(ON_WORLDS), purse.further(DECIDING)
    try:
        at_turn = {} if screened is None else {owner.name: owner for owner in screened.owners}
        at_turn |= {owner.name: owner for owner in market.owners([name for name in lies if name not in at_turn])}
        found = lies_on_worlds(
            [at_turn[name] for name in lies if name in at_turn],
            lies,
            budget,
            more,
            confidence=plan.confidence,
            tolerance=plan.tolerance,
            seed=plan.seed,
            tell=lambda: plan.tell(what, purse.whole(budget.plays)),
        )
    except MarketschedError as error:
        errors.append(f"on fresh worlds: {error}")
        found = OnWorlds()
    purse.stop()
    purse.note("the lies on fresh worlds", budget.plays + more.plays, budget)
    errors.extend(found.failures[:1])
    return found


def joint_at_hand(
    entrant: NamedMechanism, screened: Screened | None, plan: Plan, purse: Purse, errors: list[str]
) -> list[JointGain]:
    """Play joint reports of owners with several jobs, with a quarter of the plays and seconds of the plan on top.

    The purse notes whether seconds ended them.
    """
    if screened is None or not screened.owners:
        return []
    plan.tell(f"{entrant.label}: joint reports of owners", 1.0)
    budget = Budget(None if plan.plays is None else plan.plays // 4, None if plan.seconds is None else plan.seconds / 4)
    found: list[JointGain] = []
    try:
        found = joint_gains(screened.market, budget, plan.seed)
    except MarketschedError as error:
        errors.append(f"joint reports: {error}")
    purse.note(f"the joint reports, after those of {len(found)} owners", 0, budget)
    return found
