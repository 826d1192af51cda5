"""What a rule publishes of its order, in words: why later jobs pass one, and why a job waits beside idle nodes."""

from __future__ import annotations

from typing import NamedTuple

from marketsched.mechanisms.mechanism import Mechanism
from marketsched.results.overtaking import Keeps, keeps_of

FITTED, BESIDE = "they fitted where it did not", "they fitted beside the reservation of the first in line"
LATE = "it came too late to be worth a run"
DEAR = "no start, at its price, was worth a run to it"
PASSED = {  # by class of mechanism, the nearest counts; `BESIDE` or `FITTED` stands in {}
    "FairShare": "a higher priority (its owner used less, age, size), or {}",
    "FairTurns": "their owners had used less for their share, or {}",
    "Quota": "queues within their quota, or of a smaller share, go first, or {}",
    "LargestValueFirst": "they declared more value per node and round",
    "TwoOffers": "their offers (class and patience) go first, or {}",
    "Credits": "their owners' purses made them regular, or {}",
    "BidPrice": "they fitted, and took an earlier start at its price",
    "FirstCome": "{}",
    "PostedPriceMechanism": "they took earlier starts at the posted prices",
    "RoundAuction": "they bid more",
    "OrderedQueue": "{}",
}
OWN = {  # why a job waits beside idle nodes that are kept for nobody
    "Quota": "its queue's quota",
    "TwoOffers": "its offer (class and patience)",
    "Credits": "its owner's purse",
    "BidPrice": "the price: a later start was worth more to it",
    "FirstCome": "the price: a later start was worth more to it",
    "PostedPriceMechanism": "its plan: earlier starts cost more, or runs that were planned before may need the nodes",
    "RoundAuction": "its bid, below the price",
}


class Rule(NamedTuple):
    """The words of a rule.

    Attributes
    ----------
    passed : str
        Why later jobs passed one that waited.
    own : str
        Why it waits beside idle nodes that are kept for nobody.
    keeps : {"nothing", "waiting", "booked"}
        For whom idle nodes are kept, as of `Waits`.
    dropped : str
        Why a job leaves in the round of its arrival.
    """

    passed: str
    own: str
    keeps: Keeps
    dropped: str = ""


def rule_of(mechanism: Mechanism, revealed: bool) -> Rule:
    """Return the words of a mechanism, for jobs whose durations show at arrival or are hidden.

    Examples
    --------
    >>> from marketsched.mechanisms import get_mechanism
    >>> sizes = {"max_concurrency": 2, "max_duration": 5, "max_value": 9.0, "max_delay": 15}
    >>> rule_of(get_mechanism("easy-backfill", capacity=2, horizon=20, **sizes), revealed=False).passed
    'they fitted beside the reservation of the first in line'
    """
    asked = getattr(mechanism, "inner", mechanism)
    kinds = [kind.__name__ for kind in type(asked).__mro__ if not (revealed and kind.__name__ == "TwoOffers")]
    keeps = keeps_of(mechanism, revealed)
    passed, own = (next((table[kind] for kind in kinds if kind in table), "") for table in (PASSED, OWN))
    by_class = "a higher class, or " if getattr(getattr(asked, "_line", None), "order", "") == "class" else ""
    beside = getattr(asked, "reserve", "none") not in ("none", 0)
    passed = by_class + (passed or "its rule publishes no reason").format(BESIDE if beside else FITTED)
    return Rule(
        passed,
        f"its own limit held it: {own}" if own else "it fitted, and its rule did not start it",
        keeps,
        LATE if getattr(mechanism, "free_of_charge", False) else DEAR,
    )


def counted(count: float, what: str) -> str:
    """Return a count of things, as in ``2 nodes``."""
    return f"{count:,} {what}{'s' if count != 1 else ''}"


def named(owner: str) -> str:
    """Return an owner's name, as in ``user 6``."""
    return f"user {owner}" if owner.isdecimal() else owner


def span(rounds: float, round_seconds: float | None) -> str:
    """Return a number of rounds in words.

    Examples
    --------
    >>> span(31, 600.0), span(2, 600.0), span(1, None)
    ('5 h 10 min', '20 min', '1 round')
    """
    if round_seconds is None:
        return counted(rounds, "round")
    minutes = rounds * round_seconds / 60
    hours, left = divmod(round(minutes), 60)
    if minutes < 1:
        return f"{round(60 * minutes)} s"
    return f"{hours:,} h {left:02} min" if hours else f"{left} min"
