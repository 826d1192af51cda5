"""Allocation cores: who gets which resources, slot by slot, learnt from what is then seen."""

from __future__ import annotations

from typing import TYPE_CHECKING

from marketsched.mechanisms._lazy import lazy_names

if TYPE_CHECKING:
    from marketsched.mechanisms.allocation.arrivals import BernoulliArrivals as BernoulliArrivals
    from marketsched.mechanisms.allocation.arrivals import BinomialArrivals as BinomialArrivals
    from marketsched.mechanisms.allocation.arrivals import RecordedArrivals as RecordedArrivals
    from marketsched.mechanisms.allocation.arrivals import count_arrivals as count_arrivals
    from marketsched.mechanisms.allocation.esdp.bandit_references import Cucb as Cucb
    from marketsched.mechanisms.allocation.esdp.bandit_references import FollowTheLeader as FollowTheLeader
    from marketsched.mechanisms.allocation.esdp.bandit_references import ThompsonSampling as ThompsonSampling
    from marketsched.mechanisms.allocation.esdp.bandit_references import TrueMeanOracle as TrueMeanOracle
    from marketsched.mechanisms.allocation.esdp.baselines import HighestUtilityFirst as HighestUtilityFirst
    from marketsched.mechanisms.allocation.esdp.baselines import LongestWaitingFirst as LongestWaitingFirst
    from marketsched.mechanisms.allocation.esdp.baselines import LowestCostFirst as LowestCostFirst
    from marketsched.mechanisms.allocation.esdp.budgeted import BudgetedSolution as BudgetedSolution
    from marketsched.mechanisms.allocation.esdp.budgeted import solve_budgeted as solve_budgeted
    from marketsched.mechanisms.allocation.esdp.channel_environment import ChannelEnvironment as ChannelEnvironment
    from marketsched.mechanisms.allocation.esdp.channel_instances import published_channels as published_channels
    from marketsched.mechanisms.allocation.esdp.channel_layout import ChannelLayout as ChannelLayout
    from marketsched.mechanisms.allocation.esdp.channel_policy import Channels as Channels
    from marketsched.mechanisms.allocation.esdp.channel_regret import regret_growth as regret_growth
    from marketsched.mechanisms.allocation.esdp.channel_utilities import GaussianUtilities as GaussianUtilities
    from marketsched.mechanisms.allocation.esdp.channel_utilities import RecordedUtilities as RecordedUtilities
    from marketsched.mechanisms.allocation.esdp.esdp import Esdp as Esdp
    from marketsched.mechanisms.allocation.esdp.gang import GangEsdp as GangEsdp
    from marketsched.mechanisms.allocation.esdp.gang import GangOracle as GangOracle
    from marketsched.mechanisms.allocation.esdp.gang_channels import GangChannels as GangChannels
    from marketsched.mechanisms.allocation.oga.baselines import BinPacking as BinPacking
    from marketsched.mechanisms.allocation.oga.baselines import Drf as Drf
    from marketsched.mechanisms.allocation.oga.baselines import Fairness as Fairness
    from marketsched.mechanisms.allocation.oga.baselines import Spreading as Spreading
    from marketsched.mechanisms.allocation.oga.cluster import BipartiteCluster as BipartiteCluster
    from marketsched.mechanisms.allocation.oga.cluster_environment import ClusterEnvironment as ClusterEnvironment
    from marketsched.mechanisms.allocation.oga.fixed_allocation import FixedAllocation as FixedAllocation
    from marketsched.mechanisms.allocation.oga.fixed_allocation import best_fixed_allocation as best_fixed_allocation
    from marketsched.mechanisms.allocation.oga.fixed_allocation import fixed_allocation_bound as fixed_allocation_bound
    from marketsched.mechanisms.allocation.oga.gang_cluster import GangCluster as GangCluster
    from marketsched.mechanisms.allocation.oga.gang_environment import GangEnvironment as GangEnvironment
    from marketsched.mechanisms.allocation.oga.gang_environment import GangRepaired as GangRepaired
    from marketsched.mechanisms.allocation.oga.gang_oga import GangOga as GangOga
    from marketsched.mechanisms.allocation.oga.instances import pai_like_instance as pai_like_instance
    from marketsched.mechanisms.allocation.oga.instances import published_instance as published_instance
    from marketsched.mechanisms.allocation.oga.instances import small_integer_instance as small_integer_instance
    from marketsched.mechanisms.allocation.oga.multiple_arrivals import PortCopies as PortCopies
    from marketsched.mechanisms.allocation.oga.oga import OgaSched as OgaSched
    from marketsched.mechanisms.allocation.opm.baselines import DeadlineAware as DeadlineAware
    from marketsched.mechanisms.allocation.opm.baselines import FairScheduler as FairScheduler
    from marketsched.mechanisms.allocation.opm.baselines import StateSeeingFair as StateSeeingFair
    from marketsched.mechanisms.allocation.opm.general_environment import GeneralEnvironment as GeneralEnvironment
    from marketsched.mechanisms.allocation.opm.general_opm import GeneralOpm as GeneralOpm
    from marketsched.mechanisms.allocation.opm.jobs import JobOffer as JobOffer
    from marketsched.mechanisms.allocation.opm.machine_availability import GammaAvailability as GammaAvailability
    from marketsched.mechanisms.allocation.opm.machine_availability import RecordedAvailability as RecordedAvailability
    from marketsched.mechanisms.allocation.opm.machine_availability import (
        availability_from_periods as availability_from_periods,
    )
    from marketsched.mechanisms.allocation.opm.machine_environment import MachineEnvironment as MachineEnvironment
    from marketsched.mechanisms.allocation.opm.machine_jobs import MachineJobs as MachineJobs
    from marketsched.mechanisms.allocation.opm.machine_jobs import published_jobs as published_jobs
    from marketsched.mechanisms.allocation.opm.offline import offline_optimum as offline_optimum
    from marketsched.mechanisms.allocation.opm.opm import Opm as Opm
    from marketsched.mechanisms.allocation.opm.opm import Ops as Ops
    from marketsched.mechanisms.allocation.opm.utilities import PowerUtility as PowerUtility
    from marketsched.mechanisms.allocation.regret import GrowthFit as GrowthFit
    from marketsched.mechanisms.allocation.regret import MeasuredRegret as MeasuredRegret
    from marketsched.mechanisms.allocation.regret import fitted_growth as fitted_growth
    from marketsched.mechanisms.allocation.regret import measured_regret as measured_regret
    from marketsched.mechanisms.allocation.regret import regret_curve as regret_curve
    from marketsched.mechanisms.allocation.slot_loop import SlotRecord as SlotRecord
    from marketsched.mechanisms.allocation.slot_loop import find_peeking as find_peeking
    from marketsched.mechanisms.allocation.slot_loop import play_slots as play_slots

_LAZY: dict[str, tuple[str, ...]] = {
    "arrivals": (
        "BernoulliArrivals",
        "BinomialArrivals",
        "RecordedArrivals",
        "count_arrivals",
    ),
    "esdp.bandit_references": (
        "Cucb",
        "FollowTheLeader",
        "ThompsonSampling",
        "TrueMeanOracle",
    ),
    "esdp.baselines": (
        "HighestUtilityFirst",
        "LongestWaitingFirst",
        "LowestCostFirst",
    ),
    "esdp.budgeted": (
        "BudgetedSolution",
        "solve_budgeted",
    ),
    "esdp.channel_environment": ("ChannelEnvironment",),
    "esdp.channel_instances": ("published_channels",),
    "esdp.channel_layout": ("ChannelLayout",),
    "esdp.channel_policy": ("Channels",),
    "esdp.channel_regret": ("regret_growth",),
    "esdp.channel_utilities": (
        "GaussianUtilities",
        "RecordedUtilities",
    ),
    "esdp.esdp": ("Esdp",),
    "esdp.gang": (
        "GangEsdp",
        "GangOracle",
    ),
    "esdp.gang_channels": ("GangChannels",),
    "oga.baselines": (
        "BinPacking",
        "Drf",
        "Fairness",
        "Spreading",
    ),
    "oga.cluster": ("BipartiteCluster",),
    "oga.cluster_environment": ("ClusterEnvironment",),
    "oga.fixed_allocation": (
        "FixedAllocation",
        "best_fixed_allocation",
        "fixed_allocation_bound",
    ),
    "oga.gang_cluster": ("GangCluster",),
    "oga.gang_environment": (
        "GangEnvironment",
        "GangRepaired",
    ),
    "oga.gang_oga": ("GangOga",),
    "oga.instances": (
        "pai_like_instance",
        "published_instance",
        "small_integer_instance",
    ),
    "oga.multiple_arrivals": ("PortCopies",),
    "oga.oga": ("OgaSched",),
    "opm.baselines": (
        "DeadlineAware",
        "FairScheduler",
        "StateSeeingFair",
    ),
    "opm.general_environment": ("GeneralEnvironment",),
    "opm.general_opm": ("GeneralOpm",),
    "opm.jobs": ("JobOffer",),
    "opm.machine_availability": (
        "GammaAvailability",
        "RecordedAvailability",
        "availability_from_periods",
    ),
    "opm.machine_environment": ("MachineEnvironment",),
    "opm.machine_jobs": (
        "MachineJobs",
        "published_jobs",
    ),
    "opm.offline": ("offline_optimum",),
    "opm.opm": (
        "Opm",
        "Ops",
    ),
    "opm.utilities": ("PowerUtility",),
    "regret": (
        "GrowthFit",
        "MeasuredRegret",
        "fitted_growth",
        "measured_regret",
        "regret_curve",
    ),
    "slot_loop": (
        "SlotRecord",
        "find_peeking",
        "play_slots",
    ),
}

__all__ = [name for names in _LAZY.values() for name in names]
__getattr__, __dir__ = lazy_names(__name__, _LAZY)
