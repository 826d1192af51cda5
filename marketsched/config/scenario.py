"""Scenarios: what to run, as plain typed data that reads from YAML and writes back to it.

A scenario names a workload (whose jobs, with what limits), a mechanism and how owners report. The
whole scenario is checked before anything is built; what is wrong with it is said in one line that
names the place in the file, what was seen, and what is legal.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from os import PathLike
from typing import TYPE_CHECKING, Annotated, Any, Self

import numpy as np
from pydantic import BeforeValidator, Field, StrictBool

from marketsched.config.mechanism_choice import MechanismChoice
from marketsched.config.owner_mix import OwnerMix
from marketsched.config.scenario_file import ScenarioFile
from marketsched.config.sections import RegisteredWorkload
from marketsched.config.strict_yaml import validated
from marketsched.mechanisms.errors import InvalidParameterError
from marketsched.mechanisms.ranges import Finite

if TYPE_CHECKING:
    from marketsched.agents.setup import MarketSetup


def _expected(x: object) -> tuple[float, float]:
    """Read an expected figure: a number, or [mean, standard deviation]."""
    pair = x if isinstance(x, (list, tuple)) else [x, 0.0]
    if len(pair) != 2:
        raise ValueError("a number, or [mean, standard deviation]")
    return Finite("(-inf, inf)")(pair[0]), Finite("[0, inf)")(pair[1])


class Scenario(ScenarioFile):
    """Everything that determines a run but its seed.

    Examples
    --------
    >>> scenario = Scenario.load("synthetic-pipelines")
    >>> scenario.name, scenario.workload.kind, scenario.mechanism.name
    ('synthetic-pipelines', 'synthetic-pipelines', 'posted-price')
    >>> Scenario.from_dict({"name": "x", "workload": {"kind": "synthetic-pipelines", "capacity": 1}})
    Traceback (most recent call last):
    ...
    marketsched.mechanisms.errors.InvalidParameterError: scenario: workload.capacity = 1: expected a whole number >= 2
    """

    workload: RegisteredWorkload
    mechanism: MechanismChoice = MechanismChoice()
    owners: OwnerMix = OwnerMix()
    resubmit: StrictBool = False
    expected: dict[str, Annotated[tuple[float, float], BeforeValidator(_expected)]] = Field(default_factory=dict)

    @classmethod
    def _prepared(cls, data: Any, source: str) -> Any:
        if isinstance(data, Mapping) and "cluster" in data:
            raise InvalidParameterError(
                f"{source}: a cluster scenario: expected one of jobs, with a workload, such as synthetic-pipelines"
            )
        return data

    def to_dict(self) -> dict[str, Any]:
        """Return the resolved scenario as plain data: all defaults written out."""
        data = super().to_dict()
        data["mechanism"] = {"name": self.mechanism.name, **data["mechanism"]}  # a reader looks for the name first
        return data

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
