"""Bounds of one instance: what its best schedule is worth, and what a mechanism misses of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from os import PathLike
from typing import Any

import numpy as np

from marketsched.config.scenario import Scenario
from marketsched.mechanisms.auctions.flat_price import best_first_come, first_come_welfare
from marketsched.mechanisms.errors import InvalidParameterError
from marketsched.mechanisms.legal import Amount, Seed, legal
from marketsched.play.hindsight import realised
from marketsched.play.optimum import optimum_bracket
from marketsched.play.running import run
from marketsched.relaxed_lp import offline_bound


@dataclass(frozen=True)
class InstanceBounds:
    """Bounds of one instance, credits; no schedule of its jobs is worth more than ``high``.

    Attributes
    ----------
    low, high : float
        Between them lies the best schedule in hindsight; ``kind`` is as of `Bracket`.
    relaxed : float
        (11): what no schedule exceeds in expectation, by the laws of the jobs alone.
    first_come, best_flat : float
        First come, first served at price 0, and at the best flat price, durations known.

    Examples
    --------
    See `instance_bounds`.
    """

    name: str
    low: float
    high: float
    kind: str
    relaxed: float
    first_come: float
    best_flat: float
    _market: tuple[Scenario, int, Any] = field(repr=False)

    def __repr__(self) -> str:
        exact = f"{self.high:,.6g} ({self.kind})" if self.low == self.high else f"{self.low:,.6g} to {self.high:,.6g}"
        more = f"(11) {self.relaxed:,.6g}, first come {self.first_come:,.6g}, at its best price {self.best_flat:,.6g}"
        return f"{self.name}: the best schedule is worth {exact} credits\n{more}"

    def ratio(self, mechanism: str | Callable[..., Any]) -> tuple[float, float]:
        """Return the interval that holds OPT over the welfare of a mechanism, by name or by its class."""
        scenario, seed, data = self._market
        welfare = run(scenario, seed, mechanism=mechanism, data=data).outcome["welfare"]
        return (max(1.0, self.low / welfare), self.high / welfare) if welfare > 0 else (np.inf, np.inf)

    def figure(self, *mechanisms: str | Callable[..., Any]) -> Any:
        """Return a picture (a figure of matplotlib): the bounds, and beside them the welfare of mechanisms."""
        from marketsched.results.instance_figure import instance_figure  # matplotlib

        own = {getattr(each, "__name__", str(each)): self.high / self.ratio(each)[1] for each in mechanisms}
        bars = {"(11), in expectation": self.relaxed, "bound": self.high, "best schedule found": self.low}
        bars |= {"first come, best price": self.best_flat, "first come": self.first_come}
        return instance_figure(self.name, bars, own)


@legal
def instance_bounds(
    scenario: Scenario | str | PathLike[str] | Mapping[str, Any],
    seed: Seed = 0,
    *,
    seconds: Amount = 10.0,
    data: str | PathLike[str] | None = None,
) -> InstanceBounds:
    """Return the bounds of the jobs that `marketsched.run` plays with this seed.

    Parameters
    ----------
    scenario, seed, data
        As of `run`; a market on identical nodes.
    seconds : float
        How long the exact optimum may take.

    Raises
    ------
    InvalidParameterError
        If the scenario is no market on identical nodes.

    Examples
    --------
    >>> bounds = instance_bounds("stochastic-mix", seconds=0)
    >>> low, high = bounds.ratio("first-come")
    >>> 1 <= low <= high < 2
    True
    """
    base = Scenario.of(scenario, kind="market")
    setup = base.setup(np.random.default_rng(np.random.SeedSequence(seed)), data=data)
    if setup.cluster is not None:
        raise InvalidParameterError(place="scenario", value=base.name, legal="a market on identical nodes")
    jobs, capacity, horizon = realised(setup), setup.capacity, setup.horizon
    found = optimum_bracket(jobs, capacity, seconds=seconds)
    relaxed = offline_bound([job.truth for job in setup.jobs], capacity, horizon, max_delay=setup.max_delay)
    first_come = first_come_welfare(jobs, capacity, horizon, 0.0).welfare
    best_flat = best_first_come(jobs, capacity, horizon).welfare
    return InstanceBounds(
        base.name, found.low, found.high, found.kind, relaxed.dual_value, first_come, best_flat, (base, seed, data)
    )
