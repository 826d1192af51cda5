"""Measured regret and Fit_T of OPM over horizons and seeds, beside what the OPM paper's theorems allow.

Jobs that stay for the whole horizon (one: OPS), budgets kept by the multipliers alone, machines that finish a unit of
work in a slot with probability theta_i: independent over slots, as Assumption 1 asks. The budget per slot is the same
at every horizon. `fit_bound` leaves out the O(1) of OPM (23). Regret may grow like the function inside O(.) of OPM
(24) and (101), here without the Lipschitz constant pi of the utility: X^beta has none, so that the paper's own
utilities are outside of these theorems, and a quotient with it depends on the unit of credits.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from marketsched.mechanisms.allocation.opm.jobs import PowerUtility
from marketsched.mechanisms.allocation.opm.machine_jobs import MachineJobs
from marketsched.mechanisms.allocation.opm.offline import offline_optimum, regret
from marketsched.mechanisms.allocation.opm.opm import Opm

FLOATS = NDArray[np.float64]


class WholeHorizonGrowth(NamedTuple):
    """Regret and fit by seed and horizon."""

    regrets: FLOATS  # (seeds, H), Reg_T of OPM (6) against the offline optimum, and Fit_T of OPM (8)
    fits: FLOATS
    regret_scales: FLOATS  # (H,), M sqrt(T ln(M T / delta)), the function inside O(.) of OPM (24) without its pi
    fit_bounds: FLOATS  # (H,), OPM (74), which holds with probability 1 - delta


def fit_bound(budgets: FLOATS, horizon: int, n_machines: int, confidence: float) -> float:
    """Return OPM (74), which bounds Fit_T with probability 1 - ``confidence``, for prices of at most 1."""
    per_slot = budgets / horizon
    chance = math.log(1.0 / confidence) * math.sqrt(budgets.sum())
    spread = math.sqrt(budgets.size) * n_machines * (n_machines + float(per_slot.max())) / float(per_slot.min())
    return chance + spread


def whole_horizon_growth(
    prices: FLOATS,
    rates: FLOATS,
    budgets_per_slot: Sequence[float],
    utility: PowerUtility,
    horizons: Sequence[int],
    *,
    seeds: int,
    confidence: float,
    rng: np.random.Generator,
) -> WholeHorizonGrowth:
    """Play OPM at several horizons, several times each, with jobs that are there from the first slot to the last.

    ``prices`` p_i and ``rates`` theta_i, shape (M,), are in [0, 1]; ``budgets_per_slot`` are B_j / T in credits. Each
    of the ``seeds`` runs at a horizon has a stream of its own. ``confidence`` is delta.
    """
    n_jobs, slots = len(budgets_per_slot), np.array(horizons)
    streams = rng.spawn(seeds * slots.size)
    regrets, fits, bounds = np.empty((seeds, slots.size)), np.empty((seeds, slots.size)), []
    for h, horizon in enumerate(horizons):
        curves = (np.full(n_jobs, utility.weight), np.full(n_jobs, utility.exponent))
        budgets = np.array(budgets_per_slot) * horizon
        jobs = MachineJobs(np.zeros(n_jobs, dtype=np.int64), np.full(n_jobs, horizon), budgets, *curves)
        best = offline_optimum(jobs, prices, rates, tolerance=1e-7)
        for s in range(seeds):
            draws, speeds = streams[h * seeds + s].spawn(2)
            opm = Opm(prices, horizon, confidence, strict_budget=False, rng=draws)
            for j, budget in enumerate(budgets.tolist()):
                opm.add_job(j, horizon, budget, utility)
            regrets[s, h] = regret(jobs, best, _works_of(opm, rates, horizon, speeds, n_jobs))
            fits[s, h] = opm.fit
        bounds.append(fit_bound(budgets, horizon, prices.size, confidence))
    scales = prices.size * np.sqrt(slots * np.log(prices.size * slots / confidence))
    return WholeHorizonGrowth(regrets, fits, scales, np.array(bounds))


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
