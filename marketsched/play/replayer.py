"""The state of one replay: the mechanism, the jobs of the log, and the checks of each line."""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from marketsched.agents.loop import NEVER, MarketLoop
from marketsched.config.configuration import ReplayConfig
from marketsched.config.json_lines import field, parse_line
from marketsched.config.sow_codec import ReportLimits, signals_left_out, sow_from_json
from marketsched.mechanisms.errors import EventError, InvalidReportError, MarketschedError, shown
from marketsched.mechanisms.law import Signal
from marketsched.mechanisms.legal import EXACT, Finite, Whole
from marketsched.mechanisms.mechanism import Event, EventKind, LaunchPlan, Mechanism
from marketsched.mechanisms.resources.bookings import booking_to_data
from marketsched.mechanisms.resources.shapes import cases_of

Decision = dict[str, Any]
Line = str | bytes | Mapping[str, Any]
KINDS = ("submit", "withdraw", "arrive", "complete", "share", "end")  # of lines


@dataclass(slots=True)
class _Job:
    """A job as the log has it so far, and its plan by the mechanism."""

    name: str
    plan: LaunchPlan | None  # None once it has gone
    signals_left_out: bool
    arrived: bool = False
    planned: int | None = None  # its start, of the case that has happened; None while unknown
    duration: int | None = None  # given in the log; then the replayer completes the job


@dataclass(frozen=True, slots=True)
class _LoggedFate:
    """What the log says has happened to a job; ``duration`` None: a ``complete`` will say when it is done."""

    arrival: int | None
    duration: int | None
    signal: Signal


class Replayer:
    """The state of one replay: a mechanism, and the jobs that the log has named.

    Parameters
    ----------
    config : ReplayConfig
        The configuration of the replay contract. Raises InvalidParameterError if the mechanism refuses it.
    forgets : bool
        Whether to forget jobs that have left; the program that writes the log then has to know their names.
    """

    def __init__(self, config: ReplayConfig, *, forgets: bool = False) -> None:
        self.config = config
        self._forgets = forgets
        self._market = MarketLoop(_build_mechanism(config))
        cluster = None if config.cluster is None else config.cluster.cluster()
        widest = config.max_concurrency if cluster is not None else min(config.max_concurrency, config.capacity)
        self.limits = ReportLimits(widest, config.max_duration, config.max_value, cluster)
        self._jobs: dict[str, _Job] = {}  # every job ever submitted, but those that are forgotten
        self._said: list[Decision] = []  # decisions on the line at hand
        self._mentioned = 0  # the last round of a correct line
        self._arrivals_in = 0  # the last round with an arrival
        self._ended = 0  # the last round that an ``end`` has closed
        self._closed = False
        self._left_open = False  # the log says that its last round is not over

    @property
    def _cleared(self) -> int:
        """The last round cleared."""
        return self._market.now - 1

    def feed(self, number: int, line: Line) -> list[Decision]:
        """Take line ``number`` of the log; return the decisions that it leads to."""
        fields: Any = line
        self._said = []
        try:
            if isinstance(line, (str, bytes)):
                if not line.strip():
                    return []
                fields = parse_line(line)
            self._check_and_act(fields)
        except MarketschedError as error:
            self._said.append(_error(number, fields, str(error)))
        except OverflowError:
            self._said.append(_error(number, fields, "a number is too large: expected numbers below 1e9"))
        return self._said

    def take(self, event: Mapping[str, Any]) -> list[Decision]:
        """Take one event, and return the decisions that it leads to.

        Raises
        ------
        MarketschedError
            What `feed` would answer with a line of error; nothing is changed then.
        """
        self._said = []
        self._check_and_act(event)
        return self._said

    @property
    def mechanism(self) -> Mechanism:
        """The mechanism that decides."""
        return self._market.mechanism

    def knows(self, job: str) -> bool:
        """Tell whether a job was submitted, and is not forgotten."""
        return job in self._jobs

    @property
    def open_round(self) -> int:
        """The round that is not cleared yet."""
        return self._market.now

    @property
    def load(self) -> int:
        """Nodes that were busy in the round cleared last."""
        return self._market.load

    def finish(self) -> list[Decision]:
        """End of the log: clear the last round mentioned, and close the market after the horizon."""
        self._said = []
        if self._left_open:
            return []
        self._clear(self._mentioned)
        if self._mentioned == self.config.horizon:
            self._close()
        return self._said

    def _check_and_act(self, fields: Any) -> None:
        """Check one event completely, then act on it."""
        if not isinstance(fields, Mapping):
            raise EventError(f"{shown(fields)}: expected an object with round and event")
        t = Whole(1, EXACT).check("round", field(fields, "round"), InvalidReportError)
        kind = field(fields, "event")
        if not isinstance(kind, str) or kind not in KINDS:
            raise EventError(f"event = {shown(kind)}: expected {', '.join(KINDS[:-1])} or {KINDS[-1]}")
        if t > self.config.horizon:
            raise EventError(f"round = {t} lies beyond the horizon: expected at most {self.config.horizon}")
        late = kind == "complete" and fields.get("late") is True
        if late and t != self._cleared:
            raise EventError(f"round = {t} of a late complete: expected the round cleared last, {self._cleared}")
        if t < self._mentioned and not late:
            raise EventError(f"round = {t} goes back: expected at least {self._mentioned}")
        if t <= self._cleared and not (kind == "complete" or (kind == "end" and t > self._ended)):
            raise EventError(f"round {t} is already cleared: expected complete, or a later round")
        if kind == "end":
            self._end(t, fields.get("open") is True, fields.get("more") is True)
            return
        if kind == "share":
            self._share(t, fields)
            return
        name = field(fields, "job")
        if not isinstance(name, str):
            raise EventError(f"job = {shown(name)}: expected a string")
        getattr(self, f"_{kind}")(t, name, fields)

    def _end(self, t: int, left_open: bool, more: bool) -> None:
        self._left_open = left_open
        if left_open:
            return
        self._clear(t)
        self._mentioned = t
        if more and t == self.config.horizon:
            return
        self._ended = t
        if t == self.config.horizon:
            self._close()

    def _share(self, t: int, fields: Mapping[str, Any]) -> None:
        """Give an account or an owner another share from round ``t`` on."""
        place, share = field(fields, "place"), field(fields, "share")
        if not isinstance(place, str):
            raise EventError(f"place = {shown(place)}: expected a string")
        if self._cleared < t - 1:  # a faulty line clears nothing
            copy.deepcopy(self.mechanism).set_share(place, share)
        self._clear(t - 1)
        self.mechanism.set_share(place, share)
        self._mentioned = t

    def _submit(self, t: int, name: str, fields: Mapping[str, Any]) -> None:
        if name in self._jobs:
            raise EventError(f"job = {name!r} was submitted before: expected a new name")
        if self._arrivals_in == t:
            raise EventError(f"submit of {name!r} after an arrive of round {t}: expected all submit first")
        report, owner = field(fields, "sow"), fields.get("owner")
        if isinstance(owner, bool) or not isinstance(owner, (str, int, type(None))):
            raise EventError(f"owner = {shown(owner)}: expected a string or a whole number, or none")
        sow = sow_from_json(t, report, self.limits)
        self._clear(t - 1)
        plan = self._market.submit(name, sow, NEVER, 1, owner=owner)
        self._jobs[name] = _Job(name, plan, signals_left_out(report))
        self._mentioned = t
        self._said.append(_plan(t, plan))

    def _withdraw(self, t: int, name: str, fields: Mapping[str, Any]) -> None:
        self._known(name)
        if not self.may_withdraw(name):
            raise EventError(f"withdraw of {name!r}", legal="a job in the market that has not arrived")
        fee = Finite("[0, inf)").check("fee", fields.get("fee", 0.0), InvalidReportError)
        self._clear(t - 1)
        self._mentioned = t
        if self.may_withdraw(name):  # else the rounds before have removed it
            self._record(self._market.withdraw(name, fee))

    def may_withdraw(self, name: str) -> bool:
        """Tell whether a job is in the market, has not arrived, and was not withdrawn."""
        entry = self._market.entries.get(name)
        return entry is not None and not (entry.arrived or entry.withdrawn)

    def check_arrival(self, name: str, fields: Mapping[str, Any]) -> tuple[_Job, int | None, Signal]:
        """Return the job of an ``arrive``, and the event's data of it: duration and signal.

        Raises
        ------
        EventError
            If the job is unknown or arrived before, or a field is at fault.
        """
        job, entry = self._known(name), self._market.entries.get(name)
        if job.arrived or (entry is not None and entry.withdrawn):
            raise EventError(f"arrive of {name!r}: it {'arrived' if job.arrived else 'was withdrawn'} before")
        duration = fields.get("duration")
        if duration is not None:
            duration = Whole(1, EXACT).check("duration", duration, InvalidReportError)
            self._check_case(name, duration)
        return job, duration, self._signal(job, duration, fields)

    def _check_case(self, name: str, duration: int) -> None:
        """Raise EventError unless a duration is one of the first shape's: with shapes it says which case it is."""
        entry = self._market.entries.get(name)
        shapes = () if entry is None else entry.sow.shapes
        if shapes and duration not in (cases := cases_of(shapes)):
            legal = f"one of the first shape's on {shapes[0].kinds[0]}: {', '.join(map(str, cases))}"
            raise EventError(place="duration", value=duration, legal=legal)

    def _arrive(self, t: int, name: str, fields: Mapping[str, Any]) -> None:
        job, duration, signal = self.check_arrival(name, fields)
        self._clear(t - 1)
        self._mentioned = self._arrivals_in = t
        job.arrived = True
        entry = self._market.entries.get(name)
        if entry is not None:  # else it was cancelled before
            entry.fate = _LoggedFate(t, duration, signal)
            self._market.arrive(entry)
            assert job.plan is not None
            job.duration, job.planned = duration, job.plan.start(t, signal)

    def _signal(self, job: _Job, duration: int | None, fields: Mapping[str, Any]) -> Signal:
        if "signal" in fields:
            signal: Signal = fields["signal"]
            if isinstance(signal, (list, Mapping, bool)):
                raise EventError(f"signal = {shown(signal)}: expected a number, a string or null")
            return signal
        if not job.signals_left_out:
            return None
        if duration is None:
            raise EventError(f"arrive of {job.name!r} has neither signal nor duration: its report left signals out")
        return duration

    def _complete(self, t: int, name: str, fields: Mapping[str, Any]) -> None:
        job = self._known(name)
        if job.duration is not None:
            raise EventError(f"complete of {name!r}, which was given the duration {job.duration}")
        if not self._may_run(job, t):
            raise EventError(f"complete of {name!r}, which is not running in round {t}")
        unsure = self.mechanism.takes_back or self.limits.cluster is not None or self._start(job) is None
        if self._cleared < t and (unsure or self._may_overload(t)):
            # Only clearing tells whether the job runs in round t: try on a copy.
            trial = copy.deepcopy(self)
            trial._clear(t)
            if not trial._runs(name):
                raise EventError(f"complete of {name!r}, which is not running in round {t}")
            self.__dict__ = trial.__dict__
        self._clear(t)
        if not self._runs(name):
            raise EventError(f"complete of {name!r}, which is not running in round {t}")
        self._mentioned = max(t, self._mentioned)
        self._record(self._market.complete(name))

    def _runs(self, name: str) -> bool:
        """Return True if the job has started and is still in the market."""
        entry = self._market.entries.get(name)
        return entry is not None and entry.start is not None

    def _start(self, job: _Job) -> int | None:
        """Return the start of a job in the market, the planned one before it; None while unknown."""
        start = self._market.entries[job.name].start
        return job.planned if start is None else start

    def _occupies(self, job: _Job, t: int) -> bool:
        """Return True if a job in the market would execute in round ``t`` unless it is removed before."""
        start = self._start(job)
        return start is not None and start <= t < start + (job.duration or self.config.max_duration)

    def _may_run(self, job: _Job, t: int) -> bool:
        """Return False if the job certainly does not execute in round ``t``."""
        if not (job.arrived and job.name in self._market.entries):
            return False
        return self._cleared < t if self._start(job) is None else self._occupies(job, t)

    def _may_overload(self, last: int) -> bool:
        """Return True if any round up to ``last`` would be overloaded if no job were removed."""
        present = [(entry.sow.concurrency, self._jobs[name]) for name, entry in self._market.entries.items()]
        return any(
            sum(nodes for nodes, job in present if self._occupies(job, t)) > self.config.capacity
            for t in range(self._cleared + 1, last + 1)
        )

    def _known(self, name: str) -> _Job:
        if name not in self._jobs:
            raise EventError(f"job = {name!r} is unknown: expected a job submitted before")
        return self._jobs[name]

    def _clear(self, last: int) -> None:
        """Clear every round up to and including ``last`` that is not cleared yet."""
        while self._cleared < last:
            for event in [*self._market.advance(), *self._market.completions()]:
                self._record(event)

    def _close(self) -> None:
        for event in () if self._closed else self._market.close():
            self._record(event)
        self._closed = True

    def _record(self, event: Event) -> None:
        """Say what happened to a job."""
        decision: Decision = {"round": event.round, "event": event.kind.value, "job": event.job}
        if event.kind is EventKind.COMPLETE:
            decision |= {"completion": event.completion, "payment": float(event.payment)}
        elif event.payment:  # of a run that was stopped, or a job that was withdrawn
            decision["payment"] = float(event.payment)
        if event.kind is EventKind.START and self.limits.cluster is not None:
            booking = self.mechanism.booking(event.job)
            decision |= {} if booking is None else booking_to_data(booking, self.limits.cluster)
        if event.kind is EventKind.START and (found := self.mechanism.class_of(event.job)) is not None:
            decision["class"] = found.name
        if event.kind.leaves and event.job not in self._market.entries and event.job in self._jobs:
            self._jobs[event.job].plan = None
            if self._forgets:
                del self._jobs[event.job]
                self.mechanism.forget(event.job)
        self._said.append(decision)


def _build_mechanism(config: ReplayConfig) -> Mechanism:
    """Return the mechanism that a replay configuration describes.

    Raises
    ------
    InvalidParameterError
        If the mechanism refuses a parameter.
    """
    return config.build(np.random.default_rng(np.random.SeedSequence(config.seed)))


def _plan(t: int, plan: LaunchPlan) -> Decision:
    starts = [[a, signal, start] for a, signal, start in plan.starts]
    utility = float(plan.estimated_utility)
    return {"round": t, "event": "plan", "job": plan.job, "starts": starts, "estimated_utility": utility}


def _error(number: int, fields: Any, message: str) -> Decision:
    t = fields.get("round") if isinstance(fields, Mapping) else None
    known = isinstance(t, (int, float)) and not isinstance(t, bool) and abs(t) != math.inf
    return {"round": t if known else None, "event": "error", "line": number, "message": message}
