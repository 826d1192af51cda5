"""Cluster scenarios of the core OPM: budgeted jobs on machines whose speed fluctuates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pydantic import BeforeValidator, Field

from marketsched.config.strict_yaml import Strict
from marketsched.cores import worlds
from marketsched.cores.sections.core import ClusterCore, Data
from marketsched.cores.sections.parts import PositiveRange, ShareRange
from marketsched.cores.sections.policies import policy_list
from marketsched.mechanisms.allocation.opm.machine_availability import (
    AvailabilityProcess,
    GammaAvailability,
    IndependentAvailability,
    RecordedAvailability,
)
from marketsched.mechanisms.allocation.opm.machine_jobs import MachineJobs
from marketsched.mechanisms.errors import InvalidParameterError, placed
from marketsched.mechanisms.legal import Amount, Count, Finite, Positive, PositiveShare
from marketsched.mechanisms.memory import check_memory

_Built = tuple[AvailabilityProcess, NDArray[np.float64]]  # of machines: each one's mean availability, shape (M,)


def _law(x: object) -> tuple[float, float]:
    check, pair = Finite("(0, inf)"), x if isinstance(x, (list, tuple)) else ()
    try:
        (shape, scale) = pair
        return check(shape), check(scale)
    except ValueError:
        raise ValueError("[shape, scale], two finite numbers in (0, inf)") from None


GammaLaw = Annotated[tuple[float, float], BeforeValidator(_law)]


class _Machines(Strict):
    """What machines have in common.

    ``available`` and ``unavailable`` are the ranges of the uniform service rate of a slot. Prices are
    ``price_factor`` times the mean rate: of each machine (``own``), or of all together (``equal``).
    """

    available: ShareRange = (0.7, 1.0)
    unavailable: ShareRange = (0.0, 0.1)
    price: Literal["own", "equal"] = "own"
    price_factor: Amount = 2.0

    def rates(self, share: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the mean service rate of each machine from its mean availability."""
        high, low = np.mean(self.available), np.mean(self.unavailable)
        return np.asarray(share * high + (1.0 - share) * low)

    def prices(self, rates: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the price of each machine, credits per slot."""
        mean = rates if self.price == "own" else np.full_like(rates, rates.mean())
        return self.price_factor * mean


def _check_machines(number: int) -> None:
    """Refuse more machines than memory holds: their states, rates, prices, and what a policy keeps of each."""
    check_memory(f"{number} machines", 240.0 * number, "fewer machines")


class _GammaMachines(_Machines):
    """Available and unavailable periods in turn, Gamma distributed, ``[shape, scale]``; defaults as in the paper."""

    kind: Literal["gamma"]
    machines: Count = 1000
    up: GammaLaw = (0.34, 94.35)
    down: GammaLaw = (0.19, 39.92)

    def build(self, slots: int, rng: np.random.Generator, data: Data) -> _Built:
        _check_machines(self.machines)
        process = GammaAvailability(self.machines, rng, up=self.up, down=self.down)
        return process, np.full(self.machines, process.share)


class _UnequalMachines(_Machines):
    """Machines available independently in each slot, each with a share of its own, drawn from ``share``.

    The assumption of the paper's theorems, which its evaluation does not keep: here there is something
    about a machine that lasts.
    """

    kind: Literal["unequal"]
    machines: Count = 200
    share: ShareRange = (0.0, 1.0)

    def build(self, slots: int, rng: np.random.Generator, data: Data) -> _Built:
        _check_machines(self.machines)
        share = rng.uniform(*self.share, self.machines)
        return IndependentAvailability(share, rng), share


class _LanlMachines(_Machines):
    """Nodes of a LANL system with their recorded outages, in a random window; a slot is ``slot_hours`` long."""

    kind: Literal["lanl"]
    system: Count = 8
    machines: Count = 128
    slot_hours: Positive = 6.0

    def build(self, slots: int, rng: np.random.Generator, data: Data) -> _Built:
        shape = {"system": self.system, "n_machines": self.machines, "slots": slots}
        return _recorded(worlds.records.lanl_availability(rng, data, **shape, slot_hours=self.slot_hours))


class _SpotMachines(_Machines):
    """All nodes that a fleet of spot machines ever had, each available while it was there."""

    kind: Literal["spot"]
    fleet: Literal["p3", "g4dn"] = "p3"
    slot_seconds: Positive = 10.0

    def build(self, slots: int, rng: np.random.Generator, data: Data) -> _Built:
        return _recorded(
            worlds.records.spot_availability(data, fleet=self.fleet, slots=slots, slot_seconds=self.slot_seconds)
        )


class _SeriesMachines(_Machines):
    """The spot machines of some zones, from recorded series of how many were available (docs/traces.md)."""

    kind: Literal["spot-series"]
    files: Annotated[list[str], Field(min_length=1)]
    slot_seconds: Positive = 300.0

    def build(self, slots: int, rng: np.random.Generator, data: Data) -> _Built:
        return _recorded(
            worlds.records.series_availability(self.files, data, slots=slots, slot_seconds=self.slot_seconds)
        )


def _recorded(available: NDArray[np.float32]) -> _Built:
    return RecordedAvailability(available), available.mean(axis=0, dtype=np.float64)


AnyMachines = Annotated[
    _GammaMachines | _UnequalMachines | _LanlMachines | _SpotMachines | _SeriesMachines, Field(discriminator="kind")
]


class _Jobs(Strict):
    """What jobs have in common: ``f(X) = v X^exponent`` with v drawn from ``weight``, and the budget.

    The budget is a number of credits drawn from ``budget`` for each slot the job may stay.
    """

    exponent: PositiveShare = 0.5
    budget: PositiveRange = (2.0, 100.0)
    weight: PositiveRange = (1.0, 5.0)

    def _jobs(self, arrivals: ArrayLike, stays: ArrayLike, slots: int, rng: np.random.Generator) -> MachineJobs:
        """Return the jobs; deadlines after the last slot are brought forward to it."""
        begin = np.asarray(arrivals, dtype=np.int64)
        if not begin.size:
            raise InvalidParameterError("no job comes in", legal="longer slots, more of them, or more jobs")
        end = np.minimum(slots, begin + np.maximum(1, np.asarray(stays, dtype=np.int64)))
        budgets_rng, weights_rng = rng.spawn(2)  # budgets and weights are the same at every exponent
        budgets = budgets_rng.uniform(*self.budget, begin.size) * (end - begin)
        weights = weights_rng.uniform(*self.weight, begin.size)
        return MachineJobs(begin, end, budgets, weights, np.full(begin.size, self.exponent))


class _DrawnJobs(_Jobs):
    """Jobs that come independently, ``per_slot`` of them on average, and stay lognormally long.

    ``stay`` is the median in slots, ``spread`` the deviation of its logarithm: by default that of the
    Google jobs, with their median at 0.72 seconds a slot.
    """

    kind: Literal["drawn"]
    per_slot: Positive = 0.155
    stay: Positive = 240.0
    spread: Annotated[float, Finite("[0, 20]")] = 1.45  # of a logarithm: e^20 is more than any horizon

    def build(self, slots: int, rng: np.random.Generator, data: Data) -> MachineJobs:
        expected = self.per_slot * slots
        check_memory(
            f"{expected:.3g} jobs in {slots} slots",
            24.0 * slots + 250.0 * expected,
            "fewer slots, or a smaller per_slot",
        )
        arrivals = np.repeat(np.arange(slots), rng.poisson(self.per_slot, slots))
        stays = np.ceil(np.minimum(self.stay * np.exp(self.spread * rng.standard_normal(arrivals.size)), 1e9))
        return self._jobs(arrivals, stays, slots, rng)


class _GoogleJobs(_Jobs):
    """Recorded jobs of a Google cluster in a random window: submitted then, and there for as long as they ran.

    A random ``keep`` of them stays; a slot is ``slot_seconds`` long.
    """

    kind: Literal["google"]
    slot_seconds: Positive = 0.72
    keep: PositiveShare = 1.0

    def build(self, slots: int, rng: np.random.Generator, data: Data) -> MachineJobs:
        found = worlds.records.google_window(rng, data, seconds=slots * self.slot_seconds)
        kept = rng.random(found.submitted.size) < self.keep
        arrivals = np.minimum(np.floor(found.submitted[kept] / self.slot_seconds), slots - 1)
        return self._jobs(arrivals, np.ceil(found.ran[kept] / self.slot_seconds), slots, rng)


AnyJobs = Annotated[_DrawnJobs | _GoogleJobs, Field(discriminator="kind")]


class _SharedMachines(Strict):
    """Machines that hold several tasks, Section V-C of the OPM paper.

    Every machine has ``capacity``; a task of a job takes a part of it drawn from ``demand``, and a job has at most
    ``tasks`` of them at once.
    """

    capacity: Positive = 2.0
    demand: PositiveRange = (0.5, 1.0)
    tasks: Count = 20


_DEFAULT_POLICIES = ("opm", "opm:estimate=false", "fair", "deadline-aware", "state-seeing-fair")


class OpmCluster(ClusterCore):
    """Budgeted jobs on machines of unknown, fluctuating speed; sizes as in the OPM paper."""

    core: Literal["opm"]
    machines: AnyMachines = _GammaMachines(kind="gamma")
    jobs: AnyJobs = _DrawnJobs(kind="drawn")
    sharing: _SharedMachines | None = None
    slots: Count = 50_000
    policies: Annotated[tuple[str, ...], policy_list("opm")] = _DEFAULT_POLICIES

    def _world(self, streams: Sequence[np.random.Generator], data: Data) -> worlds.world.CoreWorld:
        machines_rng, jobs_rng, speeds_rng, policy_rng = streams
        with placed("cluster.machines"):
            availability, share = self.machines.build(self.slots, machines_rng, data)
        with placed("cluster.jobs"):
            jobs = self.jobs.build(self.slots, jobs_rng, data)
        capacities = None
        if self.sharing is not None:
            capacities = np.full(share.size, self.sharing.capacity)
            demands = jobs_rng.spawn(1)[0].uniform(*self.sharing.demand, jobs.size)
            jobs = replace(jobs, demands=demands, limits=np.full(jobs.size, self.sharing.tasks))
        rates = self.machines.rates(share)
        speeds = (self.machines.available, self.machines.unavailable)
        machines = worlds.opm.Machines(availability, share, rates, self.machines.prices(rates), speeds)
        return worlds.opm.OpmWorld(machines, jobs, self.slots, speeds_rng, policy_rng, capacities)
