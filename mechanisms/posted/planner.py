r"""Planning on the owners' behalf: the announced menu and the resulting plan (Algorithm 2).

The announce step of a submission puts together the menu of the relaxed algorithm and the oracle's
failure estimates, zeroed up to the threshold :math:`\theta`; (3)-(4) then choose the launch plan, and
the relaxed algorithm is forced to take it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from marketsched.mechanisms.law import Law
from marketsched.mechanisms.limits import MarketLimits
from marketsched.mechanisms.mechanism import OfferedRun
from marketsched.mechanisms.menu import Menu, WelfareCertificate
from marketsched.mechanisms.posted.launch_plan import ZERO_TOLERANCE, Choice, Terms, choose_starts, tie_tolerance
from marketsched.mechanisms.posted.menu import announced_failures, announced_prices, check_menu
from marketsched.mechanisms.posted.oracle import FailureOracle
from marketsched.mechanisms.posted.oracle_in_use import OracleInUse
from marketsched.mechanisms.posted.relaxed import Quote, RelaxedAlgorithm
from marketsched.mechanisms.posted.run_certificate import WelfareLedger
from marketsched.mechanisms.sow import StatementOfWork


class Planner:
    """Menus, estimates and plans of one market.

    ``relaxed`` has the prices and takes the plans; the mechanism, not the planner, hands the oracle its events.
    ``threshold`` is theta of (13).
    """

    def __init__(self, relaxed: RelaxedAlgorithm, oracle: OracleInUse, limits: MarketLimits, threshold: float) -> None:
        self.relaxed = relaxed
        self._oracle = oracle
        self._limits = limits
        self.threshold = threshold
        self.tolerance = tie_tolerance(limits.max_value)
        self.ledger = WelfareLedger()

    def menu(self, concurrency: int, now: int) -> Menu:
        """Return the menu of a job of this width in round ``now``, shape (max_delay, max_duration)."""
        limits = self._limits
        check_menu(limits.max_delay, limits.max_duration)
        estimates = self._oracle.failure_table(concurrency)
        failures = announced_failures(estimates, self.threshold, now, limits.horizon)
        table = self.relaxed.price_table(concurrency, now, limits.max_delay, limits.max_duration)
        return Menu(concurrency, now, announced_prices(*table), failures)

    def plan(self, sow: StatementOfWork, law: Law, now: int) -> tuple[Choice, Quote | None]:
        """Choose the launch plan (3)-(4) at the menu of this moment, and force it on the relaxed algorithm.

        ``law`` is that of ``sow``. Returns the choice, and the quote that is charged; None: the job never runs.
        """
        choice = self._choose(sow, law, now)
        quote = self.quote_of(sow.concurrency, choice)
        self.relaxed.commit(sow.concurrency, law.spread(choice.starts), law.durations, law.probabilities)
        return choice, quote

    def quote_of(self, concurrency: int, choice: Choice) -> Quote | None:
        """Return the quote that a job of this width is charged by if its plan is taken now; None: it never runs."""
        launched = [start for start in choice.starts.tolist() if start >= 0]
        return self.relaxed.quote(concurrency, min(launched), max(launched)) if launched else None

    def _choose(self, sow: StatementOfWork, law: Law, now: int) -> Choice:
        choice, failures = self.preview(sow, now, law=law)
        self._oracle.probe(sow.concurrency, law, choice.starts, failures)
        last_value = self._limits.last_useful_completion(sow)
        lowest = float(sow.value(last_value)) if last_value > 0 else 0.0
        self.ledger.enter(sow, lowest, sow.span[1], choice)
        return choice

    def preview(
        self,
        sow: StatementOfWork,
        now: int,
        *,
        law: Law | None = None,
        oracle: FailureOracle | None = None,
    ) -> tuple[Choice, NDArray[np.float64]]:
        """Choose the launch plan (3)-(4) at the menu of this moment; record nothing.

        ``law`` is that of ``sow``, where it is at hand. ``oracle`` takes the place of the market's own.
        Returns the choice, and the failure probabilities it was made with, before thresholding.
        """
        law, limits = sow.law if law is None else law, self._limits
        first_start = int(law.arrivals[0])
        shortest, longest = sow.span
        last_value = limits.last_useful_completion(sow)
        n_starts = max(0, last_value - shortest - first_start + 1)
        # A job that is worth nothing when it can first start is looked at in no round, however far ahead it lies.
        rows = first_start - now + n_starts if n_starts else 1
        check_menu(rows, longest)
        values = sow.value.table(first_start, n_starts + longest)
        values[max(0, last_value + 1 - first_start) :] = 0.0
        prices, on_sale = self.relaxed.price_table(sow.concurrency, first_start, n_starts, longest)
        asked = self._oracle if oracle is None else oracle
        failures = asked.table(sow.concurrency, rows, longest)
        choice = choose_starts(
            law,
            Terms(values, prices, on_sale, failures),
            now=now,
            first_start=first_start,
            horizon=limits.horizon,
            threshold=self.threshold,
            tolerance=self.tolerance,
        )
        return choice, failures

    def runs(
        self, sow: StatementOfWork, now: int, choice: Choice, failures: NDArray[np.float64]
    ) -> Iterator[OfferedRun]:
        """Yield every run of a plan that `preview` chose, with the prices and failures it was chosen at."""
        quote = self.quote_of(sow.concurrency, choice)
        if quote is None:
            return
        law, horizon = sow.law, self._limits.horizon
        for g, (arrival, start) in enumerate(zip(law.group_arrivals.tolist(), choice.starts.tolist(), strict=True)):
            for k in range(law.offsets[g], law.offsets[g + 1]) if start >= 0 else ():
                d, share = int(law.durations[k]), float(law.probabilities[k])
                lost = 1.0 if start + d - 1 > horizon else float(failures[start - now, d - 1])
                lost = 0.0 if lost <= self.threshold + ZERO_TOLERANCE else lost
                yield OfferedRun(arrival, law.group_signals[g], d, share, start, float(quote.price(start, d)), lost)

    def certificate(self) -> WelfareCertificate | None:
        """Return the relaxed algorithm's certificate about the best welfare; None: nothing."""
        return self.relaxed.certificate(self.ledger)

    def statistics(self) -> dict[str, Any]:
        """Return counts about the estimates, and what relaxed algorithm and oracle say about themselves."""
        made, positive, zeroed = self.ledger.estimates.tolist()
        counts = {"estimates": made, "estimates_positive": positive, "estimates_zeroed": zeroed}
        return {**counts, **self.relaxed.statistics(), **self._oracle.statistics()}
