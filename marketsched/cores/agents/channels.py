r"""ESDP with strategic owners of ports: reported requests, offers and utilities, and true utilities.

The core plans with the reported requests of the reported channels, and holds capacity for them. A channel
needs its true request: with less, its job runs at the speed of the scarcest type, and the slot is worth
:math:`\min_k \min(a'_k, a_k) / a_k` of the utility that was drawn; with more, it is worth the same as with enough.
The core learns of a used channel what its owner reports: that utility times ``worth``, cut off at 1.

With ``payment="displaced utility"`` ports pay what the channels they hold cost the others at the mean
utilities *reported* so far (:func:`~marketsched.mechanisms.allocation.payments.displaced_utilities`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import deepcopy
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from marketsched.cores.agents.games import CoreGame, OwnersSlot, Take
from marketsched.cores.agents.reports import ChannelReport, CorePublic
from marketsched.cores.core import ESDP
from marketsched.mechanisms.allocation.arrivals import ArrivalProcess
from marketsched.mechanisms.allocation.esdp.channel_environment import ChannelEnvironment
from marketsched.mechanisms.allocation.esdp.channel_policy import Channels
from marketsched.mechanisms.allocation.esdp.channel_utilities import UtilitySource
from marketsched.mechanisms.allocation.payments import displaced_utilities
from marketsched.mechanisms.allocation.slot_loop import Environment, Policy, SlotOutcome
from marketsched.mechanisms.arrays import whole_array
from marketsched.mechanisms.errors import InvalidParameterError, InvalidReportError
from marketsched.mechanisms.legal import Count, Finite, Named, Seed, legal

ChannelPolicyMaker = Callable[[Channels, np.random.Generator], Policy]


class ChannelGame(CoreGame):
    """Channels whose ports have owners: at most one job per port and slot; every play copies arrivals and utilities.

    ``policy`` makes a fresh policy of (believed channels, generator of ``seed``). Every port should have a channel,
    else its owner has nothing to win.

    Examples
    --------
    The second channel (0.6) leaves no room for the first (0.5), until that one requests less than it needs:

    >>> from dataclasses import replace
    >>> from marketsched.cores.agents.games import play_out
    >>> from marketsched.mechanisms.allocation import Esdp, RecordedArrivals, RecordedUtilities
    >>> channels = Channels([[2], [2]], [3], [0, 1])
    >>> def make(reported, rng):
    ...     return Esdp(reported.requests, reported.capacities, reported.ports, n_ports=2)
    >>> world = RecordedArrivals([[1, 1]] * 4), RecordedUtilities([[0.5], [0.6]])
    >>> game = ChannelGame(channels, *world, 4, make)
    >>> lie = replace(game.truth(0), requests=[[1]])
    >>> play_out(game, {}).values, play_out(game, {0: lie}).values
    (array([0.5, 1.8]), array([1. , 2.4]))
    """

    core = ESDP

    @legal
    def __init__(
        self,
        channels: Channels,
        arrivals: ArrivalProcess,
        utilities: UtilitySource,
        slots: Count,
        policy: ChannelPolicyMaker,
        payment: Annotated[str, Named(ESDP.payments)] = "none",
        seed: Seed = 0,
    ) -> None:
        if len(utilities.means) != channels.n_channels:
            raise InvalidParameterError(f"utilities of {len(utilities.means)} channels: expected {channels.n_channels}")
        public = CorePublic(channels.capacities.astype(np.float64), slots, np.zeros(0, dtype=np.int64))
        super().__init__(channels.n_ports, slots, payment, public)
        self.channels, self.policy, self.seed = channels, policy, seed
        self._arrivals, self._utilities = arrivals, utilities

    def truth(self, owner: int) -> ChannelReport:
        """Return the true report of a port."""
        own = self.channels.requests[self.channels.ports == owner]
        return ChannelReport(own, np.ones(len(own), dtype=np.bool_))

    def _begin(self, reports: list[ChannelReport]) -> tuple[Policy, Environment, Take]:
        believed, offered, worths = self._believed(reports)
        true = self.channels.requests[offered]
        got = np.minimum(believed.requests, true)
        speeds = np.where(true > 0, got / np.maximum(true, 1), 1.0).min(axis=1)
        source = _ToldUtilities(deepcopy(self._utilities), offered, speeds, worths)
        world = ChannelEnvironment(believed, deepcopy(self._arrivals), source, None)
        uses, totals = np.zeros(believed.n_channels), np.zeros(believed.n_channels)
        nothing = np.zeros(self.n_owners)

        def take(decision: Any, outcome: SlotOutcome) -> OwnersSlot:
            selected, observed = outcome.feedback
            brought = np.bincount(believed.ports, weights=source.true * selected, minlength=self.n_owners)
            paid = nothing
            if self.payment != "none":
                paid = displaced_utilities(believed, totals / np.maximum(uses, 1.0), selected, world.came)
            uses[:] += selected
            totals[:] += observed
            return OwnersSlot(brought.astype(np.float64), paid)

        return self.policy(believed, np.random.default_rng(self.seed)), world, take

    def _believed(self, reports: Sequence[ChannelReport]) -> tuple[Channels, NDArray[np.int64], NDArray[np.float64]]:
        """Return the reported channels, the true channels they stand for, and the factors of their utilities."""
        true = self.channels
        requests, worths = true.requests.copy(), np.ones(true.n_channels)
        offered = np.zeros(true.n_channels, dtype=np.bool_)
        for port, report in enumerate(reports):
            own = true.ports == port
            where = f"report of port {port}"
            if not isinstance(report, ChannelReport):
                raise InvalidReportError(f"{where} is a {type(report).__name__}: expected a ChannelReport")
            try:
                requests[own] = whole_array("requests", report.requests, (int(own.sum()), true.n_types))
                worths[own] = Finite("[0, inf)").check("worth", report.worth)
            except InvalidParameterError as problem:
                raise InvalidReportError(f"{where}: {problem}") from problem
            offered[own] = report.offered
        if not offered.any():
            raise InvalidReportError("no port offers a channel: expected at least one")
        kept = np.flatnonzero(offered)
        try:
            believed = Channels(requests[kept], true.capacities, true.ports[kept], n_ports=self.n_owners)
        except InvalidParameterError as problem:
            raise InvalidReportError(f"the reports together: {problem}") from problem
        return believed, kept, worths[kept]


class _ToldUtilities:
    """Utilities of the offered channels as their owners report them; ``true`` is what they really brought."""

    scaling = "as told"

    def __init__(
        self,
        source: UtilitySource,
        offered: NDArray[np.int64],
        speeds: NDArray[np.float64],
        worths: NDArray[np.float64],
    ) -> None:
        self._source, self._offered, self._speeds, self._worths = source, offered, speeds, worths
        self.slots = source.slots
        self.means = np.minimum(source.means[offered] * speeds * worths, 1.0)  # for the environment's measures alone
        self.begin()

    def begin(self) -> None:
        """Go back to the first slot."""
        self._source.begin()
        self.true = np.zeros(self._offered.size)

    def draw(self) -> NDArray[np.float64]:
        """Return what is reported of the next slot."""
        self.true = self._source.draw()[self._offered] * self._speeds
        return np.minimum(self.true * self._worths, 1.0)
