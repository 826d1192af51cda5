"""The policies that a cluster scenario names: what each takes, and how one is made.

A policy is written in a few words, ``name`` or ``name:key=value:key=value``, as mechanisms are in a
comparison: ``drf``, ``ogasched:step=25:decay=0.9999``, ``ogasched:peek=true``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self

from pydantic import BeforeValidator, StrictBool, model_validator

from marketsched.config.configuration import Count, Positive
from marketsched.config.strict_yaml import Strict, number, parse_yaml, validated
from marketsched.mechanisms.errors import InvalidParameterError, UnknownNameError

if TYPE_CHECKING:
    from marketsched.mechanisms.allocation.oga.cluster import BipartiteCluster
    from marketsched.mechanisms.allocation.slot_loop import Policy


def _step(x: object) -> str | float:
    if x == "theory" and isinstance(x, str):
        return x
    try:
        return number("(0, inf)")(x)
    except ValueError:
        raise ValueError("'theory' or a finite number in (0, inf)") from None


class PolicyRules(Strict):
    """What every policy's rules are; ``knows_horizon``: it decides otherwise when it will be played for longer."""

    knows_horizon: ClassVar[bool] = False


class OgaSchedRules(PolicyRules):
    """Online gradient ascent. Decides before it sees who has arrived; ``peek`` is the ablation that looks first.

    ``step`` is ``theory``, OgaSched (26), or the step eta of the raw gradient, which is then multiplied by
    ``decay`` from slot to slot: the authors' published code has 25 and 0.9999. Above 1 it grows.
    """

    knows_horizon: ClassVar[bool] = True

    step: Annotated[str | float, BeforeValidator(_step)] = "theory"
    decay: Positive = 1.0
    peek: StrictBool = False
    threads: Count = 1

    @model_validator(mode="after")
    def _only_a_step_decays(self) -> Self:
        if self.step == "theory" and self.decay != 1.0:
            raise InvalidParameterError(f"decay = {self.decay!r}: expected 1 with step = 'theory', or a step to shrink")
        return self

    def build(self, cluster: BipartiteCluster, horizon: int) -> Policy:
        """Return the policy in its first slot."""
        from marketsched.mechanisms.allocation import OgaSched
        from marketsched.mechanisms.allocation.oga.step_sizes import geometric_step

        step: Any = self.step
        if not isinstance(self.step, str) and self.decay != 1.0:
            step = geometric_step(self.step, self.decay, horizon)
        return OgaSched(cluster, horizon, step=step, peek=self.peek, threads=self.threads)


class DrfRules(PolicyRules):
    """Dominant resource fairness: arrived ports in ascending order of their dominant share.

    ``demand`` is what a job asks for: at most its requirement on every instance, or as much in total.
    """

    demand: Literal["per-node", "total"] = "per-node"

    def build(self, cluster: BipartiteCluster, horizon: int) -> Policy:
        """Return the policy."""
        from marketsched.mechanisms.allocation import Drf

        return Drf(cluster, demand=self.demand)


class FairnessRules(PolicyRules):
    """Every port's share of each resource: among the ports that have arrived, or among all."""

    share_over: Literal["arrived", "all"] = "arrived"

    def build(self, cluster: BipartiteCluster, horizon: int) -> Policy:
        """Return the policy."""
        from marketsched.mechanisms.allocation import Fairness

        return Fairness(cluster, share_over=self.share_over)


class BinPackingRules(PolicyRules):
    """The most used instances first. With demand per node it equals `SpreadingRules` exactly."""

    demand: Literal["per-node", "total"] = "per-node"

    def build(self, cluster: BipartiteCluster, horizon: int) -> Policy:
        """Return the policy."""
        from marketsched.mechanisms.allocation import BinPacking

        return BinPacking(cluster, demand=self.demand)


class SpreadingRules(PolicyRules):
    """The least used instances first."""

    demand: Literal["per-node", "total"] = "per-node"

    def build(self, cluster: BipartiteCluster, horizon: int) -> Policy:
        """Return the policy."""
        from marketsched.mechanisms.allocation import Spreading

        return Spreading(cluster, demand=self.demand)


Rules = OgaSchedRules | DrfRules | FairnessRules | BinPackingRules | SpreadingRules

OGASCHED_POLICIES: dict[str, type[Rules]] = {
    "ogasched": OgaSchedRules,
    "drf": DrfRules,
    "fairness": FairnessRules,
    "binpacking": BinPackingRules,
    "spreading": SpreadingRules,
}


@dataclass(frozen=True, slots=True)
class PolicyChoice:
    """A policy by its label, as it was written, with all its rules."""

    label: str
    name: str
    rules: PolicyRules

    def said(self) -> str:
        """Return every rule in words: ``"step=theory decay=1.0 peek=false threads=1"``."""
        told = {key: str(value).lower() for key, value in self.rules.model_dump().items()}
        return " ".join(f"{key}={value}" for key, value in told.items())


def policy_choices(
    tokens: Sequence[str], policies: Mapping[str, type[PolicyRules]] = OGASCHED_POLICIES
) -> list[PolicyChoice]:
    """Return the policies that ``tokens`` name, in their order.

    Parameters
    ----------
    tokens : sequence of str
        ``name`` or ``name:key=value:key=value``; values are YAML.
    policies : mapping of str to type
        Those that a core has, by name; default: OgaSched's.

    Raises
    ------
    InvalidParameterError
        If there is no token, two are equal, or one is malformed.
    UnknownNameError
        If there is no such policy.

    Examples
    --------
    >>> policy_choices(["ogasched:step=25", "drf"])[0].rules.step
    25.0
    """
    if isinstance(tokens, str) or not tokens:
        raise InvalidParameterError(f"policies = {tokens!r}: expected at least one name")
    found: list[PolicyChoice] = []
    for token in tokens:
        if any(token == other.label for other in found):
            raise InvalidParameterError(f"policy {token!r} is named twice: expected different ones")
        found.append(_choice(token, policies))
    return found


def policy_list(policies: Mapping[str, type[PolicyRules]]) -> BeforeValidator:
    """Return a validator of lists of policies as a scenario writes them."""

    def read(x: object) -> tuple[str, ...]:
        legal = "a list of policies, as in [ogasched, 'fairness:share_over=all']"
        if not isinstance(x, (list, tuple)) or not x or not all(isinstance(token, str) for token in x):
            raise ValueError(legal)
        try:
            policy_choices(x, policies)
        except UnknownNameError as error:  # pydantic lets a KeyError through
            raise InvalidParameterError(str(error)) from None
        return tuple(x)

    return BeforeValidator(read)


def _choice(token: str, policies: Mapping[str, type[PolicyRules]]) -> PolicyChoice:
    name, *pairs = token.split(":")
    if name not in policies:
        raise UnknownNameError(f"policy {name!r} is unknown: expected one of {', '.join(policies)}")
    rules: dict[str, Any] = {}
    for pair in pairs:
        key, equals, text = pair.partition("=")
        if not equals or not key:
            raise InvalidParameterError(f"policy {token!r}: {pair!r}: expected name:key=value, as in ogasched:step=25")
        if key in rules:
            raise InvalidParameterError(f"policy {token!r} says {key} twice: expected it once")
        rules[key] = parse_yaml(text, f"policy {token!r}")
    return PolicyChoice(token, name, validated(policies[name], rules, f"policy {token!r}"))
