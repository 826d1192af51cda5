"""The mechanism of a scenario: its name and rules, and their change to another mechanism."""

from __future__ import annotations

import copy
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
from pydantic import Field, model_validator

from marketsched.agents.call_limit import timed
from marketsched.config.configuration import MechanismName, PostedPrices, Rules, check_parameters
from marketsched.config.kueue import read_kueue
from marketsched.mechanisms.bid_price.past import AnyPast, PastLog
from marketsched.mechanisms.errors import InvalidParameterError, placed, shortened
from marketsched.mechanisms.from_file import is_in_file
from marketsched.mechanisms.legal import Count, Positive
from marketsched.mechanisms.limits import GIVEN, SIZES
from marketsched.mechanisms.mechanism import Mechanism
from marketsched.mechanisms.named import PriceKinds
from marketsched.mechanisms.registry import get, get_mechanism, mechanism_names
from marketsched.mechanisms.signatures import Parameter, parameters_of, takes_anything
from marketsched.mechanisms.statement_law import StatementLaw
from marketsched.worlds.workload import Workload

_BY_OWNER = ("shares", "weights", "qos")  # parameters that are tables by owner
OF_OWNERS = ("shares", "newcomers")  # parameters that say who the owners are: of each mechanism that takes them
_STOCHASTIC = "stochastic"
ON_CLUSTERS = "cluster-"  # what names of mechanisms that take shapes begin with


class MechanismChoice(Rules):
    """A mechanism by name, with its rules. Sizes left out are those of the workload.

    Prices left out are those the name stands for. ``parameters`` go to the mechanism as they are:
    they are for mechanisms that take others than the replay contract's.
    """

    name: MechanismName = "posted-price"
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
        if isinstance(data, Mapping) and "pricing" not in data and _kinds_of(data.get("name"))[:1] == (_STOCHASTIC,):
            return {**data, "pricing": {"kind": _STOCHASTIC}}
        return data

    @model_validator(mode="after")
    def _what_the_mechanism_takes(self) -> Self:
        self.rules_for(self.name)
        check_parameters(self.name, self.parameters, GIVEN)
        return self

    def build(
        self,
        workload: Workload,
        rng: np.random.Generator,
        laws: Callable[[], Sequence[StatementLaw]] | None = None,
        past: Callable[[Any], PastLog] | None = None,
    ) -> Mechanism:
        """Return a fresh mechanism for ``workload``.

        Parameters
        ----------
        workload : Workload
            Gives the sizes that are left out here.
        rng : Generator
            Of the oracle's draws.
        laws : function that returns laws, optional
            What is known of the jobs in advance; called only if prices are stochastic, or the mechanism's own
            ``wants_laws(**parameters)`` says so.
        past : function of a folder or of the section of a workload, optional
            Makes the log of yesterday that parameters of the range `AnyPast` name.

        Raises
        ------
        InvalidParameterError
            If the mechanism refuses a parameter; if prices are stochastic and a job hides its
            duration, or there are no laws.
        """
        own = {name: getattr(self, name) for name in SIZES}
        sizes = {name: getattr(workload, name) if size is None else size for name, size in own.items()}
        called = self._called(workload)
        rules = self.rules_for(self.name) if called == self.name else {}
        parameters = {**sizes, **rules, **self.parameters}
        asked = parameters_of(get("mechanism", called))
        if "cluster" in asked:
            parameters = {"cluster": workload.cluster, **parameters}
        if "round_seconds" in asked:
            parameters = {"round_seconds": workload.round_seconds, **parameters}
        if "signals" in asked:
            parameters = {"signals": workload.table.signals, **parameters}
        if self.pricing.kind == _STOCHASTIC and laws is not None:
            _check_revealed(workload)
            parameters = {"laws": laws(), **parameters}
        wants = getattr(get("mechanism", called), "wants_laws", None)
        if laws is not None and wants is not None and wants(**self.parameters):
            parameters = {"laws": laws(), **parameters}
        sorts = getattr(get("mechanism", called), "wants_classes", None)
        if sorts is not None and sorts(**self.parameters):
            parameters = {"classes": workload.classes, **parameters}
        by_owner = getattr(get("mechanism", called), "wants_owners", None)
        if by_owner is not None and by_owner(**self.parameters):
            parameters = {"owners": workload.owners, **parameters}
        if getattr(get("mechanism", called), "has_accounts", False) and self.parameters.get("shares") is None:
            parameters = {**parameters, "shares": workload.shares_by_account or None}
        for name, parameter in asked.items():
            if isinstance(parameter.range, AnyPast) and past is not None and parameters.get(name) is not None:
                with placed(f"mechanism.parameters.{name}"):
                    parameters[name] = past(parameters[name])
        if "queues" in asked and isinstance(file := parameters.get("queues"), str):
            with placed("mechanism.parameters"):
                parameters |= read_kueue(file, workload.cluster)
        with placed("mechanism"), timed("the construction", 1):
            return get_mechanism(called, **{"rng": rng, **parameters})

    def _called(self, workload: Workload) -> str:
        """Return the mechanism that is built: on a cluster the one of this name that takes shapes.

        Raises
        ------
        InvalidParameterError
            If there is none.
        """
        if workload.cluster is None or "cluster" in parameters_of(get("mechanism", self.name)):
            return self.name
        on_cluster = f"{ON_CLUSTERS}{self.name}"
        if on_cluster not in mechanism_names():
            able = ", ".join(name for name in mechanism_names() if name.startswith(ON_CLUSTERS))
            legal = f"one that takes jobs with shapes: {able}"
            raise InvalidParameterError(place="mechanism.name", value=self.name, legal=legal)
        return on_cluster

    def under_another_name(self, name: str, changes: Mapping[str, Any]) -> dict[str, Any]:
        """Return, as plain unchecked data, these rules with another mechanism and ``changes`` made to them.

        Sizes, epsilon, threshold, oracle and eviction stay. Prices stay if mechanism ``name`` takes
        them, otherwise they are those that ``name`` stands for. Of ``parameters``, which belong to the old name,
        those stay that say who the owners are (`OF_OWNERS`), where ``name`` takes them.

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
            taken = _rules_of(name)
            data["parameters"] = _of_owners(data["parameters"], taken)
            data = {key: value for key, value in data.items() if key not in Rules.model_fields or key in taken}
            if not self._prices_suit(name):
                kinds = _kinds_of(name)[:1]
                data["pricing"] = {"kind": "exponential" if kinds in ((), ("posted",)) else kinds[0]}
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
        if name == "first-come":  # knows one flat price
            return isinstance(self.pricing, PostedPrices) and len(set(self.pricing.prices)) == 1
        return _carry_over(self.pricing.kind, _kinds_of(name) or ("exponential", "posted"))


def section_under(section: Mapping[str, Any], name: object) -> dict[str, Any]:
    """Return the part of a scenario's ``mechanism`` section that applies to the mechanism ``name``.

    Sizes stay, and the rules that it knows; prices if it knows their kind. Of ``parameters``, which belong to the old
    name, those stay that say who the owners are (`OF_OWNERS`), where it takes them.
    """
    if section.get("name", "posted-price") == name:
        return {**section, "name": name}
    taken, kinds, pricing = _rules_of(name), _kinds_of(name), section.get("pricing")
    kept, parameters = dict(section), section.get("parameters")
    if isinstance(parameters, Mapping):  # else it is refused with the whole scenario
        kept["parameters"] = _of_owners(parameters, taken)
    if kinds and isinstance(pricing, Mapping) and not _carry_over(pricing.get("kind", "exponential"), kinds):
        kept.pop("pricing")
    return {key: value for key, value in kept.items() if key not in Rules.model_fields or key in taken} | {"name": name}


def _of_owners(parameters: Mapping[str, Any], taken: Collection[str]) -> dict[str, Any]:
    """Return the parameters that say who the owners are, of those that are taken."""
    return {key: parameters[key] for key in OF_OWNERS if key in parameters and key in taken}


def _carry_over(kind: object, kinds: tuple[str, ...]) -> bool:
    """Tell whether prices of a kind stay under another name; `_STOCHASTIC` ones are what a name stands for, or go."""
    return kind in kinds and (kind != _STOCHASTIC or kinds[0] == _STOCHASTIC)


def with_unknown_owners(workload: Workload, parameters: Mapping[str, Any]) -> Workload:
    """Return the workload of a log with a warning for each parameter of owners that names some without a job."""
    tables = {name: given for name in _BY_OWNER if isinstance(given := parameters.get(name), Mapping)}
    if not workload.of_log or not tables:
        return workload
    lines = str(workload.notes.get("warnings", "")).splitlines()
    known = {"", *workload.owners}  # a place that ends with / is an account
    for name, given in tables.items():
        unknown = [str(place) for place in given if str(place).rpartition("/")[2] not in known]
        line = f"{name} are given to {shortened(', '.join(unknown))}, of whom the log has no job"
        if unknown and line not in lines:
            lines.append(line)
    return replace(workload, notes={**workload.notes, "warnings": "\n".join(lines)}) if lines else workload


def _rules_of(name: object) -> Mapping[str, Any]:
    """Return the parameters of a mechanism by name, or every rule if it takes whatever it is given."""
    if not isinstance(name, str) or not (name in mechanism_names() or is_in_file(name)):
        return Rules.model_fields
    maker = get("mechanism", name)
    return Rules.model_fields if takes_anything(maker) else parameters_of(maker)


def _kinds_of(name: object) -> tuple[str, ...]:
    """Return the kinds of prices that a mechanism takes, its own first; none: it does not say."""
    pricing = _rules_of(name).get("pricing")
    legal = pricing.range if isinstance(pricing, Parameter) else None
    return legal.kinds if isinstance(legal, PriceKinds) else ()


def _check_revealed(workload: Workload) -> None:
    if workload.table.revealed:
        return
    for job in workload.jobs:
        if not job.truth.revealed:
            raise InvalidParameterError(
                f"workload: job {job.name!r} hides its duration: with stochastic prices expected durations that are "
                "revealed at arrival (Section 8)"
            )
