"""The log of a running market: events row by row, in little memory."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray


class RowKind(IntEnum):
    """The kinds of rows of the events table; lower case there."""

    SUBMIT = 0  # a statement of work was submitted
    ARRIVE = 1  # the job became ready
    DROP = 2  # arrived, and the plan says not to run
    CANCEL = 3  # removed before its first round
    EVICT = 4  # removed after at least one round
    START = 5  # executes its first round
    COMPLETE = 6  # done, and charged
    CLOSE = 7  # removed because the market closed after its last round
    REQUEUE = 8  # its run was taken back, and the job stays


# Rows of the log, in no more bytes than they need. Rounds count from 1, so 0 stands for "none".
EVENT = np.dtype(
    {
        "names": ["round", "kind", "job", "again", "completion", "payment", "value"],
        "formats": ["u4", "u1", "u4", "?", "u4", "f8", "f8"],
    }
)
STATEMENT = np.dtype({"names": ["job", "declared", "planned", "estimate"], "formats": ["u4", "i8", "u4", "f8"]})
ROWS_TOGETHER = 4096  # rows of the log that become an array at once
ROUNDS_TOGETHER = 512  # rows of the price surface that it begins with
ROUND = np.dtype([("load", "i8"), ("promised", "f8"), ("price", "f8")])


class _Growing:
    """An array that grows at its end, in place while no view of it is held: there is never a second copy."""

    def __init__(self, array: NDArray[Any], used: int = 0) -> None:
        self._array = array
        self._used = used
        self._shown = used > 0

    def __len__(self) -> int:
        return self._used

    def extend(self, rows: NDArray[Any]) -> None:
        wanted = self._used + len(rows)
        if wanted > len(self._array):
            size = max(wanted, len(self._array) + len(self._array) // 2)
            if self._shown or not self._array.flags.owndata:  # after unpickling the memory is numpy's, and cannot grow
                longer = np.empty((size, *self._array.shape[1:]), self._array.dtype)
                longer[: self._used] = self._array[: self._used]
                self._array, self._shown = longer, False
            else:
                self._array.resize((size, *self._array.shape[1:]), refcheck=False)
        self._array[self._used : wanted] = rows
        self._used = wanted

    def first(self, count: int) -> NDArray[Any]:
        """Return the first ``count`` rows; they stay as they are."""
        self._shown = True
        return self._array[:count]


class _Rows:
    """Rows of one kind, kept as an array but for the last few: as tuples they take many times the memory."""

    def __init__(self, dtype: np.dtype[np.void], rows: NDArray[np.void] | None = None) -> None:
        self._dtype = dtype
        self._rows = _Growing(np.empty(ROWS_TOGETHER, dtype)) if rows is None else _Growing(rows, len(rows))
        self._last: list[tuple[Any, ...]] = []

    def append(self, row: tuple[Any, ...]) -> None:
        self._last.append(row)
        if len(self._last) == ROWS_TOGETHER:
            self._put_away()

    def _put_away(self) -> None:
        if not self._last:
            return
        self._rows.extend(np.array(self._last, dtype=self._dtype))
        self._last.clear()

    def __len__(self) -> int:
        return len(self._rows) + len(self._last)

    def first(self, count: int) -> NDArray[np.void]:
        """Return the first ``count`` rows."""
        self._put_away()
        return self._rows.first(count)


@dataclass
class MarketLog:
    """What happened, in order. Rows after the last finished round are left out of the tables."""

    events: _Rows = field(default_factory=lambda: _Rows(EVENT))
    statements: _Rows = field(default_factory=lambda: _Rows(STATEMENT))
    rounds: list[tuple[int, float, float]] | NDArray[np.void] = field(default_factory=list)  # as `ROUND`
    surfaces: _Growing | None = None  # of float32, one row per round; None: no prices
    finished: tuple[int, int, int] = (0, 0, 0)  # rows of rounds, events, statements
    counts: list[int] = field(default_factory=lambda: [0] * len(RowKind))  # of events so far, by kind
    value: float = 0.0  # credits so far
    payment: float = 0.0

    def submit(self, now: int, job: int, again: bool, declared: int, planned: int | None, estimate: float) -> None:
        """Note a submission: nodes declared, planned start of the case that will happen, (3)."""
        self.statements.append((job, declared, planned or 0, estimate))
        self.event(now, RowKind.SUBMIT, job, again)

    def event(
        self,
        now: int,
        kind: RowKind,
        job: int,
        again: bool,
        completion: int | None = None,
        payment: float = 0.0,
        value: float = 0.0,
    ) -> None:
        """Note an event of the job at place ``job`` of the workload."""
        self.events.append((now, kind, job, again, completion or 0, payment, value))
        self.counts[kind] += 1
        self.value += value
        self.payment += payment

    def close_round(self, load: int, promised: float, price: float, surface: NDArray[np.float64] | None) -> None:
        """Record the round; from here on it counts as finished."""
        assert isinstance(self.rounds, list)
        self.rounds.append((load, promised, price))
        if surface is not None:
            if self.surfaces is None:
                self.surfaces = _Growing(np.empty((ROUNDS_TOGETHER, surface.size), np.float32))
            with np.errstate(over="ignore"):  # a price too high for a float32 is shown as not on sale
                self.surfaces.extend(surface.astype(np.float32)[None])
        self.finished = (len(self.rounds), len(self.events), len(self.statements))

    @classmethod
    def of(
        cls,
        events: NDArray[np.void],
        statements: NDArray[np.void],
        rounds: NDArray[np.void],
        surface: NDArray[np.float32] | None,
    ) -> MarketLog:
        """Return the log of rounds that were played at once; arguments as of `EVENT`, `STATEMENT` and `ROUND`."""
        surfaces = None if surface is None else _Growing(surface, len(surface))
        log = cls(_Rows(EVENT, events), _Rows(STATEMENT, statements), rounds, surfaces)
        log.counts = np.bincount(events["kind"], minlength=len(RowKind)).tolist()
        log.value, log.payment = float(events["value"].sum()), float(events["payment"].sum())
        log.finished = (rounds.size, events.size, statements.size)
        return log
