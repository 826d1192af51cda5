"""Certificates that a play contradicts: they are then void, and the audit names both.

A certificate makes assumptions, and states how much its owner gains at most. A confirmed lie of that owner that
gains more, expected or exact, or a payment that is none of the menu that the certificate is about, shows that it does
not hold.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from marketsched.results.views import at_least, at_most, exact_amount
from marketsched.truthfulness.certificates.owner_certificate import NEGLIGIBLE
from marketsched.truthfulness.searches.findings import Deviation
from marketsched.truthfulness.searches.screened import Screened


def contradiction(table: pd.DataFrame, claims: Sequence[Deviation], screened: Screened | None) -> str:
    """Return in words the certificate of ``table``, and the play that contradicts it; empty: none does.

    ``table`` is that of `certify_owners`, or empty; ``claims`` are lies that were scored on fresh worlds, ``screened``
    plays in the market at hand.
    """
    if not len(table):
        return ""
    allowed = dict(zip(table["job"], table["regret_upper"], strict=True))
    found = _by_a_confirmed_lie(allowed, claims)
    if not found and screened is not None and "rests_on" in table:
        found = _by_an_exact_gain(allowed, screened) or _by_a_payment(screened)
    return f"no certificates: {found}: what they take for granted does not hold" if found else ""


def _by_a_confirmed_lie(allowed: dict[str, float], claims: Sequence[Deviation]) -> str:
    for lie in claims:
        upper = float(allowed.get(lie.job, np.inf))
        if lie.confirmed and lie.gain_low > upper + _rounding(lie.worth):
            gain = at_least(lie.gain_low)
            return (
                f"{lie.job} {lie.words}, which gains at least {gain} credits; its certificate allows {at_most(upper)}"
            )
    return ""


def _by_an_exact_gain(allowed: dict[str, float], screened: Screened) -> str:
    """Return a gain in the market at hand above what a certificate at arrival, which is about that market, allows."""
    for g in screened.paying:
        upper = float(allowed.get(g.owner.name, np.inf))
        if g.owner.truth.revealed and g.gain > upper + _rounding(g.owner.truth.value.highest):
            return (
                f"{g.owner.name} {g.words}, which gains exactly {exact_amount(g.gain)} credits in this market; its "
                f"certificate allows {at_most(upper)}"
            )
    return ""


def _by_a_payment(screened: Screened) -> str:
    return "" if screened.mischarged is None else str(screened.mischarged)


def _rounding(highest_value: float) -> float:
    return NEGLIGIBLE * max(1.0, highest_value)
