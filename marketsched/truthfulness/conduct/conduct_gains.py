"""Gains from conduct that no theorem covers: time of arrival, number of names, other jobs, and earlier reports.

One market of true reports is played; for each owner examined, copies of it continue under each conduct of that owner,
with everything else the same:

* *delay*: the arrival is declared so many rounds late, under the same report (where that excludes such an
  arrival, a mechanism may drop the job); where menus are posted at arrival what that brings is read off the
  menu, whose best entry a job gets;
* *split*: a job of c nodes is submitted by several identities, each with its share of nodes and value; the
  work is done, and worth anything, when all parts are;
* *ghost*: a further job arrives before the own one, and runs and pays if it is started;
* *past*: all jobs of an owner are reported at so many times their value. Where the truth is best for each job
  alone, what this gains is what reports of the past do to later prices.

Reports that a mechanism without a promise of truthfulness takes as given (`BELIEFS`):

* *estimate*: durations are announced so many times as long, or as the run will be;
* *value*: one job is reported at so many times its value;
* *account*: one job comes from an account of its own;
* *accounts*: each job of an owner does;
* *estimates*: the durations of all jobs of an owner are announced so many times as long, or the longest of each as all
  that is allowed, which shows what one announcement does to later jobs;
* *parts*: each job of an owner is two of half of its nodes and value, from the account it has, which shows what the
  number of jobs does.

The best of several conducts is chosen in hindsight, which no owner can do; a fixed one is a plan.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from marketsched.agents.conduct import Attempt, Statement
from marketsched.agents.job import Job
from marketsched.agents.lies import ScaleDuration, ScaleValue
from marketsched.agents.loop import NEVER, Fate
from marketsched.agents.playing import play
from marketsched.agents.setup import MarketSetup
from marketsched.mechanisms.errors import InvalidParameterError
from marketsched.mechanisms.mechanism import Event, EventKind
from marketsched.mechanisms.sow import StatementOfWork
from marketsched.truthfulness.certificates.arrival_certificate import best_entry_of
from marketsched.truthfulness.certificates.menus import menu_of
from marketsched.truthfulness.conduct.conducts import (
    ESTIMATES,
    FAMILIES,
    identities,
    longest_wall_time,
    statements_of,
)
from marketsched.truthfulness.situations.guarded_market import GuardedMarket, Snapshot, snapshot
from marketsched.truthfulness.situations.true_owners import TrueOwners, born_by_round, worth

DELAYS = tuple(range(1, 13))  # rounds
FACTORS = (0.25, 0.5, 0.8, 1.25, 2.0)  # of the value of all jobs of an owner
ENTERED = 1 << 60  # all that are born in the round are in the market


@dataclass(slots=True)
class Gains:
    """The utility of each conduct, in rows ``job, owner, family, conduct, truth, utility, highest_value``, credits."""

    rows: list[dict[str, Any]] = field(default_factory=list)
    worth: dict[str, float] = field(default_factory=dict)  # utility of every job under the truth


def play_conducts(
    setup: MarketSetup,
    looked_at: Sequence[str],
    past_of: Sequence[str] = (),
    *,
    delays: Sequence[int] = DELAYS,
    factors: Sequence[float] = FACTORS,
    families: Sequence[str] = FAMILIES,
    progress: Callable[[int], None] | None = None,
) -> Gains:
    """Play a market of true reports, and some owners' other conducts in copies of it.

    Parameters
    ----------
    setup : MarketSetup
        Fresh; it is used up.
    looked_at : sequence of str
        Jobs whose own conducts are played: all families but ``past``, ``accounts``, ``estimates`` and ``parts``.
    past_of : sequence of str
        Owners all of whose jobs are reported at other values or durations, from other accounts, or in parts.
    delays, factors : sequences
        Rounds, and multiples of the value.
    families : sequence of str
        Of `FAMILIES` and `BELIEFS`, those that are played.
    progress : function of int, optional
        Called after each round with its number.

    Raises
    ------
    InvalidParameterError
        If the mechanism cannot be pickled.
    MechanismFault
        If it breaks the protocol.
    """
    market = GuardedMarket(lambda rng: setup.mechanism, np.random.default_rng(0), setup.capacity)
    owners = _Measured(
        setup, frozenset(looked_at), frozenset(past_of), tuple(delays), tuple(factors), frozenset(families), progress
    )
    play(market, owners, setup.horizon)
    return owners.finished()


class _OneOwner(TrueOwners):
    """All others as before, and one owner by its conduct, until all it has submitted has left the market."""

    def __init__(self, setup: MarketSetup, born: Any, entered: int, attempt: Attempt) -> None:
        super().__init__(setup, born, entered)
        self._attempt = attempt
        self._names: tuple[str, ...] = ()
        self._left = False

    @property
    def over(self) -> bool:  # type: ignore[override]
        """True once nothing of the owner is in the market."""
        return self._left

    def act(self, market: Any) -> None:
        """Submit what the owner submits, then what the others do."""
        before = set(market.entries)
        self._attempt.act(market)
        self._names = (*self._names, *(name for name in market.entries if name not in before))
        super().act(market)

    def hear(self, events: Sequence[Event], market: Any) -> None:
        """Tell the owner; its own statements do not come back."""
        self._attempt.hear(events, market)
        super().hear([event for event in events if event.job not in self._names], market)
        self._left = self._attempt.over and not any(name in market.entries for name in self._names)


class _Sums(TrueOwners):
    """All others as before, but jobs of one owner have other reports, accounts or parts; its utility is added up."""

    def __init__(
        self,
        setup: MarketSetup,
        born: Any,
        entered: int,
        reports: Mapping[str, StatementOfWork],
        open_: set[str],
        accounts: Mapping[str, str] | None = None,
        parts: Mapping[str, Sequence[Statement]] | None = None,
    ) -> None:
        super().__init__(setup, born, entered)
        self._reports, self._open, self._accounts, self._parts = reports, open_, accounts or {}, parts or {}
        self._whole = {f"{name}{part.name}": name for name, each in self._parts.items() for part in each}
        self._left: dict[str, list[Event]] = {}  # of each job, how its parts left
        self.utility = 0.0

    @property
    def over(self) -> bool:  # type: ignore[override]
        """True once all these jobs have left the market."""
        return not self._open

    def submit(self, job: Job, market: Any, place: int) -> None:
        """Submit one job, with another report or from another account if it is the owner's."""
        report, account = self._reports.get(job.name, job.truth), self._accounts.get(job.name, job.owner)
        for part in self._parts.get(job.name, ()):
            market.submit(f"{job.name}{part.name}", part.report, job, part.nodes, owner=account)
        if job.name not in self._parts:
            market.submit(job.name, report, job, job.truth.concurrency, owner=account)

    def hear(self, events: Sequence[Event], market: Any) -> None:
        """Add up what the owner gains."""
        super().hear(events, market)
        for event in events:
            name = self._whole.get(str(event.job), str(event.job))
            if name not in self._open or not event.kind.leaves:
                continue
            left = self._left.setdefault(name, [])
            left.append(event)
            if len(left) == len(self._parts.get(name, (name,))):
                self._open.discard(name)
                ends = [each.completion for each in left if each.completion is not None]
                done = max(ends) if len(ends) == len(left) else None
                self.utility += worth(self.by_name[name], done, self._setup) - sum(each.payment for each in left)


class _Measured(TrueOwners):
    """All owners as before; where one is looked at, copies of the market are played on."""

    def __init__(
        self,
        setup: MarketSetup,
        looked_at: frozenset[str],
        past_of: frozenset[str],
        delays: tuple[int, ...],
        factors: tuple[float, ...],
        families: frozenset[str],
        progress: Callable[[int], None] | None,
    ) -> None:
        super().__init__(setup, born_by_round(setup.jobs))
        self._public, self._families = setup.public, families
        self._looked_at = {n for n in looked_at if self.by_name[n].arrival is not None}
        self._past_of, self._delays, self._factors, self._progress = set(past_of), delays, factors, progress
        self._gains = Gains()
        self._arriving: dict[int, list[Job]] = {}
        for name in sorted(self._looked_at):
            self._arriving.setdefault(self.by_name[name].arrival or 0, []).append(self.by_name[name])

    def finished(self) -> Gains:
        """Return the rows, each with the utility of the truth."""
        worth = self._gains.worth
        for row in self._gains.rows:
            mine = [row["job"]] if row["job"] else [x.name for x in self._setup.jobs if x.owner == row["owner"]]
            row["truth"] = sum(worth.get(name, 0.0) for name in mine)
        return self._gains

    def act(self, market: Any) -> None:
        """Submit; then play on with the later arrivals of those that arrive now."""
        super().act(market)
        for job in self._arriving.get(market.now, ()) if "delay" in self._families else ():
            self._play_delays(job, market)

    def submit(self, job: Job, market: Any, place: int) -> None:
        """Submit one job, after playing on with what its owner might submit in place of it."""
        if job.name in self._looked_at:
            self._play_statements(job, market, place)
        if job.owner in self._past_of:
            self._past_of.discard(job.owner)
            self._play_past(job, market, place)
        super().submit(job, market, place)

    def hear(self, events: Sequence[Event], market: Any) -> None:
        """Note what the truth is worth."""
        super().hear(events, market)
        for event in events:
            if event.kind is EventKind.COMPLETE and event.job in self.by_name:
                self._gains.worth[event.job] = _utility(self.by_name[event.job], event, self._setup)
        if self._progress is not None:
            self._progress(market.now - 1)

    def _note(self, job: Job, family: str, conduct: str, utility: float, *, whole: bool = False) -> None:
        names = {"job": "" if whole else job.name, "owner": job.owner}
        told = {"family": family, "conduct": conduct, "utility": utility}
        self._gains.rows.append({**names, **told, "highest_value": job.truth.value.highest})

    def _play_statements(self, job: Job, market: GuardedMarket, place: int) -> None:
        """Play what else might be submitted, from the turn to submit on."""
        fate = Fate(job.arrival, job.duration, job.signal)
        kept = _copied(market)
        for family, words, conduct in statements_of(job, fate, self._public, self._families):
            attempt = Attempt(conduct, job.name, fate, job.owner)
            play(kept.copy(), _OneOwner(self._setup, self._born, place + 1, attempt), self._setup.horizon)
            self._note(job, family, words, worth(job, attempt.completion, self._setup) - attempt.payment)

    def _play_delays(self, job: Job, market: GuardedMarket) -> None:
        """Play later arrivals, from the round of the arrival on."""
        if job.name not in market.entries:
            return
        revealed = job.signal == job.duration
        played = _best_entries if revealed and market.mechanism.posts_menus_at_arrival else _delayed
        for k, utility in played(job, _copied(market), self._delays, self._setup, self._born):
            self._note(job, "delay", f"{k} rounds" if k > 1 else "1 round", utility)

    def _play_past(self, job: Job, market: GuardedMarket, place: int) -> None:
        """Play the owner's jobs at other values or durations, from other accounts, or in parts, from its first on."""
        mine = [each for each in self._setup.jobs if each.owner == job.owner]
        arriving = {each.name for each in mine if each.arrival is not None}
        kept = _copied(market)
        tries: list[tuple[str, str, dict[str, StatementOfWork], dict[str, str]]] = []
        for factor in self._factors if "past" in self._families else ():
            lie = ScaleValue(factor)
            reports = {each.name: lie.report(each.truth, self._public) for each in mine}
            tries.append(("past", f"values times {factor:g}", reports, {}))
        for factor in ESTIMATES if "estimates" in self._families else ():
            longer = ScaleDuration(factor)
            reports = {each.name: longer.report(each.truth, self._public) for each in mine}
            tries.append(("estimates", f"times {factor:g}", reports, {}))
        if "estimates" in self._families:
            reports = {each.name: longest_wall_time(each.truth, self._public) for each in mine}
            tries.append(("estimates", "the longest wall time", reports, {}))
        if "accounts" in self._families:
            tries.append(("accounts", "one for each job", {}, {each.name: f"{job.owner}/{each.name}" for each in mine}))
        for family, words, reports, accounts in tries:
            sums = _Sums(self._setup, self._born, place, reports, set(arriving), accounts)
            play(kept.copy(), sums, self._setup.horizon)
            self._note(job, family, words, sums.utility, whole=True)
        halves = {each.name: identities(each.truth, 2).statements for each in mine if each.truth.concurrency > 1}
        if "parts" in self._families and halves.keys() & arriving:
            sums = _Sums(self._setup, self._born, place, {}, set(arriving), parts=halves)
            play(kept.copy(), sums, self._setup.horizon)
            self._note(job, "parts", "each in two", sums.utility, whole=True)


def _delayed(
    job: Job, kept: Snapshot, delays: Sequence[int], setup: MarketSetup, born: Any
) -> Iterator[tuple[int, float]]:
    """Play each later arrival until the job has left."""
    for k in delays:
        copy = kept.copy()
        copy.foretell({job.name: Fate((job.arrival or 0) + k, job.duration, job.signal)})
        sums = _Sums(setup, born, ENTERED, {}, {job.name})
        play(copy, sums, setup.horizon)
        yield k, sums.utility


def _best_entries(
    job: Job, kept: Snapshot, delays: Sequence[int], setup: MarketSetup, born: Any
) -> Iterator[tuple[int, float]]:
    """Read off the menu that each later arrival would face what it gets: the best entry, by the certificate."""
    waiting = kept.copy()
    waiting.foretell({job.name: NEVER})
    entered = ENTERED
    for k in range(1, max(delays, default=0) + 1):
        if waiting.now >= setup.horizon:
            yield from ((late, 0.0) for late in delays if late >= k)
            return
        play(waiting, TrueOwners(setup, born, entered), waiting.now)
        entered = 0
        if k in delays:
            copy = _copied(waiting).copy()
            copy.mechanism.keep_menus([job.name])
            copy.foretell({job.name: Fate(copy.now, job.duration, job.signal)})
            play(copy, TrueOwners(setup, born), copy.now)
            menu = menu_of(copy, job.name)
            yield k, 0.0 if menu is None else best_entry_of(menu, job.truth, job.duration, setup.public)[0]


def _copied(market: GuardedMarket) -> Snapshot:
    kept = snapshot(market)
    if kept is None:
        raise InvalidParameterError(
            f"mechanism = {type(market.mechanism).__name__}: it cannot be pickled: expected one that can, to play on "
            "from the middle of a market"
        )
    return kept


def _utility(job: Job, event: Event, setup: MarketSetup) -> float:
    return worth(job, event.completion if event.kind is EventKind.COMPLETE else None, setup) - event.payment
