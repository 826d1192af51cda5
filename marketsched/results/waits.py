"""How long jobs waited, by class and owner: waits and bounded slowdown of one market.

The bounded slowdown of a job that was completed is

    max(1, (wait + run) / max(run, 10 s)),

with wait and run in whole rounds of the market, so that in rounds of 10 s or more the bound never binds. Source:
D. Feitelson and L. Rudolph, *Metrics and benchmarking for parallel job scheduling*, JSSPP 1998.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

SHORTEST_S = 10.0
COLUMNS = ("by", "name", "jobs", "started", "completed", "wait_rounds", "bounded_slowdown")


def waits_table(jobs: pd.DataFrame, round_seconds: float | None = None) -> pd.DataFrame:
    """Return waits of all jobs, of each class if jobs have one, and of each owner.

    Parameters
    ----------
    jobs : DataFrame
        The table ``jobs`` of a market.
    round_seconds : float, optional
        Length of a round; None: 10 s.

    Returns
    -------
    DataFrame
        Columns `COLUMNS`. ``by`` is ``all``, ``class`` or ``owner``; ``wait_rounds`` is the mean over jobs that
        started, ``bounded_slowdown`` that over those that were completed; NaN if there is none.
    """
    shortest = SHORTEST_S / (round_seconds or SHORTEST_S)
    start, arrival, end = (jobs[name].astype("Float64").to_numpy(np.float64, na_value=np.nan) for name in _TIMES)
    wait = start - arrival
    slowdown = np.maximum(1.0, (end - arrival) / np.maximum(end - start, shortest))
    done = ~np.isnan(end)
    figures = pd.DataFrame(
        {
            "jobs": 1,
            "started": ~np.isnan(start),
            "completed": done,
            "wait_rounds": wait,
            "bounded_slowdown": np.where(done, slowdown, np.nan),
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
        table = sums.join(grouped[["wait_rounds", "bounded_slowdown"]].mean()).rename_axis("name").reset_index()
        table.insert(0, "by", by)
        parts.append(table)
    return pd.concat(parts, ignore_index=True)[list(COLUMNS)]


_TIMES = ("start", "arrival", "completion")
