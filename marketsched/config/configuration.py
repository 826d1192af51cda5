"""The typed parts that a scenario and a replay configuration share: prices, oracle, market rules."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, StrictBool, field_validator, model_validator

from marketsched.config.strict_yaml import Strict, number, whole
from marketsched.mechanisms.errors import InvalidParameterError

Count = Annotated[int, BeforeValidator(whole(1))]
Amount = Annotated[float, BeforeValidator(number("[0, inf)"))]
Positive = Annotated[float, BeforeValidator(number("(0, inf)"))]
Share = Annotated[float, BeforeValidator(number("[0, 1]"))]
PositiveShare = Annotated[float, BeforeValidator(number("(0, 1]"))]
BelowOne = Annotated[float, BeforeValidator(number("(-inf, 1)"))]


class ExponentialPrices(Strict):
    """Algorithm 3: the price of a slot grows exponentially with its committed load.

    ``floor`` and ``ceiling`` replace the two ends of the curve, in credits per node and round.
    """

    kind: Literal["exponential"]
    kappa: PositiveShare = 1.0
    floor: Positive | None = None
    ceiling: Positive | None = None

    @model_validator(mode="after")
    def _ends_in_order(self) -> Self:
        if self.floor is not None and self.ceiling is not None and self.ceiling <= self.floor:
            raise InvalidParameterError(f"ceiling = {self.ceiling!r}: expected a number above the floor {self.floor!r}")
        return self


class PostedPrices(Strict):
    """A fixed price per node and round: round 1 first, the last one holds on."""

    kind: Literal["posted"]
    prices: Annotated[tuple[Amount, ...], Field(min_length=1)]


class StochasticPrices(Strict):
    """The bundle menu of laws known in advance; the workload says which laws (docs/scenarios.md).

    ``price_end`` is the end of (24) that is charged. ``starts_per_task`` keeps the linear program
    small, at a price: see `StochasticPricing`, which also explains ``widen``.
    """

    kind: Literal["stochastic"]
    price_end: Literal["low", "high"] = "low"
    starts_per_task: Count | None = None
    widen: StrictBool = True


class Exact(Strict):
    """The exact oracle; its cost grows with the number of joint outcomes."""

    kind: Literal["exact"]


def _refresh(x: object) -> str | float:
    if isinstance(x, str) and x in ("submission", "round"):
        return x
    try:
        return number("[0, 1]")(x)
    except ValueError:
        raise ValueError("'submission', 'round' or a share in [0, 1]") from None


class MonteCarlo(Strict):
    """The sampling oracle; ``refresh`` says how long its paths are kept, None leaves it to the oracle.

    At every ``probe_every``-th submission the bias of the kept paths is measured against fresh ones.
    """

    kind: Literal["monte-carlo"]
    samples: Count = 1000
    refresh: Annotated[str | float | None, BeforeValidator(lambda x: None if x is None else _refresh(x))] = None
    probe_every: Count | None = None


Pricing = Annotated[ExponentialPrices | PostedPrices, Field(discriminator="kind")]
AnyPricing = Annotated[ExponentialPrices | PostedPrices | StochasticPrices, Field(discriminator="kind")]
Oracle = Annotated[Exact | MonteCarlo, Field(discriminator="kind")]


def _threshold(x: object) -> str | float:
    if x == "auto" and isinstance(x, str):
        return x
    try:
        return number("[0, 1]")(x)
    except ValueError:
        raise ValueError("'auto' or a number in [0, 1]") from None


class Rules(Strict):
    """What a posted-price mechanism needs beside the size of its market."""

    epsilon: BelowOne = 0.0
    threshold: Annotated[str | float, BeforeValidator(_threshold)] = 0.0
    pricing: AnyPricing = ExponentialPrices(kind="exponential")
    oracle: Oracle = Exact(kind="exact")
    eviction: Literal["all", "running"] = "all"

    def rule_parameters(self) -> dict[str, Any]:
        """Return the rules as plain data, as ``get_mechanism`` takes them."""
        data = self.model_dump(include=set(Rules.model_fields))
        for part in ("pricing", "oracle"):
            data[part] = {key: value for key, value in data[part].items() if value is not None}
        return data


class ReplayConfig(Rules):
    """The configuration of ``marketsched replay``: every key of the replay contract, no other."""

    mechanism: str = "reduction"
    pricing: Pricing = ExponentialPrices(kind="exponential")  # a log brings no laws for stochastic prices
    capacity: Count
    max_concurrency: Count
    max_duration: Count
    max_value: Positive
    max_delay: Count
    horizon: Count
    seed: Annotated[int, BeforeValidator(whole(0))] = 0

    @field_validator("mechanism")
    @classmethod
    def _registered(cls, name: str) -> str:
        from marketsched.mechanisms.registry import mechanism_names

        if name not in mechanism_names():
            raise ValueError(f"one of {', '.join(mechanism_names())}")
        return name
