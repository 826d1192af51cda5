"""The purses of a market of credits, booked into its ledger round by round.

The mechanism pays incomes and takes what regular nodes cost; after each round the difference to what is booked becomes
postings. So at the end of every round an owner's balance is its purse. A round that leaves a full purse as it was is
not booked.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from marketsched.live.accounts import DEPOSITS, MARKET, OWNER_NAME, Posting
from marketsched.mechanisms.errors import InvalidParameterError
from marketsched.mechanisms.mechanism import Mechanism

KINDS = (("income", "earned", 1, DEPOSITS), ("expire", "expired", -1, DEPOSITS), ("regular", "spent", -1, MARKET))


class PurseLedger:
    """What is booked of the purses of a mechanism."""

    def __init__(self) -> None:
        self._booked: dict[str, Any] = {kind: np.zeros(0, np.int64) for kind, *_ in KINDS}

    def postings(self, mechanism: Mechanism) -> list[Posting]:
        """Return what has happened in the purses since the last call; nothing where there are none."""
        purses = mechanism.purses
        if purses is None:
            return []
        names, moved = purses.names, {}
        for kind, counted, *_ in KINDS:
            now, before = getattr(purses, counted), self._booked[kind]
            moved[kind] = now - np.concatenate([before, np.zeros(now.size - before.size, np.int64)])
            self._booked[kind] = now.copy()
        changed = moved["income"] != moved["expire"]
        moved["income"], moved["expire"] = moved["income"] * changed, moved["expire"] * changed
        found = []
        for kind, _, sign, other in KINDS:
            for number in np.flatnonzero(moved[kind]).tolist():
                found.append(Posting(str(names[number]), sign * int(moved[kind][number]), kind))
            if total := int(moved[kind].sum()):
                found.append(Posting(other, -sign * total, kind))
        return found


def check_owner(name: object) -> None:
    """Raise InvalidParameterError if shares name an owner that can have no account."""
    if not re.fullmatch(OWNER_NAME, str(name)) or name in (MARKET, DEPOSITS):
        legal = "owners of 1 to 32 of a-z, 0-9, _ and -, and neither 'market' nor 'deposits'"
        raise InvalidParameterError(place="shares", value=name, legal=legal)
