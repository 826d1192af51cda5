"""Errors of the package: one family, and each leaf is also the built-in a caller expects.

A message says where the fault is, what was seen, and what is legal. Input is checked once, at the
public edge, before anything is changed.
"""

from __future__ import annotations


class MarketschedError(Exception):
    """Root of every error raised on purpose by this package."""


class InvalidReportError(MarketschedError, ValueError):
    """A statement of work, or one of its parts, is malformed or outside the announced limits."""


class InvalidParameterError(MarketschedError, ValueError):
    """A parameter of a mechanism, oracle, scenario or function is outside its legal range."""


class UnknownNameError(MarketschedError, KeyError):
    """A name is not in the table it was looked up in."""

    def __str__(self) -> str:
        """Return the message itself (``KeyError`` would show its ``repr``)."""
        return str(self.args[0]) if self.args else ""


class EventError(MarketschedError, ValueError):
    """An event does not fit the state of the market: wrong round, unknown or finished job."""


class DecisionError(MarketschedError, ValueError):
    """A policy's decision of a slot is malformed, or outside what the environment allows."""


class TooLargeError(MarketschedError, MemoryError):
    """An exact computation would need more memory than allowed; the message names the way out."""


class SolverError(MarketschedError, RuntimeError):
    """A solver is missing, or ended without the answer; the message says how, and what to do."""


class TraceError(MarketschedError, ValueError):
    """A trace file is truncated or malformed; the message names file and line."""


class MissingDataError(MarketschedError, FileNotFoundError):
    """A data folder or file is not there."""

    def __str__(self) -> str:
        """Return the message alone."""
        return str(self.args[0]) if self.args else ""


class SweepError(MarketschedError, OSError):
    """What a sweep stands on failed it: disk, folder, worker processes or cluster; finished runs are kept."""
