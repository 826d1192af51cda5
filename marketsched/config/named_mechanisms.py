"""The contestants of a comparison: mechanisms named in a few words, and the ratio that is proven for each.

A ratio holds in a market of given size; whether the theorem applies there is said with it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from marketsched.agents.setup import MarketSetup
from marketsched.config.configuration import ExponentialPrices, MonteCarlo
from marketsched.config.mechanism_choice import MechanismChoice
from marketsched.config.mechanism_text import mechanism_in
from marketsched.config.scenario import Scenario
from marketsched.config.scenario_file import is_log
from marketsched.mechanisms.errors import InvalidParameterError
from marketsched.mechanisms.limits import SIZES
from marketsched.mechanisms.posted.guarantees import guarantees, price_ends, relaxed_ratio, smallest_supply
from marketsched.mechanisms.registry import name_of

OWN = "scenario"  # the token of the scenario's own mechanism
_OF_THEOREM = ("capacity", "max_concurrency", "max_duration", "max_value", "max_delay")
POSTED = ("exponential", "posted-price")  # names that stand for Algorithm 2


@dataclass(frozen=True, slots=True)
class Promise:
    """OPT / welfare is at most ``alpha`` wherever ``holds``; ``conditions`` says in one line why, or why not."""

    alpha: float | None  # None: no theorem is about this mechanism
    holds: bool
    conditions: str


@dataclass(frozen=True, slots=True)
class NamedMechanism:
    """A mechanism under its label: the scenario with this mechanism."""

    label: str
    scenario: Scenario

    def promise(self, setup: MarketSetup) -> Promise:
        """Return the proven bound on E[OPT] / E[welfare] of this mechanism in this market."""
        choice, workload = self.scenario.mechanism, self.scenario.workload
        if is_log({"workload": {"kind": workload.kind}}) and any(job.signal is None for job in setup.jobs):
            return Promise(None, False, "durations hidden, and announced as estimates: ratios are proven for true laws")
        if not setup.table.revealed:
            return Promise(None, False, "durations hidden: the ratios are proven for revealed durations")
        if self.scenario.owners.misreporting > 0:
            return Promise(None, False, "some owners misreport: the ratios are proven for true reports")
        guarantee = setup.mechanism.statistics().get("guarantee")
        if guarantee is not None:
            limits = ["Lemma E.3 is about the relaxed problem, in which nothing is evicted"]
            if workload.kind == "google-recurring":
                limits.append("its laws were learned, and are not those that jobs are drawn from")
            # OPT at C is at most OPT at (1 - eps) C over 1 - eps.
            alpha = float(guarantee) / min(1.0, 1 - choice.epsilon)
            return Promise(alpha, False, "; ".join(limits))
        if choice.pricing.kind == "stochastic":
            return Promise(None, False, "not all starts were in the program (starts_per_task): no constant is proven")
        drawn = all(job.truth.law.arrivals.size == 1 and job.truth.mass > 1 - 1e-9 for job in setup.jobs)
        return promised_ratio(choice, _Sizes(setup), certain=drawn)


class _Sizes:
    """The limits that a mechanism announces in a market."""

    def __init__(self, setup: MarketSetup) -> None:
        public = setup.public
        self.capacity, self.max_delay = setup.capacity, setup.max_delay
        self.max_concurrency = public.max_concurrency or setup.capacity
        self.max_duration = public.max_duration or setup.horizon
        self.max_value = public.max_value or max(job.truth.value.highest for job in setup.jobs)


def named_mechanisms(scenario: Scenario, tokens: Sequence[str | Callable[..., Any]]) -> list[NamedMechanism]:
    """Return the mechanisms that ``tokens`` name, in their order.

    Parameters
    ----------
    scenario : Scenario
        Rules that a token does not change are the scenario's, where they suit the mechanism.
    tokens : sequence of str or class
        A class or function of one's own (`name_of`), ``name`` or ``name:key=value:key=value``, as
        `marketsched.config.mechanism_text` reads them; ``scenario`` is the scenario's own mechanism.

    Raises
    ------
    InvalidParameterError
        If there is no token, two are equal, one is malformed, or changes a size of the market.
    UnknownNameError
        If there is no such mechanism.
    """
    if isinstance(tokens, str) or callable(tokens) or not tokens:
        raise InvalidParameterError(f"mechanisms = {tokens!r}: expected at least one name, in a list")
    found: list[NamedMechanism] = []
    for token in map(name_of, tokens):
        if any(token == other.label for other in found):
            raise InvalidParameterError(f"mechanism {token!r} is named twice: expected different ones")
        found.append(NamedMechanism(token, _variant(scenario, token)))
    return found


def _variant(scenario: Scenario, token: str) -> Scenario:
    name, changes = mechanism_in(token)
    for key in changes:
        if key in SIZES:
            raise InvalidParameterError(f"mechanism {token!r} changes {key}: expected the same market for all")
    if name == OWN:
        name = scenario.mechanism.name
        if not changes:
            return scenario
    try:
        return scenario.with_mechanism(name, changes)
    except InvalidParameterError as error:
        what = str(error).removeprefix("scenario: ").removeprefix(f"mechanism {name!r}: ")
        raise InvalidParameterError(f"mechanism {token!r}: {what}") from None


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
    own = {name: getattr(choice, name) for name in _OF_THEOREM}
    market = {name: getattr(sizes, name) if size is None else size for name, size in own.items()}
    pricing, (c, d, v) = choice.pricing, (market[name] for name in _OF_THEOREM[1:4])
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
