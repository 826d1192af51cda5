"""Measured regret and Fit_T of OPS over horizons and seeds, beside what the OPM paper's theorems allow.

One job for the whole horizon, budgets kept by the multipliers alone, machines that finish a unit
of work in a slot with probability theta_i: independent over slots, as Assumption 1 asks. The budget
per slot is the same at every horizon. Constants that the paper hides in O(.) are not made up: `fit_bound` leaves out
the O(1) of OPM (23), and `regret_scale` is the function inside O(.) of OPM (24) and (101).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from marketsched.mechanisms.allocation.opm.jobs import PowerUtility
from marketsched.mechanisms.allocation.opm.machine_jobs import MachineJobs
from marketsched.mechanisms.allocation.opm.offline import offline_optimum, regret
from marketsched.mechanisms.allocation.opm.opm import Ops
from marketsched.mechanisms.arrays import float_array
from marketsched.mechanisms.errors import InvalidParameterError
from marketsched.mechanisms.legal import Finite, Whole

FLOATS = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class SingleJobGrowth:
    """Regret and fit by seed and horizon.

    Attributes
    ----------
    horizons : ndarray of int, shape (H,)
        T.
    regrets, fits : ndarray of float, shape (seeds, H)
        Reg_T of OPM (6) against the offline optimum, and Fit_T of OPM (8).
    regret_scales : ndarray of float, shape (H,)
        M sqrt(T ln(M T / delta)), the function inside O(.) of OPM (24).
    fit_bounds : ndarray of float, shape (H,)
        OPM (74), which holds with probability 1 - delta.
    """

    horizons: NDArray[np.int64]
    regrets: FLOATS
    fits: FLOATS
    regret_scales: FLOATS
    fit_bounds: FLOATS


def fit_bound(budgets: ArrayLike, durations: ArrayLike, n_machines: int, confidence: float) -> float:
    """Return the bound OPM (74) on Fit_T, for prices of at most 1.

    Parameters
    ----------
    budgets, durations : array_like of float, shape (N,)
        B_j and d_j - a_j (slots).
    n_machines : int
        M.
    confidence : float
        delta: the bound holds with probability 1 - delta.

    Raises
    ------
    InvalidParameterError
        If an array or parameter is out of range.
    """
    total = float_array("budgets", budgets, (None,), lowest=0.0)
    per_slot = total / float_array("durations", durations, total.shape, lowest=1.0)
    m = Whole(1).check("n_machines", n_machines)
    chance = math.log(1.0 / Finite("(0, 1)").check("confidence", confidence)) * math.sqrt(total.sum())
    largest, smallest, root = float(per_slot.max()), float(per_slot.min()), math.sqrt(total.size)
    if smallest <= 0.0:
        raise InvalidParameterError("budgets: expected every one > 0")
    return chance + root * m * (m + largest) / smallest


def regret_scale(
    horizons: ArrayLike, n_machines: int, confidence: float
) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Return M sqrt(T ln(M T / delta)) for every T: how the regret may grow by OPM (24) and Corollary 1.

    Raises
    ------
    InvalidParameterError
        If an array or parameter is out of range.
    """
    slots = float_array("horizons", horizons, (None,), lowest=1.0)
    delta = Finite("(0, 1)").check("confidence", confidence)
    m = Whole(1).check("n_machines", n_machines)
    scale: np.ndarray[tuple[int], np.dtype[np.float64]] = m * np.sqrt(slots * np.log(m * slots / delta))
    return scale


def single_job_growth(
    prices: ArrayLike,
    rates: ArrayLike,
    budget_per_slot: float,
    utility: PowerUtility,
    horizons: Sequence[int],
    *,
    seeds: int = 20,
    confidence: float = 0.05,
    known_rates: bool = False,
    rng: np.random.Generator | int | None = None,
) -> SingleJobGrowth:
    """Play OPS at several horizons, several times each.

    Parameters
    ----------
    prices, rates : array_like of float, shape (M,)
        p_i and theta_i, in [0, 1].
    budget_per_slot : float
        B / T, credits.
    utility : PowerUtility
        f.
    horizons : sequence of int
        T.
    seeds : int
        Runs at each horizon, each with its own draws.
    confidence : float
        delta.
    known_rates : bool
        Whether the policy knows theta.
    rng : Generator, int or None
        One stream is spawned for each run.

    Raises
    ------
    InvalidParameterError
        If an array or parameter is out of range.
    """
    price = float_array("prices", prices, (None,), lowest=0.0, highest=1.0)
    theta = float_array("rates", rates, price.shape, lowest=0.0, highest=1.0)
    per_slot = Finite("(0, inf)").check("budget_per_slot", budget_per_slot)
    runs = Whole(1).check("seeds", seeds)
    slots = np.array([Whole(1).check("horizons", t) for t in horizons], dtype=np.int64)
    streams = np.random.default_rng(rng).spawn(runs * slots.size)
    regrets, fits = np.empty((runs, slots.size)), np.empty((runs, slots.size))
    for h, horizon in enumerate(slots.tolist()):
        budget = per_slot * horizon
        job = MachineJobs(*(np.array([x]) for x in (0, horizon, budget, utility.weight, utility.exponent)))
        best = offline_optimum(job, price, theta, tolerance=1e-9)
        for s in range(runs):
            draws, speeds = streams[h * runs + s].spawn(2)
            ops = Ops(
                price, horizon, budget, utility, confidence=confidence, strict_budget=False, rng=draws, slack=0.0,
                known_rates=theta if known_rates else None,
            )  # fmt: skip
            regrets[s, h] = regret(job, best, [_work_of(ops, theta, horizon, speeds)])
            fits[s, h] = ops.fit
    bounds = [fit_bound([per_slot * t], [t], price.size, confidence) for t in slots.tolist()]
    return SingleJobGrowth(slots, regrets, fits, regret_scale(slots, price.size, confidence), np.array(bounds))


def _work_of(ops: Ops, theta: FLOATS, horizon: int, speeds: np.random.Generator) -> float:
    """Play one run; return the work done."""
    total = 0.0
    for _ in range(horizon):
        used = ops.allocate() >= 0
        work = np.where(used & (speeds.random(theta.size) < theta), 1.0, 0.0)
        ops.update(work)
        total += work.sum()
    return float(total)
