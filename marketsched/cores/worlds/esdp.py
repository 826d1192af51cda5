"""The world of one seed of an ESDP scenario: channels, arrivals, utilities, and the oracle of the true means."""

from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from marketsched.cores.agents.channels import ChannelGame
from marketsched.cores.core import ESDP, Core
from marketsched.cores.worlds.world import CoreWorld, Reference
from marketsched.mechanisms.allocation.esdp.baselines import TrueMeanOracle
from marketsched.mechanisms.allocation.esdp.channel_environment import ChannelEnvironment
from marketsched.mechanisms.allocation.esdp.gang import GangChannels, GangEsdp
from marketsched.mechanisms.allocation.port_copies import CopiedArrivals, CopiedUtilities, PortCopies
from marketsched.mechanisms.errors import InvalidParameterError

if TYPE_CHECKING:
    from marketsched.cores.agents.games import CoreGame
    from marketsched.cores.sections.policies import PolicyChoice
    from marketsched.mechanisms.allocation.arrivals import ArrivalProcess
    from marketsched.mechanisms.allocation.esdp.channel_policy import Channels
    from marketsched.mechanisms.allocation.esdp.channel_utilities import UtilitySource
    from marketsched.mechanisms.allocation.slot_loop import Environment, Policy, SlotRecord


class EsdpWorld(CoreWorld):
    """Channels and everything that fluctuates, each part at its first slot.

    ``servers`` and ``costs`` (None: not known) are of each channel, shape (E,). Parts that do not fit each other are
    refused before anything is played.
    """

    core: ClassVar[Core] = ESDP

    def __init__(
        self,
        channels: Channels,
        servers: NDArray[np.int64],
        costs: NDArray[np.float64] | None,
        utilities: UtilitySource,
        arrivals: ArrivalProcess,
        slots: int,
        policy_rng: np.random.Generator,
    ) -> None:
        if arrivals.most.max() > 1:
            if isinstance(channels, GangChannels):
                raise InvalidParameterError("cluster.arrivals: expected at most one job a port and slot, with gangs")
            copies = PortCopies(arrivals.most)
            channels, originals = copies.channels(channels)
            servers, costs = servers[originals], None if costs is None else costs[originals]
            utilities, arrivals = CopiedUtilities(utilities, originals), CopiedArrivals(arrivals, copies)
        self.channels, self.servers, self.costs, self.slots = channels, servers, costs, slots
        self._utilities, self._arrivals, self._policy_rng = utilities, arrivals, policy_rng
        self.gangs = isinstance(channels, GangChannels)
        self.oracle = TrueMeanOracle(channels, utilities.means)
        self.environment()
        self._values: list[float] = []  # the oracle's, slot by slot
        self._jobs = 0

    def environment(self) -> Environment:
        arrivals, utilities = deepcopy(self._arrivals), deepcopy(self._utilities)
        return ChannelEnvironment(self.channels, arrivals, utilities, self.oracle)

    def policy(self, choice: PolicyChoice, slots: int) -> Policy:
        if self.gangs and choice.name != "esdp":
            raise InvalidParameterError(f"policy {choice.label!r}: expected esdp, the one that knows gangs")
        return self._built(choice, self.channels, self.costs)

    def payments(self, choice: PolicyChoice) -> tuple[str, ...]:
        if self.gangs:
            raise InvalidParameterError("cluster.instance.kind = 'gangs': expected another where owners may lie")
        return self.core.payments

    def game(self, choice: PolicyChoice, payment: str = "none") -> CoreGame:
        def policy(believed: Channels, rng: np.random.Generator) -> Policy:
            costs = self.costs if believed.n_channels == self.channels.n_channels else None  # a lie hides some
            return self._built(choice, believed, costs)

        return ChannelGame(self.channels, self._arrivals, self._utilities, self.slots, policy, payment)

    def reference(self, slots: int) -> Reference:
        """Return the expected utility of the oracle of true means; exact."""
        self._look()
        return Reference(float(np.sum(self._values[:slots])), 0.0)

    def earned(self, record: SlotRecord, slots: int) -> float:
        """Return the mean utilities of used channels, as ESDP (6) counts: noise does not hide the regret."""
        return float(record["expected"][:slots].sum())

    def sizes(self) -> dict[str, Any]:
        self._look()
        return {
            "ports": self.channels.n_ports,
            "servers": len(np.unique(self.servers)),
            "types": self.channels.n_types,
            "channels": self.channels.n_channels,
            "jobs_per_slot": self._jobs / self.slots,
            "oracle_per_slot": float(np.mean(self._values)),
            "scaling": self._utilities.scaling,
        }

    def _look(self) -> None:
        if self._values:
            return
        arrivals = deepcopy(self._arrivals)
        for _ in range(self.slots):
            arrived = arrivals.draw() > 0
            self._jobs += int(arrived.sum())
            self._values.append(self.oracle.value(arrived))

    def _built(self, choice: PolicyChoice, known: Channels, costs: NDArray[np.float64] | None) -> Policy:
        """Return a policy over channels; over gangs ESDP, the one that knows them."""
        if isinstance(known, GangChannels):
            return GangEsdp(known, **choice.rules.values())
        return choice.build(
            channels=known,
            requests=known.requests,
            capacities=known.capacities,
            ports=known.ports,
            n_ports=known.n_ports,
            costs=costs,
            rng=deepcopy(self._policy_rng),
        )
