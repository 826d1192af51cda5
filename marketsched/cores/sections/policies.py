"""The policies of a cluster scenario: their parameters, and how they are built.

A policy is written ``name`` or ``name:key=value:key=value``, as mechanisms are: ``ogasched:step=25:decay=0.9999``. Its
keys are the parameters of the registered class or function that its core does not give (`Core.given`). The attribute
``core`` of the class or function names the core; one without it is a policy of ``ogasched``. One in a file has its
name, as ``mine.py:Mine``, in place of a registered one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike
from pydantic import BeforeValidator

from marketsched.config.sections import Section, asked_for, section_class
from marketsched.config.strict_yaml import parse_yaml, validated
from marketsched.cores.core import CORES, DEFAULT
from marketsched.mechanisms.allocation import GangCluster, GangOga, GeneralOpm, Opm
from marketsched.mechanisms.allocation.oga.cluster import BipartiteCluster
from marketsched.mechanisms.allocation.oga.oga import OgaSched, geometric_step
from marketsched.mechanisms.allocation.oga.weighted_cluster import WeightedCluster, WeightedOga
from marketsched.mechanisms.allocation.slot_loop import Policy
from marketsched.mechanisms.errors import InvalidParameterError, MarketschedError, UnknownNameError
from marketsched.mechanisms.from_file import is_in_file, name_and_keys
from marketsched.mechanisms.legal import Count, Finite, Named, Positive, check_fields
from marketsched.mechanisms.registry import get, names


@dataclass(frozen=True)
class OgaSchedPolicy:
    """Online gradient ascent. Decides before it sees who has arrived; ``peek`` is the ablation that looks first.

    ``step`` is ``theory``, OgaSched (26), ``theorem``, the one for which OgaSched (14) is proven, or the step eta of
    the raw gradient, which is then multiplied by ``decay`` from slot to slot: the authors' published code has 25 and
    0.9999. Above 1 it grows.
    """

    step: Annotated[str | float, Named(("theory", "theorem"), Finite("(0, inf)"))] = "theory"
    decay: Positive = 1.0
    peek: bool = False
    threads: Count = 1

    def __post_init__(self) -> None:
        check_fields(self)
        if isinstance(self.step, str) and self.decay != 1.0:
            legal = f"1 with step = {self.step!r}, or a step to shrink"
            raise InvalidParameterError(place="decay", value=self.decay, legal=legal)

    def build(self, cluster: BipartiteCluster, horizon: int) -> OgaSched | WeightedOga:
        """Return the policy in its first slot."""
        step: Any = self.step
        if not isinstance(self.step, str) and self.decay != 1.0:
            step = geometric_step(self.step, self.decay, horizon)
        if isinstance(cluster, WeightedCluster):
            if self.peek:
                raise InvalidParameterError(place="peek", value=True, legal="false with joint gains or weights")
            if step == "theorem":
                raise InvalidParameterError(place="step", value=step, legal="'theory' or a number with joint gains")
            return WeightedOga(cluster, horizon, step=step)
        return OgaSched(cluster, horizon, step=step, peek=self.peek, threads=self.threads)


@dataclass(frozen=True)
class GangOgaPolicy:
    """Online gradient ascent over tasks of gangs, repaired to all or nothing, by a Euclidean or an entropy step."""

    step: Annotated[str | float, Named(("theory",), Finite("(0, inf)"))] = "theory"
    geometry: Literal["euclidean", "entropy"] = "euclidean"

    def __post_init__(self) -> None:
        check_fields(self)

    def build(self, cluster: GangCluster | None, horizon: int) -> GangOga:
        """Return the policy in its first slot."""
        if not isinstance(cluster, GangCluster):
            raise InvalidParameterError("policy 'gang-oga': expected a cluster with gangs")
        return GangOga(cluster, horizon, step=self.step, geometry=self.geometry)


@dataclass(frozen=True)
class OpmPolicy:
    """OPM. ``theory`` stands for the values of Theorem 3 in the OPM paper.

    ``estimate=false`` counts every rate as 1, ``known_rates=true`` uses the true mean rates,
    ``redraw=false`` keeps one uniform number per machine for the draws of all slots.
    """

    core: ClassVar[str] = "opm"

    primal_step: Annotated[str | float, Named(("theory",), Finite("(0, inf)"))] = "theory"
    dual_step: Annotated[str | float, Named(("theory",), Finite("[0, inf)"))] = "theory"
    gamma: Annotated[str | float, Named(("theory",), Finite("[0, inf)"))] = "theory"
    confidence: Annotated[float, Finite("(0, 1)")] = 0.05
    slack: Annotated[float, Finite("[0, 1)")] = 0.0
    floor: Positive = 0.01
    strict_budget: bool = True
    estimate: bool = True
    known_rates: bool = False
    redraw: bool = True
    threads: Count = 1

    def __post_init__(self) -> None:
        check_fields(self)

    def build(
        self, prices: ArrayLike, horizon: int, rates: ArrayLike, capacities: ArrayLike | None, rng: np.random.Generator
    ) -> Opm | GeneralOpm:
        """Return the scheduler in its first slot; with ``capacities``, of machines that hold several tasks."""
        rules: dict[str, Any] = {key: None if value == "theory" else value for key, value in vars(self).items()}
        rules |= {"known_rates": rates if self.known_rates else None, "rng": rng}
        if capacities is not None:
            return GeneralOpm(prices, capacities, horizon, **rules | {"threads": 1})
        return Opm(prices, horizon, **rules)


@dataclass(frozen=True, slots=True)
class PolicyChoice:
    """A policy by its label, as it was written, with all its rules."""

    label: str
    name: str
    rules: Any

    @property
    def knows_horizon(self) -> bool:
        """Whether it must know how long it will be played for, and may decide otherwise when that is longer."""
        horizon = asked_for(get("policy", self.name)).get("horizon")
        return horizon is not None and horizon.required

    def build(self, **given: Any) -> Policy:
        """Return the policy in its first slot; ``given``: what its core gives to those that take it."""
        policy: Policy = self.rules.make(**given)
        return policy

    def in_one_line(self) -> str:
        """Return every rule in one line: ``"step=theory decay=1.0 peek=false threads=1"``."""
        return " ".join(f"{key}={str(value).lower()}" for key, value in self.rules.values().items())


def policy_choices(tokens: Sequence[str], core: str = DEFAULT) -> list[PolicyChoice]:
    """Return the policies that ``tokens`` name, in their order: ``name:key=value``, of one core, values in YAML.

    Examples
    --------
    >>> policy_choices(["ogasched:step=25", "drf"])[0].rules.step
    25.0
    """
    if isinstance(tokens, str) or not tokens:
        raise InvalidParameterError(f"policies = {tokens!r}: expected at least one name")
    found: list[PolicyChoice] = []
    for token in tokens:
        if not isinstance(token, str):  # a class
            legal = "its name, as 'drf' or 'ogasched:step=25'; of a class in a file 'mine.py:Mine'"
            raise InvalidParameterError(place="policy", value=token, legal=legal)
        if any(token == other.label for other in found):
            raise InvalidParameterError(f"policy {token!r} is named twice: expected different ones")
        found.append(_choice(token, core))
    return found


def policy_list(core: str) -> BeforeValidator:
    """Return a validator of lists of policies as a scenario writes them."""

    def read(x: object) -> tuple[str, ...]:
        legal = "a list of policies, as in [ogasched, 'fairness:share_over=all']"
        if not isinstance(x, (list, tuple)) or not x or not all(isinstance(token, str) for token in x):
            raise ValueError(legal)
        try:
            policy_choices(x, core)
        except UnknownNameError as error:  # pydantic lets a KeyError through
            raise error.turned(InvalidParameterError) from None
        return tuple(x)

    return BeforeValidator(read)


class PolicySection(Section):
    """The rules of a policy; a subclass is made for each that is registered."""

    @classmethod
    def of(cls, name: str) -> type[Section]:
        """Return the class that checks the parameters of a registered policy."""
        maker = get("policy", name)
        return section_class(maker, ("policy", name), frozenset(CORES[_core_of(maker)].given), cls)


def _core_of(maker: Any) -> str:
    core: str = Named(tuple(CORES)).check("the policy's core", getattr(maker, "core", DEFAULT))
    return core


def policy_names(core: str) -> tuple[str, ...]:
    """Return the names of the policies of a core; a plug-in that cannot be loaded is not among them."""

    def fits(name: str) -> bool:
        try:
            return _core_of(get("policy", name)) == core
        except MarketschedError:
            return False

    return tuple(name for name in names("policy") if fits(name))


def _choice(token: str, core: str) -> PolicyChoice:
    name, pairs = name_and_keys(token.split(":"))
    known = is_in_file(name) or name in names("policy")
    if not known or _core_of(get("policy", name)) != core:
        legal = f"one of {', '.join(policy_names(core))}, or a class in a file for this core, as mine.py:Mine"
        raise UnknownNameError(f"policy {name!r} is unknown", legal=legal)
    rules: dict[str, Any] = {}
    for pair in pairs:
        key, equals, text = pair.partition("=")
        if not equals or not key:
            raise InvalidParameterError(f"policy {token!r}: {pair!r}: expected name:key=value, as in ogasched:step=25")
        if key in rules:
            raise InvalidParameterError(f"policy {token!r} says {key} twice: expected it once")
        rules[key] = parse_yaml(text, f"policy {token!r}")
    return PolicyChoice(token, name, validated(PolicySection.of(name), rules, f"policy {token!r}"))
