"""The game of owners at an allocation core, for any core.

A game is fixed: the true cluster, what arrives, how speeds fluctuate, the policy and its own draws. It can be played
again and again under other reports, always with the same randomness, and so shows what a lie changes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from marketsched.cores.agents.reports import CorePublic
from marketsched.cores.core import Core
from marketsched.mechanisms.allocation.slot_loop import Environment, Policy, SlotOutcome, slot_by_slot
from marketsched.mechanisms.legal import Named, Whole


class OwnersSlot(NamedTuple):
    """The owners' results of one slot or, summed up, of a whole game; arrays of shape (n_owners,), credits."""

    values: NDArray[np.float64]  # true gain less true overhead
    payments: NDArray[np.float64]

    @property
    def utilities(self) -> NDArray[np.float64]:
        """Values less payments, shape (n_owners,)."""
        return self.values - self.payments


Take = Callable[[Any, SlotOutcome], OwnersSlot]  # what owners get of a slot, from decision and outcome


class CoreGame(ABC):
    """A core with ``n_owners`` owners and T = ``slots``, for the search and the Mesa model.

    ``payment`` is one of ``core.payments``; ``public`` is the public information of all owners.
    """

    core: ClassVar[Core]

    def __init__(self, n_owners: int, slots: int, payment: str, public: CorePublic) -> None:
        self.n_owners, self.slots, self.public = n_owners, slots, public
        self.payment = Named(self.core.payments).check("payment", payment)

    @abstractmethod
    def truth(self, owner: int) -> Any:
        """Return the true report of an owner."""

    @abstractmethod
    def _begin(self, reports: list[Any]) -> tuple[Policy, Environment, Take]:
        """Return a fresh policy, the world as it is reported, and what owners get of a slot."""

    def play(self, reports: Mapping[int, Any]) -> Iterator[OwnersSlot]:
        """Yield slot after slot if owners report so; those not named tell the truth.

        InvalidParameterError if there is no such owner, or the policy does not fit the payment; InvalidReportError if a
        report is not legal.
        """
        for owner in reports:
            Whole(0, self.n_owners - 1).check("owner", owner)
        told = [reports[owner] if owner in reports else self.truth(owner) for owner in range(self.n_owners)]
        policy, world, take = self._begin(told)
        for decision, outcome in slot_by_slot(policy, world, self.slots):
            yield take(decision, outcome)


def play_out(game: CoreGame, reports: Mapping[int, Any]) -> OwnersSlot:
    """Play a game to its end under the reports of owners that lie, and return the sums over all slots.

    Examples
    --------
    >>> from marketsched.cores.agents.ports import PortGame
    >>> from marketsched.mechanisms.allocation import BipartiteCluster, Fairness, RecordedArrivals
    >>> cluster = BipartiteCluster([[1.0], [1.0]], [[1.0]], [[True], [True]], "linear", 1.0, 0.25)
    >>> game = PortGame(cluster, RecordedArrivals([[1, 1]]), 1, lambda believed, horizon: Fairness(believed))
    >>> play_out(game, {}).values
    array([0.375, 0.375])
    """
    values, payments = np.zeros(game.n_owners), np.zeros(game.n_owners)
    for slot in game.play(reports):
        values += slot.values
        payments += slot.payments
    return OwnersSlot(values, payments)
