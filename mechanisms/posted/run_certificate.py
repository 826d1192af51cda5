r"""The certificate of a run from its reports alone: the run-time form of (22).

.. math:: OPT_{rel}(J')/2 \le \sum_{j \in J'} u_j + C' \sum_t (\hat p_t - r(0))           \qquad (22)

with final prices :math:`\hat p` and relaxed utilities :math:`u_j`. It needs a price floor of at most half the smallest
value per node-round of any job, and a hard cap that took no start of positive utility from a job of J'. Where durations
are hidden, :math:`OPT_{rel}` is the best over launch plans (12), which do not see them either: the best schedule in
hindsight can be worth more (gap G3). Valid but loose; the dual bound (29) is the figure to look at.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from marketsched.mechanisms.menu import WelfareCertificate
from marketsched.mechanisms.posted.launch_plan import Choice
from marketsched.mechanisms.sow import StatementOfWork


class WelfareLedger:
    """Running sums for the certificate, one entry per submission."""

    def __init__(self) -> None:
        self.n_jobs = 0
        self.in_j_prime = 0
        self.utility = 0.0  # sum of u_j over J'
        self.cap_bindings = 0  # jobs of J' that lost a start of positive utility to the hard cap
        self.lowest_density = np.inf  # smallest positive value per node-round of any report
        self.estimates = np.zeros(3, dtype=np.int64)  # looked at, of these positive, of these zeroed

    def enter(self, sow: StatementOfWork, last_value: float, longest: int, choice: Choice) -> None:
        """Record one plan.

        ``last_value`` is the report's smallest positive value in credits (0: none), ``longest`` its
        longest duration in rounds: together the lowest value per node-round it can mean.
        """
        self.n_jobs += 1
        self.estimates += choice.estimates
        if last_value > 0:
            self.lowest_density = min(self.lowest_density, last_value / (sow.concurrency * longest))
        if choice.follows_menu:
            self.in_j_prime += 1
            self.utility += choice.relaxed_utility
            self.cap_bindings += choice.cap_binds

    def totals(self) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Return utility and lowest density; and the jobs, those in J', those bound by the cap, and the estimates."""
        counts = (self.n_jobs, self.in_j_prime, self.cap_bindings, *self.estimates.tolist())
        return np.array([self.utility, self.lowest_density]), np.array(counts, dtype=np.int64)

    def put(self, sums: NDArray[np.float64], counts: NDArray[np.int64]) -> None:
        """Take totals as `totals` returns them."""
        self.utility, self.lowest_density = sums.tolist()
        self.n_jobs, self.in_j_prime, self.cap_bindings = counts[:3].tolist()
        self.estimates = counts[3:].copy()

    def certificate(
        self, supply: float, final_prices: NDArray[np.float64], base_prices: NDArray[np.float64]
    ) -> WelfareCertificate:
        """Return (22), for a supply of C' nodes.

        ``final_prices`` and ``base_prices``, shape (n_rounds,), are slot prices now, and before anything was committed:
        credits per node-round, from round 1 to the last one that a plan can reach (with hidden durations that is after
        T).
        """
        bound = 2 * (self.utility + supply * float((final_prices - base_prices).sum()))
        reasons = []
        if self.n_jobs and base_prices.max(initial=0.0) > self.lowest_density / 2 * (1 + 1e-9):
            reasons.append(
                f"the price floor {base_prices.max():g} exceeds half the smallest value per node-round "
                f"{self.lowest_density:g}"
            )
        if self.cap_bindings:
            reasons.append(f"the hard cap took a start of positive utility from {self.cap_bindings} jobs")
        return WelfareCertificate(
            bound, self.in_j_prime, self.n_jobs, not reasons, "; ".join(reasons), self.cap_bindings
        )
