"""What `Opm` and `GeneralOpm` share: parameters, checked once, those of the theorems, and estimates of rates."""

from __future__ import annotations

import math
from typing import Annotated, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from marketsched.mechanisms.allocation.opm.jobs import FLOOR
from marketsched.mechanisms.allocation.opm.kernels import upper_rates_kernel
from marketsched.mechanisms.allocation.opm.machine_scheduler import MachineScheduler
from marketsched.mechanisms.arrays import float_array
from marketsched.mechanisms.legal import Amount, Count, Finite, OpenShare, Positive, Whole, legal
from marketsched.mechanisms.randomness import generator_of


@legal
def exploration(n_machines: Count, horizon: Count, confidence: OpenShare) -> float:
    """Return gamma = ln(M T / delta) of Theorems 2 and 3."""
    return math.log(n_machines * horizon / confidence)


@legal
def theory_steps(n_machines: Count, horizon: Count) -> tuple[float, float]:
    """Return (alpha, mu) = (1 / (2 sqrt(T)), sqrt(T) / M) of Theorems 2 and 3: primal and dual step."""
    return 0.5 / math.sqrt(horizon), math.sqrt(horizon) / n_machines


class PrimalDual(MachineScheduler):
    """A scheduler with estimated rates, primal and dual steps; parameters and errors as in `Opm`."""

    _name = "opm"
    _most_threads: ClassVar[int] = 1

    @legal
    def __init__(
        self,
        prices: ArrayLike,
        horizon: int,
        confidence: float = 0.05,
        primal_step: float | None = None,
        dual_step: float | None = None,
        strict_budget: bool = True,
        estimate: bool = True,
        rng: np.random.Generator | int | None = None,
        *,
        slack: Annotated[float, Finite("[0, 1)")] = 0.0,
        gamma: Amount | None = None,
        floor: Positive = FLOOR,
        known_rates: ArrayLike | None = None,
        redraw: bool = True,
        threads: Count = 1,
    ) -> None:
        super().__init__(prices, horizon)
        m = self.n_machines
        theory = exploration(m, horizon, confidence)
        self.gamma = theory if gamma is None else gamma
        alpha, mu = theory_steps(m, horizon)
        self.primal_step = Finite("(0, inf)").check("primal_step", alpha if primal_step is None else primal_step)
        self.dual_step = Finite("[0, inf)").check("dual_step", mu if dual_step is None else dual_step)
        self.slack = slack
        self.floor = floor
        self.strict_budget, self.estimate = bool(strict_budget), bool(estimate)
        self.price_scale = max(1.0, float(self.prices.max()))
        self._fixed: NDArray[np.float64] | None = None if self.estimate else np.ones(m)
        self.name = self._name if self.estimate else f"{self._name}-no-estimation"
        if known_rates is not None:
            self._fixed = float_array("known_rates", known_rates, (m,), lowest=0.0, highest=1.0).copy()
            self.name = f"{self._name}-known-rates"
        self._rng, self.redraw = generator_of(rng), bool(redraw)
        self._plays, self._works = np.zeros(m), np.zeros(m)
        self.threads = Whole(1, self._most_threads).check("threads", threads)
        self._prepare()

    def _prepare(self) -> None:
        """Make what a slot works in, once the parameters are known."""

    @property
    def rates(self) -> NDArray[np.float64]:
        """Upper estimates of the service rates from all slots observed so far, OPM (66); shape (M,)."""
        if self._fixed is not None:
            return self._fixed.copy()
        rates = np.empty(self.n_machines)
        upper_rates_kernel(self._works, self._plays, self.gamma, rates)
        return rates
