"""What an owner sees of offers and of the journal: its own jobs and public prices, and no counts of what others do.

Numbers of rows count the events of all owners, so an owner gets others in their place, which only say where to read on.
Failure probabilities depend on the statements of others, so an owner gets the next higher one of a few steps.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from typing import Any

from marketsched.live.machine import LiveMarket
from marketsched.live.principal import Principal
from marketsched.live.rows import Row
from marketsched.mechanisms.mechanism import Offer

FAILURE_STEPS = (0.0, 0.1, 0.35, 0.7, 1.0)
EXACT = 1e-12  # of a step
HALF = 26  # bits: numbers up to 2^52, which JSON keeps
PASSES = 4  # of the permutation
HIDDEN = ("most", "fee", "held")  # fields of a row that are the market's own


class Cursors:
    """Numbers of rows as owners see them: for each account another permutation of them, which nobody else can undo.

    The ``secret`` of a market is the same after a restart, so that who reads on finds the place.
    """

    def __init__(self, secret: str) -> None:
        self._secret = secret.encode()

    def hide(self, account: str, seq: int) -> int:
        """Return how an account sees the number of a row; 0, the beginning, is 0."""
        left, right = seq >> HALF, seq & ((1 << HALF) - 1)
        for n in range(PASSES):
            left, right = right, left ^ self._mixed(account, n, right)
        return seq and (left << HALF) | right

    def find(self, account: str, shown: int) -> int:
        """Return the number of the row that an account sees so; of what it never saw, any number."""
        left, right = (shown >> HALF) & ((1 << HALF) - 1), shown & ((1 << HALF) - 1)
        for n in reversed(range(PASSES)):
            left, right = right ^ self._mixed(account, n, left), left
        return shown and (left << HALF) | right

    def _mixed(self, account: str, n: int, half: int) -> int:
        found = hmac.digest(self._secret, f"{account} {n} {half}".encode(), hashlib.sha256)
        return int.from_bytes(found[:4], "big") & ((1 << HALF) - 1)


def offered(who: Principal, market: LiveMarket, report: Any, offer: Offer, *, plan: bool = True) -> dict[str, Any]:
    """Return an offer as plain data; to an owner with failure probabilities in steps, and the utility these leave."""
    starts = [{"arrival": a, "signal": signal, "start": start} for a, signal, start in offer.plan.starts]
    runs = [run._asdict() for run in offer.runs]
    utility = float(offer.plan.estimated_utility)
    if who.role == "owner" and any(run["failure"] > EXACT for run in runs):
        worth = market.statement(report).value
        for run in runs:
            run["failure"] = next(step for step in FAILURE_STEPS if run["failure"] <= step + EXACT)
        utility = sum(
            run["probability"] * (1 - run["failure"]) * (float(worth(run["start"] + run["duration"])) - run["price"])
            for run in runs
        )
    more = {"estimated_utility": utility, "runs": runs}
    return {"plan": starts, **more} if plan else more


def seen(who: Principal, row: Row, cursors: Cursors) -> dict[str, Any] | None:
    """Return a row of the journal as a caller may see it; None: not at all."""
    head = {"seq": row.seq, "time": row.time, "round": row.round, "event": row.event}
    if who.role == "operator":
        return {**head, "by": row.by, "owner": row.owner, "job": row.job, **row.body, "decisions": row.decisions}
    if who.role == "reader":
        decisions = [{"round": each["round"], "event": each["event"]} for each in row.decisions]
        return {**head, "decisions": decisions}
    head["seq"] = cursors.hide(who.name, row.seq)
    mine = f"{who.name}."  # no owner has a dot in its name
    decisions = [_without_utility(each) for each in row.decisions if each["job"].startswith(mine)]
    if row.owner == who.name:
        body = {key: value for key, value in row.body.items() if key not in HIDDEN}
        return {**head, "by": row.by, "owner": row.owner, "job": row.job, **body, "decisions": decisions}
    return {**head, **row.body, "decisions": decisions} if row.event == "advance" else None


def _without_utility(decision: Mapping[str, Any]) -> dict[str, Any]:
    """Leave out the utility of a plan, which holds the exact failure probabilities."""
    return {key: value for key, value in decision.items() if key != "estimated_utility"}
