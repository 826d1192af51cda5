"""The contestants of a comparison: mechanisms named in a few words, and the guarantees of each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from marketsched.agents.setup import MarketSetup
from marketsched.config.mechanism_text import mechanism_in
from marketsched.config.promised_ratio import Promise, promised_ratio
from marketsched.config.scenario import Scenario
from marketsched.config.scenario_file import is_log
from marketsched.mechanisms.errors import InvalidParameterError
from marketsched.mechanisms.limits import SIZES

OWN = "scenario"  # the token of the scenario's own mechanism


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


def named_mechanisms(scenario: Scenario, tokens: Sequence[str]) -> list[NamedMechanism]:
    """Return the mechanisms that ``tokens`` name, in their order.

    Parameters
    ----------
    scenario : Scenario
        Rules that a token does not change are the scenario's, where they suit the mechanism.
    tokens : sequence of str
        ``name`` or ``name:key=value:key=value``, as `marketsched.config.mechanism_text` reads them; ``scenario`` is
        the scenario's own mechanism.

    Raises
    ------
    InvalidParameterError
        If there is no token, two are equal, one is malformed, or changes a size of the market.
    UnknownNameError
        If there is no such mechanism.
    """
    if isinstance(tokens, str) or not tokens:
        raise InvalidParameterError(f"mechanisms = {tokens!r}: expected at least one name, in a list")
    found: list[NamedMechanism] = []
    for token in tokens:
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
        raise InvalidParameterError(f"mechanism {token!r}: {error}") from None
