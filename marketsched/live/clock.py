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
CATCH_UP_ROUNDS, CATCH_UP_SECONDS = 24, 3600.0  # whichever is longer: after that a start has to be told to catch up
REPORTABLE_SHARE = 0.5  # of a round: if a service ran for less of it, up to its end, nobody could report in it
BEHIND_ROUNDS = 0.5  # by which a clock may be behind the journal before that is a warning
LATE_SHARE, LATE_SECONDS = 0.05, 0.5  # of a round, or of a second: cleared so long after its end it is late


def elapsed_seconds() -> float:
    """Return seconds that only run forwards, sleep of the machine included where the system counts it."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


class Clock:
    """The time of a market that was made at ``made``, UTC.

    ``system`` returns the system's time in UTC, and is called once; ``elapsed`` returns seconds that only run forwards.
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

    def behind(self, round_: int) -> float:
        """Return for how many seconds the open round has not even begun by this clock; 0: it has, or is the first."""
        begins = self.end_of(round_ - 1)
        if begins is None or round_ == 1 or self.round_seconds is None:
            return 0.0
        early = (begins - self.now()).total_seconds()
        return early if early > BEHIND_ROUNDS * self.round_seconds else 0.0

    def unreportable(self, round_: int, up_since: datetime) -> bool:
        """Tell whether no service ran in the last part of a round, so that nobody could report anything in it."""
        end = self.end_of(round_)
        if end is None or self.round_seconds is None:
            return False
        return (end - up_since).total_seconds() < REPORTABLE_SHARE * self.round_seconds

    def check_plausible(self, round_: int, *, catch_up: bool = False) -> None:
        """Raise InvalidParameterError if more rounds ended since the open one than are cleared without a word.

        With ``catch_up`` the operator has said that the clock is right.
        """
        overdue, seconds = self.overdue(round_), self.round_seconds or 0.0
        if overdue is None or overdue <= max(CATCH_UP_ROUNDS * seconds, CATCH_UP_SECONDS):
            return
        if catch_up and overdue <= MOST_AT_ONCE * seconds:
            return
        most = f"at most {CATCH_UP_ROUNDS} rounds or {CATCH_UP_SECONDS / 3600:g} h to clear at a start"
        few = f"a clock that is right, and {most}, or --catch-up"
        raise InvalidParameterError(
            f"the clock says {self.now():%Y-%m-%d %H:%M:%S} UTC, and round {round_} is open, which ended "
            f"{overdue:.0f} seconds before",
            legal=f"at most {MOST_AT_ONCE:,} rounds to clear: a clock that is right" if catch_up else few,
        )
