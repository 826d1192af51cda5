"""Short ways to what a lie brings in the market at hand; they lead to the end of the whole play, bit by bit.

* *A look*: where the outcome of a job is final at its turn, and no report changes anything before its arrival, one run
  of the market shows the turns of all owners (`turns_of`). A lie of one statement, submitted at birth, is then answered
  by one look at what is free at its turn, and at what it costs.
* *From the arrival on*: the same lie, where a look is no answer (durations hidden, or the comparisons of the rule are
  noted): the play begins in the round of the arrival, where `Mechanism.restate` puts the lie in the place of the truth.
* *By the plan*: under posted prices a job's fate depends on those submitted earlier alone (Lemma 3.1), and of all in
  the market the last one is removed first. So until the last one is gone the earlier jobs run as they are planned, and
  it is removed in the first round in which it and they want more nodes than there are. Its own plan is what the
  mechanism would fix now, and no round needs to be played.
* *Without later jobs*: where those change nothing, nobody else submits once the owner has submitted all.

All but looks rest on what the mechanism states, and are for rules of the package alone, which are tested for it. Of all
a share, drawn at random, is played whole as well: see `OwnerAtHand.play`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping
from types import FunctionType
from typing import Any, TypeGuard

import numpy as np
from numpy.typing import NDArray

from marketsched.agents.conduct import Attempt, Conduct, Statement
from marketsched.agents.job import Job
from marketsched.agents.loop import Fate, Happens
from marketsched.agents.playing import play
from marketsched.agents.setup import MarketSetup
from marketsched.mechanisms.columns import Outcomes, Turn, follows
from marketsched.mechanisms.forwarding import Forwarding
from marketsched.mechanisms.mechanism import Mechanism
from marketsched.mechanisms.posted.active_job import Submission
from marketsched.mechanisms.posted.scheduler import PostedPriceMechanism
from marketsched.mechanisms.sow import StatementOfWork
from marketsched.truthfulness.situations.guarded_market import GuardedMarket, Snapshot, snapshot
from marketsched.truthfulness.situations.played_owners import OneLies
from marketsched.truthfulness.situations.true_owners import NOTHING, Births, Played, TrueOwners, worth

OWN_MODULES = frozenset({"marketsched", "numpy", "builtins", "collections"})
DEPTH = 2  # of the parts of a mechanism that are looked at


def trusted(mechanism: Mechanism) -> bool:
    """Tell whether all of a mechanism is the package's own: its class, its parts and theirs."""
    return not isinstance(mechanism, Forwarding) and _is_own(mechanism, DEPTH)


def _is_own(part: Any, depth: int) -> bool:
    module = part.__module__ if isinstance(part, FunctionType) else type(part).__module__
    if module.partition(".")[0] not in OWN_MODULES:
        return False
    return depth == 0 or all(_is_own(each, depth - 1) for each in getattr(part, "__dict__", {}).values())


def turns_of(setup: MarketSetup, mechanism: Mechanism, names: Collection[str]) -> dict[str, Turn]:
    """Return the turns of some jobs at their arrivals, all reports true; none: the mechanism shows no turns.

    ``mechanism`` is a fresh one, which is used up in place of the setup's. Jobs that arrive behind the horizon, or
    never, are left out.
    """
    table = setup.table
    columns = None if setup.resubmit or type(mechanism).turn is Mechanism.turn else table.columns(setup.max_delay)
    if columns is None:
        return {}
    outcomes = Outcomes.empty(columns.n, setup.horizon, None)
    found: dict[str, Turn] = {}
    for row in columns.arriving(1, setup.horizon).tolist():
        name = table.names[row]
        if name not in names:
            continue
        now = int(columns.arrivals[row])
        if not mechanism.play(columns, outcomes, now - 1):
            return {}
        arriving = columns.arriving(now, now)
        turn = mechanism.turn(columns, outcomes, arriving[arriving < row])
        if turn is None:
            return {}
        found[name] = turn
    return found


def only_statement(conduct: Conduct, truth: StatementOfWork) -> Statement | None:
    """Return the one statement of a conduct that says something false at birth, and no more; None: it does more."""
    first = conduct.statements[0]
    plain = len(conduct.statements) == 1 and first.counts and not (first.name or first.identity)
    waits = first.withdrawn is not None or first.round != truth.birth
    return first if plain and not waits else None


def looked(setup: MarketSetup, job: Job, turn: Turn, statement: Statement, fate: Fate) -> Played | None:
    """Return what a legal report brings at its turn; None: it comes to another one, or only a play shows it."""
    report, part = statement.report, statement.part(fate)
    if part is None or part.arrival != job.arrival or type(part.signal) is not int or report.shapes:
        return None
    duration = part.duration if report.concurrency >= statement.nodes else None
    found = turn.look(report, part.signal, duration)
    if found is None:
        return None
    start, payment = found
    if duration is None or payment is None:
        return NOTHING
    completion = start + duration
    return Played(worth(job, completion, setup), payment, completion, drew=False)


Ends = tuple[int | None, float]  # completion, and payment in credits


def plans_tell(mechanism: Mechanism) -> TypeGuard[PostedPriceMechanism]:
    """Tell whether a mechanism is that of posted prices, none of whose rules is replaced: its plans tell the end."""
    return isinstance(mechanism, PostedPriceMechanism) and follows(mechanism, PostedPriceMechanism)


class ByPlan:
    """What reports of ``job``, submitted last, would bring in a ``market`` at its owner's turn, which is not played on.

    ``horizon`` and ``max_delay`` are T and S, rounds: what comes after S and the longest run does not matter to it.
    """

    def __init__(self, market: GuardedMarket, job: str, horizon: int, max_delay: int) -> None:
        assert plans_tell(market.mechanism)
        self._mechanism, self._longest = market.mechanism, market.mechanism.limits.max_duration
        self._job, self._capacity, self._first = job, market.capacity, market.now
        self._horizon, self._last = horizon, min(horizon, market.now + max_delay + self._longest)
        self._others = [(market.entries[each.job], each) for each in self._mechanism.active]
        self._plans: dict[Hashable, Submission] = {}

    def wanted(self, fates: Mapping[Any, Happens]) -> NDArray[np.int64] | None:
        """Return the nodes that the earlier jobs want in each round from this one on, if none is removed.

        ``fates`` are what happens to some of them, by name, where that is not what their entries in the market say.
        None: earlier ones are removed while the last one stays, by the rule over running jobs.
        """
        steps, longest = np.zeros(self._last - self._first + 2, np.int64), self._longest
        for entry, job in self._others:
            fate = entry.fate if entry.withdrawn else fates.get(job.job, entry.fate)
            start = self._start_of(job.submission, fate) if job.start is None else job.start
            if start is not None:
                runs = longest if fate.duration is None or job.width < entry.nodes else min(fate.duration, longest)
                steps[min(max(start - self._first, 0), steps.size - 1)] += job.width
                steps[min(max(start + runs - self._first, 0), steps.size - 1)] -= job.width
        wanted: NDArray[np.int64] = np.cumsum(steps)[:-1]
        return None if self._mechanism.only_counted and (wanted > self._capacity).any() else wanted

    def _start_of(self, plan: Submission, fate: Happens) -> int | None:
        """Return when a job that has not arrived starts; None: never."""
        if fate.arrival is None:
            return None
        arrival = max(fate.arrival, self._first)
        case = plan.law.group_of(arrival, fate.signal) if arrival <= self._horizon else None
        start = -1 if case is None else int(plan.starts[case])
        return start if start >= 0 else None

    def ends(self, statement: Statement, fate: Fate, key: Hashable, wanted: NDArray[np.int64]) -> Ends | None:
        """Return completion and payment under the one statement of a conduct; None: only a play shows them.

        ``fate`` is what happens to the job, ``key`` tells the report from others, ``wanted`` is as from `wanted`, in
        the same world. Raises InvalidReportError if the mechanism refuses the report.
        """
        report, part = statement.report, statement.part(fate)
        if report.shapes or part is None or part.arrival is None:
            return None
        if key not in self._plans:
            self._plans[key] = self._mechanism.plan_now(self._job, report)
        plan = self._plans[key]
        start, runs = self._start_of(plan, part), part.duration if report.concurrency >= statement.nodes else None
        if start is None or plan.quote is None or runs is None:
            return None, 0.0  # it is dropped, or evicted in the end
        if runs > self._longest or start + runs - 1 > self._horizon:
            return None, 0.0
        begin = start - self._first
        crowded = bool((wanted[begin : begin + runs] + plan.width > self._capacity).any())
        if not self._mechanism.only_counted:
            crowded |= bool((wanted[:begin] > self._capacity).any())
        return (None, 0.0) if crowded else (start + runs, float(plan.quote.price(start, runs)))


class PlaysOfOne:
    """The plays of the owner of ``job`` from its birth on, or from its arrival on.

    ``setup``, ``born`` and ``entered`` are those of `TrueOwners` at its turn to submit, its own job included.
    """

    def __init__(self, setup: MarketSetup, born: Births, entered: int, job: Job) -> None:
        self._setup, self._born, self._entered, self._job = setup, born, entered, job

    def whole(
        self,
        market: GuardedMarket,
        conduct: Conduct,
        fate: Fate,
        *,
        settles: bool,
        alone: bool = False,
        redrawn: Callable[[Job], Job] | None = None,
    ) -> Played:
        """Play a conduct in the market at the owner's turn to submit; ``redrawn`` as of `TrueOwners`."""
        return self._played(market, self._attempt(conduct, fate), self._entered, settles, alone, redrawn)

    def from_arrival(
        self, kept: Snapshot, conduct: Conduct, statement: Statement, fate: Fate, *, settles: bool
    ) -> Played:
        """Play a report in the market that `at_arrival` returns; errors as of a whole play."""
        market, job = kept.copy(), self._job
        market.restate(job.name, statement.report, own=True)
        entry, part = market.entries[job.name], statement.part(fate)
        assert part is not None
        entry.fate, entry.nodes = part, statement.nodes
        attempt = self._attempt(conduct, fate)
        attempt.resume()
        return self._played(market, attempt, len(self._born.get(market.now, ())), settles, alone=False)

    def at_arrival(self, market: GuardedMarket) -> Snapshot | None:
        """Return the market in the round in which the owner's job arrives, all reports true and submitted.

        ``market`` is that at the owner's turn to submit. None: it cannot be pickled, or the job has left it before.
        """
        job, owners = self._job, TrueOwners(self._setup, self._born, self._entered)
        market.submit(job.name, job.truth, job, job.truth.concurrency, owner=job.owner, own=True, truth=job.truth)
        owners.act(market)
        while job.arrival is not None and market.now < job.arrival:
            owners.hear(market.clear(), market)
            owners.act(market)
        return snapshot(market) if job.name in market.entries else None

    def _attempt(self, conduct: Conduct, fate: Fate) -> Attempt:
        return Attempt(conduct, self._job.name, fate, self._job.owner, self._job.truth)

    def _played(
        self,
        market: GuardedMarket,
        attempt: Attempt,
        entered: int,
        settles: bool,
        alone: bool,
        redrawn: Callable[[Job], Job] | None = None,
    ) -> Played:
        market.watch()
        given: dict[str, Any] = {"settles": settles, "alone": alone, "redrawn": redrawn}
        owners = OneLies(self._setup, self._born, entered, attempt, self._job.name, **given)
        play(market, owners, self._setup.horizon)
        value = attempt.worth * worth(self._job, attempt.completion, self._setup)
        return Played(value, attempt.payment, attempt.completion, market.drew)
