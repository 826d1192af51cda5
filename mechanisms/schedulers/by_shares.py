"""Markets of owners with shares, which charge nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from marketsched.mechanisms.auctions.arrival_market import NOT_YET, ArrivalMarket, WaitingJob
from marketsched.mechanisms.schedulers.turns import Accounts


class BySharesMarket(ArrivalMarket):
    """A market without money, in which owners have shares, and `advance` alone decides.

    Attributes
    ----------
    accounts : Accounts
        Shares by place.
    """

    accounts: Accounts
    free_of_charge: ClassVar[bool] = True

    @staticmethod
    def wants_owners(shares: object = None, **_: object) -> bool:
        """Tell whether these parameters need the names of all owners."""
        return shares is None

    def set_share(self, place: str, share: float) -> None:
        """Give an account or an owner another share from the current round on; errors as of `Accounts.set_share`."""
        self.accounts.set_share(place, share)

    def serve(self, waiting: Sequence[WaitingJob]) -> Sequence[int | None]:
        """Decide nothing: `advance` does, without a look at each waiting job."""
        return [NOT_YET] * len(waiting)

    def charge(self, x: WaitingJob) -> float:
        """Return 0: nothing is paid."""
        return 0.0
