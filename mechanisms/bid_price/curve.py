"""The prices for the owners of one bucket, and their inputs.

A curve learns from arrivals that it is given, and from the calendar; it asks for nothing else. With one
bucket it is given every arrival. With several, the curve of a bucket is given what owners of the *other* buckets
report, so that, the calendar being the same, no report of an owner moves the prices that it will face: not
through scenarios, nor the step, nor the slack (docs/mathematics.md, Bid prices).

Of its supply a share of the nodes is not counted: sigma/ramp in the current round, growing to sigma ``ramp`` rounds
ahead. Sigma grows while jobs lose surplus because nodes are booked (B), and shrinks while nodes
that had a price stay idle (I); both are moving averages (docs/mathematics.md, (31)):

    sigma <- clip(sigma + gain (B - I) / (B + I), 0, .3).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Hashable, Sequence
from itertools import islice

import numpy as np
from numba import njit
from numpy.typing import NDArray

from marketsched.mechanisms.auctions.waiting_job import WaitingJob
from marketsched.mechanisms.bid_price.dual import dual_prices
from marketsched.mechanisms.bid_price.entries import best_entry
from marketsched.mechanisms.bid_price.forecast import Forecast, with_waiting
from marketsched.mechanisms.bid_price.returning import REACH, Returning
from marketsched.mechanisms.bid_price.tasks import TaskStore
from marketsched.mechanisms.mechanism import JobId

RATE = 0.02  # of the moving averages
MOST = 0.3  # of sigma
FIRST_ROUND = 5  # before it there are no prices to judge by

Calendar = Callable[[NDArray[np.float64]], None]  # takes what running jobs are still expected to use off the nodes


def bucket_of(owner: Hashable, buckets: int, seed: int) -> int:
    """Return the bucket of an owner, from 0: a hash of the public seed and the owner's name."""
    number = hashlib.blake2b(f"{seed}:{owner!r}".encode(), digest_size=8).digest()
    return int.from_bytes(number, "big") % buckets


class Slack:
    """The share of nodes kept back.

    Parameters
    ----------
    share : float
        sigma at the beginning, in [0, .3].
    gain : float
        How fast it moves, >= 0; 0: it stays.
    ramp : int
        Rounds ahead from which all of it is kept back; 0: everywhere.
    """

    def __init__(self, share: float, gain: float, ramp: int) -> None:
        self.share, self._gain, self._ramp = share, gain, ramp
        self._blocked, self._idle = 0.0, 0.0

    def of_window(self, n: int) -> NDArray[np.float64]:
        """Return the share of nodes kept back in each of the coming ``n`` rounds, shape (n,)."""
        if not self._ramp:
            return np.full(n, self.share)
        return self.share * np.minimum(1.0, np.arange(1, n + 1) / self._ramp)

    def arrivals_served(self, blocked: float) -> None:
        """Record the surplus that arrivals of a round lost to bookings, credits."""
        self._blocked += RATE * (blocked - self._blocked)

    def round_over(self, now: int, idle: float) -> None:
        """Note what idle nodes of the round were worth at its price, credits, and move the share."""
        self.rounds_over(now, np.array([idle]))

    def rounds_over(self, first: int, idle: NDArray[np.float64]) -> None:
        """Note the same of rounds ``first, first + 1, ...``, in none of which a job arrived after the first."""
        found = _rounds_over_kernel(self.share, self._blocked, self._idle, self._gain, first, idle)
        self.share, self._idle = float(found[0]), float(found[1])


@njit(cache=True)
def _rounds_over_kernel(share, blocked, idle, gain, first, worth):  # type: ignore[no-untyped-def]
    """Return share and idle average after rounds whose idle nodes were worth so much."""
    for i in range(worth.size):
        idle += 0.02 * (worth[i] - idle)  # RATE: a kernel uses nothing outside it
        total = blocked + idle
        if total > 0 and first + i >= 5:  # FIRST_ROUND
            share = min(0.3, max(0.0, share + gain * (blocked - idle) / total))  # MOST
    return share, idle


class Curve:
    """A price for each coming round.

    Parameters
    ----------
    forecast : Forecast
        Makes scenarios from past arrivals.
    slack : Slack
        Its own.
    capacity, horizon, ahead : int
        C, T, and the rounds beyond the current one that have a price.
    step : float
        Length of the first step, in mean values per node-round.
    steps : int
        Of the descent, in each round.
    tail : int
        This many rounds after the window have the mean price of its last 24; later ones are free.
    returning : Returning, optional
        The owners of its arrivals; regular ones are expected when they come next.

    Attributes
    ----------
    first : int
        The round of the first price.
    prices : ndarray of float
        As last announced.
    prefix : ndarray of float
        The same added up, from 0.
    past : TaskStore
        The arrivals it has learnt from.
    """

    def __init__(
        self,
        forecast: Forecast,
        slack: Slack,
        *,
        capacity: int,
        horizon: int,
        ahead: int,
        step: float,
        steps: int,
        tail: int,
        returning: Returning | None = None,
    ) -> None:
        self.slack, self.past = slack, TaskStore()
        self.first, self.prices, self.prefix = 1, np.zeros(0), np.zeros(1)
        self._forecast, self._capacity, self._horizon = forecast, capacity, horizon
        self._ahead, self._step, self._steps, self._tail = ahead, step, steps, tail
        self._returning = returning
        self._iterate = np.zeros(0)  # where the next descent begins
        self._density, self._n_densities = 0.0, 0  # value per node-round of an immediate start, added up
        self._rows: dict[JobId, int] = {}  # of jobs that wait
        self._crowded = CROWDED
        self._left: list[tuple[int, int]] = []  # rounds waited, and row, of sealed jobs that have left the queue

    @property
    def expects_owners(self) -> bool:
        """Whether who comes matters, beside what: regular owners are expected."""
        return self._returning is not None

    def slot_prices(self, first: int, count: int) -> NDArray[np.float64]:
        """Return the price of rounds ``first .. first + count - 1``, as last announced."""
        found = np.zeros(count)
        known = self.prices[max(0, first - self.first) : max(0, first - self.first + count)]
        found[: known.size] = known
        return found

    def announce(
        self, now: int, free: NDArray[np.int64], run_on: Calendar, waiting: Sequence[WaitingJob], scale: float
    ) -> None:
        """Make the prices of round ``now`` and those ahead; no report of a job that arrives in it is used.

        Parameters
        ----------
        now : int
            The round.
        free : ndarray of int, shape (horizon,)
            Nodes not booked.
        run_on : function of an array
            Changes nodes left to what they are by the expected ends of running jobs, in place.
        waiting : sequence of WaitingJob
            Jobs of hidden duration in the queue; those the curve does not learn from are passed over.
        scale : float
            How many arrivals there were for each one that the curve learnt from.
        """
        if self.past.kept_values > self._crowded:
            self._forget(now)
        last = min(self._horizon, now + self._ahead)
        n = last - now + 1
        iterate = np.zeros(n)
        kept = self._iterate[now - self.first :][:n]
        iterate[: kept.size] = kept
        prices = np.zeros(n)
        expected = self._forecast.expected(now, last, self.past)
        if expected is not None:
            if self._returning is not None:
                expected = self._returning.instead(expected, now, last)
            if self._forecast.samples_the_past:
                expected = expected._replace(weights=expected.weights * scale)
            if waiting:
                expected = with_waiting(expected, self.past, *self._waiting_rows(now, waiting), scale)
            supply = free[now - 1 : now - 1 + n] - self._capacity * self.slack.of_window(n)
            run_on(supply)
            prices = dual_prices(
                iterate, supply, self._capacity, expected.rows, expected.rounds - now, expected.weights,
                expected.tasks, steps=self._steps, step=self._step * self._mean_density(), sizes=expected.sizes,
            )  # fmt: skip
        if prices.any() and last < self._horizon:
            tail = min(self._tail, self._horizon - last)
            prices = np.concatenate([prices, np.full(tail, prices[-TAIL_FROM:].mean())])
        self.first, self._iterate, self.prices = now, iterate, prices
        self.prefix = np.concatenate([[0.0], np.cumsum(prices)])

    def surplus_lost(self, free: NDArray[np.int64], now: int, x: WaitingJob, worth: NDArray[np.float64]) -> float:
        """Return the surplus that an arrival loses to the bookings in the calendar at these prices, credits."""
        _, surplus, best = best_entry(free, self.prefix, now, x.width, x.limit, worth)
        return best - surplus

    def learn(self, owner: Hashable, arrival: int, mean: float, width: int, worth: NDArray[np.float64]) -> int:
        """Take an arrival into the past, and return its row: from the next round on it may teach."""
        row = self.past.n
        if self._returning is not None:
            self._returning.note(owner, row, arrival)
        self.past.add(arrival, max(1, round(mean)), width, worth)
        self._weigh(mean, width, worth)
        return row

    def learn_together(self, arrived: Sequence[WaitingJob], now: int) -> None:
        """As `learn`, of all arrivals of a round, durations revealed; like ones are neighbours if sums stay exact."""
        worths = [x.worth for x in arrived if x.worth is not None]
        durations, widths, counts = np.array(
            [(x.limit, x.width, worth.size) for x, worth in zip(arrived, worths, strict=True)], np.int64
        ).T
        self.past.extend(now, durations, widths, counts, np.concatenate(worths), alike=self._forecast.adds_exactly)
        for x, worth in zip(arrived, worths, strict=True):
            self._weigh(x.mean, x.width, worth)

    def learn_queued(self, x: WaitingJob, sealed: bool) -> None:
        """As `learn`, of a job that is in the queue; while it is ``sealed`` its row is kept closed."""
        assert x.worth is not None
        if sealed:
            self._rows[x.job] = self.past.n
            self.past.add(x.arrival, max(1, round(x.mean)), x.width, x.worth, closed=True)
        else:
            self._rows[x.job] = self.learn(x.owner, x.arrival, x.mean, x.width, x.worth)

    def left_queue(self, x: WaitingJob, waited: int) -> None:
        """Note that a job has left the queue: what was sealed teaches from now on."""
        row = self._rows.pop(x.job, None)
        if row is not None and self.past.open(row):
            assert x.worth is not None
            self._weigh(x.mean, x.width, x.worth)
            self._left.append((waited, row))
            del self._left[:-KEPT_LEFT]

    def _forget(self, now: int) -> None:
        """Let go of what is too long ago to come again, and of no job that waits or stands in for one."""
        reach = self._forecast.reach
        if self._returning is not None:
            reach = max(reach, REACH)
            self._returning.forget(now - reach)
        oldest = int(np.searchsorted(self.past.arrivals, now - reach))
        self.past.forget_values(min([oldest, *self._rows.values(), *(row for _, row in self._left)]))
        self._crowded = max(CROWDED, 2 * self.past.kept_values)

    def _weigh(self, mean: float, width: int, worth: NDArray[np.float64]) -> None:
        if worth.size:
            self._density += float(worth.max()) / (width * mean)
            self._n_densities += 1

    def _mean_density(self) -> float:
        """Return rho, the mean value per node-round of past arrivals; 1 without any."""
        return self._density / self._n_densities if self._n_densities else 1.0

    def _waiting_rows(self, now: int, waiting: Sequence[WaitingJob]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return rows, and rounds of arrival, of the tasks that stand for jobs in the queue.

        A sealed job is stood in for by one of the last few sealed ones to have left that had waited as long.
        """
        rows: list[int] = []
        rounds: list[int] = []
        n_sealed = 0
        for x in waiting:
            row = self._rows.get(x.job)
            if row is None:
                continue
            if self.past.is_closed(row):
                long_enough = (r for waited, r in reversed(self._left) if waited >= now - x.arrival)
                stand_ins = list(islice(long_enough, STAND_INS))
                n_sealed += 1
                if not stand_ins:
                    continue
                row = stand_ins[n_sealed % len(stand_ins)]
            rows.append(row)
            rounds.append(x.arrival)
        return np.array(rows, dtype=np.int64), np.array(rounds, dtype=np.int64)


TAIL_FROM = 24  # rounds at the end of the window whose mean price goes on behind it
CROWDED = 100_000  # values of past arrivals; with more, those that cannot come again are let go
KEPT_LEFT = 256  # sealed jobs that have left the queue, the last ones
STAND_INS = 4  # of them take turns in a sealed job's place
