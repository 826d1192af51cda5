"""A situation, which a search plays: one owner, its true statement, and a market of others who report truly.

A play has one source of chance, an integer seed, with one stream per purpose: what happens to the
others, what happens to the owner's job, and the mechanism's own draws. None of them depends on the
report, so the same seed is the same world under every report: utilities of the truth and of a lie
are compared pair by pair.

With ``history`` None every play begins in round 1 of a world of its own. With a number, all plays
share what happened before the owner's turn (the mechanism's draws included), and only what is left
open then is drawn, from the laws given what was seen, and by the mechanism: gains are then those at
one history, as the theorem and its certificate mean them (docs/mathematics.md, Sections 3 and 4).
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np

from marketsched.agents.conduct import Conduct, plain
from marketsched.config.yesterday import yesterday
from marketsched.mechanisms.errors import UnknownNameError
from marketsched.mechanisms.mechanism import Mechanism
from marketsched.mechanisms.randomness import checked_seed
from marketsched.mechanisms.sow import StatementOfWork
from marketsched.mechanisms.statement_law import StatementLaw
from marketsched.truthfulness.situations.described import Described, Other
from marketsched.truthfulness.situations.plays import Played, Stage
from marketsched.truthfulness.situations.short_plays import ShortPlays

if TYPE_CHECKING:
    from marketsched.config.scenario import Scenario  # pydantic, which a situation built by hand needs not
    from marketsched.mechanisms.bid_price.past import PastLog
    from marketsched.worlds.workload import Workload


class Situation(Described):
    """One owner in a market of others who report truthfully.

    Parameters
    ----------
    factory : function of Generator
        Builds a fresh mechanism, whose own draws come from the generator.
    truth : StatementOfWork
        The owner's true statement, born in the round in which it reports.
    others : iterable of Other, Job, StatementOfWork or StatementLaw
        In order of submission.
    capacity, horizon, max_delay : int
        C (nodes), T (rounds) and S (rounds): a completion at birth + S or later is worth nothing.
    name : str
        The name of the owner's job.
    owner : str, optional
        Whose job it is; None: an owner known by the job's name.
    ahead : int, optional
        How many of the others of the same birth submit before the owner; None: all.
    history : int, optional
        Seed of what happened before the owner's turn; see the module. If another job has an outcome ``happened``, it
        is used. The mechanism's stream is that of `run` with this seed.
    resubmit : bool
        As in `MarketSetup`, for others in the history.
    nobody_later : bool
        Whether jobs that are submitted after the owner's were left out, so that a file can say so.

    Raises
    ------
    InvalidParameterError
        If two jobs share a name.

    Examples
    --------
    >>> from marketsched.mechanisms.registry import get_mechanism
    >>> from marketsched.mechanisms.values import DeadlineValue
    >>> limits = dict(max_concurrency=1, max_duration=2, max_value=9.0, max_delay=6)
    >>> market = lambda rng: get_mechanism("first-come", capacity=1, horizon=8, price=0.5, **limits)
    >>> truth = StatementOfWork(1, 1, DeadlineValue(4.0, 6), [(2, 2, 1.0)])
    >>> Situation(market, truth, capacity=1, horizon=8, max_delay=6).utility(truth, seed=0)
    3.0
    """

    @cached_property
    def stage(self) -> Stage:
        """Where the situation is played."""
        return Stage(self)

    @cached_property
    def short_plays(self) -> ShortPlays:
        """How a search plays it."""
        return ShortPlays(self, self.stage)

    def play(self, report: StatementOfWork | Conduct, seed: int) -> Played:
        """Play the owner's conduct in the world of ``seed``.

        Raises InvalidReportError if the mechanism refuses a report, MechanismFault if it is at fault.
        """
        conduct = report if isinstance(report, Conduct) else plain(report, self.truth.concurrency)
        return self.stage.play(conduct, self.stage.world(checked_seed(seed)))

    def utility(self, report: StatementOfWork | Conduct, seed: int) -> float:
        """Return the owner's true value minus its payment, credits; errors as of `play`."""
        return self.play(report, seed).utility

    def mechanism_at_turn(self, seed: int = 0) -> Mechanism:
        """Return a copy of the mechanism at the owner's turn to submit; with a history, that of the history."""
        return self.stage.at_turn(self.stage.world(checked_seed(seed))).mechanism


def situations_of(
    scenario: Scenario | str | PathLike[str] | Mapping[str, Any],
    jobs: Iterable[str | int],
    seed: int = 0,
    *,
    nobody_later: bool = False,
    data: str | PathLike[str] | None = None,
    workload: Workload | None = None,
) -> list[Situation]:
    """Return the situations of several owners of a scenario's workload, each with what happened before its turn.

    Parameters
    ----------
    scenario : Scenario, name, path or mapping
        The other owners are those of its workload, and report truthfully; its ``owners`` are ignored.
    jobs : iterable of str or int
        Names of the owners' jobs, or their places in the order of submission.
    seed : int
        Of the run, as in `run`: it draws the workload and the mechanism's stream.
    nobody_later : bool
        True: no job is submitted after the owner's. Another market, but a fast one; and where a job's fate
        does not depend on later statements (LIFO), the owner's utility is the same.
    data : path, optional
        Folder of recorded traces.
    workload : Workload, optional
        That of the seed, if it was built before.

    Raises
    ------
    UnknownNameError
        If there is no such job; and errors as of `Scenario.setup`.

    Examples
    --------
    >>> found = situations_of("stochastic-mix", [0, 1], nobody_later=True)
    >>> [situation.truth.birth for situation in found]
    [1, 1]
    """
    from marketsched.config.scenario import Scenario  # pydantic, which a situation built by hand needs not

    scenario = Scenario.of(scenario, kind="market")
    factory = mechanism_of(scenario, checked_seed(seed), data, workload)
    workload = factory.workload
    places = {job.name: i for i, job in enumerate(workload.jobs)}
    choice = scenario.mechanism
    found = []
    for job in jobs:
        place = places.get(job, -1) if isinstance(job, str) else int(job)
        if not 0 <= place < len(workload.jobs):
            raise UnknownNameError(
                f"job {job!r} is unknown: expected a name of the workload {workload.name!r}, "
                f"or a number in 0 .. {len(workload.jobs) - 1}"
            )
        owner = workload.jobs[place]
        last = place if nobody_later else len(workload.jobs)
        before = workload.jobs[:place]
        found.append(
            Situation(
                factory,
                owner.truth,
                tuple(Other.of(i, other) for i, other in enumerate([*before, *workload.jobs[place + 1 : last]])),
                capacity=choice.capacity or workload.capacity,
                horizon=choice.horizon or workload.horizon,
                max_delay=choice.max_delay or workload.max_delay,
                name=owner.name,
                owner=owner.owner,
                ahead=sum(other.truth.birth == owner.truth.birth for other in before),
                history=seed,
                resubmit=scenario.resubmit,
                nobody_later=nobody_later,
            )
        )
    return found


@dataclass(frozen=True)
class ScenarioMechanism:
    """Builds the mechanism of a scenario for one workload, again and again."""

    scenario: Scenario
    workload: Workload
    laws_rng: np.random.Generator
    data: str | PathLike[str] | None

    def __call__(self, rng: np.random.Generator) -> Mechanism:
        """Return a fresh mechanism, whose own draws come from ``rng``."""
        return self.scenario.mechanism.build(self.workload, rng, lambda: self._laws, self._past)

    @cached_property
    def _laws(self) -> list[StatementLaw]:
        return list(self.scenario.workload.statement_laws(self.workload, copy.deepcopy(self.laws_rng), self.data))

    def _past(self, what: Any) -> PastLog:
        """Return the log that a ``history`` names; it is made once."""
        if repr(what) not in self._logs:
            self._logs[repr(what)] = yesterday(
                what, self.scenario.mechanism, self.workload, self.data, read=type(self.scenario).from_dict
            )
        return self._logs[repr(what)]

    @cached_property
    def _logs(self) -> dict[str, PastLog]:
        return {}


def mechanism_of(
    scenario: Scenario, seed: int, data: str | PathLike[str] | None, workload: Workload | None = None
) -> ScenarioMechanism:
    """Return what builds the mechanism of a run, and knows its workload, which may have been built before."""
    rng = np.random.default_rng(np.random.SeedSequence(seed)).spawn(3)[0]  # the first of three, as in `Scenario.setup`
    laws_rng = copy.deepcopy(rng)
    built = scenario.workload.build(rng, data) if workload is None else workload
    return ScenarioMechanism(scenario, built, laws_rng, data)
