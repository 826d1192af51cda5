"""Several windows of a log as the unit of intervals: their means, and how they are told."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from marketsched.results.paired_statistics import CONFIDENCE


def window_of(seed: Any, windows: int) -> Any:
    """Return the window that a seed is of, from 0: they take turns."""
    return seed % windows


def by_window(runs: pd.DataFrame, windows: int, by: Sequence[str]) -> pd.DataFrame:
    """Return the means of runs over the draws of each window, with the window in place of the seed.

    Parameters
    ----------
    runs : DataFrame
        One row per seed and ``by``.
    windows : int
        How many windows there are; 1: the runs as they are.
    by : sequence of str
        Columns whose values stay apart.

    Examples
    --------
    >>> runs = pd.DataFrame({"mechanism": "spot", "seed": [0, 1, 2, 3], "welfare": [1.0, 5.0, 3.0, 7.0]})
    >>> by_window(runs, 2, ["mechanism"])["welfare"].tolist()
    [2.0, 6.0]
    """
    if windows == 1:
        return runs
    found = runs.assign(seed=window_of(runs["seed"].to_numpy(), windows))
    how = {name: "mean" if found[name].dtype.kind in "fiub" else "first" for name in found if name not in (*by, "seed")}
    return found.groupby([*by, "seed"], sort=False, dropna=False).agg(how).reset_index()


def windows_words(runs: pd.DataFrame, asked: str, rival: str | None, meta: Mapping[str, Any]) -> str:
    """Say in how many windows a mechanism is ahead of the rival, and where the width of the interval comes from.

    Parameters
    ----------
    runs : DataFrame
        One row per seed and mechanism: ``welfare``, ``opt_high``, and ``first_come`` where that is the rival (None).
    asked, rival : str
        Mechanisms; rival None: first come at price 0.
    meta : mapping
        Of the result: ``windows``, where there are several.
    """
    windows = int(meta.get("windows", 1))
    if windows < 2:
        return ""
    own = runs[runs["mechanism"] == asked].set_index("seed")
    other = own["first_come"] if rival is None else runs[runs["mechanism"] == rival].set_index("seed")["welfare"]
    gain, bound = own["welfare"] - other.reindex(own.index), own["opt_high"]
    if gain.isna().any() or not bound.sum() > 0:
        return ""
    window = window_of(gain.index.to_numpy(), windows)
    ahead, draws = int((gain.groupby(window).mean() > 0).sum()), len(gain) // windows
    apart = 100 * (gain - gain.sum() / bound.sum() * bound) / bound.mean()  # from the ratio of means, points
    parts = apart.groupby(window)
    said = f"ahead in {ahead} of {windows} windows"
    if draws < 2:
        return said
    quantile = stats.t.ppf((1 + CONFIDENCE) / 2, windows - 1)
    whole = quantile * parts.mean().std() / math.sqrt(windows)
    drawn = quantile * math.sqrt(float(parts.var().mean()) / len(gain))
    return f"{said}; of the ± {np.sqrt(max(0.0, whole**2 - drawn**2)):.1f} is from weeks, {drawn:.1f} from drawn values"
