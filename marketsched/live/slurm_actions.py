"""The bridge's actions on the market and on Slurm, one at a time; each is safe to take twice."""

from __future__ import annotations

import json
import math
from collections.abc import Container, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from marketsched.live.slurm import Slurm, SlurmJob
from marketsched.live.slurm_nodes import Pools
from marketsched.live.slurm_sides import Action, View, comment_of, statement_in, successor
from marketsched.mechanisms.errors import MarketschedError
from marketsched.mechanisms.legal import Amount, check_fields

if TYPE_CHECKING:
    from marketsched.live.client import LiveClient  # the extra `live`

NOT_FOUND, CONFLICT = 404, 409
ROUND_S = 60.0  # of a market with a manual clock, whose rounds have no length


@dataclass(frozen=True)
class BridgeRules:
    """How a bridge behaves."""

    partition: str = "market"  # of Slurm, that the market has for itself
    # what becomes of a job that the market evicts: back into the queue, held, or ended
    on_evict: Literal["requeue", "cancel"] = "requeue"
    # whether owners of the market are users of Slurm; False where one user runs everything, as in a trial
    check_users: bool = True
    announced: Path | None = None  # where the table for the plugin is kept; None: there is no plugin
    # seconds for which nodes have to be missing before anything is done about it: a controller that was started again
    # waits for its nodes, too
    node_patience: Amount = 30.0
    pools: Pools = "gres"  # how kinds of nodes are distinguished (see `slurm_nodes`)
    # qualities of service that stand for regular and free nodes, in a market that has both; None: none are set
    qos: tuple[str, str] | None = ("credit", "free")

    def __post_init__(self) -> None:
        check_fields(self)


class RoundClock(NamedTuple):
    """The market's clock, as it was last seen: the open round, and how long rounds are; ``timed``: they end by it."""

    round: int = 1
    seconds: float = ROUND_S
    timed: bool = False


class SlurmActions:
    """Performs the actions of `slurm_pairs.decide`.

    ``clock`` is renewed by who looks at the market; ``places`` is Slurm's name of each node of a market of several
    kinds, and empty on identical nodes.
    """

    def __init__(self, market: LiveClient, slurm: Slurm, rules: BridgeRules) -> None:
        self.market, self.slurm, self.rules = market, slurm, rules
        self.clock = RoundClock()
        self.places: Mapping[str, str] = {}
        self._statements: dict[str, dict[str, Any]] = {}

    def forget_all_but(self, jobs: Container[str]) -> None:
        """Keep nothing of jobs that neither side lists any more."""
        self._statements = {job: said for job, said in self._statements.items() if job in jobs}

    def take(self, action: Action, view: View) -> None:
        """Take an action; errors as of the market's client and of Slurm's commands."""
        match action.kind:
            case "release":
                self._release(action, _mate(view, action), view)
            case "class":
                self.slurm.update(JobId=action.number, QOS=action.why)
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

    def _release(self, action: Action, mate: SlurmJob, view: View) -> None:
        """Let a job start now, where and for as long as it booked; rounds of a manual clock limit nothing."""
        places = view.market[action.job].places
        if places:
            self.slurm.update(JobId=action.number, ReqNodeList=",".join(self.places[place] for place in places))
        if self.clock.timed:
            booked = math.ceil(self.market.job(action.job)["booked"] * self.clock.seconds / 60)  # minutes
            if not 0 < mate.limit <= booked:
                self.slurm.update(JobId=action.number, TimeLimit=booked)
        if mate.begins_later:
            self.slurm.update(JobId=action.number, StartTime="now")
        if view.qos is not None:  # Slurm may send back what is free, and nobody what is regular
            self.slurm.update(JobId=action.number, Requeue=int(not view.market[action.job].regular))
        elif mate.restarts:  # it was allowed to go back for the market's sake, not for its user's
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
        statement = self.statement(action.job)
        points = statement.get("requirements") or [statement]  # with shapes it has one arrival
        announced = {point["arrival"] for point in points}
        return self.clock.round not in announced and max(announced) > self.clock.round

    def _arrive(self, action: Action, mate: SlurmJob) -> None:
        key = f"slurm-{action.job}-arrival"
        durations, signal = self._signals(action.job)
        if not durations:
            self.market.arrive(action.job, signal=signal, key=key)
            return
        rounds = math.ceil(mate.limit * 60 / self.clock.seconds)  # 0: it has no limit
        if len(durations) == 1 and self.places:
            rounds = durations[0]  # of the first shape on its first kind, while its limit may be for all kinds
        if rounds not in durations:
            limit = f"a time limit of {rounds} rounds" if rounds else "no time limit"
            why = f"{limit}, where {', '.join(map(str, durations))} rounds were announced"
            self._cancel(Action("cancel", action.job, action.number, why))
            return
        self.market.arrive(action.job, signal=rounds, key=key)

    def _signals(self, job: str) -> tuple[list[int], Any]:
        """Return the durations one of which is the signal at arrival; none: the signal is the second value."""
        statement = self.statement(job)
        if "shapes" in statement:
            seen = [case["signal"] for case in self.market.job(job)["plan"]]
            return sorted({each for each in seen if each is not None}), None
        points = statement["requirements"]
        durations = {point["duration"] for point in points if "signal" not in point}
        return sorted(durations), points[0].get("signal")

    def _announce(self, mate: SlurmJob) -> None:
        """Submit the statement in a comment, for the user whose job it is; it arrives at the next look."""
        if self.places:
            why = "expected a job that was announced with its shapes (marketsched live sbatch)"
            self._cancel(Action("cancel", "", mate.id, why))
            return
        label, text = f"slurm-{mate.id}-{int(mate.submitted)}", statement_in(mate.comment)
        owner = mate.user
        try:
            statement = json.loads(text or "")
            owner = statement.pop("owner", owner) if not self.rules.check_users else owner
            points = statement.setdefault("requirements", [])
            for point in points:
                point.setdefault("arrival", self.clock.round)
            statement.setdefault("concurrency", mate.nodes)
            if isinstance(statement["value"], dict) and statement["value"].get("kind") == "rank":
                statement["value"].setdefault("rank", rank_of(mate.nice))
            job = self._submit_once(f"{owner}.{label}", statement)
        except (ValueError, AttributeError, TypeError, KeyError, RecursionError, MarketschedError) as error:
            if isinstance(error, ConnectionError):
                raise
            self._cancel(Action("cancel", "", mate.id, f"the statement in its comment: {error}"[:200]))
            return
        self.slurm.update(JobId=mate.id, Comment=comment_of(job))

    def _again(self, action: Action, view: View) -> None:
        """Give a job another name in the market, at no charge, and put it back into the queue."""
        new, mate = successor(action.job), _mate(view, action)
        shape = view.market[action.job].shape
        try:
            self._submit_once(new, self._due_now(self.statement(action.job), shape))
        except MarketschedError as error:
            if isinstance(error, ConnectionError):
                raise
            self._complete(action)
            self._cancel(Action("cancel", "", action.number, f"nodes failed, and once more is too late: {error}"[:200]))
            return
        self.slurm.update(JobId=action.number, Comment=comment_of(new, None if shape is None else 0))
        if mate.active:
            self._back_to_queue(action.number)
        self._complete(action)

    def _due_now(self, statement: Mapping[str, Any], shape: int | None) -> dict[str, Any]:
        """Return a statement that is due in this round; on a cluster only the shape that was booked is left."""
        if shape is not None:
            return {**statement, "arrival": self.clock.round, "shapes": [statement["shapes"][shape]]}
        durations = {(p["duration"], json.dumps(p.get("signal", "revealed"))): p for p in statement["requirements"]}
        points = [{**p, "arrival": self.clock.round, "probability": 1 / len(durations)} for p in durations.values()]
        return {**statement, "requirements": points}

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

    def statement(self, job: str) -> dict[str, Any]:
        """Return the statement of a job, as the market keeps it."""
        if job not in self._statements:
            self._statements[job] = self.market.job(job)["sow"]
        return self._statements[job]


def rank_of(nice: int) -> int:
    """Return the rank of a job whose user gave it this ``--nice``: 9 without one, one less for each step, at least 1.

    Examples
    --------
    >>> rank_of(0), rank_of(3), rank_of(100)
    (9, 6, 1)
    """
    return min(9, max(1, 9 - nice))


def _mate(view: View, action: Action) -> SlurmJob:
    return next(mate for mate in view.queue if mate.id == action.number)
