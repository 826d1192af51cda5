"""What a sweep file says: scenarios, what is changed in them, and the seeds."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Any, Self

from pydantic import BeforeValidator, Field, StrictBool, model_validator

from marketsched.config.strict_yaml import Strict, dump_yaml, validated
from marketsched.mechanisms.errors import InvalidParameterError
from marketsched.mechanisms.ranges import Whole

DEFAULT_SEEDS = 20
LARGEST_SEED = 2**63 - 1  # a whole number of a Parquet column
_seed = Whole(0, LARGEST_SEED)


def _scenario(x: object) -> str | dict[str, Any]:
    if isinstance(x, str) and x:
        return x
    if isinstance(x, Mapping):
        return dict(x)
    raise ValueError("the name of a built-in scenario, a file, or a scenario written out")


def _grid(x: object) -> dict[str, list[Any]]:
    if not isinstance(x, Mapping):
        raise ValueError("a table of keys, each with a list of values")
    return {_key(key): _values(str(key), values) for key, values in x.items()}


def _values(key: str, values: object) -> list[Any]:
    if not isinstance(values, (list, tuple)) or not values:
        raise InvalidParameterError(f"{key}: {values!r}: expected a list of one or more values")
    seen: set[str] = set()
    for value in values:
        _whole(key, value)
        text = dump_yaml(value)
        if text in seen:
            shown = text.removesuffix("...\n").strip()
            raise InvalidParameterError(f"{key}: {shown} is there twice: expected every value once")
        seen.add(text)
    return list(values)


def _whole(key: str, value: object) -> None:
    """Refuse what has no end: YAML can name a part inside itself."""
    try:
        json.dumps(value, default=str)
    except (ValueError, RecursionError):
        raise InvalidParameterError(f"{key}: a value that is nested without end: expected a plain one") from None


def _changes(x: object) -> dict[str, Any]:
    if not isinstance(x, Mapping):
        raise ValueError("a table of keys and values, as in {mechanism.epsilon: 0.1}")
    for key, value in x.items():
        _whole(str(key), value)
    return {_key(key): value for key, value in x.items()}


def _key(key: object) -> str:
    if not isinstance(key, str) or "=" in key or not all(key.split(".")):
        raise InvalidParameterError(f"{key}: expected the place of a value, as in mechanism.epsilon")
    return key


def _seeds(x: object) -> tuple[int, ...]:
    legal = "how many seeds, or a list of different seeds >= 0"
    if isinstance(x, (list, tuple)):
        try:
            found = tuple(_seed(seed) for seed in x)
        except ValueError:
            raise ValueError(legal) from None
        if not found or len(set(found)) < len(found):
            raise ValueError(legal)
        return found
    try:
        return tuple(range(Whole(1, 10**7)(x)))
    except ValueError:
        raise ValueError(legal) from None


class SweepSpec(Strict):
    """Scenarios, changes, seeds.

    Every scenario is run with every entry of ``overrides``, at every point of the ``grid``, with every
    seed: all compare like with like, because all have the same seeds.

    Examples
    --------
    >>> spec = SweepSpec.from_dict({"scenario": "synthetic-pipelines", "seeds": 3,
    ...                             "grid": {"mechanism.epsilon": [0, 0.1]}})
    >>> spec.seeds, len(spec.changes())
    ((0, 1, 2), 2)
    >>> SweepSpec.from_dict({"scenario": "synthetic-pipelines", "sedes": 3})
    Traceback (most recent call last):
    ...
    marketsched.mechanisms.errors.InvalidParameterError: sweep: sedes: unknown key (did you mean 'seeds'?): \
known here are name, description, scenario, scenarios, grid, overrides, seeds, optimum
    """

    name: Annotated[str, Field(min_length=1)] = "sweep"
    description: str = ""
    scenario: Annotated[str | dict[str, Any] | None, BeforeValidator(lambda x: None if x is None else _scenario(x))] = (
        None
    )
    scenarios: tuple[Annotated[str | dict[str, Any], BeforeValidator(_scenario)], ...] = ()
    grid: Annotated[dict[str, list[Any]], BeforeValidator(_grid)] = Field(default_factory=dict)
    overrides: tuple[Annotated[dict[str, Any], BeforeValidator(_changes)], ...] = ()
    seeds: Annotated[tuple[int, ...], BeforeValidator(_seeds)] = tuple(range(DEFAULT_SEEDS))
    optimum: StrictBool = True

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if (self.scenario is None) == (not self.scenarios):
            raise InvalidParameterError("scenario: expected one scenario, or a list of them under scenarios")
        for i, entry in enumerate(self.overrides):
            both = next((key for key in entry if key in self.grid), None)
            if both is not None:
                raise InvalidParameterError(f"overrides[{i}].{both}: is in the grid too: expected it in one of them")
        return self

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], *, source: str = "sweep") -> Self:
        """Return the sweep that ``data`` describes.

        Parameters
        ----------
        data : mapping
            As in a sweep file.
        source : str
            What to call it in an error line.

        Raises
        ------
        InvalidParameterError
            If a key is unknown or missing, or a value is out of range.
        """
        return validated(cls, data, source)

    def bases(self) -> tuple[str | dict[str, Any], ...]:
        """Return the scenarios to start from, by name or written out."""
        return self.scenarios if self.scenario is None else (self.scenario,)

    def changes(self) -> list[dict[str, Any]]:
        """Return what is changed, once for each case: entries of the list in order, the grid inside each.

        The last key of the grid moves fastest.
        """
        found: list[dict[str, Any]] = [dict(entry) for entry in self.overrides] or [{}]
        for key, values in self.grid.items():
            found = [{**changes, key: value} for changes in found for value in values]
        return found

    def size(self) -> int:
        """Return the number of runs."""
        points = len(self.bases()) * max(len(self.overrides), 1) * len(self.seeds)
        for values in self.grid.values():
            points *= len(values)
        return points
