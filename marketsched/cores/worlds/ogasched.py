"""The world of one seed of an OgaSched scenario: a bipartite cluster, arrivals, and the best fixed allocation y*."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from marketsched.cores.agents.ports import PortGame
from marketsched.cores.core import OGASCHED, Core
from marketsched.cores.worlds.world import CoreWorld, PolicyOutcome, Reference
from marketsched.mechanisms.allocation.oga.cluster import BipartiteCluster
from marketsched.mechanisms.allocation.oga.cluster_environment import ClusterEnvironment, GangRepaired
from marketsched.mechanisms.allocation.oga.fixed_allocation import best_fixed_allocation
from marketsched.mechanisms.allocation.oga.oga import OgaSched
from marketsched.mechanisms.allocation.oga.weighted_cluster import WeightedCluster
from marketsched.mechanisms.allocation.port_copies import CopiedArrivals, PortCopies
from marketsched.mechanisms.errors import InvalidParameterError

if TYPE_CHECKING:
    from marketsched.cores.agents.games import CoreGame
    from marketsched.cores.sections.policies import PolicyChoice
    from marketsched.mechanisms.allocation.arrivals import ArrivalProcess
    from marketsched.mechanisms.allocation.oga.gang_cluster import GangCluster
    from marketsched.mechanisms.allocation.slot_loop import Environment, Policy

TOLERANCE = 1e-4  # gap of the best fixed allocation, as a share of its value: well below a regret of some per cent


Gangs = Callable[[BipartiteCluster], "GangCluster"]


class OgaSchedWorld(CoreWorld):
    """A bipartite cluster and its arrivals, for ``slots`` slots.

    With several jobs at a port in one slot every job gets a port of its own (Section 3.4 of the paper).
    ``gangs`` divides the requests of the ports among tasks.
    """

    core: ClassVar[Core] = OGASCHED

    def __init__(
        self,
        cluster: BipartiteCluster,
        arrivals: ArrivalProcess,
        slots: int,
        policy_rng: np.random.Generator,
        gangs: Gangs | None = None,
    ) -> None:
        if arrivals.most.max() > 1:
            copies = PortCopies(arrivals.most)
            cluster, arrivals = copies.replicate(cluster), CopiedArrivals(arrivals, copies)
        self.cluster, self.slots = cluster, slots
        self._arrivals, self._policy_rng = arrivals, policy_rng
        self.gang = None if gangs is None else gangs(cluster)
        self._counts: dict[int, NDArray[np.int64]] = {}

    def environment(self) -> Environment:
        arrivals = deepcopy(self._arrivals)  # an environment owns its arrivals
        return ClusterEnvironment(self.gang or self.cluster, arrivals)

    def policy(self, choice: PolicyChoice, slots: int) -> Policy:
        rng = deepcopy(self._policy_rng)
        if choice.name == "gang-oga":
            return choice.build(cluster=self.gang, horizon=slots, rng=rng)
        made = choice.build(cluster=self.cluster, horizon=slots, rng=rng)
        return made if self.gang is None else GangRepaired(made, self.gang)

    def payments(self, choice: PolicyChoice) -> tuple[str, ...]:
        if self.gang is not None:
            raise InvalidParameterError("cluster.gangs: expected none where owners may lie")
        if isinstance(self.cluster, WeightedCluster):
            raise InvalidParameterError("cluster.instance: expected no weights or joint gains where owners may lie")
        made = self.policy(choice, 1)
        priced = isinstance(made, OgaSched) and made.observes == "nothing"
        return self.core.payments if priced else self.core.payments[:1]

    def game(self, choice: PolicyChoice, payment: str = "none") -> CoreGame:
        def policy(believed: BipartiteCluster, horizon: int) -> Policy:
            return choice.build(cluster=believed, horizon=horizon, rng=deepcopy(self._policy_rng))

        return PortGame(self.cluster, self._arrivals, self.slots, policy, payment)

    def arrival_counts(self, slots: int) -> NDArray[np.int64]:
        """Return how many jobs came to each port in the first ``slots`` slots, shape (n_ports,)."""
        if slots not in self._counts:
            arrivals, counts = deepcopy(self._arrivals), np.zeros(self.cluster.n_ports, dtype=np.int64)
            for _ in range(slots):
                counts += arrivals.draw()
            self._counts[slots] = counts
        return self._counts[slots]

    def reference(self, slots: int) -> Reference:
        """Return the reward of the best fixed allocation y* in the first ``slots`` slots, without gangs' rule."""
        if isinstance(self.cluster, WeightedCluster):
            return Reference()  # the search knows separable gains alone
        found = best_fixed_allocation(self.cluster, self.arrival_counts(slots), tolerance=TOLERANCE)
        return Reference(found.value, found.gap)

    def outcome(self, policy: Policy, environment: Environment, slots: int) -> PolicyOutcome:
        """Return the bound (14) for OgaSched with a step of the theory, if it did not look at the arrivals."""
        compared = isinstance(policy, OgaSched) and policy.bound_is_compared
        return PolicyOutcome(regret_bound=self.cluster.regret_bound(slots)) if compared else PolicyOutcome()

    def sizes(self) -> dict[str, Any]:
        cluster = self.cluster
        return {
            "ports": cluster.n_ports,
            "instances": cluster.n_instances,
            "types": cluster.n_types,
            "channels": cluster.layout.n_channels,
            "jobs_per_slot": float(self.arrival_counts(self.slots).sum() / self.slots),
        }
