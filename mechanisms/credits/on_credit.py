"""The part of a market of credits that does not depend on what nodes are: accounts, purses, upgrades, no payments."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import fields
from typing import Any

from marketsched.mechanisms.credits.purses import CREDIT, Purses
from marketsched.mechanisms.mechanism import JobId
from marketsched.mechanisms.schedulers.advance_market import AdvanceMarket
from marketsched.mechanisms.schedulers.turns import BySharesMarket


class OnCredit(BySharesMarket, AdvanceMarket):
    """A market in which some jobs are regular, paid with credits that renew, and all others are free."""

    _upgrades: dict[JobId, list[Any]]  # until the name of the job is forgotten

    @property
    @abstractmethod
    def _every_purse(self) -> Sequence[Purses]:
        """The purses of all owners, once for each pool of nodes."""

    @property
    def upgrades(self) -> list[Any]:
        """What became regular, in order, but what is forgotten."""
        return sorted((each for own in self._upgrades.values() for each in own), key=lambda each: each.round)

    def forget(self, job: JobId) -> None:
        """Forget the name of a job that has left, and that it was regular."""
        super().forget(job)
        self._upgrades.pop(job, None)

    def set_share(self, place: str, share: float) -> None:
        """Give an account or an owner another share from the current round on; errors as of `Accounts.set_share`.

        Who is given one before the first round is cleared is known at the beginning.
        """
        super().set_share(place, share)
        for purses in self._every_purse:  # what is quoted before the next income is paid counts with the new share
            (purses.begin if self._round == 1 else purses.follow)()

    def _credits_of_all(self) -> dict[str, float]:
        """Return what all purses together have earned, spent, lost and held."""
        return {
            f"credits_{name}": sum(float(getattr(each, name).sum()) for each in self._every_purse) / CREDIT
            for name in ("earned", "spent", "expired", "held")
        }

    def _upgrades_by_column(self, kind: type) -> dict[str, list[Any]]:
        """Return the upgrades as columns named by the fields of ``kind``; names of jobs and owners as text."""
        rows = self.upgrades
        found = {each.name: [getattr(row, each.name) for row in rows] for each in fields(kind)}
        return found | {name: [str(each) for each in found[name]] for name in ("job", "owner")}
