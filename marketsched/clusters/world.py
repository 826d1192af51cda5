"""The world of one seed: what a core needs to be played, and what its policies are measured against.

Randomness has one stream for each purpose: the instance, the arrivals, the policies. Whoever plays
in one world meets the same arrivals on the same cluster.
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, field
from os import PathLike
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from marketsched.agents.cluster_ports import PAYMENTS, PortGame
from marketsched.config.policies import PolicyChoice
from marketsched.mechanisms.allocation.oga.cluster import BipartiteCluster
from marketsched.mechanisms.allocation.oga.cluster_environment import ClusterEnvironment
from marketsched.mechanisms.allocation.oga.gang_environment import GangEnvironment, GangRepaired
from marketsched.mechanisms.allocation.oga.multiple_arrivals import CopiedArrivals, PortCopies
from marketsched.mechanisms.allocation.oga.oga import OgaSched
from marketsched.mechanisms.errors import InvalidParameterError, placed
from marketsched.play.running import checked_seed

if TYPE_CHECKING:
    import pandas as pd

    from marketsched.agents.cluster_games import CoreGame
    from marketsched.clusters.scenario import OgaSchedCluster
    from marketsched.mechanisms.allocation.arrivals import ArrivalProcess
    from marketsched.mechanisms.allocation.slot_loop import Environment, Policy, SlotRecord

TOLERANCE = 1e-4  # gap of the best fixed allocation, as a share of its value: well below a regret of some per cent


@dataclass(frozen=True, slots=True)
class Reference:
    """What the best allocation in hindsight that never changes earns in all slots together.

    ``value`` is attained; the optimum is at most ``value + gap``.
    """

    value: float
    gap: float


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a core tells of a played policy beside the record of its slots.

    ``figures`` are further columns of the policy's row; ``jobs`` has one row per job, where jobs are
    told apart.
    """

    figures: dict[str, float] = field(default_factory=dict)
    jobs: pd.DataFrame | None = None


class World(Protocol):
    """What running, comparing, printing and drawing need of a core."""

    @property
    def goal(self) -> str:
        """The measure that policies are to maximise."""
        ...

    @property
    def slots(self) -> int:
        """T."""
        ...

    def environment(self) -> Environment:
        """Return an environment at its first slot; all have the same arrivals."""
        ...

    def policy(self, choice: PolicyChoice, slots: int) -> Policy:
        """Return a fresh policy that will be played for ``slots`` slots."""
        ...

    def payments(self, choice: PolicyChoice) -> tuple[str, ...]:
        """Return the payments that can be put on top of a policy, ``none`` first."""
        ...

    def game(self, choice: PolicyChoice, payment: str = "none") -> CoreGame:
        """Return the same world with strategic owners."""
        ...

    def reference(self, slots: int) -> Reference:
        """Return the yardstick over the first ``slots`` slots."""
        ...

    def earned(self, record: SlotRecord, slots: int) -> float:
        """Return what counts against the yardstick in the first ``slots`` slots of a record."""
        ...

    def outcome(self, policy: Policy, environment: Environment) -> Outcome:
        """Return what else there is to tell of a policy that was just played in ``environment``."""
        ...

    def regret_bound(self, choice: PolicyChoice, slots: int) -> float:
        """Return what the theory promises of a policy's regret after ``slots`` slots; NaN: nothing."""
        ...

    def sizes(self) -> dict[str, Any]:
        """Return what a reader is told about the world."""
        ...


class OgaSchedWorld:
    """A bipartite cluster and its arrivals.

    ``core`` is the section ``cluster`` of a scenario; seed, data and what is raised are as in `ClusterCore.world`.
    """

    goal = "reward"

    def __init__(self, core: OgaSchedCluster, seed: int, data: str | PathLike[str] | None = None) -> None:
        instance_rng, self._arrivals_rng, self._policy_rng = np.random.default_rng(
            np.random.SeedSequence(checked_seed(seed))
        ).spawn(3)
        self.slots = core.slots
        with placed("cluster.instance"):
            self.cluster: BipartiteCluster = core.instance.build(instance_rng, data)
        arrivals: ArrivalProcess = core.arrivals.build(self.cluster.n_ports, core.slots, self._arrivals_rng, data)
        if arrivals.most.max() > 1:  # every job of a port gets a port of its own (Section 3.4 of the paper)
            copies = PortCopies(arrivals.most)
            self.cluster, arrivals = copies.replicate(self.cluster), CopiedArrivals(arrivals, copies)
        self._arrivals = arrivals
        self.gang = None if core.gangs is None else core.gangs.build(self.cluster, instance_rng.spawn(1)[0])
        self._counts: dict[int, NDArray[np.int64]] = {}

    def environment(self) -> Environment:
        """Return an environment at its first slot; all have the same arrivals."""
        arrivals = deepcopy(self._arrivals)  # an environment owns its arrivals
        if self.gang is not None:
            return GangEnvironment(self.gang, arrivals)
        return ClusterEnvironment(self.cluster, arrivals)

    def policy(self, choice: PolicyChoice, slots: int) -> Policy:
        """Return a fresh policy that will be played for ``slots`` slots."""
        rng = deepcopy(self._policy_rng)
        if choice.name == "gang-oga":
            return choice.build(cluster=self.gang, horizon=slots, rng=rng)
        made = choice.build(cluster=self.cluster, horizon=slots, rng=rng)
        return made if self.gang is None else GangRepaired(made, self.gang)

    def payments(self, choice: PolicyChoice) -> tuple[str, ...]:
        """Return ``none``, and for OgaSched that does not look first its capacity prices."""
        if self.gang is not None:
            raise InvalidParameterError("cluster.gangs: expected none where owners may lie")
        made = self.policy(choice, 1)
        return PAYMENTS if isinstance(made, OgaSched) and made.observes == "nothing" else PAYMENTS[:1]

    def game(self, choice: PolicyChoice, payment: str = "none") -> CoreGame:
        """Return the same cluster and arrivals, with an owner of each port."""

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
        """Return what the best fixed allocation y* earns in the first ``slots`` slots; of gangs, without their rule."""
        found = self.cluster.best_fixed_allocation(self.arrival_counts(slots), tolerance=TOLERANCE)
        return Reference(found.value, found.gap)

    def earned(self, record: SlotRecord, slots: int) -> float:
        """Return the reward of the first ``slots`` slots."""
        return float(record[self.goal][:slots].sum())

    def outcome(self, policy: Policy, environment: Environment) -> Outcome:
        """Return nothing further."""
        return Outcome()

    def regret_bound(self, choice: PolicyChoice, slots: int) -> float:
        """Return the bound of OgaSched (14) for OgaSched with the step of the theory; NaN for all others."""
        rules, known = choice.rules, choice.name == "ogasched" and self.gang is None
        proven = known and rules.step == "theory" and not rules.peek
        return self.cluster.regret_bound(slots) if proven else float("nan")

    def sizes(self) -> dict[str, Any]:
        """Return ports, instances, types, channels, and the mean number of jobs per slot."""
        cluster = self.cluster
        return {
            "ports": cluster.n_ports,
            "instances": cluster.n_instances,
            "types": cluster.n_types,
            "channels": cluster.layout.n_channels,
            "jobs_per_slot": float(self.arrival_counts(self.slots).sum() / self.slots),
        }
