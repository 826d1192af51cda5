"""A live market: events in, decisions and postings out, without a clock, a disk or a network.

The rules are those of `replay`: every event is handed to the same `Replayer`. What a live market adds is who the jobs
belong to, what became of them, and the order in which the world may report: submissions and arrivals of a round come
as they come, so an arrival is checked when it is reported and revealed to the mechanism when the round is cleared,
after all submissions; a completion that is reported while round t + 1 is open means that the job ran its last round
in t. All checks come before any change.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from marketsched.live import announcements
from marketsched.live.accounts import MICRO, Posting
from marketsched.live.costs import fee
from marketsched.live.job import (
    ENDS,
    FREE,
    NOT_COME,
    OUTCOMES,
    PAYS_NOTHING,
    PAYS_USED,
    REASONS,
    SURPRISE,
    TOO_LONG,
    UNREPORTED,
    WITHDRAWN,
    LiveJob,
    unannounced,
)
from marketsched.live.purse_ledger import check_owner
from marketsched.live.state import LiveState
from marketsched.live.statements import check_signal, laws_of, longest_of, nodes_of, odds_of
from marketsched.mechanisms.errors import EventError, InvalidReportError
from marketsched.mechanisms.legal import Whole
from marketsched.mechanisms.limits import LAST_ROUND
from marketsched.play.replayer import Decision

Event = Mapping[str, Any]


class Applied(NamedTuple):
    """The consequences of one event."""

    decisions: list[Decision]
    postings: list[Posting]
    ended: Sequence[LiveJob] = ()  # jobs that it lets go: the market forgets them


class LiveMarket(LiveState):
    """A market that takes events as they come; parameter and attributes are those of `LiveState`."""

    def apply(self, event: Event, row: int) -> Applied:
        """Take one event, row ``row`` of the journal.

        Raises MarketschedError if it does not fit; nothing is changed then.
        """
        take = getattr(self, f"_{event['event']}")
        self._ended.clear()
        applied: Applied = take(event)
        for name in (event.get("job"), *(decision["job"] for decision in applied.decisions)):
            job = self.jobs.get(name) or self._ended.get(name)
            if job is not None and (not job.rows or job.rows[-1] != row):
                job.rows += (row,)
        self.accounts.book(applied.postings)
        return applied._replace(ended=list(self._ended.values()))

    def _submit(self, event: Event) -> Applied:
        owner, name = self.accounts.get(event["owner"]), event["job"]
        line = {"round": self.round, "event": "submit", "job": name, "sow": event["sow"], "owner": owner.name}
        decisions = self._replayer.take(line)
        owner.submitted += 1
        label = name.removeprefix(f"{owner.name}.")
        if label.isdecimal():
            owner.numbered = max(owner.numbered, int(label))
        nodes, starts = nodes_of(event["sow"], self.config), decisions[-1]["starts"]
        job = LiveJob(
            name, owner.name, self.round, nodes, starts, event.get("most", 0), longest_of(event["sow"], starts),
            fee=event.get("fee", fee(self.config, nodes)), held=event.get("held", False),
        )  # fmt: skip
        if self.config.surprise_limit:
            job.odds, job.laws = odds_of(event["sow"], starts), laws_of(event["sow"], starts)
        self.jobs[name] = job
        self.tally[job.state] += 1
        self.owed += job.most
        self.expected[max(arrival for arrival, *_ in starts)].append(name)
        return Applied(decisions, [])

    def check_arrival(self, name: str, event: Event) -> None:
        """Raise EventError if a job cannot be reported as ready now."""
        job = self.job(name)
        if self.over:
            raise EventError(f"arrive in round {self.round}", legal=f"at most the horizon {self.config.horizon}")
        if job.arrived is not None:
            raise EventError(f"arrive of {name!r}: it arrived in round {job.arrived}")
        check_signal(event.get("signal"))
        if event.get("duration") is not None:
            Whole(1, LAST_ROUND).check("duration", event["duration"], InvalidReportError)
        self._replayer.check_arrival(name, event)

    def _arrive(self, event: Event) -> Applied:
        name = event["job"]
        if name in self.jobs:
            self.check_arrival(name, event)
            job = self.jobs[name]
            if "refused" in event:
                self._never_comes(job, "missed")
                job.end, job.reason = self.round, SURPRISE
                return Applied([], self._fee(job, event["micro"]))
            if (case := self.case_of(name, event)) is not None:
                announcements.settle(self, job, case)
            job.arrived = self.round
            self._turns(job, "arrived")
            signal = self._replayer.check_arrival(name, event)[2]
            job.ends_itself = event.get("duration") is not None
            job.may_run = job.booked(self.round, signal)
            if not job.announced(self.round, signal):
                job.reason = unannounced(job, signal)
        elif not self._replayer.knows(name):  # it has gone
            return Applied([], [])
        line = {key: event[key] for key in ("job", "signal", "duration") if key in event}
        self.reported.append({"round": self.round, "event": "arrive", **line})
        return Applied([], [])

    def case_of(self, name: str, event: Event) -> int | None:
        """Return the place in its plan of the case in which a job arrives now; None: it was not announced."""
        return self.jobs[name].case(self.round, self._replayer.check_arrival(name, event)[2])

    def _advance(self, event: Event) -> Applied:
        now = self.round
        owed = {} if event.get("away") else self._owed_now()
        if not event.get("away"):
            announcements.go_on(self)
        if self._closed:
            raise EventError(f"advance after the horizon {self.config.horizon}", legal="none: the market is over")
        decisions: list[Decision] = []
        for line in self.reported:
            decisions += self._replayer.take(line)
        more = {"more": True} if event.get("more") else {}
        decisions += self._replayer.take({"round": min(now, self.config.horizon), "event": "end", **more})
        self._closed = now > self.config.horizon or (now == self.config.horizon and not more)
        self.reported.clear()
        self.bookings_end.pop(now, None)
        self.expected.pop(now, None)
        self.withheld.pop(now, None)
        self.outlasting.pop(now, None)
        short = self.usable is not None and self.usable < self.config.capacity
        self.short_rounds += short and now <= self.config.horizon
        own = {self.group_of(self.jobs[each["job"]].owner) for each in decisions if each["event"] == "start"}
        if self.config.evicted_pay == "own":
            owed = {name: paid for name, paid in owed.items() if self.group_of(self.jobs[name].owner) in own}
        postings = [posting for each in decisions for posting in self._note(each, owed)]
        self.past.append((now, self.load, self.waiting_at_most))
        return Applied(decisions, postings + self._note_purses())

    def _note_purses(self) -> list[Posting]:
        """Note the class of every job that has come, and what it has paid; return what is booked of the purses."""
        if self.mechanism.purses is None:
            return []
        for job in self.jobs.values():
            found = self.mechanism.class_of(job.name) if job.state in ("arrived", "running") else None
            if found is not None:
                job.regular, job.charge = found.name == "regular", found.paid
        return self._purses.postings(self.mechanism)

    def _owed_now(self) -> dict[str, float]:
        """Return what each running job pays for the rounds it has used, if it is evicted now, credits."""
        if self.config.evicted_pay == "nothing":
            return {}
        runs = ((name, job.start) for name, job in self.jobs.items() if job.state == "running" and job.start)
        return {
            name: self.mechanism.owed(name, self.round - start) or 0.0 for name, start in runs if start < self.round
        }

    def _complete(self, event: Event) -> Applied:
        job = self.job(event["job"])
        if job.state != "running":
            raise EventError(f"complete of {job.name!r}, which is {job.state}", legal="a running job")
        if event.get("refused"):
            job.reason = TOO_LONG
        elif event.get("outcome", "done") in OUTCOMES[:2]:
            announcements.end(self, job)
        line = {"round": self.round - 1, "event": "complete", "job": job.name, "late": True}
        decisions = self._replayer.take(line)
        job.outcome, job.exit_code = event.get("outcome", "done"), event.get("exit_code")
        return Applied(decisions, [posting for each in decisions for posting in self._note(each)])

    def _missed(self, event: Event) -> Applied:
        job = self.job(event["job"])
        if job.state == "submitted":
            announcements.settle(self, job, None)
            self._never_comes(job, "missed")
            job.end, job.reason = self.round, UNREPORTED if event.get("away") else NOT_COME
        return Applied([], self._fee(job, event["micro"]))

    def _withdraw(self, event: Event) -> Applied:
        job = self.job(event["job"])
        if job.state not in ("submitted", "arrived"):
            raise EventError(f"withdrawal of {job.name!r}, which is {job.state}", legal="a job that has not started")
        job.outcome = WITHDRAWN
        if job.state == "arrived":  # its start is settled: it ends with the first round
            job.may_run = 1
            return Applied([], [])
        announcements.settle(self, job, None)
        self._never_comes(job, "withdrawn")
        job.end, job.reason = self.round, "withdrawn by its owner"
        return Applied([], self._fee(job, event["micro"]))

    def _never_comes(self, job: LiveJob, state: str) -> None:
        """Let go of a job that does not come, and note for how long its nodes are kept for it all the same."""
        last = max((arrival for arrival, *_ in job.plan or ()), default=0)
        if last > self.round and self.decides == "at submission":
            self.withheld[last].append((job.owner, job.nodes))
        self._turns(job, state)

    def _fee(self, job: LiveJob, micro: int) -> list[Posting]:
        """Charge what the mechanism makes of the fee, as for a withdrawal; of a job that came, the fee."""
        if job.arrived is None and not self.over and self._replayer.may_withdraw(job.name):
            line = {"round": self.round, "event": "withdraw", "job": job.name, "fee": micro / MICRO}
            (said,) = self._replayer.take(line)
            micro = round(said.get("payment", 0.0) * MICRO)
        job.charge = micro
        return self.accounts.charge(job.owner, micro, job.name, "no-show")

    def _owner(self, event: Event) -> Applied:
        account = self.accounts.check_new(event["owner"], event["role"], event.get("limit"), event.get("group"))
        self.accounts.open(account)
        return Applied([], [])

    def _share(self, event: Event) -> Applied:
        check_owner(event["place"].rpartition("/")[2] or "an-account")
        line = {"round": self.round, "event": "share", "place": event["place"], "share": event["share"]}
        return Applied(self._replayer.take(line), [])

    def _deposit(self, event: Event) -> Applied:
        return Applied([], self.accounts.deposit(event["owner"], event["credits"]))

    def _token(self, event: Event) -> Applied:
        self.accounts.get(event["owner"])
        return Applied([], [])

    def _nodes(self, event: Event) -> Applied:
        self.usable = event["usable"]
        return Applied([], [])

    def _snapshot(self, event: Event) -> Applied:
        return Applied([], [])

    def _turns(self, job: LiveJob, state: str) -> None:
        """Let a job be in another state, and let go of it if that is its last one."""
        self.tally[job.state] -= 1
        self.tally[state] += 1
        self.busy += job.nodes * ((state == "running") - (job.state == "running"))
        job.state = state
        if job.gone:
            self.owed -= job.most
            job.plan, job.most, job.longest = None, 0, []
            self._ended[job.name] = self.jobs.pop(job.name)

    def _note(self, decision: Decision, owed: Mapping[str, float] | None = None) -> Iterator[Posting]:
        """Note what became of a job, and yield what is charged for it; ``owed``: what it pays if it is evicted."""
        job, kind = self.jobs.get(decision["job"]), decision["event"]
        if job is None:  # missed or withdrawn: the mechanism, which does not know it, lets go of it now
            return
        held = job.most if job.held else None  # a job that has gone keeps none of it
        if kind == "start":
            job.start = decision["round"]
            job.book(decision)
            self.bookings_end[job.start + max(1, job.may_run)].append(job.name)
            self._turns(job, "running")
            announcements.watch(self, job)
        elif kind == "requeue":
            job.start = None
            self._turns(job, "arrived")
        elif kind in ENDS:
            job.reason = job.reason or REASONS.get(kind)
            self._turns(job, ENDS[kind])
            job.end = decision.get("completion", decision["round"])
        if kind == "complete":
            job.outcome = job.outcome or "done"
        if "payment" in decision:  # completed, or stopped by a mechanism that charges for that
            yield from self._charge(job, 0.0 if job.outcome in FREE else decision["payment"], held)
        elif kind == "evict":
            paid = (owed or {}).get(job.name, 0.0)
            if paid:
                job.reason = (job.reason or "").replace(PAYS_NOTHING, PAYS_USED)
                yield from self._charge(job, paid, held)

    def _charge(self, job: LiveJob, payment: float, held: int | None) -> list[Posting]:
        """Charge a job so many credits, at most what its owner's limit holds for it, millionths; None: no limit."""
        before, micro = job.charge or 0, round(payment * MICRO)
        if held is not None:
            micro = min(micro, held - before)
        job.charge = before + micro
        return self.accounts.charge(job.owner, micro, job.name)
