"""What owners get of their own value: a table of means with intervals, and the distribution drawn."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import matplotlib
import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from numpy.typing import NDArray
from rich.text import Text

from marketsched.results.owners import FEWEST, FIGURES
from marketsched.results.panels import GREY, STYLE, frame, legend, look
from marketsched.results.result import Result
from marketsched.results.views import Column, WordTable, table_of

TITLES = ("owners, mean", "worst tenth", "worst owner")
MOST_PANELS = 4


def owners_view(rows: Sequence[Mapping[str, Any]]) -> list[Text | WordTable]:
    """Return the table of a comparison: own, worst tenth and worst owner in %, with half the width of intervals.

    Parameters
    ----------
    rows : sequence of mapping
        The summary of a comparison; nothing is shown where no owner has enough jobs.
    """
    shown = [row for row in rows if math.isfinite(row.get("own", math.nan))]
    if not shown:
        return []
    by_load = "load" in shown[0]
    name = Column("load, mechanism", _load_and_name) if by_load else Column("", lambda row: str(row["mechanism"]))
    columns = [Column(title, partial(_percent, name=figure)) for title, figure in zip(TITLES, FIGURES, strict=True)]
    table = table_of(shown, name, columns)
    about = f"what owners get of the value of their own jobs, % (owners with {FEWEST} jobs or more, means over seeds)"
    return [Text(f"\n{about}", style="dim"), table]


def _load_and_name(row: Mapping[str, Any]) -> str:
    return f"{row['load']:g}, {row['mechanism']}"


def _percent(row: Mapping[str, Any], name: str) -> str:
    half = row[f"{name}_high"] - row[name]
    return f"{100 * row[name]:.1f}" + (f" ± {100 * half:.1f}" if math.isfinite(half) else "")


def tables_of_owners(result: Result) -> dict[str, pd.DataFrame]:
    """Return, by title, the tables of owners, purses and upgrades that a market has."""
    titles = {"owners": "Owners", "purses": "Purses, credits", "upgrades": "Jobs that became regular"}
    return {title: result.tables[name] for name, title in titles.items() if name in result.tables}


def owners_figure(owners: pd.DataFrame, title: str, about: str, named: Sequence[str]) -> Figure | None:
    """Draw what owners get of their own value, from the owner that gets least to the one that gets most.

    Parameters
    ----------
    owners : DataFrame
        As of `marketsched.results.owners.owners_table`, with columns ``mechanism``, ``seed`` and perhaps ``load``.
    title, about : str
        Headline and caption.
    named : sequence of str
        Mechanisms that have a colour, as in the other figures; the others are grey.

    Returns
    -------
    Figure or None
        12 inches wide, a panel a load; owners of all seeds together. None: too few owners have enough jobs.
    """
    counted = owners[(owners["jobs"] >= FEWEST) & owners["own"].notna()]
    if counted["owner"].nunique() < 2:
        return None
    everybody = list(dict.fromkeys(counted["mechanism"]))
    names = [name for name in everybody if name in named]
    grey = [name for name in everybody if name not in names]
    about += f"; grey: {len(grey)} more" if grey else ""
    loads = sorted(counted["load"].unique())[:MOST_PANELS] if "load" in counted else [None]
    lines = -(-len(names) // 3)
    with matplotlib.rc_context(STYLE):
        figure, panels = frame(len(loads), title, about, top=0.86 - 0.05 * lines, bottom=0.13, wspace=0.16)
        figure.set_size_inches(12, 5.6)
        for axes, load in zip(panels, loads, strict=True):
            part = counted if load is None else counted[counted["load"] == load]
            for name in grey:
                axes.plot(*_sorted(part, name), color=GREY, linewidth=0.8, alpha=0.7)
            for place, name in enumerate(names):
                axes.plot(*_sorted(part, name), linewidth=1.8, **look(place))
            axes.axvline(10, color=GREY, linewidth=0.8, linestyle=(0, (2, 2)))
            axes.set_xlim(0, 100)
            axes.set_ylim(0, 102)
            axes.set_xlabel("owners, from the one that gets least, %; dotted: the worst tenth")
            axes.set_title("value of an owner's own jobs that it gets, %" + (f", load {load:g}" if load else ""),
                           fontsize=12, loc="left")  # fmt: skip
            axes.grid(color=GREY, alpha=0.25, linewidth=0.6)
        legend(figure, names, rows=lines)
    return figure


def _sorted(owners: pd.DataFrame, name: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return places of owners under one mechanism, from the one that gets least, and what each gets, both in %."""
    own = np.sort(owners.loc[owners["mechanism"] == name, "own"].to_numpy())
    return 100 * (np.arange(own.size) + 0.5) / max(1, own.size), 100 * own
