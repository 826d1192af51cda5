"""The world of one seed: the environment of policies of an allocation core, and their benchmark.

Randomness has one stream for each purpose: the instance, what arrives, what fluctuates, the policies.
All policies that play in one world meet the same arrivals on the same cluster.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    import pandas as pd

    from marketsched.cores.agents.games import CoreGame
    from marketsched.cores.core import Core
    from marketsched.cores.sections.policies import PolicyChoice
    from marketsched.mechanisms.allocation.slot_loop import Environment, Policy, SlotRecord


@dataclass(frozen=True, slots=True)
class Reference:
    """Of the best possible policy: ``value`` is attained, the optimum at most ``value + gap``; NaN: unknown."""

    value: float = float("nan")
    gap: float = float("nan")


@dataclass(frozen=True, slots=True)
class PolicyOutcome:
    """A core's results of a played policy beside the record of its slots.

    ``figures`` are further columns of the policy's row; ``jobs`` has one row per job, where jobs are
    told apart; ``regret_bound`` is the theory's bound on regret, NaN: nothing.
    """

    figures: dict[str, float] = field(default_factory=dict)
    jobs: pd.DataFrame | None = None
    regret_bound: float = float("nan")


class CoreWorld(ABC):
    """What running, comparing, printing and drawing need of a core, for ``slots`` slots; it maximises its goal."""

    core: ClassVar[Core]
    slots: int

    @abstractmethod
    def environment(self) -> Environment:
        """Return an environment at its first slot; all have the same arrivals."""

    @abstractmethod
    def policy(self, choice: PolicyChoice, slots: int) -> Policy:
        """Return a fresh policy that will be played for ``slots`` slots; those that draw have the same stream."""

    @abstractmethod
    def payments(self, choice: PolicyChoice) -> tuple[str, ...]:
        """Return the payments that can be put on top of a policy, ``none`` first."""

    @abstractmethod
    def game(self, choice: PolicyChoice, payment: str = "none") -> CoreGame:
        """Return the same world with strategic owners: of each port, or of each job."""

    @abstractmethod
    def reference(self, slots: int) -> Reference:
        """Return the best there could be over the first ``slots`` slots."""

    @abstractmethod
    def sizes(self) -> dict[str, Any]:
        """Return the figures that describe the world."""

    def earned(self, record: SlotRecord, slots: int) -> float:
        """Return what counts against the reference in the first ``slots`` slots of a record: here, the goal."""
        return float(record[self.core.goal][:slots].sum())

    def outcome(self, policy: Policy, environment: Environment, slots: int) -> PolicyOutcome:
        """Return what else there is to tell of a policy that was just played for ``slots`` slots."""
        return PolicyOutcome()
