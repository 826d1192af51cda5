"""The proven competitive ratio of a mechanism in a market of given size, and whether the theorem applies."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from marketsched.config.configuration import ExponentialPrices, MonteCarlo
from marketsched.config.mechanism_choice import MechanismChoice
from marketsched.mechanisms.posted.guarantees import guarantees, price_ends, relaxed_ratio, smallest_supply

SIZES = ("capacity", "max_concurrency", "max_duration", "max_value", "max_delay")
POSTED = ("exponential", "posted-price")  # names that stand for Algorithm 2


@dataclass(frozen=True, slots=True)
class Promise:
    """OPT / welfare is at most ``alpha`` wherever ``holds``; ``conditions`` says in one line why, or why not."""

    alpha: float | None  # None: no theorem is about this mechanism
    holds: bool
    conditions: str


def promised_ratio(choice: MechanismChoice, sizes: object, *, certain: bool) -> Promise:
    """Return the proven bound on OPT / welfare, for values in {0} u [1, V_max] and revealed durations.

    Parameters
    ----------
    choice : MechanismChoice
        The mechanism and its rules.
    sizes : object with capacity, max_concurrency, max_duration, max_value and max_delay
        C, c_max, D_max, V_max and S of the market, where the mechanism has no own: say, a `Workload`.
    certain : bool
        Arrivals and durations are known when a job is submitted. Then no estimate of a launch that
        the prices allow is above 0, nothing is ever evicted, and Theorem 5.1 bounds the market
        itself: ``alpha = 4 ln(2 ceiling/floor) / (1 - eps)``, with (21) for the ends of (20). If not,
        Theorem 4.1 is what there is: ``alpha / (1 - 2.4 eps)`` at the capacity of (19).

    Notes
    -----
    Bundle prices (``stochastic``) get no constant here: what (27) bounds is a mean over laws, which
    says nothing about one instance.
    """
    if choice.name not in POSTED or not isinstance(choice.pricing, ExponentialPrices):
        return Promise(None, False, "no theorem bounds the ratio of this mechanism on single instances")
    own = {name: getattr(choice, name) for name in SIZES}
    market = {name: getattr(sizes, name) if size is None else size for name, size in own.items()}
    pricing, (c, d, v) = choice.pricing, (market[name] for name in SIZES[1:4])
    low, high = price_ends(c, d, v, kappa=pricing.kappa, floor=pricing.floor, ceiling=pricing.ceiling)
    faults = []
    if low > 1 / (2 * c * d) * (1 + 1e-12):
        faults.append(f"the floor {low:g} exceeds half the smallest value per node-round")
    if high < v * (1 - 1e-12):
        faults.append(f"the ceiling {high:g} is below V_max = {v:g}, so the hard cap may bind")
    alpha: float | None
    if certain:
        alpha, more = _certain(choice.epsilon, market["capacity"], c, low, high)
    else:
        alpha, more = _uncertain(choice, market, low, high)
    theorem = "Theorem 5.1" if certain else "Theorem 4.1"
    return Promise(alpha, not faults + more, "; ".join(more + faults) or f"all conditions of {theorem} hold")


def _certain(epsilon: float, capacity: int, width: int, low: float, high: float) -> tuple[float, list[str]]:
    """Return alpha of Theorem 5.1 for a market, and which of its conditions fail."""
    supply, needed, faults = (1 - epsilon) * capacity, smallest_supply(width, low, high), []
    if epsilon < 0:
        faults.append(f"epsilon = {epsilon:g} overbooks: Theorem 5.1 needs at least 0")
    if supply < needed * (1 - 1e-12):
        faults.append(f"C' = {supply:g} is below the {needed:.4g} nodes that Theorem 5.1 needs")
    return relaxed_ratio(low, high) / min(1.0, 1 - epsilon), faults


def _uncertain(
    choice: MechanismChoice, market: dict[str, Any], low: float, high: float
) -> tuple[float | None, list[str]]:
    """Return the ratio of Theorem 4.1, and which of its conditions fail."""
    if not 0 < choice.epsilon <= 0.4:
        return None, [f"epsilon = {choice.epsilon:g}: Theorem 4.1 needs a number in (0, 0.4]"]
    oracle, faults = choice.oracle, []
    constants = guarantees(**market, epsilon=choice.epsilon, oracle=oracle.kind, floor=low, ceiling=high)
    if not constants.admissible:
        faults.append(f"C = {market['capacity']} is below the {constants.smallest_capacity} nodes of (19)")
    if choice.threshold != "auto" and not math.isclose(float(choice.threshold), constants.theta):
        faults.append(f"threshold = {choice.threshold}: Theorem 4.1 needs {constants.theta:g}")
    if isinstance(oracle, MonteCarlo) and constants.samples is not None:
        if oracle.refresh != "submission":
            faults.append("kept sample paths: (28) is for paths drawn afresh at each submission")
        if oracle.samples < constants.samples:
            faults.append(f"{oracle.samples} samples are fewer than the {constants.samples} of (28)")
    return constants.nominal_ratio, faults
