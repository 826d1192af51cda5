"""The rules: statements of work, menus, launch plans, posted prices, eviction, oracles. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from marketsched.mechanisms._lazy import lazy_names

if TYPE_CHECKING:
    from marketsched.mechanisms.auctions.arrival_market import ArrivalMarket as ArrivalMarket
    from marketsched.mechanisms.auctions.first_come import FirstCome as FirstCome
    from marketsched.mechanisms.auctions.pay_as_bid import PayAsBid as PayAsBid
    from marketsched.mechanisms.auctions.round_auction import RoundAuction as RoundAuction
    from marketsched.mechanisms.auctions.spot import Spot as Spot
    from marketsched.mechanisms.auctions.vcg import Vcg as Vcg
    from marketsched.mechanisms.auctions.vcg import vcg_outcome as vcg_outcome
    from marketsched.mechanisms.errors import DecisionError as DecisionError
    from marketsched.mechanisms.errors import EventError as EventError
    from marketsched.mechanisms.errors import InvalidParameterError as InvalidParameterError
    from marketsched.mechanisms.errors import InvalidReportError as InvalidReportError
    from marketsched.mechanisms.errors import MarketschedError as MarketschedError
    from marketsched.mechanisms.errors import MissingDataError as MissingDataError
    from marketsched.mechanisms.errors import SolverError as SolverError
    from marketsched.mechanisms.errors import TooLargeError as TooLargeError
    from marketsched.mechanisms.errors import TraceError as TraceError
    from marketsched.mechanisms.errors import UnknownNameError as UnknownNameError
    from marketsched.mechanisms.mechanism import Event as Event
    from marketsched.mechanisms.mechanism import EventKind as EventKind
    from marketsched.mechanisms.mechanism import LaunchPlan as LaunchPlan
    from marketsched.mechanisms.mechanism import Mechanism as Mechanism
    from marketsched.mechanisms.mechanism import Menu as Menu
    from marketsched.mechanisms.posted.exponential import ExponentialPricing as ExponentialPricing
    from marketsched.mechanisms.posted.exponential import PostedPricing as PostedPricing
    from marketsched.mechanisms.posted.guarantees import Guarantees as Guarantees
    from marketsched.mechanisms.posted.guarantees import guarantees as guarantees
    from marketsched.mechanisms.posted.oracle import ExactOracle as ExactOracle
    from marketsched.mechanisms.posted.oracle import MonteCarloOracle as MonteCarloOracle
    from marketsched.mechanisms.posted.scheduler import PostedPriceMechanism as PostedPriceMechanism
    from marketsched.mechanisms.registry import get_mechanism as get_mechanism
    from marketsched.mechanisms.registry import mechanism_names as mechanism_names
    from marketsched.mechanisms.registry import register as register
    from marketsched.mechanisms.sow import Requirement as Requirement
    from marketsched.mechanisms.sow import StatementOfWork as StatementOfWork
    from marketsched.mechanisms.statement_law import StatementLaw as StatementLaw
    from marketsched.mechanisms.values import DeadlineValue as DeadlineValue
    from marketsched.mechanisms.values import LinearValue as LinearValue
    from marketsched.mechanisms.values import TableValue as TableValue
    from marketsched.mechanisms.values import ValueCurve as ValueCurve

_LAZY: dict[str, tuple[str, ...]] = {
    "auctions.arrival_market": ("ArrivalMarket",),
    "auctions.first_come": ("FirstCome",),
    "auctions.pay_as_bid": ("PayAsBid",),
    "auctions.round_auction": ("RoundAuction",),
    "auctions.spot": ("Spot",),
    "auctions.vcg": (
        "Vcg",
        "vcg_outcome",
    ),
    "errors": (
        "DecisionError",
        "EventError",
        "InvalidParameterError",
        "InvalidReportError",
        "MarketschedError",
        "MissingDataError",
        "SolverError",
        "TooLargeError",
        "TraceError",
        "UnknownNameError",
    ),
    "mechanism": (
        "Event",
        "EventKind",
        "LaunchPlan",
        "Mechanism",
        "Menu",
    ),
    "posted.exponential": (
        "ExponentialPricing",
        "PostedPricing",
    ),
    "posted.guarantees": (
        "Guarantees",
        "guarantees",
    ),
    "posted.oracle": (
        "ExactOracle",
        "MonteCarloOracle",
    ),
    "posted.scheduler": ("PostedPriceMechanism",),
    "registry": (
        "get_mechanism",
        "mechanism_names",
        "register",
    ),
    "sow": (
        "Requirement",
        "StatementOfWork",
    ),
    "statement_law": ("StatementLaw",),
    "values": (
        "DeadlineValue",
        "LinearValue",
        "TableValue",
        "ValueCurve",
    ),
}
__all__ = [name for names in _LAZY.values() for name in names]
__getattr__, __dir__ = lazy_names(__name__, _LAZY)
