"""The mechanism of a scenario: its name and its rules, and what becomes of them under another name."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from pydantic import Field, field_validator, model_validator

from marketsched.config.configuration import Count, Positive, PostedPrices, Rules
from marketsched.mechanisms.errors import InvalidParameterError

if TYPE_CHECKING:
    from marketsched.mechanisms.mechanism import Mechanism
    from marketsched.mechanisms.statement_law import StatementLaw
    from marketsched.worlds.workload import Workload

SIZES = ("capacity", "horizon", "max_concurrency", "max_duration", "max_value", "max_delay")

# Kinds of prices that a mechanism of the package takes, its own first; a user's mechanism takes any.
_KINDS = {
    "exponential": ("exponential",),
    "first-come": ("exponential", "posted"),  # exponential: nothing was said, the price is 0
    "reduction": ("exponential", "posted", "stochastic"),
    "stochastic": ("stochastic",),
}


class MechanismChoice(Rules):
    """A mechanism by name, with its rules. Sizes left out are those of the workload.

    Prices left out are those the name stands for. ``parameters`` go to the mechanism as they are:
    they are for mechanisms that take others than the replay contract's.
    """

    name: str = "reduction"
    capacity: Count | None = None
    horizon: Count | None = None
    max_concurrency: Count | None = None
    max_duration: Count | None = None
    max_value: Positive | None = None
    max_delay: Count | None = None
    parameters: dict[str, Any] = Field(default_factory=dict)

    @model_validator(mode="before")
    @classmethod
    def _prices_of_the_name(cls, data: Any) -> Any:
        if isinstance(data, Mapping) and data.get("name") == "stochastic" and "pricing" not in data:
            return {**data, "pricing": {"kind": "stochastic"}}
        return data

    @field_validator("name")
    @classmethod
    def _registered(cls, name: str) -> str:
        from marketsched.mechanisms.registry import mechanism_names

        if name not in mechanism_names():
            raise ValueError(f"one of {', '.join(mechanism_names())}")
        return name

    @model_validator(mode="after")
    def _prices_it_takes(self) -> Self:
        kinds = _KINDS.get(self.name, (self.pricing.kind,))
        if self.pricing.kind not in kinds:
            legal = " or ".join(map(repr, kinds))
            raise InvalidParameterError(
                f"pricing.kind = {self.pricing.kind!r}: expected {legal} with the name {self.name!r}"
            )
        return self

    def build(
        self,
        workload: Workload,
        rng: np.random.Generator,
        laws: Callable[[], Sequence[StatementLaw]] | None = None,
    ) -> Mechanism:
        """Return a fresh mechanism for ``workload``.

        Parameters
        ----------
        workload : Workload
            Gives the sizes that are left out here.
        rng : Generator
            Of the oracle's draws.
        laws : function that returns laws, optional
            What is known of the jobs in advance; called only if prices are stochastic.

        Raises
        ------
        InvalidParameterError
            If the mechanism refuses a parameter; if prices are stochastic and a job hides its
            duration, or there are no laws.
        """
        from marketsched.mechanisms.registry import get_mechanism

        own = {name: getattr(self, name) for name in SIZES}
        sizes = {name: getattr(workload, name) if size is None else size for name, size in own.items()}
        parameters = {**sizes, **self.rule_parameters(), "rng": rng, **self.parameters}
        if self.pricing.kind == "stochastic" and laws is not None:
            _check_revealed(workload)
            parameters = {"laws": laws(), **parameters}
        try:
            return get_mechanism(self.name, **parameters)
        except InvalidParameterError as error:
            raise InvalidParameterError(f"mechanism: {error}") from None

    def under_another_name(self, name: str, changes: Mapping[str, Any]) -> dict[str, Any]:
        """Return, as plain unchecked data, these rules with another mechanism and ``changes`` made to them.

        Sizes, epsilon, threshold, oracle and eviction stay. Prices stay if mechanism ``name`` takes
        them, otherwise they are those that ``name`` stands for. ``parameters`` belong to the old name.

        Parameters
        ----------
        name : str
            Of the other mechanism; the same name: everything stays.
        changes : mapping
            Keys as in a scenario's ``mechanism``, dotted where they lie inside one, as in
            ``{"pricing.price_end": "high"}``; they win.

        Raises
        ------
        InvalidParameterError
            If a dotted key leads into something that has no parts.
        """
        own = self.model_dump(mode="python")
        data = {key: copy.deepcopy(value) for key, value in own.items() if value is not None}
        data |= self.rule_parameters() | {"name": name}
        if name != self.name:
            data.pop("parameters")
            if not self._prices_suit(name):
                data["pricing"] = {"kind": _KINDS.get(name, ("exponential",))[0]}
        for path, value in changes.items():
            *above, last = path.split(".")
            here: Any = data
            for step in above:
                here = here.setdefault(step, {}) if isinstance(here, dict) else None
            if not isinstance(here, dict):
                raise InvalidParameterError(f"mechanism.{path}: expected a key of the mechanism, or a part of one")
            here[last] = copy.deepcopy(value)
        return data

    def _prices_suit(self, name: str) -> bool:
        if name == "first-come":  # knows one flat price; a curve is not its own
            return isinstance(self.pricing, PostedPrices) and len(set(self.pricing.prices)) == 1
        return self.pricing.kind in _KINDS.get(name, ("exponential", "posted"))


def _check_revealed(workload: Workload) -> None:
    for job in workload.jobs:
        if not job.truth.revealed:
            raise InvalidParameterError(
                f"workload: job {job.name!r} hides its duration: with stochastic prices expected durations that are "
                "revealed at arrival (Section 8)"
            )
