"""The figures of a comparison: differences to the rival with intervals, and what the bounds leave open."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from marketsched.results.answers import question_of, rival_of
from marketsched.results.panels import GREY, INK, MUTED, OKABE_ITO, STYLE
from marketsched.results.result import Result
from marketsched.results.views import at_least_percent, percent, ratio_text
from marketsched.results.windows import lead_of, window_of

RATIO, WELFARE, REVENUE, OTHER = OKABE_ITO[0], OKABE_ITO[4], OKABE_ITO[1], "#777777"
FAR = 3.0  # a promised constant above so many times the largest ratio is a note, and not drawn
MOST = 6  # rules that the main figure has


def differences_figure(comparison: Result, seeds: str) -> Figure:
    """Draw how much more each mechanism delivers than the rival, the best first, and its worst tenth of owners.

    Parameters
    ----------
    comparison : Result
        Of kind ``mechanisms``.
    seeds : str
        Names them in the caption.

    Returns
    -------
    Figure
        12 inches wide; six mechanisms at most, that of the answer among them; lines are intervals.
    """
    rival, meta = rival_of(comparison.meta), comparison.meta
    rows, left_out = _drawn(comparison)
    fair = any(math.isfinite(row.get("own_q10", math.nan)) for row in rows)
    with matplotlib.rc_context(STYLE):
        height = 1.5 + 0.5 * len(rows)
        figure = Figure(figsize=(12, height), facecolor="white")
        panels = figure.subplots(1, 2, sharey=True, width_ratios=[1.7, 1]) if fair else [figure.subplots()]
        below, above = 0.5 / height, 1 - 0.95 / height
        figure.subplots_adjust(left=0.22, right=0.97, top=above, bottom=below, wspace=0.07)
        _dots(panels[0], rows, rival.column)
        panels[0].set_title(f"welfare less that of {rival.name}, points of the bound", fontsize=12, loc="left")
        panels[0].axvline(0, color=GREY, linewidth=1, zorder=1)
        if fair:
            _dots(panels[1], rows, "own_q10")
            panels[1].set_title("own value of the worst tenth, %", fontsize=12, loc="left")
        panels[0].set_yticks(range(len(rows)), [_wrapped(row["mechanism"]) for row in rows])
        panels[0].set_ylim(len(rows) - 0.5, -0.6)
        for axes in panels:
            axes.tick_params(axis="y", length=0)
            axes.grid(axis="x", color=GREY, alpha=0.25, linewidth=0.6)
        lines = f"{seeds}; lines: {meta['confidence']:.0%} intervals" if meta["runs"] > 1 else f"{seeds}: no interval"
        about = f"{lines}; {left_out} more in the table" if left_out else lines
        figure.text(0.012, 1 - 0.2 / height, meta["scenario"], fontsize=15, fontweight="bold", va="top", color=INK)
        figure.text(0.97, 1 - 0.22 / height, about, fontsize=11, va="top", ha="right", color=MUTED)
    return figure


def windows_figure(comparison: Result) -> Figure:
    """Draw by how much the mechanism of the answer leads its rival in each window of a log: draws, and their mean.

    Returns
    -------
    Figure
        12 x 4 inches.
    """
    meta, asked = comparison.meta, question_of(comparison.records(), comparison.meta)
    rival = rival_of(meta)
    runs = comparison.runs[comparison.runs["mechanism"] == asked].set_index("seed")
    gain = 100 * lead_of(comparison.runs, asked, rival) / runs["opt_high"].where(runs["opt_high"] > 0)
    window = window_of(gain.index.to_numpy(), int(meta["windows"]))
    (row,) = (row for row in comparison.records() if row["mechanism"] == asked)
    mean, low, high = (100 * row[f"{rival.column}{end}"] for end in ("", "_low", "_high"))
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(12, 4), facecolor="white")
        axes = figure.add_axes((0.07, 0.14, 0.9, 0.66))
        axes.axhline(0, color=GREY, linewidth=1)
        axes.axhspan(low, high, color=RATIO, alpha=0.12, label=f"{meta['confidence']:.0%} interval of the mean")
        axes.axhline(mean, color=RATIO, linewidth=1.5, label="mean of all windows")
        axes.plot(window + 1, gain, "o", color=OTHER, markersize=4, alpha=0.7, label="one draw")
        means = gain.groupby(window).mean()
        axes.plot(means.index + 1, means, "D", color=RATIO, markersize=7, label="mean of a window")
        axes.set_xticks(means.index + 1)
        axes.set_xlabel("window of the log, in order of time")
        axes.set_title(f"{asked} less {rival.name}, points of the bound", fontsize=12, loc="left")
        figure.legend(frameon=False, fontsize=10, ncols=4, loc="upper right", bbox_to_anchor=(0.98, 0.99))
        figure.text(0.012, 0.97, meta["scenario"], fontsize=15, fontweight="bold", va="top", color=INK)
    return figure


def drawn_names(comparison: Result) -> list[str]:
    """Return the mechanisms that figures show: the best six, those of the answer among them."""
    return [str(row["mechanism"]) for row in _drawn(comparison)[0]]


def _drawn(comparison: Result) -> tuple[list[dict[str, Any]], int]:
    """Return the rows of the best mechanisms, those of the answer among them, and how many are left out."""
    rows, rival = comparison.records(), rival_of(comparison.meta)
    named = {question_of(rows, comparison.meta), *rival.labels}
    found = sorted(rows, key=lambda row: (row["mechanism"] not in named, -_value(row, rival.column)))[:MOST]
    return sorted(found, key=lambda row: -_value(row, rival.column)), len(rows) - len(found)


def _value(row: Mapping[str, Any], name: str) -> float:
    value = row.get(name, math.nan)
    return float(value) if math.isfinite(value) else -math.inf


def _dots(axes: Axes, rows: Sequence[Mapping[str, Any]], name: str) -> None:
    """Draw a figure of each row as a dot in percent, with its interval where there is one."""
    for y, row in enumerate(rows):
        value, low, high = (100 * row.get(f"{name}{end}", math.nan) for end in ("", "_low", "_high"))
        colour = RATIO if low > 0 or high < 0 else OTHER  # grey: not clear of 0, as all are of one run
        if math.isfinite(low):
            low, high = np.clip([low, high], 0, 100) if name.startswith("own") else (low, high)
            axes.plot([low, high], [y, y], color=colour, linewidth=1.8, solid_capstyle="round", zorder=2)
        axes.plot([value], [y], "o", color=colour, markersize=7.5, zorder=3)


def bounds_figure(comparison: Result) -> Figure:
    """Draw E[OPT] / E[welfare] per mechanism, and welfare and revenue as shares of the bound.

    The thick bar spans what is not known about OPT, the thin line the confidence interval on top of
    it; a diamond marks the constant that a theorem promises, open where its conditions do not hold.

    Returns
    -------
    Figure
        12 inches wide.
    """
    rows = comparison.records()
    with matplotlib.rc_context(STYLE):
        height = 1.9 + 0.75 * len(rows)
        figure = Figure(figsize=(12, height), facecolor="white")
        left, right = figure.subplots(1, 2, sharey=True, width_ratios=[1.5, 1])
        figure.subplots_adjust(left=0.2, right=0.97, top=1 - 0.95 / height, bottom=0.75 / height, wspace=0.1)
        _draw_ratios(left, rows)
        _draw_shares(right, rows)
        left.set_yticks(range(len(rows)), [_wrapped(row["mechanism"]) for row in rows])
        left.set_ylim(len(rows) - 0.5, -0.6)
        meta = comparison.meta
        runs = f"{meta['runs']} paired runs" if meta["runs"] > 1 else "one run, no interval"
        figure.text(0.012, 1 - 0.2 / height, meta["scenario"], fontsize=15, fontweight="bold", va="top", color=INK)
        about = f"{runs}; lines: {meta['confidence']:.0%} intervals" if meta["runs"] > 1 else runs
        figure.text(0.97, 1 - 0.22 / height, about, fontsize=11, va="top", ha="right", color=MUTED)
    return figure


def _draw_ratios(axes: Axes, rows: list[dict[str, Any]]) -> None:
    finite = [row for row in rows if np.isfinite(row["ratio_high"])]
    ends = [row[key] for row in finite for key in ("ratio_high", "interval_high") if np.isfinite(row[key])]
    widest = max(ends, default=2.0)
    drawn = [row["promised_ratio"] for row in rows if row["promised_ratio"] <= FAR * widest]
    axes.axvline(1.0, color=GREY, linewidth=1)
    right = 1 + 1.3 * (max([widest, *drawn]) - 1 or 0.1)
    for y, row in enumerate(rows):
        if row not in finite:
            axes.text(
                1.0, y, f"  {ratio_text(row['ratio_low'], row['ratio_high'])}", va="center", color=MUTED, fontsize=11
            )
            continue
        if np.isfinite(row["interval_low"]):
            # One to infinity would not be drawn at all.
            axes.plot([row["interval_low"], min(row["interval_high"], right)], [y, y], color=RATIO, lw=1.6, zorder=2)
        axes.plot(
            [row["ratio_low"], row["ratio_high"]], [y, y], color=RATIO, linewidth=9, zorder=3, solid_capstyle="butt"
        )
        axes.plot(row["ratio_high"], y, "o", color=RATIO, markersize=7, zorder=4)
        axes.text(
            row["ratio_low"], y - 0.2, ratio_text(row["ratio_low"], row["ratio_high"]), ha="left", va="bottom",
            fontsize=11, color=INK,
        )  # fmt: skip
        _draw_promise(axes, y, row, right, row["promised_ratio"] in drawn)
    axes.set_xlim(1 - 0.06 * (right - 1), right)
    axes.set_xlabel("E[OPT] / E[welfare]: 1 is the best schedule in hindsight")
    axes.tick_params(axis="y", length=0)
    handles: list[Any] = [Line2D([], [], color=RATIO, linewidth=9, label="OPT lies between its two bounds")]
    if drawn:
        handles.append(
            Line2D(
                [],
                [],
                marker="D",
                linestyle="",
                color="#a50f15",
                markerfacecolor="white",
                label="promised (filled: proven here)",
            )
        )
    axes.legend(handles=handles, loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=2, frameon=False, fontsize=10)


def _draw_promise(axes: Axes, y: int, row: dict[str, Any], right: float, inside: bool) -> None:
    alpha, holds = row["promised_ratio"], row["promise_holds"]
    if not np.isfinite(alpha):
        return
    if inside:
        face = "#a50f15" if holds else "white"
        axes.plot(alpha, y, "D", color="#a50f15", markerfacecolor=face, markersize=7, zorder=4)
        return
    words = f"promised {alpha:.3g} ›" if holds else f"would be {alpha:.3g} › (conditions not met)"
    axes.text(right, y + 0.32, words, ha="right", va="center", fontsize=9.5, color="#a50f15")


def _draw_shares(axes: Axes, rows: list[dict[str, Any]]) -> None:
    y = np.arange(len(rows))
    for key, shift, colour in (("welfare_share", -0.17, WELFARE), ("revenue_share", 0.17, REVENUE)):
        shares = np.array([row[key] for row in rows])
        drawn = np.minimum(shares, 1.16)  # owners may pay more than all is worth: the figure beside it says so
        axes.barh(y + shift, drawn, height=0.3, color=colour)
        for place, share in zip(y + shift, shares, strict=True):
            shown = at_least_percent if key == "welfare_share" else percent  # as in the table
            text = shown(share) if share < 10 else f"{share:.2g} times"
            axes.text(min(share, 1.0) + 0.012, place, text, va="center", fontsize=10, color=INK)
    axes.set_xlim(0, 1.16)
    axes.set_xticks([0, 0.25, 0.5, 0.75, 1], ["0", "25 %", "50 %", "75 %", "100 %"])
    axes.set_xlabel("share of the bound on OPT")
    handles = [Patch(color=WELFARE, label="welfare"), Patch(color=REVENUE, label="revenue")]
    axes.legend(handles=handles, loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=2, frameon=False, fontsize=10)


def _wrapped(label: str) -> str:
    return label.replace(":", ":\n", 1) if len(label) > 22 else label
