"""The audit's plays in the market at hand, and in other worlds of the same jobs: many owners, few lies."""

from __future__ import annotations

import uuid
from collections.abc import Callable

import numpy as np

from marketsched.config.named_mechanisms import NamedMechanism
from marketsched.mechanisms.errors import MarketschedError
from marketsched.truthfulness.plan import Plan, Purse
from marketsched.truthfulness.searches.evaluation import Budget
from marketsched.truthfulness.searches.joint_reports import JointGain, joint_gains
from marketsched.truthfulness.searches.plays_ahead import AtHand, PlaysAhead
from marketsched.truthfulness.searches.pooling import Pooled, pooled_lies, promoted
from marketsched.truthfulness.searches.reading import Reading
from marketsched.truthfulness.searches.screened import Screened, first_of
from marketsched.truthfulness.searches.screening import Screening
from marketsched.truthfulness.situations.market_at_hand import MarketAtHand

SCREEN, OWN_LAW, READING = 0.45, 0.6, 1.0  # up to which share of the budget each phase goes on


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
    part: float,
    errors: list[str],
    menus: Callable[[], bool],
    ahead: PlaysAhead,
) -> Screened | None:
    """Play single lies of many owners in the market of the audit's seed; None: there is none.

    ``part`` is the share of the remaining budget that may be spent. ``menus`` is called when the market stands, before
    the first play, and says whether payments are compared with menus at arrival, on which certificates rest.
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
    budget = purse.budget(part)
    screening = Screening(market, budget, lambda _: plan.tell(what, purse.whole(budget.plays)), menus, ahead)
    budget.allow(SCREEN)
    try:
        screening.screen(plan.seed, None if budget.most_plays is None else int(budget.most_plays * SCREEN))
        budget.allow(OWN_LAW)
        screening.own_laws([*first_of(screening.found.paying), *screening.found.paying])
        budget.allow(READING)
        if screening.found.best_counted is None:
            Reading(screening, plan.seed).run()
    except MarketschedError as error:
        errors.append(f"the screen ended early: {error}")
    purse.stop()
    purse.note("the screen", budget.plays, budget)
    found = screening.found
    for job, reason in list(found.truth_fails.items())[:1]:
        errors.append(f"{len(found.truth_fails)} owners left out of the screen; {job}: {reason}")
    return found


def pooled_over_worlds(
    entrant: NamedMechanism,
    screened: Screened | None,
    plan: Plan,
    purse: Purse,
    errors: list[str],
    ahead: PlaysAhead,
) -> list[Pooled]:
    """Play the fixed lies that did best at hand over owners and worlds, with all that is left of the purse."""
    if screened is None or not screened.gains:
        return []
    what = f"{entrant.label}: fixed lies over worlds"
    plan.tell(what, purse.whole())
    purse.start()
    budget = purse.budget(1.0)
    values = [owner.truth.value.highest for owner in screened.owners]
    found: list[Pooled] = []
    try:
        found = pooled_lies(
            screened.market,
            promoted(screened),
            budget,
            confidence=plan.confidence,
            tolerance=plan.tolerance / max(float(np.median(values)), 1e-9),
            seed=plan.seed,
            tell=lambda _: plan.tell(what, purse.whole(budget.plays)),
            ahead=ahead,
        )
    except MarketschedError as error:
        errors.append(f"fixed lies over worlds: {error}")
    purse.stop()
    purse.note("the fixed lies over worlds", budget.plays, budget)
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
