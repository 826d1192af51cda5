"""Tasks as columns: past or possible arrivals, and the value of each start.

The dual of bid prices is evaluated thousands of times for the same tasks, so they are kept as flat arrays for
compiled code: one row for each task, and the values of its starts one after the other in a single array.
"""

from __future__ import annotations

from typing import NamedTuple, TypeVar

import numpy as np
from numba import njit
from numpy.typing import NDArray

N = TypeVar("N", np.int64, np.float64)


class Columns(NamedTuple):
    """Tasks as the kernels read them; a task is one row."""

    durations: NDArray[np.int64]  # (n_tasks,), rounds
    widths: NDArray[np.int64]  # (n_tasks,), nodes
    flats: NDArray[np.int64]  # (n_tasks,), how many first starts are worth the same
    firsts: NDArray[
        np.float64
    ]  # (n_tasks,), credits: of starting at the arrival; side by side, as most tasks need no more
    offsets: NDArray[np.int64]  # (n_tasks + 1,)
    values: NDArray[np.float64]  # (offsets[-1],), credits: of starting 0, 1, 2, ... rounds after the arrival


class Arrivals:
    """Rows in order of arrival, in arrays that grow by doubling: what tasks of all sorts have in common.

    Attributes
    ----------
    n : int
        Rows so far.
    """

    def __init__(self) -> None:
        self.n = 0
        self._arrivals = np.zeros(64, np.int64)
        self._closed: set[int] = set()

    @property
    def arrivals(self) -> NDArray[np.int64]:
        """Rounds of arrival, shape (n,), in order."""
        return self._arrivals[: self.n]

    def is_closed(self, row: int) -> bool:
        """Tell whether a task is kept from recurring."""
        return row in self._closed

    def open(self, row: int) -> bool:
        """Let a task recur from now on; return False if it did before."""
        was_closed = row in self._closed
        self._closed.discard(row)
        return was_closed

    def between(self, first: int, last: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return rows and arrival rounds of the tasks that arrive in rounds ``first .. last``."""
        low, high = np.searchsorted(self.arrivals, [first, last + 1])
        return np.arange(low, high), self.arrivals[low:high].copy()

    def recurring(
        self, now: int, last: int, lag: int, earliest: int, day: int = 0
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """List what arrived in the past as if it came again.

        Round q of ``now .. last`` gets the arrivals of round q - lag, ``lag`` being taken off again
        until that lies before ``now``.

        Parameters
        ----------
        now, last : int
            Rounds; nothing of ``now`` or later is used.
        lag : int
            Rounds, >= 1.
        earliest : int
            The first round there is a record of.
        day : int
            Rounds of yesterday's log. Where the lag reaches into it, its round of the same time of day is taken:
            ``day`` instead of ``lag`` is taken off; 0: there is none.

        Returns
        -------
        tuple of two arrays of int, shape (m,)
            Rows, and the rounds in which they come again.
        """
        rows, rounds = _recurring_kernel(*self._again(now, last, lag, earliest, day), now)
        if self._closed:
            open_ = ~np.isin(rows, np.fromiter(self._closed, np.int64, len(self._closed)))
            return rows[open_], rounds[open_]
        return rows, rounds

    def _again(
        self, now: int, last: int, lag: int, earliest: int, day: int
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the first of the rows that come again in each round of ``now .. last``, and the first behind them."""
        ahead = np.arange(now, last + 1)
        sources = now - lag + (ahead - now) % lag
        if day:
            sources = np.where(sources < 1, now - day + (ahead - now) % day, sources)
        lows = np.searchsorted(self.arrivals, sources)
        return lows, np.where(sources < earliest, lows, np.searchsorted(self.arrivals, sources + 1))


class TaskStore(Arrivals):
    """Tasks of identical nodes: a duration and a width each.

    Tasks of one round that differ in nothing but their value, which is the same at each of their starts, are neighbours
    of one *group*, by rising values, where `extend` was asked for it; any other task is a group of its own.
    """

    def __init__(self) -> None:
        super().__init__()
        self._n_heads, self._heads = 0, np.zeros(64, np.int64)  # first row of each group
        self._durations, self._widths, self._flats = (np.zeros(64, np.int64) for _ in range(3))
        self._firsts, self._offsets, self._values = np.zeros(64), np.zeros(65, np.int64), np.zeros(1024)

    def add(
        self, arrival: int, duration: int, width: int, values: NDArray[np.float64], *, closed: bool = False
    ) -> None:
        """Add a task that is not earlier than those before it.

        Parameters
        ----------
        arrival : int
            Its round; rounds before the first one of the market are 0, -1, ....
        duration, width : int
            Rounds, nodes.
        values : array of float, shape (n_starts,)
            Credits of starting 0, 1, 2, ... rounds after the arrival. Kept is the most that this or a later
            start is worth: the same wherever values do not increase.
        closed : bool
            Whether it does not recur until it is opened.
        """
        n = self.n
        self.extend(arrival, np.array([duration]), np.array([width]), np.array([values.size]), values)
        if closed:
            self._closed.add(n)

    def extend(
        self,
        arrival: int,
        durations: NDArray[np.int64],
        widths: NDArray[np.int64],
        counts: NDArray[np.int64],
        values: NDArray[np.float64],
        *,
        alike: bool = False,
    ) -> None:
        """Add tasks of one round, as `add` does with each.

        Parameters
        ----------
        arrival : int
            Their round.
        durations, widths, counts : array of int, shape (m,)
            Rounds, nodes, and number of values of each.
        values : array of float, shape (counts.sum(),)
            Of one after the other.
        alike : bool
            Whether like tasks become neighbours, by rising values, which `dual_prices` answers faster. Its sums change
            order.
        """
        n, m = self.n, durations.size
        if alike and m > 1:
            order, values = _alike(durations, widths, counts, values)
            durations, widths, counts = durations[order], widths[order], counts[order]
        self._make_room(m, values.size)
        used = int(self._offsets[n])
        self._arrivals[n : n + m], self._durations[n : n + m], self._widths[n : n + m] = arrival, durations, widths
        self._values[used : used + values.size] = values
        self._offsets[n + 1 : n + m + 1] = used + np.cumsum(counts)
        _note_values_kernel(self._offsets[n : n + m + 1], self._values, self._flats[n : n + m], self._firsts[n : n + m])
        self._note_heads(n, m, alike)
        self.n = n + m

    def _note_heads(self, first: int, m: int, alike: bool) -> None:
        """Note where groups begin among the next ``m`` rows."""
        ends = self._offsets[first : first + m + 1]
        joins = np.zeros(m, bool)
        if alike:
            rows = slice(first, first + m)
            flat = self._flats[rows] == np.diff(ends)
            values = self._firsts[rows]
            joins[1:] = flat[1:] & flat[:-1] & (np.diff(ends)[1:] == np.diff(ends)[:-1]) & (values[1:] >= values[:-1])
            for column in (self._durations[rows], self._widths[rows]):
                joins[1:] &= column[1:] == column[:-1]
        heads = first + np.flatnonzero(~joins)
        while self._n_heads + heads.size > self._heads.size:
            self._heads = doubled(self._heads)
        self._heads[self._n_heads : self._n_heads + heads.size] = heads
        self._n_heads += heads.size

    def recurring_groups(
        self, now: int, last: int, lag: int, earliest: int, day: int = 0
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """List what arrived in the past as if it came again, as `recurring`, by groups: first rows, sizes, rounds."""
        if self._closed:
            rows, rounds = self.recurring(now, last, lag, earliest, day)
            return rows, np.ones_like(rows), rounds
        heads = np.append(self._heads[: self._n_heads], self.n)
        lows, highs = (np.searchsorted(heads, rows) for rows in self._again(now, last, lag, earliest, day))
        groups, rounds = _recurring_kernel(lows, highs, now)
        return heads[groups], heads[groups + 1] - heads[groups], rounds

    def _make_room(self, tasks: int, values: int) -> None:
        """Let the arrays hold so many more tasks and values."""
        while self.n + tasks > self._arrivals.size:
            for name in ("_arrivals", "_durations", "_widths", "_flats", "_firsts"):
                setattr(self, name, doubled(getattr(self, name)))
            self._offsets = doubled(self._offsets)
        while self.kept_values + values > self._values.size:
            self._values = doubled(self._values)

    @property
    def kept_values(self) -> int:
        """How many values are kept, of all tasks together."""
        return int(self._offsets[self.n])

    def forget_values(self, row: int) -> None:
        """Drop the values of all tasks before ``row``, which are no longer read; rows keep their numbers."""
        dropped, used = int(self._offsets[row]), self.kept_values
        size = max(1024, 2 * (used - dropped))
        values = np.zeros(size)
        values[: used - dropped] = self._values[dropped:used]
        self._values, self._offsets = values, np.maximum(self._offsets - dropped, 0)

    @property
    def columns(self) -> Columns:
        """Views of the arrays, valid until the next `add`."""
        n = self.n
        tasks = (self._durations[:n], self._widths[:n], self._flats[:n], self._firsts[:n])
        return Columns(*tasks, self._offsets[: n + 1], self._values)


def _alike(
    durations: NDArray[np.int64], widths: NDArray[np.int64], counts: NDArray[np.int64], values: NDArray[np.float64]
) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
    """Return tasks of a round by duration, number of values, width and first value: their order, and all values."""
    offsets = np.concatenate([[0], np.cumsum(counts)])
    firsts = np.where(counts > 0, np.append(values, 0.0)[offsets[:-1]], 0.0)
    order = np.lexsort((firsts, widths, counts, durations))
    moved = np.empty_like(values)
    _gather_kernel(order, offsets, values, moved)
    return order, moved


def one_by_one(rows: NDArray[np.int64], sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return all rows of groups that begin at ``rows``.

    Examples
    --------
    >>> one_by_one(np.array([7, 2]), np.array([1, 3])).tolist()
    [7, 2, 3, 4]
    """
    starts = np.cumsum(sizes) - sizes
    return np.repeat(rows - starts, sizes) + np.arange(sizes.sum())


def joined(first: Columns, second: Columns, rows: NDArray[np.int64]) -> Columns:
    """Return all tasks of ``first``, and behind them those of ``second`` in ``rows``."""
    end = int(first.offsets[-1])
    pieces = [second.values[second.offsets[j] : second.offsets[j + 1]] for j in rows]
    sizes = np.array([piece.size for piece in pieces], dtype=np.int64)
    durations, widths, flats = (np.concatenate([x, y[rows]]) for x, y in zip(first[:3], second[:3], strict=True))
    firsts = np.concatenate([first.firsts, second.firsts[rows]])
    offsets = np.concatenate([first.offsets, end + np.cumsum(sizes)])
    return Columns(durations, widths, flats, firsts, offsets, np.concatenate([first.values[:end], *pieces]))


def doubled(array: NDArray[N]) -> NDArray[N]:
    """Return ``array`` with as many zeros behind it."""
    return np.concatenate([array, np.zeros_like(array)])


@njit(cache=True)
def _recurring_kernel(lows, highs, now):  # type: ignore[no-untyped-def]
    """Return rows ``lows[i] .. highs[i] - 1`` for every i, and ``now + i`` for each of them."""
    m = 0
    for i in range(lows.size):
        m += highs[i] - lows[i]
    rows, rounds = np.empty(m, np.int64), np.empty(m, np.int64)
    m = 0
    for i in range(lows.size):
        for j in range(lows[i], highs[i]):
            rows[m], rounds[m] = j, now + i
            m += 1
    return rows, rounds


@njit(cache=True)
def _note_values_kernel(offsets, values, flats, firsts):  # type: ignore[no-untyped-def]
    """Replace each value by the most that it or a later one is; fill in each first one, and how many equal it."""
    for i in range(flats.size):
        own = values[offsets[i] : offsets[i + 1]]
        for k in range(own.size - 2, -1, -1):
            own[k] = max(own[k], own[k + 1])
        flat = 0
        while flat < own.size and own[flat] == own[0]:
            flat += 1
        flats[i] = flat
        firsts[i] = own[0] if flat > 0 else 0.0


@njit(cache=True)
def _gather_kernel(order, offsets, values, moved):  # type: ignore[no-untyped-def]
    """Put the values of tasks one after the other in another order."""
    used = 0
    for i in order:
        for k in range(offsets[i], offsets[i + 1]):
            moved[used] = values[k]
            used += 1
