"""The policies over channels of unknown utility that an ESDP scenario names, and how one is made."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BeforeValidator

from marketsched.clusters.policies import PolicyRules
from marketsched.config.configuration import Amount, PositiveShare
from marketsched.mechanisms.errors import InvalidParameterError, UnknownNameError

if TYPE_CHECKING:
    from marketsched.mechanisms.allocation.esdp.channel_policy import Channels
    from marketsched.mechanisms.allocation.slot_loop import Policy


@dataclass(frozen=True, slots=True)
class KnownChannels:
    """What policies are told: channels, their supply costs (None: not known), and a stream for their draws."""

    channels: Channels
    costs: NDArray[np.float64] | None
    rng: np.random.Generator

    def shape(self) -> dict[str, Any]:
        """Return what every policy takes."""
        known = self.channels
        return {
            "requests": known.requests,
            "capacities": known.capacities,
            "ports": known.ports,
            "n_ports": known.n_ports,
        }


def _named(kind: Literal["slack", "exploration"]) -> Any:
    """Return a validator of the names of a sequence."""

    def read(x: object) -> str:
        from marketsched.mechanisms.allocation.esdp.schedules import exploration_sequence, slack_sequence

        try:
            if not isinstance(x, str):
                raise InvalidParameterError(f"{kind} = {x!r}: expected one of the names in docs/scenarios.md")
            slack_sequence(x) if kind == "slack" else exploration_sequence(x, 1.0)
        except (InvalidParameterError, UnknownNameError) as error:
            raise ValueError(str(error).rpartition(": expected ")[2].removesuffix(", or a function of t")) from None
        return x

    return BeforeValidator(read)


class EsdpRules(PolicyRules):
    """ESDP. ``arrivals``: plan over all ports and switch absent ones off (the paper), or over present ones."""

    alpha: PositiveShare = 0.5
    slack: Annotated[str, _named("slack")] = "paper"
    exploration: Annotated[str, _named("exploration")] = "paper"
    arrivals: Literal["zero", "plan"] = "zero"

    def build(self, known: KnownChannels) -> Policy:
        """Return the policy in its first slot."""
        from marketsched.mechanisms.allocation import Esdp

        return Esdp(**known.shape(), **self.model_dump())


class HighestUtilityRules(PolicyRules):
    """The paper's HAUF. ``rank`` ports or channels; ``fill``: pass over what does not fit, or stop there."""

    rank: Literal["port", "channel"] = "port"
    fill: Literal["skip", "stop"] = "skip"

    def build(self, known: KnownChannels) -> Policy:
        """Return the policy in its first slot."""
        from marketsched.mechanisms.allocation import HighestUtilityFirst

        return HighestUtilityFirst(**known.shape(), **self.model_dump())


class LowestCostRules(PolicyRules):
    """The paper's LCF, by the supply costs; where these are not known, by the share of the cluster asked for."""

    rank: Literal["port", "channel"] = "port"
    fill: Literal["skip", "stop"] = "skip"

    def build(self, known: KnownChannels) -> Policy:
        """Return the policy in its first slot."""
        from marketsched.mechanisms.allocation import LowestCostFirst

        return LowestCostFirst(**known.shape(), costs=known.costs, **self.model_dump())


class LongestWaitingRules(PolicyRules):
    """The paper's LWTF."""

    fill: Literal["skip", "stop"] = "skip"

    def build(self, known: KnownChannels) -> Policy:
        """Return the policy in its first slot."""
        from marketsched.mechanisms.allocation import LongestWaitingFirst

        return LongestWaitingFirst(**known.shape(), **self.model_dump())


class CucbRules(PolicyRules):
    """Combinatorial upper confidence bounds: a reference from the literature."""

    width: Amount = 1.5

    def build(self, known: KnownChannels) -> Policy:
        """Return the policy in its first slot."""
        from marketsched.mechanisms.allocation import Cucb

        return Cucb(**known.shape(), width=self.width)


class ThompsonRules(PolicyRules):
    """Thompson sampling: a reference from the literature."""

    def build(self, known: KnownChannels) -> Policy:
        """Return the policy in its first slot."""
        from marketsched.mechanisms.allocation import ThompsonSampling

        return ThompsonSampling(**known.shape(), rng=known.rng)


class LeaderRules(PolicyRules):
    """What has been best so far; nothing is explored beyond one use of each channel."""

    def build(self, known: KnownChannels) -> Policy:
        """Return the policy in its first slot."""
        from marketsched.mechanisms.allocation import FollowTheLeader

        return FollowTheLeader(**known.shape())


ChannelRulesOf = (
    EsdpRules | HighestUtilityRules | LowestCostRules | LongestWaitingRules | CucbRules | ThompsonRules | LeaderRules
)

ESDP_POLICIES: dict[str, type[PolicyRules]] = {
    "esdp": EsdpRules,
    "highest-utility-first": HighestUtilityRules,
    "lowest-cost-first": LowestCostRules,
    "longest-waiting-first": LongestWaitingRules,
    "cucb": CucbRules,
    "thompson": ThompsonRules,
    "follow-the-leader": LeaderRules,
}
