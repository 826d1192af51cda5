"""Gains from conduct that no theorem covers: time of arrival, number of names, other jobs, and earlier reports.

One market of true reports is played; for each owner examined, copies of it continue under each conduct of that owner,
with everything else the same:

* *delay*: the arrival is declared so many rounds late, under the same report (where that excludes such an
  arrival, a mechanism may drop the job);
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

What an owner does with all of its jobs alike is in `all_jobs`: other durations show what one announcement does to later
jobs, parts what their number does, and where payments do not count, ranks, deadlines, widths, ghosts, and collusion.

The best of several conducts is chosen in hindsight, which no owner can do; a fixed one is a plan.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from marketsched.agents.conduct import Attempt
from marketsched.agents.job import Job
from marketsched.agents.loop import Fate
from marketsched.agents.playing import play
from marketsched.agents.setup import MarketSetup
from marketsched.mechanisms.errors import InvalidParameterError, InvalidReportError
from marketsched.mechanisms.mechanism import Event, EventKind
from marketsched.mechanisms.sow import StatementOfWork
from marketsched.truthfulness.conduct.all_jobs import AllJobs, conducts_of_all, later
from marketsched.truthfulness.conduct.conducts import FAMILIES, statements_of
from marketsched.truthfulness.situations.guarded_market import GuardedMarket, Snapshot, snapshot
from marketsched.truthfulness.situations.true_owners import TrueOwners, born_by_round, worth

DELAYS = tuple(range(1, 13))  # rounds
FACTORS = (0.25, 0.5, 0.8, 1.25, 2.0)  # of the value of all jobs of an owner
GHOST_NAME = "/ghost"
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
    paid: bool = True,
) -> Gains:
    """Play a market of true reports, and some owners' other conducts in copies of it.

    ``setup`` is used up. ``looked_at`` are jobs whose own conducts are played: all ``families`` of `FAMILIES` and
    `BELIEFS`; ``past_of`` owners that do something with all of their jobs (`all_jobs`), each of whom colludes with the
    next one in order of names. ``delays`` are rounds, ``factors`` multiples of the value. ``paid`` tells whether
    payments count: where owners do not care for credits, utility is the value alone. ``progress`` is called after each
    round with its number.

    Raises InvalidParameterError if the mechanism cannot be pickled, MechanismFault if it breaks the protocol.
    """
    market = GuardedMarket(lambda rng: setup.mechanism, np.random.default_rng(0), setup.capacity)
    owners = _Measured(
        setup,
        frozenset(looked_at),
        frozenset(past_of),
        tuple(delays),
        tuple(factors),
        frozenset(families),
        progress,
        paid,
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


class Sums(TrueOwners):
    """All others as before, but one owner does something with all of its jobs; the utility of those is added up.

    ``open_`` are the jobs that count; ``paid`` tells whether payments do.
    """

    def __init__(
        self, setup: MarketSetup, born: Any, entered: int, does: AllJobs, open_: set[str], *, paid: bool = True
    ) -> None:
        super().__init__(setup, born, entered)
        self._does, self._open, self._paid = does, open_, paid
        self._whole = {f"{name}{part.name}": name for name, each in does.parts.items() for part in each}
        self._left: dict[str, list[Event]] = {}  # of each job, how its parts left
        self.utility = 0.0

    @property
    def over(self) -> bool:  # type: ignore[override]
        """True once all these jobs have left the market."""
        return not self._open

    def submit(self, job: Job, market: Any, place: int) -> None:
        """Submit one job; what the owner does with it, if it is the owner's."""
        does, account = self._does, self._does.accounts.get(job.name, job.owner)
        if job.name in does.withheld:
            return
        if job.name in does.ghosts:
            ghost = does.ghosts[job.name]
            fate = Fate(job.arrival, job.duration, job.signal)
            market.submit(f"{job.name}{GHOST_NAME}", ghost, fate, ghost.concurrency, owner=account, truth=ghost)
        if job.name in does.parts:
            for part in does.parts[job.name]:
                market.submit(f"{job.name}{part.name}", part.report, job, part.nodes, owner=account)
            return
        report: StatementOfWork = does.reports.get(job.name, job.truth)
        happens: Any = job
        if job.name in does.late:
            report, happens = later(job, does.late[job.name])
        nodes = job.truth.concurrency
        try:
            market.submit(job.name, report, happens, nodes, owner=account, own=True)
        except InvalidReportError:  # outside what this mechanism takes: the truth is not
            market.submit(job.name, job.truth, job, nodes, owner=account)

    def hear(self, events: Sequence[Event], market: Any) -> None:
        """Add up what the owner gains."""
        super().hear(events, market)
        for event in events:
            name = self._whole.get(str(event.job), str(event.job))
            if name not in self._open or not event.kind.leaves:
                continue
            left = self._left.setdefault(name, [])
            left.append(event)
            if len(left) == len(self._does.parts.get(name, (name,))):
                self._open.discard(name)
                ends = [each.completion for each in left if each.completion is not None]
                done = max(ends) if len(ends) == len(left) else None
                self.utility += worth(self.by_name[name], done, self._setup)
                self.utility -= sum(each.payment for each in left) if self._paid else 0.0


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
        paid: bool,
    ) -> None:
        super().__init__(setup, born_by_round(setup.jobs))
        self._paid, owners = paid, sorted(past_of)
        self._partners = dict(zip(owners, owners[1:] + owners[:1], strict=True)) if len(owners) > 1 else {}
        self._gone: set[str] = set()  # jobs that have left
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
            row["truth"] = sum(worth.get(name, 0.0) for name in (*mine, *row.pop("also")))
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
            if event.kind.leaves:
                self._gone.add(str(event.job))
            if event.kind is EventKind.COMPLETE and event.job in self.by_name:
                done = worth(self.by_name[event.job], event.completion, self._setup)
                self._gains.worth[event.job] = done - self._charged(event.payment)
        if self._progress is not None:
            self._progress(market.now - 1)

    def _charged(self, payment: float) -> float:
        """Return what a payment takes from the utility of an owner."""
        return payment if self._paid else 0.0

    def _note(
        self, job: Job, family: str, conduct: str, utility: float, *, whole: bool = False, also: Sequence[str] = ()
    ) -> None:
        names = {"job": "" if whole else job.name, "owner": job.owner}
        about = {"family": family, "conduct": conduct, "utility": utility, "also": also}
        self._gains.rows.append({**names, **about, "highest_value": job.truth.value.highest})

    def _play_statements(self, job: Job, market: GuardedMarket, place: int) -> None:
        """Play what else might be submitted, from the turn to submit on."""
        fate = Fate(job.arrival, job.duration, job.signal)
        kept = _copied(market)
        for family, words, conduct in statements_of(job, fate, self._public, self._families):
            attempt = Attempt(conduct, job.name, fate, job.owner)
            play(kept.copy(), _OneOwner(self._setup, self._born, place + 1, attempt), self._setup.horizon)
            self._note(job, family, words, worth(job, attempt.completion, self._setup) - self._charged(attempt.payment))

    def _play_delays(self, job: Job, market: GuardedMarket) -> None:
        """Play later arrivals, from the round of the arrival on."""
        if job.name not in market.entries:
            return
        for k, utility in _delayed(job, _copied(market), self._delays, self._setup, self._born, self._paid):
            self._note(job, "delay", f"{k} rounds" if k > 1 else "1 round", utility)

    def _play_past(self, job: Job, market: GuardedMarket, place: int) -> None:
        """Play what the owner may do with all of its jobs, from its first on."""
        mine = [each for each in self._setup.jobs if each.owner == job.owner]
        partner = [each for each in self._setup.jobs if each.owner == self._partners.get(job.owner)]
        kept = _copied(market)
        for does in conducts_of_all(mine, self._public, self._families, self._factors, partner):
            counted = {each.name for each in (*mine, *partner) if each in mine or each.name in does.also}
            before = sum(self._gains.worth.get(name, 0.0) for name in counted)  # of a partner that came earlier
            open_ = {n for n in counted if self.by_name[n].arrival is not None and n not in self._gone}
            sums = Sums(self._setup, self._born, place, does, open_, paid=self._paid)
            play(kept.copy(), sums, self._setup.horizon)
            self._note(job, does.family, does.words, before + sums.utility, whole=True, also=does.also)


def _delayed(
    job: Job, kept: Snapshot, delays: Sequence[int], setup: MarketSetup, born: Any, paid: bool
) -> Iterator[tuple[int, float]]:
    """Play each later arrival until the job has left."""
    for k in delays:
        copy = kept.copy()
        copy.foretell({job.name: Fate((job.arrival or 0) + k, job.duration, job.signal)})
        sums = Sums(setup, born, ENTERED, AllJobs("delay", ""), {job.name}, paid=paid)
        play(copy, sums, setup.horizon)
        yield k, sums.utility


def _copied(market: GuardedMarket) -> Snapshot:
    kept = snapshot(market)
    if kept is None:
        raise InvalidParameterError(
            f"mechanism = {type(market.mechanism).__name__}: it cannot be pickled: expected one that can, to play on "
            "from the middle of a market"
        )
    return kept
