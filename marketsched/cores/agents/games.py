"""The game of owners at an allocation core, for any core.

A game is fixed: the true cluster, what arrives, how speeds fluctuate, the policy and its own draws. It can be played
again and again under other reports, always with the same randomness, and so shows what a lie changes. Owners not
named report the truth. The three kinds are
:class:`~marketsched.cores.agents.ports.PortGame` (OgaSched),
:class:`~marketsched.cores.agents.channels.ChannelGame` (ESDP) and
:class:`~marketsched.cores.agents.jobs.JobGame` (OPM).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from marketsched.cores.agents.reports import CorePublic, Report
from marketsched.mechanisms.legal import Whole


class OwnersSlot(NamedTuple):
    """The owners' results of one slot; arrays of shape (n_owners,), credits."""

    values: NDArray[np.float64]  # true gain less true overhead
    payments: NDArray[np.float64]


class CoreGame(Protocol):
    """The interface of a core with owners, for the search and the Mesa model.

    Attributes
    ----------
    core : str
        Its name: which lies make sense.
    n_owners, slots : int
        How many owners there are, and T.
    public : CorePublic
        Public information of all owners.
    """

    core: str
    n_owners: int
    slots: int
    public: CorePublic

    def truth(self, owner: int) -> Any:
        """Return the true report of an owner."""
        ...

    def play(self, reports: Mapping[int, Any]) -> Iterator[OwnersSlot]:
        """Yield slot after slot if owners report so; those not named tell the truth."""
        ...


@dataclass(frozen=True, slots=True)
class OwnersTotal:
    """The owners' results of a whole game.

    Attributes
    ----------
    values, payments : ndarray of float, shape (n_owners,)
        Sums over all slots, credits.
    """

    values: NDArray[np.float64]
    payments: NDArray[np.float64]

    @property
    def utilities(self) -> NDArray[np.float64]:
        """Values less payments, shape (n_owners,)."""
        return self.values - self.payments


def play_out(game: CoreGame, reports: Mapping[int, Report]) -> OwnersTotal:
    """Play a game to its end.

    Parameters
    ----------
    game : CoreGame
    reports : mapping of int to report
        Reports of owners that lie.

    Raises
    ------
    InvalidParameterError, InvalidReportError
        If there is no such owner, or a report is not legal.

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
    return OwnersTotal(values, payments)


def all_reports(game: CoreGame, reports: Mapping[int, Any]) -> list[Any]:
    """Return the reports of all owners, the truth for those not named.

    Raises
    ------
    InvalidParameterError
        If there is no such owner.
    """
    for owner in reports:
        Whole(0, game.n_owners - 1).check("owner", owner)
    return [reports[owner] if owner in reports else game.truth(owner) for owner in range(game.n_owners)]
