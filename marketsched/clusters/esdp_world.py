"""The world of one seed of an ESDP scenario: channels, arrivals, utilities, and the oracle of the true means."""

from __future__ import annotations

from copy import deepcopy
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from marketsched.agents.cluster_channels import PAYMENTS, ChannelGame
from marketsched.clusters.world import Outcome, Reference
from marketsched.config.policies import PolicyChoice
from marketsched.mechanisms.allocation.esdp.bandit_references import TrueMeanOracle
from marketsched.mechanisms.allocation.esdp.channel_environment import ChannelEnvironment
from marketsched.mechanisms.allocation.esdp.gang import GangChannels, GangEsdp
from marketsched.mechanisms.errors import InvalidParameterError, placed
from marketsched.play.running import checked_seed

if TYPE_CHECKING:
    from marketsched.agents.cluster_games import CoreGame
    from marketsched.clusters.esdp import EsdpCluster
    from marketsched.mechanisms.allocation.esdp.channel_policy import Channels
    from marketsched.mechanisms.allocation.slot_loop import Environment, Policy, SlotRecord


class EsdpWorld:
    """Channels and everything that fluctuates.

    ``core`` is the section ``cluster`` of a scenario; seed, data and what is raised are as in `ClusterCore.world`.
    """

    goal = "utility"

    def __init__(self, core: EsdpCluster, seed: int, data: str | PathLike[str] | None = None) -> None:
        streams = np.random.default_rng(np.random.SeedSequence(checked_seed(seed))).spawn(4)
        instance_rng, arrivals_rng, utilities_rng, self._policy_rng = streams
        self.slots = core.slots
        with placed("cluster.instance"):
            built = core.instance.build(instance_rng, data)
        self.channels, self.servers, self.costs = built.channels, built.servers, built.costs
        self._utilities = built.utilities(utilities_rng)
        self._arrivals = core.arrivals.build(self.channels.n_ports, core.slots, arrivals_rng, data)
        self.gangs = isinstance(self.channels, GangChannels)
        self.oracle = TrueMeanOracle(self.channels, self._utilities.means)
        self.environment()  # parts that do not fit each other are refused before anything is played
        self._values: list[float] = []  # the oracle's, slot by slot
        self._jobs = 0

    def environment(self) -> Environment:
        """Return an environment at its first slot; all have the same arrivals and utilities."""
        arrivals, utilities = deepcopy(self._arrivals), deepcopy(self._utilities)
        return ChannelEnvironment(self.channels, arrivals, utilities, self.oracle)

    def policy(self, choice: PolicyChoice, slots: int) -> Policy:
        """Return a fresh policy; those that draw have the same stream."""
        if self.gangs and choice.name != "esdp":
            raise InvalidParameterError(f"policy {choice.label!r}: expected esdp, the one that knows gangs")
        return _built(choice, self.channels, self.costs, deepcopy(self._policy_rng))

    def payments(self, choice: PolicyChoice) -> tuple[str, ...]:
        """Return all payments: they need no more than means of what was seen."""
        if self.gangs:
            raise InvalidParameterError("cluster.instance.kind = 'gangs': expected another where owners may lie")
        return PAYMENTS

    def game(self, choice: PolicyChoice, payment: str = "none") -> CoreGame:
        """Return the same channels, arrivals and utilities, with an owner of each port."""

        def policy(believed: Channels, rng: np.random.Generator) -> Policy:
            costs = self.costs if believed.n_channels == self.channels.n_channels else None  # a lie hides some
            return _built(choice, believed, costs, rng)

        seed = int(deepcopy(self._policy_rng).integers(2**31))
        return ChannelGame(self.channels, self._arrivals, self._utilities, self.slots, policy, payment, seed)

    def reference(self, slots: int) -> Reference:
        """Return what the oracle of the true means expects of the first ``slots`` slots; exact."""
        self._look(slots)
        return Reference(float(np.sum(self._values[:slots])), 0.0)

    def earned(self, record: SlotRecord, slots: int) -> float:
        """Return the mean utilities of what was used, as ESDP (6) counts: noise does not hide the regret."""
        return float(record["expected"][:slots].sum())

    def outcome(self, policy: Policy, environment: Environment) -> Outcome:
        """Return nothing further."""
        return Outcome()

    def regret_bound(self, choice: PolicyChoice, slots: int) -> float:
        """Return NaN: the paper's theorem has constants that are not given."""
        return float("nan")

    def sizes(self) -> dict[str, Any]:
        """Return ports, servers, types, channels, jobs and oracle per slot, and how utilities are scaled."""
        self._look(self.slots)
        return {
            "ports": self.channels.n_ports,
            "servers": len(np.unique(self.servers)),
            "types": self.channels.n_types,
            "channels": self.channels.n_channels,
            "jobs_per_slot": self._jobs / self.slots,
            "oracle_per_slot": float(np.mean(self._values)),
            "scaling": self._utilities.scaling,
        }

    def _look(self, slots: int) -> None:
        """Ask the oracle about every slot, once."""
        if self._values:
            return
        arrivals = deepcopy(self._arrivals)
        for _ in range(self.slots):
            arrived = arrivals.draw() > 0
            self._jobs += int(arrived.sum())
            self._values.append(self.oracle.value(arrived))


def _built(
    choice: PolicyChoice, known: Channels, costs: NDArray[np.float64] | None, rng: np.random.Generator
) -> Policy:
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
        rng=rng,
    )
