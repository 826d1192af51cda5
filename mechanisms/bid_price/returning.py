r"""Owners who come at even intervals: when they come next, from what a curve has learnt of them.

An owner is *regular* if the rounds between its last `KEPT` arrivals, three of them at least, are multiples of one
period g >= 2, up to `TOLERANCE` rounds. With a the last arrival it is expected in rounds a + g, a + 2 g, ..., with the
share of multiples that were met so far as weight, shared equally by its last `RUNS` jobs; if it is late by up to
`TOLERANCE` rounds it is expected now, and once `PATIENCE` periods have passed without it no more. What other owners
will bring is taken from the lags (`forecast`), as is what a regular one brought before it was known to be regular.
"""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np
from numba import njit
from numpy.typing import NDArray

from marketsched.mechanisms.bid_price.forecast import Expected
from marketsched.mechanisms.bid_price.tasks import doubled

KEPT = 6  # last arrivals of an owner
TOLERANCE = 2  # rounds by which an arrival may be off
PATIENCE = 3  # periods
RUNS = 3  # last jobs of an owner that stand for its next one
REACH = 600  # rounds; what is longer ago is no one's next job
UNKNOWN = -1


class Returning:
    """The owners of a curve's arrivals.

    Attributes
    ----------
    n : int
        Owners that are known.
    periods : ndarray of float, shape (n,)
        Rounds between arrivals; 0: not regular.
    """

    def __init__(self) -> None:
        self.n = 0
        self._numbers: dict[Hashable, int] = {}
        self._periods, self._shares = np.zeros(64), np.zeros(64)
        self._counts = np.zeros(64, np.int64)
        self._arrivals, self._rows = np.zeros((64, KEPT), np.int64), np.zeros((64, KEPT), np.int64)  # the last one last
        self._owners = np.full(64, UNKNOWN)  # by row

    @property
    def periods(self) -> NDArray[np.float64]:
        """Rounds between arrivals of each owner; 0: not regular."""
        return self._periods[: self.n]

    def note(self, owner: Hashable, row: int, arrival: int) -> None:
        """Note an arrival, not earlier than those before it, and its row in the store."""
        while row >= self._owners.size:
            self._owners = np.concatenate([self._owners, np.full_like(self._owners, UNKNOWN)])
        number = self._numbers.setdefault(owner, self.n)
        if number == self.n:
            self.n += 1
            if self.n > self._counts.size:
                for name in ("_periods", "_shares", "_counts", "_arrivals", "_rows"):
                    setattr(self, name, doubled(getattr(self, name)))
        self._owners[row] = number
        arrivals, rows = self._arrivals[number], self._rows[number]
        arrivals[:-1], rows[:-1] = arrivals[1:].copy(), rows[1:].copy()
        arrivals[-1], rows[-1] = arrival, row
        self._counts[number] = min(KEPT, self._counts[number] + 1)
        self._periods[number], self._shares[number] = _period_kernel(arrivals[KEPT - self._counts[number] :])

    def instead(self, expected: Expected, now: int, last: int) -> Expected:
        """Return what is expected in rounds ``now .. last``, regular owners where they come next.

        Parameters
        ----------
        expected : Expected
            Rows of the store that the arrivals were noted with.
        now, last : int
            Rounds.
        """
        expected = expected.one_by_one()
        owners = self._owners[expected.rows]
        others = (owners == UNKNOWN) | (self._periods[owners] == 0.0)
        sizes = (self.n, self._periods, self._shares, self._counts, self._arrivals, self._rows)
        rows, rounds, weights = _next_kernel(*sizes, now, last)
        return Expected(
            np.concatenate([expected.rows[others], rows]),
            np.concatenate([expected.sizes[others], np.ones_like(rows)]),
            np.concatenate([expected.rounds[others], rounds]),
            np.concatenate([expected.weights[others], weights]),
            expected.tasks,
        )

    def forget(self, before: int) -> None:
        """Forget owners who last came before a round."""
        stays = np.flatnonzero(self._arrivals[: self.n, -1] >= before)
        numbers = np.full(self.n + 1, UNKNOWN)  # the last one is that of rows without an owner
        numbers[stays] = np.arange(stays.size)
        self._owners = numbers[self._owners]
        self._numbers = {owner: int(numbers[i]) for owner, i in self._numbers.items() if numbers[i] != UNKNOWN}
        for name in ("_periods", "_shares", "_counts", "_arrivals", "_rows"):
            array = getattr(self, name)
            array[: stays.size] = array[stays]
            array[stays.size :] = 0
        self.n = stays.size


@njit(cache=True)
def _period_kernel(arrivals):  # type: ignore[no-untyped-def]
    """Return the period of arrivals, and the share of its multiples at which there was one; 0, 0: none."""
    n = arrivals.size - 1
    if n < 2:
        return 0.0, 0.0
    least = arrivals[n] - arrivals[0]
    for i in range(n):
        least = min(least, arrivals[i + 1] - arrivals[i])
    if least < 2:
        return 0.0, 0.0
    met = 0
    for i in range(n):
        met += int((arrivals[i + 1] - arrivals[i]) / least + 0.5)
    period = (arrivals[n] - arrivals[0]) / met
    for i in range(n):
        gap = arrivals[i + 1] - arrivals[i]
        if abs(gap - int(gap / least + 0.5) * period) > TOLERANCE:
            return 0.0, 0.0
    return period, n / met


@njit(cache=True)
def _next_kernel(n, periods, shares, counts, arrivals, all_rows, now, last):  # type: ignore[no-untyped-def]
    """Return rows, rounds and weights of the next arrivals of regular owners."""
    size = 0
    for i in range(n):
        if periods[i] > 0.0:
            size += RUNS * (2 + int((last - now) / periods[i]))
    rows, rounds, weights = np.empty(size, np.int64), np.empty(size, np.int64), np.empty(size)
    m = 0
    for i in range(n):
        period, latest = periods[i], arrivals[i, KEPT - 1]
        if period == 0.0 or (now - latest - TOLERANCE - 1) // period >= PATIENCE:
            continue
        runs = 0
        while runs < min(RUNS, counts[i]) and now - arrivals[i, KEPT - 1 - runs] <= REACH:
            runs += 1
        if runs == 0:
            continue
        passed = max(1, int((now - TOLERANCE - latest) / period))
        while int(latest + passed * period + 0.5) < now - TOLERANCE:
            passed += 1
        t = int(latest + passed * period + 0.5)
        while t <= last:
            for k in range(runs):
                rows[m], rounds[m], weights[m] = all_rows[i, KEPT - 1 - k], max(now, t), shares[i] / runs
                m += 1
            passed += 1
            t = int(latest + passed * period + 0.5)
    return rows[:m], rounds[:m], weights[:m]
