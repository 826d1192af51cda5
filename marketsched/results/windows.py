"""Several windows of a log as the unit of intervals: their means, and how they are told."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from marketsched.results.answers import Rival
from marketsched.results.paired_statistics import CONFIDENCE


def window_of(seed: Any, windows: int) -> Any:
    """Return the window that a seed is of, from 0: they take turns."""
    return seed % windows


def users_drawn(seed: Any, windows: int) -> Any:
    """Tell whether the users of a seed are drawn again where ``resample`` asks for it: every other draw of a window."""
    return (windows == 1) | (seed // windows % 2 == 1)


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


def lead_of(runs: pd.DataFrame, asked: str, rival: Rival) -> pd.Series[float]:
    """Return by how much more a mechanism delivers than its rival, credits, by seed; ``runs``: a row of each."""
    own = runs[runs["mechanism"] == asked].set_index("seed")
    if rival.column == "over_first_come":
        return own["welfare"] - own["first_come"]
    return own["welfare"] - runs[runs["mechanism"] == rival.labels[0]].set_index("seed")["welfare"].reindex(own.index)


def windows_words(runs: pd.DataFrame, asked: str, rival: Rival, meta: Mapping[str, Any]) -> str:
    """Say in how many windows a mechanism is ahead of the rival, where the width of the interval comes from, and more.

    Last the mean of as many further windows, sqrt(2) times as wide: with the same confidence if they are like these. On
    seven logs, whose second halves were not, it held for 83 % of the pairs of rules (`benchmarks/verdict_coverage.py`).

    Parameters
    ----------
    runs : DataFrame
        One row per seed and mechanism: ``welfare``, ``opt_high`` and ``first_come``.
    asked, rival : str, Rival
        Mechanisms.
    meta : mapping
        Of the result: ``windows``, where there are several.
    """
    windows = int(meta.get("windows", 1))
    if windows < 2:
        return ""
    gain = lead_of(runs, asked, rival)
    bound = runs[runs["mechanism"] == asked].set_index("seed")["opt_high"]
    if gain.isna().any() or not bound.sum() > 0:
        return ""
    window = window_of(gain.index.to_numpy(), windows)
    ahead, draws = int((gain.groupby(window).mean() > 0).sum()), len(gain) // windows
    apart = 100 * (gain - gain.sum() / bound.sum() * bound) / bound.mean()  # from the ratio of means, points
    parts, users = apart.groupby(window), ""
    said = f"ahead in {ahead} of {windows} windows"
    if draws < 2:
        return said
    quantile = stats.t.ppf((1 + CONFIDENCE) / 2, windows - 1)
    whole = quantile * parts.mean().std() / math.sqrt(windows)
    drawn = quantile * math.sqrt(float(parts.var().mean()) / len(gain))
    if meta.get("resample"):
        again = users_drawn(gain.index.to_numpy(), windows)
        each = [float(apart[own].groupby(window[own]).var().mean()) for own in (again, ~again)]
        part = quantile * math.sqrt(max(0.0, each[0] - each[1]) / windows)
        drawn = quantile * math.sqrt(each[1] / len(gain))
        users = f" ({part:.1f} from who submitted)"
    weeks = np.sqrt(max(0.0, whole**2 - drawn**2))
    said += f"; of the ± {weeks:.1f} is from weeks{users}, {drawn:.1f} from drawn values"
    lead, further = 100 * gain.sum() / bound.sum(), math.sqrt(2) * whole  # a second mean varies as this one does
    return f"{said}. In as many further weeks like these expect {lead - further:+.1f} to {lead + further:+.1f} points"
