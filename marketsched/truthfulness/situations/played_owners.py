"""The owners of the market at hand as they are played: all of them truthful and noted, or one who lies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from marketsched.agents.conduct import Attempt
from marketsched.agents.job import Job
from marketsched.agents.setup import MarketSetup
from marketsched.mechanisms.mechanism import Event, EventKind
from marketsched.truthfulness.situations.true_owners import Births, Played, TrueOwners, worth


class Recorded(TrueOwners):
    """All report truly; what each got is noted."""

    def __init__(self, setup: MarketSetup, born: Births) -> None:
        super().__init__(setup, born)
        self.got: dict[str, Played] = {}

    def hear(self, events: Sequence[Event], market: Any) -> None:
        """Note who left, and with what."""
        super().hear(events, market)
        for event in events:
            if event.kind is not EventKind.START and event.job in self.by_name:
                done = event.completion if event.kind is EventKind.COMPLETE else None
                value = event.worth * worth(self.by_name[event.job], done, self._setup)
                self.got[event.job] = Played(value, event.payment, done, market.drew)


class OneLies(TrueOwners):
    """All others report truly, and one owner follows its conduct, until nothing can change what it gets.

    ``setup``, ``born``, ``entered``, ``redrawn``: as of `TrueOwners`. With ``settles`` the mechanism is asked what is
    booked; with ``alone`` nobody else submits once the owner has submitted all, as where later jobs change nothing.
    """

    def __init__(
        self, setup: MarketSetup, born: Births, entered: int, attempt: Attempt, name: str,
        *, settles: bool, alone: bool = False, redrawn: Callable[[Job], Job] | None = None,
    ) -> None:  # fmt: skip
        super().__init__(setup, born, entered, redrawn)
        self._attempt, self._name, self._settles, self._alone = attempt, name, settles, alone

    @property
    def over(self) -> bool:  # type: ignore[override]
        """True once the owner's utility is settled."""
        return self._attempt.over

    def act(self, market: Any) -> None:
        """Submit what the owner submits, then what the others do."""
        self._attempt.act(market)
        if not (self._alone and self._attempt.submitted):
            super().act(market)

    def hear(self, events: Sequence[Event], market: Any) -> None:
        """Tell the owner, whose own job does not come back, and ask what is booked."""
        self._attempt.hear(events, market)
        super().hear([event for event in events if event.job != self._name], market)
        if self._settles and not self._attempt.over:
            self._attempt.settle(market, self._setup.horizon)
