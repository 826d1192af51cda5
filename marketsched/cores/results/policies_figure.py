"""Figures of runs and comparisons of policies, in the manner of Fig. 2 of the OgaSched paper.

Policies keep their colours; the leading one is drawn on top and thicker. Every ratio is shown together with that of
the core's reference: of OgaSched the best fixed allocation y*.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import matplotlib
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, MaxNLocator, NullFormatter, NullLocator

from marketsched.results.panels import GREY, INK, MUTED, STYLE, frame, legend, look, short

if TYPE_CHECKING:
    from marketsched.cores.core import Core
    from marketsched.results.result import Result

SETTLED = 0.02  # share of the slots after which averages no longer decide the range of an axis
STARS = {"y*": "y*, best fixed"}  # what is too long for a legend


def run_figure(run: Result, words: Core) -> Figure:
    """Draw a run: average reward, cumulative reward, and ratios of the leading policy to the others, over time."""
    meta, rows = run.meta, run.records()
    labels = [row["policy"] for row in rows]
    tables = {label: run.slots[run.slots["policy"] == label] for label in labels}
    best = rows[0]["reference"] / rows[0]["slots"] if words.summed else np.nan
    with matplotlib.rc_context(STYLE):
        figure, panels = frame(3, f"{meta['scenario']}, seed {meta['seed']}", words.sizes.format(**meta))
        for place, label in reversed(list(enumerate(labels))):
            table, width = tables[label], 2.4 if label == meta["lead"] else 1.5
            panels[0].plot(table["slot"], table["average_reward"], linewidth=width, **look(place))
            panels[1].plot(table["slot"], table["cumulative_reward"], linewidth=width, **look(place))
        _around([table["average_reward"].to_numpy() for table in tables.values()], [best], panels[0])
        if np.isfinite(best):
            panels[0].axhline(best, color=INK, linewidth=1.2, linestyle=(0, (1, 1.5)))
            panels[1].plot(
                [0, meta["slots"]], [0, best * meta["slots"]], color=INK, linewidth=1.2, linestyle=(0, (1, 1.5))
            )
        _draw_ratio_curves(panels[2], tables, rows, meta["lead"])
        for axes, title in zip(
            panels, (f"{words.goal} a slot, average so far", f"{words.goal} so far", ""), strict=True
        ):
            axes.set_title(title or f"{meta['lead']} over the others, so far", fontsize=12, loc="left")
            axes.set_xlabel("slots")
            axes.set_xlim(0, meta["slots"] * (1.03 if axes is panels[2] else 1))
            axes.xaxis.set_major_locator(MaxNLocator(5, integer=True))
        for axes in panels[:2]:
            axes.yaxis.set_major_formatter(FuncFormatter(short))
        _legend(figure, labels, rows, words, known=bool(np.isfinite(rows[0]["reference"])))
    return figure


def _draw_ratio_curves(axes: Axes, tables: dict[str, pd.DataFrame], rows: Sequence[dict[str, Any]], lead: str) -> None:
    """Draw the ratio to every other policy over time, and where y* would have ended as a diamond."""
    leading = tables[lead]["average_reward"].to_numpy()
    axes.axhline(1.0, color=GREY, linewidth=1)
    curves, ends = [], []
    for place, row in enumerate(rows):
        if row["policy"] == lead:
            continue
        other = tables[row["policy"]]["average_reward"].to_numpy()
        both = (leading > 0) & (other > 0)
        curve = np.divide(leading, other, out=np.full(len(other), np.nan), where=both)
        axes.plot(tables[row["policy"]]["slot"], curve, linewidth=1.5, **look(place))
        curves.append(curve)
        if np.isfinite(row["reference_ratio"]):
            axes.plot(len(curve) * 1.015, row["reference_ratio"], "D", markersize=6, color=look(place)["color"],
                      markerfacecolor="white", clip_on=False, zorder=5)  # fmt: skip
            ends.append(row["reference_ratio"])
    _around(curves, [1.0, *ends], axes)


def comparison_figure(found: Result, words: Core) -> Figure:
    """Draw a comparison: reward over time as a share of y*, ratios seed by seed, and how regret grows."""
    meta, rows = found.meta, found.records()
    labels = [row["policy"] for row in rows]
    grows = "regrets" in found.tables
    known = bool(found.runs["reference"].gt(0).all())
    shares = known and words.summed  # of curves: a reference of another unit has none
    with matplotlib.rc_context(STYLE):
        runs = f"{meta['runs']} seeds" if meta["runs"] > 1 else "one seed"
        figure, panels = frame(2 + grows, f"{meta['scenario']}, {runs}", words.sizes.format(**meta))
        _draw_mean_curves(panels[0], found, labels, shares, words)
        _draw_ratio_dots(panels[1], found.runs, rows, meta["lead"])
        if grows:
            _draw_growth(panels[2], found.regrets, rows, meta["lead"], words)
        if max(map(len, labels)) > 16:  # names of the middle panel need room
            figure.subplots_adjust(wspace=0.45)
        _legend(figure, labels, rows, words, known=known)
    return figure


def _draw_mean_curves(axes: Axes, found: Result, labels: Sequence[str], known: bool, words: Core) -> None:
    """Draw the mean over seeds, and one standard deviation around the leading policy's."""
    unit = found.runs.groupby("seed")["reference"].first() / found.meta["slots"] if known else None
    means = []
    for place, label in reversed(list(enumerate(labels))):
        own = found.curves[found.curves["policy"] == label]
        grid = own.pivot(index="slot", columns="seed", values="average_reward")
        grid = grid / unit if unit is not None else grid
        mean, deviation = grid.mean(axis=1), grid.std(axis=1)
        axes.plot(grid.index, mean, linewidth=2.4 if place == 0 else 1.5, **look(place))
        if place == 0 and grid.shape[1] > 1:
            colour = look(place)["color"]
            axes.fill_between(grid.index, mean - deviation, mean + deviation, color=colour, alpha=0.15, linewidth=0)
        means.append(mean.to_numpy())
    _around(means, [1.0] if known else [], axes)
    if known:
        axes.axhline(1.0, color=INK, linewidth=1.2, linestyle=(0, (1, 1.5)))
    unit = f", share of {words.star}" if known else " a slot"
    axes.set_title(f"average {words.goal} so far{unit}", fontsize=12, loc="left")
    axes.set_xlabel(f"slots (band: one sd of {labels[0]})" if found.meta["runs"] > 1 else "slots")
    axes.set_xlim(0, found.meta["slots"])
    axes.xaxis.set_major_locator(MaxNLocator(5, integer=True))


def _draw_ratio_dots(axes: Axes, runs: pd.DataFrame, rows: Sequence[dict[str, Any]], lead: str) -> None:
    """Draw a dot for every seed, the mean with its interval, and the mean of y* over the same policy.

    A total near zero makes a ratio huge: seeds far beyond all others are triangles at the edge.
    """
    others = [(place, row) for place, row in enumerate(rows) if row["policy"] != lead]
    dots = {row["policy"]: runs.loc[runs["policy"] == row["policy"], "ratio"].dropna().to_numpy() for _, row in others}
    shown = [row[name] for _, row in others for name in ("ratio", "ratio_low", "ratio_high", "reference_ratio")]
    shown += [x for each in dots.values() if each.size for x in (each.min(), np.quantile(each, 0.9))]
    shown = [1.0, *(x for x in shown if np.isfinite(x))]
    furthest = max([each.max() for each in dots.values() if each.size], default=1.0)
    if furthest - min(shown) <= 2 * (max(shown) - min(shown)):
        shown.append(furthest)
    room = 0.1 * (max(shown) - min(shown)) or 0.1
    left, right = min(shown) - room, max(shown) + room
    axes.axvline(1.0, color=GREY, linewidth=1)
    for y, (place, row) in enumerate(others):
        colour, seeds = look(place)["color"], dots[row["policy"]]
        if not seeds.size:
            axes.text(1.0, y, "  no total is positive", va="center", color=MUTED, fontsize=11)
            continue
        near = seeds[seeds <= right]
        axes.plot(near, np.full(near.size, y + 0.18), "o", markersize=4, color=colour, alpha=0.45, markeredgewidth=0)
        if near.size < seeds.size:
            axes.plot(right, y + 0.18, ">", markersize=6, color=colour, alpha=0.7, clip_on=False)
        if np.isfinite(row["ratio_low"]):
            axes.plot([row["ratio_low"], row["ratio_high"]], [y, y], color=colour, linewidth=2)
        axes.plot(row["ratio"], y, "o", markersize=8, color=colour)
        axes.text(row["ratio"], y - 0.17, f"{row['ratio']:.3f}", ha="center", va="bottom",
                  fontsize=11 if len(others) <= 6 else 8, color=INK)  # fmt: skip
        if np.isfinite(row["reference_ratio"]):
            axes.plot(row["reference_ratio"], y, "D", markersize=7, color=colour, markerfacecolor="white", zorder=5)
    axes.set_xlim(left, right)
    axes.set_ylim(len(others) - 0.4, -0.7)
    size = 8 if len(others) > 6 else 12 if all(len(row["policy"]) <= 11 for _, row in others) else 9.5
    axes.set_yticks(range(len(others)), [_wrapped(row["policy"]) for _, row in others], fontsize=size)
    axes.tick_params(axis="y", length=0)
    axes.xaxis.set_major_locator(MaxNLocator(5))
    axes.set_xlabel("small dots: seeds; line: 95 % of the mean")
    axes.set_title(f"{lead} over the others", fontsize=12, loc="left")


def _draw_growth(axes: Axes, regrets: pd.DataFrame, rows: Sequence[dict[str, Any]], lead: str, words: Core) -> None:
    """Draw regret over the horizon: on log scales, or where the leading policy beats y* as a share of it."""
    means = regrets.groupby(["policy", "slots"])["regret"].mean()
    horizons = sorted(regrets["slots"].unique())
    logs = bool((means[lead] > 0).all())
    best = regrets[regrets["policy"] == lead].groupby("slots")["reference"].mean()
    labelled: list[float] = []
    for place, row in enumerate(rows):
        own = means[row["policy"]] if logs else means[row["policy"]] / best
        if logs and not (own > 0).all():
            continue
        axes.plot(own.index, own, marker="o", markersize=5, linewidth=2.4 if place == 0 else 1.5, **look(place))
        near = logs and any(abs(np.log(own.iloc[-1] / other)) < 0.25 for other in labelled)
        if np.isfinite(row["growth"]) and not near:  # near lines with equal exponents share a label
            axes.annotate(f"T^{row['growth']:.2f}", (own.index[-1], own.iloc[-1]), xytext=(5, -3), fontsize=10.5,
                          textcoords="offset points", color=look(place)["color"], annotation_clip=False)  # fmt: skip
            labelled.append(own.iloc[-1])
    if logs:
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter(FuncFormatter(short))
        axes.yaxis.set_minor_formatter(NullFormatter())
    else:
        axes.axhline(0.0, color=INK, linewidth=1.2, linestyle=(0, (1, 1.5)))
    star = words.star
    told_title = f"regret to {star}, mean over seeds" if logs else f"mean regret to {star}, share of {star}"
    axes.set_title(told_title, fontsize=12, loc="left")
    axes.set_xlabel("slots of the run")
    axes.set_xscale("log")
    axes.set_xlim(horizons[0] / 1.1, horizons[-1] * 1.45)
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xticks(horizons, [f"{slots:,}" for slots in horizons])


def _legend(figure: Figure, labels: Sequence[str], rows: Sequence[dict[str, Any]], words: Core, *, known: bool) -> None:
    """Name the policies, and say who sees what before deciding."""
    star: dict[str, Any] = {"color": INK, "linewidth": 1.2, "linestyle": (0, (1, 1.5)), "markerfacecolor": "white"}
    best = [Line2D([], [], label=STARS.get(words.star, words.reference), marker="D", **star)] if known else []
    letters = sum(map(len, labels))
    size, lines = 11 if letters < 60 else 9, 1 if letters < 90 else 2
    legend(figure, labels, *best, rows=lines, fontsize=size, handletextpad=0.5)
    seen = {row["observes"] for row in rows}
    groups = [f"{what}: {', '.join(row['policy'] for row in rows if row['observes'] == what)}" for what in sorted(seen)]
    foot = "seen before deciding: " + ("; ".join(reversed(groups)) if len(seen) > 1 else f"{seen.pop()}, by all")
    figure.text(0.988, 0.012, foot, fontsize=9.5 if len(foot) < 150 else 8, va="bottom", ha="right", color=MUTED)


def _around(curves: Sequence[Any], others: Sequence[float], axes: Axes) -> None:
    """Set the range of an axis to where curves lie once they have settled, and to the given values."""
    settled = [curve[int(SETTLED * len(curve)) :] for curve in curves]
    values = np.concatenate([*settled, np.asarray(others, dtype=np.float64)]) if settled else np.asarray(others)
    values = values[np.isfinite(values)]
    if values.size:
        room = 0.06 * (values.max() - values.min()) or 0.05 * abs(values[0]) or 1.0
        axes.set_ylim(values.min() - room, values.max() + room)


def _wrapped(label: str) -> str:
    """Break a long label before its rules."""
    return label.replace(":", "\n:") if len(label) > 11 else label
