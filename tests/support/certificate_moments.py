"""Moments at which a certificate is asked for, and what the owner could really gain there, by brute force.

True failure probabilities, conditional laws and prices come from the plain implementation in ``reference``; the
best lie from trying all plans, or all reports of a large family. Nothing here uses the audit's own code.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from marketsched.mechanisms import (
    DeadlineValue,
    ExactOracle,
    PostedPriceMechanism,
    Requirement,
    StatementOfWork,
    TableValue,
)
from reference.bridge import mechanism, play, statement
from reference.failures import FailureTable
from reference.market import Settings
from reference.markets import Kind, SmallMarket, TrueJob, log_of, seeded_market
from reference.replay import Replayer

Plan = tuple[int | None, ...]  # start of each case of the true law


class _Reached(Exception):
    """The owner's turn has come."""


@dataclass
class Moment:
    """A market just before its last job submits: ``market`` the package's, the rest from the plain one."""

    market: PostedPriceMechanism
    truth: StatementOfWork
    settings: Settings
    committed: dict[int, float]
    failures: FailureTable

    def __post_init__(self) -> None:
        self._failure: dict[tuple[int, int, int], float] = {}

    @property
    def cases(self) -> list[tuple[int, Any]]:
        """The (arrival, signal) pairs of the true law."""
        return list(zip(self.truth.law.group_arrivals.tolist(), self.truth.law.group_signals, strict=True))

    def case_utility(self, case: int, start: int | None, concurrency: int) -> float:
        """Return what one case is worth if it starts so: true law, value and failures, the menu's formula price."""
        if start is None:
            return 0.0
        law, known, total = self.truth.law, self.settings, 0.0
        for k in range(law.offsets[case], law.offsets[case + 1]):
            d = int(law.durations[k])
            f = start + d
            cell = (start, concurrency, d)
            if cell not in self._failure:
                self._failure[cell] = self.failures.failure(start, concurrency, d)
            dead = f >= self.truth.birth + known.max_delay or f > known.horizon + 1
            value = 0.0 if dead else self.truth.value(f)
            net = value - known.formula_price(start, concurrency, d, self.committed)
            total += float(law.probabilities[k]) * (1 - self._failure[cell]) * net
        return total

    def utility(self, plan: Plan, concurrency: int) -> float:
        """Return u(L; c') of Section 4."""
        return math.fsum(self.case_utility(g, s, concurrency) for g, s in enumerate(plan))

    def starts(self, case: int) -> list[int | None]:
        """Return every start of a case that there is."""
        return [None, *range(self.cases[case][0], self.settings.horizon + 1)]

    def truthful(self) -> float:
        """Return what the truth is worth, planned by the mechanism itself."""
        return self.utility(self.selected(self.truth), self.truth.concurrency)

    def selected(self, report: StatementOfWork) -> Plan:
        """Return the plan a report selects for the cases of the truth."""
        chosen = self.market.inspect().plan(report).starts
        groups = [report.law.group_of(a, o) for a, o in self.cases]
        return tuple(None if g is None or chosen[g] < 0 else int(chosen[g]) for g in groups)

    def regret_over_plans(self) -> float:
        """Return the best gain over all concurrencies and all plans: each case apart, as the sum splits."""
        widths = range(self.truth.concurrency, self.settings.max_concurrency + 1)
        best = max(
            math.fsum(max(self.case_utility(g, s, c) for s in self.starts(g)) for g in range(len(self.cases)))
            for c in widths
        )
        return best - self.truthful()

    def regret_over_reports(self) -> float:
        """Return the best gain over the reports of `reports`."""
        plans = {(report.concurrency, self.selected(report)) for report in self.reports()}
        return max(self.utility(plan, c) for c, plan in plans) - self.truthful()

    def reports(self) -> Iterator[StatementOfWork]:
        """Yield the truth, and reports of every concurrency, many claimed durations and value curves."""
        truth, known = self.truth, self.settings
        yield truth
        times = range(truth.birth + 1, min(truth.birth + known.max_delay, known.horizon + 2))
        curves = [truth.value]
        curves += [TableValue({f: known.max_value}) for f in times]
        curves += [DeadlineValue(known.max_value * share, f) for f in times for share in (0.25, 1.0)]
        claims: list[Any] = list(product(range(1, known.max_duration + 1), repeat=len(self.cases)))
        if len(claims) > 16:
            claims = claims[:: len(claims) // 16]
        rows = [
            [Requirement(a, d, 1 / len(claim), o) for (a, o), d in zip(self.cases, claim, strict=True)]
            for claim in claims
        ]
        rows.append(list(truth.requirements))
        for c in range(truth.concurrency, known.max_concurrency + 1):
            for curve, law in product(curves, rows):
                yield StatementOfWork(truth.birth, c, curve, law)


def moment(seed: int, kind: Kind, *, oracle: Any = None, **changes: Any) -> Moment | None:
    """Return the moment before the last job of a seeded market submits; None if it has no earlier job.

    ``changes`` replace entries of the market's configuration. Without certain completions in the log
    (``external``), it can be written anew for them.
    """
    small = seeded_market(seed, kind)
    if len(small.jobs) < 2:
        return None
    config = small.config | changes
    return at_submission(SmallMarket(config, small.jobs, log_of(config, small.jobs)), small.jobs[-1], oracle)


def at_submission(small: SmallMarket, owner: TrueJob, oracle: Any = None) -> Moment:
    """Bring both implementations to the submission of ``owner``."""
    market = mechanism(small.config, oracle=ExactOracle() if oracle is None else oracle)

    def stop(job: TrueJob, sow: StatementOfWork) -> None:
        if job is owner:
            raise _Reached

    try:
        play(market, small.jobs, before=stop)
        raise AssertionError(f"{owner.name} never submits")
    except _Reached:
        if isinstance(oracle, ShakenOracle):
            oracle.shaken = True
    replayer = Replayer(small.config)
    for number, line in enumerate(small.lines, 1):
        if f'"submit", "job": "{owner.name}"' in line:
            break
        replayer.feed(number, line)
    plain = replayer.market
    replayer.clear_through(plain, owner.birth - 1)
    assert not [line for line in replayer.decisions if line["event"] == "error"]
    return Moment(market, statement(owner), plain.settings, dict(plain.committed), plain.failures())


class ShakenOracle(ExactOracle):
    """Exact for the earlier jobs; for the owner an error of up to ``mu`` in every estimate, the same at each query."""

    def __init__(self, mu: float, seed: int) -> None:
        super().__init__()
        self._mu, self._seed = mu, seed
        self.shaken = False

    def _fractions(self, concurrency: int, n_starts: int, n_durations: int) -> np.ndarray[Any, Any]:
        exact = super()._fractions(concurrency, n_starts, n_durations)
        if not self.shaken:
            return exact
        rng = np.random.default_rng([self._seed, self.now, concurrency, len(self._jobs)])
        errors = rng.uniform(-self._mu, self._mu, (self.limits.max_delay + 1, self.limits.max_duration))
        # Half of them as far off as allowed.
        errors = np.where(rng.random(errors.shape) < 0.5, np.sign(errors) * self._mu, errors)
        rows = np.minimum(np.arange(n_starts), self.limits.max_delay)
        return np.clip(exact + errors[rows][:, :n_durations], 0.0, 1.0)


def moments(seeds: Sequence[int], kind: Kind, **changes: Any) -> Iterator[Moment]:
    """Yield the moments of many seeds."""
    for seed in seeds:
        found = moment(seed, kind, **changes)
        if found is not None:
            yield found
