"""Calls of a market whose credits renew: shares, purses, and what a quote says of regular and free nodes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated, Any

from fastapi import Query

from marketsched.live.accounts import MICRO, Account
from marketsched.live.bodies import NewShare
from marketsched.live.job import LiveJob
from marketsched.live.machine import LiveMarket
from marketsched.live.principal import Principal
from marketsched.live.purse_ledger import check_owner
from marketsched.live.routes import route
from marketsched.live.turn import Turn
from marketsched.mechanisms.credits.credits import Credits
from marketsched.mechanisms.credits.outlook import Outlook
from marketsched.mechanisms.errors import EventError, InvalidParameterError


@route("POST /v1/shares", "operator", body=NewShare, refusals=(409,))
def share(turn: Turn, who: Principal, asked: NewShare) -> dict[str, Any]:
    """Give an account or an owner another share of the machine from this round on, where credits renew."""
    accounts = getattr(turn.market.mechanism, "accounts", ())
    last = asked.place.rpartition("/")[2]
    check_owner(last or "an-account")
    owner = turn.market.accounts.known.get(last)
    known = (owner is not None and owner.role == "owner") or last in map(str, getattr(accounts, "names", ()))
    there = asked.place in accounts if asked.place.endswith("/") else known
    if not there and not asked.new:  # a slip would take its part from everybody
        what = "an account" if asked.place.endswith("/") else "an account with a /, or an owner,"
        raise InvalidParameterError(
            place="place", value=asked.place, legal=f"{what} that is there, or new: true (--new)"
        )
    turn.record({"event": "share", "place": asked.place, "share": asked.share}, who.name)
    rule = turn.market.mechanism
    more = {"purses": _purses(rule)} if isinstance(rule, Credits) else {}
    return {"place": asked.place, "share": asked.share, **more}


@route("GET /v1/purse", "owner", "operator", refusals=(404, 409))
def purse(turn: Turn, who: Principal, owner: Annotated[str | None, Query(max_length=32)] = None) -> dict[str, Any]:
    """Show a purse, what of it regular jobs hold, and how soon regular jobs start; an operator's is the list of all."""
    market = turn.market
    rule = _credits(market)
    if who.role == "operator" and owner is None:
        return {"round": market.round, "purses": _purses(rule)}
    whose = turn.whose(who, owner).name
    own = next((each for each in _purses(rule) if each["owner"] == whose), {**_NONE, "owner": whose})
    jobs = [job for job in market.jobs.values() if job.owner == whose and job.regular]
    regular = [_held(job) for job in jobs]
    return {"round": market.round, **own, "regular": regular, "starts_within": _bounds(market, rule)}


_NONE: dict[str, Any] = {
    "owner": "", "part": 0.0, "credits": 0.0, "income": 0.0, "cap": 0.0, "spent": 0.0, "expired": 0.0,
}  # fmt: skip


def _credits(market: LiveMarket) -> Credits:
    """Return the rule of a market whose credits renew; raise EventError in another one."""
    if not isinstance(market.mechanism, Credits):
        raise EventError(f"{market.config.mechanism} has no purses", legal="mechanism: credits")
    return market.mechanism


def _purses(rule: Credits) -> list[dict[str, Any]]:
    table = rule.tables()["purses"]
    names = {"owner": "owner", "part": "part", "held": "credits", "incomes": "income", "caps": "cap"}
    names |= {"spent": "spent", "expired": "expired"}
    columns = {shown: list(table[name]) for name, shown in names.items()}
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def _held(job: LiveJob) -> dict[str, Any]:
    paid = (job.charge or 0) / MICRO
    return {"job": job.name, "state": job.state, "nodes": job.nodes, "start": job.start, "paid": paid}


def _bounds(market: LiveMarket, rule: Credits) -> dict[str, int | None]:
    """Return within how many rounds a regular job starts that becomes one now, by nodes: 1, 2, 4, ... and the most."""
    widest = min(market.config.max_concurrency, market.config.capacity)
    widths = sorted({1 << k for k in range(widest.bit_length())} | {widest})
    found = {str(width): rule.purses.longest_wait(width, rule.patience) for width in widths}
    return {width: None if bound != bound else int(bound) for width, bound in found.items()}


# -- quotes -------------------------------------------------------------------------------------------------


def outlook_of(market: LiveMarket, owner: Account, report: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a quote says of regular and free nodes, as data and in words; nothing in a market of another rule."""
    if not isinstance(market.mechanism, Credits):
        return {}
    found = market.mechanism.outlook(market.statement(report), owner.name)
    regular: dict[str, Any] = {
        "credits": found.cost,
        "purse": found.purse,
        "held": found.needed,
        "late_from": found.late,
    }
    regular |= {"important": found.important, "threshold": found.threshold, "chosen_now": found.chosen}
    regular |= {"starts_within": found.bound, "so_far_95_percent_within": found.regular_within}
    free: dict[str, Any] = {"so_far_95_percent_within": found.free_within, "taken_back": found.taken}
    due = report["value"]["deadline"] - market.round
    return {"in_words": in_words(found, due), "regular": regular, "free": free}


def in_words(found: Outlook, due: float = math.inf) -> str:
    """Return an outlook as a person reads it; the job is due in so many rounds."""
    return f"{_regular_in_words(found, due)}. {_free_in_words(found)}"


def _regular_in_words(found: Outlook, due: float) -> str:
    if not found.purse:
        return f"regular: about {_amount(found.cost)} credits, and you have none: it stays free"
    cost = f"regular: about {_amount(found.cost)} of your {_amount(found.purse)} credits"
    if found.needed:
        cost += f" ({_amount(found.needed)} of them are held for your regular jobs)"
    if not found.covered:
        return f"{cost}, which do not cover it now: it stays free until they do"
    if not found.chosen:
        return f"{cost}, which go to your jobs of importance {found.threshold:.3g} and more, and it has " + (
            f"{found.important:.3g}: as things are it stays free"
        )
    seen = "" if found.regular_within is None else f", so far 95 % within {found.regular_within}"
    bound = "no bound on its start, so wide it is"
    if found.bound is not None:
        late = "no bound on its start before its deadline"
        bound = late if found.bound > due else f"starts within {found.bound} rounds"
    return f"{cost}, from round {found.late} on if it has not started by then; {bound}{seen}"


def _free_in_words(found: Outlook) -> str:
    within = "so far not known when they start"
    if found.free_within is not None:
        within = f"so far 95 % start within {found.free_within} rounds"
    taken = "" if found.taken is None else f"; {100 * found.taken:.2g} % of free runs lost their nodes"
    return f"free: {within}{taken}"


def _amount(credits: float) -> str:
    return f"{credits:.0f}" if credits >= 10 or credits == 0 else f"{credits:.2g}"
