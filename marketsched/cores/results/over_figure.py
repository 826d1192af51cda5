"""Figures of sweeps, in the manner of Figs. 3, 6 and 7 of the OgaSched paper.

Every function takes a tidy table with one row per value, seed and policy: ``value, seed, policy, slots,
reward, reference`` (NaN where the reference is not known), and the measures that are drawn.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import matplotlib
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter, MaxNLocator, NullFormatter

from marketsched.results.paired_statistics import ratio, spread
from marketsched.results.panels import GREY, INK, MUTED, STYLE, frame, legend, look, short

LOWEST = -1.5  # of the axis of shares of y*


def sweep_figure(table: pd.DataFrame, *, key: str, title: str, goal: str = "reward", star: str = "y*") -> Figure:
    """Draw the effect of a parameter (Fig. 3: instances, ports, contention): reward, and ratios to the others.

    Left the reward of all slots, mean over seeds, with one standard deviation; right the ratio of
    the first policy's mean to each other one's, and of y* to the same as a diamond. 12 x 4.6 inches, as all here.
    """
    labels, values = _order(table)
    with matplotlib.rc_context(STYLE):
        figure, (left, right) = _frame(title, f"{table['seed'].nunique()} seeds for each value")
        for place, label in reversed(list(enumerate(labels))):
            own = [spread(table.loc[_rows(table, label, value), "reward"]) for value in values]
            x = np.arange(len(values)) + _shift(place, len(labels))
            width = 2.4 if place == 0 else 1.5
            left.errorbar(x, [s.mean for s in own], yerr=[_finite(s.deviation) for s in own], linewidth=width,
                          elinewidth=1, marker="o", markersize=4, **look(place))  # fmt: skip
        right.axhline(1.0, color=GREY, linewidth=1)
        for place, label in list(enumerate(labels))[1:]:
            _draw_ratios(right, table, label, values, place, len(labels))
        left.set_title(f"{goal} of all slots (bars: one standard deviation)", fontsize=12, loc="left")
        right.set_title(f"mean total of {labels[0]} over the others'", fontsize=12, loc="left")
        left.yaxis.set_major_formatter(FuncFormatter(short))
        for axes in (left, right):
            _values_across(axes, values, key)
        _legend(figure, labels, star=star if table["reference"].notna().any() else "")
    return figure


def gain_overhead_figure(
    table: pd.DataFrame, *, key: str, title: str, pair: Sequence[str] = ("gain", "overhead")
) -> Figure:
    """Draw means a slot of two measures by a parameter (Fig. 6: contention), policy beside policy."""
    labels, values = _order(table)
    with matplotlib.rc_context(STYLE):
        figure, panels = _frame(title, f"mean of {table['seed'].nunique()} seeds; lines: one standard deviation")
        for axes, name in zip(panels, pair, strict=True):
            per_slot = table.assign(shown=table[name] / table["slots"])
            _bars(axes, per_slot, labels, values)
            axes.set_title(f"{name} a slot", fontsize=12, loc="left")
            _values_across(axes, values, key)
        _legend(figure, labels, bars=True)
    return figure


def utility_figure(table: pd.DataFrame, *, title: str) -> Figure:
    """Draw the reward of all slots by the kind of utility (Fig. 7), on a log scale where all are positive.

    At the right the same as shares of y*, cut off far below zero.
    """
    labels, values = _order(table)
    with matplotlib.rc_context(STYLE):
        figure, (left, right) = _frame(title, f"mean of {table['seed'].nunique()} seeds; lines: one standard deviation")
        _bars(left, table.assign(shown=table["reward"]), labels, values)
        means = table.groupby(["value", "policy"])["reward"].mean()
        if (means > 0).all():
            left.set_yscale("log")
            left.yaxis.set_minor_formatter(NullFormatter())
        left.set_title("reward of all slots", fontsize=12, loc="left")
        best = table["reference"].to_numpy()
        shares = np.divide(table["reward"], best, out=np.full(len(table), np.nan), where=best > 0)
        _bars(right, table.assign(shown=shares), labels, values, decimals=2)
        right.axhline(1.0, color=INK, linewidth=1.2, linestyle=(0, (1, 1.5)))
        low = np.nanmin([0.0, *table.assign(s=shares).groupby(["value", "policy"])["s"].mean()])
        right.set_ylim(max(1.25 * low, LOWEST), max(1.2, 1.25 * np.nanmax([1.0, *shares])))
        right.set_title("as a share of y*, the best fixed allocation", fontsize=12, loc="left")
        for axes in (left, right):
            _values_across(axes, values, "utility")
        _legend(figure, labels, bars=True)
    return figure


def _draw_ratios(axes: Axes, table: pd.DataFrame, label: str, values: Sequence[Any], place: int, n: int) -> None:
    """Draw ratios of mean totals, and of y* over the same policy as diamonds; none where one is not positive."""
    lead = table["policy"].iloc[0]
    earned = "earned" if "earned" in table else "reward"
    means = table.groupby(["value", "policy"])[list(dict.fromkeys(("reward", "reference", earned)))].mean()
    x = np.arange(len(values)) + _shift(place, n)
    own = [means.loc[(value, label), "reward"] for value in values]
    leading = [ratio(means.loc[(value, lead), "reward"], below) for value, below in zip(values, own, strict=True)]
    best = [ratio(*(means.loc[(value, label), name] for name in ("reference", earned))) for value in values]
    axes.plot(x, leading, linewidth=1.5, marker="o", markersize=4, **look(place))
    axes.plot(x, best, "D", markersize=5.5, color=look(place)["color"], markerfacecolor="white")


def _bars(axes: Axes, table: pd.DataFrame, labels: Sequence[str], values: Sequence[Any], decimals: int = -1) -> None:
    """Draw a group of bars for each value, one for each policy, from column ``shown``."""
    width = 0.84 / len(labels)
    for place, label in enumerate(labels):
        found = [spread(table.loc[_rows(table, label, value), "shown"]) for value in values]
        x = np.arange(len(values)) + (place - (len(labels) - 1) / 2) * width
        means = [s.mean for s in found]
        axes.bar(x, means, width=0.92 * width, color=look(place)["color"], yerr=[_finite(s.deviation) for s in found],
                 error_kw={"elinewidth": 1, "ecolor": INK})  # fmt: skip
        for at, s in zip(x, found, strict=True) if decimals >= 0 else ():
            top = max(s.mean + _finite(s.deviation), 0.0)
            axes.annotate(f"{s.mean:.{decimals}f}", (at, top), xytext=(0, 3), textcoords="offset points", ha="center",
                          fontsize=9, color=MUTED, rotation=90, zorder=6,
                          bbox={"pad": 0.4, "color": "white"})  # fmt: skip
    axes.yaxis.set_major_formatter(FuncFormatter(short))


def _values_across(axes: Axes, values: Sequence[Any], key: str) -> None:
    axes.set_xticks(range(len(values)), [str(value) if isinstance(value, str) else f"{value:,g}" for value in values])
    axes.set_xlim(-0.6, len(values) - 0.4)
    axes.set_xlabel(key)
    if axes.get_yscale() == "linear":
        axes.yaxis.set_major_locator(MaxNLocator(6))


def _frame(title: str, about: str) -> tuple[Figure, list[Axes]]:
    return frame(2, title, about, left=0.065, right=0.985, bottom=0.13, wspace=0.16)


def _legend(figure: Figure, labels: Sequence[str], *, bars: bool = False, star: str = "") -> None:
    patches = [Patch(color=look(place)["color"], label=label) for place, label in enumerate(labels)] if bars else None
    best: dict[str, Any] = {"linestyle": "", "marker": "D", "color": INK, "markerfacecolor": "white"}
    more = [Line2D([], [], label=f"{star} over the same", **best)] if star else []
    legend(figure, labels, *more, handles=patches, columnspacing=1.3, handletextpad=0.5)


def _order(table: pd.DataFrame) -> tuple[list[str], list[Any]]:
    return table["policy"].drop_duplicates().tolist(), table["value"].drop_duplicates().tolist()


def _rows(table: pd.DataFrame, label: str, value: Any) -> Any:
    return (table["policy"] == label) & (table["value"] == value)


def _shift(place: int, n: int) -> float:
    """Return how far beside its value a policy is drawn: equal points lie on each other else."""
    return 0.3 * (place - (n - 1) / 2) / max(n, 1)


def _finite(x: float) -> float:
    return x if np.isfinite(x) else 0.0
