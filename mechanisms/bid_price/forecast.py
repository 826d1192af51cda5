"""Forecasts as weighted tasks: repeated past arrivals, or draws of known laws.

Nothing that was reported by a job that has not arrived in an earlier round is ever used: prices made
from these scenarios do not depend on the report of any job that will face them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from marketsched.mechanisms.bid_price.dual import EXACT_PARTS
from marketsched.mechanisms.bid_price.past import PastLog
from marketsched.mechanisms.bid_price.tasks import Arrivals, Columns, TaskStore, joined, one_by_one
from marketsched.mechanisms.errors import InvalidParameterError, placed
from marketsched.mechanisms.limits import MarketLimits
from marketsched.mechanisms.statement_law import StatementLaw

Rows = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]  # rows, rounds of arrival, weights

LEAST_HISTORY = 4  # rounds of arrivals before a price is made of them
USUAL_LAGS = (48, 72, 96, 120)
USUAL_ROUND = 300.0  # seconds of a round whose length is not known


class Expected(NamedTuple):
    """Tasks of all scenarios together, each of weight one over their number; in groups (`TaskStore`)."""

    rows: NDArray[np.int64]  # (m,), of ``tasks``: the first of each group
    sizes: NDArray[np.int64]  # (m,), tasks of each group
    rounds: NDArray[np.int64]  # (m,), of arrival
    weights: NDArray[np.float64]  # (m,)
    tasks: Columns

    def one_by_one(self) -> Expected:
        """Return the same tasks, each a group of its own."""
        rounds, weights = np.repeat(self.rounds, self.sizes), np.repeat(self.weights, self.sizes)
        return Expected(one_by_one(self.rows, self.sizes), np.ones_like(rounds), rounds, weights, self.tasks)


def check_sources(forecast: str, laws: object, history: object, limits: MarketLimits) -> None:
    """Raise InvalidParameterError unless laws come with forecast "laws" alone, and a `PastLog` with "history" alone."""
    if (laws is None) != (forecast == "history"):
        raise InvalidParameterError(
            f"forecast = {forecast!r} and {'no ' if laws is None else ''}laws: expected laws, one for each job, "
            "with forecast 'laws', and none with 'history'"
        )
    if history is None:
        return
    if forecast != "history":
        raise InvalidParameterError(place="history", value=history, legal="none with forecast 'laws'")
    if not isinstance(history, PastLog):
        raise InvalidParameterError(place="history", value=history, legal="a PastLog; a scenario makes one of a folder")
    with placed("history"):
        history.check(limits)


def with_waiting(
    expected: Expected, past: TaskStore, rows: NDArray[np.int64], rounds: NDArray[np.int64], weight: float = 1.0
) -> Expected:
    """Return ``expected`` and, with a weight each, what still waits: rows of ``past`` that arrived in ``rounds``."""
    tasks = expected.tasks
    if tasks.durations.base is not past.columns.durations.base:  # scenarios from laws have a store of their own
        tasks = joined(tasks, past.columns, rows)
        rows = np.arange(expected.tasks.durations.size, tasks.durations.size)
    return Expected(
        np.concatenate([expected.rows, rows]),
        np.concatenate([expected.sizes, np.ones_like(rows)]),
        np.concatenate([expected.rounds, rounds]),
        np.concatenate([expected.weights, np.full(rows.size, weight)]),
        tasks,
    )


class Forecast(Protocol):
    """Scenarios of rounds to come."""

    steps: int  # subgradient steps that are enough for these scenarios
    samples_the_past: bool  # or else what is publicly known
    adds_exactly: bool  # the weights of the past's tasks add up without rounding, in any order
    reach: int  # rounds back from the current one whose arrivals may be looked at

    def expected(self, now: int, last: int, past: TaskStore) -> Expected | None:
        """Return what may arrive in rounds ``now .. last``; None: nothing is known yet."""
        ...


def lags_in_rounds(
    lags: Sequence[int] | None, hours: Sequence[float] | None, round_seconds: float | None
) -> Sequence[int]:
    """Return the lags of `FromHistory`, at least one round each: as given in rounds or in hours, or the usual ones.

    Raises
    ------
    InvalidParameterError
        If they are given in both.
    """
    if hours is None:
        return USUAL_LAGS if lags is None else lags
    if lags is not None:
        raise InvalidParameterError(f"lags = {lags!r} and lag_hours = {hours!r}: expected one of them")
    return [max(1, round(each * 3600.0 / (round_seconds or USUAL_ROUND))) for each in hours]


class FromHistory:
    """Scenario k repeats what arrived ``lags[k]`` rounds ago; the beginning of a market makes lags shorter.

    Parameters
    ----------
    lags : sequence of int
        Rounds.
    earlier : int
        Number of rounds before round 1 whose arrivals ``past`` holds (a log of yesterday). A lag that reaches into
        them uses the round of the same time of day.
    """

    steps, samples_the_past = 20, True

    def __init__(self, lags: Sequence[int], earlier: int = 0) -> None:
        self._lags, self._earlier = tuple(lags), earlier
        self.reach = max([*self._lags, self._earlier])
        self.adds_exactly = EXACT_PARTS % len(self._lags) == 0

    def expected(self, now: int, last: int, past: TaskStore) -> Expected | None:
        """Return the arrivals of the past as if they came again; see `Arrivals.recurring`."""
        found = self._by_lags(past.recurring_groups, now, last)
        if found is None:
            return None
        rows, sizes, rounds = found
        return Expected(rows, sizes, rounds, np.full(rows.size, 1.0 / len(self._lags)), past.columns)

    def recurring(self, now: int, last: int, past: Arrivals) -> Rows | None:
        """Return rows of the past, in which round each comes again, and their weights; None: too little is known."""
        found = self._by_lags(past.recurring, now, last)
        if found is None:
            return None
        rows, rounds = found
        return rows, rounds, np.full(rows.size, 1.0 / len(self._lags))

    def _by_lags(
        self, again: Callable[..., tuple[NDArray[np.int64], ...]], now: int, last: int
    ) -> list[NDArray[np.int64]] | None:
        """Return the columns of ``again`` at every lag, one after the other; None: too little is known."""
        known, n = now - 1 + self._earlier, len(self._lags)
        if known < LEAST_HISTORY:
            return None
        found = [
            again(now, last, min(lag, max(1, known * (k + 1) // n)), 1 - self._earlier, self._earlier)
            for k, lag in enumerate(self._lags)
        ]
        return [np.concatenate(column) for column in zip(*found, strict=True)]


class FromLaws:
    """Every scenario is one draw of all laws, made once, before the market begins.

    Parameters
    ----------
    laws : iterable of StatementLaw
        Of all jobs; public.
    n_scenarios : int
        K, >= 1.
    last_completion : function of StatementOfWork
        The last completion time worth anything.
    max_duration : int
        Longer draws are left out.
    rng : Generator
        For each law in turn: one number for the statement, one for its arrival and duration.
    """

    steps, samples_the_past, adds_exactly, reach = 10, False, False, 0

    def __init__(
        self,
        laws: Iterable[StatementLaw],
        n_scenarios: int,
        last_completion: Callable[..., int],
        max_duration: int,
        rng: np.random.Generator,
    ) -> None:
        laws = list(laws)
        draws: list[tuple[int, int, int, NDArray[np.float64]]] = []
        for _ in range(n_scenarios):
            for law in laws:
                sow = law.sample(rng)
                point = None if sow is None else _drawn_point(sow.law.probabilities, rng)
                if sow is None or point is None:
                    continue
                arrival, duration = int(sow.law.arrivals[point]), int(sow.law.durations[point])
                n_starts = last_completion(sow) - duration - arrival + 1
                if n_starts > 0 and duration <= max_duration:
                    draws.append((arrival, duration, sow.concurrency, sow.value.table(arrival + duration, n_starts)))
        draws.sort(key=lambda draw: draw[0])
        self._store, self._weight = TaskStore(), 1.0 / n_scenarios
        for draw in draws:
            self._store.add(*draw)

    def expected(self, now: int, last: int, past: TaskStore) -> Expected | None:
        """Return the draws that arrive in rounds ``now .. last``; the past does not matter."""
        rows, rounds = self._store.between(now, last)
        return Expected(rows, np.ones_like(rows), rounds, np.full(rows.size, self._weight), self._store.columns)


def _drawn_point(probabilities: NDArray[np.float64], rng: np.random.Generator) -> int | None:
    """Draw a point of a law; None: the job never arrives."""
    point = int(np.searchsorted(np.cumsum(probabilities), rng.random(), side="right"))
    return point if point < probabilities.size else None
