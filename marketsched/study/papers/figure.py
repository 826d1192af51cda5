"""The picture of one experiment: what was measured, and beside it every claim with the paper's number."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from marketsched.results.panels import GREY, INK, OKABE_ITO, STYLE
from marketsched.study.papers.runs import Line, Panel

if TYPE_CHECKING:
    from marketsched.study.papers.claims import Row
    from marketsched.study.papers.reproduced import Reproduced

COLOURS = {"reproduced": "#009e73", "same direction": "#e69f00", "not decided": "#8a8a8a", "not reproduced": "#d55e00"}


def experiment_figure(made: Reproduced) -> Figure:
    """Return panels on the left and claims on the right."""
    n = len(made.panels)
    with matplotlib.rc_context({**STYLE, "font.size": 9}):
        height = max(4.0, 0.34 * len(made.rows) + 1.6)
        figure = Figure(figsize=(5.2 * n + 8.0, height), layout="constrained")
        axes = figure.subplots(1, n + 1, width_ratios=[*[1.0] * n, 0.9], squeeze=False)[0]
        for ax, panel in zip(axes, made.panels, strict=False):
            _panel(ax, panel)
        _claims(axes[-1], made.rows)
        keys = [Line2D([], [], color=colour, linewidth=2, label=word) for word, colour in COLOURS.items()]
        keys.append(
            Line2D([], [], color=INK, marker="D", fillstyle="none", linestyle="none", label="paper (< >: a side)")
        )
        figure.legend(handles=keys, loc="outside lower right", ncols=5, frameon=False, fontsize=8)
        size = "the paper's sizes" if made.meta["full"] else "reduced"
        figure.suptitle(f"{made.place}: {made.shows} ({made.meta['sizes']}; {made.meta['runs']} seeds; {size})")
    return figure


def _panel(ax: Axes, panel: Panel) -> None:
    for i, line in enumerate(panel.lines):
        colour = OKABE_ITO[i % len(OKABE_ITO)]
        if any(isinstance(x, str) for x in line.x):
            _words(ax, line, colour, 0.09 * (i - (len(panel.lines) - 1) / 2))
            continue
        x = line.x
        ax.plot(x, line.y, color=colour, label=line.label, marker="o" if len(x) < 30 else None, markersize=3)
        if line.low and not any(math.isnan(value) for value in line.low):
            ax.fill_between(x, line.low, line.high, color=colour, alpha=0.18, linewidth=0)
    ax.set(title=panel.title, xlabel=panel.x, ylabel=panel.y)
    if panel.log:
        ax.set_yscale("log")
    ax.legend(frameon=False, fontsize=8)


def _words(ax: Axes, line: Line, colour: str, beside: float) -> None:
    """Draw what belongs to words, between which there is nothing to join; lines stand beside each other."""
    x = [i + beside for i in range(len(line.x))]
    ax.plot(x, line.y, "o", color=colour, label=line.label, markersize=3)
    if line.low and not any(math.isnan(value) for value in line.low):
        ax.vlines(x, line.low, line.high, color=colour, linewidth=1.5)
    ax.set_xticks(range(len(line.x)), [str(each) for each in line.x], rotation=30)


def _claims(ax: Axes, rows: tuple[Row, ...]) -> None:
    """Draw every claim on a line of its own: our interval over the distance of paper and no effect."""
    for i, row in enumerate(rows):
        found, claim = row.measured, row.claim
        if math.isfinite(found.value):
            ax.plot([found.value], [i], "o", color=COLOURS[row.verdict], markersize=4)
        if not math.isnan(found.low):
            ax.plot([found.low, found.high], [i, i], color=COLOURS[row.verdict], linewidth=2)
        marker = {"number": "D", "above": ">", "at least": ">", "below": "<", "at most": "<"}[claim.kind]
        ax.plot([claim.value], [i], marker, color=INK, markersize=5, fillstyle="none")
    ax.set_yticks(range(len(rows)), [row.claim.quantity for row in rows], fontsize=7)
    ax.set_ylim(len(rows) - 0.5, -0.5)
    values = [abs(v) for row in rows for v in (row.measured.value, row.claim.value) if math.isfinite(v)]
    if values and max(values) > 50:
        ax.set_xscale("symlog")
    ax.grid(axis="y", color=GREY, alpha=0.2)
    ax.set_title("claims")
