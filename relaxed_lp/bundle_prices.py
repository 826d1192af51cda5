r"""Bundles at posted prices: the menu of the stochastic mechanism, (24)-(25).

A bundle is a run of consecutive rounds :math:`T_k` on up to :math:`2 c_{max}` nodes, sold per node at
a price :math:`q_k`, whatever part of it a task uses:

.. math:: p(s,c,d) = c \min\{q_k : k \text{ open}, [s, s+d-1] \subseteq T_k\}, \qquad +\infty
   \text{ if there is none} \qquad (24)

A task of weight w takes w c of the minimiser (the smallest k among equals); a bundle closes once
:math:`c_{max}` is taken. All tasks of one job see the same open bundles, so no more than
:math:`2 c_{max}` of a bundle is ever sold. Prices are monotone in c, in d and in time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from marketsched.mechanisms.limits import MarketLimits
from marketsched.mechanisms.memory import check_memory
from marketsched.mechanisms.menu import WelfareCertificate
from marketsched.mechanisms.posted.run_certificate import WelfareLedger

OPEN = np.iinfo(np.int64).max  # the commit at which an open bundle closed


@dataclass(frozen=True, slots=True)
class _BundleQuote:
    """The bundles that were open at a job's submission, to charge it later."""

    menu: BundlePricing
    concurrency: int  # nodes
    commits: int  # how many plans had been taken by then

    def price(self, start: int, duration: int) -> float:
        """Return the price of (start, duration) in credits.

        A run that no bundle was on sale for, which only a false report brings, costs V_max, or what
        the most expensive bundle would cost if that is more: then it cannot pay.
        """
        menu = self.menu
        covering = (menu.first <= start) & (menu.last >= start + duration - 1) & (menu.closed_at > self.commits)
        if covering.any():
            return float(self.concurrency * menu.prices[covering].min())
        return max(menu.max_value, self.concurrency * float(menu.prices.max()))


class BundlePricing:
    """The bundle menu at work: what is open, what is taken, (24). A `RelaxedAlgorithm`.

    Parameters
    ----------
    first, last : ndarray of int, shape (n_bundles,)
        Rounds of each bundle, both included.
    prices : ndarray of float, shape (n_bundles,)
        q_k, credits per node.
    supply : float
        C', nodes.
    limits : MarketLimits
        Of the market.
    figures : mapping
        What `statistics` is to tell beside its own counts.
    """

    def __init__(
        self,
        first: NDArray[np.int64],
        last: NDArray[np.int64],
        prices: NDArray[np.float64],
        supply: float,
        limits: MarketLimits,
        figures: dict[str, Any] | None = None,
    ) -> None:
        self.supply = supply
        self.first, self.last, self.prices = first, last, prices
        self.max_value = limits.max_value
        self.closed_at = np.full(first.size, OPEN)  # (n_bundles,), number of the plan that closed it
        self.used = np.zeros(first.size)  # (n_bundles,), expected nodes taken
        self._figures = dict(figures or {})
        self._max_concurrency = limits.max_concurrency
        self._commits = 0
        rounds = limits.horizon + 2 * limits.max_duration + 2
        check_memory(f"the usage of {rounds} rounds", 2 * rounds * 8.0, "a smaller horizon or max_duration")
        self._usage = np.zeros(rounds)

    def price_table(
        self, concurrency: int, first_start: int, n_starts: int, n_durations: int
    ) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Return prices (n_starts, n_durations), +inf where not on sale, and the longest on sale (n_starts,)."""
        table = np.full((n_starts, n_durations), np.inf)
        _price_table_kernel(self.first, self.last, self.prices, self.closed_at, first_start, concurrency, table)
        return table, np.isfinite(table).sum(axis=1)

    def quote(self, concurrency: int, first_start: int, last_start: int) -> _BundleQuote:
        """Return the current prices, to charge later."""
        return _BundleQuote(self, concurrency, self._commits)

    def commit(
        self,
        concurrency: int,
        starts: NDArray[np.int64],
        durations: NDArray[np.int64],
        weights: NDArray[np.float64],
    ) -> None:
        """Record the tasks of a plan; ``starts`` of -1 are not run. Bundles that are full now close."""
        self._commits += 1
        _commit_kernel(
            self.first,
            self.last,
            self.prices,
            self.closed_at,
            self.used,
            self._usage,
            self._commits,
            float(self._max_concurrency),
            concurrency,
            starts,
            durations,
            weights,
        )

    def usage(self, first: int, count: int) -> NDArray[np.float64]:
        """Return Y_t of rounds ``first .. first + count - 1``, nodes."""
        part = self._usage[first : first + count]
        return np.concatenate([part, np.zeros(count - part.size)])

    def slot_prices(self, first: int, count: int) -> NDArray[np.float64]:
        """Return the price of one node for each of ``count`` rounds alone; +inf: no bundle is open."""
        return self.price_table(1, first, count, 1)[0][:, 0]

    def certificate(self, ledger: WelfareLedger) -> WelfareCertificate | None:
        """Return None: what is proven, (26), is an expectation over the laws, not a bound on one run."""
        return None

    def statistics(self) -> dict[str, Any]:
        """Return how many bundles there are and are still open, and what is known of their making."""
        still_open = int((self.closed_at == OPEN).sum())
        return {"bundles": int(self.first.size), "bundles_open": still_open, **self._figures}


@njit(cache=True)
def _price_table_kernel(first, last, bundle_prices, closed_at, first_start, concurrency, table):  # type: ignore[no-untyped-def]
    """Fill ``table`` with (24).

    For each start, an open bundle is entered at the longest duration that it allows; a suffix minimum
    over the durations does the rest.
    """
    n_starts, n_durations = table.shape
    if n_durations == 0:
        return
    for k in range(first.size):
        if closed_at[k] != OPEN or last[k] < first_start or first[k] >= first_start + n_starts:
            continue
        price = concurrency * bundle_prices[k]
        for i in range(max(0, first[k] - first_start), min(n_starts, last[k] - first_start + 1)):
            longest = min(n_durations, last[k] - (first_start + i) + 1)
            table[i, longest - 1] = min(table[i, longest - 1], price)
    for i in range(n_starts):
        for d in range(n_durations - 2, -1, -1):
            table[i, d] = min(table[i, d], table[i, d + 1])


@njit(cache=True)
def _commit_kernel(  # type: ignore[no-untyped-def]
    first,
    last,
    bundle_prices,
    closed_at,
    used,
    usage,
    number,
    limit,
    concurrency,
    starts,
    durations,
    weights,
):
    """Give each task to the cheapest open bundle that covers it; then close those that are full."""
    for i in range(starts.size):
        if starts[i] < 0 or weights[i] <= 0.0:
            continue
        end = starts[i] + durations[i]
        for t in range(starts[i], min(end, usage.size)):
            usage[t] += weights[i] * concurrency
        chosen = -1
        for k in range(first.size):
            covers = closed_at[k] == OPEN and first[k] <= starts[i] and last[k] >= end - 1
            if covers and (chosen < 0 or bundle_prices[k] < bundle_prices[chosen]):
                chosen = k
        if chosen >= 0:
            used[chosen] += weights[i] * concurrency
    for k in range(first.size):
        if closed_at[k] == OPEN and used[k] >= limit:
            closed_at[k] = number
