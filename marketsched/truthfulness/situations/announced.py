"""The price of a run in a menu, compared with the payment of the job."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from marketsched.mechanisms.errors import InvalidParameterError


@dataclass(frozen=True, slots=True)
class Mischarged:
    """A job that pays what its own menu does not say."""

    job: str
    report: str  # in words
    start: int
    paid: float  # credits
    announced: float  # credits; +inf: the menu has no such entry

    def __str__(self) -> str:
        """Return it as one would say it."""
        said = "has no such entry" if self.announced == np.inf else f"said {self.announced:g}"
        return f"{self.job} {self.report}, starts in round {self.start} and pays {self.paid:g}; its menu {said}"


class PaymentBesideMenu(InvalidParameterError):
    """A payment is none of its menu, so that nothing is certified; ``mischarged`` is the payment in words."""

    def __init__(self, mischarged: Mischarged | None) -> None:
        self.mischarged = str(mischarged)
        super().__init__(
            f"{self.mischarged}: expected a certificate of menus that are charged; the search takes any mechanism"
        )


def announced_price(menu: Any, width: int, start: int, used: int, paid: float, booking: Any = None) -> float:
    """Return the price of a run by a menu, credits; +inf if it is not on offer.

    ``menu`` is what the job faced, at birth (a tuple of Menu, of 1, 2, ... nodes) or at arrival (`ArrivalMenu`,
    `ClusterMenu`, `LockedRate`, or one that has ``prices`` as `ArrivalMenu`). ``width``, ``start`` and ``used`` are
    nodes declared, first round and rounds used. Of a menu with several ``rates`` the nearest one to ``paid`` counts;
    ``booking`` is what the job has on a cluster.
    """
    if booking is not None:
        return float(menu.owed(booking, used)) if start >= menu.now else np.inf
    if isinstance(menu, tuple):
        return float(np.asarray(menu[width - 1].price(start, used)))
    if hasattr(menu, "prices"):
        return float(menu.prices(width, used, start - menu.now + 1)[-1]) if start >= menu.now else np.inf
    if hasattr(menu, "cost"):
        return float(menu.cost(width, start, used)) if start >= menu.now else np.inf
    rates = getattr(menu, "posted", None) or getattr(menu, "rates", None) or (menu.rate,)
    return float(min((rate * width * used for rate in rates), key=lambda cost: abs(cost - paid)))
