"""Domains so small that every report of an owner can be played against every profile of the others.

A domain defines the possible reports of each owner, and the possible outcomes of its job. Utilities are expectations
over all that can happen to all jobs, so what is found is exact: no lie of the domain pays, or here is one that does.
It is a proof for this domain, and for no other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np

from marketsched.agents.job import Job
from marketsched.mechanisms.mechanism import EventKind, Mechanism
from marketsched.mechanisms.sow import StatementOfWork
from marketsched.mechanisms.values import DeadlineValue, TableValue
from marketsched.truthfulness.checks.check_markets import CheckMarket, play

ROUNDING = 1e-9  # credits

Factory = Callable[..., Mechanism]
WeightedFate = tuple[float, int | None, int]  # probability, round of arrival (None: never), duration
Got = tuple[tuple[int | None, float], ...]  # by owner: completion and payment


@dataclass(frozen=True)
class TinyOwner:
    """The possible reports of an owner, and the possible outcomes of its job under every report.

    ``truths`` numbers the reports that may be true, those whose law is that of the outcomes; None: all.
    """

    reports: tuple[StatementOfWork, ...]
    outcomes: tuple[WeightedFate, ...]
    truths: tuple[int, ...] | None = None

    @property
    def types(self) -> tuple[int, ...]:
        """Numbers of the reports that may be true."""
        return tuple(range(len(self.reports))) if self.truths is None else self.truths


@dataclass(frozen=True)
class TinyDomain:
    """A few owners, in order of submission, and the sizes of their market."""

    name: str
    sizes: dict[str, Any] = field(repr=False)
    owners: tuple[TinyOwner, ...] = field(repr=False)

    @property
    def n_profiles(self) -> int:
        """How many profiles of true types there are."""
        return int(np.prod([len(owner.types) for owner in self.owners]))

    def profiles(self) -> Iterator[tuple[int, ...]]:
        """Go through all profiles of true types, by number of the report of each owner."""
        return product(*(owner.types for owner in self.owners))


class TinyPlays:
    """All plays of a domain under one mechanism, each made once.

    If the mechanism ``drew`` from its stream, utilities are those of one stream of draws.
    """

    def __init__(self, build: Factory, domain: TinyDomain) -> None:
        self._build, self.domain, self.drew = build, domain, False
        self._known: dict[tuple[int, ...], list[tuple[float, Got]]] = {}

    def played(self, profile: tuple[int, ...]) -> list[tuple[float, Got]]:
        """Return what comes of a profile of reports: the probability of each case, and every owner's utility."""
        if profile not in self._known:
            self._known[profile] = [
                (float(np.prod([each[0] for each in case])), self._play(profile, case))
                for case in product(*(owner.outcomes for owner in self.domain.owners))
            ]
        return self._known[profile]

    @property
    def made(self) -> int:
        """How many plays were made."""
        return sum(map(len, self._known.values()))

    def utility(self, owner: int, truth: int, profile: tuple[int, ...]) -> float:
        """Return the mean utility of an owner of a true type under these reports of all owners, credits."""
        return sum(p * _worth(self._type(owner, truth), got[owner]) for p, got in self.played(profile))

    def worst(self, owner: int, profile: tuple[int, ...]) -> float:
        """Return the least that the owner gets in any case, reporting truly, credits."""
        truth = self._type(owner, profile[owner])
        return min(_worth(truth, got[owner]) for p, got in self.played(profile) if p > 0)

    def revenue(self, profile: tuple[int, ...]) -> float:
        """Return the smallest sum of payments over all cases, credits."""
        return min(sum(payment for _, payment in got) for p, got in self.played(profile) if p > 0)

    def _type(self, owner: int, truth: int) -> StatementOfWork:
        return self.domain.owners[owner].reports[truth]

    def _play(self, profile: tuple[int, ...], case: tuple[WeightedFate, ...]) -> Got:
        jobs: dict[Any, Job] = {}
        for i, (owner, (_, arrival, duration)) in enumerate(zip(self.domain.owners, case, strict=True)):
            sow = owner.reports[profile[i]]
            jobs[f"owner {i}"] = Job(f"owner {i}", f"owner {i}", sow, arrival, duration, duration)
        events = play(self._watched, CheckMarket(jobs, 0, self.domain.sizes)).events
        got: dict[Any, tuple[int | None, float]] = {name: (None, 0.0) for name in jobs}
        for event in events:
            completion, paid = got[event.job]
            completion = event.completion if event.kind is EventKind.COMPLETE else completion
            got[event.job] = (completion, paid + event.payment)
        self.drew |= self._rng.bit_generator.state != self._fresh
        return tuple(got.values())

    def _watched(self, *, rng: np.random.Generator, **sizes: Any) -> Mechanism:
        self._rng, self._fresh = rng, rng.bit_generator.state
        return self._build(**sizes, rng=rng)


@dataclass(frozen=True)
class TinyGain:
    """The lie of a domain that gains most, and by how much over the truth, credits, on average over all fates."""

    domain: TinyDomain = field(repr=False)
    owner: int
    profile: tuple[int, ...]
    lie: int
    gain: float
    honest: float

    @property
    def truth(self) -> StatementOfWork:
        """The owner's true statement."""
        return self.domain.owners[self.owner].reports[self.profile[self.owner]]

    @property
    def report(self) -> StatementOfWork:
        """Its report."""
        return self.domain.owners[self.owner].reports[self.lie]


def largest_gain(plays: TinyPlays, tolerance: float = 0.0) -> tuple[TinyGain | None, int]:
    """Return the lie that gains most in a domain (None: none gains more than the tolerance), and how many were played.

    Gains up to ``tolerance``, credits, and rounding, do not count.
    """
    domain, asked = plays.domain, 0
    best: TinyGain | None = None
    for profile in domain.profiles():
        for i, owner in enumerate(domain.owners):
            needed = owner.reports[profile[i]].concurrency
            honest = plays.utility(i, profile[i], profile)
            for lie, report in enumerate(owner.reports):
                if lie == profile[i] or report.concurrency < needed:  # with too few nodes nothing completes
                    continue
                asked += 1
                gain = plays.utility(i, profile[i], (*profile[:i], lie, *profile[i + 1 :])) - honest
                if gain > (tolerance + ROUNDING if best is None else best.gain):
                    best = TinyGain(domain, i, profile, lie, gain, honest)
    return best, asked


def _worth(truth: StatementOfWork, got: tuple[int | None, float]) -> float:
    completion, payment = got
    return (0.0 if completion is None else float(truth.value(completion))) - payment


def _sizes(capacity: int, width: int = 1, longest: int = 2) -> dict[str, Any]:
    limits = {"max_concurrency": width, "max_duration": longest, "max_value": 10.0, "max_delay": 7}
    return {"capacity": capacity, "horizon": 8, **limits}


def _at_once(*choices: tuple[float, int, int]) -> TinyOwner:
    """Return an owner of one round's work in round 1: (value, deadline, nodes)."""
    reports = (StatementOfWork(1, nodes, DeadlineValue(v, last), [(1, 1, 1.0)]) for v, last, nodes in choices)
    return TinyOwner(tuple(reports), ((1.0, 1, 1),))


def _one_round() -> TinyDomain:
    owner = _at_once(*((v, 2, 1) for v in (1.0, 2.0, 3.0, 5.0)))
    return TinyDomain("one round", _sizes(2), (owner,) * 3)


def _two_rounds() -> TinyDomain:
    owner = _at_once(*((v, last, 1) for v in (1.0, 2.0, 5.0) for last in (2, 3)))
    return TinyDomain("two rounds", _sizes(1), (owner,) * 3)


def _widths() -> TinyDomain:
    owner = _at_once(*((v, 2, nodes) for v in (1.0, 3.0, 4.0) for nodes in (1, 2)))
    return TinyDomain("widths", _sizes(3, width=2), (owner,) * 3)


def _lengths() -> TinyDomain:
    """One round or two, shown at arrival as what they are, and declared as anything."""
    reports = []
    for value in (2.0, 4.0, 6.0):
        for first, second in ((1, 2), (1, 1), (2, 2), (1, 4)):
            points = [(1, first, 0.5, 1), (1, second, 0.5, 2)]
            reports.append(StatementOfWork(1, 1, DeadlineValue(value, 6), points))
    true = tuple(i for i, sow in enumerate(reports) if sow.law.durations.tolist() == [1, 2])
    owner = TinyOwner(tuple(reports), ((0.5, 1, 1), (0.5, 1, 2)), true)
    return TinyDomain("lengths", _sizes(2, longest=4), (owner, owner))


def _overtaken() -> TinyDomain:
    """Two rivals who may come in round 2, and an owner who can run before, then, or after: worth less when late."""
    rival = [StatementOfWork(1, 1, TableValue({3: v}), [(2, 1, 0.5)]) for v in (2.0, 9.0)]
    worth = [(a, a - b) for a in (10.0, 7.0) for b in (0.5, 1.0, 2.0, 4.0)]
    own = [StatementOfWork(1, 1, TableValue({3: a, 4: b}), [(2, 1, 1.0)]) for a, b in worth]
    own += [StatementOfWork(1, 1, TableValue({3: a}), [(2, 1, 1.0)]) for a in (10.0, 7.0, 1.0)]
    own += [StatementOfWork(1, 1, TableValue({4: a}), [(2, 1, 1.0)]) for a in (10.0, 7.0, 1.0)]
    return TinyDomain(
        "overtaken",
        _sizes(1),
        (TinyOwner(tuple(rival), ((0.5, 2, 1), (0.5, None, 1))), TinyOwner(tuple(own), ((1.0, 2, 1),))),
    )


def _in_the_middle() -> TinyDomain:
    """A rival who may come in round 2, an owner after it, and a third who takes what is left of two nodes."""
    rival = StatementOfWork(1, 1, TableValue({3: 9.0}), [(2, 1, 0.5)])
    third = StatementOfWork(1, 1, TableValue({3: 9.0}), [(2, 1, 1.0)])
    own = [
        StatementOfWork(1, 1, TableValue(values), [(2, 1, 1.0)]) for values in ({3: 8.0, 4: 7.0}, {3: 8.0}, {4: 7.0})
    ]
    return TinyDomain(
        "in the middle",
        _sizes(2),
        (
            TinyOwner((rival,), ((0.5, 2, 1), (0.5, None, 1))),
            TinyOwner(tuple(own), ((1.0, 2, 1),)),
            TinyOwner((third,), ((1.0, 2, 1),)),
        ),
    )


def _evicted() -> TinyDomain:
    """A rival who may come in round 2, and an owner of two rounds who is then evicted, or waits."""
    rival = StatementOfWork(1, 1, TableValue({3: 9.0}), [(2, 1, 0.5)])
    worth = [{3: a, 5: b} for a in (0.5, 2.0, 9.0) for b in (0.1, 0.5, 2.0) if b <= a]
    own = [StatementOfWork(1, 1, TableValue(values), [(1, 2, 1.0)]) for values in worth]
    owners = (TinyOwner((rival,), ((0.5, 2, 1), (0.5, None, 1))), TinyOwner(tuple(own), ((1.0, 1, 2),)))
    return TinyDomain("evicted", _sizes(1), owners)


def _overbooked() -> TinyDomain:
    """Two owners born one after the other, who can start in round 1, 2 or 3, on one node."""
    first = [StatementOfWork(1, 1, TableValue(values), [(1, 1, 1.0)]) for values in _windows(2, 10.0)]
    second = [StatementOfWork(2, 1, TableValue(values), [(2, 1, 1.0)]) for values in _windows(3, 9.0)]
    owners = (TinyOwner(tuple(first), ((1.0, 1, 1),)), TinyOwner(tuple(second), ((1.0, 2, 1),)))
    return TinyDomain("overbooked", _sizes(1), owners)


def _windows(first: int, value: float) -> list[dict[int, float]]:
    """Return values by completion: at any time, in a hurry, late only, and half of each."""
    times = [(first, first + 1), (first,), (first + 1,)]
    return [dict.fromkeys(window, v) for v in (value, value / 2) for window in times]


_DOMAINS = (_one_round, _two_rounds, _widths, _lengths, _overtaken, _in_the_middle, _evicted, _overbooked)


def tiny_domains() -> dict[str, TinyDomain]:
    """Return the domains that `check_truthful` goes through, by name."""
    return {domain.name: domain for domain in (make() for make in _DOMAINS)}
