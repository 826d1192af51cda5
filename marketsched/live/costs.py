"""What a job may cost its owner: fees, the amount that is held for it, and the limits that these have to keep.

An owner's limit is kept by holds: what its open jobs may cost together is never more than the account may still pay.
Where prices are made at arrival, a job is charged no more than what was held for it. The bound behind the hold: a start
is given only where the expected price is at most the expected value, which is at most the highest value V of the
report. The price does not fall with the duration, so the longest duration of a case, if its share of the case is q,
costs at most V / q.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from marketsched.live.accounts import MICRO, Account
from marketsched.live.configuration import LiveConfig
from marketsched.live.state import LiveState
from marketsched.live.statements import most_worth
from marketsched.mechanisms.errors import EventError
from marketsched.mechanisms.mechanism import Offer

LARGEST_SUM = 2**63 - 1  # millionths, of any account


def fee(config: LiveConfig, nodes: int, offer: Offer | None = None) -> int:
    """Return the fee for an announced job of so many nodes that does not come as announced, millionths.

    What an ``offer`` withholds from others is worth the expected price of its runs; a share of it is due if that is
    more.
    """
    withheld = 0.0 if offer is None else sum(run.probability * run.price for run in offer.runs)
    return round(max(config.no_show_fee * nodes, config.no_show_share * withheld) * MICRO)


def check_announced(market: LiveState, owner: Account, nodes: int) -> None:
    """Raise EventError if ``nodes`` more would exceed the limit on the announced nodes of an owner's group.

    A job that was taken back counts until the last round that it announced, where its nodes are kept so long.
    """
    most = market.config.most_announced
    if most is None:
        return
    group = {each.name for each in market.accounts.known.values() if each.belongs_to == owner.belongs_to}
    waiting = sum(job.nodes for job in market.jobs.values() if job.state == "submitted" and job.owner in group)
    taken_back = sum(n for each in market.withheld.values() for whose, n in each if whose in group)
    if waiting + taken_back + nodes > most:
        shapes = market.config.cluster is not None
        what = " tasks, or devices where they take more," if shapes else ""
        left = max(0, most - waiting - taken_back)
        legal = f"at most {left}: {waiting + taken_back} of {most}{what} are announced and have not come"
        legal += f", {taken_back} of them taken back before their time" if taken_back else ""
        legal += " (announced_nodes of the configuration)"
        raise EventError(place="shapes" if shapes else "concurrency", value=nodes, legal=legal)


def most_of(market: LiveState, owner: Account, offer: Offer, report: Mapping[str, Any], fee_: int) -> int:
    """Return the most that a job can cost its owner, millionths; for an owner without a limit nothing is held.

    ``fee_``, millionths, is what it costs if the job does not come. EventError if the owner's limit forbids the job, or
    the ledger could not hold what all open jobs may cost.
    """
    at_arrival = held_at_arrival(market, owner, offer)
    most = max((round(run.price * MICRO) for run in offer.runs), default=0)
    if at_arrival:
        most = round(most_worth(market.statement(report)) * MICRO)
    most = max(most, fee_)
    if owner.limit is not None:
        owed = sum(job.most for job in market.jobs.values() if job.owner == owner.name)
        left = owner.balance + owner.limit - owed
        if most > left:
            what = "a job that may cost" if at_arrival else "a plan of"
            raise EventError(
                place="account", value=most / MICRO,
                legal=f"{what} at most {left / MICRO:g} credits, by the limit of {owner.name}",
            )  # fmt: skip
    # A mechanism that makes prices at arrival charges an owner without a limit at most the highest value there is.
    possible = most if offer.runs or at_arrival else max(most, round(market.config.max_value * MICRO))
    if market.accounts.market + market.owed + possible > LARGEST_SUM:
        legal = f"sums of at most {LARGEST_SUM / MICRO:g} credits, which the open jobs may reach"
        raise EventError(place="account", value=possible / MICRO, legal=legal)
    return most


def held_at_arrival(market: LiveState, owner: Account, offer: Offer) -> bool:
    """Tell whether an owner's limit holds more for a job than its offer says: its price is not known yet."""
    may_start = market.decides == "at arrival" or any(start is not None for *_, start in offer.plan.starts)
    unpriced = may_start and not offer.runs
    return owner.limit is not None and unpriced and not market.mechanism.free_of_charge
