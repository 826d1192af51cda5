"""The tables of a comparison: one row per mechanism, every figure over paired runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from marketsched.config.promised_ratio import Promise
from marketsched.results.paired_statistics import ratio_of_means

BOOTSTRAP = 20_221  # seed of the resamples: a table drawn twice is the same table


def summary_table(runs: pd.DataFrame, mechanisms: Sequence[str], confidence: float) -> pd.DataFrame:
    """Return one row per mechanism.

    ``ratio_low`` and ``ratio_high`` enclose E[OPT] / E[welfare] as far as OPT is known: equal where
    every optimum is exact. ``interval_low`` and ``interval_high`` are the outer ends of the intervals of
    the two: they cover the sampling of runs on top. ``behind`` is one minus the share of the winner's
    mean welfare, with its interval; the winner has the highest mean welfare here.

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

    def ratio(above: Any, below: Any) -> Any:
        return ratio_of_means(above, below, confidence=confidence, rng=BOOTSTRAP)

    low, high = ratio(runs["opt_low"].to_numpy(), welfare), ratio(runs["opt_high"].to_numpy(), welfare)
    share = ratio(welfare, winner["welfare"].to_numpy())
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
        "welfare_share": welfare.mean() / top if top > 0 else np.nan,
        "revenue_share": revenue.mean() / top if top > 0 else np.nan,
        "behind": 1 - share.value,
        "behind_low": 1 - share.high,
        "behind_high": 1 - share.low,
        "exact_optima": int((runs["opt_kind"] == "exact").sum()),
        "seconds": runs["seconds"].mean(),
    }


def promises_table(promises: Mapping[str, Promise]) -> pd.DataFrame:
    """Return ``mechanism, promised_ratio, promise_holds, promise_conditions``, one row per mechanism."""
    return pd.DataFrame(
        [
            {
                "mechanism": name,
                "promised_ratio": np.nan if promise.alpha is None else promise.alpha,
                "promise_holds": promise.holds,
                "promise_conditions": promise.conditions,
            }
            for name, promise in promises.items()
        ]
    )
