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
from marketsched.mechanisms.auctions.first_come import FirstCome
from marketsched.mechanisms.auctions.hidden_turn import DurationLaw
from marketsched.mechanisms.legal import Amount, Count, Natural, Whole, legal
from marketsched.mechanisms.limits import MarketLimits
from marketsched.mechanisms.realised import RealisedJobs
from marketsched.mechanisms.sow import Signal, StatementOfWork


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
    order = np.lexsort((jobs.births, jobs.arrivals))  # stable: equal ones stay in order of submission
    free, starts = np.full(jobs.horizon, capacity, dtype=np.int64), np.zeros(jobs.n_jobs, dtype=np.int64)
    columns = (jobs.arrivals, jobs.durations, jobs.concurrency, jobs.offsets, jobs.values)
    welfare, revenue = _first_come_welfare_kernel(order, *columns, price, free, starts)
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
    densities = _density_ends(jobs.values, jobs.durations * jobs.concurrency, jobs.offsets)
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


def _density_ends(
    values: NDArray[np.float64], node_rounds: NDArray[np.int64], offsets: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Return the least and the largest positive value per node-round; nothing if no value is positive."""
    low, high = np.inf, 0.0
    for begin in range(0, node_rounds.size, 2**14):  # so that no array as long as all values is made
        own = offsets[begin : begin + 2**14 + 1]
        part = values[own[0] : own[-1]]
        densities = (part / np.repeat(node_rounds[begin : begin + 2**14], np.diff(own)))[part > 0]
        low, high = densities.min(initial=low), densities.max(initial=high)
    return np.array([low, high]) if high > 0 else np.zeros(0)


class _MetJob(NamedTuple):
    """One job as `FirstCome` meets it; see `SignalledJobs`."""

    arrival: int
    duration: int
    booked: int
    width: int
    hidden: bool
    latest: int
    law: DurationLaw
    curve: NDArray[np.float64]
    densities: NDArray[np.float64]


class _Looking(FirstCome):
    """First-come as it looks at a job in the round of its arrival, without any market."""

    def at(self, sow: StatementOfWork, arrival: int, duration: int, signal: Signal) -> _MetJob:
        """Return what is seen of a job."""
        self._round = arrival
        x = WaitingJob("", 0, sow)
        x.arrival = arrival
        self.foresee(x, signal)
        hidden, last = x.worth is not None, self.limits.last_useful_completion(sow)
        law = x.agreed if hidden else DurationLaw(np.array([x.limit]), np.ones(1))
        curve = sow.value.table(arrival, max(1, last - arrival + 1))
        if hidden:
            worth = self._expected(x, sow.law.points_of(arrival, signal)) if x.mean else np.zeros(0)
        else:
            curve = curve if x.limit <= self.max_duration else np.zeros(1)
            worth = curve[x.limit :]
        densities = worth[worth > 0] / (x.mean * sow.concurrency)
        return _MetJob(arrival, duration, x.limit, sow.concurrency, hidden, last, law, curve, densities)


@dataclass(frozen=True, slots=True, eq=False)
class SignalledJobs:
    """Jobs as first-come meets them, in order of (arrival, submission); those that never arrive are left out.

    ``curves[offsets[j] + k]`` is what job ``j`` is worth if it completes at ``arrivals[j] + k``, credits. The law of
    its duration stands from ``law_offsets[j]`` on; where the duration is revealed it holds the rounds that are booked.
    """

    horizon: int  # T, the last round
    arrivals: NDArray[np.int64]  # (n,), rounds
    durations: NDArray[np.int64]  # (n,), rounds it really takes
    booked: NDArray[np.int64]  # (n,), rounds its nodes are kept for it
    widths: NDArray[np.int64]  # (n,), nodes
    hidden: NDArray[np.bool_]  # (n,), whether its duration is
    latest: NDArray[np.int64]  # (n,), the last completion worth anything
    falls: NDArray[np.bool_]  # (n,), whether its value never rises: the first start is the best then
    law_offsets: NDArray[np.int64]  # (n + 1,)
    law: NDArray[np.int64]  # (law_offsets[-1],), rounds, those of a job rising
    weights: NDArray[np.float64]  # (law_offsets[-1],), those of a job adding up to 1
    offsets: NDArray[np.int64]  # (n + 1,)
    curves: NDArray[np.float64]  # (offsets[-1],), credits
    densities: NDArray[np.float64]  # the least and the largest expected value per node and round above 0; or none

    @classmethod
    def build(
        cls, jobs: Iterable[tuple[StatementOfWork, int | None, int, Signal]], limits: MarketLimits
    ) -> SignalledJobs:
        """Collect true statements, what became of them, and what the platform sees at arrival.

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
        ends = [x for each in seen if each.densities.size for x in (each.densities.min(), each.densities.max())]

        def offsets(sizes: list[int]) -> NDArray[np.int64]:
            return np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)]).astype(np.int64)

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
            falls=np.array([bool((np.diff(each.curve) <= 0).all()) for each in seen], dtype=np.bool_),
            law_offsets=offsets([each.law.durations.size for each in seen]),
            law=np.concatenate([*(each.law.durations for each in seen), np.zeros(0, dtype=np.int64)]),
            weights=np.concatenate([*(each.law.weights for each in seen), np.zeros(0)]),
            offsets=offsets([each.curve.size for each in seen]),
            curves=np.concatenate([*(each.curve for each in seen), np.zeros(0)]),
            densities=np.array([min(ends), max(ends)] if ends else []),
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
    columns = (jobs.arrivals, jobs.durations, jobs.booked, jobs.widths, jobs.hidden, jobs.latest, jobs.falls)
    told = (jobs.law_offsets, jobs.law, jobs.weights, jobs.offsets, jobs.curves)
    found = _first_come_served_kernel(*columns, *told, price, free, starts)
    return FirstComeOutcome(price, float(found[0]), float(found[1]), starts)


def best_first_come_served(jobs: SignalledJobs, capacity: int, *, grid: int = 32, rounds: int = 3) -> FirstComeOutcome:
    """Return `first_come_served` at the flat price that is best for welfare in hindsight; see `best_first_come`.

    The price is chosen in hindsight; durations are unknown until the market reveals them.
    """
    return best_flat(lambda price: first_come_served(jobs, capacity, price), jobs.densities, grid, rounds)


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
def _first_come_welfare_kernel(  # type: ignore[no-untyped-def]
    order, arrivals, durations, concurrency, offsets, values, price, free, starts
):
    """Fill ``starts``; draw ``free`` down in place. Returns welfare and revenue."""
    welfare, revenue = 0.0, 0.0
    for j in order:
        if offsets[j + 1] == offsets[j]:
            continue
        cost = price * concurrency[j] * durations[j]
        own = values[offsets[j] : offsets[j + 1]]
        start = _earliest_start_kernel(free, concurrency[j], arrivals[j], durations[j], own, cost)
        if start > 0:
            starts[j] = start
            welfare += own[start - arrivals[j]]
            revenue += cost
            for t in range(start, start + durations[j]):
                free[t - 1] -= concurrency[j]
    return welfare, revenue


@njit(cache=True)
def _surplus_kernel(curve, days, weights, arrival, start, latest, cost):  # type: ignore[no-untyped-def]
    """Return what a start is expected to bring, and the outcome with which the best stop ends: -1, none."""
    so_far, best, stop = 0.0, 0.0, -1
    for q in range(days.size):
        if start + days[q] > latest:
            break
        so_far += weights[q] * (curve[start + days[q] - arrival] - cost * days[q])
        if so_far > best:
            best, stop = so_far, q
    return best, stop


@njit(cache=True)
def _last_completion_kernel(curve, days, weights, arrival, start, latest, cost):  # type: ignore[no-untyped-def]
    """Return the completion time after which a run is stopped, as `hidden_turn.last_completion`."""
    falls, end, last = True, latest - start + 1, start
    for d in range(1, end):
        k = start + d - arrival
        falls = falls and curve[k] - cost * d <= curve[k - 1] - cost * (d - 1)
    if not falls:
        stop = _surplus_kernel(curve, days, weights, arrival, start, latest, cost)[1]
        if stop < 0:
            return start
        if stop + 1 < days.size:
            end = min(end, days[stop + 1])
    for d in range(end):
        if curve[start + d - arrival] - cost * d > 0.0:
            last = start + d
    return last


@njit(cache=True)
def _first_come_served_kernel(  # type: ignore[no-untyped-def]
    arrivals,
    durations,
    booked,
    widths,
    hidden,
    latest,
    falls,
    law_offsets,
    law,
    weights,
    offsets,
    curves,
    price,
    free,
    starts,
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
            width, length, held_from, arrival = widths[j], booked[j], now, arrivals[j]
            curve, cost = curves[offsets[j] : offsets[j + 1]], price * width
            days, share = law[law_offsets[j] : law_offsets[j + 1]], weights[law_offsets[j] : law_offsets[j + 1]]
            start = 0
            if not hidden[j]:
                start = _earliest_start_kernel(free, width, now, length, curve[length:], cost * length)
                held_from = start
            else:
                room, most, can_pay = 0, 1e-12, False  # TOLERANCE: a kernel uses nothing outside it
                n_starts = latest[j] - days[0] - now + 1 if days.size else 0
                while now + room <= horizon and room < n_starts + length and free[now + room - 1] >= width:
                    room += 1
                kept = n_starts if now + room > horizon else room - length + 1
                for k in range(n_starts):
                    if k and (falls[j] or (k >= kept and can_pay)):
                        break
                    surplus = _surplus_kernel(curve, days, share, arrival, now + k, latest[j], cost)[0]
                    can_pay = can_pay or surplus > 1e-12
                    if k < kept and surplus > most:
                        start, most = now + k, surplus
                if can_pay and start == 0:
                    waiting[still] = j
                    still += 1
            if start > 0:
                starts[j] = start
                free[held_from - 1 : start + length - 1] -= width
                stop = latest[j]
                if hidden[j]:
                    stop = _last_completion_kernel(curve, days, share, arrival, start, stop, cost)
                stop = max(start + 1, min(start + length, stop))
                end = start + durations[j]
                completes[j] = end <= min(stop, horizon + 1)
                if completes[j]:
                    welfare += curve[end - arrival] if end <= latest[j] else 0.0
                    revenue += price * width * durations[j]
                end = min(end, stop)
                if end <= horizon + 1:
                    before[j], ending[end] = ending[end], j
        n_waiting = still
    starts[~completes] = 0
    return welfare, revenue
