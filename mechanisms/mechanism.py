"""The protocol of mechanisms: the base class `Mechanism`, and its answers: plans, menus and events.

A mechanism is a state machine over public events. In each round: ``submit`` for every statement of
work, ``withdraw`` for every job that its owner takes back before it arrives, then ``arrive`` for every job that
became ready, then ``advance``, which clears the round and moves to the next; then ``complete`` for every job whose
last round was the one just cleared. It never sees a true type, a future duration or a random seed of the environment.
"""

from __future__ import annotations

import copy
import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import lru_cache
from types import FunctionType
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from marketsched.mechanisms.errors import EventError
from marketsched.mechanisms.law import Signal
from marketsched.mechanisms.menu import Menu, WelfareCertificate
from marketsched.mechanisms.sow import StatementOfWork

if TYPE_CHECKING:
    from marketsched.mechanisms.columns import JobColumns, Outcomes, Turn
    from marketsched.mechanisms.credits.purses import Purses
    from marketsched.mechanisms.resources.bookings import Booking
    from marketsched.mechanisms.resources.cluster import Cluster

JobId = Hashable


class EventKind(StrEnum):
    """The kinds of events of a job.

    Examples
    --------
    >>> [kind.value for kind in EventKind]
    ['drop', 'cancel', 'evict', 'start', 'requeue', 'complete', 'withdraw']
    >>> EventKind("drop") is EventKind.DROP, EventKind.EVICT.leaves, EventKind.REQUEUE.leaves
    (True, True, False)
    """

    DROP = "drop"  # arrived, and the plan says not to run
    CANCEL = "cancel"  # removed before its first round
    EVICT = "evict"  # removed after at least one round
    START = "start"  # executes the first round of a run
    REQUEUE = "requeue"  # its run is taken back: what it did not save is lost, the job stays and may start again
    COMPLETE = "complete"  # done, and charged
    WITHDRAW = "withdraw"  # taken back by its owner before it arrived: it never comes

    @property
    def leaves(self) -> bool:
        """Whether the job is no longer in the market afterwards."""
        return self not in _STAYING


_STAYING = (EventKind.START, EventKind.REQUEUE, EventKind.WITHDRAW)


@dataclass(frozen=True, slots=True)
class Event:
    """One public event. ``completion`` (time s + d) only when complete; ``payment`` is what it charges, credits.

    ``worth`` is the value of that completion as a share of the true value curve: below 1 for a shape that is worth
    less, and 0 if a booking on a cluster ended before the work was done. The loop that plays a market sets it.

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
    worth: float = field(default=1.0, repr=False)


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

    def __eq__(self, other: object) -> bool:
        """Compare the contents: a subclass may work its starts out when they are looked at."""
        if not isinstance(other, LaunchPlan):
            return NotImplemented
        return (self.job, self.starts, self.estimated_utility) == (other.job, other.starts, other.estimated_utility)

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
    """The result of a report if it is the next event: its plan, and its runs, where prices are known before arrival."""

    plan: LaunchPlan
    runs: tuple[OfferedRun, ...] = ()


class JobClass(NamedTuple):
    """The class of nodes of a job, where a rule has several, and what it has paid for them in credits that renew."""

    name: Literal["regular", "free"]
    paid: int  # millionths of a credit


Truthful = Literal["ex post", "in expectation", "up to regret", "none"]


class Standing(NamedTuple):
    """The printed properties of a mechanism, beside those about truth (`marketsched.mechanisms.promises`).

    A status of "proved": what it promises is proven in docs/mathematics.md; "tested": its rule is tested, and
    truth-telling is proven for special cases at most; "baseline": it is there to be compared with.
    """

    status: Literal["proved", "tested", "baseline", "not stated"] = "not stated"
    promises: str = ""  # what else it promises to owners, one line
    needs: str = ""  # the information that the market needs, one line
    hidden: str = ""  # where `truthful_hidden` is "none": what holds all the same, or why nothing does
    lie: str = ""  # where truth is not promised: a lie that is known to pay, as a test shows
    but: str = ""  # what a proof of truth leaves out


PROMISES = ("truthful", "truthful_hidden", "later_jobs_change_nothing", "free_of_charge", "standing")
ANNOUNCING = frozenset(  # members that say something of a rule and decide nothing
    "slot_prices pool_prices committed menu quote keep_menus menu_at_arrival posts_menus_at_arrival booked owed forget "
    "booking nodes_in_use certificate statistics tables wants_laws wants_classes wants_owners restate class_of".split()
)


class Mechanism(ABC):
    """The protocol of a mechanism: four calls are its own, everything else has a default.

    A class of its own defines ``submit``, ``arrive``, ``advance`` and ``complete``, and has ``round`` and ``horizon``,
    as attributes or as properties. `ArrivalMarket` and `RoundAuction` define all of these but the rule. An object that
    only has these members, and is no `Mechanism`, is played through `as_mechanism`.

    A class or function that is registered (``registry.register``) gets ``rng`` if its signature names it, and from a
    scenario ``round_seconds``, the length of a round (None: rounds have none), and ``laws`` if `wants_laws` says so
    (``classes`` of the jobs of a log if ``wants_classes`` does, and names of all ``owners`` if ``wants_owners`` does).

    Attributes
    ----------
    round, horizon : int
        The current round, in which submissions and arrivals are accepted, ``horizon + 1`` after the last; and T.
    max_concurrency, max_duration, max_value : int, int, float or None
        The largest report accepted: nodes, rounds, credits. None: no such limit is announced.
    cluster : Cluster or None
        The cluster, where nodes differ; None: identical nodes.
    purses : Purses or None
        The purses of owners, where they have credits that renew; None: they have none.
    takes_back : bool
        Whether a run may be taken back for another job's sake, by requeue or eviction.
    truthful : {"ex post", "in expectation", "up to regret", "none"}
        The promise for a job whose duration is revealed at its arrival, with the owner's other jobs and the time of
        submission fixed. "ex post": no other report, and no withdrawal, is better, for all reports of other owners and
        all outcomes. "in expectation": neither is better on average over the outcomes of the job by its law, for all
        reports of other owners and all outcomes of their jobs. "up to regret": neither is better on average by more
        than a computable bound, if other owners report truthfully. "none": no promise.
    truthful_hidden : the same
        For jobs whose durations are hidden.
    hidden_alone : bool
        True: ``truthful_hidden`` is promised only where the durations of all jobs are hidden.
    reads_reports : {"submission", "arrival"}
        When a report can first change anything. "arrival": until its job arrives, the state of the mechanism depends on
        the report in nothing but the place where the report itself is kept, and `restate` replaces it there.
    later_jobs_change_nothing : bool
        True: what becomes of a job does not depend on jobs submitted after it (Lemma 3.1).
    free_of_charge : bool
        True: no job ever pays anything.
    has_purses : bool
        True: owners have credits that renew by their shares, in ``purses``; no other credits are taken.
    does_not_claim : collection of str, or mapping of str to str
        Checks of `check_mechanism` that do not apply by design; a mapping says why.
    standing : Standing
        What lists of mechanisms print.

    Notes
    -----
    A promise belongs to the class that states it. A subclass that overrides a rule (any method but those that only
    announce, `ANNOUNCING`) promises nothing of ``truthful``, ``truthful_hidden``, ``later_jobs_change_nothing``,
    ``free_of_charge`` and ``standing`` until it states them again.

    Examples
    --------
    One job at a time, for nothing; a job that finds it busy is turned away:

    >>> class OneAtATime(Mechanism):
    ...     def __init__(self, horizon):
    ...         self.round, self.horizon, self.arrived, self.runs = 1, horizon, [], None
    ...     def submit(self, job, sow):
    ...         return LaunchPlan(job, (), 0.0)
    ...     def arrive(self, job, signal=None):
    ...         self.arrived.append(job)
    ...     def advance(self):
    ...         events = []
    ...         for job in self.arrived:
    ...             kind = EventKind.START if self.runs is None else EventKind.DROP
    ...             self.runs = job if self.runs is None else self.runs
    ...             events.append(Event(self.round, kind, job))
    ...         self.arrived, self.round = [], self.round + 1
    ...         return events
    ...     def complete(self, job):
    ...         self.runs = None
    ...         return Event(self.round - 1, EventKind.COMPLETE, job, self.round)
    >>> market = OneAtATime(horizon=9)
    >>> market.arrive("A")
    >>> [str(event.kind) for event in market.advance()], market.slot_prices(1, 3), market.truthful
    (['start'], None, 'none')
    """

    round: int
    horizon: int
    max_concurrency: int | None = None
    max_duration: int | None = None
    max_value: float | None = None
    takes_back: bool = False
    cluster: Cluster | None = None
    purses: Purses | None = None

    truthful: ClassVar[Truthful] = "none"
    truthful_hidden: ClassVar[Truthful] = "none"
    hidden_alone: ClassVar[bool] = False
    reads_reports: ClassVar[Literal["submission", "arrival"]] = "submission"
    later_jobs_change_nothing: ClassVar[bool] = False
    free_of_charge: ClassVar[bool] = False
    has_purses: ClassVar[bool] = False
    does_not_claim: ClassVar[Collection[str] | Mapping[str, str]] = ()
    standing: ClassVar[Standing] = Standing()

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        for promise in PROMISES:
            if _overrides_what_states(cls, promise):
                setattr(cls, promise, vars(Mechanism)[promise])

    # -- the rounds: to be defined -----------------------------------------------------------------------

    @abstractmethod
    def submit(self, job: JobId, sow: StatementOfWork) -> LaunchPlan:
        """Take a report born in the current round; return the job's launch plan.

        A further parameter ``owner``, by name and optional, is whose job it is, where that is known (`takes_owner`).
        """

    @abstractmethod
    def arrive(self, job: JobId, signal: Signal = None) -> None:
        """Observe that ``job`` became ready in the current round, with ``signal``."""

    @abstractmethod
    def advance(self) -> list[Event]:
        """Clear the current round and move to the next; return what happened, in order."""

    @abstractmethod
    def complete(self, job: JobId) -> Event:
        """Observe that ``job`` ran its last round in the round just cleared; charge it."""

    def withdraw(self, job: JobId, fee: float = 0.0) -> Event:
        """Observe that the owner takes back a job that has not arrived, and will not; return the event, with its pay.

        By default nothing else changes: the job is one that never arrives, and keeps its place until the mechanism lets
        go of it as of any such job; its owner pays the ``fee``, credits >= 0, that the market asks. A rule may charge
        otherwise.
        """
        return Event(self.round, EventKind.WITHDRAW, job, payment=fee)

    def restate(self, job: JobId, sow: StatementOfWork) -> None:
        """Put another report of the same birth in the place of one whose job has not arrived; no owner can call this.

        A mechanism that states "arrival" by ``reads_reports`` is then as if this report had been submitted. A search
        for lies goes on from the arrival by it, once it has seen that this holds. EventError, by default always, if a
        report cannot be replaced; InvalidReportError if `submit` would have refused it.
        """
        raise EventError(f"restate {job!r}: {type(self).__name__} reads reports at submission")

    def set_share(self, place: str, share: float) -> None:
        """Give an account or an owner another share of the machine from the current round on, or its first one.

        EventError if shares are none or fixed, as by default; InvalidParameterError, with no change, if it is illegal.
        """
        legal = "a mechanism whose shares change: credits, fair-turns"
        raise EventError(f"share of {place!r}: those of {type(self).__name__} do not change", legal=legal)

    def close(self) -> list[Event]:
        """After the last round, remove every job that is left; return what happened. By default none is removed."""
        return []

    def play(self, jobs: JobColumns, outcomes: Outcomes, until: int) -> bool:
        """Play the rounds from the current one to ``until`` of a market in which every owner reports what is true.

        The same as the calls of the protocol, round by round: every row of ``outcomes`` is equal to theirs. It goes on
        where it stopped; once it has begun, no other call than those that only look is made. False, the default: this
        market is to be played by the protocol, and nothing was changed.
        """
        return False

    def turn(self, jobs: JobColumns, outcomes: Outcomes, before: NDArray[np.int64]) -> Turn | None:
        """Return the turn of a job that arrives in the current round, of a market that `play` plays; by default None.

        For a rule by which the outcome of a job is final at its turn, and no report changes anything before its
        arrival: a search for lies then asks the turn what a report would get, in place of playing the market on. `play`
        has played up to the round before, and goes on from there; ``before`` are rows of this round's jobs that are
        served earlier.
        """
        return None

    # -- what is announced -------------------------------------------------------------------------------

    def slot_prices(self, first: int, count: int) -> NDArray[np.float64] | None:
        """Return prices of rounds ``first, first + 1, ...``, credits a node, shape (count,); None: never any."""
        return None

    def pool_prices(self, first: int, count: int) -> NDArray[np.float64] | None:
        """Return prices on a cluster, credits per part, shape (n_pools, n_resources, count); by default None: never."""
        return None

    def committed(self, first: int, count: int) -> NDArray[np.float64] | None:
        """Return the expected nodes promised to rounds ``first, ...``, shape (count,); None: never counted."""
        return None

    def menu(self, concurrency: int) -> Menu | None:
        """Return the menu of a job of ``concurrency`` nodes submitted now; None, the default: no menu at submission."""
        return None

    def quote(self, job: JobId, sow: StatementOfWork) -> Offer:
        """Return what `submit` would give now, on a copy: nothing is changed or drawn; by default without prices."""
        return Offer(copy.deepcopy(self).submit(job, sow))

    def keep_menus(self, jobs: Iterable[JobId] | None = None) -> None:  # noqa: B027 - nothing to keep
        """Keep from now on what these jobs face at arrival, for `menu_at_arrival`; None: what every job faces.

        To be called before the round in which they arrive. A later call takes the place of an earlier one, and what
        other jobs faced may be dropped. By default nothing is kept.
        """

    def menu_at_arrival(self, job: JobId) -> object:
        """Return the menu of ``job`` when it was served, for comparison with that of another report; see `keep_menus`.

        EventError if nothing was kept for the job; by default always.
        """
        raise EventError(f"menu of {job!r}: {type(self).__name__} keeps no menus at arrival")

    @property
    def posts_menus_at_arrival(self) -> bool:
        """Whether prices are made at arrival and can be looked at: whether the class defines `menu_at_arrival`."""
        return type(self).menu_at_arrival is not Mechanism.menu_at_arrival

    # -- what is known of a run --------------------------------------------------------------------------

    def booked(self, job: JobId, duration: int | None) -> tuple[int, float | None] | None:
        """Return start and payment of an arrived job with this duration, once no other job can change them.

        ``duration`` is in rounds; None: its work never ends. A payment of None: the job will not complete, and pays
        nothing. None in place of both: not known yet, or never, which is the default. A search for lies then stops the
        play. It uses this only of a class that defines it itself, and first checks it by playing some jobs to the end.
        """
        return None

    def owed(self, job: JobId, rounds: int) -> float | None:
        """Return what a running job would pay if it completed after so many rounds, credits; nothing is changed.

        None, the default: not known, or nothing. A live market asks it for runs that are evicted.
        """
        return None

    def forget(self, job: JobId) -> None:  # noqa: B027 - nothing to forget
        """Forget the name of a job that has left the market, if the caller never uses it again.

        No later result changes. By default the name is kept; a market that runs for years should keep none.
        """

    def class_of(self, job: JobId) -> JobClass | None:
        """Return the class of nodes that a job has, or waits for, and what it has paid; by default None: no classes."""
        return None

    def booking(self, job: JobId) -> Booking | None:
        """Return the booking of a job on a cluster with its nodes and devices; by default None: there is none."""
        return None

    def nodes_in_use(self) -> int | None:
        """Return on how many nodes something ran in the round just cleared; None, the default: widths add up to it."""
        return None

    def certificate(self) -> WelfareCertificate | None:
        """Return a bound on the best welfare for the submissions so far; None, the default: there is none."""
        return None

    def theorems(self, *, revealed: bool) -> str | None:
        """Say what is proven of a market with this mechanism, or why nothing is; None, the default: as `standing` says.

        ``revealed``: the jobs' durations become known at their arrivals.
        """
        return None

    def statistics(self) -> Mapping[str, Any]:
        """Return figures about the run, by name, for its summary; by default none."""
        return {}

    def tables(self) -> Mapping[str, Mapping[str, Sequence[Any]]]:
        """Return tables about the run, columns by name, for its result; by default none."""
        return {}

    @staticmethod
    def wants_laws(**parameters: Any) -> bool:
        """Tell whether these parameters of the constructor need ``laws`` as well, those of all jobs of the market."""
        return False


def _overrides_what_states(cls: type, promise: str) -> bool:
    """Tell whether a class, or one that it is mixed with, overrides a rule of the class that states a promise."""
    line = cls.__mro__
    place = next(i for i, kind in enumerate(line) if promise in vars(kind))
    stated = {name for kind in line[place:] for name in vars(kind)}
    own = ((name, member) for kind in line[:place] for name, member in vars(kind).items() if name in stated)
    return any(
        isinstance(member, (FunctionType, property, staticmethod, classmethod))
        and name not in ANNOUNCING
        and not name.startswith("__")
        for name, member in own
    )


def takes_owner(mechanism: Mechanism) -> bool:
    """Tell whether ``mechanism.submit`` has a parameter ``owner``; asked once for each market."""
    try:
        return _names_owner(getattr(mechanism.submit, "__func__", mechanism.submit))
    except (TypeError, ValueError):  # code without a signature
        return False


@lru_cache(maxsize=256)
def _names_owner(function: Callable[..., Any]) -> bool:
    return "owner" in inspect.signature(function).parameters
