"""The world of one seed of an OPM scenario: machines, jobs, speeds, and the optimum at mean rates."""

from __future__ import annotations

from copy import deepcopy
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from marketsched.clusters.world import Outcome, Reference
from marketsched.config.policies import PolicyChoice
from marketsched.mechanisms.allocation.opm.machine_environment import MachineEnvironment
from marketsched.mechanisms.allocation.opm.machine_scheduler import MachineScheduler
from marketsched.mechanisms.allocation.opm.offline import offline_optimum
from marketsched.mechanisms.allocation.opm.opm import Opm
from marketsched.mechanisms.errors import placed
from marketsched.play.running import checked_seed

if TYPE_CHECKING:
    from marketsched.clusters.opm import OpmCluster
    from marketsched.mechanisms.allocation.slot_loop import Environment, Policy, SlotRecord

KINDS = 4  # machines of unequal rates are put into so many kinds of like rate for the optimum
TOLERANCE = 1e-3  # gap of the optimum, as a share of its value
AFFORDABLE = 150_000  # variables of its linear programs; beyond, a program takes many seconds


class OpmWorld:
    """Machines, their prices and speeds, and the jobs that want them.

    ``core`` is the section ``cluster`` of a scenario; seed, data and what is raised are as in `ClusterCore.world`.
    """

    goal = "utility"

    def __init__(self, core: OpmCluster, seed: int, data: str | PathLike[str] | None = None) -> None:
        streams = np.random.default_rng(np.random.SeedSequence(checked_seed(seed))).spawn(4)
        machines_rng, jobs_rng, self._speeds_rng, self._policy_rng = streams
        self.slots = core.slots
        with placed("cluster.machines"):
            built = core.machines.build(core.slots, machines_rng, data)
        with placed("cluster.jobs"):
            self.jobs = core.jobs.build(core.slots, jobs_rng, data)
        self._availability, self._share = built.availability, built.share
        self._speeds = (core.machines.available, core.machines.unavailable)
        self.rates = core.machines.rates(built.share)
        self.prices = core.machines.prices(self.rates)

    def environment(self) -> MachineEnvironment:
        """Return an environment at its first slot; all have the same jobs, states and speeds."""
        availability, rng = deepcopy(self._availability), deepcopy(self._speeds_rng)
        return MachineEnvironment(self.jobs, self.prices, availability, rng, speeds=self._speeds, slots=self.slots)

    def policy(self, choice: PolicyChoice, slots: int) -> Policy:
        """Return a fresh scheduler that will be played for ``slots`` slots; those that draw have the same stream."""
        rng = deepcopy(self._policy_rng)
        return choice.build(prices=self.prices, horizon=slots, rates=self.rates, rng=rng)

    def reference(self, slots: int) -> Reference:
        """Return the optimum of OPM (7) at mean rates; NaN if its program would be too large.

        Machines of unequal rates are put into `KINDS` kinds, each with its mean rate and price.
        """
        rates, prices = _kinds(self.rates, self.prices)
        breakpoints = np.unique(np.concatenate([self.jobs.arrivals, self.jobs.deadlines]))
        spans = np.searchsorted(breakpoints, self.jobs.deadlines) - np.searchsorted(breakpoints, self.jobs.arrivals)
        if int(spans.sum()) * len(np.unique(rates)) > AFFORDABLE:
            return Reference(float("nan"), float("nan"))
        found = offline_optimum(self.jobs, prices, rates, tolerance=TOLERANCE)
        return Reference(found.value, found.bound - found.value)

    def earned(self, record: SlotRecord, slots: int) -> float:
        """Return the utility of the first ``slots`` slots, the objective of OPM (7)."""
        return float(record[self.goal][:slots].sum())

    def outcome(self, policy: Policy, environment: Environment) -> Outcome:
        """Return what a scheduler's jobs spent and got, one row per job."""
        assert isinstance(policy, MachineScheduler) and isinstance(environment, MachineEnvironment)
        found = environment.outcomes()
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
        return Outcome(
            {
                "budget_share": float(found.costs.sum() / self.jobs.budgets.sum()),
                "fit": policy.fit,
                "step": policy.primal_step if isinstance(policy, Opm) else float("nan"),
                "machines": float(self.prices.size),
            },
            table,
        )

    def regret_bound(self, choice: PolicyChoice, slots: int) -> float:
        """Return NaN: the paper's theorem has constants that are not given."""
        return float("nan")

    def sizes(self) -> dict[str, Any]:
        """Return how many machines and jobs there are, and what machines cost and do on average."""
        return {
            "machines": int(self.prices.size),
            "jobs": self.jobs.size,
            "open_jobs": float(self.jobs.durations.sum() / self.slots),
            "available": float(self._share.mean()),
            "mean_rate": float(self.rates.mean()),
            "lowest_price": float(self.prices.min()),
            "highest_price": float(self.prices.max()),
        }


def _kinds(rates: NDArray[np.float64], prices: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return rates and prices with at most `KINDS` different pairs: means of machines next to each other in rate."""
    if len(np.unique(np.stack([rates, prices]), axis=1).T) <= KINDS:
        return rates, prices
    like, cost = np.empty_like(rates), np.empty_like(prices)
    for group in np.array_split(np.argsort(rates, kind="stable"), KINDS):
        like[group], cost[group] = rates[group].mean(), prices[group].mean()
    return like, cost
