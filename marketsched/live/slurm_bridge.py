"""The bridge between a live market and Slurm: it looks at both sides, again and again, and mends the difference.

The bridge keeps nothing that matters: what is to be done follows from the two lists alone (`slurm_pairs.decide`), every
call to the market has a key of its own, and what Slurm was asked for is seen at the next look. It can be killed at any
moment and started again, and so can the controller and the service.
"""

from __future__ import annotations

import json
import math
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol

from marketsched.live.slurm_pairs import (
    NONE,
    PREFIX,
    Action,
    Decision,
    MarketJob,
    View,
    decide,
    name_of,
    statement_in,
    successor,
)
from marketsched.live.slurm_plugin import write_announced
from marketsched.mechanisms.errors import InvalidParameterError, MarketschedError
from marketsched.mechanisms.legal import Amount, check_fields
from marketsched.slurm.commands import Slurm, SlurmError, SlurmJob

OPEN = ("submitted", "arrived", "running")  # states of jobs that are not gone
NOT_FOUND, CONFLICT = 404, 409
CGROUP = "proctrack/cgroup"
ROUND_S = 60.0  # of a market with a manual clock, whose rounds have no length
LOOKS = 3  # in a row at which Slurm does not know a running job, before it counts as lost


class MarketCalls(Protocol):
    """What the bridge asks of a market; `marketsched.live.client.LiveClient` is one."""

    def market(self) -> dict[str, Any]:
        """Return round, clock, limits."""
        ...

    def jobs(self, *, state: str | None = None) -> list[dict[str, Any]]:
        """Return jobs in order of submission."""
        ...

    def job(self, job: str) -> dict[str, Any]:
        """Return a job with its statement of work, ``sow``."""
        ...

    def submit(
        self, sow: Mapping[str, Any], *, name: str | None = None, owner: str | None = None, key: str | None = None
    ) -> dict[str, Any]:
        """Submit a statement of work."""
        ...

    def arrive(self, job: str, *, signal: Any = ..., key: str | None = None) -> dict[str, Any]:
        """Report that a job is ready."""
        ...

    def complete(
        self, job: str, *, outcome: str = "done", exit_code: int | None = None, key: str | None = None
    ) -> dict[str, Any]:
        """Report that a job has left its nodes."""
        ...

    def nodes(self, usable: int, *, held: Sequence[str] = (), removed: Sequence[str] = ()) -> dict[str, Any]:
        """Remark how many nodes can be used."""
        ...


class EventSource(Protocol):
    """Where events come from; `marketsched.live.client.LiveClient` is one."""

    def market(self) -> dict[str, Any]:
        """Return the market, with ``last_event``."""
        ...

    def events(self, after: int = 0) -> Iterable[dict[str, Any]]:
        """Yield the events behind row ``after``, and those to come."""
        ...


@dataclass(frozen=True)
class BridgeRules:
    """How a bridge behaves.

    Parameters
    ----------
    partition : str
        Of Slurm, that the market has for itself.
    on_evict : "requeue" or "cancel"
        What becomes of a job that the market evicts: back into the queue, held, or ended.
    check_users : bool
        Whether owners of the market are users of Slurm; False where one user runs everything, as in a trial.
    announced : Path, optional
        Where the table for the plugin is kept; None: there is no plugin.
    node_patience : float
        Seconds for which nodes have to be missing before anything is done about it: a controller that was started
        again waits for its nodes, too.
    """

    partition: str = "market"
    on_evict: Literal["requeue", "cancel"] = "requeue"
    check_users: bool = True
    announced: Path | None = None
    node_patience: Amount = 30.0

    def __post_init__(self) -> None:
        check_fields(self)


class SlurmBridge:
    """One bridge.

    Parameters
    ----------
    market : MarketCalls
        With an operator's token.
    slurm : Slurm
        Commands of the cluster, as an operator of Slurm.
    rules : BridgeRules, optional
    say : callable, optional
        Takes a line for each action that was taken or refused.

    Attributes
    ----------
    taken : dict of int
        Actions that were taken, by kind.
    """

    def __init__(
        self,
        market: MarketCalls,
        slurm: Slurm,
        rules: BridgeRules | None = None,
        say: Callable[[str], None] = lambda line: None,
    ) -> None:
        self.market, self.slurm, self.rules, self.say = market, slurm, rules or BridgeRules(), say
        self.taken: dict[str, int] = {}
        self._gone: dict[str, MarketJob | None] = {}  # jobs of the market that will never change again
        self._remark: tuple[int, tuple[str, ...], tuple[str, ...]] | None = None
        self._statements: dict[str, dict[str, Any]] = {}
        self._round, self._round_s, self._timed = 1, ROUND_S, False
        self._short_since: float | None = None  # of nodes
        self._missing: dict[str, int] = {}  # looks in a row without them, by job

    def check_cluster(self) -> None:
        """Raise InvalidParameterError unless Slurm ends every process of a job when the job ends."""
        found = self.slurm.configuration().get("ProctrackType", "none")
        if found != CGROUP:
            legal = f"{CGROUP}: with others a process that leaves its session outlives its job, and pays nothing"
            raise InvalidParameterError(place="ProctrackType", value=found, legal=legal)

    def run(self, wake: threading.Event, stop: threading.Event, interval: float = 1.0) -> None:
        """Look and mend until ``stop`` is set, every ``interval`` seconds, and at once when ``wake`` is."""
        while not stop.is_set():
            try:
                self.step()
            except (SlurmError, MarketschedError) as error:  # the other side is away: look again
                self.say(f"waiting: {error}")
            wake.wait(interval)
            wake.clear()

    def step(self) -> Decision:
        """Look at both sides once, and take every action that follows.

        Raises
        ------
        SlurmError
            If Slurm does not answer.
        ConnectionError
            If the market does not.
        """
        view = self.look()
        decision = decide(view)
        lost = {x.job for x in decision.actions if x.kind == "complete" and x.number == NONE and x.outcome == "failed"}
        self._missing = {job: self._missing.get(job, 0) + 1 for job in lost}
        for action in decision.actions:
            if self._missing.get(action.job, LOOKS) < LOOKS:
                continue  # a controller that comes back may remember
            try:
                if action.kind == "arrive" and self._is_early(action):
                    continue
                self._take(action, view)
                self.taken[action.kind] = self.taken.get(action.kind, 0) + 1
                self.say(" ".join(f"{action.kind} {action.job or ''} {action.number or ''} {action.why}".split()))
            except MarketschedError as error:
                if isinstance(error, ConnectionError):
                    raise
                self.say(f"refused: {action.kind} {action.job} {action.number}: {error}")
        self._note_nodes(view, decision)
        return decision

    def look(self) -> View:
        """Read both sides."""
        queue = self.slurm.jobs(self.rules.partition)  # before the market: what was started is in its journal
        usable = self.slurm.usable_nodes(self.rules.partition)
        here = self.market.market()
        self._timed = here["clock"]["round_seconds"] is not None
        self._round, self._round_s = here["round"], here["clock"]["round_seconds"] or ROUND_S
        known = {
            row["job"]: MarketJob.of(row, order)
            for state in OPEN
            for order, row in enumerate(self.market.jobs(state=state))
        }
        if self.rules.announced is not None:
            write_announced(self.rules.announced, [job for job in known.values() if job.state == "submitted"])
        for name in {name_of(mate.comment) for mate in queue} - {None}:
            assert name is not None
            if name not in known and (job := self._finished(name)) is not None:
                known[name] = job
        capacity = here["limits"]["capacity"]
        if usable >= capacity:
            self._short_since = None
        else:
            self._short_since = self._short_since or time.monotonic()
            if time.monotonic() - self._short_since < self.rules.node_patience:
                usable = capacity
        return View(known, queue, self._round, capacity, usable, self.rules.check_users, self.rules.partition)

    def _finished(self, name: str) -> MarketJob | None:
        """Return a job that is not open; None: there is none of this name."""
        if name not in self._gone:
            try:
                job = MarketJob.of(self.market.job(name))
            except MarketschedError as error:
                if getattr(error, "status", None) not in (NOT_FOUND, 405, 422):
                    raise
                return None
            if not job.gone:  # it came between two calls
                return job
            self._gone[name] = job
        return self._gone[name]

    def _take(self, action: Action, view: View) -> None:
        match action.kind:
            case "release":
                self._release(action, _mate(view, action))
            case "hold":
                self.slurm.hold(action.number)
            case "stop":
                self._stop(action)
            case "cancel":
                self._cancel(action)
            case "complete":
                self._complete(action)
            case "arrive":
                self._arrive(action, _mate(view, action))
            case "announce":
                self._announce(_mate(view, action))
            case "again" | "take_back":
                self._again(action, view)

    def _release(self, action: Action, mate: SlurmJob) -> None:
        """Let a job start now, for as long as it booked; rounds of a manual clock have no length, and limit nothing."""
        if self._timed:
            booked = math.ceil(self.market.job(action.job)["booked"] * self._round_s / 60)  # minutes
            if not 0 < mate.limit <= booked:
                self.slurm.update(JobId=action.number, TimeLimit=booked)
        if mate.begins_later:
            self.slurm.update(JobId=action.number, StartTime="now")
        self.slurm.release(action.number)

    def _stop(self, action: Action) -> None:
        if self.rules.on_evict == "cancel" and "evicted" in action.why:
            self._cancel(action)
        else:
            self._back_to_queue(action.number)

    def _back_to_queue(self, number: int) -> None:
        self.slurm.update(JobId=number, Requeue=1)  # the plugin turns it off: no user escapes a charge by it
        self.slurm.requeue_held(number)

    def _cancel(self, action: Action) -> None:
        if action.why:
            self.slurm.update(JobId=action.number, AdminComment=f"market: {action.why}")
        self.slurm.cancel(action.number)

    def _complete(self, action: Action) -> None:
        try:
            self.market.complete(
                action.job,
                outcome=action.outcome,
                exit_code=action.exit_code,
                key=f"slurm-{action.job}-{action.outcome}-{action.exit_code}",
            )
        except MarketschedError as error:
            if getattr(error, "status", None) != CONFLICT:  # it is complete, or was evicted, in the meantime
                raise

    def _is_early(self, action: Action) -> bool:
        """Tell whether a job came before a round in which it was announced: it is held until the next of them."""
        announced = {point["arrival"] for point in self._statement(action.job)["requirements"]}
        return self._round not in announced and max(announced) > self._round

    def _arrive(self, action: Action, mate: SlurmJob) -> None:
        points = self._statement(action.job)["requirements"]
        key = f"slurm-{action.job}-arrival"
        if any("signal" not in point for point in points):
            rounds = max(1, math.ceil(mate.limit * 60 / self._round_s))
            announced = sorted({point["duration"] for point in points if "signal" not in point})
            if rounds not in announced:
                why = f"a time limit of {rounds} rounds, where {', '.join(map(str, announced))} were announced"
                self._cancel(Action("cancel", action.job, action.number, why))
                return
            self.market.arrive(action.job, signal=rounds, key=key)
        else:
            self.market.arrive(action.job, signal=points[0]["signal"], key=key)

    def _announce(self, mate: SlurmJob) -> None:
        """Submit the statement in a comment, for the user whose job it is; it arrives at the next look."""
        label, text = f"slurm-{mate.id}-{int(mate.submitted)}", statement_in(mate.comment)
        owner = mate.user
        try:
            statement = json.loads(text or "")
            owner = statement.pop("owner", owner) if not self.rules.check_users else owner
            points = statement.setdefault("requirements", [])
            for point in points:
                point.setdefault("arrival", self._round)
            statement.setdefault("concurrency", mate.nodes)
            job = self._submit_once(f"{owner}.{label}", statement)
        except (ValueError, AttributeError, TypeError, RecursionError, MarketschedError) as error:
            if isinstance(error, ConnectionError):
                raise
            self._cancel(Action("cancel", "", mate.id, f"the statement in its comment: {error}"[:200]))
            return
        self.slurm.update(JobId=mate.id, Comment=f"{PREFIX}{job}")

    def _again(self, action: Action, view: View) -> None:
        """Give a job another name in the market, at no charge, and put it back into the queue."""
        new, mate = successor(action.job), _mate(view, action)
        statement = self._statement(action.job)
        durations = {(p["duration"], json.dumps(p.get("signal", "revealed"))): p for p in statement["requirements"]}
        points = [{**p, "arrival": self._round, "probability": 1 / len(durations)} for p in durations.values()]
        try:
            self._submit_once(new, {**statement, "requirements": points})
        except MarketschedError as error:
            if isinstance(error, ConnectionError):
                raise
            self._complete(action)
            self._cancel(Action("cancel", "", action.number, f"nodes failed, and once more is too late: {error}"[:200]))
            return
        self.slurm.update(JobId=action.number, Comment=f"{PREFIX}{new}")
        if mate.active:
            self._back_to_queue(action.number)
        self._complete(action)

    def _submit_once(self, name: str, statement: Mapping[str, Any]) -> str:
        """Submit under a name, unless that was done before; return the name."""
        try:
            self.market.job(name)
        except MarketschedError as error:
            if getattr(error, "status", None) != NOT_FOUND:
                raise
            owner, _, label = name.partition(".")
            self.market.submit(statement, name=label, owner=owner, key=f"slurm-{name}-{self._round}")
        return name

    def _statement(self, job: str) -> dict[str, Any]:
        if job not in self._statements:
            self._statements[job] = self.market.job(job)["sow"]
        return self._statements[job]

    def _note_nodes(self, view: View, decision: Decision) -> None:
        """Write into the journal how many nodes are usable, when that, or who suffers from it, changes."""
        remark = (min(view.usable, view.capacity), decision.held, decision.removed)
        if remark != (self._remark or (view.capacity, (), ())):
            self.market.nodes(remark[0], held=remark[1], removed=remark[2])
        self._remark = remark


def wake_on_events(market: EventSource, wake: threading.Event) -> threading.Thread:
    """Set ``wake`` at each event of a market, in a thread that ends with the process."""

    def follow() -> None:
        while True:
            try:
                for _ in market.events(after=market.market()["last_event"]):
                    wake.set()
            except MarketschedError:  # a bridge that is not woken looks at its own pace
                time.sleep(1.0)

    thread = threading.Thread(target=follow, name="events", daemon=True)
    thread.start()
    return thread


def _mate(view: View, action: Action) -> SlurmJob:
    return next(mate for mate in view.queue if mate.id == action.number)
