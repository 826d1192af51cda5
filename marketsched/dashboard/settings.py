"""The dashboard's controls: typed texts, read into settings and applied to a scenario."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError, ValidationInfo, field_validator

from marketsched.agents.lies import KINDS
from marketsched.agents.lies.base import Number
from marketsched.config.owner_mix import LIES
from marketsched.config.scenario import Scenario
from marketsched.mechanisms.errors import InvalidParameterError
from marketsched.mechanisms.registry import mechanism_names

LONGEST_SEEN = 24  # characters of a typed text in a message
Percent = Annotated[float, Field(ge=0, le=100)]

Form = dict[str, str]  # control: its text


class Settings(BaseModel):
    """The market to play; ``amount`` is in the unit of the lie, and ``rounds``, per step, is no part of the market."""

    model_config = ConfigDict(frozen=True, allow_inf_nan=False)

    mechanism: str
    capacity: Annotated[int, Field(ge=1, le=1_000_000)] | None  # nodes; None: the scenario's number
    load: Annotated[float, Field(ge=1, le=400)]  # jobs, per cent of the scenario's
    liars: Percent  # of the owners
    lie: str
    amount: float
    seed: Annotated[int, Field(ge=0, le=2**63 - 1)]
    rounds: Annotated[int, Field(ge=1, le=1_000)]

    @field_validator("mechanism", "lie")
    @classmethod
    def _listed(cls, name: str, info: ValidationInfo) -> str:
        legal = tuple(LIES) if info.field_name == "lie" else mechanism_names()
        if name not in legal:
            raise ValueError(f"expected one of {', '.join(legal)}")
        return name

    @field_validator("amount")
    @classmethod
    def _of_the_lie(cls, amount: float, info: ValidationInfo) -> float:
        own = amount_of(info.data["lie"]) if "lie" in info.data else None
        try:
            return amount if own is None else own.checked("amount", int(amount) if own.whole else amount)
        except InvalidParameterError as error:
            raise ValueError(f"expected {error.legal}") from None


def first_form(scenario: Scenario, seed: int) -> Form:
    """Return the initial values of the controls: the scenario as it is."""
    strategy = scenario.owners.strategy
    kind = KINDS[strategy.kind].kind if strategy.kind in KINDS else ""  # not of one that learns
    lie = kind if kind in LIES else "scale-value"
    own = getattr(strategy, amount_of(lie).name, None)
    capacity = scenario.mechanism.capacity
    return {
        "mechanism": scenario.mechanism.name,
        "capacity": "" if capacity is None else str(capacity),
        "load": "100",
        "liars": f"{100 * scenario.owners.misreporting:g}",
        "lie": lie,
        "amount": f"{LIES[lie].telling:g}" if own is None else f"{own:g}",
        "seed": str(seed),
        "rounds": "4",
    }


def read_form(form: Mapping[str, str]) -> tuple[Settings | None, dict[str, str]]:
    """Return the settings, None if a control has an illegal value; and by control its legal values."""
    texts = {control: str(form.get(control) or "").strip() or None for control in Settings.model_fields}
    try:
        return Settings.model_validate(texts), {}
    except ValidationError as error:
        return None, {str(each["loc"][0]): _fault(each["msg"], each["input"]) for each in error.errors()}


def _fault(message: str, text: object) -> str:
    """Return what was typed, shortened, and the legal values."""
    seen = "nothing" if text is None else repr(str(text)[:LONGEST_SEEN])
    return f"{seen}: {message.removeprefix('Value error, ').replace('Input should be', 'expected', 1)}"


def apply(settings: Settings, base: Scenario) -> Scenario:
    """Return ``base`` under these settings; the load is not in it, see `marketsched.dashboard.session.scaled_jobs`.

    Raises InvalidParameterError if the settings do not go together with the scenario.
    """
    data = base.with_mechanism(settings.mechanism).to_dict()
    if settings.capacity is None:
        data["mechanism"].pop("capacity", None)
    else:
        data["mechanism"]["capacity"] = settings.capacity
    own = amount_of(settings.lie)
    amount = int(settings.amount) if own.whole else settings.amount
    data["owners"] = {
        "misreporting": settings.liars / 100,
        "strategy": {"kind": settings.lie, own.name: amount},
    }
    return Scenario.from_dict(data, source="dashboard")


def amount_of(lie: str) -> Number:
    """Return the number of a lie that the control ``amount`` holds."""
    return next(iter(LIES[lie].numbers().values()))
