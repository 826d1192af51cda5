"""Who acts: the Mesa market, job owners and their strategies. The only room that imports Mesa."""

from __future__ import annotations

from typing import TYPE_CHECKING

from marketsched.mechanisms._lazy import lazy_names

if TYPE_CHECKING:
    from marketsched.agents.cluster_channels import ChannelGame as ChannelGame
    from marketsched.agents.cluster_games import play_out as play_out
    from marketsched.agents.cluster_jobs import JobGame as JobGame
    from marketsched.agents.cluster_market import ClusterMarket as ClusterMarket
    from marketsched.agents.cluster_market import ClusterResult as ClusterResult
    from marketsched.agents.cluster_ports import PortGame as PortGame
    from marketsched.agents.job import Job as Job
    from marketsched.agents.learning import Learning as Learning
    from marketsched.agents.learning import Menu as Menu
    from marketsched.agents.learning import misreport_menu as misreport_menu
    from marketsched.agents.learning import value_menu as value_menu
    from marketsched.agents.market import Market as Market
    from marketsched.agents.owner import JobOwner as JobOwner
    from marketsched.agents.result import RunResult as RunResult
    from marketsched.agents.setup import MarketSetup as MarketSetup
    from marketsched.agents.strategies import DelaySubmission as DelaySubmission
    from marketsched.agents.strategies import InflateConcurrency as InflateConcurrency
    from marketsched.agents.strategies import PublicInformation as PublicInformation
    from marketsched.agents.strategies import ScaleDuration as ScaleDuration
    from marketsched.agents.strategies import ScaleValue as ScaleValue
    from marketsched.agents.strategies import ShiftDeadline as ShiftDeadline
    from marketsched.agents.strategies import Strategy as Strategy
    from marketsched.agents.strategies import Truthful as Truthful

_LAZY: dict[str, tuple[str, ...]] = {
    "cluster_channels": ("ChannelGame",),
    "cluster_games": ("play_out",),
    "cluster_jobs": ("JobGame",),
    "cluster_market": (
        "ClusterMarket",
        "ClusterResult",
    ),
    "cluster_ports": ("PortGame",),
    "job": ("Job",),
    "learning": (
        "Learning",
        "Menu",
        "misreport_menu",
        "value_menu",
    ),
    "market": ("Market",),
    "owner": ("JobOwner",),
    "result": ("RunResult",),
    "setup": ("MarketSetup",),
    "strategies": (
        "DelaySubmission",
        "InflateConcurrency",
        "PublicInformation",
        "ScaleDuration",
        "ScaleValue",
        "ShiftDeadline",
        "Strategy",
        "Truthful",
    ),
}
__all__ = [name for names in _LAZY.values() for name in names]
__getattr__, __dir__ = lazy_names(__name__, _LAZY)
