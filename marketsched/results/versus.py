"""One mechanism against another, owner by owner: who waits less or longer, and who gets less of its own value.

Waits are compared over the jobs that start under both: a mechanism that drops jobs which would wait long would seem to
let its owners wait less otherwise.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from marketsched.results.paired_statistics import CONFIDENCE, student_half

FEW = 3  # seeds, below which nothing is claimed
SAME = 1e-9  # smaller changes are rounding
CHANGES = ("wait_rounds", "own")
COLUMNS = ("owner", "jobs", "both_start", *(f"{place}_{name}" for name in CHANGES for place in ("first", "second")))


def paired_owners(first: pd.DataFrame, second: pd.DataFrame, offered: NDArray[np.float64]) -> pd.DataFrame:
    """Return a row for each owner of one market that two mechanisms play, in the order of their first jobs.

    Parameters
    ----------
    first, second : DataFrame
        Tables ``jobs`` of the two, of the same jobs in the same order, with columns ``owner, arrival, start, value``.
    offered : ndarray, shape (n_jobs,)
        The largest value that each job can have, credits.

    Returns
    -------
    DataFrame
        Columns `COLUMNS` and ``gain``. ``jobs`` counts those that arrived, ``both_start`` those that start under both;
        ``first_wait_rounds`` and ``second_wait_rounds`` are means over the latter, NaN where there are none;
        ``first_own`` and ``second_own`` are the value of the owner's jobs over all that was offered, ``gain`` the first
        value less the second, credits.
    """
    arrival, one, other = (
        table[name].astype("Float64").to_numpy(np.float64, na_value=np.nan)
        for table, name in ((first, "arrival"), (first, "start"), (second, "start"))
    )
    there = ~np.isnan(arrival)
    both = ~np.isnan(one) & ~np.isnan(other)
    figures = pd.DataFrame(
        {
            "jobs": 1,
            "both_start": both.astype(np.int64),
            "first": np.where(both, one - arrival, 0.0),
            "second": np.where(both, other - arrival, 0.0),
            "offered": offered,
            "first_value": first["value"].to_numpy(),
            "second_value": second["value"].to_numpy(),
        }
    )[there]
    table = figures.groupby(first["owner"].astype(str).to_numpy()[there], sort=False).sum()
    with np.errstate(invalid="ignore", divide="ignore"):
        for place in ("first", "second"):
            table[f"{place}_wait_rounds"] = table[place] / table["both_start"]
            table[f"{place}_own"] = np.where(table["offered"] > 0, table[f"{place}_value"] / table["offered"], np.nan)
    table["gain"] = table["first_value"] - table["second_value"]
    return table.rename_axis("owner").reset_index()[[*COLUMNS, "gain"]]


def versus_table(pairs: pd.DataFrame, confidence: float = CONFIDENCE) -> pd.DataFrame:
    """Return what changes for each owner from the second mechanism to the first, over all seeds.

    Parameters
    ----------
    pairs : DataFrame
        As of `paired_owners`, of one mechanism and several seeds.
    confidence : float
        Of Student's interval of each mean, over seeds.

    Returns
    -------
    DataFrame
        One row an owner: columns `COLUMNS`, means over seeds, and the differences ``wait_rounds`` and ``own``, first
        less second, paired seed by seed, with ``_low`` and ``_high``; NaN where there is none, or one seed alone.
    """
    changes = pd.DataFrame({name: pairs[f"first_{name}"] - pairs[f"second_{name}"] for name in CHANGES})
    by_owner = pairs["owner"].to_numpy()
    found = pairs.groupby(by_owner, sort=False)[list(COLUMNS[1:])].mean()
    grouped = changes.groupby(by_owner, sort=False)
    mean, seeds = grouped.mean(), grouped.count()
    half = student_half(grouped.std(), seeds, confidence)
    for name in CHANGES:
        found[name], found[f"{name}_low"] = mean[name], mean[name] - half[name]
        found[f"{name}_high"] = mean[name] + half[name]
    return found.rename_axis("owner").reset_index()


def directions(table: pd.DataFrame, name: str) -> NDArray[np.int64]:
    """Return for each owner whether its change of ``name`` is clear of 0: 1 up, -1 down, 0 none or unknown.

    Parameters
    ----------
    table : DataFrame
        As of `versus_table`.
    name : {"wait_rounds", "own"}
        The change that is asked for.

    Returns
    -------
    ndarray of int64, shape (n_owners,)
    """
    up, down = table[f"{name}_low"] > SAME, table[f"{name}_high"] < -SAME
    return up.to_numpy().astype(np.int64) - down.to_numpy().astype(np.int64)
