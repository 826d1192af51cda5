"""Credits with a fault planted: what an audit of owners' lies has to find."""

import numpy as np

from marketsched.mechanisms import register
from marketsched.mechanisms.credits.credits import Credits
from marketsched.mechanisms.credits.purses import CREDIT


@register("credits-full-purse")
class FullPurse(Credits):
    """A newcomer begins with as full a purse as anybody had, and income as everybody has."""

    def _admit(self, now):
        before = len(self.accounts)
        events = super()._admit(now)
        for number in range(before, len(self.accounts)):
            self.accounts.parts[number] = 1.0 / before
            self.purses.follow()
            self.purses.held[number] = self.purses.caps[number]
        return events


@register("credits-by-accounts")
class ByAccounts(Credits):
    """Income is divided by the number of accounts, whoever opened them."""

    def _admit(self, now):
        events = super()._admit(now)
        self.accounts.parts = np.full(len(self.accounts), 1.0 / max(1, len(self.accounts)))
        return events


@register("credits-hearing")
class Hearing(Credits):
    """The threshold hears the present job: it is the middle of what its owner's waiting jobs say of themselves."""

    def _upgrade(self, now):
        rows = self._present.turn[: self._present.n]
        jobs = self._present.jobs
        for row in rows[(jobs["start"][rows] == 0) & (jobs["since"][rows] == 0)].tolist():
            beside = self._beside(rows, jobs["owner"][row])
            cost = CREDIT * jobs["width"][row] * jobs["mean"][row]
            late = jobs["last"][row] - now <= 2 * jobs["mean"][row] + 2
            if late and self.purses.held[jobs["owner"][row]] >= cost:
                if jobs["important"][row] >= np.mean(jobs["important"][beside]):
                    jobs["since"][row] = now
                    self._counts["upgrades"] += 1

    def _beside(self, rows, owner):
        return rows[self._present.jobs["owner"][rows] == owner]


@register("credits-absolute")
class AbsoluteThreshold(Hearing):
    """The threshold is in absolute values: the mean of what all present jobs say of themselves, whoever's they are."""

    def _beside(self, rows, owner):
        return rows
