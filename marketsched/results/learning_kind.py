"""Results of learning owners: their reports by day, the distance to equilibrium, and welfare."""

from __future__ import annotations

from typing import Any

import matplotlib
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from rich.console import Group
from rich.text import Text

from marketsched.results.kinds import ResultKind
from marketsched.results.panels import GREY, INK, MUTED, OKABE_ITO, STYLE
from marketsched.results.result import Result
from marketsched.results.views import plain_table

COLUMNS = {
    "truth_share": "tells the\ntruth",
    "factor": "reported /\ntrue value",
    "gain_of_truth": "truth would\nearn more",
    "distance": "distance to\nequilibrium",
    "welfare_share": "welfare /\nbound",
    "truthful_welfare_share": "the same,\nall truthful",
    "revenue_share": "revenue /\nbound",
}
LINES: tuple[Any, ...] = ("-", (0, (5, 2)), (0, (1, 1.5)), (0, (5, 2, 1, 2)))  # one per rule


class LearningKind(ResultKind):
    """Tables ``curves`` and ``runs``; one row of the summary per mechanism, rule and figure."""

    title = "market of learning owners"
    by = ("mechanism", "rule", "figure")

    def how_far(self, result: Result) -> str:
        return f"after {len(result.meta['seeds'])} of {result.meta.get('seeds_asked_for', 'all')} seeds"

    def view(self, result: Result) -> Group:
        meta = result.meta
        state = "" if result.complete else f", INTERRUPTED {result.how_far}"
        sizes = [f"{meta[name]} {name}" for name in ("owners", "nodes") if name in meta]
        sizes += [f"{meta['episodes']} days", f"{len(meta['seeds'])} seeds"]
        rules = ", ".join(result.summary["rule"].unique())
        head = Text(f"what owners learn to report ({rules}): {', '.join(sizes)}{state}", style="bold")
        table = plain_table(*COLUMNS.values(), room=10)
        for (mechanism, rule), own in result.summary.groupby(["mechanism", "rule"], sort=False):
            figures = own.set_index("figure")
            cells = [(figures["mean"][name], figures["high"][name]) for name in COLUMNS]
            label = _label(str(mechanism), str(rule), "," in rules)
            table.add_row(label, *(f"{mean:.3f}\n± {high - mean:.3f}" for mean, high in cells))
        remarks = (
            f"of the last {meta['learned']:.0%} of the days; ± half of {meta['confidence']:.0%} intervals over seeds",
            "truth would earn more, distance to a coarse correlated equilibrium: credits per owner and day",
            "bound: on the welfare of the best schedule of the day in hindsight",
        )
        return Group(head, table, *(Text(f"- {remark}") for remark in remarks))

    def figures(self, result: Result) -> dict[str, Figure]:
        return {"figure": learning_figure(result)}

    def summary_data(self, result: Result) -> dict[str, Any]:
        found: dict[str, Any] = {}
        several = result.summary["rule"].nunique() > 1
        for row in result.records():
            figures = found.setdefault(_label(row["mechanism"], row["rule"], several), {"rule": row["rule"]})
            figures[row["figure"]] = {name: row[name] for name in ("mean", "low", "high")}
        return found

    def data(self, result: Result) -> dict[str, Any]:
        return self.summary_data(result)

    def details(self, result: Result) -> dict[str, Any]:
        return {"Learning curves": result.curves, **super().details(result)}


def learning_figure(result: Result) -> Figure:
    """Draw learning curves of all mechanisms, and the figures of learned play.

    Left, over the episodes: the factor by which owners multiply reported values (1: the
    truth), and the probability that they tell the truth. Right, of learned play: welfare as a share of
    the best schedule (a ring: under truthful reports of all on these days), and the distance to a coarse
    correlated equilibrium. Bands and bars are the intervals over seeds. One colour per mechanism, one
    kind of line per rule.

    Returns
    -------
    Figure
        12 inches wide.
    """
    pairs = list(dict.fromkeys(zip(result.curves["mechanism"], result.curves["rule"], strict=True)))
    mechanisms = list(dict.fromkeys(mechanism for mechanism, _ in pairs))
    rules = list(dict.fromkeys(rule for _, rule in pairs))
    colours = {name: OKABE_ITO[i % len(OKABE_ITO)] for i, name in enumerate(mechanisms)}
    lines = {name: LINES[i % len(LINES)] for i, name in enumerate(rules)}
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(12, 6.75), facecolor="white")
        grid = figure.add_gridspec(
            2, 2, width_ratios=[1.6, 1], left=0.05, right=0.975, top=0.84, bottom=0.09, hspace=0.36, wspace=0.16
        )
        left = [figure.add_subplot(grid[0, 0]), figure.add_subplot(grid[1, 0])]
        right = [figure.add_subplot(grid[0, 1]), figure.add_subplot(grid[1, 1])]
        for axes, name, title in zip(
            left, ("factor", "truth_share"), ("reported value / true value", "probability of the truth"), strict=True
        ):
            for mechanism, rule in pairs:
                chosen = (result.curves["mechanism"] == mechanism) & (result.curves["rule"] == rule)
                _curve(axes, result.curves[chosen], name, colours[mechanism], lines[rule])
            _frame(axes, title, result.curves["episode"].max())
        left[1].set_xlabel("episode")
        labels = [_label(mechanism, rule, len(rules) > 1) for mechanism, rule in pairs]
        tints = [colours[mechanism] for mechanism, _ in pairs]
        welfare = "welfare / best schedule (ring: all truthful)"
        _bars(right[0], result.summary, "welfare_share", welfare, pairs, labels, tints, beside="truthful_welfare_share")
        right[0].set_xlim(0, 1)
        distance = "distance to equilibrium, credits a day"
        _bars(right[1], result.summary, "distance", distance, pairs, labels, tints)
        right[1].set_xlim(left=0)
        _headline(figure, result, pairs, labels, colours, lines)
    return figure


def _curve(axes: Axes, rows: pd.DataFrame, name: str, colour: str, line: Any) -> None:
    x = rows["episode"].to_numpy()
    low, high = rows[f"{name}_low"].to_numpy(), rows[f"{name}_high"].to_numpy()
    axes.fill_between(x, np.clip(low, 0, 1), high, color=colour, alpha=0.2, linewidth=0)
    axes.plot(x, rows[name], color=colour, linestyle=line, linewidth=2)


def _frame(axes: Axes, title: str, last: int) -> None:
    axes.axhline(1.0, color=GREY, linewidth=0.8, zorder=0)
    axes.set_ylim(0, 1.05)
    axes.set_xlim(0, last)
    axes.set_title(title, loc="left", fontsize=12, color=INK)


def _bars(
    axes: Axes,
    summary: pd.DataFrame,
    name: str,
    title: str,
    pairs: list[tuple[str, str]],
    labels: list[str],
    tints: list[str],
    *,
    beside: str | None = None,
) -> None:
    """Draw mean and interval of a figure, one line each; ``beside``: a figure whose mean stands there as a ring."""
    for y, (mechanism, rule) in enumerate(pairs):
        chosen = summary[(summary["mechanism"] == mechanism) & (summary["rule"] == rule)].set_index("figure")
        mean, low, high = (float(chosen[column][name]) for column in ("mean", "low", "high"))
        axes.plot([max(0.0, low), high], [y, y], color=tints[y], linewidth=2)
        axes.plot(mean, y, "o", color=tints[y], markersize=7)
        if beside is not None:
            axes.plot(
                float(chosen["mean"][beside]), y, "o", color=INK, markersize=12, fillstyle="none", markeredgewidth=1
            )
        axes.annotate(
            f"{labels[y]}: {mean:.3f}",
            (0, y),
            (4, 12),
            xycoords=("axes fraction", "data"),
            textcoords="offset points",
            fontsize=11 if len(pairs) < 6 else 8,
            color=INK,
        )
    axes.set_yticks([])
    axes.set_ylim(len(pairs) - 0.5, -0.8)
    axes.margins(x=0.12)
    axes.set_title(title, loc="left", fontsize=12, color=INK)


def _label(mechanism: str, rule: str, several: bool) -> str:
    return f"{mechanism}, {rule}" if several else mechanism


def _headline(
    figure: Figure,
    result: Result,
    pairs: list[tuple[str, str]],
    labels: list[str],
    colours: dict[str, str],
    lines: dict[str, Any],
) -> None:
    meta = result.meta
    figure.text(0.012, 0.972, "What owners learn to report", fontsize=15, fontweight="bold", va="top", color=INK)
    about = (
        f"{len(meta['seeds'])} seeds, {meta['confidence']:.0%} intervals; right: last {meta['learned']:.0%} of episodes"
    )
    figure.text(0.975, 0.968, about, fontsize=11, va="top", ha="right", color=MUTED)
    handles = [Line2D([], [], color=colours[m], linestyle=lines[r], linewidth=2) for m, r in pairs]
    figure.legend(
        handles,
        labels,
        loc="upper left",
        bbox_to_anchor=(0.005, 0.935),
        ncols=min(4, len(labels)),
        frameon=False,
        fontsize=11,
    )
