"""First come, first served at a flat price on realised jobs, all at once.

The rule of `marketsched.mechanisms.auctions.first_come`, compiled: what the same jobs would have been
worth without any mechanism, at price 0 or at the best price in hindsight. Once for one who knows every
duration (`first_come_welfare`); and once with durations as the market reveals them (`first_come_served`),
where a hidden one makes its job wait for nodes and decide by its own law. Where all are revealed, the
two agree; where they are hidden, the first cannot be run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Annotated, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from marketsched.mechanisms.auctions.arrival_market import WaitingJob
from marketsched.mechanisms.auctions.first_come import FirstCome, first_come_kernel
from marketsched.mechanisms.auctions.hidden_turn import charged_rounds
from marketsched.mechanisms.law import Signal
from marketsched.mechanisms.legal import Amount, Count, Natural, Whole, legal
from marketsched.mechanisms.limits import MarketLimits
from marketsched.mechanisms.realised import RealisedJobs
from marketsched.mechanisms.sow import StatementOfWork


@dataclass(frozen=True, slots=True, eq=False)
class FirstComeOutcome:
    """What first-come-first-served at a flat price makes of realised jobs."""

    price: float  # credits per node and round
    welfare: float  # credits
    revenue: float  # credits
    starts: NDArray[np.int64]  # (n_jobs,), rounds; 0 where the job is not served


@legal
def first_come_welfare(jobs: RealisedJobs, capacity: Count, horizon: int, price: Amount) -> FirstComeOutcome:
    """Serve realised jobs at their arrival, in order of (arrival, submission), at a flat price.

    The same rule as `FirstCome` with durations revealed, all at once.

    Parameters
    ----------
    jobs : RealisedJobs
        What really happened.
    capacity, horizon : int
        C, nodes; T, the horizon ``jobs`` was built for.
    price : float
        Credits per node and round, >= 0.

    Raises
    ------
    InvalidParameterError
        If a number is out of range or the horizons differ.
    """
    jobs.check_horizon(horizon)
    free, starts = np.full(jobs.horizon, capacity, dtype=np.int64), np.zeros(jobs.n_jobs, dtype=np.int64)
    columns = (jobs.arrivals, jobs.durations, jobs.concurrency, jobs.begins, jobs.step_values, jobs.step_lasts)
    welfare, revenue = first_come_kernel(jobs.by_arrival, *columns, jobs.useful_until, price, free, starts)
    return FirstComeOutcome(price, float(welfare), float(revenue), starts)


def best_first_come(
    jobs: RealisedJobs, capacity: int, horizon: int, *, grid: int = 32, rounds: int = 3
) -> FirstComeOutcome:
    """Return first-come at the flat price that is best for welfare in hindsight.

    Tries 0 and ``grid`` prices spread evenly (in ratio) over the values per node-round that occur,
    then ``rounds`` times as many between the neighbours of the best: a search, not a proof.
    No operator knows this price in advance; it is printed beside price 0.

    Raises
    ------
    InvalidParameterError
        As `first_come_welfare`, or if ``grid`` < 2 or ``rounds`` < 0.
    """
    densities = _density_ends(jobs)
    return best_flat(lambda price: first_come_welfare(jobs, capacity, horizon, price), densities, grid, rounds)


@legal
def best_flat(
    served_at: Callable[[float], FirstComeOutcome],
    densities: NDArray[np.float64],
    grid: Annotated[int, Whole(2)] = 32,
    rounds: Natural = 3,
) -> FirstComeOutcome:
    """Return the outcome of largest welfare among flat prices, as `best_first_come` looks for it.

    Parameters
    ----------
    served_at : function of a price
        What first-come makes of the jobs at it.
    densities : array of float
        Values per node-round that occur, > 0, or only their least and largest; without any the price is 0.
    grid, rounds : int
        Prices tried at once, >= 2, and refinements, >= 0.

    Raises
    ------
    InvalidParameterError
        If ``grid`` or ``rounds`` is out of range.
    """
    best = served_at(0.0)
    if not densities.size:
        return best
    high = float(densities.max())
    low = max(float(densities.min()), 1e-4 * high)
    for _ in range(rounds + 1):
        prices = np.geomspace(low, high, grid)
        top, most = 0, -np.inf
        for i, price in enumerate(prices.tolist()):
            tried = served_at(price)  # one at a time: each holds a start for every job
            if tried.welfare > most:
                top, most = i, tried.welfare
            if tried.welfare > best.welfare:
                best = tried
        low, high = float(prices[max(top - 1, 0)]), float(prices[min(top + 1, grid - 1)])
    return best


def _density_ends(jobs: RealisedJobs) -> NDArray[np.float64]:
    """Return the least and the largest positive value per node-round of any start; nothing if no value is positive."""
    of, first, last = jobs.step_ranges()
    happens = (first <= last) & (jobs.step_values > 0)
    if not happens.any():
        return np.zeros(0)
    densities = (jobs.step_values / (jobs.durations * jobs.concurrency)[of])[happens]
    return np.array([densities.min(), densities.max()])


class _MetJob(NamedTuple):
    """One job as `FirstCome` meets it; see `SignalledJobs`."""

    arrival: int
    duration: int
    booked: int
    width: int
    hidden: bool
    latest: int
    mean: float
    worth: NDArray[np.float64]
    rounds: NDArray[np.float64]
    values: NDArray[np.float64]


class _Looking(FirstCome):
    """First-come as it looks at a job in the round of its arrival, without any market."""

    def at(self, sow: StatementOfWork, arrival: int, duration: int, signal: Signal) -> _MetJob:
        """Return what is seen of a job."""
        self._round = arrival
        x = WaitingJob("", 0, sow)
        x.arrival = arrival
        self.foresee(x, signal)
        hidden, last = x.worth is not None, self.limits.last_useful_completion(sow)
        rounds = None
        if x.worth is not None and x.worth.size:
            rounds = charged_rounds(x.agreed, arrival, x.worth.size, self.horizon + 1)
        if x.worth is None:
            n_starts = last - x.limit - arrival + 1 if x.limit <= self.max_duration else 0
            x.worth = sow.value.table(arrival + x.limit, max(0, n_starts))
        rounds = np.full(x.worth.size, x.mean) if rounds is None else rounds
        values = np.zeros(x.worth.size)
        n = min(values.size, last - duration - arrival + 1) if duration <= x.limit else 0  # else it is evicted
        if n > 0:
            values[:n] = sow.value.table(arrival + duration, n)
        return _MetJob(arrival, duration, x.limit, sow.concurrency, hidden, last, x.mean, x.worth, rounds, values)


@dataclass(frozen=True, slots=True, eq=False)
class SignalledJobs:
    """Jobs as first-come meets them, in order of (arrival, submission); those that never arrive are left out.

    ``worth[offsets[j] + k]`` is what job ``j`` is expected to bring if it starts in round
    ``arrivals[j] + k``, credits; ``rounds`` is how many it is expected to pay for, ``values`` what it really brings.
    """

    horizon: int  # T, the last round
    arrivals: NDArray[np.int64]  # (n,), rounds
    durations: NDArray[np.int64]  # (n,), rounds it really takes
    booked: NDArray[np.int64]  # (n,), rounds its nodes are kept for it
    widths: NDArray[np.int64]  # (n,), nodes
    hidden: NDArray[np.bool_]  # (n,), whether its duration is
    latest: NDArray[np.int64]  # (n,), the last completion worth anything: its run is stopped then
    means: NDArray[np.float64]  # (n,), rounds it is expected to take
    offsets: NDArray[np.int64]  # (n + 1,)
    worth: NDArray[np.float64]  # (offsets[-1],), credits
    rounds: NDArray[np.float64]  # (offsets[-1],)
    values: NDArray[np.float64]  # (offsets[-1],), credits

    @classmethod
    def build(
        cls, jobs: Iterable[tuple[StatementOfWork, int | None, int, Signal]], limits: MarketLimits
    ) -> SignalledJobs:
        """Collect true statements, their outcomes, and the signals at arrival.

        Parameters
        ----------
        jobs : iterable of (StatementOfWork, arrival, duration, signal)
            Those born in the same round in order of submission; arrival None: never.
        limits : MarketLimits
            Of the market; its capacity does not matter here.
        """
        sizes = ("max_concurrency", "max_duration", "max_value", "max_delay")
        looking = _Looking(limits.capacity, limits.horizon, **{name: getattr(limits, name) for name in sizes})
        met = [job for job in jobs if job[1] is not None and job[1] <= limits.horizon]
        met.sort(key=lambda job: (job[1], job[0].birth))  # stable: equal ones stay in order of submission
        seen = [looking.at(*job) for job in met]  # type: ignore[arg-type]
        offsets = np.zeros(len(seen) + 1, dtype=np.int64)
        np.cumsum([each.worth.size for each in seen], out=offsets[1:])

        def column(name: str) -> NDArray[np.int64]:
            return np.array([getattr(each, name) for each in seen], dtype=np.int64)

        return cls(
            horizon=limits.horizon,
            arrivals=column("arrival"),
            durations=column("duration"),
            booked=column("booked"),
            widths=column("width"),
            hidden=column("hidden").astype(np.bool_),
            latest=column("latest"),
            means=np.array([each.mean for each in seen], dtype=np.float64),
            offsets=offsets,
            worth=np.concatenate([*(each.worth for each in seen), np.zeros(0)]),
            rounds=np.concatenate([*(each.rounds for each in seen), np.zeros(0)]),
            values=np.concatenate([*(each.values for each in seen), np.zeros(0)]),
        )


@legal
def first_come_served(jobs: SignalledJobs, capacity: Count, price: Amount) -> FirstComeOutcome:
    """Serve jobs as `FirstCome` does that meets them at a flat price, all at once.

    Parameters
    ----------
    jobs : SignalledJobs
        Owners report truly.
    capacity : int
        C, nodes.
    price : float
        Credits per node and round, >= 0.

    Returns
    -------
    FirstComeOutcome
        Starts are those of jobs that complete, in the order of ``jobs``.
    """
    free, starts = np.full(jobs.horizon, capacity, dtype=np.int64), np.zeros(jobs.arrivals.size, dtype=np.int64)
    columns = (jobs.arrivals, jobs.durations, jobs.booked, jobs.widths, jobs.hidden, jobs.latest)
    found = _first_come_served_kernel(*columns, jobs.offsets, jobs.worth, jobs.rounds, jobs.values, price, free, starts)
    return FirstComeOutcome(price, float(found[0]), float(found[1]), starts)


def best_first_come_served(jobs: SignalledJobs, capacity: int, *, grid: int = 32, rounds: int = 3) -> FirstComeOutcome:
    """Return `first_come_served` at the flat price that is best for welfare in hindsight; see `best_first_come`.

    The price is chosen in hindsight; durations are unknown until the market reveals them.
    """
    node_rounds = np.repeat(jobs.means * jobs.widths, np.diff(jobs.offsets))
    positive = (jobs.worth > 0) & (node_rounds > 0)
    densities = jobs.worth[positive] / node_rounds[positive]
    return best_flat(lambda price: first_come_served(jobs, capacity, price), densities, grid, rounds)


@njit(cache=True)
def _earliest_start_kernel(free, width, first, duration, values, cost):  # type: ignore[no-untyped-def]
    """Return the earliest start >= ``first`` with ``width`` nodes free and a value above ``cost``; else 0.

    ``free[r - 1]`` are the nodes free in round r; ``values[k]`` is the value of start ``first + k``.
    """
    since = first  # all rounds since..t have room
    for t in range(first, first + values.size + duration - 1):
        if free[t - 1] < width:
            since = t + 1
        elif t - since + 1 >= duration and values[t - duration + 1 - first] > cost:
            return t - duration + 1
    return 0


@njit(cache=True)
def _first_come_served_kernel(  # type: ignore[no-untyped-def]
    arrivals, durations, booked, widths, hidden, latest, offsets, worth, rounds, values, price, free, starts
):
    """Go through the rounds; fill ``starts``, draw ``free`` down in place. Returns welfare and revenue."""
    welfare, revenue, n, horizon = 0.0, 0.0, arrivals.size, free.size
    ending = np.full(horizon + 2, -1)  # by round: the last job whose nodes are free from it on
    before = np.full(n, -1)  # the one that ends with it
    completes = np.zeros(n, dtype=np.bool_)
    waiting, n_waiting, coming = np.empty(n, dtype=np.int64), 0, 0
    for now in range(1, horizon + 1):
        j = ending[now]
        while j >= 0:
            free[now - 1 : starts[j] + booked[j] - 1] += widths[j]
            j = before[j]
        while coming < n and arrivals[coming] == now:
            waiting[n_waiting] = coming
            n_waiting, coming = n_waiting + 1, coming + 1
        still = 0
        for i in range(n_waiting):
            j = waiting[i]
            width, length, held_from = widths[j], booked[j], now
            own = worth[offsets[j] : offsets[j + 1]]
            start = 0
            if not hidden[j]:
                start = _earliest_start_kernel(free, width, now, length, own, price * width * length)
                held_from = start
            else:
                lasts = rounds[offsets[j] : offsets[j + 1]]
                room, most, can_pay = 0, 1e-12, False  # TOLERANCE: a kernel uses nothing outside it
                while now + room <= horizon and room < own.size + length and free[now + room - 1] >= width:
                    room += 1
                kept = own.size if now + room > horizon else now + room - length - arrivals[j] + 1
                for k in range(now - arrivals[j], own.size):
                    surplus = own[k] - price * width * lasts[k]
                    can_pay = can_pay or surplus > 1e-12
                    if k < kept and surplus > most:
                        start, most = arrivals[j] + k, surplus
                if can_pay and start == 0:
                    waiting[still] = j
                    still += 1
            if start > 0:
                starts[j] = start
                free[held_from - 1 : start + length - 1] -= width
                stop = max(start + 1, min(start + length, latest[j]))
                end = start + durations[j]
                completes[j] = end <= min(stop, horizon + 1)
                if completes[j]:
                    welfare += values[offsets[j] + start - arrivals[j]]
                    revenue += price * width * durations[j]
                end = min(end, stop)
                if end <= horizon + 1:
                    before[j], ending[end] = ending[end], j
        n_waiting = still
    starts[~completes] = 0
    return welfare, revenue
