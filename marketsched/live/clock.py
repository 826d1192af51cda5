"""When rounds end: at an operator's call, or on the clock.

A running service does not look at the system's clock again: it counts on from the moment of its start, so that a
clock that is set forwards or backwards moves no round. At a restart the system's clock counts: rounds whose ends
have passed are cleared one by one; if it is behind the journal, the open round lasts until its end comes.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from marketsched.live.configuration import LiveConfig, ManualClock, moment
from marketsched.mechanisms.errors import InvalidParameterError

MOST_AT_ONCE = 100_000  # rounds that passed while no service ran: more is taken for a wrong clock
LATE_SHARE, LATE_SECONDS = 0.05, 0.5  # of a round, or of a second: cleared so long after its end it is late


def elapsed_seconds() -> float:
    """Return seconds that only run forwards, sleep of the machine included where the system counts it."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


class Clock:
    """The time of a market.

    Parameters
    ----------
    config : LiveConfig
        Says which clock.
    made : str
        When the market was made, UTC.
    system : function, optional
        Returns the system's time in UTC; called once.
    elapsed : function, optional
        Returns seconds that only run forwards.
    """

    def __init__(
        self,
        config: LiveConfig,
        made: str,
        *,
        system: Callable[[], datetime] = lambda: datetime.now(UTC),
        elapsed: Callable[[], float] = elapsed_seconds,
    ) -> None:
        self._system, self._elapsed = system, elapsed
        self._began, self._zero = system(), elapsed()
        self.round_seconds = None if isinstance(config.clock, ManualClock) else config.clock.round_seconds
        first = None if isinstance(config.clock, ManualClock) else config.clock.first_round
        self._first = moment(first or made)

    @property
    def kind(self) -> str:
        """``manual`` or ``wall``."""
        return "manual" if self.round_seconds is None else "wall"

    def now(self) -> datetime:
        """Return the time of the service, UTC."""
        return self._began + timedelta(seconds=self._elapsed() - self._zero)

    def offset(self) -> float:
        """Return by how many seconds the system's clock has been set since the start of the service."""
        return (self._system() - self.now()).total_seconds()

    def end_of(self, round_: int) -> datetime | None:
        """Return when a round ends; None with a manual clock."""
        if self.round_seconds is None:
            return None
        try:
            return self._first + timedelta(seconds=self.round_seconds * round_)
        except OverflowError:
            return datetime.max.replace(tzinfo=UTC)

    def overdue(self, round_: int) -> float | None:
        """Return for how many seconds a round is over; negative: it lasts that much longer; None: unknown."""
        end = self.end_of(round_)
        return None if end is None else (self.now() - end).total_seconds()

    def late(self, overdue: float) -> bool:
        """Return whether a round that is cleared ``overdue`` seconds after its end is marked as late."""
        return overdue > max(LATE_SECONDS, LATE_SHARE * (self.round_seconds or 0.0))

    def check_plausible(self, round_: int) -> None:
        """Raise InvalidParameterError if more rounds ended since the open one than can be caught up with."""
        overdue = self.overdue(round_)
        if overdue is not None and overdue > MOST_AT_ONCE * (self.round_seconds or 0.0):
            raise InvalidParameterError(
                f"the clock says {self.now():%Y-%m-%d %H:%M:%S} UTC, and round {round_} is open, which ended "
                f"{overdue:.0f} seconds before",
                legal=f"at most {MOST_AT_ONCE:,} rounds to clear at a start: a clock that is right",
            )
