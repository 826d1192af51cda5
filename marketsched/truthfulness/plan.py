"""The plan of an audit: its parts, and the budget of each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from os import PathLike

from marketsched.truthfulness.checks.checks import CALL_SECONDS
from marketsched.truthfulness.searches.evaluation import Budget
from marketsched.truthfulness.searches.plays_ahead import Helpers
from marketsched.truthfulness.searches.processor import processor_seconds
from marketsched.worlds.workload import Workload

Progress = Callable[[str, float], None]  # what is being done, and how much of the whole is done

PLAYS = 2_000  # per mechanism, by default: what is found is then the same on every machine
FEWEST_PLAYS = 100


@dataclass(frozen=True, slots=True)
class Plan:
    """The settings of an audit, for one mechanism after the other."""

    owners: int
    confidence: float
    tolerance: float
    seconds: float | None
    plays: int | None
    seed: int
    samples: int | None
    menu_lies: int
    data: str | PathLike[str] | None
    tell: Progress
    per_owner: bool = False
    call_seconds: float = CALL_SECONDS
    helpers: Helpers = field(default_factory=Helpers)
    workload: Workload | None = None  # of the seed, built once for all mechanisms


@dataclass
class Purse:
    """The remaining plays and seconds of the processor of one mechanism; its parts spend them one after the other.

    ``cut`` notes the parts that seconds ended before their plays were made.
    """

    plays: int | None
    seconds: float | None
    spent: int = 0
    cut: list[str] = field(default_factory=list)
    _used: float = 0.0
    _since: float | None = None

    def start(self) -> None:
        """Let the seconds run; the time until a market stands is not counted."""
        self._since = processor_seconds()

    def took(self, seconds: float) -> None:
        """Count seconds that a part has measured itself."""
        self._used += seconds

    def stop(self) -> None:
        """Stop the seconds."""
        if self._since is not None:
            self._used += processor_seconds() - self._since
            self._since = None

    @property
    def used(self) -> float:
        """Seconds so far."""
        return self._used + (0.0 if self._since is None else processor_seconds() - self._since)

    @property
    def plays_left(self) -> int | None:
        """Plays that are left; None: they are not counted."""
        return None if self.plays is None else max(0, self.plays - self.spent)

    @property
    def seconds_left(self) -> float | None:
        """Seconds that are left; None: they are not counted."""
        return None if self.seconds is None else max(1e-3, self.seconds - self.used)

    def whole(self, plays: int = 0) -> float:
        """Return the share of all that is spent, ``plays`` that are not noted yet included."""
        by_plays = 0.0 if self.plays is None else (self.spent + plays) / self.plays
        return min(1.0, max(by_plays, 0.0 if self.seconds is None else self.used / self.seconds))

    def further(self, times: float) -> Budget:
        """Return a budget of so many times the plays of the whole, within the seconds that are left."""
        return Budget(None if self.plays is None else int(times * self.plays), self.seconds_left)

    def budget(self, part: float) -> Budget:
        """Return a budget of this part of the remainder."""
        plays, seconds = self.plays_left, self.seconds_left
        return Budget(
            None if plays is None else max(1, int(plays * part)),
            None if seconds is None else seconds * part,
        )

    def note(self, what: str, plays: int, budget: Budget | None = None) -> None:
        """Count the spent plays and seconds; record a part that the time limit ended."""
        self.spent += plays
        if budget is not None and budget.cut:
            self.cut.append(what)
