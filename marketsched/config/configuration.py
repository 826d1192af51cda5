"""The typed parts that a scenario and a replay configuration share: prices, oracle, market rules."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal, Self

import numpy as np
from pydantic import AfterValidator, Field, StrictBool, model_validator

from marketsched.config.cluster_section import ClusterSection
from marketsched.config.sections import section_class
from marketsched.config.strict_yaml import Strict, validated
from marketsched.mechanisms.bid_price.past import AnyPast
from marketsched.mechanisms.errors import InvalidParameterError, UnknownNameError, placed
from marketsched.mechanisms.legal import Amount, BelowOne, Count, Finite, Maybe, Named, Positive, PositiveShare, Seed
from marketsched.mechanisms.limits import SIZES
from marketsched.mechanisms.mechanism import Mechanism
from marketsched.mechanisms.named import PriceKinds
from marketsched.mechanisms.registry import REPLACED, get, get_mechanism, mechanism_names
from marketsched.mechanisms.signatures import parameters_of, takes_anything

_CALLED = re.compile(r"(?P<name>[^()]+)\((?P<keys>[^()]*)\)?")  # as Python would make it; a list ends at a comma


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
            legal = f"a number above the floor {self.floor!r}"
            raise InvalidParameterError(place="ceiling", value=self.ceiling, legal=legal)
        return self


class PostedPrices(Strict):
    """A fixed price per node and round: round 1 first, the last one holds on."""

    kind: Literal["posted"]
    prices: Annotated[tuple[Amount, ...], Field(min_length=1)]


class _StochasticPrices(Strict):
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


class MonteCarlo(Strict):
    """The sampling oracle; ``refresh`` says how long its paths are kept, None leaves it to the oracle.

    At every ``probe_every``-th submission the bias of the kept paths is measured against fresh ones.
    """

    kind: Literal["monte-carlo"]
    samples: Count = 1000
    refresh: Annotated[str | float | None, Maybe(Named(("submission", "round"), Finite("[0, 1]")))] = None
    probe_every: Count | None = None


Pricing = Annotated[ExponentialPrices | PostedPrices, Field(discriminator="kind")]
AnyPricing = Annotated[ExponentialPrices | PostedPrices | _StochasticPrices, Field(discriminator="kind")]
Oracle = Annotated[Exact | MonteCarlo, Field(discriminator="kind")]


class Rules(Strict):
    """The rules of a posted-price mechanism beside the size of its market."""

    epsilon: BelowOne = 0.0
    threshold: Annotated[str | float, Named(("auto",), Finite("[0, 1]"))] = 0.0
    pricing: AnyPricing = ExponentialPrices(kind="exponential")
    oracle: Oracle = Exact(kind="exact")
    eviction: Literal["all", "running"] = "all"

    def rule_parameters(self) -> dict[str, Any]:
        """Return all rules as plain data."""
        data = self.model_dump(include=set(Rules.model_fields))
        for part in ("pricing", "oracle"):
            data[part] = {key: value for key, value in data[part].items() if value is not None}
        return data

    def rules_for(self, name: str) -> dict[str, Any]:
        """Return the rules that a mechanism takes, as plain data; other rules must not be set.

        A rule in its default form says nothing: a resolved scenario holds all of them, whatever its mechanism.

        Raises
        ------
        InvalidParameterError
            If a rule that means nothing for the mechanism is set, or prices are of a kind that it does not take.
        """
        maker = get("mechanism", name)
        known, rules = parameters_of(maker), self.rule_parameters()
        for rule, value in list(rules.items()):
            legal = known[rule].range if rule in known else None
            said_nothing = getattr(self, rule) == Rules.model_fields[rule].default
            if rule not in known and takes_anything(maker):
                continue
            if rule not in known and not said_nothing:
                own = ", ".join(each for each in Rules.model_fields if each in known) or "none of these rules"
                raise InvalidParameterError(place=rule, value=value, legal=f"nothing: {name!r} takes {own}")
            if isinstance(legal, PriceKinds) and value["kind"] not in legal.kinds and not said_nothing:
                kinds = " or ".join(map(repr, legal.kinds))
                raise InvalidParameterError(
                    place="pricing.kind", value=value["kind"], legal=f"{kinds} with the name {name!r}"
                )
            if rule not in known or (isinstance(legal, PriceKinds) and value["kind"] not in legal.kinds):
                del rules[rule]
        return rules


def _registered_mechanism(name: str) -> str:
    """Return the name of a mechanism; raise ``ValueError`` with the legal names if there is none."""
    try:
        get("mechanism", name)
    except UnknownNameError:
        if name in REPLACED:
            raise ValueError(REPLACED[name]) from None
        called = _CALLED.fullmatch(name)
        if called is not None:
            keys = ":".join(["", *(each.replace(" ", "") for each in called["keys"].split(",") if each)])
            raise ValueError(f"a name, and keys behind colons: {called['name']}{keys}") from None
        if name.endswith(".py"):
            raise ValueError(f"a name in the file, too: {name}:Mine") from None
        near = difflib.get_close_matches(name.lower(), mechanism_names(), n=1)
        more = "a name that `marketsched mechanisms` lists"
        own = f"; a class in a file is mine.py:{name}" if name.isidentifier() else ""
        legal = f"{more} (did you mean {near[0]!r}?)" if near else f"one of {', '.join(mechanism_names())}{own}"
        raise ValueError(legal) from None
    return name


MechanismName = Annotated[str, AfterValidator(_registered_mechanism)]


def check_parameters(name: str, parameters: Mapping[str, Any], provided: Iterable[str]) -> None:
    """Raise InvalidParameterError unless these are parameters of a mechanism's own, and in range.

    Sizes, rules and the source of draws have keys of their own beside ``parameters``; ``provided`` are other names that
    no configuration gives.
    """
    maker = get("mechanism", name)
    if takes_anything(maker):
        return
    elsewhere = frozenset({*SIZES, *Rules.model_fields, "rng", "seed", *provided})
    with placed("parameters"):
        validated(section_class(maker, ("mechanism", name), elsewhere), dict(parameters))


class ReplayConfig(Rules):
    """The configuration of ``marketsched replay``: every key of the replay contract, no other.

    ``parameters`` are those of the mechanism that are neither sizes nor rules of the contract, such as ``ahead`` of
    ``bid-price``. With a ``cluster`` jobs have shapes; ``capacity`` is then the nodes it has, and may be left out.
    """

    mechanism: MechanismName = "posted-price"
    pricing: Pricing = ExponentialPrices(kind="exponential")  # a log brings no laws for stochastic prices
    cluster: ClusterSection | None = None
    capacity: Count
    max_concurrency: Count
    max_duration: Count
    max_value: Positive
    max_delay: Count
    horizon: Count
    seed: Seed = 0
    parameters: dict[str, Any] = Field(default_factory=dict)

    @model_validator(mode="before")
    @classmethod
    def _nodes_of_the_cluster(cls, data: Any) -> Any:
        if not isinstance(data, Mapping) or data.get("cluster") is None or "capacity" in data:
            return data
        try:
            nodes = ClusterSection.model_validate(data["cluster"]).cluster().nodes
        except ValueError:
            nodes = 1  # what is wrong is named where the cluster is read
        return {**data, "capacity": nodes}

    @model_validator(mode="after")
    def _rules_of_the_mechanism(self) -> Self:
        self.rules_for(self.mechanism)
        known = parameters_of(get("mechanism", self.mechanism))
        logs = [name for name, each in known.items() if isinstance(each.range, AnyPast)]  # files, that may change
        check_parameters(self.mechanism, self.parameters, ["laws", "classes", "owners", "cluster", *logs])
        if self.cluster is not None:
            self._check_cluster(self.cluster, sells="cluster" in known)
        return self

    def _check_cluster(self, given: ClusterSection, *, sells: bool) -> None:
        if not sells:
            able = [name for name in mechanism_names() if "cluster" in parameters_of(get("mechanism", name))]
            raise InvalidParameterError(
                place="mechanism", value=self.mechanism, legal=f"with a cluster one of {', '.join(able)}"
            )
        nodes = given.cluster().nodes
        if self.capacity != nodes:
            raise InvalidParameterError(place="capacity", value=self.capacity, legal=f"{nodes}, or none: a cluster")

    def mechanism_parameters(self) -> dict[str, Any]:
        """Return the mechanism's parameters beside sizes and rules."""
        return dict(self.parameters)

    def build(self, rng: np.random.Generator) -> Mechanism:
        """Return the mechanism, whose own draws come from ``rng``.

        Raises
        ------
        InvalidParameterError
            If the mechanism refuses a parameter.
        """
        sizes = {name: getattr(self, name) for name in SIZES}
        rules = {**self.rules_for(self.mechanism), **self.mechanism_parameters()}
        if self.cluster is not None:
            rules["cluster"] = self.cluster.cluster()
        return get_mechanism(self.mechanism, **{**sizes, **rules, "rng": rng})
