"""Plays in this market that workers make before the search needs them.

A search requests plays one after the other, counts them, and decides by their results. It does so whether or not a
play was made ahead: what workers have made is looked up where it would be played, and the rest is played then.
So results and counts do not depend on the number of workers.

Workers build the market themselves, from the scenario and the seed, and keep it with copies at the turns of its owners,
until they are given another one.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from os import PathLike
from typing import Any, NamedTuple

from marketsched.agents.call_limit import calls_end_within
from marketsched.agents.conduct import Conduct, plain
from marketsched.agents.lies import Misreport
from marketsched.agents.loop import Fate
from marketsched.config.scenario import Scenario
from marketsched.mechanisms.errors import InvalidReportError, MechanismFault
from marketsched.play.kept_results import KeptResults
from marketsched.play.parallel import run_many
from marketsched.play.workers import Workers
from marketsched.truthfulness.searches.evaluation import Budget, Candidate, prepared
from marketsched.truthfulness.searches.processor import Measured, counted, measured, thread_seconds
from marketsched.truthfulness.situations.market_at_hand import MarketAtHand
from marketsched.truthfulness.situations.owner_at_hand import OwnerAtHand

AT_A_TIME = 6  # plays of one task
Ended = Any  # what a play has left, or the error that it ended with


class Asked(NamedTuple):
    """A play: whose, under which lie (None: the truth), in which case of the own law (None: what really happens)."""

    owner: str
    lie: Misreport | None = None
    case: int | None = None

    @property
    def words(self) -> str:
        """What tells it apart from all others of the same market."""
        return f"{self.owner} {json.dumps(None if self.lie is None else self.lie.data())} {self.case}"


@dataclass(frozen=True)
class AtHand:
    """A market, as workers build it; ``token`` tells it apart from all others that they have had."""

    token: str
    scenario: Scenario = field(repr=False)
    seed: int
    data: str | PathLike[str] | None
    call_seconds: float
    owners: tuple[str, ...] = ()  # that are kept at their turns


@dataclass(frozen=True)
class Helpers:
    """Who makes plays ahead: workers (None: this process), and where what was made is kept, if it is."""

    workers: Workers | None = None
    kept: KeptResults | None = None


@dataclass(frozen=True)
class Block:
    """A task: what to do with each of some items in a market at hand."""

    market: AtHand
    what: Callable[[Held, Any], Any]
    items: tuple[Any, ...]
    settles: bool = True

    def __repr__(self) -> str:
        """Return what tells it apart from other tasks of the same audit."""
        items = "; ".join(item.words if hasattr(item, "words") else repr(item) for item in self.items)
        content = f"{self.market.scenario.mechanism!r} {self.settles} {items}"
        return f"{self.what.__name__} {hashlib.sha256(content.encode()).hexdigest()}"


class Held:
    """A market that a worker holds."""

    def __init__(self, described: AtHand, market: MarketAtHand | None = None) -> None:
        self.described = described
        self.market = market or MarketAtHand.of(described.scenario, described.seed, described.data)

    @cached_property
    def owners(self) -> dict[str, OwnerAtHand]:
        """Owners at their turns, by name: all of them, as the process that asks knows how many there is room for."""
        found = self.market.owners(self.described.owners, most_bytes=1 << 62)
        return {owner.name: owner for owner in found}

    def owner(self, name: str) -> OwnerAtHand:
        """Return one of the owners that are kept at their turns."""
        return self.owners[name]


def ready() -> None:
    """Do nothing: to name this function in a process imports all that plays need."""


_held: Held | None = None
_ONE_TASK = threading.Lock()  # an executor may have threads, and a market is played by one at a time


def perform(block: Block) -> Measured:
    """Do a task where this is called; errors of single items stand in their places."""
    global _held
    began = thread_seconds()
    with _ONE_TASK, calls_end_within(block.market.call_seconds):
        if _held is None or _held.described.token != block.market.token:
            _held = None  # its bytes first
            _held = Held(block.market)
        _held.market.settles = block.settles
        return measured([_ended(block.what, _held, item) for item in block.items], began)


def _ended(what: Callable[[Held, Any], Any], held: Held, item: Any) -> Ended:
    try:
        return what(held, item)
    except (MechanismFault, InvalidReportError) as error:
        return error


def truth_of(owner: OwnerAtHand) -> Conduct:
    """Return the conduct of a truthful owner."""
    return plain(owner.truth, owner.truth.concurrency)


def conduct_of(owner: OwnerAtHand, lie: Misreport | None) -> Conduct | None:
    """Return the conduct of an owner under a lie; None: it cannot be played."""
    if lie is None:
        return truth_of(owner)
    made = prepared(owner, lie)
    return made.conduct if isinstance(made, Candidate) else None


def fate_in(owner: OwnerAtHand, asked: Asked) -> Fate | None:
    """Return what happens to the job in a play; None: what really does."""
    return None if asked.case is None else owner.own_law[asked.case].fate


def _looks(owner: OwnerAtHand, asked: Asked) -> bool:
    """Tell whether a look answers in place of a play."""
    if owner.name not in owner.market.turns:
        return False
    conduct = conduct_of(owner, asked.lie)
    return conduct is not None and owner.answers(conduct, fate_in(owner, asked))


def played(held: Held, asked: Asked) -> Ended:
    """Make one play; None: it cannot be played."""
    owner = held.owner(asked.owner)
    conduct = conduct_of(owner, asked.lie)
    return None if conduct is None else owner.play(conduct, fate_in(owner, asked))


class PlaysAhead:
    """What workers make ahead for the searches in one market at hand, which they build themselves.

    Without workers and without a place to keep things, ``helpers`` make nothing ahead.
    """

    def __init__(self, market: AtHand, helpers: Helpers) -> None:
        self._market, self._helpers = market, helpers

    @property
    def on(self) -> bool:
        """Whether plays are made ahead: by workers, or in this process, so that they are kept."""
        return self._helpers.workers is not None or self._helpers.kept is not None

    def many(
        self,
        what: Callable[[Held, Any], Any],
        items: Sequence[Any],
        budget: Budget | None = None,
        at_a_time: int = AT_A_TIME,
        settles: bool = True,
    ) -> list[tuple[Any, Ended]]:
        """Return each item with its result, in their order; fewer if the seconds of a budget end."""
        if not self.on:
            return []
        groups = [tuple(items[k : k + at_a_time]) for k in range(0, len(items), at_a_time)]
        blocks = [Block(self._market, what, group, settles) for group in groups]
        found: dict[int, list[Ended]] = {}
        place = {id(block): k for k, block in enumerate(blocks)}
        stream = run_many(perform, blocks, executor=self._helpers.workers, kept=self._helpers.kept)
        try:
            for block, ended in stream:
                found[place[id(block)]] = counted(ended)
                if budget is not None and budget.out_of_time:
                    break
        finally:
            stream.close()
        return [pair for k in sorted(found) for pair in zip(groups[k], found[k], strict=True)]

    def keep_at_turns(self, market: MarketAtHand, owners: Sequence[OwnerAtHand]) -> None:
        """Say which owners workers are to keep at their turns; in this process they are those given."""
        global _held
        self._market = replace(self._market, owners=tuple(sorted(owner.name for owner in owners)))
        if self.on and self._helpers.workers is None:
            _held = Held(self._market, market)
            _held.owners = {owner.name: owner for owner in owners}

    def plays(self, market: MarketAtHand, asked: Sequence[tuple[OwnerAtHand, Asked]], budget: Budget) -> None:
        """Make plays; `OwnerAtHand.play` then finds them. Those that a look answers are left to it."""
        if not self.on:
            return
        owners = {owner.name: owner for owner, _ in asked}
        wanted = [one for owner, one in asked if not _looks(owner, one)][: budget.plays_left]
        for one, ended in self.many(played, wanted, budget, settles=market.settles):
            owner = owners[one.owner]
            conduct = conduct_of(owner, one.lie)
            if conduct is not None and ended is not None:
                owner.play_ended(conduct, fate_in(owner, one), ended)
