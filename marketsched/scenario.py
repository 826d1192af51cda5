"""Scenarios: what to run, as plain typed data that reads from YAML and writes back to it.

A scenario names a workload (whose jobs, with what limits), a mechanism and how owners report. The
whole scenario is checked before anything is built; what is wrong with it is said in one line that
names the place in the file, what was seen, and what is legal.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from importlib.resources import files
from importlib.resources.abc import Traversable
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Self

import numpy as np
from pydantic import BeforeValidator, Field, StrictBool

from marketsched.job_list import JobList
from marketsched.mechanism_choice import MechanismChoice
from marketsched.mechanisms.errors import InvalidParameterError, UnknownNameError
from marketsched.mixtures import Mixtures
from marketsched.owner_mix import OwnerMix
from marketsched.strict_yaml import Strict, dump_yaml, number, parse_yaml, read_yaml, validated
from marketsched.trace_workloads import GoogleRecurring, SyntheticPipelines

if TYPE_CHECKING:
    from marketsched.agents.setup import MarketSetup

AnyWorkload = Annotated[GoogleRecurring | SyntheticPipelines | JobList | Mixtures, Field(discriminator="kind")]


def _expected(x: object) -> tuple[float, float]:
    """Read an expected figure: a number, or [mean, standard deviation]."""
    pair = x if isinstance(x, (list, tuple)) else [x, 0.0]
    if len(pair) != 2:
        raise ValueError("a number, or [mean, standard deviation]")
    return number("(-inf, inf)")(pair[0]), number("[0, inf)")(pair[1])


class Scenario(Strict):
    """Everything that determines a run but its seed.

    Examples
    --------
    >>> scenario = Scenario.load("synthetic-pipelines")
    >>> scenario.name, scenario.workload.kind, scenario.mechanism.name
    ('synthetic-pipelines', 'synthetic-pipelines', 'reduction')
    >>> Scenario.from_dict({"name": "x", "workload": {"kind": "synthetic-pipelines", "capacity": 1}})
    Traceback (most recent call last):
    ...
    marketsched.mechanisms.errors.InvalidParameterError: scenario: workload.capacity = 1: expected a whole number >= 2
    """

    name: Annotated[str, Field(min_length=1)]
    description: str = ""
    workload: AnyWorkload
    mechanism: MechanismChoice = MechanismChoice()
    owners: OwnerMix = OwnerMix()
    resubmit: StrictBool = False
    expected: dict[str, Annotated[tuple[float, float], BeforeValidator(_expected)]] = Field(default_factory=dict)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], *, source: str = "scenario") -> Self:
        """Return the scenario that ``data`` describes.

        Parameters
        ----------
        data : mapping
            As in a scenario file.
        source : str
            What to call it in an error line.

        Raises
        ------
        InvalidParameterError
            If a key is unknown or missing, or a value is out of range.
        """
        if isinstance(data, Mapping) and "cluster" in data:
            raise InvalidParameterError(f"{source}: a cluster scenario: expected one of jobs, with a workload")
        return validated(cls, data, source)

    @classmethod
    def load(cls, where: str | PathLike[str]) -> Self:
        """Return a built-in scenario by name, or the one in a YAML file.

        Raises
        ------
        UnknownNameError
            If ``where`` is neither the name of a built-in scenario nor an existing file.
        InvalidParameterError
            If the file is not a scenario.
        OSError
            If the file cannot be read.
        """
        data, source = read_scenario(where)
        return cls.from_dict(data, source=source)

    @classmethod
    def of(cls, what: Scenario | str | PathLike[str] | Mapping[str, Any]) -> Scenario:
        """Return ``what`` if it is a scenario, else load or read it."""
        if isinstance(what, Scenario):
            return what
        return cls.from_dict(what) if isinstance(what, Mapping) else cls.load(what)

    def to_dict(self) -> dict[str, Any]:
        """Return the resolved scenario as plain data: all defaults written out."""
        data: dict[str, Any] = without_none(self.model_dump(mode="python"))
        data["mechanism"] = {"name": self.mechanism.name, **data["mechanism"]}  # a reader looks for the name first
        return data

    def to_yaml(self) -> str:
        """Return the resolved scenario as YAML; reading it back gives an equal scenario."""
        return dump_yaml(self.to_dict())

    def with_mechanism(self, name: str, changes: Mapping[str, Any] | None = None) -> Self:
        """Return the same scenario with another mechanism.

        Parameters
        ----------
        name : str
            Of the mechanism.
        changes : mapping, optional
            What else changes, keys as under ``mechanism`` in a scenario file, dotted inside a part:
            ``{"eviction": "running", "pricing.price_end": "high"}``. Rules not named here stay where
            the new mechanism takes them; see `MechanismChoice.under_another_name`.

        Returns
        -------
        Scenario
            Without the expected figures, unless nothing has changed: they belong to the mechanism.

        Raises
        ------
        InvalidParameterError
            If there is no such mechanism, a key is unknown, or a value is out of range.

        Examples
        --------
        >>> scenario = Scenario.load("synthetic-pipelines")
        >>> scenario.with_mechanism("exponential", {"epsilon": 0.1}).mechanism.pricing.floor
        0.02
        >>> scenario.with_mechanism("stochastic").mechanism.pricing.kind
        'stochastic'
        """
        mechanism = self.mechanism.under_another_name(name, changes or {})
        other = validated(type(self), {**dict(self), "mechanism": mechanism}, "scenario")
        return self if other == self else other.model_copy(update={"expected": {}})

    def setup(self, rng: np.random.Generator, *, data: str | PathLike[str] | None = None) -> MarketSetup:
        """Build jobs, a fresh mechanism and the owners' strategies.

        Parameters
        ----------
        rng : Generator
            One stream each is spawned for the workload, the mechanism's oracle and the owners; the
            oracle's draws never depend on a report. Laws, where the mechanism needs them, get the
            workload's stream once more, from its beginning.
        data : path, optional
            Folder of recorded traces; None: the environment variable ``MARKETSCHED_DATA``.

        Raises
        ------
        InvalidParameterError
            If the mechanism refuses a parameter, or the workload has no laws for one that needs them.
        MissingDataError, TraceError
            If the workload needs a trace that is not there or damaged.
        """
        from marketsched.agents.setup import MarketSetup

        workload_rng, oracle_rng, owners_rng = rng.spawn(3)
        laws_rng = copy.deepcopy(workload_rng)
        workload = self.workload.build(workload_rng, data)
        mechanism = self.mechanism.build(
            workload, oracle_rng, lambda: self.workload.statement_laws(workload, laws_rng, data)
        )
        return MarketSetup(
            name=self.name,
            jobs=workload.jobs,
            mechanism=mechanism,
            capacity=self.mechanism.capacity or workload.capacity,
            horizon=self.mechanism.horizon or workload.horizon,
            max_delay=self.mechanism.max_delay or workload.max_delay,
            resubmit=self.resubmit,
            strategy=self.owners.strategies(sorted({job.owner for job in workload.jobs}), owners_rng),
            round_seconds=workload.round_seconds,
        )


def built_in_names() -> tuple[str, ...]:
    """Return the names of the built-in scenarios, sorted."""
    return tuple(sorted(path.name.removesuffix(".yaml") for path in _folder().iterdir() if path.name.endswith(".yaml")))


def built_in_text(name: str) -> str:
    """Return the file of a built-in scenario, comments included.

    Raises
    ------
    UnknownNameError
        If there is none of that name.
    """
    if name not in built_in_names():
        raise UnknownNameError(f"scenario {name!r} is unknown: expected one of {', '.join(built_in_names())}")
    return _folder().joinpath(f"{name}.yaml").read_text(encoding="utf-8")


def read_scenario(where: str | PathLike[str]) -> tuple[Any, str]:
    """Return what a scenario file (or a built-in scenario) says, unchecked, and what to call it.

    Raises
    ------
    UnknownNameError
        If ``where`` is neither the name of a built-in scenario nor an existing file.
    InvalidParameterError
        If it is not YAML.
    OSError
        If the file cannot be read.
    """
    if isinstance(where, str) and where in built_in_names():
        return parse_yaml(built_in_text(where), f"{where}.yaml"), where
    if not Path(where).exists():
        names = ", ".join(built_in_names())
        raise UnknownNameError(f"scenario {str(where)!r}: no such file, and the built-in ones are {names}")
    return read_yaml(where), str(where)


def with_changes(data: Any, changes: Sequence[str]) -> Any:
    """Return a copy of scenario ``data`` with every ``a.b.c=value`` of ``changes`` made.

    Values are read as YAML, list places are numbers. Keys are checked with the whole scenario.

    Raises
    ------
    InvalidParameterError
        If a change is not of that form, or its place is inside something that has no parts.
    """
    data = copy.deepcopy(data)
    for change in changes:
        path, equals, text = change.partition("=")
        if not equals or not path:
            raise InvalidParameterError(f"--set {change}: expected key=value, as in mechanism.epsilon=0.1")
        *above, last = path.split(".")
        here = data
        for step in above:
            here = _inside(here, step, change)
        value = parse_yaml(text, f"--set {change}")
        if isinstance(here, dict):
            here[last] = value
        else:
            _inside(here, last, change)  # complains where there is no such place
            here[int(last)] = value
    return data


def _inside(here: Any, step: str, change: str) -> Any:
    if isinstance(here, dict):
        return here.setdefault(step, {})
    if isinstance(here, list) and step.isdigit() and int(step) < len(here):
        return here[int(step)]
    legal = f"a place in 0 .. {len(here) - 1}" if isinstance(here, list) else "no more parts here"
    raise InvalidParameterError(f"--set {change}: {step!r}: expected {legal}")


def _folder() -> Traversable:
    return files("marketsched") / "scenarios"


def without_none(data: Any) -> Any:
    """Leave out of mappings what is None, that is, not said.

    Lists stay as they are: a job's ``arrival: null`` means something.
    """
    if isinstance(data, dict):
        return {key: without_none(value) for key, value in data.items() if value is not None}
    return list(data) if isinstance(data, tuple) else data
