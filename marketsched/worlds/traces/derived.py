"""Figures derived from recorded tables: how regular recurring jobs are, and the types of pods.

A pod of the openb trace has neither user nor job: what it asks for (:data:`JOB_TYPE`) is its type. Its rows thin
out backwards in time, so arrival rates are those of the last 30 days (:func:`last_days`).
"""

from __future__ import annotations

import pandas as pd

JOB_TYPE = ("cpu_milli", "memory_mib", "num_gpu", "gpu_milli", "qos")


def last_days(pods: pd.DataFrame, days: float = 30.0) -> pd.DataFrame:
    """Return the pods created in the last ``days`` days of the file."""
    recent: pd.DataFrame = pods.loc[pods["creation_time"] > pods["creation_time"].max() - days * 86_400]
    return recent


def regularity(jobs: pd.DataFrame) -> pd.DataFrame:
    """Return how regularly each recurring job of the trace ``google-jobs`` is submitted, one row each, sorted.

    Jobs with ``submit_s`` 0, which were there before the trace starts, are left out. Columns: ``user, group``;
    ``n_runs`` (int64, submissions); ``period_s`` (median gap, seconds); ``regular_share`` (share of gaps within 10 % of
    the period); ``deviation_s`` (median of ``|gap - period|``). NaN with fewer than two runs.
    """
    runs = jobs.loc[jobs["submit_s"] > 0, ["user", "group", "submit_s"]]
    groups = runs.groupby(["user", "group"])
    n_runs = groups.size().rename("n_runs")
    gaps = groups["submit_s"].diff().dropna()
    code = groups.ngroup()[gaps.index]
    period = gaps.groupby(code).median()
    away = (gaps - code.map(period)).abs()
    measures = pd.DataFrame(
        {
            "period_s": period,
            "regular_share": (away <= 0.1 * code.map(period)).groupby(code).mean(),
            "deviation_s": away.groupby(code).median(),
        }
    )
    table = n_runs.reset_index()
    return table.join(measures)
