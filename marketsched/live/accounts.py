"""The accounts of a market, and the double-entry ledger of their credits.

Amounts are whole millionths of a credit, so that sums are exact. Every posting moves credits from one account to
another: a deposit from ``deposits`` to an owner, a charge from an owner to ``market``. The sum over owners and the
market is therefore what was deposited, and over all accounts it is 0.

Where credits renew, an owner's balance is its purse: ``income`` comes from ``deposits``, what is above the cap goes
back there (``expire``), and what its regular nodes cost goes to ``market`` (``regular``). There are no deposits then.
"""

from __future__ import annotations

import re
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from marketsched.mechanisms.errors import EventError, InvalidParameterError, UnknownNameError

MICRO = 1_000_000  # to a credit
MOST_CREDITS = 1e12  # of one deposit or limit
MOST_MICRO = round(MOST_CREDITS * MICRO)  # of all deposits: sums stay within 64 bits
MARKET, DEPOSITS = "market", "deposits"  # accounts without an owner
OWNER_NAME = r"^[a-z0-9_-]{1,32}$"
Role = Literal["owner", "operator", "reader"]
ROLES = ("owner", "operator", "reader")


class Posting(NamedTuple):
    """One side of a booking."""

    account: str
    micro: int  # millionths of a credit, > 0: to the account
    what: str  # "deposit", "charge", "no-show"; of purses "income", "expire", "regular"
    job: str | None = None


@dataclass(slots=True)
class Account:
    """An owner, operator or reader that the market knows."""

    name: str
    role: Role
    limit: int | None = None  # millionths: how far below zero new submissions may bring it; None: no limit
    balance: int = 0
    submitted: int = 0  # jobs, for the running number of the next one
    numbered: int = 0  # the largest number that was the name of one
    group: str = ""  # of related accounts, that count as one owner; empty: its own name

    @property
    def belongs_to(self) -> str:
        """The group of accounts that it counts with."""
        return self.group or self.name


class Accounts:
    """All who are known, and their balances."""

    def __init__(self) -> None:
        self.known: dict[str, Account] = {}
        self.market = 0  # millionths of a credit
        self.deposited = 0
        self.unopened: dict[str, int] = {}  # balances of owners that shares name, and that have no account yet
        self.renew = False  # whether credits come by shares alone

    @property
    def of_owners(self) -> int:
        """All balances of owners together, millionths of a credit."""
        return sum(each.balance for each in self.known.values()) + sum(self.unopened.values())

    def get(self, name: Hashable) -> Account:
        """Return an account; UnknownNameError if there is none of that name."""
        if not isinstance(name, str) or name not in self.known:
            raise UnknownNameError(place="owner", value=name, legal="a name that an operator has created")
        return self.known[name]

    def check_new(self, name: object, role: Any, limit: float | None, group: str | None = None) -> Account:
        """Return the account that a new name would have.

        Raises InvalidParameterError if name, role, limit or group is illegal, and EventError if the name is taken.
        """
        if not isinstance(name, str) or not re.fullmatch(OWNER_NAME, name) or name in (MARKET, DEPOSITS):
            legal = "1 to 32 of a-z, 0-9, _ and -, and neither 'market' nor 'deposits'"
            raise InvalidParameterError(place="owner", value=name, legal=legal)
        if group is not None and not re.fullmatch(OWNER_NAME, group):
            raise InvalidParameterError(place="group", value=group, legal="1 to 32 of a-z, 0-9, _ and -")
        if role not in ROLES:
            raise InvalidParameterError(place="role", value=role, legal=f"one of {', '.join(ROLES)}")
        if name in self.known:
            raise EventError(f"owner = {name!r} is there already", legal="a new name")
        return Account(name, role, None if limit is None else micro_of("limit", limit, 0.0), group=group or "")

    def deposit(self, name: str, credits: float) -> list[Posting]:
        """Return the postings of a deposit."""
        micro = self.check_deposit(credits)
        return [Posting(DEPOSITS, -micro, "deposit"), Posting(self.get(name).name, micro, "deposit")]

    def check_deposit(self, credits: object) -> int:
        """Return a deposit in millionths, or raise an error if it is none, or one too many."""
        micro = micro_of("credits", credits)
        if self.renew:
            legal = "none: credits come by shares in this market (marketsched live share)"
            raise EventError(place="deposit", value=credits, legal=legal)
        if self.deposited + micro > MOST_MICRO:
            raise EventError(place="credits", value=credits, legal=f"at most {MOST_CREDITS:g} in all deposits together")
        return micro

    def open(self, account: Account) -> None:
        """Enter a new account, with the purse that it has by its share."""
        account.balance = self.unopened.pop(account.name, 0)
        self.known[account.name] = account

    def charge(self, name: str, micro: int, job: str, what: str = "charge") -> list[Posting]:
        """Return the postings of a job's charge, or of its fee (``no-show``), millionths."""
        return [Posting(name, -micro, what, job), Posting(MARKET, micro, what, job)] if micro else []

    def book(self, postings: list[Posting]) -> None:
        """Move credits."""
        for account, micro, *_ in postings:
            if account == MARKET:
                self.market += micro
            elif account == DEPOSITS:
                self.deposited -= micro
            elif account in self.known:
                self.known[account].balance += micro
            else:
                self.unopened[account] = self.unopened.get(account, 0) + micro

    def shown(self, account: Account) -> dict[str, Any]:
        """Return an account as plain data."""
        limit = None if account.limit is None else account.limit / MICRO
        return {
            "owner": account.name,
            "role": account.role,
            "balance": account.balance / MICRO,
            "limit": limit,
        }


def micro_of(place: str, credits: object, least: float = 1.0 / MICRO) -> int:
    """Return an amount in whole millionths.

    Raises InvalidParameterError if it is no number from ``least`` to `MOST_CREDITS`.
    """
    number = isinstance(credits, (int, float)) and not isinstance(credits, bool)
    if not number or not least <= credits <= MOST_CREDITS:  # type: ignore[operator]
        legal = f"a number of credits in [{least:g}, {MOST_CREDITS:g}]"
        raise InvalidParameterError(place=place, value=credits, legal=legal)
    return round(credits * MICRO)  # type: ignore[operator]
