"""OPM and OPS: machines of unknown, fluctuating speed, given to jobs with budgets and deadlines.

In slot t, Algorithm 1 of the OPM paper (OPS; with several jobs OPM, Section V) estimates the service rates by upper
confidence bounds, OPM (66); takes a dual step, OPM (73): what a job's fractional shares cost above its budget per slot
raises its multiplier; takes a primal step, OPM (69), and projects every machine's shares, P4; draws one job per machine
from the shares, OPM (72); and runs a job on what it drew, as long as its budget lasts.

The gradient of the Lagrangian OPM (68) at slot t - 1 is ``rate_i * f_j'(average) - lambda_j * p_i``,
the average being the job's estimated fractional work per slot so far: the factors t - a_j cancel.
As f_j' may be infinite at 0, averages below ``floor`` count as ``floor``. A job begins with shares 0 and
multiplier 0. With a single job OPM (20), (18), (19) and (21) are what is left.

The theory wants prices of at most 1. Prices above are divided by the highest one in the primal
and dual steps, budgets alike (``price_scale``); what a job spends is always counted in credits.
"""

from __future__ import annotations

from threading import Thread

import numpy as np
from numpy.typing import NDArray

from marketsched.mechanisms.allocation.opm.jobs import JobOffer
from marketsched.mechanisms.allocation.opm.kernels import (
    COST,
    COST_BEFORE,
    QUAD,
    WORK,
    Machines,
    dual_kernel,
    execute_kernel,
    learn_kernel,
    step_kernel,
    upper_rates_kernel,
)
from marketsched.mechanisms.allocation.opm.primal_dual import PrimalDual
from marketsched.mechanisms.allocation.opm.projections import from_blocks, lanes_of

WORTH_A_THREAD = 200_000  # jobs times machines: a slot of about 0.2 ms; a thread of its own costs less than half of it


class Opm(PrimalDual):
    """Online primal-dual scheduling with sampling, for several jobs (OPM).

    Parameters
    ----------
    prices : array_like of float, shape (M,)
        p_i, credits for one slot of a machine; >= 0. Above 1, see the module.
    horizon : int
        T, last slot.
    confidence, gamma : float, float or None
        delta, and the weight of exploration; None: ln(M T / delta).
    primal_step, dual_step : float or None
        alpha and mu; None: 1 / (2 sqrt(T)) and sqrt(T) / M, as in Theorem 3.
    strict_budget : bool
        Whether a job stops before its budget is exceeded (as in the paper's evaluation), or budgets
        are kept by the multipliers alone; see `fit`.
    estimate : bool
        False: every rate counts as 1, the paper's baseline without estimation.
    rng : Generator, int or None
        For the draws: one uniform number per machine and slot.
    slack : float
        epsilon: share of the budget per slot that the multipliers keep back.
    floor : float
        Work per slot below which the slope of a utility is taken as at this.
    known_rates : array_like of float, shape (M,), or None
        theta, in [0, 1]: used in place of estimates. For references only.
    redraw : bool
        False: the first slot's uniform numbers are used in every slot. A slot's draws have the same law, and a
        machine changes its job only where shares do.
    threads : int
        1, or 2: half of the machines each, if jobs times machines are at least 200,000. The results
        are the same to the last bit.

    Examples
    --------
    >>> from marketsched.mechanisms.allocation.opm.jobs import PowerUtility
    >>> opm = Opm([0.5, 0.5, 0.9], horizon=100, primal_step=1.0, rng=1)
    >>> opm.add_job(0, deadline=100, budget=60.0, utility=PowerUtility(2.0, 0.5))
    >>> opm.allocate()
    array([0, 0, 0])
    >>> opm.update([0.9, 0.2, 0.7])
    """

    _most_threads = 2

    @property
    def open_fractional(self) -> NDArray[np.float64]:
        """Shares of the last allocated slot of the jobs of `open_jobs`, shape (jobs, M)."""
        return from_blocks(self._blocks, self._jobs.count, self.n_machines)

    def _prepare(self) -> None:
        lanes = lanes_of(self.n_machines)
        shape = (-(-self.n_machines // lanes), lanes)
        self._blocks = np.zeros((shape[0], QUAD, lanes))
        self._sums = np.zeros((2, 2, QUAD, lanes // 4))  # of each half of the blocks: costs, works
        self._steps = np.zeros((2, QUAD))
        before, rates, prices, low, uniforms = (np.zeros(shape) for _ in range(5))
        self._machines = Machines(before, rates, prices, low, uniforms, np.zeros(shape, dtype=np.int64))
        self._flat(self._machines.prices)[:] = self.prices / self.price_scale
        self._flat(self._machines.rates)[:] = self.rates
        if not self.redraw:
            self._rng.random(out=self._flat(self._machines.uniforms))

    def _flat(self, blocks: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the machines of an array (blocks, lanes) as a view, shape (M,)."""
        return blocks.reshape(-1)[: self.n_machines]

    def _decide(self) -> None:
        table, n, machines = self._jobs.table, self._jobs.count, self._machines
        machines.before[:] = machines.rates  # the gradient is that of slot t - 1
        if self._fixed is None:
            upper_rates_kernel(self._works, self._plays, self.gamma, self._flat(machines.rates))
        gains, charges = self._steps
        dual_kernel(
            table, n, self.slot, 1.0 / self.price_scale, self.dual_step, self.primal_step, self.slack, self.floor,
            gains, charges
        )  # fmt: skip
        if self.redraw:
            self._rng.random(out=self._flat(machines.uniforms))
        self._step(n, gains, charges)
        if n:
            table[COST_BEFORE, :n] = table[COST, :n]
            table[COST, :n], planned = self._sums[0, :, :n, 0] + self._sums[1, :, :n, 0]
            table[WORK, :n] += planned
        drawn = machines.rows.reshape(-1)[: self.n_machines]
        if execute_kernel(drawn, self.prices, self._cheapest, table, n, self.strict_budget, self._decision):
            self._jobs.mark_done()

    def _step(self, n: int, gains: NDArray[np.float64], charges: NDArray[np.float64]) -> None:
        """Step, project and draw; in two halves of the machines, whether on one thread or on two."""
        half = -(-self._blocks.shape[0] // 2)
        halves = [
            (begin, end, self._blocks, n, gains, charges, self._machines, sums)
            for begin, end, sums in zip((0, half), (half, self._blocks.shape[0]), self._sums, strict=True)
        ]
        other = None
        if self.threads > 1 and n * self.n_machines >= WORTH_A_THREAD:
            other = Thread(target=step_kernel, args=halves[1])
            other.start()
        step_kernel(*halves[0])
        if other is None:
            step_kernel(*halves[1])
        else:
            other.join()

    def _learn(self, work: NDArray[np.float64]) -> None:
        learn_kernel(self._decision, work, self._plays, self._works)

    def _add(self, offer: JobOffer) -> int:
        label = super()._add(offer)
        rows = self._jobs.capacity
        if rows > self._blocks.shape[1]:
            more = np.zeros((self._blocks.shape[0], rows, self._blocks.shape[2]))
            more[:, : self._blocks.shape[1]] = self._blocks
            self._blocks, self._steps = more, np.zeros((2, rows))
            self._sums = np.zeros((2, 2, rows, more.shape[2] // 4))
        return label

    def _release(self) -> None:
        for into, last in self._jobs.release(self.slot):
            self._blocks[:, into] = self._blocks[:, last]
            self._blocks[:, last] = 0.0
