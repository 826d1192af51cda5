"""Columns of tasks that arrived or may arrive, each with every option in which it could run.

As `marketsched.mechanisms.bid_price.tasks`, whose rows have one duration and one width, with rows of (task, option):
pool, duration, what is taken of each resource. Values stand once for each task, by completion.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from marketsched.mechanisms.bid_price.tasks import Arrivals, doubled
from marketsched.mechanisms.resources.known import Known


class OptionColumns(NamedTuple):
    """Tasks and their options as the kernels read them."""

    begins: NDArray[np.int64]  # (n_tasks + 1,): options of task j are begins[j] .. begins[j + 1] - 1
    offsets: NDArray[np.int64]  # (n_tasks + 1,): values of task j are offsets[j] .. offsets[j + 1] - 1
    shortest: NDArray[np.int64]  # (n_tasks,), rounds: its first value is that of a completion so long after arrival
    pools: NDArray[np.int64]  # (n_options,)
    durations: NDArray[np.int64]  # (n_options,), rounds
    totals: NDArray[np.float64]  # (n_options, n_resources), parts that all its tasks take
    worths: NDArray[np.float64]  # (n_options,)
    values: NDArray[np.float64]  # (offsets[-1],), credits


class OptionStore(Arrivals):
    """Tasks in order of arrival, on a cluster of ``n_resources``."""

    def __init__(self, n_resources: int) -> None:
        super().__init__()
        self._begins, self._offsets, self._shortest = (
            np.zeros(65, np.int64),
            np.zeros(65, np.int64),
            np.zeros(64, np.int64),
        )
        self._pools, self._durations, self._worths = np.zeros(64, np.int64), np.zeros(64, np.int64), np.zeros(64)
        self._totals, self._values = np.zeros((64, n_resources)), np.zeros(1024)

    def add(self, arrival: int, known: Known) -> None:
        """Add a task that is not earlier than those before it; one without options takes a row as well."""
        n, durations = self.n, known.usual
        begin, offset = int(self._begins[n]), int(self._offsets[n])
        shortest = int(durations.min()) if durations.size else 1
        values = np.maximum.accumulate(known.values[: shortest - 1 : -1])[
            ::-1
        ]  # the most that this or a later one brings
        end, last = begin + durations.size, offset + values.size
        if n + 1 > self._arrivals.size:
            self._arrivals, self._shortest = doubled(self._arrivals), doubled(self._shortest)
            self._begins, self._offsets = doubled(self._begins), doubled(self._offsets)
        while end > self._pools.size:
            self._pools, self._durations = doubled(self._pools), doubled(self._durations)
            self._worths, self._totals = doubled(self._worths), doubled(self._totals)
        while last > self._values.size:
            self._values = doubled(self._values)
        self._arrivals[n], self._shortest[n] = arrival, shortest
        self._pools[begin:end], self._durations[begin:end] = known.options.pool, durations
        self._totals[begin:end], self._worths[begin:end] = known.options.total, known.options.worth
        self._values[offset:last] = values
        self._begins[n + 1], self._offsets[n + 1] = end, last
        self.n = n + 1

    def forget(self, earliest: int) -> None:
        """Let go of tasks that arrived before round ``earliest``, once they are most of all; others get new rows."""
        gone = int(np.searchsorted(self.arrivals, earliest))
        if 2 * gone <= max(self.n, 64):
            return
        options, values, n = int(self._begins[gone]), int(self._offsets[gone]), self.n
        end, last = int(self._begins[n]), int(self._offsets[n])
        for name in ("_arrivals", "_shortest"):
            setattr(self, name, _without(getattr(self, name), gone, n, 64))
        for name in ("_pools", "_durations", "_worths", "_totals"):
            setattr(self, name, _without(getattr(self, name), options, end, 64))
        self._values = _without(self._values, values, last, 1024)
        self._begins = _without(self._begins, gone, n + 1, 65) - options
        self._offsets = _without(self._offsets, gone, n + 1, 65) - values
        self.n = n - gone

    @property
    def columns(self) -> OptionColumns:
        """Views of the arrays, valid until the next `add`."""
        return OptionColumns(
            self._begins, self._offsets, self._shortest, self._pools, self._durations, self._totals, self._worths,
            self._values,
        )  # fmt: skip


def _without(array: NDArray[Any], begin: int, end: int, least: int) -> NDArray[Any]:
    """Return the entries ``begin .. end - 1`` of an array, with zeros behind them for as many again."""
    kept = np.zeros((max(least, 2 * (end - begin)), *array.shape[1:]), dtype=array.dtype)
    kept[: end - begin] = array[begin:end]
    return kept
