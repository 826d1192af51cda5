r"""The one loop that plays a market: a mechanism's protocol goes in, events come out.

A round is that of Algorithm 1 of [BLLMSW22]_, seen from outside the mechanism:

1. owners whose turn it is submit; each has its launch plan before the next one reports (`submit`);
2. the jobs that became ready arrive, in order of submission, with their signals (`arrivals`);
3. the mechanism clears the round: it drops, cancels, evicts and starts jobs (`advance`);
4. the jobs that ran their last round are complete, in order of submission, and charged (`completions`).

`MarketLoop` holds what is in the market between two calls and makes each of the four steps; `play` goes round by round
for owners that follow `Owners`. The Mesa model, searches, learning, checks and replay all use it. It keeps no tables,
and a market can be pickled in the middle of a run.

Of a mechanism's results, decisions and payments count; rounds and completion times are the loop's own. An event
that is not legal raises `MechanismFault`.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Any, Protocol

from marketsched.agents.call_limit import timed
from marketsched.mechanisms.errors import EventError, InvalidParameterError, MechanismFault
from marketsched.mechanisms.forwarding import as_mechanism
from marketsched.mechanisms.law import Signal
from marketsched.mechanisms.mechanism import Event, EventKind, LaunchPlan, Mechanism, takes_owner
from marketsched.mechanisms.resources.bookings import Booking, chances_of_cases, real_run
from marketsched.mechanisms.resources.shapes import cases_of
from marketsched.mechanisms.sow import StatementOfWork


class Happens(Protocol):
    """What really happens to a job; a `Job` says it, too."""

    @property
    def arrival(self) -> int | None:
        """The round in which it is ready; None: never."""
        ...

    @property
    def duration(self) -> int | None:
        """Rounds; None: the caller says when the loop is complete."""
        ...

    @property
    def signal(self) -> Signal:
        """The signal at arrival."""
        ...


@dataclass(frozen=True, slots=True)
class Fate:
    """What really happens to a job: arrival (a round; None: never), duration in rounds, signal."""

    arrival: int | None
    duration: int
    signal: Signal = None


NEVER = Fate(None, 1)


class Entry:
    """A statement in the market (no dataclass: those are slow to unpickle).

    ``order`` is that of submission, the mechanism's LIFO key; ``nodes`` what the work really needs: with
    fewer it runs on for ever.
    """

    __slots__ = (
        "arrived", "fate", "length", "name", "nodes", "order", "saved", "sow", "start", "truth", "withdrawn", "worth",
    )  # fmt: skip

    def __init__(
        self, name: Any, order: int, sow: StatementOfWork, fate: Happens, nodes: int, truth: StatementOfWork
    ) -> None:
        self.name = name
        self.order = order
        self.sow = sow
        self.fate = fate
        self.nodes = nodes
        self.truth = truth  # its checkpoint says what the work keeps, its shapes what it makes of a booking
        self.saved = 0  # rounds of its work that runs which were taken back have saved
        self.length: int | None = None  # of a run on a cluster, rounds
        self.worth = 1.0  # of its completion, compared with the value curve
        self.arrived = False
        self.withdrawn = False
        self.start: int | None = None

    @property
    def remaining(self) -> int | None:
        """Rounds that a run which begins now takes; None: not known here, or it has too few nodes to end."""
        if self.fate.duration is None or self.sow.concurrency < self.nodes:
            return None
        return self.fate.duration - self.saved

    def taken_back(self, now: int) -> None:
        """Note that the run is over before round ``now``: the work keeps what its true checkpoints have saved."""
        assert self.start is not None
        if self.truth.checkpoint is not None:
            self.saved += (now - self.start) // self.truth.checkpoint * self.truth.checkpoint
        self.start = None


_by_order = attrgetter("order")
REMOVALS = (EventKind.DROP, EventKind.CANCEL, EventKind.EVICT)


class MarketLoop:
    """A market between two calls of the protocol.

    ``now`` is the open round, ``entries`` has the statements in the market by name, in order of submission, ``load``
    the nodes busy in the round cleared last, and ``placed_now``, on a cluster, the bookings of jobs started in it.
    `advance`, `complete` and `close` raise MechanismFault if the mechanism returns an event that is not legal.
    """

    def __init__(self, mechanism: Mechanism) -> None:
        self.mechanism = as_mechanism(mechanism)
        self.now = 1
        self.load = 0
        self.entries: dict[Any, Entry] = {}
        self.placed_now: dict[Any, Booking] = {}
        self._submitted = 0
        self._takes_owner = takes_owner(self.mechanism)
        self._held = 0  # nodes of running jobs
        self._arriving: defaultdict[int, list[Entry]] = defaultdict(list)
        self._ending: defaultdict[int, list[Entry]] = defaultdict(list)

    def submit(
        self,
        name: Any,
        sow: StatementOfWork,
        fate: Happens,
        nodes: int,
        *,
        owner: Hashable = None,
        own: bool = False,
        truth: StatementOfWork | None = None,
    ) -> LaunchPlan:
        """Submit a statement; a job that is ready before arrives with it.

        ``fate`` is what really happens, ``nodes`` what the work cannot complete without. ``own`` marks the owner that
        is looked at: who guards the market passes the refusal of its report on. ``truth`` (None: that of ``fate``, if
        it is a `Job`, or else the report) says by its checkpoint what a run that is taken back keeps, and on a cluster
        by its shapes what the job makes of its booking.
        """
        keywords = {"owner": owner} if self._takes_owner else {}
        with timed("submit", self.now):
            plan = self.mechanism.submit(name, sow, **keywords)
        truth = getattr(fate, "truth", sow) if truth is None else truth
        entry = Entry(name, self._submitted, sow, fate, nodes, truth)
        self._submitted += 1
        self.entries[name] = entry
        if fate.arrival is not None:
            self._arriving[max(fate.arrival, self.now)].append(entry)
        return plan

    def restate(self, name: Any, sow: StatementOfWork) -> None:
        """Put another report in the place of one whose job has not arrived, see `Mechanism.restate`."""
        self.mechanism.restate(name, sow)
        self.entries[name].sow = sow

    def withdraw(self, name: Any, fee: float = 0.0) -> Event:
        """Take a job back that has not arrived; it never will. Return the event, with what its owner pays.

        ``fee`` is what the market asks for that, credits. Raises EventError if there is no such job that has not
        arrived; MechanismFault if the mechanism returns another event, or a payment that is no finite number.
        """
        entry = self.entries.get(name)
        if entry is None or entry.arrived or entry.withdrawn:
            raise EventError(f"withdraw of {name!r}", legal="a job in the market that has not arrived")
        with timed("withdraw", self.now):
            event = self.mechanism.withdraw(name, fee)
        if event.kind is not EventKind.WITHDRAW or event.job != name or not math.isfinite(float(event.payment)):
            raise MechanismFault(f"{_said(event)}: expected a withdrawal with a finite payment, of {name!r}")
        entry.withdrawn, entry.fate = True, NEVER
        return self._by_own_clock(event)

    def ready(self, name: Any, fate: Happens) -> None:
        """Say what will happen to a statement that has not arrived, if it is in the market."""
        entry = self.entries.get(name)
        if entry is None or entry.withdrawn:
            return
        entry.fate = fate
        if fate.arrival is not None:
            self._arriving[max(fate.arrival, self.now)].append(entry)

    def foretell(self, fates: Mapping[Any, Happens]) -> None:
        """Replace the future of all statements in the market; the past stays."""
        self._arriving.clear()
        self._ending.clear()
        for name, entry in self.entries.items():
            entry.fate = NEVER if entry.withdrawn else fates.get(name, entry.fate)
            if not entry.arrived and entry.fate.arrival is not None:
                self._arriving[max(entry.fate.arrival, self.now)].append(entry)
            elif entry.start is not None:
                self._schedule_end(entry)

    def arrivals(self) -> list[Entry]:
        """Reveal the jobs that became ready, in order of submission; those already removed are passed over."""
        due = self._arriving.pop(self.now, None)
        if due is None:
            return []
        due = [entry for entry in due if self.entries.get(entry.name) is entry and not entry.withdrawn]
        due.sort(key=_by_order)
        for entry in due:
            self.arrive(entry)
        return due

    def arrive(self, entry: Entry) -> None:
        """Reveal that one job became ready."""
        with timed("arrive", self.now):
            self.mechanism.arrive(entry.name, entry.fate.signal)
        entry.arrived = True

    def advance(self) -> list[Event]:
        """Clear the round; return the mechanism's events in its order."""
        events = []
        self.placed_now.clear()
        with timed("advance", self.now):
            for event in self.mechanism.advance():
                self._hear(event)
                events.append(self._by_own_clock(event))
        in_use = self.mechanism.nodes_in_use()
        self.load = self._held if in_use is None else in_use
        self.now += 1
        return events

    def completions(self) -> list[Event]:
        """Report the jobs whose last round was the one just cleared, in order of submission."""
        due = self._ending.pop(self.now - 1, None)
        if due is None:
            return []
        due.sort(key=_by_order)
        return [self.complete(entry.name) for entry in due if self._runs_out(entry)]

    def complete(self, name: Any) -> Event:
        """Report that a job ran its last round in the one just cleared."""
        with timed("complete", self.now):
            event = self.mechanism.complete(name)
        if event.kind is not EventKind.COMPLETE or event.job != name or not math.isfinite(float(event.payment)):
            raise MechanismFault(f"{_said(event)}: expected a completion with a finite payment, of {name!r}")
        worth = self.entries[name].worth
        self._leave(self.entries[name])
        event = self._by_own_clock(event)
        return event if worth == 1.0 else replace(event, worth=worth)

    def clear(self) -> list[Event]:
        """Play the rest of the round, from the arrivals on; return what happened."""
        self.arrivals()
        events = self.advance()
        events += self.completions()
        return events

    def booked(self, name: Any) -> tuple[int | None, float] | None:
        """Return when a job completes (None: never) and what it pays, if its mechanism says that this is sure."""
        entry = self.entries.get(name)
        if entry is None or not entry.arrived:
            return None
        duration = self._run_on_cluster(entry) if entry.sow.shapes else entry.remaining
        found = self.mechanism.booked(name, duration)
        if found is None or found[1] is None or duration is None:
            return None if found is None else (None, 0.0)
        return found[0] + duration, found[1]

    def close(self) -> list[Event]:
        """After the last round: the mechanism removes what it still has, if it can; return what happened."""
        with timed("close", self.now):
            events = list(self.mechanism.close())
        for event in events:
            self._hear(event)
        return events

    def _hear(self, event: Event) -> None:
        """Take note of one event of the mechanism, if it is legal."""
        entry = self.entries.get(event.job)
        if entry is None:
            raise MechanismFault(f"{event.kind} of {event.job!r}: expected a job in the market")
        if event.kind is EventKind.START:
            if entry.start is not None or not entry.arrived:
                why = "started before" if entry.start is not None else "not arrived"
                legal = "one start at a time, after the arrival"
                raise MechanismFault(f"start of {event.job!r}, which has {why}: expected {legal}")
        elif event.kind is EventKind.REQUEUE:
            if entry.start is None:
                raise MechanismFault(f"requeue of {event.job!r}: expected a running job")
        elif event.kind is EventKind.COMPLETE:
            raise MechanismFault(f"complete of {event.job!r} by the mechanism itself: expected it from complete()")
        elif event.kind not in REMOVALS or not math.isfinite(float(event.payment)):
            legal = ", ".join(REMOVALS)
            raise MechanismFault(f"{_said(event)}: expected one of start, requeue, {legal}, with a finite payment")
        if event.kind is EventKind.REQUEUE:
            entry.taken_back(self.now)
            self._held -= entry.sow.concurrency
        elif event.kind is not EventKind.START:
            self._leave(entry)
        else:
            entry.start = self.now
            self._held += entry.sow.concurrency
            self._schedule_end(entry)

    def _runs_out(self, entry: Entry) -> bool:
        """Tell whether a job ran its last round in the one just cleared: a run that was taken back did not."""
        if self.entries.get(entry.name) is not entry or entry.start is None:
            return False
        duration = entry.remaining if entry.length is None else entry.length
        return duration is not None and entry.start + duration == self.now

    def _by_own_clock(self, event: Event) -> Event:
        """Return the event with the loop's round and completion time, and a plain number for the payment."""
        completes = event.kind is EventKind.COMPLETE
        now, completion = (self.now - 1, self.now) if completes else (self.now, event.completion)
        if event.round == now and event.completion == completion and type(event.payment) is float:  # as a rule
            return event
        return replace(event, round=now, completion=completion, payment=float(event.payment))

    def _schedule_end(self, entry: Entry) -> None:
        assert entry.start is not None
        length = self._run_on_cluster(entry) if entry.sow.shapes else entry.remaining
        if length is not None:
            self._ending[entry.start + length - 1].append(entry)

    def _run_on_cluster(self, entry: Entry) -> int | None:
        """Note what a job makes of its booking, and return for how long it occupies it; None: it has none."""
        booking, duration = self.mechanism.booking(entry.name), entry.fate.duration
        if booking is None or duration is None:
            return None
        self.placed_now[entry.name] = booking
        truth, cluster = entry.truth, self.mechanism.cluster
        shapes, seen = truth.shapes, entry.fate
        reference = cases_of(shapes)
        if duration not in reference or cluster is None:
            raise InvalidParameterError(
                place=f"duration of {entry.name!r}", value=duration, legal=f"one of shapes[0], {reference}"
            )
        chances = None if seen.arrival is None else chances_of_cases(truth, seen.arrival, seen.signal)
        case = reference.index(duration)
        entry.length, entry.worth = real_run(shapes, case, truth.value, booking, cluster, chances)
        return entry.length

    def _leave(self, entry: Entry) -> None:
        if entry.start is not None:
            self._held -= entry.sow.concurrency
        del self.entries[entry.name]


def _said(event: object) -> str:
    """Return what a mechanism answered, in words."""
    if not isinstance(event, Event):
        return f"answer {event!r}"
    return f"round {event.round}: {event.kind} of {event.job!r} with payment {event.payment!r}"
