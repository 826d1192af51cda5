"""Pay-as-bid: the highest bids win, and pay their bids. The negative control: shading pays."""

from __future__ import annotations

from typing import ClassVar

from marketsched.mechanisms.auctions.round_auction import Bids, RoundAuction, Settlement, by_density
from marketsched.mechanisms.mechanism import Standing


class PayAsBid(RoundAuction):
    """Each round the highest bids per node-round win; who completes pays the value it declared.

    Truth-telling earns nothing at all, so any owner gains by declaring less (`RoundAuction` has the rest of the rules).

    Examples
    --------
    >>> from marketsched.mechanisms import DeadlineValue, StatementOfWork
    >>> limits = {"max_concurrency": 1, "max_duration": 2, "max_value": 9.0, "max_delay": 9}
    >>> market = PayAsBid(1, 5, **limits)
    >>> for name, value in (("A", 3.0), ("B", 5.0)):
    ...     plan = market.submit(name, StatementOfWork(1, 1, DeadlineValue(value, 3), [(1, 1, 1.0)]))
    ...     market.arrive(name, 1) if name == "B" else None
    >>> [event.job for event in market.advance()], market.complete("B").payment
    (['B'], 5.0)
    """

    standing: ClassVar[Standing] = Standing(
        "baseline",
        "a job that declares its value gains nothing",
        "nothing",
        lie="a part of its value",
    )

    def settle(self, bids: Bids, free: int) -> list[Settlement | None]:
        """Serve the highest bids per node-round; each pays all of its declared value."""
        winners, _ = by_density(bids, free)
        return [Settlement(share=1.0) if i in winners else None for i in range(bids.worth.size)]
