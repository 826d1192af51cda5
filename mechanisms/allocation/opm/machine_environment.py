"""The OPM model as an environment of the slot loop: jobs that come and go, machines of fluctuating speed.

In slot t the jobs that arrived in slot t - 1 are announced; a policy gives machines to jobs; every
machine delivers its service rate theta_i(t) to the job it was given to, OPM (1), and charges its
price. Policies observe only the work of the machines they used.

Measures of every slot: ``utility``, by how much the jobs' utilities f_j(work so far) grew (their sum is P1's
objective); ``work`` delivered; ``cost``, credits charged, and ``excess``, the part of it beyond a job's budget;
``migrations``, machines taken from a job that is still in the cluster and can pay some machine; ``idle`` machines;
``open`` jobs.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import ArrayLike, NDArray

from marketsched.mechanisms.allocation.opm.machine_availability import AvailabilityProcess
from marketsched.mechanisms.allocation.opm.machine_jobs import MachineJobs
from marketsched.mechanisms.allocation.slot_loop import SlotOutcome
from marketsched.mechanisms.arrays import float_array
from marketsched.mechanisms.errors import DecisionError, InvalidParameterError
from marketsched.mechanisms.randomness import generator_of

MEASURES = ("utility", "work", "cost", "excess", "migrations", "idle", "open")
PAPER_SPEEDS = ((0.7, 1.0), (0.0, 0.1))
"""Ends of the uniform service rates of an available and of an unavailable machine in the OPM paper."""


@dataclass(frozen=True, slots=True)
class _JobOutcomes:
    """What came of the jobs; arrays of shape (N,)."""

    works: NDArray[np.float64]  # X_j
    costs: NDArray[np.float64]  # credits spent
    utilities: NDArray[np.float64]  # f_j(X_j)


class MachineEnvironment:
    """Machines of fluctuating speed and the jobs that want them.

    Parameters
    ----------
    jobs : MachineJobs
        Job j has label j.
    prices : array_like of float, shape (M,)
        p_i, credits per slot, >= 0.
    availability : AvailabilityProcess
        Owned by the environment from now on.
    rng : Generator, int or None
        For the service rates: one number per machine and slot, whatever is decided, so that
        policies are compared on the same speeds.
    speeds : ((float, float), (float, float))
        Ends of the uniform rate of an available and of an unavailable machine, in [0, 1]. A machine
        that is available for a part of the slot gets that part of the one and the rest of the other.
    slots : int or None
        T; None: the last deadline.

    Examples
    --------
    >>> from marketsched.mechanisms.allocation import FairScheduler, RecordedAvailability, play_slots
    >>> jobs = MachineJobs([0], [2], [9.0], [1.0], [0.5])
    >>> world = MachineEnvironment(jobs, [0.5], RecordedAvailability([[1.0], [1.0]]), rng=1)
    >>> play_slots(FairScheduler([0.5]), world)["cost"]
    array([0.5, 0.5])
    """

    offers: tuple[str, ...] = ("jobs", "state")

    def __init__(
        self,
        jobs: MachineJobs,
        prices: ArrayLike,
        availability: AvailabilityProcess,
        rng: np.random.Generator | int | None = None,
        *,
        speeds: tuple[tuple[float, float], tuple[float, float]] = PAPER_SPEEDS,
        slots: int | None = None,
    ) -> None:
        self.jobs = jobs
        self.prices = float_array("prices", prices, (availability.n_machines,), lowest=0.0).copy()
        self.slots = jobs.horizon if slots is None else slots
        if availability.slots is not None and availability.slots < self.slots:
            raise InvalidParameterError(
                f"availability lasts {availability.slots} slots: expected at least {self.slots}, the last deadline"
            )
        ends = float_array("speeds", speeds, (2, 2), lowest=0.0, highest=1.0)
        if (ends[:, 0] > ends[:, 1]).any():
            raise InvalidParameterError(f"speeds = {speeds}: expected (lowest, highest) of both")
        self._ends = ends.copy()
        self._availability = availability
        self._seed = generator_of(rng)
        self._terms = np.stack([jobs.deadlines, jobs.budgets, jobs.weights, jobs.exponents])
        self._by_arrival = np.argsort(jobs.arrivals, kind="stable")
        self.begin()

    def begin(self) -> None:
        """Go back to the first slot; the same randomness comes again."""
        n = self.jobs.size
        self._rng = copy.deepcopy(self._seed)
        self._availability.begin()
        self._slot = 1
        self._announced = 0
        self._state: NDArray[np.float64] | None = None
        self._totals = np.zeros((2, n))  # work and cost of every job
        self._scratch = np.zeros((2, n))
        self._previous = np.full(self.prices.size, -1, dtype=np.int64)

    def outcomes(self) -> _JobOutcomes:
        """Return work, cost and utility of every job, up to the slot played last."""
        works, costs = self._totals.copy()
        return _JobOutcomes(works, costs, self.jobs.utilities(works))

    def observation(self, observes: str) -> tuple[Any, ...]:
        """Return the jobs that came in, as one tuple; to a policy that observes "state" the availability, too."""
        arriving = []
        while self._announced < self.jobs.size:
            j = int(self._by_arrival[self._announced])
            if self.jobs.arrivals[j] >= self._slot:
                break
            arriving.append(self.jobs.offer(j))
            self._announced += 1
        if observes == "state":
            return tuple(arriving), self._present() >= 0.5
        return (tuple(arriving),)

    def play(self, decision: ArrayLike) -> SlotOutcome:
        """Let machines work for jobs: labels, or -1, shape (M,); DecisionError if a job is not there."""
        taken = self._checked(decision)
        rates = self._draw_rates()
        work = np.zeros(self.prices.size)
        measured = _play_kernel(
            self._slot, taken, self._previous, rates, self.prices, self._terms, self._totals, self._scratch, work
        )
        self._previous = taken
        measures = dict(zip(MEASURES, (*measured, self._count_open()), strict=True))
        self._end_slot()
        return SlotOutcome(measures, (work,))

    def _draw_rates(self) -> NDArray[np.float64]:
        present, draws = self._present(), self._rng.random(self.prices.size)
        low, width = self._ends[:, 0], self._ends[:, 1] - self._ends[:, 0]
        return np.asarray(present * (low[0] + draws * width[0]) + (1.0 - present) * (low[1] + draws * width[1]))

    def _count_open(self) -> float:
        jobs = self.jobs
        return float(np.count_nonzero((jobs.arrivals < self._slot) & (jobs.deadlines >= self._slot)))

    def _end_slot(self) -> None:
        self._slot += 1
        self._state = None

    def _present(self) -> NDArray[np.float64]:
        """Return the availability of the present slot; drawn once."""
        if self._state is None:
            self._state = self._availability.next()
        return self._state

    def _checked(self, decision: ArrayLike) -> NDArray[np.int64]:
        given = np.asarray(decision)
        if given.dtype.kind not in "iu" or given.shape != self.prices.shape:
            raise DecisionError(
                f"decision of type {given.dtype} and shape {given.shape}: expected whole numbers, "
                f"shape {self.prices.shape}"
            )
        taken = given.astype(np.int64)  # a copy, which the caller cannot change later
        worst = _check_kernel(taken, self._slot, self.jobs.arrivals, self.jobs.deadlines)
        if worst >= 0:
            raise DecisionError(
                f"machine {worst} is given to job {taken[worst]} in slot {self._slot}: expected -1 or a job that is "
                "in the cluster"
            )
        return taken


@njit(cache=True)
def _check_kernel(decision, slot, arrivals, deadlines):  # type: ignore[no-untyped-def]
    """Return the first machine given to a job that is not there, or -1."""
    for i in range(decision.size):
        j = decision[i]
        if j < -1 or j >= arrivals.size or (j >= 0 and (arrivals[j] >= slot or deadlines[j] < slot)):
            return i
    return -1


@njit(cache=True)
def _play_kernel(slot, decision, previous, rates, prices, terms, totals, scratch, work):  # type: ignore[no-untyped-def]
    """Charge and work machine by machine; return the slot's measures but the last.

    ``terms`` holds deadlines, budgets, weights and exponents; ``scratch`` is zeros before and after.
    """
    deadlines, budgets, weights, exponents = terms
    works, costs = totals
    gained, marks = scratch
    touched = np.empty(min(decision.size, works.size), dtype=np.int64)
    cheapest = prices.min()
    cost, excess, delivered, migrations, idle, n_touched = 0.0, 0.0, 0.0, 0.0, 0.0, 0
    for i in range(decision.size):
        j, before = decision[i], previous[i]
        if before >= 0 and before != j and deadlines[before] >= slot and costs[before] + cheapest <= budgets[before]:
            migrations += 1.0
    for i in range(decision.size):
        j = decision[i]
        if j < 0:
            idle += 1.0
            continue
        excess += max(0.0, costs[j] + prices[i] - max(costs[j], budgets[j]))
        costs[j] += prices[i]
        cost += prices[i]
        work[i] = rates[i]
        delivered += rates[i]
        if marks[j] == 0.0:
            marks[j] = 1.0
            touched[n_touched] = j
            n_touched += 1
        gained[j] += rates[i]
    utility = 0.0
    for k in range(n_touched):
        j = touched[k]
        after = works[j] + gained[j]
        utility += weights[j] * (after ** exponents[j] - works[j] ** exponents[j])
        works[j] = after
        gained[j] = marks[j] = 0.0
    return utility, delivered, cost, excess, migrations, idle
