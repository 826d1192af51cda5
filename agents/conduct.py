"""An owner's conduct in a market: the statements it submits, and the real work behind each.

A misreport inside the model is one statement about the whole job, submitted at birth.
Outside the model an owner may submit later, submit several statements, or statements with no job
behind them. The world then answers as it must: a statement with too few nodes never completes, one
with nothing behind it never arrives, and the job is done when all its parts are.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass

from marketsched.agents.loop import NEVER, Fate, MarketLoop
from marketsched.mechanisms.mechanism import Event, EventKind
from marketsched.mechanisms.sow import StatementOfWork


def whole(job: Fate) -> Fate:
    """Return the fate of a statement behind which stands the whole job."""
    return job


def nothing(job: Fate) -> Fate:
    """Return the fate of a statement behind which stands nothing: it never arrives."""
    return NEVER


@dataclass(frozen=True)
class Statement:
    """One statement that the owner submits."""

    round: int  # of its submission
    report: StatementOfWork  # born in that round
    nodes: int  # without which it never completes
    name: str = ""  # suffix of the owner's name in the market
    part: Callable[[Fate], Fate | None] = whole  # from what happens to the job to what happens to it; None: no work
    counts: bool = True  # False: the job is done without it
    identity: str = ""  # suffix of the owner's name where another identity submits it
    withdrawn: int | None = None  # the round in which it is taken back, unless it has arrived before; None: never


@dataclass(frozen=True)
class Conduct:
    """All that an owner does, in order of submission; ``key`` is equal for conducts that are the same."""

    statements: tuple[Statement, ...]
    key: Hashable

    @property
    def first_round(self) -> int:
        """The round of the first submission."""
        return min(statement.round for statement in self.statements)

    @property
    def withdraws(self) -> bool:
        """Whether a statement is taken back, for which its owner may pay also if the job never comes."""
        return any(statement.withdrawn is not None for statement in self.statements)

    @property
    def highest_value(self) -> float:
        """The sum of the highest values reported, credits."""
        return sum(s.report.value.highest for s in self.statements)


def plain(report: StatementOfWork, nodes: int) -> Conduct:
    """Return the conduct inside the model: one report, at its birth, for the whole job, which needs ``nodes``."""
    return Conduct((Statement(report.birth, report, nodes),), report)


class Attempt:
    """A conduct while it is played: its submissions, and their outcomes.

    ``name`` is that of the owner's job in the market, ``job`` what really happens to it; it arrives. ``owner`` None: an
    owner known by the name of the job. On a cluster the shapes of the ``truth`` say what the job makes of a booking.
    ``payment`` is what was paid so far, credits; ``worth`` that of the completion, compared with the value curve: below
    1 where a shape of smaller worth ran.
    """

    def __init__(
        self, conduct: Conduct, name: str, job: Fate, owner: str | None = None, truth: StatementOfWork | None = None
    ) -> None:
        self.payment, self.worth = 0.0, 1.0
        self._truth = truth
        self._job_name, self._owner = name, name if owner is None else owner
        self._parts = {s.name: s.part(job) for s in conduct.statements}
        self._mine: dict[Hashable, str] = {name + s.name: s.name for s in conduct.statements}  # by name in the market
        self._to_submit = list(conduct.statements)
        self._to_withdraw = [s for s in conduct.statements if s.withdrawn is not None]
        # The statements without which the job is not done, and when each of them was.
        working = [s.name for s in conduct.statements if s.counts and self._parts[s.name] is not None]
        self._done: dict[str, int | None] = dict.fromkeys(working)
        self._awaited = set(working)

    @property
    def over(self) -> bool:
        """True once nothing can change the owner's utility any more."""
        return not self._awaited and not self._to_withdraw

    @property
    def completion(self) -> int | None:
        """When the last part of the job completed; None: not all of them have."""
        times = list(self._done.values())
        return None if not times or None in times else max(t for t in times if t is not None)

    def act(self, market: MarketLoop) -> None:
        """Submit the statements due in this round, then take back those that are."""
        due = [s for s in self._to_submit if s.round == market.now]
        self._to_submit = [s for s in self._to_submit if s.round != market.now]
        for statement in due:
            fate = self._parts[statement.name]
            if fate is None:
                self._awaited.discard(statement.name)
                continue
            name = self._job_name + statement.name
            owner = self._owner + statement.identity
            market.submit(name, statement.report, fate, statement.nodes, owner=owner, own=True, truth=self._truth)
        self._withdraw(market)

    def _withdraw(self, market: MarketLoop) -> None:
        due = [s for s in self._to_withdraw if s.withdrawn == market.now]
        self._to_withdraw = [s for s in self._to_withdraw if s.withdrawn != market.now]
        for statement in due:
            entry = market.entries.get(self._job_name + statement.name)
            if entry is not None and not entry.arrived:
                self.payment += market.withdraw(entry.name).payment
                self._awaited.discard(statement.name)

    def hear(self, events: Sequence[Event], market: MarketLoop) -> None:
        """Record the jobs that left the market in the round just played."""
        for event in events:
            name = self._mine.get(event.job)
            if name is None or not event.kind.leaves:
                continue
            self.payment += event.payment
            self._awaited.discard(name)
            if event.kind is EventKind.COMPLETE and name in self._done:
                self._done[name] = market.now
                self.worth *= event.worth

    @property
    def submitted(self) -> bool:
        """Whether everything was submitted that will be."""
        return not self._to_submit

    def resume(self) -> None:
        """Go on in a market in which everything was submitted before."""
        self._to_submit = []

    def settle(self, market: MarketLoop, last: int) -> None:
        """Take all that is still awaited as it will be by round ``last``, if that is sure."""
        if self._to_submit or self._to_withdraw:
            return
        coming: list[tuple[int, int, str, float, float]] = []
        for name in self._awaited:
            found = market.booked(self._job_name + name)
            if found is None:
                return
            if found[0] is not None and found[0] - 1 <= last:
                entry = market.entries[self._job_name + name]
                coming.append((found[0], entry.order, name, found[1], entry.worth))
        for completion, _, name, payment, worth in sorted(coming):  # as they will be charged
            self.payment += payment
            self._done[name] = completion
            self.worth *= worth
        self._awaited.clear()
