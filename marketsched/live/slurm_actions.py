"""What the bridge does to the market and to Slurm, one action at a time; each is safe to take twice."""

from __future__ import annotations

import json
import math
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol

from marketsched.live.slurm_pairs import PREFIX, Action, View, statement_in, successor
from marketsched.mechanisms.errors import MarketschedError
from marketsched.mechanisms.legal import Amount, check_fields
from marketsched.slurm.commands import Slurm, SlurmJob

NOT_FOUND, CONFLICT = 404, 409
ROUND_S = 60.0  # of a market with a manual clock, whose rounds have no length


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


class RoundClock(NamedTuple):
    """The market's clock, as it was last seen: the open round, and how long rounds are; ``timed``: they end by it."""

    round: int = 1
    seconds: float = ROUND_S
    timed: bool = False


class SlurmActions:
    """Takes the actions that `slurm_pairs.decide` asks for.

    Parameters
    ----------
    market, slurm, rules
        As of `marketsched.live.slurm_bridge.SlurmBridge`.

    Attributes
    ----------
    clock : RoundClock
        Renewed by who looks at the market.
    """

    def __init__(self, market: MarketCalls, slurm: Slurm, rules: BridgeRules) -> None:
        self.market, self.slurm, self.rules = market, slurm, rules
        self.clock = RoundClock()
        self._statements: dict[str, dict[str, Any]] = {}

    def forget_all_but(self, jobs: Container[str]) -> None:
        """Keep nothing of jobs that neither side lists any more."""
        self._statements = {job: said for job, said in self._statements.items() if job in jobs}

    def take(self, action: Action, view: View) -> None:
        """Take an action; errors as of the market's client and of Slurm's commands."""
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
        if self.clock.timed:
            booked = math.ceil(self.market.job(action.job)["booked"] * self.clock.seconds / 60)  # minutes
            if not 0 < mate.limit <= booked:
                self.slurm.update(JobId=action.number, TimeLimit=booked)
        if mate.begins_later:
            self.slurm.update(JobId=action.number, StartTime="now")
        if mate.restarts:  # it was allowed to go back for the market's sake, not for its user's
            self.slurm.update(JobId=action.number, Requeue=0)
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

    def is_early(self, action: Action) -> bool:
        """Tell whether a job came before a round in which it was announced: it is held until the next of them."""
        announced = {point["arrival"] for point in self._statement(action.job)["requirements"]}
        return self.clock.round not in announced and max(announced) > self.clock.round

    def _arrive(self, action: Action, mate: SlurmJob) -> None:
        points = self._statement(action.job)["requirements"]
        key = f"slurm-{action.job}-arrival"
        if any("signal" not in point for point in points):
            rounds = max(1, math.ceil(mate.limit * 60 / self.clock.seconds))
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
                point.setdefault("arrival", self.clock.round)
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
        points = [{**p, "arrival": self.clock.round, "probability": 1 / len(durations)} for p in durations.values()]
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
            self.market.submit(statement, name=label, owner=owner, key=f"slurm-{name}-{self.clock.round}")
        return name

    def _statement(self, job: str) -> dict[str, Any]:
        if job not in self._statements:
            self._statements[job] = self.market.job(job)["sow"]
        return self._statements[job]


def _mate(view: View, action: Action) -> SlurmJob:
    return next(mate for mate in view.queue if mate.id == action.number)
