"""How long jobs waited, by class and owner: waits and bounded slowdown of one market.

The bounded slowdown of a job that was completed is

    max(1, (wait + run) / max(run, 10 s)),

with wait and run in whole rounds of the market, so that in rounds of 10 s or more the bound never binds. Source:
D. Feitelson and L. Rudolph, *Metrics and benchmarking for parallel job scheduling*, JSSPP 1998.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import NDArray

SHORTEST_S = 10.0
COLUMNS = ("by", "name", "jobs", "started", "completed", "wait_rounds", "bounded_slowdown", "paid", "value")


def waits_table(jobs: pd.DataFrame, round_seconds: float | None = None) -> pd.DataFrame:
    """Return waits of all jobs, of each class if jobs have one, and of each owner; without those of a lead-in.

    Parameters
    ----------
    jobs : DataFrame
        The table ``jobs`` of a market.
    round_seconds : float, optional
        Length of a round; None: 10 s.

    Returns
    -------
    DataFrame
        Columns `COLUMNS`. ``by`` is ``all``, ``class`` or ``owner``; ``started`` counts jobs whose last run was not
        taken back (one that an eviction ended counts), ``wait_rounds`` is their mean, from the arrival to the start of
        that run, ``bounded_slowdown`` that over those that were completed; NaN if there is none. ``paid`` and ``value``
        are sums, credits.
    """
    jobs = jobs[counted(jobs)]
    start, arrival, end = _times(jobs)
    figures = pd.DataFrame(
        {
            "jobs": 1,
            "started": ~np.isnan(start),
            "completed": ~np.isnan(end),
            "wait_rounds": start - arrival,
            "bounded_slowdown": bounded_slowdowns(jobs, round_seconds),
            "paid": jobs["payment"] if "payment" in jobs else 0.0,
            "value": jobs["value"] if "value" in jobs else 0.0,
        }
    )
    names: dict[str, pd.Series[str]] = {"all": pd.Series("all", index=jobs.index)}
    if "class" in jobs:
        names["class"] = jobs["class"].astype(str)
    names["owner"] = jobs["owner"].astype(str)
    parts = []
    for by, of in names.items():
        grouped = figures.groupby(of.to_numpy())
        sums = grouped[["jobs", "started", "completed"]].sum().astype(np.int64)
        means, credits = grouped[["wait_rounds", "bounded_slowdown"]].mean(), grouped[["paid", "value"]].sum()
        table = sums.join(means).join(credits).rename_axis("name").reset_index()
        table.insert(0, "by", by)
        parts.append(table)
    return pd.concat(parts, ignore_index=True)[list(COLUMNS)]


def counted(jobs: pd.DataFrame) -> NDArray[np.bool_]:
    """Return whose waits count, shape (n_jobs,): not those of the lead-in of a window of a log."""
    return jobs["submit_s"].ge(0).to_numpy() if "submit_s" in jobs else np.ones(len(jobs), bool)


def bounded_slowdowns(jobs: pd.DataFrame, round_seconds: float | None = None) -> NDArray[np.float64]:
    """Return the bounded slowdown of each job, shape (n_jobs,); NaN unless it was completed. As `waits_table`."""
    shortest = SHORTEST_S / (round_seconds or SHORTEST_S)
    start, arrival, end = _times(jobs)
    return np.asarray(np.maximum(1.0, (end - arrival) / np.maximum(end - start, shortest)))


def _times(jobs: pd.DataFrame) -> list[NDArray[np.float64]]:
    """Return starts, arrivals and completions of jobs, NaN where there is none."""
    names = ("start", "arrival", "completion")
    found = (jobs[name].astype("Float64").to_numpy(np.float64, na_value=np.nan) for name in names)
    return [np.asarray(each, dtype=np.float64) for each in found]
