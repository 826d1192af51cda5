"""The world of one seed of an OPM scenario: machines, jobs, speeds, and the optimum at mean rates."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from marketsched.cores.agents.jobs import JobGame
from marketsched.cores.core import OPM, Core
from marketsched.cores.worlds.world import CoreWorld, PolicyOutcome, Reference
from marketsched.mechanisms.allocation.opm.general_environment import GeneralEnvironment
from marketsched.mechanisms.allocation.opm.general_opm import GeneralOpm
from marketsched.mechanisms.allocation.opm.machine_environment import MachineEnvironment
from marketsched.mechanisms.allocation.opm.machine_scheduler import MachineScheduler
from marketsched.mechanisms.allocation.opm.offline import offline_optimum
from marketsched.mechanisms.allocation.opm.opm import Opm
from marketsched.mechanisms.errors import InvalidParameterError
from marketsched.mechanisms.memory import check_memory

if TYPE_CHECKING:
    from marketsched.cores.agents.games import CoreGame
    from marketsched.cores.sections.policies import PolicyChoice
    from marketsched.mechanisms.allocation.opm.machine_availability import AvailabilityProcess
    from marketsched.mechanisms.allocation.opm.machine_jobs import MachineJobs
    from marketsched.mechanisms.allocation.slot_loop import Environment, Policy, SlotRecord

KINDS = 8  # machines of unequal rates are put into at most so many kinds of like rate for the optimum's plan
TOLERANCE = 1e-3  # gap of the optimum, as a share of its value
AFFORDABLE = 150_000  # variables of its linear programs; beyond, a program takes many seconds

Range = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Machines:
    """Machines: when they are available, and of each the mean availability, mean rate and price, shape (M,).

    ``speeds``: the ranges of the uniform service rate of a slot, available and not.
    """

    availability: AvailabilityProcess
    share: NDArray[np.float64]
    rates: NDArray[np.float64]
    prices: NDArray[np.float64]
    speeds: tuple[Range, Range]


class OpmWorld(CoreWorld):
    """Machines, their prices and speeds, and the jobs that want them, each part at its first slot.

    ``capacities`` are those of machines that hold several tasks, shape (M,); ``owners`` numbers the owner of each job
    from 0, shape (N,): by default every job has its own.
    """

    core: ClassVar[Core] = OPM

    def __init__(
        self,
        machines: Machines,
        jobs: MachineJobs,
        slots: int,
        speeds_rng: np.random.Generator,
        policy_rng: np.random.Generator,
        capacities: NDArray[np.float64] | None = None,
        owners: NDArray[np.int64] | None = None,
    ) -> None:
        self.jobs, self.slots, self.capacities = jobs, slots, capacities
        self._availability, self._share, self._speeds = machines.availability, machines.share, machines.speeds
        self.rates, self.prices = machines.rates, machines.prices
        self._speeds_rng, self._policy_rng, self._owners = speeds_rng, policy_rng, owners

    def environment(self) -> MachineEnvironment:
        availability, rng = deepcopy(self._availability), deepcopy(self._speeds_rng)
        rest: dict[str, Any] = {"speeds": self._speeds, "slots": self.slots}
        if self.capacities is not None:
            return GeneralEnvironment(self.jobs, self.prices, self.capacities, availability, rng, **rest)
        return MachineEnvironment(self.jobs, self.prices, availability, rng, **rest)

    def policy(self, choice: PolicyChoice, slots: int) -> Policy:
        if self.capacities is not None and choice.name != "opm":
            raise InvalidParameterError(f"policy {choice.label!r}: expected opm, which shares machines")
        if choice.name == "opm":
            change = np.bincount(self.jobs.arrivals, minlength=self.slots + 1)
            change = change - np.bincount(self.jobs.deadlines, minlength=change.size)[: change.size]
            jobs, machines = int(change.cumsum().max()), self.prices.size
            at_once = 3 * 8.0 * jobs * machines  # shares, which are copied when there is no room for one more job
            check_memory(f"the shares of {jobs} jobs on {machines} machines", at_once, "fewer machines or jobs")
        rng = deepcopy(self._policy_rng)
        known = {"prices": self.prices, "horizon": slots, "rates": self.rates, "capacities": self.capacities}
        return choice.build(**known, rng=rng)

    def payments(self, choice: PolicyChoice) -> tuple[str, ...]:
        if self.capacities is not None:
            raise InvalidParameterError("cluster.sharing: expected none where owners may lie")
        return self.core.payments if self.policy(choice, self.slots).observes == "jobs" else self.core.payments[:1]

    def game(self, choice: PolicyChoice, payment: str = "none") -> CoreGame:
        def policy(prices: NDArray[np.float64], horizon: int, rng: np.random.Generator) -> Policy:
            own = deepcopy(self._policy_rng)  # as `policy` gives it
            return choice.build(prices=prices, horizon=self.slots, rates=self.rates, capacities=None, rng=own)

        parts = (self.jobs, self.prices, self._availability, policy, payment, self._owners)
        return JobGame(*parts, rates=self._speeds_rng, speeds=self._speeds)

    def reference(self, slots: int) -> Reference:
        """Return the optimum of OPM (6), by which schedulers are compared; NaN if its program would be too large.

        No plan earns more than value and gap together: certified for the machines as they are.
        """
        breakpoints = np.unique(np.concatenate([self.jobs.arrivals, self.jobs.deadlines]))
        spans = np.searchsorted(breakpoints, self.jobs.deadlines) - np.searchsorted(breakpoints, self.jobs.arrivals)
        kinds = min(KINDS, len(np.unique(self.rates)), AFFORDABLE // int(spans.sum()))
        if not kinds or self.capacities is not None:  # (7) is about machines that hold one task
            return Reference()
        limits: dict[str, Any] = {"objective": "per-slot", "tolerance": TOLERANCE, "most_kinds": kinds}
        found = offline_optimum(self.jobs, self.prices, self.rates, **limits)
        return Reference(found.value, found.bound - found.value)

    def earned(self, record: SlotRecord, slots: int) -> float:
        """Return NaN: OPM (6) counts jobs when they are over, see `outcome`."""
        return float("nan")

    def outcome(self, policy: Policy, environment: Environment, slots: int) -> PolicyOutcome:
        """Return spending and work of a scheduler's jobs, one row per job."""
        assert isinstance(environment, MachineEnvironment)
        found = environment.outcomes()
        fit = policy.fit if isinstance(policy, MachineScheduler) else float((found.costs - self.jobs.budgets).sum())
        table = pd.DataFrame(
            {
                "job": np.arange(self.jobs.size),
                "stay": self.jobs.durations,
                "budget": self.jobs.budgets,
                "cost": found.costs,
                "work": found.works,
                "utility": found.utilities,
            }
        )
        return PolicyOutcome(
            {
                "earned": float(self.jobs.utilities_per_slot(found.works).sum()),  # as OPM (6) counts
                "budget_share": float(found.costs.sum() / self.jobs.budgets.sum()),
                "fit": fit,
                "step": policy.primal_step if isinstance(policy, (Opm, GeneralOpm)) else float("nan"),
                "machines": float(self.prices.size),
            },
            table,
        )

    def sizes(self) -> dict[str, Any]:
        return {
            "machines": int(self.prices.size),
            "jobs": self.jobs.size,
            "open_jobs": float(self.jobs.durations.sum() / self.slots),
            "available": float(self._share.mean()),
            "mean_rate": float(self.rates.mean()),
            "lowest_price": float(self.prices.min()),
            "highest_price": float(self.prices.max()),
        }
