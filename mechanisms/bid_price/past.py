"""A log of yesterday: arrivals before the first round of a market, and their reports.

A mechanism that takes such a log has a parameter of the range `AnyPast`: a scenario then accepts the folder of a
finished run there, or a workload, and hands the mechanism the log that is made of it.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from os import PathLike
from typing import Any

from marketsched.mechanisms.errors import InvalidParameterError, InvalidReportError, placed
from marketsched.mechanisms.law import Signal
from marketsched.mechanisms.legal import Range
from marketsched.mechanisms.limits import MarketLimits, check_report
from marketsched.mechanisms.signals import observed_duration
from marketsched.mechanisms.sow import StatementOfWork


@dataclass(frozen=True, slots=True)
class PastArrival:
    """A job that arrived yesterday: its owner, its report, its round of arrival on that day, and what was seen then."""

    owner: Hashable
    sow: StatementOfWork
    arrival: int
    signal: Signal


@dataclass(frozen=True, slots=True)
class PastLog:
    """The arrivals of the ``rounds`` rounds before a market; its round 1 follows on their last.

    Parameters
    ----------
    arrivals : tuple of PastArrival
        In any order; those after round ``rounds`` do not count.
    rounds : int
        How many rounds there is a record of.
    limits : MarketLimits
        Of the market of that day.

    Examples
    --------
    >>> from marketsched.mechanisms import BidPrice, DeadlineValue, MarketLimits, StatementOfWork
    >>> sow = StatementOfWork(1, 1, DeadlineValue(4.0, 5), [(1, 2, 1.0)])
    >>> sizes = {"max_concurrency": 1, "max_duration": 3, "max_value": 9.0, "max_delay": 9}
    >>> log = PastLog((PastArrival("ann", sow, 1, 2),), 9, MarketLimits(1, 9, **sizes))
    >>> BidPrice(1, 9, history=log, **sizes).round
    1
    """

    arrivals: tuple[PastArrival, ...]
    rounds: int
    limits: MarketLimits

    @property
    def revealed(self) -> bool:
        """True if the platform saw every duration at arrival."""
        return all(observed_duration(each.signal) is not None for each in self.arrivals)

    def check(self, limits: MarketLimits) -> None:
        """Raise InvalidParameterError if the log is not of a market with these limits."""
        if self.limits.capacity != limits.capacity:
            raise InvalidParameterError(
                place="capacity", value=self.limits.capacity, legal=f"{limits.capacity}, the nodes of this market"
            )
        if self.rounds < 1 or not self.arrivals:
            raise InvalidParameterError(
                place="arrivals", value=len(self.arrivals), legal="at least one job that arrived"
            )
        for i, each in enumerate(self.arrivals):
            with placed(f"arrivals[{i}]"):
                try:
                    sizes = limits.max_concurrency, limits.max_duration, limits.max_value
                    check_report(each.owner, each.sow, each.sow.birth, *sizes, limits.cluster)
                except InvalidReportError as error:
                    raise error.turned(InvalidParameterError) from None


@dataclass(frozen=True)
class AnyPast(Range[Any]):
    """A `PastLog`; in a scenario a folder or a workload that one is made of."""

    def __call__(self, x: object) -> Any:
        """Return ``x``, or raise ``ValueError``."""
        if x is None or isinstance(x, (PastLog, Mapping, PathLike)) or (isinstance(x, str) and x):
            return x
        raise ValueError("the folder of a finished run, or a table with the kind of a workload")
