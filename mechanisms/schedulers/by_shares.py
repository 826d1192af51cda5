"""Markets of owners with shares, which charge nothing."""

from __future__ import annotations

from typing import ClassVar

from marketsched.mechanisms.auctions.arrival_market import ArrivalMarket
from marketsched.mechanisms.schedulers.turns import Accounts


class BySharesMarket(ArrivalMarket):
    """A market without money, in which owners have shares."""

    accounts: Accounts
    free_of_charge: ClassVar[bool] = True

    @staticmethod
    def wants_owners(shares: object = None, **_: object) -> bool:
        """Tell whether these parameters need the names of all owners."""
        return shares is None

    def statistics(self) -> dict[str, float]:
        """Return how many owners there are, and how many of them have no part."""
        return self.accounts.statistics()

    def set_share(self, place: str, share: float) -> None:
        """Give an account or an owner another share from the current round on; errors as of `Accounts.set_share`."""
        self.accounts.set_share(place, share)
