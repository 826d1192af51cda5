r"""The mechanism at one moment, as an auditor sees it: menu, plans, and the truth about failures.

A report submitted at this moment only selects a concurrency and a launch plan (Section 4); what that
is worth depends on three things, and all of them can be asked for here: the prices that will be
charged, the estimates the plan is chosen with, and the true failure probabilities
:math:`f_\tau(s,c,d)`, by enumeration or from paths drawn for the question alone. Nothing is
recorded, and no stream of the mechanism is drawn from.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from marketsched.mechanisms.limits import MarketLimits
from marketsched.mechanisms.posted.exact_oracle import ExactOracle
from marketsched.mechanisms.posted.launch_plan import Choice
from marketsched.mechanisms.posted.menu import check_menu
from marketsched.mechanisms.posted.oracle import FailureOracle
from marketsched.mechanisms.posted.planner import Planner
from marketsched.mechanisms.posted.relaxed import RelaxedAlgorithm
from marketsched.mechanisms.posted.sample_paths import SamplePaths
from marketsched.mechanisms.sow import StatementOfWork


@dataclass(frozen=True, slots=True)
class Inspection:
    """The menu of a report submitted now; valid until the next event."""

    _planner: Planner
    _oracle: FailureOracle
    limits: MarketLimits
    now: int
    threshold: float  # theta

    @property
    def max_value(self) -> float:
        """V_max, credits."""
        return self.limits.max_value

    @property
    def relaxed(self) -> RelaxedAlgorithm:
        """What makes the prices."""
        return self._planner.relaxed

    @property
    def exact_estimates(self) -> bool:
        """Whether the mechanism's own oracle enumerates."""
        return self._oracle.exact

    def plan(self, sow: StatementOfWork) -> Choice:
        """Return the plan this report would get."""
        return self._planner.preview(sow, self.now)[0]

    def prices(
        self, concurrency: int, first_start: int, n_starts: int, n_durations: int
    ) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Return prices (n_starts, n_durations) and the longest duration on sale per start (n_starts,)."""
        check_menu(n_starts, n_durations)
        return self._planner.relaxed.price_table(concurrency, first_start, n_starts, n_durations)

    def charge(self, concurrency: int, start: int, duration: int) -> float:
        """Return the payment of a run from ``start`` of this length, on sale or not; credits."""
        return self._planner.relaxed.quote(concurrency, start, start).price(start, duration)

    def estimates(self, concurrency: int, n_starts: int, n_durations: int) -> NDArray[np.float64]:
        """Return the oracle's estimates of starts ``now + i``, not thresholded."""
        check_menu(n_starts, n_durations)
        return self._oracle.table(concurrency, n_starts, n_durations)

    def n_outcomes(self, at_most: float = np.inf) -> float:
        """Return how many joint outcomes an enumeration would meet at most; counted up to ``at_most``."""
        return self._oracle.n_outcomes(at_most)

    def exact_failures(self, concurrency: int, n_starts: int, n_durations: int) -> NDArray[np.float64]:
        """Return the true failure probabilities of starts ``now + i``, by enumeration, or raise TooLargeError."""
        check_menu(n_starts, n_durations)
        return ExactOracle.beside(self._oracle).table(concurrency, n_starts, n_durations)

    def fresh_paths(self, samples: int, rng: np.random.Generator) -> SamplePaths:
        """Draw paths of the earlier jobs that are independent of every estimate of the mechanism."""
        return self._oracle.fresh_paths(samples, rng)
