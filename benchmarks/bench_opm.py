"""OPM: one slot against one pass over the shares, and the time of the paper's whole set-up.

Size: 1,000 machines, and 100 jobs in the cluster or 4,472, as on average in the paper's heavy load; its 50,000 slots of
Gamma availability.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np
from numba import njit
from numpy.typing import NDArray

from harness import Row, benchmark, time_interleaved
from marketsched.mechanisms.allocation import GammaAvailability, MachineEnvironment, Opm, PowerUtility, play_slots
from marketsched.mechanisms.allocation.opm.machine_jobs import MachineJobs

MACHINES, SLOTS = 1000, 50_000
LOADS = {100: (300, 31), 4472: (60, 7)}  # by jobs: slots before the measurement, and samples
MEAN_RATE = 0.6970  # of the paper's Gamma periods and speeds; its price is twice that


def steady(primal_step: float | None, n_jobs: int) -> tuple[Opm, NDArray[np.float64]]:
    """Return a scheduler with so many jobs after some slots, and the work of a slot."""
    rng = np.random.default_rng(0)
    opm = Opm(rng.uniform(0.5, 1.0, MACHINES), SLOTS, primal_step=primal_step, rng=1)
    for job in range(n_jobs):
        opm.add_job(job, SLOTS, rng.uniform(2.0, 100.0) * SLOTS, PowerUtility(rng.uniform(1.0, 5.0), 0.5))
    work = rng.random(MACHINES)
    for _ in range(LOADS[n_jobs][0]):
        opm.allocate()
        opm.update(work)
    return opm, work


@njit(cache=True)
def one_pass(shares):  # type: ignore[no-untyped-def]
    """Go over the (jobs, machines) array once, reading and writing."""
    for j in range(shares.shape[0]):
        for i in range(shares.shape[1]):
            shares[j, i] = 0.999 * shares[j, i]


@benchmark
def slot_over_pass() -> Iterator[Row]:
    """One slot (estimates, dual and primal step, projection, draw, budgets, learning) over one pass."""
    for n_jobs, (_, rounds) in LOADS.items():
        worst, size = 0.0, "" if n_jobs == 100 else f"_{n_jobs}_jobs"
        for name, step in (("theory", None), ("1.0", 1.0)):
            opm, work = steady(step, n_jobs)
            shares = np.random.default_rng(2).random((n_jobs, MACHINES))

            def slot(opm: Opm = opm, work: NDArray[np.float64] = work) -> None:
                opm.allocate()
                opm.update(work)

            def go_over(shares: NDArray[np.float64] = shares) -> None:
                one_pass(shares)

            seconds, below = time_interleaved([slot, go_over], rounds=rounds)
            worst = max(worst, seconds / below)
            yield Row(f"opm.slot{size}, step {name}", seconds * 1e6, "us")
        yield Row(f"opm.slot_over_pass{size}", worst, "x", at_most=20)


def paper_jobs(n_jobs: int, mean_stay: float, slots: int) -> MachineJobs:
    """Return jobs that arrive uniformly and stay exponentially long, with the paper's budgets and utilities."""
    rng = np.random.default_rng(0)
    arrivals = np.sort(rng.integers(0, slots - 1, n_jobs))
    deadlines = np.minimum(slots, arrivals + np.maximum(1, rng.exponential(mean_stay, n_jobs).astype(np.int64)))
    budgets = rng.uniform(2.0, 100.0, n_jobs) * (deadlines - arrivals)
    return MachineJobs(arrivals, deadlines, budgets, rng.uniform(1.0, 5.0, n_jobs), np.full(n_jobs, 0.7))


def seconds_of_paper_setup(n_jobs: int, mean_stay: float, slots: int) -> float:
    """Return the time of a run of the paper's set-up, environment and record included."""
    jobs, prices = paper_jobs(n_jobs, mean_stay, slots), np.full(MACHINES, 2 * MEAN_RATE)
    world = MachineEnvironment(jobs, prices, GammaAvailability(MACHINES, 3), 4, slots=slots)
    begin = time.perf_counter()
    play_slots(Opm(prices, slots, rng=5), world)
    return time.perf_counter() - begin


@benchmark
def paper_setup() -> Iterator[Row]:
    """1,000 machines and 50,000 slots with 740 jobs of 10 hours, about 10 in the cluster at a time."""
    seconds_of_paper_setup(20, 100.0, 200)  # compiles
    yield Row("opm.paper_setup", seconds_of_paper_setup(740, 700.0, SLOTS), "s", at_most=300)
