"""Pools of a cluster in a comparison: what is in use, what lies in fragments, what each earns; means over seeds."""

from __future__ import annotations

import math
from collections.abc import Callable

import pandas as pd
from rich.text import Text

from marketsched.results.result import Result
from marketsched.results.views import WordTable, amount, percent, plain_table

POOLS = (  # what explains the table
    "of each pool the resource that is used most, and its devices, until the last birth; in fragments: free, and "
    "of no use to a job like those that ran before"
)


def pools_view(result: Result, whole: bool = False) -> list[Text | WordTable]:
    """Return a table of each pool's busiest resource and its devices, or of all.

    Parameters
    ----------
    result : Result
        Of kind ``mechanisms``, with a table ``pools``: jobs have shapes.
    whole : bool
        All resources, with their prices.
    """
    pools, names = result.tables["pools"], result.meta["mechanisms"]
    table = plain_table(*(_title(name) for name in names), first="mean of the seeds", room=10)
    for pool, own in pools.groupby("pool", sort=False):
        most = own.groupby("resource", sort=False)["in_use"].mean().idxmax()
        for resource, rows in own.groupby("resource", sort=False):
            if not (whole or resource == most or rows["fragmented"].notna().any()):
                continue
            means = rows.groupby("mechanism")[["in_use", "fragmented", "price", "income"]].mean().reindex(names)
            table.add_row(f"{pool}: {resource} in use", *_cells(means["in_use"], percent))
            if means["fragmented"].notna().any():
                table.add_row(f"{pool}: free {resource} in fragments", *_cells(means["fragmented"], percent))
            if whole and means["price"].notna().any():
                table.add_row(f"{pool}: price of {resource}, credits", *_cells(means["price"], amount))
        table.add_row(f"{pool}: income, credits", *_cells(means["income"], amount))
    head = "\nall resources of each pool" if whole else ""
    return [Text(head, style="dim"), table]


def _cells(values: pd.Series[float], write: Callable[[float], str]) -> list[str]:
    return [write(value) if math.isfinite(value) else "-" for value in values]


def _title(name: str) -> str:
    return name.replace(":", ":\n").replace("cluster-", "cluster-\n", 1)
