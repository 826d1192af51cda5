"""A spot market: in each round one price per node-round, at which demand meets the free nodes."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from marketsched.mechanisms.auctions.round_auction import Bids, RoundAuction, Settlement, by_density
from marketsched.mechanisms.mechanism import Standing


class Spot(RoundAuction):
    """Each round the highest bids per node-round win, at one price: the highest bid that lost.

    The price of the round of its start holds for a job's whole run. It never exceeds a winner's own bid, unless wider
    bids above it did not fit: then a winner below the losing bid pays its own bid (`RoundAuction` has the rest of the
    rules). With jobs of one node and one round this is the uniform (k+1)-st price auction, truthful within the round.

    Examples
    --------
    >>> from marketsched.mechanisms import DeadlineValue, StatementOfWork
    >>> limits = {"max_concurrency": 1, "max_duration": 2, "max_value": 9.0, "max_delay": 9}
    >>> market = Spot(1, 5, **limits)
    >>> for name, value in (("A", 3.0), ("B", 5.0)):
    ...     plan = market.submit(name, StatementOfWork(1, 1, DeadlineValue(value, 3), [(1, 1, 1.0)]))
    >>> market.arrive("A", 1); market.arrive("B", 1)
    >>> [event.job for event in market.advance()], market.complete("B").payment
    (['B'], 3.0)
    """

    standing: ClassVar[Standing] = Standing(
        "tested",
        "it is best within one round, for jobs of one node and one round; one price a round",
        "nothing",
        lie="a part of its value",
    )

    _price = 0.0  # of the last auction, credits per node-round

    def settle(self, bids: Bids, free: int) -> list[Settlement | None]:
        """Serve the highest bids per node-round, all at the highest losing one."""
        winners, self._price = by_density(bids, free)
        density = bids.worth / (bids.nodes * bids.rounds)
        rates = np.minimum(self._price, density) * bids.nodes
        return [Settlement(rate=float(rates[i])) if i in winners else None for i in range(bids.worth.size)]

    def slot_prices(self, first: int, count: int) -> NDArray[np.float64]:
        """Return the price of the last auction for each requested round, credits per node."""
        return np.full(count, self._price)
