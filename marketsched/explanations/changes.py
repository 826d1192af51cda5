"""What would have changed a job's start: changes of this job alone, each played with everybody else as they were.

A market is played once, up to the first round that a change concerns, and copied there; every change is played on
from the copy until the job has left, or is booked for good (`booked`). A change of the rule's own record of the job or
its owner (class, share) is played as a whole market. Either is the market that `run` would play.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from marketsched.agents.job import Job
from marketsched.agents.lies import PublicInformation, ScaleValue, ShiftDeadline
from marketsched.agents.lies.base import restated
from marketsched.agents.market_run import MarketRun
from marketsched.agents.playing import play
from marketsched.agents.setup import MarketSetup
from marketsched.config.scenario import Scenario
from marketsched.explanations.rules import named, span
from marketsched.mechanisms.errors import InvalidReportError
from marketsched.mechanisms.law import Requirement
from marketsched.mechanisms.mechanism import Event, EventKind, Truthful
from marketsched.mechanisms.sow import StatementOfWork
from marketsched.truthfulness.situations.guarded_market import no_collection, snapshot
from marketsched.truthfulness.situations.market_at_hand import MarketAtHand
from marketsched.truthfulness.situations.promises import durations_seen
from marketsched.truthfulness.situations.true_owners import Births, TrueOwners, worth

HOUR_S = 3600.0
MORE = 2.0  # times the value, the share


class Change(NamedTuple):
    """A change of one job, or of what the rule records of it.

    Attributes
    ----------
    words : str
        The change.
    job : Job or None
        The job as it would be; None: as it is.
    parameters : mapping
        Of the mechanism, that would be others.
    promised : Truthful
        What the rule promises of it, if it is a false report: that it does not pay.
    whole : bool
        Whether the market is played from its first round on.
    """

    words: str
    job: Job | None = None
    parameters: Mapping[str, Any] = {}
    promised: Truthful = "none"
    whole: bool = False


@dataclass(frozen=True)
class Changed:
    """What a change would have brought: ``start`` (None: never), ``completion`` and ``payment``, credits.

    ``utility`` is the true value of the completion less the payment, credits.
    """

    change: Change
    start: int | None
    completion: int | None
    payment: float
    utility: float


def changes_of(
    job: Job, setup: MarketSetup, scenario: Scenario, promised: Truthful, round_seconds: float | None
) -> list[Change]:
    """Return the changes that a job is asked for, the smallest first.

    Parameters
    ----------
    job : Job
        As it was.
    setup : MarketSetup
        Of its market.
    scenario : Scenario
        Of its market.
    promised : Truthful
        What the rule promises to the job, if it reports the truth.
    round_seconds : float or None
        Length of a round; None: a change of an hour is one of a round.
    """
    public, truth, found = setup.public, job.truth, []
    hour, step = (1, "a round") if round_seconds is None else (max(1, round(HOUR_S / round_seconds)), "an hour")
    longest = int(truth.law.durations.max())
    walls = set() if durations_seen(setup.mechanism, truth) else {(longest + job.duration) // 2, job.duration}
    for wall in sorted(walls, reverse=True):
        if job.duration <= wall < longest:
            points = [replace(r, duration=min(r.duration, wall)) for r in truth.requirements]
            found.append(
                Change(
                    f"a wall time of {span(wall, round_seconds)} for {span(longest, round_seconds)}",
                    _with(job, restated(truth, points=points)),
                )
            )
    if truth.birth > hour:
        found.append(Change(f"submission {step} earlier", _moved(job, hour)))
    for words, lie in ((f"a deadline {step} later", ShiftDeadline(hour)), ("twice the value", ScaleValue(MORE))):
        report = _legal(lie, truth, public)
        if report is not None and report != truth:
            kept = promised if isinstance(lie, ScaleValue) or not setup.mechanism.standing.but else "none"
            found.append(Change(words, _with(job, report), promised=kept))
    if scenario.mechanism.name == "two-offers" and truth.patience != 0:
        found.append(Change("the least patience", _with(job, restated(truth, patience=0))))
    if truth.concurrency > 1 and (half := _halved(job, public)) is not None:
        found.append(Change(f"half its nodes, {half.truth.concurrency:,}, for twice as long", half))
    return found + _of_rule(job, setup, scenario)


def _of_rule(job: Job, setup: MarketSetup, scenario: Scenario) -> list[Change]:
    """Return the changes of what a rule records of a job or its owner."""
    name, given = scenario.mechanism.name, scenario.mechanism.parameters
    known = job.tags.get("class")
    if name == "easy-backfill" and given.get("order") == "class" and isinstance(known, int | np.integer):
        return [Change("a class one step up", replace(job, tags={**job.tags, "class": int(known) + 1}), whole=True)]
    if name in ("credits", "fair-turns", "fair-share") and "shares" not in given:
        owners = dict.fromkeys(sorted(set(setup.table.owners)), 1.0)
        what = "a purse of twice the share" if name == "credits" else "twice the share"
        parameters = {"shares": {**owners, job.owner: MORE}}
        return [Change(f"{what} for {named(job.owner)}", None, parameters, whole=True)]
    return []


def _with(job: Job, truth: StatementOfWork) -> Job:
    return replace(job, truth=truth)


def _legal(
    lie: ScaleValue | ShiftDeadline, truth: StatementOfWork, public: PublicInformation
) -> StatementOfWork | None:
    try:
        lie.check(truth, public)
        return lie.report(truth, public)
    except InvalidReportError:
        return None


def _moved(job: Job, rounds: int) -> Job:
    """Return a job that is submitted, and comes, earlier; what its completions are worth stays."""
    points = [replace(r, arrival=r.arrival - rounds) for r in job.truth.requirements]
    arrival = None if job.arrival is None else job.arrival - rounds
    return replace(job, truth=restated(job.truth, birth=job.truth.birth - rounds, points=points), arrival=arrival)


def _halved(job: Job, public: PublicInformation) -> Job | None:
    """Return a job of the same work on half the nodes; None: the market takes none of that length."""
    width, truth = job.truth.concurrency, job.truth
    nodes = -(-width // 2)

    def longer(rounds: int) -> int:
        return -(-rounds * width // nodes)

    if public.max_duration is not None and longer(int(truth.law.durations.max())) > public.max_duration:
        return None
    points = [
        Requirement(
            r.arrival, longer(r.duration), r.probability, longer(r.duration) if r.signal == r.duration else r.signal
        )
        for r in truth.requirements
    ]
    signal = longer(job.duration) if job.signal == job.duration else job.signal
    report = restated(truth, concurrency=nodes, points=points)
    return replace(job, truth=report, duration=longer(job.duration), signal=signal)


def played_changes(
    market: MarketAtHand, scenario: Scenario, asked: Mapping[str, Sequence[Change]], data: Any = None
) -> tuple[dict[str, list[Changed]], dict[str, object]]:
    """Return what each change of each job would have brought, and prices; the market is played once for all jobs.

    The prices are those posted when a job was submitted, of the rounds from then on, where the rule reads reports then.

    Raises
    ------
    MechanismFault
        If the mechanism is at fault.
    """
    owners = _Copying(market, {name: [each for each in changes if not each.whole] for name, changes in asked.items()})
    with no_collection():
        play(market.fresh(), owners, market.setup.horizon)
    found = {}
    for name, changes in asked.items():
        known = iter(owners.found.get(name, ()))
        found[name] = [
            _played_whole(market, scenario, name, each, data) if each.whole else next(known) for each in changes
        ]
    return found, owners.posted


def _played_whole(market: MarketAtHand, scenario: Scenario, name: str, change: Change, data: Any) -> Changed:
    """Play a market under other parameters of the mechanism."""
    more = {f"parameters.{key}": value for key, value in change.parameters.items()}
    rng = np.random.default_rng(np.random.SeedSequence(market.seed))
    place, workload = market.place_of[name], market.factory.workload  # type: ignore[attr-defined]  # of a scenario
    if change.job is not None:
        jobs = list(workload.jobs)
        jobs[place] = change.job
        workload = replace(workload, jobs=jobs)
    setup = scenario.with_mechanism(scenario.mechanism.name, more).setup(rng, data=data, workload=workload)
    row = MarketRun(setup, lookahead=0).run().job_rows.frame(place, place + 1).iloc[0]
    start, completion = (None if math.isnan(float(each)) else int(each) for each in _plain(row, "start", "completion"))
    value = worth(market.setup.jobs[place], completion, market.setup)
    return Changed(change, start, completion, float(row["payment"]), value - float(row["payment"]))


def _plain(row: Any, *names: str) -> Iterable[Any]:
    return (math.nan if row[name] is None or str(row[name]) == "<NA>" else row[name] for name in names)


class _Copying(TrueOwners):
    """All report truly; at the round from which a job would have been another it is copied, and played on."""

    def __init__(self, market: MarketAtHand, asked: Mapping[str, Sequence[Change]]) -> None:
        super().__init__(market.setup, market.born)
        self._market, self.found, self.posted = market, dict[str, list[Changed]](), dict[str, object]()
        self._left = set(asked)
        self._due: defaultdict[int, list[tuple[str, Sequence[Change]]]] = defaultdict(list)
        for name, changes in asked.items():
            births = [each.job.truth.birth for each in changes if each.job]
            if births:
                self._due[min(births)].append((name, changes))

    @property
    def over(self) -> bool:  # type: ignore[override]
        """True once every change was played, and all were submitted."""
        return not self._due and not self._left

    def submit(self, job: Job, market: Any, place: int) -> None:
        """Note the posted prices."""
        if job.name in self._left:
            self._left.discard(job.name)
            if market.mechanism.reads_reports == "submission":
                limits = self._market.public
                self.posted[job.name] = market.mechanism.slot_prices(
                    market.now, limits.max_delay + (limits.max_duration or 0)
                )
        super().submit(job, market, place)

    def act(self, market: Any) -> None:
        """Play the changes that begin in this round from a copy, then go on."""
        due = self._due.pop(market.now, ())
        kept = snapshot(market) if due else None
        for name, changes in due:
            self.found[name] = [
                self._played(market.now, None if kept is None else kept.copy(), name, each) for each in changes
            ]
        super().act(market)

    def _played(self, now: int, market: Any, name: str, change: Change) -> Changed:
        """Play one change; without a copy from the first round on."""
        assert change.job is not None
        job, setup = self._market.setup.jobs[self._market.place_of[name]], self._market.setup
        owners = _Watched(setup, self._others(job, change.job), name, self._market.settles)
        play(self._market.fresh() if market is None else market, owners, setup.horizon)
        completion = owners.completion
        start = completion - change.job.duration if completion and owners.start is None else owners.start
        value = worth(replace(change.job, truth=restated(change.job.truth, value=job.truth.value)), completion, setup)
        return Changed(change, start, completion, owners.payment, value - owners.payment)

    def _others(self, job: Job, changed: Job) -> Births:
        """Return the births with one job in the place of another."""
        found, places = Births(self._born), self._market.place_of
        found[job.truth.birth] = [each for each in found[job.truth.birth] if each.name != job.name]
        there = [*found.get(changed.truth.birth, ()), changed]
        found[changed.truth.birth] = sorted(there, key=lambda each: places[each.name])
        return found


class _Watched(TrueOwners):
    """All report truly, until one job has left, or is booked."""

    def __init__(self, setup: MarketSetup, born: Births, name: str, settles: bool) -> None:
        super().__init__(setup, born)
        self._name, self._settles = name, settles
        self.start: int | None = None
        self.completion: int | None = None
        self.payment = 0.0

    def hear(self, events: Sequence[Event], market: Any) -> None:
        """Note what happens to the job."""
        super().hear(events, market)
        for event in events:
            if event.job != self._name:
                continue
            if event.kind is EventKind.START:
                self.start = market.now - 1
            elif event.kind is EventKind.REQUEUE:
                self.start = None
            elif event.kind.leaves:
                self.over, self.payment = True, event.payment
                self.completion = market.now if event.kind is EventKind.COMPLETE else None
        if self._settles and not self.over and (found := market.booked(self._name)) is not None:
            completion, payment = found
            if completion is not None and completion - 1 <= self._setup.horizon:
                self.over, self.completion, self.payment = True, completion, payment
