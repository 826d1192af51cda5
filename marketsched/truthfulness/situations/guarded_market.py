"""A market as a search plays it: breaches of the protocol are errors with a name, and copies are cheap.

A `MechanismFault` names the round and the call; there is no waiting for a mechanism whose rounds stand still or
whose list of events does not end, nor, within `calls_end_within`, for a call that does not.
"""

from __future__ import annotations

import gc
import io
import pickle
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from marketsched.agents.call_limit import CallDidNotEnd, timed
from marketsched.agents.job import Job
from marketsched.agents.loop import Entry, Fate, Happens, MarketLoop
from marketsched.mechanisms.errors import InvalidReportError, MarketschedError, MechanismFault
from marketsched.mechanisms.law import Law
from marketsched.mechanisms.mechanism import Event, LaunchPlan, Mechanism
from marketsched.mechanisms.posted.oracle_in_use import KeptOracle
from marketsched.mechanisms.sow import StatementOfWork

PLAIN = frozenset({bool, dict, float, int, list, str, tuple, type(None)})  # kinds of most parts of a market
SHARED = frozenset({Law, Fate, Job})  # kinds
Factory = Callable[[np.random.Generator], Mechanism]


class GuardedMarket(MarketLoop):
    """A market whose mechanism is not trusted: every method raises MechanismFault if it is at fault.

    Its stream ``rng`` is untouched at first, and watched, to see whether the mechanism draws. ``again`` has what is to
    be submitted at the end of this round's submissions, dropped jobs that come back: (name, StatementOfWork, Fate).
    """

    def __init__(self, factory: Factory, rng: np.random.Generator, capacity: int) -> None:
        self._rng, self._untouched = rng, _stream_state(rng)
        try:
            with timed("the construction", 1):
                mechanism = factory(rng)
            super().__init__(mechanism)
        except Exception as error:
            raise MechanismFault(f"the mechanism cannot be built: {type(error).__name__}: {error}") from error
        self.capacity = capacity
        self.again: list[tuple[str, StatementOfWork, Fate]] = []
        self._check_round()

    @property
    def drew(self) -> bool:
        """True if the mechanism has drawn from its stream, or split it; when it was built, too, or since `redraw`."""
        return bool(_stream_state(self._rng) != self._untouched)

    def redraw(self, rng: np.random.Generator) -> None:
        """Continue the mechanism's stream from the state of ``rng``; streams split off before do not change."""
        self._rng.bit_generator.state = rng.bit_generator.state
        self._untouched = _stream_state(self._rng)

    def watch(self) -> None:
        """Let `drew` report draws from now on; the stream does not change."""
        self._untouched = _stream_state(self._rng)

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
        """Submit a statement; ``own``: pass the error on with which the mechanism refuses a report."""
        try:
            return super().submit(name, sow, fate, nodes, owner=owner, truth=truth)
        except Exception as error:
            if own and isinstance(error, InvalidReportError):
                raise
            raise self._fault(f"submit of {name!r}", error) from error

    def withdraw(self, name: Any, fee: float = 0.0) -> Event:
        """Take a job back that has not arrived."""
        try:
            return super().withdraw(name, fee)
        except Exception as error:
            raise self._fault(f"withdraw of {name!r}", error) from error

    def restate(self, name: Any, sow: StatementOfWork, *, own: bool = False) -> None:
        """Put another report in the place of one whose job has not arrived; ``own`` as of `submit`."""
        try:
            super().restate(name, sow)
        except Exception as error:
            if own and isinstance(error, InvalidReportError):
                raise
            raise self._fault(f"restate of {name!r}", error) from error

    def arrive(self, entry: Entry) -> None:
        """Reveal that one job became ready."""
        try:
            super().arrive(entry)
        except Exception as error:
            raise self._fault(f"arrive of {entry.name!r}", error) from error

    def advance(self) -> list[Event]:
        """Clear the round; return the mechanism's events."""
        now = self.now
        try:
            events = super().advance()
        except Exception as error:
            raise self._fault("advance", error) from error
        if self.load > self.capacity:
            raise MechanismFault(f"round {now}: {self.load} nodes run: expected at most the capacity {self.capacity}")
        self._check_round()
        return events

    def complete(self, name: Any) -> Event:
        """Report that a job ran its last round; the event has the time at which it was done."""
        try:
            return super().complete(name)
        except Exception as error:
            raise self._fault(f"complete of {name!r}", error) from error

    def _check_round(self) -> None:
        try:
            seen = self.mechanism.round
        except Exception as error:
            raise self._fault("round", error) from error
        if seen != self.now:
            raise MechanismFault(f"the mechanism is in round {seen!r}: expected round {self.now}")

    def _fault(self, call: str, error: Exception) -> MechanismFault:
        """Return the fault that names the call."""
        if isinstance(error, CallDidNotEnd):
            return MechanismFault(str(error))
        what = str(error) if isinstance(error, MarketschedError) else f"{type(error).__name__}: {error}"
        return MechanismFault(f"{call} in round {self.now}: {what}")


def _stream_state(rng: np.random.Generator) -> tuple[Any, int]:
    """Return what changes when a stream is drawn from or split."""
    seeds: Any = rng.bit_generator.seed_seq
    return rng.bit_generator.state, seeds.n_children_spawned


class _Sharing(pickle.Pickler):
    """Leaves out what is never changed, and lists it."""

    def __init__(self, buffer: io.BytesIO) -> None:
        super().__init__(buffer, pickle.HIGHEST_PROTOCOL)
        self.shared: list[object] = []
        self.size_shared = 0  # bytes

        self._number: dict[int, int] = {}  # in the list, by identity

    def persistent_id(self, part: object) -> int | None:
        if type(part) in PLAIN:
            return None
        if id(part) not in self._number:
            if type(part) is KeptOracle and part.share():
                self.size_shared += part.size
            elif not _never_changes(part):
                return None
            self._number[id(part)] = len(self.shared)
            self.shared.append(part)
        return self._number[id(part)]


def _never_changes(part: object) -> bool:
    """Tell whether copies can share a part: a statement, its law, a fate or job, a read-only array.

    A class of a mechanism says so itself by ``never_changes = True``.
    """
    kind = type(part)
    if kind is np.ndarray:
        array: Any = part
        base: Any = array if array.base is None else array.base
        return not array.flags.writeable and type(base) is np.ndarray and base.base is None and not base.flags.writeable
    return kind in SHARED or isinstance(part, StatementOfWork) or vars(kind).get("never_changes") is True


class _Shared(pickle.Unpickler):
    """Puts the listed parts back."""

    def __init__(self, buffer: io.BytesIO, shared: list[object]) -> None:
        self.persistent_load = shared.__getitem__  # type: ignore[method-assign]  # found when the other is set up
        super().__init__(buffer)


class Snapshot:
    """A market as bytes, to be copied many times; the copies share data that never change.

    Whatever stands against pickling the mechanism is raised.
    """

    def __init__(self, market: GuardedMarket) -> None:
        buffer = io.BytesIO()
        pickler = _Sharing(buffer)
        pickler.dump(market)
        self._shared, self._bytes = pickler.shared, buffer.getvalue()
        self.size = len(self._bytes) + pickler.size_shared  # bytes

    def copy(self) -> GuardedMarket:
        """Return a market that can be played on."""
        market: GuardedMarket = _Shared(io.BytesIO(self._bytes), self._shared).load()
        return market


def snapshot(market: GuardedMarket) -> Snapshot | None:
    """Return the market to be copied, or None if the mechanism does not pickle."""
    try:
        return Snapshot(market)
    except Exception:  # pickling runs the mechanism's own code: anything may come
        return None


@contextmanager
def no_collection() -> Iterator[None]:
    """Keep the garbage collector from walking through a large market while a copy is made."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
