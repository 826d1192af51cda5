"""The general setting of OPM's Section V-C as an environment: machines that hold several tasks."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import ArrayLike, NDArray

from marketsched.mechanisms.allocation.opm.machine_availability import AvailabilityProcess
from marketsched.mechanisms.allocation.opm.machine_environment import MEASURES, MachineEnvironment
from marketsched.mechanisms.allocation.opm.machine_jobs import MachineJobs
from marketsched.mechanisms.allocation.slot_loop import SlotOutcome
from marketsched.mechanisms.arrays import float_array
from marketsched.mechanisms.errors import DecisionError, InvalidParameterError

TOLERANCE = 1e-9  # relative, of a machine's load


class GeneralEnvironment(MachineEnvironment):
    """As `MachineEnvironment`, with ``capacities``, shape (M,), and demands and limits of jobs, OPM (102)-(103).

    A decision is an array of tasks, shape (n, 2): label of the job and number of the machine. Every
    task of a machine delivers the machine's service rate and is charged its price; policies
    see the work of all tasks of each machine together. ``migrations`` counts tasks that stopped
    although their job is still in the cluster and can pay; ``idle`` machines without a task.

    Examples
    --------
    >>> from marketsched.mechanisms.allocation import GeneralOpm, RecordedAvailability, play_slots
    >>> jobs = MachineJobs([0], [2], [9.0], [1.0], [0.5])
    >>> world = GeneralEnvironment(jobs, [0.5], [1.0], RecordedAvailability([[1.0], [1.0]]), rng=1)
    >>> record = play_slots(GeneralOpm([0.5], [1.0], horizon=2, rng=1), world)
    >>> sorted(record.measures)[:3]
    ['cost', 'excess', 'idle']
    """

    offers = ("jobs",)

    def __init__(
        self,
        jobs: MachineJobs,
        prices: ArrayLike,
        capacities: ArrayLike,
        availability: AvailabilityProcess,
        rng: np.random.Generator | int | None = None,
        **rest: Any,
    ) -> None:
        self.capacities = float_array("capacities", capacities, (availability.n_machines,), lowest=0.0).copy()
        self._demands = np.ones(jobs.size) if jobs.demands is None else jobs.demands
        self._limits = np.full(jobs.size, self.capacities.size) if jobs.limits is None else jobs.limits
        over = np.flatnonzero(self._demands > self.capacities.max(initial=0.0))
        if over.size:
            j = int(over[0])
            raise InvalidParameterError(
                f"demands[{j}] = {self._demands[j]}: expected at most {self.capacities.max(initial=0.0):g}, "
                "the largest capacity"
            )
        super().__init__(jobs, prices, availability, rng, **rest)

    def begin(self) -> None:
        """Go back to the first slot; the same randomness comes again."""
        super().begin()
        self._running = np.zeros((0, 2), dtype=np.int64)

    def play(self, decision: ArrayLike) -> SlotOutcome:
        """Let the tasks (job, machine), shape (n, 2), run for one slot; DecisionError if they may not."""
        tasks = self._checked(decision)
        rates = self._draw_rates()
        jobs = self.jobs
        works, costs = self._totals
        stopped = _stopped(self._running, tasks, self.prices.size)
        pays = costs[stopped] + self.prices.min() <= jobs.budgets[stopped]
        migrations = np.count_nonzero(pays & (jobs.deadlines[stopped] >= self._slot))
        before, over_before = jobs.utilities(works).sum(), np.maximum(costs - jobs.budgets, 0.0).sum()
        cost = np.bincount(tasks[:, 0], self.prices[tasks[:, 1]], minlength=jobs.size)
        works += np.bincount(tasks[:, 0], rates[tasks[:, 1]], minlength=jobs.size)
        costs += cost
        held = np.bincount(tasks[:, 1], minlength=self.prices.size)
        work = held * rates
        measured = (
            float(jobs.utilities(works).sum() - before),
            float(work.sum()),
            float(cost.sum()),
            float(np.maximum(costs - jobs.budgets, 0.0).sum() - over_before),
            float(migrations),
            float(np.count_nonzero(held == 0)),
            self._count_open(),
        )
        self._running = tasks
        self._end_slot()
        return SlotOutcome(dict(zip(MEASURES, measured, strict=True)), (work,))

    def _checked(self, decision: ArrayLike) -> NDArray[np.int64]:
        given = np.asarray(decision)
        if given.dtype.kind not in "iu" or given.ndim != 2 or given.shape[1] != 2:
            raise DecisionError(
                f"decision of type {given.dtype} and shape {given.shape}: expected whole numbers, shape (tasks, 2)"
            )
        tasks = given.astype(np.int64)  # a copy, which the caller cannot change later
        fault, place = _tasks_kernel(
            tasks, self._slot, self.jobs.arrivals, self.jobs.deadlines, self._demands, self._limits,
            self.capacities * (1.0 + TOLERANCE)
        )  # fmt: skip
        if fault:
            raise DecisionError(f"slot {self._slot}: {_FAULTS[fault].format(place)}")
        return tasks


_FAULTS = (
    "",
    "task {} names a job that is not in the cluster, or a machine that does not exist",
    "task {} is there twice: expected at most one task of a job on a machine",
    "the tasks on machine {} demand more than its capacity",
    "job {} runs more tasks than its limit",
)


def _stopped(before: NDArray[np.int64], now: NDArray[np.int64], n_machines: int) -> NDArray[np.int64]:
    """Return the jobs of the tasks that ran before and do not run now, one entry per task."""
    old, new = before[:, 0] * n_machines + before[:, 1], now[:, 0] * n_machines + now[:, 1]
    return np.asarray(before[~np.isin(old, new), 0])


@njit(cache=True)
def _tasks_kernel(tasks, slot, arrivals, deadlines, demands, limits, capacities):  # type: ignore[no-untyped-def]
    """Return (number of the fault, place) of a decision, (0, 0) if it is legal."""
    loads, counts = np.zeros(capacities.size), np.zeros(arrivals.size)
    for k in range(tasks.shape[0]):
        j, i = tasks[k]
        inside = 0 <= j < arrivals.size and 0 <= i < capacities.size
        if not inside or arrivals[j] >= slot or deadlines[j] < slot:
            return 1, k
        loads[i] += demands[j]
        counts[j] += 1.0
    codes = np.sort(tasks[:, 0] * capacities.size + tasks[:, 1])
    for k in range(1, codes.size):
        if codes[k] == codes[k - 1]:
            return 2, k
    for i in range(capacities.size):
        if loads[i] > capacities[i]:
            return 3, i
    for j in range(arrivals.size):
        if counts[j] > limits[j]:
            return 4, j
    return 0, 0
