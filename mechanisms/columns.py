"""Whole markets as columns: what many jobs report and do, and what a mechanism makes of them.

A mechanism that can answer a whole market at once defines `Mechanism.play`: it reads a `JobColumns` and fills an
`Outcomes`, a few rounds or all of them at a time. It decides what its protocol decides, by the same compiled rules.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from marketsched.mechanisms.law import DurationLaw, Law, Signal
from marketsched.mechanisms.limits import MarketLimits
from marketsched.mechanisms.sow import StatementOfWork
from marketsched.mechanisms.values import DeadlineValue, FallingValue, ValueCurve

if TYPE_CHECKING:  # a market of identical nodes needs none of a cluster
    from marketsched.mechanisms.resources.bookings import Booking

NEVER = 0  # the arrival of a job that never arrives; the round of what never happens


class DurationLaws(NamedTuple):
    """Laws of durations, those that differ once; see `DurationLaw`."""

    of: NDArray[np.int64]  # (n,), the law of each job
    offsets: NDArray[np.int64]  # (n_laws + 1,), of the points
    durations: NDArray[np.int64]  # (offsets[-1],), rounds, rising within a law
    weights: NDArray[np.float64]  # (offsets[-1],), adding up to 1 within a law

    @classmethod
    def each(
        cls, points: Sequence[tuple[NDArray[np.int64], NDArray[np.float64]]], of: NDArray[np.int64]
    ) -> DurationLaws:
        """Return laws from their points, durations and probabilities; ``of`` says which one each job has."""
        laws = [DurationLaw.of(*each) for each in points]
        offsets = np.cumsum([0, *(law.durations.size for law in laws)])
        durations = np.concatenate([np.zeros(0, np.int64), *(law.durations for law in laws)])
        return cls(of, offsets, durations, np.concatenate([np.zeros(0), *(law.weights for law in laws)]))


class ReportedLaws(NamedTuple):
    """The joint laws that reports state, those that differ once, each counted from the round of the birth.

    Law l has points ``points[l] .. points[l + 1] - 1`` and cases (arrival, signal) ``cases[l] .. cases[l + 1] - 1``.
    Where the points of a case begin, counted from the first point of its law, stands in ``begins``: one entry for each
    case, and one behind the last, from ``cases[l] + l`` on.
    """

    of: NDArray[np.int64]  # (n,), the law of each job
    happens: NDArray[np.int64]  # (n,), which case of its law happens to a job; -1: none, or its report excludes it
    points: NDArray[np.int64]  # (n_laws + 1,)
    cases: NDArray[np.int64]  # (n_laws + 1,)
    waits: NDArray[np.int64]  # (points[-1],), rounds from the birth to the arrival, rising within a law
    durations: NDArray[np.int64]  # (points[-1],), rounds, rising within a case
    weights: NDArray[np.float64]  # (points[-1],), adding up to at most 1 within a law
    case_waits: NDArray[np.int64]  # (cases[-1],)
    begins: NDArray[np.int64]  # (cases[-1] + n_laws,)

    @classmethod
    def each(cls, laws: Sequence[tuple[int, Law]], of: NDArray[np.int64], happens: NDArray[np.int64]) -> ReportedLaws:
        """Return laws, each given with the birth of its report; ``of`` and ``happens`` as the attributes."""
        none = np.zeros(0, np.int64)
        return cls(
            of,
            happens,
            np.cumsum([0, *(law.arrivals.size for _, law in laws)]),
            np.cumsum([0, *(law.group_arrivals.size for _, law in laws)]),
            np.concatenate([none, *(law.arrivals - birth for birth, law in laws)]),
            np.concatenate([none, *(law.durations for _, law in laws)]),
            np.concatenate([np.zeros(0), *(law.probabilities for _, law in laws)]),
            np.concatenate([none, *(law.group_arrivals - birth for birth, law in laws)]),
            np.concatenate([none, *(law.offsets for _, law in laws)]),
        )


@dataclass(frozen=True, eq=False)
class JobColumns:
    """Jobs whose owners report what is true, one row each in order of submission; arrays are read-only.

    A value curve is a row of steps: up to the completion ``lasts[k]`` it is worth ``values[k]`` credits, after
    ``lasts[k - 1]`` and for k in ``begins[j] .. begins[j + 1] - 1``; behind the last one nothing.

    Examples
    --------
    >>> from marketsched import synthetic_pipelines
    >>> columns = synthetic_pipelines(rng=7).jobs.columns(max_delay=98)
    >>> columns.n, bool(columns.revealed.all()), columns.arriving(1, 24).size
    (4588, True, 158)
    """

    births: NDArray[np.int64]  # (n,), rounds of submission; in a market that is played they do not fall
    arrivals: NDArray[np.int64]  # (n,), rounds; NEVER for a job that never arrives
    durations: NDArray[np.int64]  # (n,), rounds that the work really takes
    widths: NDArray[np.int64]  # (n,), nodes
    revealed: NDArray[np.bool_]  # (n,), whether its duration is seen at its arrival; else a label, or nothing
    wall_times: NDArray[np.int64]  # (n,), the longest duration of its law, given arrival and signal
    shortest: NDArray[np.int64]  # (n,), the shortest
    begins: NDArray[np.int64]  # (n + 1,)
    values: NDArray[np.float64]  # (begins[-1],), credits
    lasts: NDArray[np.int64]  # (begins[-1],), completion times
    ends: NDArray[np.int64]  # (n,), the last completion worth more than nothing, of the whole curve; 0: there is none
    highest: NDArray[np.float64]  # (n,), the value of any completion, of the whole curve
    restarts: NDArray[np.bool_]  # (n,), whether a run that is taken back can begin anew
    patience: NDArray[np.int64]  # (n,), rounds that it agrees to wait for a start; -1: it does not say
    checkpoints: NDArray[np.int64]  # (n,), rounds of its work after which it is saved, each time; 0: never
    max_delay: int  # S, rounds: the steps hold for completions before birth + S
    largest: tuple[int, int, float]  # nodes, rounds of a law, value: the largest that is reported
    announced: Callable[[], DurationLaws]  # what `laws` returns
    reported: Callable[[], ReportedLaws]  # what `joint_laws` returns
    owner_names: Callable[[], Sequence[Hashable]]  # of the owner of each job, (n,)
    job_names: Callable[[], Sequence[Hashable]]  # the names under which jobs are submitted, (n,)
    stated: Callable[[int], StatementOfWork]  # the report of a row
    seen: Callable[[int], Signal]  # what is seen when the job of a row arrives
    shaped: bool = False  # whether the jobs have shapes; ``widths`` are then tasks

    def __post_init__(self) -> None:
        """Make the arrays read-only: kernels are compiled once, for such ones, wherever jobs come from."""
        _read_only(vars(self).values())

    @cached_property
    def laws(self) -> DurationLaws:
        """The law of each job's duration, given its arrival and what is seen then; made when it is read."""
        return _read_only(self.announced())

    @cached_property
    def joint_laws(self) -> ReportedLaws:
        """The law of arrival, duration and signal that each job reports at its birth; made when it is read."""
        return _read_only(self.reported())

    def law_of(self, row: int) -> DurationLaw:
        """Return the law of one job's duration, given its arrival and what is seen then."""
        number = int(self.laws.of[row])
        if number not in self._read:
            own = slice(*self.laws.offsets[number : number + 2])
            self._read[number] = DurationLaw(self.laws.durations[own], self.laws.weights[own])
        return self._read[number]

    @cached_property
    def _read(self) -> dict[int, DurationLaw]:
        """The laws that were read, by number."""
        return {}

    @cached_property
    def owners(self) -> tuple[NDArray[np.int64], list[Hashable]]:
        """The number of each job's owner, shape (n,), and the names of owners in order of their first job."""
        numbers: dict[Hashable, int] = {}
        of_jobs = [numbers.setdefault(name, len(numbers)) for name in self.owner_names()]
        return np.array(of_jobs, np.int64), list(numbers)

    @property
    def n(self) -> int:
        """Number of jobs."""
        return self.births.size

    @cached_property
    def by_arrival(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Rows in order of (arrival, submission), and the rounds in which they arrive; the rest is left out."""
        there = np.flatnonzero(self.arrivals)
        order = there[np.lexsort((self.births[there], self.arrivals[there]))]  # stable: equal ones stay as they are
        return order, self.arrivals[order]

    def arriving(self, first: int, last: int) -> NDArray[np.int64]:
        """Return the rows of the jobs that arrive in rounds ``first .. last``, in order of (arrival, submission)."""
        order, rounds = self.by_arrival
        begin, end = np.searchsorted(rounds, (first, last + 1))
        return order[begin:end]

    def useful(self, max_delay: int, horizon: int) -> NDArray[np.int64]:
        """Return the last completion of each job that is worth anything in a market of these rounds, shape (n,)."""
        return np.minimum(np.minimum(self.ends, self.births + max_delay - 1), horizon + 1)

    def within(self, limits: MarketLimits) -> bool:
        """Tell whether a market of these limits would accept every report."""
        nodes, rounds, value = self.largest
        sizes = nodes <= limits.max_concurrency and rounds <= limits.max_duration and value <= limits.max_value
        return sizes and limits.max_delay <= self.max_delay and (limits.cluster is not None) == self.shaped


class Ending(IntEnum):
    """How a job leaves the market.

    Examples
    --------
    See `Outcomes`.
    """

    STAYS = 0  # it does not: the market is over before
    DROPPED = 1
    CANCELLED = 2
    EVICTED = 3
    COMPLETED = 4


class Move(IntEnum):
    """What happens to a job when a round is cleared."""

    STARTED = 0
    TAKEN_BACK = 1  # its run is over, and it waits again
    LEFT = 2  # as its `Ending` says


class Moves:
    """What happened when rounds were cleared, in order: for rules whose order `Outcomes` does not tell.

    Examples
    --------
    >>> moves = Moves()
    >>> moves.note(3, Move.STARTED, 0), moves.note(4, Move.TAKEN_BACK, 0)
    (None, None)
    >>> moves.table().tolist()
    [[3, 0, 0], [4, 1, 0]]
    """

    def __init__(self) -> None:
        self._rows = array("q")

    def note(self, now: int, move: Move, job: int) -> None:
        """Note a move in round ``now``."""
        self._rows.extend((now, move, job))

    def table(self) -> NDArray[np.int64]:
        """Return round, move and job of each, shape (n, 3)."""
        return np.array(self._rows, np.int64).reshape(-1, 3)


@dataclass(slots=True, eq=False)
class OnCluster:
    """What `Outcomes` of a market on a cluster have besides."""

    bookings: dict[int, Booking] = field(default_factory=dict)  # of rows that have started
    worths: dict[int, float] = field(default_factory=dict)  # of completions, compared with the value curve; else 1
    in_use: list[int] = field(default_factory=list)  # nodes, in each round
    prices: list[NDArray[np.float64] | None] = field(default_factory=list)  # in each round, as `Mechanism.pool_prices`


@dataclass(frozen=True, slots=True, eq=False)
class Outcomes:
    """What became of each job, and the prices of each round; a mechanism fills it as it plays.

    A rule that takes runs back, or starts jobs in another order than that of their submission, notes its `moves`, too:
    all of them.

    Examples
    --------
    >>> Outcomes.empty(2, 3, None).endings.tolist()  # Ending.STAYS
    [0, 0]
    """

    starts: NDArray[np.int64]  # (n,), first round of its run; NEVER
    left: NDArray[np.int64]  # (n,), round of the event with which it leaves: its last one, if it completes; NEVER
    endings: NDArray[np.uint8]  # (n,), `Ending`
    payments: NDArray[np.float64]  # (n,), credits
    prices: NDArray[np.float64]  # (T,), of a node in each round, after its arrivals; nan: there is none
    surface: NDArray[np.float32] | None  # (T, ahead): at the beginning of each round those of it and the coming ones
    promised: NDArray[np.float64]  # (T,), expected nodes committed to each round, after its arrivals; nan: not counted
    planned: NDArray[np.int64]  # (n,), the start that the plan has for the case that happens; NEVER: none, or no plans
    estimates: NDArray[np.float64]  # (n,), the estimated utility of the plan, credits
    moves: Moves = field(default_factory=Moves)
    on_cluster: OnCluster | None = None  # of jobs with shapes

    @classmethod
    def empty(cls, n: int, horizon: int, ahead: int | None, *, shaped: bool = False) -> Outcomes:
        """Return the outcomes of a market that has not begun; ``ahead`` None: prices are not kept."""
        surface = None if ahead is None else np.zeros((horizon, ahead), np.float32)
        starts, left, planned = (np.zeros(n, np.int64) for _ in range(3))
        prices, promised = np.full(horizon, np.nan), np.full(horizon, np.nan)
        found = cls(starts, left, np.zeros(n, np.uint8), np.zeros(n), prices, surface, promised, planned, np.zeros(n))
        return replace(found, on_cluster=OnCluster()) if shaped else found

    def leave(self, job: int, now: int, ending: Ending, payment: float = 0.0) -> None:
        """Note a move: the job leaves in round ``now`` without having been completed."""
        self.left[job], self.endings[job], self.payments[job] = now, ending, payment
        self.moves.note(now, Move.LEFT, job)

    def close_bookings(self, rows: NDArray[np.int64], jobs: JobColumns) -> None:
        """Note that these arrivals have their starts for good and run for their durations, or were dropped at once."""
        served = self.starts[rows] != NEVER
        self.endings[rows] = np.where(served, Ending.COMPLETED, Ending.DROPPED)
        self.left[rows] = np.where(served, self.starts[rows] + jobs.durations[rows] - 1, jobs.arrivals[rows])


class Turn(Protocol):
    """The turn of a job to be served, in the round of its arrival: what any report gets there, see `Mechanism.turn`."""

    def look(self, sow: StatementOfWork, signal: Signal, duration: int | None) -> tuple[int, float | None] | None:
        """Return start and payment of a job that comes to this turn with a report; nothing is changed.

        ``duration`` is what the work really takes, None: it never ends. As `Mechanism.booked`, with start `NEVER` and
        payment None for a job that is dropped.
        """
        ...


def follows(market: object, home: type) -> bool:
    """Tell whether a market decides as its class ``home`` does: no class below it defines a rule of its own.

    Attributes that are no rules, and constructors, may differ.
    """
    kinds = type(market).__mro__
    below = [each for kind in kinds[: kinds.index(home)] for each in vars(kind).items()]
    rules = [
        name for name, each in below if not name.startswith("__") and (callable(each) or isinstance(each, _WRAPPED))
    ]
    replaced = [name for name in vars(market) if callable(getattr(home, name, None))]
    return not rules and not replaced


Fields = TypeVar("Fields", bound=Iterable[object])


def _read_only(fields: Fields) -> Fields:
    for each in fields:
        if isinstance(each, np.ndarray):
            each.flags.writeable = False
    return fields


_WRAPPED = (property, staticmethod, classmethod)


def steps_of(curve: ValueCurve, first: int, last: int) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return a value curve for completions ``first .. last`` as steps: values, and the last completion of each.

    Examples
    --------
    >>> from marketsched.mechanisms.values import LinearValue
    >>> steps_of(LinearValue(value=4.0, start=5, slope=1.5, deadline=7), 3, 9)
    (array([4. , 2.5, 1. ]), array([5, 6, 7]))
    """
    if type(curve) is DeadlineValue:
        return np.array([curve.value]), np.array([curve.deadline])
    if type(curve) is FallingValue:
        return curve.steps()
    last = min(last, curve.last)
    table = curve.table(first, max(0, last - first + 1))
    where = np.flatnonzero(np.append(table[1:] != table[:-1], True)) if table.size else np.zeros(0, np.int64)
    return table[where], first + where
