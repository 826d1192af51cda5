"""The dashboard's figures, as SVG text that takes the page's own ink: readable in light and in dark.

Figures are drawn with matplotlib's objects alone. Its settings are global, so one figure is drawn at
a time, for all visitors.
"""

from __future__ import annotations

import io
import math
import threading
from collections.abc import Callable
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator
from numpy.typing import NDArray

from marketsched.dashboard.session import Story
from marketsched.dashboard.view import MarketView

INK, PAGE_INK = "#010203", "currentColor"  # stands for the page's text colour; nothing else is of that colour
# Hue is never alone: what the colour-blind may confuse also differs in its line or mark.
# The hues of `marketsched.results.panels`, bright enough for a dark page and dark enough for a white one.
BLUE, ORANGE, PINK, GREEN, GREY = "#3d86c6", "#cc7a00", "#c0649b", "#2a9d6f", "#8a8a8a"
COLOUR_RANGE = 2000.0  # of the prices; cheaper slots are all as good as free
SIZE = (6.6, 2.5)  # inches
LEFT, RIGHT, BOTTOM, TOP = 0.112, 0.985, 0.18, 0.885  # edges of a panel, as shares of the figure
FEWEST_ROUNDS = 40  # across a figure
DASHES, DOTS = (0, (5.0, 1.6)), (0, (1.2, 1.2))
_ONE_AT_A_TIME = threading.Lock()
_STYLE: dict[Any, Any] = {
    "font.family": ["DejaVu Sans", "sans-serif"],
    "font.size": 9.5,
    "text.color": INK,
    "axes.edgecolor": GREY,
    "axes.facecolor": "none",
    "axes.labelcolor": INK,
    "axes.linewidth": 0.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "xtick.color": GREY,
    "ytick.color": GREY,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "grid.color": GREY,
    "grid.alpha": 0.25,
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "legend.fontsize": 9,
    "legend.handlelength": 1.4,
    "legend.columnspacing": 1.2,
    "legend.borderaxespad": 0.2,
    "lines.linewidth": 1.6,
    "svg.fonttype": "none",  # letters stay text: small, sharp, and read aloud
}


def pictures(view: MarketView | None, story: Story | None) -> dict[str, str]:
    """Draw all figures of a market and of the job that is looked at, '' where there is nothing to draw."""
    if view is None:
        return {}
    return {name: draw(view) for name, draw in FIGURES.items()} | (
        {} if story is None else {"story": _story_figure(story)}
    )


def _load_figure(view: MarketView) -> str:
    """Draw load against capacity, what is promised for the rounds to come, and every removal."""

    def draw(axes: Axes) -> None:
        now, rounds = view.round, np.arange(1, view.round + 1)
        axes.fill_between(_edges(now), _closed(view.load), step="post", color=BLUE, alpha=0.55, linewidth=0)
        axes.plot([], [], color=BLUE, linewidth=5, alpha=0.55, label="busy")
        promised = np.concatenate([view.promised, view.coming])
        if np.isfinite(promised).any():
            look: dict[str, Any] = {"color": INK, "linewidth": 1.0, "linestyle": (0, (2.5, 1.5))}
            axes.step(_edges(promised.size), _closed(promised), where="post", label="promised", **look)
        axes.axhline(view.capacity, color=INK, linewidth=2.2, label=f"capacity {view.capacity:,}")
        highest = max(float(view.capacity), float(np.nanmax(promised, initial=0.0)))
        for counts, colour, mark, word, height in (
            (view.cancelled, ORANGE, "v", "cancelled", 1.1),
            (view.evicted, PINK, "X", "evicted", 1.23),
        ):
            hit = counts[counts > 0]  # the more at once, the larger the mark
            where, place = rounds[counts > 0] - 0.5, np.full(hit.size, highest * height)
            axes.scatter(where, place, 16 + 9 * np.sqrt(hit), color=colour, marker=mark, linewidth=0)
            axes.plot([], [], mark, color=colour, markersize=5.5, linestyle="none", label=f"{word} {int(hit.sum()):,}")
        axes.axvline(now, color=GREY, linewidth=0.8)
        axes.set_ylim(0, highest * 1.34)
        _time_axis(axes, view, "busy nodes")
        _legend(axes, 5)

    return _svg("load", draw)


def _price_figure(view: MarketView) -> str:
    """Draw the price of a node-round: round of asking across, rounds ahead up; '' without prices."""
    surface = _coloured(view.surface)
    if surface is None:
        return ""

    def draw(axes: Axes) -> None:
        prices, low, high = surface
        image = axes.imshow(
            prices.T,
            origin="lower",
            aspect="auto",
            interpolation="nearest",
            cmap="magma_r",
            norm=LogNorm(low, max(high, 1.01 * low)),
            extent=(0.0, float(prices.shape[0]), 0.0, float(prices.shape[1])),
        )
        axes.set_position((LEFT, BOTTOM, 0.74, TOP - BOTTOM))
        bar = axes.figure.colorbar(image, cax=axes.figure.add_axes((0.87, BOTTOM, 0.018, TOP - BOTTOM)))
        bar.outline.set_visible(False)
        bar.ax.yaxis.set_major_locator(LogLocator(base=10, numticks=5))
        bar.ax.yaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}"))
        bar.ax.minorticks_off()
        bar.set_label("credits per node-round")
        _time_axis(axes, view, "rounds ahead")

    return _svg("prices", draw)


def _welfare_figure(view: MarketView) -> str:
    """Draw welfare and revenue so far under the bound on every schedule."""

    def draw(axes: Axes) -> None:
        if view.bound is not None:
            axes.step(_edges(view.horizon), _from_zero(view.bound), color=INK, linewidth=1.2, label="bound")
        axes.step(_edges(view.round), _from_zero(view.welfare), color=GREEN, label="welfare")
        axes.step(_edges(view.round), _from_zero(view.revenue), color=ORANGE, linestyle=DASHES, label="revenue")
        axes.fill_between(_edges(view.round), _from_zero(view.welfare), color=GREEN, alpha=0.12, linewidth=0)
        axes.axvline(view.round, color=GREY, linewidth=0.8)
        _time_axis(axes, view, "credits")
        reached = view.welfare if view.bound is None else view.bound[: rounds_across(view)]
        axes.set_ylim(0, 1.06 * float(np.max(reached, initial=0.0)) or 1.0)
        _legend(axes, 3)

    return _svg("welfare", draw)


def _utility_figure(view: MarketView) -> str:
    """Draw the utility of an average owner of each strategy, with 95 % intervals at the last round."""

    def draw(axes: Axes) -> None:
        for group, colour, line in zip(view.groups, (BLUE, PINK), ("solid", DASHES), strict=False):
            axes.step(_edges(view.round), _from_zero(group.by_round), color=colour, linestyle=line, label=group.name)
            if view.round and np.isfinite(group.half_width):  # side by side, or one would hide the other
                across = rounds_across(view)
                beside = min(view.round, 0.965 * across) + across * (0.01 if colour == BLUE else 0.025)
                axes.errorbar(beside, group.mean, group.half_width, color=colour, capsize=3, linewidth=1.2)
        _time_axis(axes, view, "credits per owner")
        if all(group.mean == 0.0 for group in view.groups):
            axes.set_ylim(0, 1)
        _legend(axes, 2)

    return _svg("utilities", draw)


FIGURES = {"load": _load_figure, "prices": _price_figure, "welfare": _welfare_figure, "utilities": _utility_figure}


def _story_figure(story: Story) -> str:
    """Draw value, price and failure of every start a job could have had; '' if there was none."""
    reason = story.reason
    if not reason.starts.size:
        return ""

    def draw(axes: Axes) -> None:
        starts = reason.starts
        lies = story.strategy != "truthful"
        axes.step(starts, reason.values, where="mid", color=GREEN, label="value reported" if lies else "value")
        if not np.allclose(story.truth_values, reason.values):
            look: dict[str, Any] = {"color": GREEN, "linewidth": 1.2, "linestyle": DOTS}
            axes.step(
                starts, story.truth_values, where="mid", label="true value" if lies else "value of this run", **look
            )
        prices = np.where(np.isfinite(reason.prices), reason.prices, np.nan)
        if np.isfinite(prices).any():
            axes.step(starts, prices, where="mid", color=ORANGE, linestyle=DASHES, label="price")
        tallest = max(float(np.nanmax(x, initial=0.0)) for x in (reason.values, prices, story.truth_values))
        axes.set_ylim(0, 1.12 * tallest or 1.0)
        if np.isfinite(reason.failures).any():
            axes.set_position((LEFT, BOTTOM, 0.795, TOP - BOTTOM))
            other = axes.twinx()
            other.bar(starts, 100 * np.nan_to_num(reason.failures), width=0.9, color=PINK, alpha=0.3)
            other.set_ylim(0, 100)
            other.set_ylabel("failure, %")
            axes.bar([starts[0]], [0.0], color=PINK, alpha=0.3, label="failure")
        if reason.chosen is not None:
            axes.axvline(reason.chosen, color=INK, linewidth=1.4, label=f"chosen: {reason.chosen}")
        axes.set_xlim(starts[0] - 0.7, starts[-1] + 0.7)
        axes.xaxis.set_major_locator(MaxNLocator(10, integer=True))
        axes.set_xlabel("start in round")
        axes.set_ylabel("credits")
        _legend(axes, 5)

    return _svg("story", draw)


def _svg(name: str, draw: Callable[[Axes], None]) -> str:
    """Draw one panel and return it as an SVG element; ``name`` keeps its identifiers its own."""
    with _ONE_AT_A_TIME, matplotlib.rc_context({**_STYLE, "svg.hashsalt": name}):
        figure = Figure(figsize=SIZE, facecolor="none")
        draw(figure.add_axes((LEFT, BOTTOM, RIGHT - LEFT, TOP - BOTTOM)))
        buffer = io.StringIO()
        figure.savefig(buffer, format="svg", metadata={"Date": None})
    text = buffer.getvalue()
    text = text[text.index("<svg") :].replace(INK, PAGE_INK)
    points = f'width="{72 * SIZE[0]:g}pt" height="{72 * SIZE[1]:g}pt"'
    return text.replace(points, f'role="img" aria-label="figure: {name}"', 1)  # as wide as its place


def _coloured(surface: NDArray[np.float64] | None) -> tuple[NDArray[np.float64], float, float] | None:
    """Return the prices worth drawing and the ends of their colours; None if no price ever differs."""
    if surface is None or not surface.size:
        return None
    prices = np.where(np.isfinite(surface) & (surface > 0), surface, np.nan)
    if np.isnan(prices).all():
        return None
    high = float(np.nanmax(prices))
    low = max(float(np.nanmin(prices)), high / COLOUR_RANGE)
    if high <= 1.0001 * low:
        return None
    moved = np.flatnonzero(np.where(np.isnan(prices), 0.0, prices).max(axis=0) > 1.05 * low)
    return prices[:, : moved[-1] + 1], low, high


def _edges(n_rounds: int) -> NDArray[np.float64]:
    return np.arange(n_rounds + 1, dtype=np.float64)


def _closed(values: Any) -> NDArray[np.float64]:
    """Repeat the last value, so that a step drawn from edge to edge shows it."""
    array = np.asarray(values, dtype=np.float64)
    return np.append(array, array[-1] if array.size else 0.0)


def _from_zero(values: Any) -> NDArray[np.float64]:
    """Begin sums at 0, before round 1."""
    return np.concatenate([[0.0], np.asarray(values, dtype=np.float64)])


def rounds_across(view: MarketView) -> int:
    """Return how many rounds a figure shows: half as many again and again, while all that happened fits in."""
    shown = float(view.horizon)
    while shown / 2.0 >= max(FEWEST_ROUNDS, 1.2 * view.round):
        shown /= 2.0
    return math.ceil(shown)


def _time_axis(axes: Axes, view: MarketView, label: str) -> None:
    shown = rounds_across(view)
    axes.set_xlim(0, shown)
    axes.set_xlabel("round" if shown == view.horizon else f"round (of {view.horizon:,})")
    axes.set_ylabel(label)
    axes.xaxis.set_major_locator(MaxNLocator(8, integer=True))
    axes.yaxis.set_major_locator(MaxNLocator(4))
    axes.yaxis.set_major_formatter(FuncFormatter(_short))
    axes.grid(axis="y")


def _short(number: float, _: object = None) -> str:
    return f"{number / 1000:,g}k" if abs(number) >= 10_000 else f"{number:,g}"


def _legend(axes: Axes, columns: int) -> None:
    axes.legend(loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=columns)
