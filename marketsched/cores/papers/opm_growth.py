"""Measured regret and Fit_T of OPM over horizons and seeds, beside what the OPM paper's theorems allow.

Jobs that stay for the whole horizon (one: OPS), budgets kept by the multipliers alone, machines that finish a unit
of work in a slot with probability theta_i: independent over slots, as Assumption 1 asks. The budget
per slot is the same at every horizon. Constants that the paper hides in O(.) are not made up: `fit_bound` leaves out
the O(1) of OPM (23), and `regret_scale` is the function inside O(.) of OPM (24) and (101), but for the factor pi, the
Lipschitz constant of the utility: X^beta has none, so that the paper's own utilities are outside of these theorems, and
a quotient with it depends on the unit of credits.
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
from marketsched.mechanisms.allocation.opm.opm import Opm
from marketsched.mechanisms.arrays import float_array
from marketsched.mechanisms.errors import InvalidParameterError
from marketsched.mechanisms.legal import Finite, Whole

FLOATS = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class WholeHorizonGrowth:
    """Regret and fit by seed and horizon."""

    horizons: NDArray[np.int64]  # (H,), T
    regrets: FLOATS  # (seeds, H), Reg_T of OPM (6) against the offline optimum, and Fit_T of OPM (8)
    fits: FLOATS
    regret_scales: FLOATS  # (H,), M sqrt(T ln(M T / delta)), the function inside O(.) of OPM (24) without its pi
    fit_bounds: FLOATS  # (H,), OPM (74), which holds with probability 1 - delta


def fit_bound(budgets: ArrayLike, durations: ArrayLike, n_machines: int, confidence: float) -> float:
    """Return OPM (74), which bounds Fit_T with probability 1 - ``confidence``, for prices of at most 1.

    ``budgets`` are B_j, ``durations`` d_j - a_j in slots.
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
    """Return M sqrt(T ln(M T / delta)) for every T: how the regret may grow in T by OPM (24) and Corollary 1."""
    slots = float_array("horizons", horizons, (None,), lowest=1.0)
    delta = Finite("(0, 1)").check("confidence", confidence)
    m = Whole(1).check("n_machines", n_machines)
    scale: np.ndarray[tuple[int], np.dtype[np.float64]] = m * np.sqrt(slots * np.log(m * slots / delta))
    return scale


def whole_horizon_growth(
    prices: ArrayLike,
    rates: ArrayLike,
    budgets_per_slot: ArrayLike,
    utilities: Sequence[PowerUtility],
    horizons: Sequence[int],
    *,
    seeds: int = 20,
    confidence: float = 0.05,
    known_rates: bool = False,
    rng: np.random.Generator | int | None = None,
) -> WholeHorizonGrowth:
    """Play OPM at several horizons, several times each, with jobs that are there from the first slot to the last.

    ``prices`` p_i and ``rates`` theta_i, shape (M,), are in [0, 1]; ``budgets_per_slot`` B_j / T in credits, one for
    each of the ``utilities``. Each of the ``seeds`` runs at a horizon has a stream of its own. ``confidence`` is delta.
    """
    price = float_array("prices", prices, (None,), lowest=0.0, highest=1.0)
    theta = float_array("rates", rates, price.shape, lowest=0.0, highest=1.0)
    per_slot = float_array("budgets_per_slot", budgets_per_slot, (len(utilities),), lowest=1e-12)
    runs = Whole(1).check("seeds", seeds)
    slots = np.array([Whole(1).check("horizons", t) for t in horizons], dtype=np.int64)
    streams = np.random.default_rng(rng).spawn(runs * slots.size)
    regrets, fits, bounds = np.empty((runs, slots.size)), np.empty((runs, slots.size)), []
    weights, exponents = np.array([[f.weight, f.exponent] for f in utilities]).reshape(-1, 2).T
    for h, horizon in enumerate(slots.tolist()):
        ends = np.full(per_slot.size, horizon)
        jobs = MachineJobs(np.zeros_like(ends), ends, per_slot * horizon, weights, exponents)
        best = offline_optimum(jobs, price, theta, tolerance=1e-7)
        for s in range(runs):
            draws, speeds = streams[h * runs + s].spawn(2)
            known = theta if known_rates else None
            opm = Opm(price, horizon, confidence, strict_budget=False, rng=draws, known_rates=known)
            for j, (budget, utility) in enumerate(zip(jobs.budgets.tolist(), utilities, strict=True)):
                opm.add_job(j, horizon, budget, utility)
            regrets[s, h] = regret(jobs, best, _works_of(opm, theta, horizon, speeds, per_slot.size))
            fits[s, h] = opm.fit
        bounds.append(fit_bound(jobs.budgets, ends, price.size, confidence))
    return WholeHorizonGrowth(slots, regrets, fits, regret_scale(slots, price.size, confidence), np.array(bounds))


def _works_of(opm: Opm, theta: FLOATS, horizon: int, speeds: np.random.Generator, jobs: int) -> FLOATS:
    """Play one run; return the work done of each job."""
    totals = np.zeros(jobs)
    for _ in range(horizon):
        decision = opm.allocate()
        used = decision >= 0
        work = np.where(used & (speeds.random(theta.size) < theta), 1.0, 0.0)
        opm.update(work)
        totals += np.bincount(decision[used], weights=work[used], minlength=jobs)
    return totals
