"""The search for lies of single owners, on drawn worlds: the owners it tries, and its findings."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from marketsched.agents.lies import Misreport
from marketsched.config.named_mechanisms import NamedMechanism
from marketsched.mechanisms.errors import MarketschedError
from marketsched.mechanisms.sow import StatementOfWork
from marketsched.truthfulness.audited import Searched
from marketsched.truthfulness.plan import Plan, Purse
from marketsched.truthfulness.searches.families import Family, default_families
from marketsched.truthfulness.searches.own_lies import FixedReport
from marketsched.truthfulness.searches.scoring import play_on, score
from marketsched.truthfulness.searches.screened import Screened, first_of
from marketsched.truthfulness.searches.searching import search
from marketsched.truthfulness.searches.shrinking import shrink
from marketsched.truthfulness.situations.situation import Situation, situations_of

SEARCHED = 4  # owners per mechanism that the search is run for
FOR_SHRINKING = 0.2  # share of an owner's budget
AT_HAND = 6  # lies that gained in the market at hand, of each owner, which its search tries as well


def search_some(
    entrant: NamedMechanism,
    table: pd.DataFrame,
    screened: Screened | None,
    plan: Plan,
    purse: Purse,
    part: float,
    named: Mapping[str, StatementOfWork],
    found: list[Searched],
    errors: list[str],
) -> None:
    """Search for the lies of a few owners, each added to ``found`` when it is finished.

    Failed parts are added to ``errors``, the same failure of several owners once. ``part`` is the share of
    what is left that the searches may spend.
    """
    plan.tell(f"{entrant.label}: playing up to the owners' turns", purse.whole())
    try:
        situations = _situations(entrant, table, screened, plan)
    except Exception as error:
        errors.append(f"no search: {error}" if isinstance(error, MarketschedError) else f"no search: {error!r}")
        return
    n = max(len(situations), 1)
    confidence = 1 - (1 - plan.confidence) / n
    troubles: defaultdict[str, list[str]] = defaultdict(list)  # owners' jobs, by what could not be done
    each = _part(purse.share(part), 1 / n)
    gained = defaultdict[str, list[Misreport]](list)
    for g in [] if screened is None else screened.paying:
        gained[g.owner.name].append(g.misreport)
    try:
        for situation in situations:
            lie, known = named.get(situation.name), gained[situation.name][:AT_HAND]
            try:
                found.append(_search(situation, entrant.label, lie, known, each, confidence, plan, purse))
            except Exception as error:
                troubles[f"the search failed: {type(error).__name__}: {error}"].append(situation.name)
            else:
                for trouble in _unplayed(found[-1], each):
                    troubles[trouble].append(situation.name)
    finally:  # Ctrl-C, too
        purse.note("the search of single owners", sum(one.deviations.plays for one in found))
        errors.extend(f"{', '.join(names)}: {trouble}" for trouble, names in troubles.items())


def play_on_some(
    found: list[Searched], purse: Purse, part: float, tell: Callable[[float], None] = lambda share: None
) -> None:
    """Play more worlds for owners of whom a lie seems to pay, or may, and none is confirmed (`play_on`).

    ``part`` is the share of the remaining budget that may be spent. Owners in ``found`` are replaced.
    """
    purse.start()
    budget = purse.budget(part)
    play_on([one.deviations for one in found if one.lie is None], budget, lambda: tell(budget.used))
    found[:] = [replace(one, lie=one.lie or one.deviations.best(inside_model=True)) for one in found]
    purse.stop()
    purse.note("more worlds for single owners", budget.plays, budget if budget.plays else None)


def _unplayed(one: Searched, limits: Mapping[str, Any]) -> list[str]:
    """Return what could not be compared in a search, and why."""
    failures, said = one.deviations.failures, []
    if failures:
        more = f" (and {len(failures) - 1} more could not be compared)" if len(failures) > 1 else ""
        said.append(f"{failures[0].words}: {failures[0].reason}{more}")
    if not one.compared:
        plays, seconds = limits["max_plays"], limits["budget_seconds"]
        within = f"{seconds:g} seconds" if plays is None else f"{plays:,} plays"
        said.append(f"no lie was compared with the truth: {one.deviations.plays:,} plays made, limit {within}")
    return said


def _part(given: Mapping[str, Any], part: float) -> dict[str, Any]:
    """Return a part of what may be spent."""
    plays, seconds = given["max_plays"], given["budget_seconds"]
    return {
        "max_plays": None if plays is None else max(1, int(plays * part)),
        "budget_seconds": None if seconds is None else seconds * part,
    }


def _search(
    situation: Situation,
    label: str,
    named: StatementOfWork | None,
    gained: Sequence[Misreport],
    each: Mapping[str, Any],
    confidence: float,
    plan: Plan,
    purse: Purse,
) -> Searched:
    """Search the lies of one owner, play the one that a certificate has named, and shrink the best of the search.

    All of them share ``confidence``. ``gained`` did so in the market at hand, where no gain is exact on average under
    a mechanism that draws; they are tried with all others.
    """
    steps = 2 if named is None else 3
    confidence = 1 - (1 - confidence) / steps
    after = FOR_SHRINKING / (steps - 1)
    what = f"{label}: lies of {situation.name}"
    plan.tell(what, purse.whole())
    deviations = search(
        situation,
        **_part(each, 1 - FOR_SHRINKING),
        confidence=confidence,
        tolerance=plan.tolerance,
        seed=plan.seed,
        families=[Family("at hand", tuple(gained)), *default_families(situation.truth, situation.public)],
        progress=lambda phase, plays, share: plan.tell(what, purse.whole(plays)),
    )
    purse.took(deviations.seconds)
    purse.start()
    lie = deviations.best(inside_model=True)
    least = None if lie is None else shrink(situation, lie, **_part(each, after))
    smallest = None if least is lie else least
    if named is not None:
        with suppress(MarketschedError):  # a mechanism at fault under this lie: as in the search, no lie is confirmed
            scored = score(
                situation,
                FixedReport(named),
                confidence=confidence,
                tolerance=plan.tolerance,
                seed=plan.seed,
                **_part(each, after),
                family="certificate",
            )
            if scored.confirmed and (lie is None or scored.gain_low > lie.gain_low):
                lie = scored
    purse.stop()
    return Searched(situation.name, situation, deviations, lie, smallest)


def _situations(entrant: NamedMechanism, table: pd.DataFrame, screened: Screened | None, plan: Plan) -> list[Situation]:
    """Return the situations of the owners that are searched.

    First those of whom a certificate names a lie, then those that gained in the market at hand, most first, then those
    of the screen, in its order (half of them pay or lose), then those with the loosest certificates.
    """
    names: list[str] = []
    if len(table):
        ranked = table.sort_values(["regret_lower", "regret_upper"], ascending=False, kind="stable")
        names += ranked["job"][ranked["regret_lower"] > 0].tolist()[:SEARCHED]
    # Later jobs never matter to an owner under LIFO: leaving them out is exact, and fast. Menus at arrival are
    # made of jobs that were submitted later, too.
    alone = len(table) > 0 and "rests_on" not in table
    if screened is not None:
        names += [g.owner.name for g in first_of([g for g in screened.checked if g.counted > 0])]
        names += [g.owner.name for g in first_of(screened.paying)]
        names += [owner.name for owner in screened.owners]
    if len(table):
        names += ranked["job"].tolist()
    names = list(dict.fromkeys(names))[:SEARCHED]
    if not names:
        names = _drawn(entrant, plan)
    elif screened is not None:  # in order of submission: the first of those that gain the same is named
        names = [job.name for job in screened.market.setup.jobs if job.name in names]
    given: dict[str, Any] = {"nobody_later": alone, "data": plan.data, "workload": plan.workload}
    return situations_of(entrant.scenario, names, plan.seed, **given)


def _drawn(entrant: NamedMechanism, plan: Plan) -> list[str]:
    """Return jobs that are drawn, where nothing is known of any."""
    workload = plan.workload or entrant.scenario.workload_of(plan.seed, plan.data)
    drawn = np.random.default_rng([0xA0D1, plan.seed]).permutation(len(workload.jobs))[:SEARCHED]
    return [workload.jobs[int(i)].name for i in np.sort(drawn)]
