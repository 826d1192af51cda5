r"""Purses of credits: income by shares, up to a cap, and nothing else comes in.

An owner with the part s of the machine has an income of :math:`r C s` credits a round, and keeps at most K rounds of
it. A credit buys a regular node for a round. Amounts are whole millionths of a credit, so that sums are exact: what
was held at the start and earned is what is held, spent and expired.

In any L rounds the regular runs of an owner hold at most :math:`w + L r C s` node-rounds, with w its purse, whatever is
reported, and however many jobs or accounts there are: a share is divided, and never copied.
"""

from __future__ import annotations

import math
from collections.abc import Hashable
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from marketsched.mechanisms.schedulers.turns import Accounts

CREDIT = 1_000_000  # millionths


class Balances(NamedTuple):
    """What owners hold and have spent, as kernels that pay read and change it."""

    held: NDArray[np.int64]  # (n,), millionths of credits
    spent: NDArray[np.int64]  # (n,), millionths of credits


class Purses:
    """The purse of each owner, by its number, in millionths of credits.

    ``income`` is r, the part of the machine that credits can buy; ``carry`` K, the rounds of income that a purse holds;
    ``start`` the part of that cap which owners known now begin with (newcomers have nothing). ``earned`` counts what
    was there at the start, and what expired at the cap, too.
    """

    def __init__(self, accounts: Accounts, capacity: int, income: float, carry: float, start: float) -> None:
        self._accounts, self._capacity, self._income, self._carry = accounts, capacity, income, carry
        self._start, self._parts = start, np.zeros(0)
        self.held = self.caps = self.incomes = self.earned = self.spent = self.expired = np.zeros(0, np.int64)
        self.begin()

    def begin(self) -> None:
        """Fill the purses of all who are known before the first round is cleared, as far as they are then."""
        self.follow()
        self.held = np.floor(self._start * self.caps).astype(np.int64)
        self.earned = self.held.copy()

    def pay_income(self) -> None:
        """Begin a round: pay the income of every owner; what is above the cap expires."""
        if self._parts is not self._accounts.parts:
            self.follow()
        income_kernel(self.all_balances)

    @property
    def names(self) -> list[Hashable]:
        """Whose the purses are, by number."""
        return self._accounts.names

    @property
    def balances(self) -> Balances:
        """Views for kernels, valid until incomes are paid."""
        return Balances(self.held, self.spent)

    @property
    def all_balances(self) -> tuple[NDArray[np.int64], ...]:
        """Views of held, spent, earned, expired, incomes and caps, as `balances`."""
        return self.held, self.spent, self.earned, self.expired, self.incomes, self.caps

    @property
    def credits(self) -> NDArray[np.float64]:
        """What each purse holds, credits."""
        return self.held / CREDIT

    def cap_of(self, owner: int) -> float:
        """Return what the purse of an owner can hold by its present part, credits; a newcomer's purse, too."""
        return self._carry * self._income * self._capacity * float(self._accounts.parts[owner])

    def longest_wait(self, width: int, ahead: int) -> float:
        """Return the rounds within which a regular job can take nodes of any run that is not regular; nan: no bound.

        For c nodes, after X rounds ahead, whose income may be spent beside what is held now.
        """
        left = (1.0 - self._income) * self._capacity - width + 1.0
        if left <= 1e-9:  # none but by rounding
            return math.nan
        most = (np.minimum(self.held + ahead * self.incomes, np.maximum(self.held, self.caps))).sum() / CREDIT
        return float(ahead + math.floor(most / left + 1e-9))

    def follow(self) -> None:
        """Take over the parts of the accounts, and purses of newcomers."""
        more = np.zeros(len(self._accounts) - self.held.size, np.int64)
        self.held, self.earned, self.spent, self.expired = (
            np.concatenate([each, more]) for each in (self.held, self.earned, self.spent, self.expired)
        )
        self._parts = self._accounts.parts
        self.incomes = np.floor(CREDIT * self._income * self._capacity * self._parts).astype(np.int64)
        self.caps = np.floor(self._carry * self.incomes).astype(np.int64)


@njit(cache=True)
def income_kernel(balances):  # type: ignore[no-untyped-def]
    """Pay the incomes of a round; what is above a cap expires, but nothing is lost to a share that shrank."""
    held, _, earned, expired, incomes, caps = balances
    for o in range(held.size):
        before = held[o] + incomes[o]
        held[o] = min(before, max(held[o], caps[o]))
        earned[o] += incomes[o]
        expired[o] += before - held[o]
