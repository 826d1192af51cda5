"""Conducts of an owner over all of its jobs: other values, laws, deadlines, nodes, arrivals and accounts, all alike.

Where an owner's jobs share something (usage, a purse of credits, its place in turns), a lie about one job changes the
others, and the owner's utility is that of all of them. `MONEY` are played where payments count; `VALUE` is what there
is to try where they do not, and an owner cares for the value of its completed jobs alone:

* *ranks*: the order of importance of the owner's jobs, or its spread, is another one;
* *slack*: all deadlines are so many times as far from the birth;
* *widths*: all jobs ask for more nodes than they need;
* *ghosts*: every job brings one more, which runs and is worth nothing;
* *lates*: all arrivals are declared so many rounds late;
* *hoard*: some jobs are said to be worth nothing, which saves for the others;
* *half*: every second job comes from an account that was opened for it;
* *trade*: two owners collude: the important jobs of one come from the account of the other. Utilities are added up.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from marketsched.agents.conduct import Statement
from marketsched.agents.job import Job
from marketsched.agents.lies import PublicInformation, ScaleDuration, ScaleValue, ShiftDeadline
from marketsched.agents.lies.base import restated
from marketsched.agents.loop import Fate
from marketsched.mechanisms.sow import StatementOfWork
from marketsched.mechanisms.values import DeadlineValue, importance
from marketsched.truthfulness.conduct.conducts import ESTIMATES, identities, longest_wall_time

MONEY = ("past", "estimates", "accounts", "parts")
VALUE = (*MONEY, "ranks", "slack", "widths", "ghosts", "lates", "hoard", "half", "trade")
KNOWN = "as they will be"  # knowledge of durations, and no lie
SLACKS, LATES, WIDER = (0.5, 0.75, 1.5, 3.0), (1, 4), (1.25, 2.0)
GHOST = 1e-9  # of a value: as good as nothing


@dataclass(frozen=True, slots=True)
class AllJobs:
    """What an owner does with all of its jobs, by job; what is not named is as in truth."""

    family: str
    words: str  # what it is called
    reports: Mapping[str, StatementOfWork] = field(default_factory=dict)
    accounts: Mapping[str, str] = field(default_factory=dict)  # from which a job comes
    parts: Mapping[str, Sequence[Statement]] = field(default_factory=dict)  # in place of a job
    late: Mapping[str, int] = field(default_factory=dict)  # rounds by which an arrival is later than it could be
    ghosts: Mapping[str, StatementOfWork] = field(default_factory=dict)  # come beside a job, and take as long
    withheld: tuple[str, ...] = ()  # not submitted
    also: tuple[str, ...] = ()  # jobs of another owner whose utility counts as well


def conducts_of_all(
    mine: Sequence[Job],
    public: PublicInformation,
    families: Collection[str],
    factors: Sequence[float],
    partner: Sequence[Job] = (),
) -> Iterator[AllJobs]:
    """Yield what an owner may do with all of its jobs, which are in order of submission.

    ``families`` other than those of `VALUE` yield nothing. ``factors`` are of the values in the family ``past``;
    ``partner`` are the jobs of an owner with which it colludes, none if it finds nobody.
    """

    def all_as(family: str, words: str, lie: ScaleValue | ScaleDuration) -> AllJobs:
        return AllJobs(family, words, {job.name: lie.report(job.truth, public) for job in mine})

    if "past" in families:
        yield from (all_as("past", f"values times {factor:g}", ScaleValue(factor)) for factor in factors)
    if "estimates" in families:
        yield from (all_as("estimates", f"times {factor:g}", ScaleDuration(factor)) for factor in ESTIMATES)
        longest = {job.name: longest_wall_time(job.truth, public) for job in mine}
        yield AllJobs("estimates", "the longest wall time", longest)
        yield AllJobs("estimates", KNOWN, {job.name: _known(job) for job in mine})
    if "accounts" in families:
        yield AllJobs("accounts", "one for each job", accounts={job.name: f"{job.owner}/{job.name}" for job in mine})
    if "half" in families:
        every_second = {job.name: f"{job.owner}/second" for job in mine[1::2]}
        yield AllJobs("half", "half of the jobs from a fresh account", accounts=every_second)
    halves = {job.name: identities(job.truth, 2).statements for job in mine if job.truth.concurrency > 1}
    if "parts" in families and any(job.name in halves for job in mine if job.arrival is not None):
        yield AllJobs("parts", "each in two", parts=halves)
    if "ranks" in families:
        yield from _ranks(mine, public)
    if "hoard" in families:
        yield from _hoards(mine, public)
    if "slack" in families:
        for factor in SLACKS:
            yield AllJobs("slack", f"times {factor:g}", {job.name: _slacker(job, factor, public) for job in mine})
    if "widths" in families:
        for factor in WIDER:
            yield AllJobs("widths", f"times {factor:g}", {job.name: _wider(job, factor, public) for job in mine})
    if "ghosts" in families:
        yield AllJobs("ghosts", "of one node, worth nothing", ghosts={job.name: _ghost(job, 1, GHOST) for job in mine})
        same = {job.name: _ghost(job, job.truth.concurrency, 1.0) for job in mine}
        yield AllJobs("ghosts", "of the same size and value", ghosts=same)
    if "lates" in families:
        for k in LATES:
            yield AllJobs("lates", f"{k} rounds" if k > 1 else "1 round", late={job.name: k for job in mine})
    if "trade" in families and partner:
        other = partner[0].owner
        middle = float(np.median([_density(job) for job in mine]))
        accounts = {job.name: other for job in mine if _density(job) >= middle}
        also = tuple(job.name for job in partner)
        yield AllJobs("trade", "the important half from a partner's account", accounts=accounts, also=also)
        yield AllJobs("trade", "all from a partner's account", accounts={job.name: other for job in mine}, also=also)


def _mean(job: Job) -> float:
    law = job.truth.law
    return float(law.probabilities @ law.durations / law.probabilities.sum())


def _density(job: Job) -> float:
    """Return how much a job matters to its owner, a node and mean round."""
    return importance(job.truth.value, job.truth.concurrency, _mean(job))


def _of_densities(
    mine: Sequence[Job], densities: Sequence[float], public: PublicInformation
) -> dict[str, StatementOfWork]:
    """Return reports with these values a node and mean round, scaled down where one would exceed what is legal."""
    values = [each * job.truth.concurrency * _mean(job) for job, each in zip(mine, densities, strict=True)]
    highest = max(values, default=0.0)
    scale = 1.0 if public.max_value is None or highest <= public.max_value else public.max_value / highest
    found = {}
    for job, value in zip(mine, values, strict=True):
        own = job.truth.value.highest
        found[job.name] = ScaleValue(scale * value / own).report(job.truth, public) if own > 0 else job.truth
    return found


def _ranks(mine: Sequence[Job], public: PublicInformation) -> Iterator[AllJobs]:
    """Yield other orders of importance, and other spreads of the same one."""
    own = [_density(job) for job in mine]
    middle = float(np.median(own)) or 1.0
    for power in (0.5, 2.0):
        spread = [middle * (each / middle) ** power for each in own]
        yield AllJobs("ranks", f"densities to the power {power:g}", _of_densities(mine, spread, public))
    yield AllJobs("ranks", "all densities equal", _of_densities(mine, [middle] * len(own), public))
    by_node = [each * _mean(job) for job, each in zip(mine, own, strict=True)]
    yield AllJobs("ranks", "value a node, not a node and round", _of_densities(mine, by_node, public))
    whole = [each * _mean(job) * job.truth.concurrency for job, each in zip(mine, own, strict=True)]
    yield AllJobs("ranks", "value of the job, not a node and round", _of_densities(mine, whole, public))


def _hoards(mine: Sequence[Job], public: PublicInformation) -> Iterator[AllJobs]:
    """Yield reports by which some jobs are worth nothing, all of them alike."""
    own = [_density(job) for job in mine]
    middle, half = float(np.median(own)), len(mine) // 2
    kept = {
        "the less important half is worth nothing": [each >= middle for each in own],
        "the first half is worth nothing": [i >= half for i in range(len(mine))],
        "every second job is worth nothing": [i % 2 == 0 for i in range(len(mine))],
    }
    for words, keeps in kept.items():
        alike = [each if keep else GHOST * middle for each, keep in zip(own, keeps, strict=True)]
        yield AllJobs("hoard", words, _of_densities(mine, alike, public))


def _known(job: Job) -> StatementOfWork:
    law = [(a, job.duration, p, o) for a, _, p, o in job.truth.law.points()]
    return StatementOfWork(job.truth.birth, job.truth.concurrency, job.truth.value, law, **job.truth.terms)


def _slacker(job: Job, factor: float, public: PublicInformation) -> StatementOfWork:
    room = max(0, job.truth.value.last - job.truth.birth)
    moved = min(round((factor - 1.0) * room), public.max_delay - 1 - room)
    return ShiftDeadline(int(moved)).report(job.truth, public) if moved else job.truth


def _wider(job: Job, factor: float, public: PublicInformation) -> StatementOfWork:
    nodes = min(public.max_concurrency or public.capacity, int(np.ceil(factor * job.truth.concurrency)))
    return restated(job.truth, concurrency=nodes)


def _ghost(job: Job, nodes: int, share: float) -> StatementOfWork:
    worth = DeadlineValue(share * job.truth.value.highest, job.truth.value.last)
    return restated(job.truth, concurrency=nodes, value=worth)


def later(job: Job, rounds: int) -> tuple[StatementOfWork, Fate]:
    """Return the report of a job that is announced to arrive so many rounds later than it does, and what happens."""
    truth = job.truth
    law = [(a + rounds, d, p, o) for a, d, p, o in truth.law.points()]
    report = StatementOfWork(truth.birth, truth.concurrency, truth.value, law, **truth.terms)
    return report, Fate(None if job.arrival is None else job.arrival + rounds, job.duration, job.signal)
