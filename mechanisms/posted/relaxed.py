r"""Interfaces of Algorithm 2: an algorithm for the relaxed problem, and a pricing.

In the relaxed problem supply binds in expectation. An algorithm for it is *menu-based*: it announces a price for
every (start, concurrency, duration) before it sees a report; and *receptive*: it records any plan that it is given in
which every launch is worth its price (docs/mathematics.md, Section 5).
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from marketsched.mechanisms.limits import MarketLimits
from marketsched.mechanisms.menu import WelfareCertificate
from marketsched.mechanisms.posted.run_certificate import WelfareLedger


class Quote(Protocol):
    """The prices of one moment, kept for a job until it is charged."""

    def price(self, start: int, duration: int) -> float:
        """Return what completing a run of ``duration`` rounds from ``start`` on costs, in credits.

        Always finite: also for a duration that was not on sale, which a false report may bring.
        """
        ...


class RelaxedAlgorithm(Protocol):
    """A menu-based, receptive algorithm for the relaxed problem, at work in one market: all that Algorithm 2 uses."""

    supply: float  # C', nodes

    def price_table(
        self, concurrency: int, first_start: int, n_starts: int, n_durations: int
    ) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Return the prices of a job of so many nodes, and the launches on sale: starts ``first_start + i``, rounds.

        Prices, shape (n_starts, n_durations) for durations ``k + 1``, are in credits, by the formula of the prices
        alone; non-decreasing along the durations. With them comes the longest duration on sale from each start, shape
        (n_starts,); 0: none.
        """
        ...

    def quote(self, concurrency: int, first_start: int, last_start: int) -> Quote:
        """Return the current prices of launches between two starts, to charge later."""
        ...

    def commit(
        self,
        concurrency: int,
        starts: NDArray[np.int64],
        durations: NDArray[np.int64],
        weights: NDArray[np.float64],
    ) -> None:
        """Record the tasks of a launch plan on so many nodes: the forced allocation of Algorithm 2.

        The arrays have shape (n_tasks,): rounds, a start of -1 for a task that is not run, and probabilities.
        """
        ...

    def usage(self, first: int, count: int) -> NDArray[np.float64]:
        """Return the committed expected usage Y_t of ``count`` rounds from ``first`` on, nodes."""
        ...

    def slot_prices(self, first: int, count: int) -> NDArray[np.float64]:
        """Return prices of ``count`` rounds from ``first`` on, credits a node for that round; +inf: not on sale."""
        ...

    def certificate(self, ledger: WelfareLedger) -> WelfareCertificate | None:
        """Return the bound on the best possible welfare from the plans so far; None: nothing."""
        ...

    def statistics(self) -> dict[str, Any]:
        """Return figures about itself for the run's summary, by name."""
        ...


class Pricing(Protocol):
    """A choice of relaxed algorithm, before it meets a market."""

    def open(self, supply: float, limits: MarketLimits) -> RelaxedAlgorithm:
        """Start the algorithm with relaxed supply ``supply`` (C', nodes) in a market of these sizes."""
        ...
