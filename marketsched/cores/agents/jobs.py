r"""OPM with strategic owners of jobs: reported budgets, deadlines and curves, and true utilities.

The core schedules the reported jobs. What a job is worth to its owner is its *true* curve at the work done by its
*true* deadline; work after that is worth nothing. Arrivals are public.

The payment rule decides the worth of a budget to its owner:

==================== ====================================================================================
none                 budgets are tokens that are not collected: spending costs the owner nothing
``"spending"``       the owner pays, in credits, what its jobs spend at the machines' prices, also beyond the
                     true budget if it claimed more: the budget is a limit that the owner sets itself
``"displaced work"`` the owner pays what its machines' work would have been worth to another job, by the
                     *reported* curves (:func:`~marketsched.mechanisms.allocation.payments.displaced_work`);
                     budgets are tokens
==================== ====================================================================================
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import deepcopy
from itertools import count
from typing import Annotated, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from marketsched.cores.agents.games import CoreGame, OwnersSlot, Take
from marketsched.cores.agents.reports import CorePublic, JobReport
from marketsched.cores.core import OPM
from marketsched.mechanisms.allocation.opm.machine_availability import AvailabilityProcess
from marketsched.mechanisms.allocation.opm.machine_environment import PAPER_SPEEDS, MachineEnvironment
from marketsched.mechanisms.allocation.opm.machine_jobs import MachineJobs
from marketsched.mechanisms.allocation.payments import displaced_work
from marketsched.mechanisms.allocation.slot_loop import Environment, Policy, SlotOutcome
from marketsched.mechanisms.arrays import count_array, float_array
from marketsched.mechanisms.errors import InvalidParameterError, InvalidReportError
from marketsched.mechanisms.legal import Named, Seed, legal

SchedulerMaker = Callable[[NDArray[np.float64], int, np.random.Generator], Policy]


class JobGame(CoreGame):
    """Machines of fluctuating speed whose jobs have owners; every play copies the availability.

    ``jobs`` are the true ones, ``prices`` p_i in credits per slot; ``policy`` makes a fresh scheduler of (prices, T,
    generator); ``owners`` numbers the owner of each job from 0, by default its own. ``seed`` is of the policy's draws
    and of the service rates, or ``rates`` of these; ``speeds`` are those of `MachineEnvironment`.

    Examples
    --------
    >>> from marketsched.cores.agents.games import play_out
    >>> from marketsched.mechanisms.allocation import FairScheduler, RecordedAvailability
    >>> jobs = MachineJobs([0, 0], [2, 2], [9.0, 9.0], [1.0, 2.0], [0.5, 0.5])
    >>> up = RecordedAvailability([[1.0, 1.0]] * 2)
    >>> game = JobGame(jobs, [0.5, 0.5], up, lambda prices, horizon, rng: FairScheduler(prices, horizon))
    >>> game.n_owners, play_out(game, {}).values.round(2)
    (2, array([1.38, 2.48]))
    """

    core = OPM

    @legal
    def __init__(
        self,
        jobs: MachineJobs,
        prices: ArrayLike,
        availability: AvailabilityProcess,
        policy: SchedulerMaker,
        payment: Annotated[str, Named(OPM.payments)] = "none",
        owners: ArrayLike | None = None,
        seed: Seed = 0,
        rates: np.random.Generator | None = None,
        speeds: tuple[tuple[float, float], tuple[float, float]] = PAPER_SPEEDS,
    ) -> None:
        if not jobs.size:
            raise InvalidParameterError("jobs has none: expected at least one")
        self.prices = float_array("prices", prices, (availability.n_machines,), lowest=0.0).copy()
        self.owners = count_array("owners", np.arange(jobs.size) if owners is None else owners, jobs.size)
        public = CorePublic(np.ones(self.prices.size), jobs.horizon, np.zeros(0, dtype=np.int64))
        super().__init__(int(self.owners.max()) + 1, jobs.horizon, payment, public)
        self.jobs, self.policy, self.seed, self.speeds = jobs, policy, seed, speeds
        self._rates, self._availability = rates, availability

    def truth(self, owner: int) -> tuple[JobReport, ...]:
        """Return the true report of an owner: of all its jobs, in their order."""
        jobs = self.jobs
        return tuple(
            JobReport(
                int(jobs.arrivals[j]),
                int(jobs.deadlines[j]),
                float(jobs.budgets[j]),
                float(jobs.weights[j]),
                float(jobs.exponents[j]),
            )
            for j in np.flatnonzero(self.owners == owner).tolist()
        )

    def _begin(self, reports: list[tuple[JobReport, ...]]) -> tuple[Policy, Environment, Take]:
        reported, true, prices = self._reported(reports), self.jobs, self.prices
        rates_rng, policy_rng = np.random.default_rng(self.seed).spawn(2)
        rates_rng = rates_rng if self._rates is None else deepcopy(self._rates)
        world = MachineEnvironment(
            reported, prices, deepcopy(self._availability), rates_rng, speeds=self.speeds, slots=self.slots
        )
        works, useful, spent = np.zeros(true.size), np.zeros(true.size), np.zeros(true.size)
        slots = count(1)

        def take(decision: Any, outcome: SlotOutcome) -> OwnersSlot:
            (work,) = outcome.feedback
            slot, places = next(slots), np.asarray(decision) + 1  # 0: no job
            costs, done = (np.bincount(places, weights=x, minlength=true.size + 1)[1:] for x in (prices, work))
            charged = costs if self.payment == "spending" else np.zeros(true.size)
            if self.payment == "displaced work":
                affordable = spent + prices.min() <= reported.budgets
                waiting = (reported.arrivals < slot) & (reported.deadlines >= slot) & affordable
                charged = displaced_work(places - 1, work, works, reported.weights, reported.exponents, waiting)
            spent[:] += costs
            works[:] += done
            before = true.utilities(useful)
            useful[:] += np.where(slot <= true.deadlines, done, 0.0)
            gained = true.utilities(useful) - before
            of_owners = (np.bincount(self.owners, weights=x, minlength=self.n_owners) for x in (gained, charged))
            return OwnersSlot(*(x.astype(np.float64) for x in of_owners))

        return self.policy(prices, self.slots, policy_rng), world, take

    def _reported(self, reports: Sequence[tuple[JobReport, ...]]) -> MachineJobs:
        jobs, terms = self.jobs, ("deadline", "budget", "weight", "exponent")
        told: list[Any] = [each.copy() for each in (jobs.deadlines, jobs.budgets, jobs.weights, jobs.exponents)]
        for owner, report in enumerate(reports):
            own = np.flatnonzero(self.owners == owner)
            where = f"report of owner {owner}"
            if not isinstance(report, tuple) or not all(isinstance(job, JobReport) for job in report):
                raise InvalidReportError(f"{where} is a {type(report).__name__}: expected a tuple of JobReport")
            if len(report) != own.size or [job.arrival for job in report] != jobs.arrivals[own].tolist():
                raise InvalidReportError(f"{where} has {len(report)} jobs: expected its {own.size}, and their arrivals")
            for array, term in zip(told, terms, strict=True):
                array[own] = [getattr(job, term) for job in report]
        try:
            return MachineJobs(jobs.arrivals, *told)
        except InvalidParameterError as problem:
            raise InvalidReportError(f"the reports together: {problem}") from problem
