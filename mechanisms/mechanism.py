"""The protocol every mechanism follows, and what it says: plans, menus and events.

A mechanism is a state machine over public events. In each round: ``submit`` for every statement of
work, then ``arrive`` for every job that became ready, then ``advance``, which clears the round and
moves to the next; then ``complete`` for every job whose last round was the one just cleared. It
never sees a true type, a future duration or a random seed of the environment.
"""

from __future__ import annotations

import inspect
from collections.abc import Hashable
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from marketsched.mechanisms.errors import InvalidParameterError
from marketsched.mechanisms.sow import Signal, StatementOfWork

JobId = Hashable


class EventKind(StrEnum):
    """What can happen to a job.

    Examples
    --------
    >>> [kind.value for kind in EventKind]
    ['drop', 'cancel', 'evict', 'start', 'requeue', 'complete']
    >>> EventKind("drop") is EventKind.DROP, EventKind.EVICT.leaves, EventKind.REQUEUE.leaves
    (True, True, False)
    """

    DROP = "drop"  # arrived, and the plan says not to run
    CANCEL = "cancel"  # removed before its first round
    EVICT = "evict"  # removed after at least one round
    START = "start"  # executes the first round of a run
    REQUEUE = "requeue"  # its run is taken back: what it did is lost, the job stays and may start again
    COMPLETE = "complete"  # done, and charged

    @property
    def leaves(self) -> bool:
        """Whether the job is no longer in the market afterwards."""
        return self is not EventKind.START and self is not EventKind.REQUEUE


@dataclass(frozen=True, slots=True)
class Event:
    """One public event. ``completion`` (time s + d) and ``payment`` (credits) only when complete.

    Examples
    --------
    >>> event = Event(7, EventKind.COMPLETE, "A", completion=8, payment=2.5)
    >>> event.kind is EventKind.COMPLETE, event.payment
    (True, 2.5)
    """

    round: int
    kind: EventKind
    job: JobId
    completion: int | None = None
    payment: float = 0.0


@dataclass(frozen=True, slots=True)
class LaunchPlan:
    """Where a job will start, for each case of arrival and signal: the map L of Section 2.

    ``starts`` holds (arrival, signal, start or None) for every case of the report, sorted; None
    (written bot in the paper) means that the job is not run. ``estimated_utility`` is (3), credits.

    Examples
    --------
    >>> plan = LaunchPlan("A", ((2, None, 3), (5, None, None)), 4.0)
    >>> plan.start(2, None), plan.start(5, None), plan.start(9, None)
    (3, None, None)
    """

    job: JobId
    starts: tuple[tuple[int, Signal, int | None], ...]
    estimated_utility: float

    def start(self, arrival: int, signal: Signal) -> int | None:
        """Return the start for a realised case; None also for cases the report excludes."""
        for a, o, s in self.starts:
            if a == arrival and o == signal:
                return s
        return None


class OfferedRun(NamedTuple):
    """One case of a report as its launch plan answers it: what the run costs, and how likely it is lost."""

    arrival: int  # round
    signal: Signal
    duration: int  # rounds
    probability: float  # of this case, by the report
    start: int  # round
    price: float  # credits, charged if the run completes
    failure: float  # announced probability that it does not complete


@dataclass(frozen=True, slots=True)
class Offer:
    """What a report gets if it is the next event: its plan, and its runs, where prices are known before arrival."""

    plan: LaunchPlan
    runs: tuple[OfferedRun, ...] = ()


@dataclass(frozen=True, slots=True)
class Menu:
    """What is announced to a job of given concurrency that is submitted now.

    Row ``i`` is the start ``first_start + i``, column ``k`` the duration ``k + 1``.

    Examples
    --------
    >>> menu = Menu(1, 4, np.array([[1.0, 2.0], [0.5, np.inf]]), np.zeros((2, 2)))
    >>> menu.price(start=4, duration=2), menu.price([5, 5, 6], [1, 2, 1])
    (2.0, array([0.5, inf, inf]))
    """

    concurrency: int
    first_start: int
    prices: NDArray[np.float64]  # (n_starts, max_duration), credits, +inf where not on sale
    failures: NDArray[np.float64]  # (n_starts, max_duration), announced failure probabilities

    def _look_up(self, table: NDArray[np.float64], start: ArrayLike, duration: ArrayLike, beyond: float) -> ArrayLike:
        rows = np.asarray(start, dtype=np.float64) - self.first_start
        columns = np.asarray(duration, dtype=np.float64) - 1
        if not all(np.isfinite(x).all() and (x == np.floor(x)).all() for x in (rows, columns)):
            raise InvalidParameterError(f"start = {start!r}, duration = {duration!r}: expected whole rounds")
        inside = (rows >= 0) & (rows < table.shape[0]) & (columns >= 0) & (columns < table.shape[1])
        places = np.where(inside, rows, 0).astype(np.int64), np.where(inside, columns, 0).astype(np.int64)
        found = np.where(inside, table[places], beyond)
        return float(found) if found.ndim == 0 else found

    def price(self, start: ArrayLike, duration: ArrayLike) -> ArrayLike:
        """Return the price in credits; +inf outside the table.

        Raises
        ------
        InvalidParameterError
            If a round is not a whole number.
        """
        return self._look_up(self.prices, start, duration, np.inf)

    def failure(self, start: ArrayLike, duration: ArrayLike) -> ArrayLike:
        """Return the announced failure probability; 1 outside the table. Errors as of `price`."""
        return self._look_up(self.failures, start, duration, 1.0)


@runtime_checkable
class Mechanism(Protocol):
    """The protocol. A new mechanism follows it and registers itself (``registry.register``).

    ``submit`` may have a parameter ``owner``, by name and optional: it then learns whose job it is, where that is
    known (see `takes_owner`). A class or function that is registered gets, if its signature names them,
    ``rng``, and from a scenario ``round_seconds``, the length of a round (None: rounds have none); and ``laws``
    if its ``wants_laws(**parameters)`` says so.

    What else it has is used where it is there: ``max_concurrency``, ``max_duration``, ``max_value``
    (announced limits), ``slot_prices(first, count)`` and ``committed(first, count)`` (arrays of shape
    (count,): credits per node, expected nodes), ``certificate()``, ``statistics()`` (a dict for the
    run summary), ``close()``, which removes every job left after the last round, and ``quote(job, sow)``, the `Offer`
    that a submission would get now, with the errors that it would get: it changes nothing and draws nothing (a
    live market asks a copy of a mechanism that has none). ``booked(job, duration)`` is the start of a job that has
    arrived, and what it pays if it runs so long (None: it will not complete, and pays nothing; a duration of None: its
    work never ends), once nothing that others do can change that; None before. A search for lies then need not play on
    (it asks the class that defines it alone, and plays some jobs to the end first, to see that it comes true).
    What it offers can be looked at, too: ``menu(concurrency)``, the `Menu` of a job that submits now; or, where prices
    are made at arrival, ``keep_menus(jobs)`` before the market begins and ``menu_at_arrival(job)`` once the job was
    served.

    Examples
    --------
    >>> from marketsched.mechanisms import FirstCome
    >>> market = FirstCome(2, 9, 0.5, max_concurrency=1, max_duration=4, max_value=9.0, max_delay=9)
    >>> isinstance(market, Mechanism)
    True
    """

    @property
    def round(self) -> int:
        """The current round; submissions and arrivals of this round are accepted."""
        ...

    @property
    def horizon(self) -> int:
        """T, the last round."""
        ...

    def submit(self, job: JobId, sow: StatementOfWork) -> LaunchPlan:
        """Take a report born in the current round; return the job's launch plan."""
        ...

    def arrive(self, job: JobId, signal: Signal = None) -> None:
        """Observe that ``job`` became ready in the current round, with ``signal``."""
        ...

    def advance(self) -> list[Event]:
        """Clear the current round and move to the next; return what happened, in order."""
        ...

    def complete(self, job: JobId) -> Event:
        """Observe that ``job`` ran its last round in the round just cleared; charge it."""
        ...


def takes_owner(mechanism: Mechanism) -> bool:
    """Tell whether ``mechanism.submit`` has a parameter ``owner``; whoever plays a market asks once."""
    try:
        return "owner" in inspect.signature(mechanism.submit).parameters
    except (TypeError, ValueError):  # code without a signature
        return False
