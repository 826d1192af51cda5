"""What each owner gets of its own: the value of its jobs that are done in time, as a share of all it came for.

Values of different owners need no common scale here, so that mechanisms compare also where there is no money.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import NDArray

FEWEST = 5  # jobs of an owner that means and quantiles over owners count
WORST = 0.1  # the quantile that is called the worst tenth
COLUMNS = ("owner", "jobs", "completed", "wait_rounds", "offered", "value", "own", "paid")
READ = ("owner", "arrival", "start", "outcome", "value", "payment")  # of the table ``jobs``
FIGURES = ("own", "own_q10", "own_worst")


def owners_table(jobs: pd.DataFrame, offered: NDArray[np.float64]) -> pd.DataFrame:
    """Return a row for each owner, in the order of their first jobs.

    Parameters
    ----------
    jobs : DataFrame
        The table ``jobs`` of a market, with the columns `READ` at least.
    offered : ndarray, shape (n_jobs,)
        The largest value that each job can have, credits.

    Returns
    -------
    DataFrame
        Columns `COLUMNS`. ``jobs`` counts those that arrived; ``offered``, ``value`` and ``paid`` are sums, credits;
        ``own`` is value over offered, NaN where nothing was offered; ``wait_rounds`` is a mean over jobs that started.
    """
    arrival, start = (
        jobs[name].astype("Float64").to_numpy(np.float64, na_value=np.nan) for name in ("arrival", "start")
    )
    there = ~np.isnan(arrival)
    figures = pd.DataFrame(
        {
            "jobs": 1,
            "completed": (jobs["outcome"] == "completed").to_numpy(dtype=np.int64),
            "offered": offered,
            "value": jobs["value"].to_numpy(),
            "paid": jobs["payment"].to_numpy(),
        }
    )[there]
    codes, owners = jobs.loc[there, "owner"].astype(str).factorize()
    table = figures.groupby(codes, sort=False).sum()
    waits = pd.Series((start - arrival)[there]).groupby(codes, sort=False).mean()
    with np.errstate(invalid="ignore", divide="ignore"):
        table["own"] = np.where(table["offered"] > 0, table["value"] / table["offered"], np.nan)
    table["wait_rounds"] = waits
    return table.set_axis(owners).rename_axis("owner").reset_index()[list(COLUMNS)]


def owners_figures(owners: pd.DataFrame) -> dict[str, float]:
    """Return the mean over owners of what each gets of its own, the worst tenth, and the worst owner; `FIGURES`.

    Counted are owners with `FEWEST` jobs or more; NaN where there are none.
    """
    own = owners.loc[owners["jobs"] >= FEWEST, "own"].dropna().to_numpy()
    if not own.size:
        return dict.fromkeys(FIGURES, np.nan)
    found = (own.mean(), np.quantile(own, WORST), own.min())
    return dict(zip(FIGURES, map(float, found), strict=True))
