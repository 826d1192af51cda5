"""Owners who report truly, in a market that is copied in the middle of a round and played on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import cached_property
from typing import Any, NamedTuple

from marketsched.agents.job import Job
from marketsched.agents.loop import Fate
from marketsched.agents.resubmission import second_statement
from marketsched.agents.setup import MarketSetup
from marketsched.mechanisms.errors import EventError
from marketsched.mechanisms.mechanism import Event, EventKind


class Played(NamedTuple):
    """How a play ended for the owner."""

    value: float  # credits
    payment: float  # credits
    completion: int | None
    drew: bool  # the mechanism drew from its stream: with another one it may end otherwise

    @property
    def utility(self) -> float:
        """Value minus payment, credits."""
        return self.value - self.payment


NOTHING = Played(0.0, 0.0, None, drew=False)  # of a job that never comes


def worth(job: Job, completion: int | None, setup: MarketSetup) -> float:
    """Return the true value of a completion, credits; None, and from birth + S on: 0."""
    if completion is None or completion >= job.truth.birth + setup.max_delay:
        return 0.0
    return float(job.truth.value(completion))


class Births(dict[int, list[Job]]):
    """The jobs born in each round, in order of submission; many plays share them."""

    @cached_property
    def by_name(self) -> dict[str, Job]:
        """All jobs by name."""
        return {job.name: job for born in self.values() for job in born}


def born_by_round(jobs: Iterable[Job]) -> Births:
    """Return the jobs born in each round."""
    found = Births()
    for job in jobs:
        found.setdefault(job.truth.birth, []).append(job)
    return found


class TrueOwners:
    """All owners, who report truly and come back as in `Market`.

    The mechanism of ``setup`` is not looked at; ``entered`` of the jobs born in the current round are in the market.
    ``redrawn`` returns a job with what happens to it in place of what really does; None: that.
    """

    over = False

    def __init__(
        self, setup: MarketSetup, born: Births, entered: int = 0, redrawn: Callable[[Job], Job] | None = None
    ) -> None:
        self._setup, self._born, self._entered, self._redrawn = setup, born, entered, redrawn

    def act(self, market: Any) -> None:
        """Submit the jobs born in this round, then those that come back."""
        for place, job in enumerate(self._born.get(market.now, ())):
            if place >= self._entered:
                self.submit(job, market, place)
        self._entered = 0
        for name, sow, fate in market.again:
            market.submit(name, sow, fate, sow.concurrency, owner=self.by_name[name.removesuffix("+")].owner)
        market.again.clear()

    def submit(self, job: Job, market: Any, place: int) -> None:
        """Submit one job."""
        job = job if self._redrawn is None else self._redrawn(job)
        market.submit(job.name, job.truth, job, job.truth.concurrency, owner=job.owner)

    def hear(self, events: Sequence[Event], market: Any) -> None:
        """Let those come back whose own law excludes what happened."""
        if not self._setup.resubmit:
            return
        for event in events:
            if event.kind is EventKind.DROP and event.job in self.by_name:
                job = self.by_name[event.job] if self._redrawn is None else self._redrawn(self.by_name[event.job])
                known = second_statement(job, market.now, self._setup.public)
                if known is not None:
                    market.again.append((f"{job.name}+", known, Fate(market.now, job.duration, job.signal)))

    @property
    def by_name(self) -> dict[str, Job]:
        """All jobs by name."""
        return self._born.by_name


class UntilServed(TrueOwners):
    """All report truly, until each of some jobs has faced its menu, or has left; ``menus`` are those seen, by name."""

    def __init__(self, setup: MarketSetup, born: Births, names: Iterable[str]) -> None:
        super().__init__(setup, born)
        self._open = dict.fromkeys(names)
        self.menus: dict[str, object] = {}

    @property
    def over(self) -> bool:  # type: ignore[override]
        """True once all menus are known that are to come."""
        return not self._open

    def hear(self, events: Sequence[Event], market: Any) -> None:
        """Note menus, and which jobs have left."""
        super().hear(events, market)
        for name in [name for name in self._open if 0 < (self.by_name[name].arrival or 0) < market.now]:
            with suppress(EventError):
                self.menus[name] = market.mechanism.menu_at_arrival(name)
                del self._open[name]
        for event in events:
            if event.kind.leaves and event.job in self._open:
                del self._open[event.job]


class UpTo(TrueOwners):
    """All report truly, up to the turn of one job."""

    def __init__(self, setup: MarketSetup, born: Births, name: str) -> None:
        super().__init__(setup, born)
        self._name = name

    def submit(self, job: Job, market: Any, place: int) -> None:
        """Submit a job, unless it is the one whose turn is looked for."""
        if job.name == self._name:
            raise Reached
        super().submit(job, market, place)


class Reached(Exception):
    """The turn has come (control flow)."""
