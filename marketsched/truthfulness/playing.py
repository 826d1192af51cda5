"""One market, round by round, at the speed a search needs: the protocol and nothing else.

The order of events is that of :class:`marketsched.agents.market.Market` (a test keeps the two equal):
submissions, arrivals in order of submission, ``advance``, completions in order of submission. There
are no tables and no agents, and a market can be pickled in the middle of a run.

Whatever a mechanism does against the protocol is a `MechanismFault`, which names the round and the
call; nobody waits for a mechanism whose rounds stand still or whose list of events does not end.
(Code that never returns from one call cannot be seen from outside.)
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np

from marketsched.mechanisms.errors import InvalidReportError, MarketschedError
from marketsched.mechanisms.mechanism import Event, EventKind, LaunchPlan, Mechanism
from marketsched.mechanisms.sow import StatementOfWork
from marketsched.truthfulness.lotteries import Fate

Factory = Callable[[np.random.Generator], Mechanism]

REMOVALS = (EventKind.DROP, EventKind.CANCEL, EventKind.EVICT)


class MechanismFault(MarketschedError, RuntimeError):
    """A mechanism raised an unexpected error, or broke the protocol; the message says where."""


class Ended(NamedTuple):
    """A statement has left the market."""

    name: str
    kind: EventKind
    completion: int | None
    payment: float


class Live:
    """A statement in the market (no dataclass: those are slow to unpickle)."""

    __slots__ = ("arrived", "fate", "name", "nodes", "order", "sow", "start")

    def __init__(self, name: str, order: int, sow: StatementOfWork, fate: Fate, nodes: int) -> None:
        self.name = name
        self.order = order  # of submission: the mechanism's LIFO key
        self.sow = sow
        self.fate = fate
        self.nodes = nodes  # what the work really needs
        self.arrived = False
        self.start: int | None = None


_by_order = attrgetter("order")


class Playing:
    """A market between two calls of the protocol.

    Parameters
    ----------
    factory : function of Generator
        Builds the mechanism.
    rng : Generator
        Its stream, untouched; it is watched, to see whether the mechanism draws.
    capacity : int
        C, nodes.

    Raises
    ------
    MechanismFault
        Here and from every method, if the mechanism is at fault.
    """

    def __init__(self, factory: Factory, rng: np.random.Generator, capacity: int) -> None:
        self._rng, self._untouched = rng, _stream_state(rng)
        try:
            self.mechanism = factory(rng)
        except Exception as error:
            raise MechanismFault(f"the mechanism cannot be built: {type(error).__name__}: {error}") from error
        self.capacity = capacity
        self.now = 1
        self.live: dict[str, Live] = {}  # in order of submission
        self.again: list[tuple[str, StatementOfWork, Fate]] = []  # to be submitted at the end of this round
        self._submitted = 0
        self._held = 0  # nodes of running jobs
        self._arriving: dict[int, list[Live]] = defaultdict(list)
        self._ending: dict[int, list[Live]] = defaultdict(list)
        self._check_round()

    @property
    def drew(self) -> bool:
        """True if the mechanism has drawn from its stream, or split it; when it was built, too, or since `redraw`."""
        return bool(_stream_state(self._rng) != self._untouched)

    def redraw(self, rng: np.random.Generator) -> None:
        """Have the mechanism's stream go on as ``rng`` begins; streams it has split off before stay what they are."""
        self._rng.bit_generator.state = rng.bit_generator.state
        self._untouched = _stream_state(self._rng)

    def submit(self, name: str, sow: StatementOfWork, fate: Fate, nodes: int, *, own: bool = False) -> LaunchPlan:
        """Submit a statement; a job that is ready before arrives with it.

        Parameters
        ----------
        name : str
            Of the statement.
        sow : StatementOfWork
            The report.
        fate : Fate
            What really happens.
        nodes : int
            Without so many the work is never done.
        own : bool
            True: pass the error on with which the mechanism refuses a report.
        """
        try:
            plan = self.mechanism.submit(name, sow)
        except Exception as error:
            if own and isinstance(error, InvalidReportError):
                raise
            raise self._fault(f"submit of {name!r}", error) from error
        live = Live(name, self._submitted, sow, fate, nodes)
        self._submitted += 1
        self.live[name] = live
        self.ready(name, fate)
        return plan

    def ready(self, name: str, fate: Fate) -> None:
        """Say what will happen to a statement that has not arrived."""
        live = self.live.get(name)
        if live is None:
            return
        live.fate = fate
        if fate.arrival is not None:
            self._arriving[max(fate.arrival, self.now)].append(live)

    def foretell(self, fates: Mapping[str, Fate]) -> None:
        """Draw the future of all statements in the market afresh; what has happened stays."""
        self._arriving.clear()
        self._ending.clear()
        for name, live in self.live.items():
            live.fate = fates.get(name, live.fate)
            if not live.arrived and live.fate.arrival is not None:
                self._arriving[max(live.fate.arrival, self.now)].append(live)
            elif live.start is not None:
                self._schedule_end(live)

    def clear(self) -> list[Ended]:
        """Play the rest of the round, from the arrivals on; return what has left the market."""
        now = self.now
        for live in sorted(self._arriving.pop(now, ()), key=_by_order):
            if self.live.get(live.name) is live:
                live.arrived = True
                with self._named(f"arrive of {live.name!r}"):
                    self.mechanism.arrive(live.name, live.fate.signal)
        ended = []
        with self._named("advance"):
            for event in self.mechanism.advance():
                gone = self._hear(event)
                if gone is not None:
                    ended.append(gone)
        if self._held > self.capacity:
            raise MechanismFault(f"round {now}: {self._held} nodes run: expected at most the capacity {self.capacity}")
        self.now = now + 1
        self._check_round()
        for live in sorted(self._ending.pop(now, ()), key=_by_order):
            if self.live.get(live.name) is live:
                ended.append(self._complete(live))
        return ended

    def _complete(self, live: Live) -> Ended:
        with self._named(f"complete of {live.name!r}"):
            event = self.mechanism.complete(live.name)
            payment = float(event.payment)
            if event.kind is not EventKind.COMPLETE or event.job != live.name or not math.isfinite(payment):
                raise MechanismFault(f"{event!r}: expected a completion with a finite payment, of {live.name!r}")
        self._leave(live)
        return Ended(live.name, EventKind.COMPLETE, self.now, payment)

    def _hear(self, event: Event) -> Ended | None:
        """Take note of one event of ``advance``."""
        live = self.live.get(event.job)  # type: ignore[call-overload]
        if live is None:
            raise MechanismFault(f"{event.kind} of {event.job!r}: expected a job in the market")
        if event.kind is EventKind.START:
            if live.start is not None or not live.arrived:
                why = "started before" if live.start is not None else "not arrived"
                raise MechanismFault(f"start of {event.job!r}, which has {why}: expected one start, after the arrival")
            live.start = self.now
            self._held += live.sow.concurrency
            self._schedule_end(live)
            return None
        if event.kind is EventKind.COMPLETE:
            raise MechanismFault(f"complete of {event.job!r} by the mechanism itself: expected it from complete()")
        payment = float(event.payment)
        if event.kind not in REMOVALS or not math.isfinite(payment):
            legal = ", ".join(REMOVALS)
            raise MechanismFault(f"{event!r}: expected one of start, {legal}, with a finite payment")
        self._leave(live)
        return Ended(live.name, event.kind, None, payment)

    def _schedule_end(self, live: Live) -> None:
        assert live.start is not None
        if live.sow.concurrency >= live.nodes:  # else it runs for ever
            self._ending[live.start + live.fate.duration - 1].append(live)

    def _leave(self, live: Live) -> None:
        if live.start is not None:
            self._held -= live.sow.concurrency
        del self.live[live.name]

    def _check_round(self) -> None:
        with self._named("round"):
            seen = self.mechanism.round
        if seen != self.now:
            raise MechanismFault(f"the mechanism is in round {seen!r}: expected round {self.now}")

    @contextmanager
    def _named(self, call: str) -> Iterator[None]:
        """Turn whatever goes wrong inside into a fault that names the call."""
        try:
            yield
        except Exception as error:
            raise self._fault(call, error) from error

    def _fault(self, call: str, error: Exception) -> MechanismFault:
        what = str(error) if isinstance(error, MarketschedError) else f"{type(error).__name__}: {error}"
        return MechanismFault(f"{call} in round {self.now}: {what}")


def _stream_state(rng: np.random.Generator) -> tuple[Any, int]:
    """Return what changes when a stream is drawn from or split."""
    seeds: Any = rng.bit_generator.seed_seq
    return rng.bit_generator.state, seeds.n_children_spawned
