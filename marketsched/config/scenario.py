"""Scenarios: what to run, as plain typed data that reads from YAML and writes back to it.

A *market* names a workload (whose jobs, with what limits), a mechanism and how owners report. A scenario of another
kind has a section ``cluster`` instead; who registers ``section`` ``cluster`` (`marketsched.cores`) says what may
stand there. The whole scenario is checked before anything is built; an error is one line that names the place in the
file, what was seen, and what is legal.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Mapping
from os import PathLike
from typing import Annotated, Any, Self

import numpy as np
from pydantic import BeforeValidator, Field, PlainValidator, StrictBool, model_validator
from pydantic_core import PydanticCustomError

from marketsched.agents.setup import MarketSetup
from marketsched.config.mechanism_choice import MechanismChoice, with_unknown_owners
from marketsched.config.mechanism_text import mechanism_in
from marketsched.config.owner_mix import OwnerMix
from marketsched.config.scenario_file import (
    default_mechanism,
    read_scenario,
    with_changes,
    without_none,
)
from marketsched.config.sections import RegisteredWorkload
from marketsched.config.strict_yaml import Name, Strict, dump_yaml, validated
from marketsched.config.yesterday import yesterday
from marketsched.mechanisms.errors import InvalidParameterError
from marketsched.mechanisms.legal import Count, Finite, legal
from marketsched.mechanisms.registry import get, names
from marketsched.worlds.workload import Workload


def _expected(x: object) -> tuple[float, float]:
    """Read an expected figure: a number, or [mean, standard deviation]."""
    pair = x if isinstance(x, (list, tuple)) else [x, 0.0]
    if len(pair) != 2:
        raise ValueError("a number, or [mean, standard deviation]")
    return Finite("(-inf, inf)")(pair[0]), Finite("[0, inf)")(pair[1])


def _read_cluster(x: object) -> Any:
    """Return the section ``cluster`` that a mapping describes."""
    if "cluster" not in names("section"):
        raise PydanticCustomError("not_installed", "no cluster: the package's folder cores is missing")
    return get("section", "cluster")(x)


_OF_MARKETS = ("workload", "mechanism", "owners", "resubmit", "expected")


class Scenario(Strict):
    """Everything that determines a run but its seed.

    Make one with `load` (a built-in one by its name, a YAML file, a log) or `from_dict`; change it with
    `with_mechanism`, `with_changes` and `with_capacity`. It is frozen, and `to_yaml` writes it.

    Attributes
    ----------
    name, description : str
        Name and description.
    workload
        Of a market, the key ``workload``: whose jobs, by ``kind`` (``synthetic-pipelines``, ``jobs``, ``mixtures``,
        ``swf``, ``sacct``, ``csv`` and more) with the keys of that kind.
    mechanism : MechanismChoice
        Of a market: ``name``, sizes (``capacity``, ``horizon`` ...), rules (``pricing``, ``oracle``, ``epsilon``,
        ``threshold``, ``eviction``) and ``parameters`` of the mechanism's own.
    owners : OwnerMix
        Of a market: how owners report; all truthfully by default.
    resubmit : bool
        Of a market: whether a job that was dropped is submitted once more, if it came in a round or for a duration that
        its law did not foresee. Jobs drawn from their own laws never do.
    expected : dict
        Figures that a run is expected to find, as a number or [mean, standard deviation].
    cluster
        Instead of all from ``workload`` on: an allocation core with its cluster, arrivals and policies.

    Examples
    --------
    >>> scenario = Scenario.load("synthetic-pipelines")
    >>> scenario.kind, scenario.workload.kind, scenario.mechanism.name
    ('market', 'synthetic-pipelines', 'posted-price')
    >>> other = Scenario.load("cluster-default")
    >>> other.kind, other.cluster.slots, other.cluster.policies[0]
    ('ogasched', 2000, 'ogasched')
    >>> Scenario.from_dict({"name": "x", "workload": {"kind": "synthetic-pipelines", "capacity": 1}})
    Traceback (most recent call last):
    ...
    marketsched.mechanisms.errors.InvalidParameterError: scenario: workload.capacity = 1: expected a whole number >= 2
    """

    name: Name
    description: str = ""
    # Of a market; what follows the workload is not in the file of a cluster.
    workload: RegisteredWorkload = Field(default=None)
    mechanism: MechanismChoice = MechanismChoice()
    owners: OwnerMix = OwnerMix()
    resubmit: StrictBool = False
    expected: dict[str, Annotated[tuple[float, float], BeforeValidator(_expected)]] = Field(default_factory=dict)
    # Of a cluster.
    cluster: Annotated[Any, PlainValidator(_read_cluster)] = Field(default=None)

    @model_validator(mode="before")
    @classmethod
    def _of_one_kind(cls, data: Any) -> Any:
        if isinstance(data, Mapping) and "cluster" in data:
            for key in _OF_MARKETS:
                if key in data:
                    raise InvalidParameterError(
                        f"{key}: unknown key in a scenario with a cluster: known there are name, description, cluster"
                    )
        elif isinstance(data, Mapping) and "mechanism" not in data:
            name = default_mechanism(data)
            return data if name is None else {**data, "mechanism": {"name": name}}
        return data

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if self.cluster is None and self.workload is None:
            raise InvalidParameterError("workload is missing")
        return self

    @property
    def kind(self) -> str:
        """``market``, or the allocation core of a cluster: ``ogasched``, ``esdp`` or ``opm``."""
        return "market" if self.cluster is None else self.cluster.core

    @property
    def section(self) -> str:
        """The key that makes it what it is, under which the registry holds what can be done with it: ``cluster``."""
        return "workload" if self.cluster is None else "cluster"

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], *, source: str = "scenario", kind: str | None = None) -> Self:
        """Return the scenario that ``data`` describes.

        Parameters
        ----------
        data : mapping
            As in a scenario file.
        source : str
            What to call it in an error line.
        kind : {"market", "cluster"}, optional
            The only kind that will do; a cluster is one of any core.

        Raises
        ------
        InvalidParameterError
            If a key is unknown or missing, a value is out of range, or it is of another kind.
        """
        clustered = isinstance(data, Mapping) and "cluster" in data
        if clustered and kind == "market":
            raise InvalidParameterError(
                f"{source}: a cluster scenario: expected one of jobs, with a workload, such as synthetic-pipelines"
            )
        if not clustered and kind == "cluster" and isinstance(data, Mapping):
            raise InvalidParameterError(
                f"{source}: a scenario of jobs: expected one with a cluster, such as cluster-default"
            )
        return validated(cls, data, source)

    @classmethod
    def load(cls, where: str | PathLike[str], *, kind: str | None = None) -> Self:
        """Return a built-in scenario by name, or the one in a YAML file; ``kind`` as in `from_dict`.

        Raises
        ------
        UnknownNameError
            If ``where`` is neither the name of a built-in scenario nor an existing file.
        InvalidParameterError
            If the file is not a scenario, or of another kind.
        OSError
            If the file cannot be read.
        """
        data, source = read_scenario(where)
        return cls.from_dict(data, source=source, kind=kind)

    @classmethod
    def of(cls, what: Self | str | PathLike[str] | Mapping[str, Any], *, kind: str | None = None) -> Self:
        """Return ``what`` if it is a scenario (of that ``kind``), else load or read it."""
        if not isinstance(what, cls):
            return cls.from_dict(what, kind=kind) if isinstance(what, Mapping) else cls.load(what, kind=kind)  # type: ignore[arg-type]
        if kind is not None and (what.kind == "market") != (kind == "market"):
            cls.from_dict(what.to_dict(), source=what.name, kind=kind)  # says what is wrong
        return what

    def to_dict(self) -> dict[str, Any]:
        """Return the resolved scenario as plain data: all defaults of its kind written out."""
        market = self.kind == "market"
        data: dict[str, Any] = without_none(
            self.model_dump(mode="python", exclude={"cluster"} if market else set(_OF_MARKETS))
        )
        if market:
            data["mechanism"] = {"name": self.mechanism.name, **data["mechanism"]}  # a reader looks for the name first
            return data
        return {**data, "cluster": self.cluster.ordered(data["cluster"])}

    def to_yaml(self) -> str:
        """Return the resolved scenario as YAML; reading it back gives an equal scenario."""
        return dump_yaml(self.to_dict())

    def with_mechanism(self, name: str | Callable[..., Any], changes: Mapping[str, Any] | None = None) -> Self:
        """Return the same scenario with another mechanism.

        Parameters
        ----------
        name : str or class
            Of the mechanism, perhaps with rules, as in ``"bid-price:buckets=4"`` (`marketsched.config.mechanism_text`);
            or a class of one's own.
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
        >>> scenario.with_mechanism("bid-price:buckets=4").mechanism.parameters
        {'buckets': 4}
        >>> scenario.with_mechanism("stochastic").mechanism.pricing.kind
        'stochastic'
        """
        called, rules = mechanism_in(name)
        mechanism = self.mechanism.under_another_name(called, {**rules, **(changes or {})})
        other = validated(type(self), {**self._market_parts(), "mechanism": mechanism}, "scenario")
        return self if other == self else other.model_copy(update={"expected": {}})

    def _market_parts(self) -> dict[str, Any]:
        return {key: value for key, value in self if key != "cluster"}

    def with_changes(self, *changes: str) -> Self:
        """Return the same scenario with changes as ``--set`` makes them.

        Parameters
        ----------
        *changes : str
            ``key=value``, keys as in a scenario file with dots between parts, values in YAML.

        Raises
        ------
        InvalidParameterError
            If a change is not of that form, a key is unknown, or a value is out of range.

        Examples
        --------
        >>> busy = Scenario.load("synthetic-pipelines").with_changes("workload.utilisation=1.25")
        >>> busy.workload.utilisation
        1.25
        """
        return self.from_dict(with_changes(self.to_dict(), changes, option=""), source=self.name)

    @legal
    def with_capacity(self, capacity: Count) -> Self:
        """Return the same market on ``capacity`` nodes, without the expected figures."""
        choice = self.mechanism.model_copy(update={"capacity": capacity})
        return self.model_copy(update={"mechanism": choice, "expected": {}})

    def workload_of(self, seed: int, data: str | PathLike[str] | None = None) -> Workload:
        """Return the workload that `setup` builds from ``default_rng(SeedSequence(seed))``; errors as there."""
        rng = np.random.default_rng(np.random.SeedSequence(seed)).spawn(3)[0]
        return with_unknown_owners(self.workload.build(rng, data), self.mechanism.parameters)

    def setup(
        self,
        rng: np.random.Generator,
        *,
        data: str | PathLike[str] | None = None,
        workload: Workload | None = None,
    ) -> MarketSetup:
        """Build jobs, a fresh mechanism and the owners' strategies.

        Parameters
        ----------
        rng : Generator
            One stream each is spawned for the workload, the mechanism's oracle and the owners; the
            oracle's draws never depend on a report. Laws, where the mechanism needs them, get the
            workload's stream once more, from its beginning.
        data : path, optional
            Folder of recorded traces; None: the environment variable ``MARKETSCHED_DATA``.
        workload : Workload, optional
            What the workload's stream of ``rng`` gives, if it was built before (`workload_of`).

        Raises
        ------
        InvalidParameterError
            If the mechanism refuses a parameter, or the workload has no laws for one that needs them.
        MissingDataError, TraceError
            If the workload needs a trace that is not there or damaged.
        """
        workload_rng, oracle_rng, owners_rng = rng.spawn(3)
        laws_rng = copy.deepcopy(workload_rng)
        built = workload
        if built is None:
            built = with_unknown_owners(self.workload.build(workload_rng, data), self.mechanism.parameters)
        mechanism = self.mechanism.build(
            built,
            oracle_rng,
            lambda: self.workload.statement_laws(built, laws_rng, data),
            lambda what: yesterday(what, self.mechanism, built, data, read=type(self).from_dict),
        )
        return MarketSetup(
            name=self.name,
            jobs=built.table,  # whose columns are made once for all mechanisms
            mechanism=mechanism,
            capacity=self.mechanism.capacity or built.capacity,
            horizon=self.mechanism.horizon or built.horizon,
            max_delay=self.mechanism.max_delay or built.max_delay,
            resubmit=self.resubmit,
            strategy=self.owners.strategies(sorted(set(built.table.owners)), owners_rng),
            round_seconds=built.round_seconds,
            notes=dict(built.notes),
        )


# What `help(Scenario)` begins with: the keys, without their validators; the docstring says what they are.
Scenario.__signature__ = inspect.Signature(
    [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY) for name in Scenario.model_fields]
)
