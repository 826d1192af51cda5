"""Mechanisms on the same jobs: welfare, revenue, and E[OPT] / E[welfare] with intervals.

For each seed the best schedule in hindsight is known exactly where it can be found in time, and otherwise
enclosed (`Bracket`); the ratio of means is enclosed accordingly, and its interval covers the sampling of
the runs on top.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pandas as pd

from marketsched.config.named_mechanisms import NamedMechanism, named_mechanisms
from marketsched.config.promised_ratio import Promise
from marketsched.config.scenario import Scenario
from marketsched.mechanisms.errors import InvalidParameterError
from marketsched.mechanisms.realised import RealisedJobs
from marketsched.play.hindsight import Bracket, optimum_bracket, realised
from marketsched.results.paired_statistics import CONFIDENCE, Estimate, losses_seen, ratio_of_means
from marketsched.study.comparisons.comparing import Found, Tell

if TYPE_CHECKING:
    from marketsched.agents.setup import MarketSetup

COUNTED = (
    "welfare",
    "revenue",
    "owners_utility",
    "jobs",
    "completed",
    "dropped",
    "cancelled",
    "evicted",
    "utilisation",
)


class MechanismContest:
    """Mechanisms of one market; see `marketsched.study.comparisons.comparing.Contest`."""

    compared: ClassVar[str] = "mechanisms"

    def __init__(
        self, base: Scenario, mechanisms: Sequence[str], data: str | PathLike[str] | None, seconds: float
    ) -> None:
        self._base, self._data, self._seconds = base, data, seconds
        self._mechanisms = named_mechanisms(base, mechanisms)
        self._promises: dict[str, Promise] = {}
        self.labels = [each.label for each in self._mechanisms]
        self.steps = len(self.labels) + 1

    def play(self, seed: int, tell: Tell) -> Found:
        """Return one row per mechanism for the jobs of one seed."""
        found, jobs, capacity = [], None, 0
        for each in self._mechanisms:
            tell(f"seed {seed}, {each.label}")
            row, setup = self._played(each, seed)
            found.append(row)
            met = realised(setup)
            if jobs is not None and not _same(jobs, met):
                raise InvalidParameterError(
                    f"mechanisms {self.labels[0]!r} and {each.label!r} meet different jobs with seed {seed}",
                    legal="a workload that does not depend on the mechanism",
                )
            jobs, capacity = met, setup.capacity
        assert jobs is not None
        tell(f"seed {seed}, best schedule in hindsight")
        bracket = optimum_bracket(jobs, capacity, seconds=self._seconds)
        best = max(row["welfare"] for row in found)
        bracket = Bracket(
            max(bracket.low, best), max(bracket.high, best), bracket.kind
        )  # sums differ in the last digit
        about = {"scenario": self._base.name, "seed": seed}
        optimum = {"opt_low": bracket.low, "opt_high": bracket.high, "opt_kind": bracket.kind}
        return {"runs": [{**about, **row, **optimum} for row in found]}

    def _played(self, mechanism: NamedMechanism, seed: int) -> tuple[dict[str, Any], MarketSetup]:
        """Return the figures of one run, and its setup; note what is promised, once per mechanism."""
        from marketsched.agents.market import Market

        began = time.perf_counter()
        rng = np.random.default_rng(np.random.SeedSequence(seed))
        setup = mechanism.scenario.setup(rng, data=self._data)
        if mechanism.label not in self._promises:
            self._promises[mechanism.label] = mechanism.promise(setup)
        summary = Market(setup, rng, lookahead=0).run().summary
        row = {"mechanism": mechanism.label, **{name: summary[name] for name in COUNTED}}
        return {**row, "seconds": time.perf_counter() - began}, setup

    def summary(self, tables: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
        """Return one row per mechanism, with what is promised of it."""
        rows = [
            {
                "mechanism": label,
                "promised_ratio": np.nan if promise.alpha is None else promise.alpha,
                "promise_holds": promise.holds,
                "promise_conditions": promise.conditions,
            }
            for label, promise in self._promises.items()
        ]
        return summary_table(tables["runs"], self.labels, CONFIDENCE).merge(pd.DataFrame(rows), on="mechanism")

    def about(self) -> dict[str, Any]:
        """Return how long the exact optimum of a seed was allowed to take."""
        return {"optimum_seconds": self._seconds}


def summary_table(runs: pd.DataFrame, mechanisms: Sequence[str], confidence: float) -> pd.DataFrame:
    """Return one row per mechanism.

    ``ratio_low`` and ``ratio_high`` enclose E[OPT] / E[welfare] as far as OPT is known: equal where
    every optimum is exact. ``interval_low`` and ``interval_high`` are the outer ends of the intervals of
    the two: they cover the sampling of runs on top, and losses so rare that they may have been missed
    (``losses_seen``: runs that earned less than the bound on OPT; see `ratio_of_means`). ``behind`` is one
    minus the share of the winner's mean welfare, with its interval; the winner has the highest mean welfare here.

    Parameters
    ----------
    runs : DataFrame
        One row per seed and mechanism: ``seed, mechanism, welfare, revenue, jobs, completed, opt_low,
        opt_high, opt_kind, ...``.
    mechanisms : sequence of str
        In the order of the rows.
    confidence : float
        Of every interval.
    """
    by_name = {name: runs[runs["mechanism"] == name].sort_values("seed") for name in mechanisms}
    winner = max(mechanisms, key=lambda name: by_name[name]["welfare"].mean())
    return pd.DataFrame([_row(name, by_name[name], by_name[winner], confidence) for name in mechanisms])


def _row(name: str, runs: pd.DataFrame, winner: pd.DataFrame, confidence: float) -> dict[str, Any]:
    welfare, revenue = runs["welfare"].to_numpy(), runs["revenue"].to_numpy()
    best = runs["opt_low"].to_numpy(), runs["opt_high"].to_numpy()
    low, high = (ratio_of_means(opt, welfare, confidence=confidence, least=1.0) for opt in best)
    share = Estimate(1.0, 1.0, 1.0)
    if runs is not winner:
        share = ratio_of_means(welfare, winner["welfare"].to_numpy(), confidence=confidence)
    top = runs["opt_high"].mean()
    return {
        "mechanism": name,
        "runs": len(runs),
        "welfare": welfare.mean(),
        "revenue": revenue.mean(),
        "completed_share": runs["completed"].sum() / max(runs["jobs"].sum(), 1),
        "ratio_low": low.value,
        "ratio_high": high.value,
        "interval_low": low.low,
        "interval_high": high.high,
        "losses_seen": losses_seen(runs["opt_high"], welfare),
        "welfare_share": welfare.mean() / top if top > 0 else np.nan,
        "revenue_share": revenue.mean() / top if top > 0 else np.nan,
        "behind": 1 - share.value,
        "behind_low": 1 - share.high,
        "behind_high": 1 - share.low,
        "exact_optima": int((runs["opt_kind"] == "exact").sum()),
        "seconds": runs["seconds"].mean(),
    }


def _same(jobs: RealisedJobs, others: RealisedJobs) -> bool:
    names = ("births", "arrivals", "durations", "concurrency", "values")
    return all(np.array_equal(getattr(jobs, name), getattr(others, name)) for name in names)
