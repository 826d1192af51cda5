"""What builds the mechanism of a scenario for one workload, again and again."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from functools import cached_property
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np

from marketsched.config.yesterday import yesterday
from marketsched.mechanisms.mechanism import Mechanism
from marketsched.mechanisms.statement_law import StatementLaw

if TYPE_CHECKING:
    from marketsched.config.scenario import Scenario  # pydantic, which a market built by hand needs not
    from marketsched.mechanisms.bid_price.past import PastLog
    from marketsched.worlds.workload import Workload


@dataclass(frozen=True)
class ScenarioMechanism:
    """Builds the mechanism of a scenario for one workload."""

    scenario: Scenario
    workload: Workload
    laws_rng: np.random.Generator
    data: str | PathLike[str] | None

    def __call__(self, rng: np.random.Generator) -> Mechanism:
        """Return a fresh mechanism, whose own draws come from ``rng``."""
        return self.scenario.mechanism.build(self.workload, rng, lambda: self._laws, self._past)

    @cached_property
    def _laws(self) -> list[StatementLaw]:
        return list(self.scenario.workload.statement_laws(self.workload, copy.deepcopy(self.laws_rng), self.data))

    def _past(self, what: Any) -> PastLog:
        """Return the log that a ``history`` names; it is made once."""
        if repr(what) not in self._logs:
            self._logs[repr(what)] = yesterday(
                what, self.scenario.mechanism, self.workload, self.data, read=type(self.scenario).from_dict
            )
        return self._logs[repr(what)]

    @cached_property
    def _logs(self) -> dict[str, PastLog]:
        return {}


def mechanism_of(
    scenario: Scenario, seed: int, data: str | PathLike[str] | None, workload: Workload | None = None
) -> ScenarioMechanism:
    """Return what builds the mechanism of a run, and knows its workload, which may have been built before."""
    rng = np.random.default_rng(np.random.SeedSequence(seed)).spawn(3)[0]  # the first of three, as in `Scenario.setup`
    laws_rng = copy.deepcopy(rng)
    built = scenario.workload.build(rng, data) if workload is None else workload
    return ScenarioMechanism(scenario, built, laws_rng, data)
