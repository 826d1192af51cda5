"""Load and prices of a cluster over time: a column for each resource, a line for each pool."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, PercentFormatter

from marketsched.results.panels import INK, MUTED, look, short

MOST_RESOURCES = 4  # columns; those that are used most
SMOOTHED = 200  # points of a line at most: more rounds are averaged


def pools_figure(pools: pd.DataFrame, *, title: str, round_seconds: float | None = None) -> Figure:
    """Draw the share of each pool in use, and its price if any is above 0, by resource.

    Parameters
    ----------
    pools : DataFrame
        As `marketsched.agents.cluster_log.ClusterLog.table` makes it.
    title : str
        The headline.
    round_seconds : float, optional
        Length of a round; None: time is in rounds.
    """
    names = list(dict.fromkeys(pools["pool"]))
    used = pools.groupby("resource", sort=False)[["used", "size"]].sum()
    resources = (used["used"] / used["size"]).sort_values(ascending=False).index[:MOST_RESOURCES].tolist()
    priced = bool(pools["price"].gt(0).any())
    figure = Figure(figsize=(12, 6.4 if priced else 3.8), facecolor="white")
    panels = np.asarray(figure.subplots(1 + priced, len(resources), sharex=True, squeeze=False))
    top, bottom, names_at = (0.83, 0.09, 0.935) if priced else (0.72, 0.15, 0.89)
    figure.subplots_adjust(left=0.065, right=0.985, top=top, bottom=bottom, wspace=0.25, hspace=0.16)
    figure.text(0.012, 0.975, title, fontsize=16, fontweight="bold", va="top", color=INK)
    hours = 1.0 if round_seconds is None else round_seconds / 3600
    for column, resource in enumerate(resources):
        load = panels[0, column]
        for place, pool in enumerate(names):
            rows = pools[(pools["pool"] == pool) & (pools["resource"] == resource)]
            if len(rows):
                _line(load, rows["round"] * hours, rows["used"] / rows["size"], place)
            if len(rows) and priced:
                _line(panels[1, column], rows["round"] * hours, rows["price"], place)
        lost = _fragmented(pools[pools["resource"] == resource])
        if lost is not None:
            load.plot(*_thinned(lost.index.to_numpy() * hours, lost.to_numpy()), color=MUTED, linewidth=1, alpha=0.8)
        load.set_title(resource, fontsize=12, color=INK, loc="left")
        load.set_ylim(0, 1.02)
        load.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
        if priced:
            panels[1, column].set_ylim(bottom=0)
            panels[1, column].yaxis.set_major_formatter(FuncFormatter(short))
            panels[1, 0].set_ylabel("price, credits a unit and round")
        panels[-1, column].set_xlabel("round" if round_seconds is None else "hours")
    panels[0, 0].set_ylabel("in use")
    handles = [Line2D([], [], linewidth=2, label=name, **look(place)) for place, name in enumerate(names)]
    if pools["fragmented"].notna().any():
        handles.append(Line2D([], [], color=MUTED, linewidth=1, label="of what is free, in fragments"))
    style = {"frameon": False, "fontsize": 11, "handlelength": 1.8, "columnspacing": 1.1}
    figure.legend(handles=handles, loc="upper left", bbox_to_anchor=(0.005, names_at), ncols=len(handles), **style)
    return figure


def _fragmented(rows: pd.DataFrame) -> pd.Series[float] | None:
    """Return, of what is free in all pools, the share in fragments, by round; None: of this resource nothing is."""
    known = rows[rows["fragmented"].notna()]
    if known.empty:
        return None
    free = known["size"] - known["used"]
    lost = (free * known["fragmented"]).groupby(known["round"]).sum()
    shares = lost / free.groupby(known["round"]).sum().replace(0.0, np.nan)
    return shares.reindex(sorted(rows["round"].unique()))  # a gap where nothing is free


def _line(panel: Axes, times: pd.Series[float], values: pd.Series[float], place: int) -> None:
    panel.plot(*_thinned(times.to_numpy(), values.to_numpy()), linewidth=1.4, **look(place))


def _thinned(times: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return means of as many rounds as leave at most `SMOOTHED` points."""
    each = -(-times.size // SMOOTHED)
    starts = np.arange(0, times.size, each)
    counts = np.diff(np.append(starts, times.size))
    return np.add.reduceat(times, starts) / counts, np.add.reduceat(values, starts) / counts
