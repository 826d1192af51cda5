"""Prices of a cluster's pools and resources, made from scenarios of later arrivals.

As `marketsched.mechanisms.bid_price.curve`, with a price for each (pool, resource, round): made at the beginning of a
round with arrivals, from arrivals of earlier rounds or from public laws, and from what is booked.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from marketsched.mechanisms.bid_price.curve import Slack
from marketsched.mechanisms.bid_price.forecast import FromHistory
from marketsched.mechanisms.limits import MarketLimits
from marketsched.mechanisms.resources.calendars import Calendars
from marketsched.mechanisms.resources.cluster import Cluster
from marketsched.mechanisms.resources.dual import added_up, joint_dual_prices
from marketsched.mechanisms.resources.known import Known, known_at_arrival
from marketsched.mechanisms.resources.tasks import OptionColumns, OptionStore
from marketsched.mechanisms.statement_law import StatementLaw

EXPECTED_FIRST = 1000  # tasks of the scenarios by whose values the first steps are measured
FINEST = 1e9  # on identical nodes prices of windows are rounded to multiples of one over it, as in `dual_prices`
LEAST_WINDOW = 144  # rounds ahead that have a price, however impatient jobs are
WINDOW_STEP = 24  # rounds: windows are multiples


def window_of(max_delay: int) -> int:
    """Return for how many rounds ahead prices are made: three quarters of the longest patience S, at least 144.

    Starts behind the window cost nothing. With a window much shorter than patience every job that can wait books there,
    whatever it is worth; with one as long as it, prices are made of more rounds than are sold.

    Examples
    --------
    >>> [window_of(max_delay) for max_delay in (96, 192, 289, 577)]
    [144, 144, 240, 456]
    """
    return max(LEAST_WINDOW, WINDOW_STEP * math.ceil(0.75 * max_delay / WINDOW_STEP))


class Scenarios(NamedTuple):
    """Tasks of all scenarios together."""

    rows: NDArray[np.int64]  # (m,), of ``tasks``
    rounds: NDArray[np.int64]  # (m,), of arrival
    weights: NDArray[np.float64]  # (m,), one over the number of scenarios
    tasks: OptionColumns


class ShapesForecast(Protocol):
    """Scenarios of rounds to come."""

    reach: int  # rounds back from the current one whose arrivals may be looked at

    def scenarios(self, now: int, last: int, past: OptionStore) -> Scenarios | None:
        """Return what may arrive in rounds ``now .. last``; None: nothing is known yet."""
        ...


class ShapesOfThePast:
    """Scenario k repeats what arrived ``lags[k]`` rounds ago, as `FromHistory`."""

    def __init__(self, history: FromHistory) -> None:
        self._history, self.reach = history, history.reach

    def scenarios(self, now: int, last: int, past: OptionStore) -> Scenarios | None:
        """Return the arrivals of the past as if they came again."""
        found = self._history.recurring(now, last, past)
        return None if found is None else Scenarios(*found, past.columns)


class ShapesOfLaws:
    """Every scenario is one draw of all public laws, made once, before the market begins.

    ``rng`` gives each law in turn one number for the statement and one for arrival and case.
    """

    reach = 0

    def __init__(
        self,
        laws: Iterable[StatementLaw],
        n_scenarios: int,
        cluster: Cluster,
        limits: MarketLimits,
        rng: np.random.Generator,
    ) -> None:
        draws: list[tuple[int, Known]] = []
        laws = list(laws)
        for _ in range(n_scenarios):
            for law in laws:
                sow = law.sample(rng)
                u = float(rng.random()) if sow is not None else 1.0
                if sow is None or u >= float(sow.law.probabilities.sum()):
                    continue
                point = int(np.searchsorted(np.cumsum(sow.law.probabilities), u, side="right"))
                arrival, duration = int(sow.law.arrivals[point]), int(sow.law.durations[point])
                draws.append((arrival, known_at_arrival(sow, cluster, arrival, duration, limits)))
        self._store, self._weight = OptionStore(len(cluster.resources)), 1.0 / n_scenarios
        for arrival, known in sorted(draws, key=lambda draw: draw[0]):
            self._store.add(arrival, known)

    def scenarios(self, now: int, last: int, past: OptionStore) -> Scenarios | None:
        """Return the draws that arrive in rounds ``now .. last``; the past does not matter."""
        rows, rounds = self._store.between(now, last)
        return Scenarios(rows, rounds, np.full(rows.size, self._weight), self._store.columns)


class ClusterPrices:
    """A price for each pool, resource and coming round, from scenarios of the forecast.

    ``slack`` is the share of every pool that is kept back; ``ahead`` rounds beyond the current one have a price of
    their own, and ``tail`` rounds behind them one at the mean of the last. In each round ``steps`` of the descent are
    made, the first of length ``step``, in mean values per part and round.
    """

    def __init__(
        self,
        forecast: ShapesForecast,
        slack: Slack,
        cluster: Cluster,
        *,
        horizon: int,
        ahead: int,
        tail: int,
        step: float,
        steps: int,
    ) -> None:
        self.slack, self.past = slack, OptionStore(len(cluster.resources))  # past: as far back as scenarios reach
        self._forecast, self._horizon, self._ahead, self._tail = forecast, horizon, ahead, tail
        self._step, self._steps = step, steps
        self._size = cluster.layout.pool_size.astype(np.float64)
        self._all = self._size.sum(axis=0)
        there = self._all > 0  # parts of one resource for a part of another, as the cluster has them
        self._share = np.where(there, self._all[:, None] / np.where(there, self._all, 1.0), 0.0)
        self._grain = FINEST * cluster.resources[0].parts if self._size.size == 1 else 0.0
        self.first = 1  # the round of the first price
        # As last announced, credits per part and round, shape (n_pools, n_resources, n); and added up from 0.
        self.prices = self._iterate = np.zeros((*self._size.shape, 0))
        self.prefix = np.zeros((*self._size.shape, 1))
        self._density, self._n_densities = np.zeros(self._all.size), 0

    def announce(self, now: int, calendars: Calendars) -> None:
        """Make the prices of round ``now`` and those ahead; jobs that arrive in it have no effect on them."""
        last = min(self._horizon, now + self._ahead)
        n = last - now + 1
        iterate = np.zeros((*self._size.shape, n))
        kept = self._iterate[:, :, now - self.first :][:, :, :n]
        iterate[:, :, : kept.shape[2]] = kept
        prices = np.zeros_like(iterate)
        self.past.forget(now - self._forecast.reach)
        expected = self._forecast.scenarios(now, last, self.past)
        if expected is not None:
            supply = calendars.pool_free(now, n) - self._size[:, :, None] * self.slack.of_window(n)
            step = self._step * self._mean_density(expected.tasks)
            prices = joint_dual_prices(
                iterate, supply, self._size, expected.rows, expected.rounds - now, expected.weights, expected.tasks,
                steps=self._steps, step=step, tail=self._tail, grain=self._grain,
            )  # fmt: skip
        self.first, self._iterate, self.prices = now, iterate, prices
        self.prefix = added_up(prices, self._tail)

    def learn(self, arrival: int, known: Known) -> None:
        """Take an arrival into the past: from the next round on it may teach."""
        self.past.add(arrival, known)
        first = np.flatnonzero(known.options.shape == 0)
        if first.size:
            o = int(first[0])
            d, total, worth = int(known.usual[o]), known.options.total[o], float(known.options.worth[o])
            if d < known.values.size:
                self._density += self._density_of(worth * known.values[d:].max(), d, total)
                self._n_densities += 1

    def idle_worth(self, now: int, calendars: Calendars) -> float:
        """Return the value of the free resources of round ``now`` at its prices, credits."""
        if now - self.first >= self.prices.shape[2]:
            return 0.0
        return float((self.prices[:, :, now - self.first] * calendars.pool_free(now, 1)[:, :, 0]).sum())

    def _density_of(self, value: float, duration: int, total: NDArray[Any]) -> NDArray[np.float64]:
        """Return a value per round and part of each resource, of the one that the job takes most of.

        In parts of each resource, and not of the cluster: so that a single one is not rounded.
        """
        largest = (total * self._share).max(axis=1)
        density: NDArray[np.float64] = np.divide(
            value, largest * duration, out=np.zeros(self._all.size), where=self._all > 0
        )
        return density

    def _mean_density(self, tasks: OptionColumns) -> NDArray[np.float64]:
        """Return rho_k, the mean value per part of k and round of past arrivals; without any, of what is expected.

        On identical nodes it is then one credit, as in `Curve`.
        """
        if self._n_densities:
            return self._density / self._n_densities
        if self._size.size == 1:
            return np.ones(1)
        found = []
        for j in range(min(EXPECTED_FIRST, tasks.shortest.size)):
            o, v = int(tasks.begins[j]), int(tasks.offsets[j])
            v += int(tasks.durations[o] - tasks.shortest[j])
            if o < tasks.begins[j + 1] and v < tasks.offsets[j + 1]:
                value = float(tasks.worths[o] * tasks.values[v])
                found.append(self._density_of(value, int(tasks.durations[o]), tasks.totals[o]))
        mean: NDArray[np.float64] = np.mean(found, axis=0) if found else 1.0 / np.maximum(self._all, 1.0)
        return mean
