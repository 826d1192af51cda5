"""What a search plays and counts: a budget of plays and seconds, and lies that are made ready to be played."""

from __future__ import annotations

import math
from dataclasses import dataclass

from marketsched.agents.conduct import Conduct
from marketsched.agents.lies import Misreport
from marketsched.mechanisms.errors import InvalidReportError, MarketschedError
from marketsched.truthfulness.searches.processor import processor_seconds
from marketsched.truthfulness.situations.owner_at_hand import OwnerAtHand

ROUNDING = 1e-9  # of the truth's utility and 1 credit: smaller gains are none


class BudgetSpent(Exception):
    """The share of the budget that a phase may use is spent (control flow, no error)."""


class Budget:
    """Plays (None: any number), and seconds of the processor.

    Seconds are those of this process and its workers since the budget was made; None: any number.
    """

    def __init__(self, plays: int | None, seconds: float | None) -> None:
        self.most_plays, self.most_seconds = plays, seconds
        self.plays = 0
        self._begin = processor_seconds()
        self._share = 1.0
        self.cut = False  # seconds ended a phase

    @property
    def seconds(self) -> float:
        """Seconds of the processor so far."""
        return processor_seconds() - self._begin

    @property
    def used(self) -> float:
        """The share that is spent, of plays or of seconds, whichever is more."""
        plays = 0.0 if self.most_plays is None else self.plays / self.most_plays if self.most_plays else 1.0
        seconds = 0.0 if self.most_seconds is None else self.seconds / self.most_seconds
        return max(plays, seconds)

    @property
    def out_of_time(self) -> bool:
        """Whether the seconds of the phase are spent."""
        over = self.most_seconds is not None and self.seconds >= self._share * self.most_seconds
        self.cut |= over
        return over

    @property
    def plays_left(self) -> int | None:
        """Plays that the phase may still make; None: they are not counted."""
        return None if self.most_plays is None else max(0, math.ceil(self._share * self.most_plays) - self.plays)

    def allow(self, share: float) -> None:
        """Let the next phase go on until this share of all is spent."""
        self._share = share

    def take(self) -> None:
        """Count one play, or raise `BudgetSpent` if the phase has had its share."""
        if self.used >= self._share:
            _ = self.out_of_time
            raise BudgetSpent
        self.plays += 1


@dataclass(frozen=True)
class Failure:
    """A candidate that could not be compared: the lie, and the reason."""

    words: str
    reason: str


@dataclass(frozen=True)
class Candidate:
    """A misreport, and what its owner then does."""

    misreport: Misreport
    conduct: Conduct


def prepared(owner: OwnerAtHand, misreport: Misreport) -> Candidate | Failure | None:
    """Return a Candidate, a Failure if the mechanism cannot play it, or None if the report is not legal.

    None is for misreports of the package alone: a user's own one that is illegal for this truth is named.
    """
    try:
        truth, public = owner.truth, owner.public
        conduct = misreport.conduct(truth, truth, public)
        for statement in conduct.statements:
            owner.check(statement.report)
        return Candidate(misreport, conduct)
    except InvalidReportError as error:
        own = not misreport.kind
        return Failure(_words(misreport, owner), str(error)) if own else None
    except Exception as error:
        what = str(error) if isinstance(error, MarketschedError) else f"{type(error).__name__}: {error}"
        return Failure(_words(misreport, owner), what)


def _words(misreport: Misreport, owner: OwnerAtHand) -> str:
    try:
        return misreport.words(owner.truth)
    except Exception:  # a user's own words
        return repr(misreport)
