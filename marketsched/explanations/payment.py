"""A payment recomputed from posted prices, rates and menus alone: no code that charges is called."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from marketsched.explanations.rules import counted
from marketsched.mechanisms.bid_price.entries import ArrivalMenu, LockedRate
from marketsched.mechanisms.offers.menu import TwoOffersMenu
from marketsched.results.views import amount

EXACT = 1e-9  # of a payment
FREE = "it pays nothing: its rule takes no payment"


class Payment(NamedTuple):
    """A payment that was checked.

    Attributes
    ----------
    words : str
        The figures, as in ``checked: 12.4 = 3 nodes x 4 rounds x 1.0333``.
    holds : bool or None
        Whether they give the payment; None: the rule publishes too little.
    """

    words: str
    holds: bool | None


def checked_payment(row: pd.Series, nodes: int, menu: object, tables: Any, about: Any) -> Payment:
    """Return a payment beside what the published figures make of it.

    Parameters
    ----------
    row : Series
        Of the table ``jobs``.
    nodes : int
        That the job declared.
    menu : object
        That it faced at its arrival, as `Mechanism.menu_at_arrival`; or an array, the prices of the rounds from its
        submission on that were posted then, credits per node; None: none was posted.
    tables : mapping
        Of the result: ``rounds``.
    about : Mechanism
        For its class: which figures it publishes.
    """
    paid, kinds = float(row["payment"]), {kind.__name__ for kind in type(about).__mro__}
    if about.free_of_charge:
        return Payment(FREE, paid == 0)
    if row["outcome"] != "completed":
        return Payment("it pays nothing: it was not completed", True) if paid == 0 else Payment(_unknown(paid), None)
    start, used = int(row["start"]), int(row["completion"] - row["start"])
    work = f"{amount(nodes)} node{'s' * (nodes != 1)} x {used:,} round{'s' * (used != 1)}"
    rates: dict[str, float] = {}
    if isinstance(menu, LockedRate):
        rates = {"the rate of its arrival": menu.rate}
    elif isinstance(menu, ArrivalMenu):
        ends = np.minimum([start - menu.now, start - menu.now + used], menu.prefix.size - 1)
        return _sum(paid, nodes, float(menu.prefix[ends[1]] - menu.prefix[ends[0]]), used)
    elif isinstance(menu, TwoOffersMenu):
        # The posted patience makes the rate 3 / (2 + min(4, patience / usual mean)) times that of its class.
        factors = 3.0 / (2.0 + np.minimum(4.0, menu.patience / max(1.0, menu.usual)))
        factors = np.ones(1) if menu.patience.size == 1 else factors
        for kind, rate in zip(("spare", "regular"), menu.rates, strict=True):
            rates |= {
                f"the {kind} rate, patience {int(p):,}": rate * f for p, f in zip(menu.patience, factors, strict=True)
            }
    elif "FirstCome" in kinds:
        rates = {"the price": float(tables["rounds"]["price"].iloc[int(row["arrival"]) - 1])}
    elif "PayAsBid" in kinds:
        return Payment(f"checked: {amount(paid)}, its own bid for this completion", _near(paid, float(row["value"])))
    elif isinstance(menu, np.ndarray):
        first = start - int(row["submitted"])
        return _sum(paid, nodes, float(menu[first : first + used].sum()), used)
    if not rates:
        return Payment(_unknown(paid), None)
    near = min(rates, key=lambda name: abs(rates[name] * nodes * used - paid))
    holds = _near(paid, rates[near] * nodes * used)
    return Payment(f"{_verdict(holds)}: {amount(paid)} = {work} x {rates[near]:.5g} ({near})", holds)


def _sum(paid: float, nodes: int, prices: float, used: int) -> Payment:
    holds = _near(paid, nodes * prices)
    work = f"{amount(nodes)} node{'s' * (nodes != 1)} x {prices:.5g}"
    return Payment(f"{_verdict(holds)}: {amount(paid)} = {work} (posted prices of its {counted(used, 'round')})", holds)


def _near(paid: float, found: float) -> bool:
    return abs(paid - found) <= EXACT * (1.0 + abs(found))


def _verdict(holds: bool) -> str:
    return "checked" if holds else "WRONG"


def _unknown(paid: float) -> str:
    return f"pays {amount(paid)}, unchecked: its rule publishes no price, so that a check would play its auction again"
