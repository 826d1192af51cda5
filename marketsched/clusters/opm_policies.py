"""The schedulers of budgeted jobs that an OPM scenario names, and how one is made."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import BeforeValidator, StrictBool

from marketsched.clusters.policies import PolicyRules
from marketsched.config.configuration import Count, Positive
from marketsched.config.strict_yaml import number

if TYPE_CHECKING:
    from marketsched.mechanisms.allocation.slot_loop import Policy


@dataclass(frozen=True, slots=True)
class KnownMachines:
    """What schedulers are told: prices, the last slot, and a stream for their draws.

    ``rates``, the true mean rates, are for references alone.
    """

    prices: NDArray[np.float64]
    horizon: int
    rates: NDArray[np.float64]
    rng: np.random.Generator


def _theory_or(interval: str) -> BeforeValidator:
    check = number(interval)

    def read(x: object) -> str | float:
        if isinstance(x, str) and x == "theory":
            return x
        try:
            return check(x)
        except ValueError:
            raise ValueError(f"'theory' or a finite number in {interval}") from None

    return BeforeValidator(read)


def _own(x: str | float) -> float | None:
    return None if isinstance(x, str) else x


class OpmRules(PolicyRules):
    """OPM. ``theory`` stands for the values of Theorem 3 in the OPM paper.

    ``estimate=false`` counts every rate as 1, ``known_rates=true`` uses the true mean rates.
    """

    knows_horizon: ClassVar[bool] = True

    primal_step: Annotated[str | float, _theory_or("(0, inf)")] = "theory"
    dual_step: Annotated[str | float, _theory_or("[0, inf)")] = "theory"
    gamma: Annotated[str | float, _theory_or("[0, inf)")] = "theory"
    confidence: Annotated[float, BeforeValidator(number("(0, 1)"))] = 0.05
    slack: Annotated[float, BeforeValidator(number("[0, 1)"))] = 0.0
    floor: Positive = 0.01
    strict_budget: StrictBool = True
    estimate: StrictBool = True
    known_rates: StrictBool = False
    threads: Count = 1

    def build(self, known: KnownMachines) -> Policy:
        """Return the scheduler in its first slot."""
        from marketsched.mechanisms.allocation import Opm

        return Opm(
            known.prices,
            known.horizon,
            self.confidence,
            _own(self.primal_step),
            _own(self.dual_step),
            self.strict_budget,
            self.estimate,
            known.rng,
            slack=self.slack,
            gamma=_own(self.gamma),
            floor=self.floor,
            known_rates=known.rates if self.known_rates else None,
            threads=self.threads,
        )


class FairRules(PolicyRules):
    """Machines shared equally among the jobs whose budget has not run out."""

    def build(self, known: KnownMachines) -> Policy:
        """Return the scheduler in its first slot."""
        from marketsched.mechanisms.allocation import FairScheduler

        return FairScheduler(known.prices, known.horizon)


class DeadlineRules(PolicyRules):
    """As many machines as it can pay for to the job with the closest deadline, then to the next."""

    def build(self, known: KnownMachines) -> Policy:
        """Return the scheduler in its first slot."""
        from marketsched.mechanisms.allocation import DeadlineAware

        return DeadlineAware(known.prices, known.horizon)


class StateSeeingRules(PolicyRules):
    """The fair scheduler that is shown which machines are available: an upper reference, no rival."""

    def build(self, known: KnownMachines) -> Policy:
        """Return the scheduler in its first slot."""
        from marketsched.mechanisms.allocation import StateSeeingFair

        return StateSeeingFair(known.prices, known.horizon)


MachineRulesOf = OpmRules | FairRules | DeadlineRules | StateSeeingRules

OPM_POLICIES: dict[str, type[PolicyRules]] = {
    "opm": OpmRules,
    "fair": FairRules,
    "deadline-aware": DeadlineRules,
    "state-seeing-fair": StateSeeingRules,
}
