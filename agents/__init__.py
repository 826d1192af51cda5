"""Who acts: the Mesa market, job owners and their strategies. The only room that imports Mesa."""

from __future__ import annotations

from typing import TYPE_CHECKING

from marketsched.mechanisms._lazy import lazy_names

if TYPE_CHECKING:
    from marketsched.agents.job import Job as Job
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

_LAZY = {
    "job": ("Job",),
    "owner": ("JobOwner",),
    "setup": ("MarketSetup",),
    "strategies": (
        "Strategy",
        "PublicInformation",
        "Truthful",
        "ScaleValue",
        "ShiftDeadline",
        "ScaleDuration",
        "InflateConcurrency",
        "DelaySubmission",
    ),
    "market": ("Market",),
    "result": ("RunResult",),
}
__all__ = [name for names in _LAZY.values() for name in names]
__getattr__, __dir__ = lazy_names(__name__, _LAZY)
