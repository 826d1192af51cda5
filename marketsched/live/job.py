"""A job of a live market, as its owner sees it: its report, its state, and the reason."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from marketsched.live.accounts import MICRO, Account
from marketsched.mechanisms.errors import InvalidParameterError

LABEL = r"[A-Za-z0-9_.-]{1,64}"
OUTCOMES = ("done", "failed", "node-failed")  # of a completion; the last one is not charged
OVERRUN, WITHDRAWN, AWAY = "overrun", "withdrawn", "unreported"  # outcomes that the market itself gives
FREE = ("node-failed", AWAY)  # outcomes that are not charged
NOT_COME = "it did not come in a round that it announced"
SURPRISE = "it came in a case announced as unlikely, as this owner's jobs do too often: its nodes are not free for it"
TOO_LONG = "it would have run on for longer than announced as likely, as this owner's jobs do too often"
UNREPORTED = "no service took its arrival in the last round that it announced"
REGULAR, SPARE = "regular", "free"  # classes of nodes
ENDS = {"drop": "dropped", "cancel": "cancelled", "evict": "evicted", "complete": "completed"}
GONE = (*ENDS.values(), "missed", "withdrawn")  # states of jobs that are not in the market any more
STATES = ("submitted", "arrived", "running", *GONE)
PAYS_NOTHING, PAYS_USED = "it pays nothing", "it pays for the rounds it used"
REASONS = {  # journals hold these texts: another one would be a difference; of jobs that announced what came
    "drop": "its plan has no start for this arrival and signal: nothing that was left was worth its price",
    "cancel": "it had to make room before its start: the nodes it counted on are taken (last come, first out)",
    "evict": "it had to make room while it ran (last come, first out); it pays nothing",
}
# What is kept of a job that has gone, beside its name, owner, state and rows.
KEPT = ("submitted", "nodes", "arrived", "start", "end", "charge", "outcome", "exit_code", "reason", "may_run")
BOOKING = ("shape", "kind", "nodes")  # what a start on a cluster says beside its length
Durations = tuple[tuple[int, float], ...]  # of one case: duration and announced probability, the shortest first
NAMED_CASES = 6  # of a statement, in a reason


@dataclass(slots=True)
class LiveJob:
    """A job, as its owner sees it."""

    name: str
    owner: str
    submitted: int  # round
    nodes: int
    plan: list[list[Any]] | None  # [arrival, signal, start or null]; None once it has gone: the journal has it
    most: int  # millionths of a credit: the highest price of its plan, while it is in the market
    longest: list[int]  # rounds, for each case of the plan: the longest duration announced; empty once it has gone
    state: str = "submitted"
    arrived: int | None = None
    start: int | None = None
    end: int | None = None  # completion time, or the round of its removal
    charge: int | None = None  # millionths
    outcome: str | None = None
    exit_code: int | None = None
    reason: str | None = None  # why it left the market without being served
    rows: tuple[int, ...] = ()  # of the journal, that are about it; the first is its submission
    may_run: int = 0  # rounds, once it has arrived: the longest duration announced for this case
    ends_itself: bool = False  # its duration was given at its arrival
    fee: int = 0  # millionths, if it does not come as announced
    odds: tuple[float, ...] = ()  # announced probabilities of the cases of its plan; empty: they are not tested
    laws: tuple[Durations, ...] = ()  # durations of each case of its plan, where they are hidden and tested
    law: Durations = ()  # of the case that came
    outlasted: int = 0  # the longest duration of its law that a run of it has outlasted, rounds
    held: bool = False  # its price was not known at submission: it is charged at most ``most``
    regular: bool | None = None  # where nodes are regular or free: which of them it has, or waits for
    booking: dict[str, Any] | None = None  # on a cluster, once it has started: shape, kind, nodes

    @property
    def gone(self) -> bool:
        """True once it is no longer in the market."""
        return self.state in GONE

    def booked(self, arrival: int, signal: Any) -> int:
        """Return for how many rounds it may run, if it arrives so: the longest duration announced for that case.

        A case that was not announced, which only queues without plans start, has the longest one of all.
        """
        cases = zip(self.plan or (), self.longest, strict=True)
        return next((most for (a, seen, _), most in cases if (a, seen) == (arrival, signal)), max(self.longest))

    def book(self, decision: Mapping[str, Any]) -> None:
        """Record the nodes of a start on a cluster, and the rounds for which they are booked."""
        if "nodes" in decision:
            self.may_run = decision["length"]
            self.booking = {key: decision[key] for key in BOOKING}

    def announced(self, arrival: int, signal: Any) -> bool:
        """Tell whether a case is one of its statement."""
        return self.case(arrival, signal) is not None

    def case(self, arrival: int, signal: Any) -> int | None:
        """Return the place of a case in its plan; None: it is none of its statement."""
        cases = enumerate(self.plan or ())
        return next((n for n, (a, seen, _) in cases if (a, seen) == (arrival, signal)), None)

    def kept(self) -> dict[str, Any]:
        """Return its row of the table ``ended``, written when it has left."""
        body = {key: getattr(self, key) for key in KEPT} | {"rows": list(self.rows)} | self._booked_nodes()
        known = {"job": self.name, "owner": self.owner, "state": self.state, "submitted": self.rows[0]}
        return {**known, "seq": self.rows[-1], "body": body}

    @classmethod
    def of_kept(cls, row: Mapping[str, Any]) -> LiveJob:
        """Return a job that has gone, from its row of the table ``ended``; ValueError if it is damaged."""
        body = row["body"]
        try:
            fields = {key: body[key] for key in KEPT} | {"rows": tuple(body["rows"]), "booking": body.get("booking")}
            fields["regular"] = None if "class" not in body else body["class"] == REGULAR
        except (KeyError, TypeError):
            raise ValueError(f"ended, {row['job']}: its body is damaged") from None
        found = cls(row["job"], row["owner"], plan=None, most=0, longest=[], state=row["state"], **fields)
        if found.state not in GONE or (row["submitted"], row["seq"]) != (found.rows[0], found.rows[-1]):
            raise ValueError(f"ended, {found.name}: its columns are not what its body says")
        return found

    def shown(self, plan_of_gone: list[list[Any]] | None = None) -> dict[str, Any]:
        """Return it as plain data; the plan of a job that has gone is not kept here, and has to be given."""
        starts = self.plan or plan_of_gone or []
        plan = [{"arrival": a, "signal": signal, "start": start} for a, signal, start in starts]
        charge = None if self.charge is None else self.charge / MICRO
        same = ("owner", "state", "submitted", "nodes", "arrived", "start", "end", "outcome", "exit_code", "reason")
        more = {"booked": self.may_run or None, "plan": plan, "charge": charge}
        return {"job": self.name, **{key: getattr(self, key) for key in same}, **more, **self._booked_nodes()}

    def _booked_nodes(self) -> dict[str, Any]:
        found = {} if self.booking is None else {"booking": self.booking}
        return found if self.regular is None else {**found, "class": REGULAR if self.regular else SPARE}


def unannounced(job: LiveJob, signal: Any) -> str:
    """Return in words the announcement of a job that came differently."""
    cases = [f"{arrival} with signal {json.dumps(seen)}" for arrival, seen, _ in (job.plan or ())[:NAMED_CASES]]
    more = ", ..." if len(job.plan or ()) > NAMED_CASES else ""
    came = f"it came in round {job.arrived} with signal {json.dumps(signal)}"
    return f"{came}, which was not announced; announced: round {', '.join(cases)}{more}"


def name_of_next(owner: Account, label: str | None) -> str:
    """Return the name of an owner's next job: the label, or a number that no job of the owner's had.

    Raises InvalidParameterError if the label is none.
    """
    if label is None:
        return f"{owner.name}.{max(owner.submitted, owner.numbered) + 1}"
    if not isinstance(label, str) or not re.fullmatch(LABEL, label):
        raise InvalidParameterError(place="name", value=label, legal="1 to 64 of A-Z, a-z, 0-9, _, . and -")
    return f"{owner.name}.{label}"
