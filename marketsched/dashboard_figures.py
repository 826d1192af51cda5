"""The dashboard's figures, as SVG text that takes the page's own ink: readable in light and in dark.

Figures are drawn with matplotlib's objects alone. Its settings are global, so one figure is drawn at
a time, whoever's it is.
"""

from __future__ import annotations

import io
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator
from numpy.typing import NDArray

from marketsched.dashboard_session import Story
from marketsched.dashboard_view import View

INK, PAGE_INK = "#010203", "currentColor"  # stands for the page's text colour; nothing else is of that colour
BLUE, ORANGE, RED, GREEN, GREY = "#3d86c6", "#e08a00", "#e0434f", "#2a9d6f", "#8a8a8a"
COLOUR_RANGE = 2000.0  # of the prices; cheaper slots are all as good as free
SIZE = (6.6, 2.75)  # inches
LEFT, RIGHT, BOTTOM, TOP = 0.112, 0.985, 0.165, 0.895  # edges of a panel, as shares of the figure
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


@dataclass(frozen=True, slots=True)
class Pictures:
    """The figures of one frame, each an SVG element, or '' where there is nothing to draw."""

    load: str = ""
    prices: str = ""
    welfare: str = ""
    utilities: str = ""
    story: str = ""


def pictures(view: View | None, story: Story | None) -> Pictures:
    """Draw all figures of a market and of the job that is looked at."""
    if view is None:
        return Pictures()
    market = (load_figure(view), price_figure(view), welfare_figure(view), utility_figure(view))
    return Pictures(*market, "" if story is None else story_figure(story))


def load_figure(view: View) -> str:
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
        top = view.capacity * 1.28
        for counts, colour, word, height in (
            (view.cancelled, ORANGE, "cancelled", 1.09),
            (view.evicted, RED, "evicted", 1.19),
        ):
            hit = counts[counts > 0]  # the more at once, the larger the mark
            where, place = rounds[counts > 0] - 0.5, np.full(hit.size, view.capacity * height)
            axes.scatter(where, place, 14 + 10 * np.sqrt(hit), color=colour, marker="v", linewidth=0)
            axes.plot([], [], "v", color=colour, markersize=5, linestyle="none", label=f"{word} {int(hit.sum()):,}")
        axes.axvline(now, color=GREY, linewidth=0.8)
        axes.set_ylim(0, top)
        _time_axis(axes, view, "busy nodes")
        _legend(axes, 5)

    return _svg("load", draw)


def price_figure(view: View) -> str:
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
            cmap="viridis",
            norm=LogNorm(low, max(high, 1.01 * low)),
            extent=(0.0, float(prices.shape[0]), 0.0, float(prices.shape[1])),
        )
        axes.set_position((LEFT, BOTTOM, 0.77, TOP - BOTTOM))
        bar = axes.figure.colorbar(image, cax=axes.figure.add_axes((0.905, BOTTOM, 0.018, TOP - BOTTOM)))
        bar.outline.set_visible(False)
        bar.ax.yaxis.set_major_locator(LogLocator(base=10, numticks=5))
        bar.ax.yaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}"))
        bar.set_label("credits per node-round")
        _time_axis(axes, view, "rounds ahead")

    return _svg("prices", draw)


def welfare_figure(view: View) -> str:
    """Draw welfare and revenue so far under the bound on every schedule."""

    def draw(axes: Axes) -> None:
        if view.bound is not None:
            axes.step(_edges(view.horizon), _from_zero(view.bound), color=INK, linewidth=1.2, label="bound")
        for values, colour, label in ((view.welfare, GREEN, "welfare"), (view.revenue, ORANGE, "revenue")):
            axes.step(_edges(view.round), _from_zero(values), color=colour, label=label)
        axes.fill_between(_edges(view.round), _from_zero(view.welfare), color=GREEN, alpha=0.12, linewidth=0)
        axes.axvline(view.round, color=GREY, linewidth=0.8)
        _time_axis(axes, view, "credits")
        axes.set_ylim(bottom=0)
        _legend(axes, 3)

    return _svg("welfare", draw)


def utility_figure(view: View) -> str:
    """Draw the utility of an average owner of each strategy, with 95 % intervals at the last round."""

    def draw(axes: Axes) -> None:
        for group, colour in zip(view.groups, (BLUE, RED), strict=False):
            axes.step(_edges(view.round), _from_zero(group.by_round), color=colour, label=group.name)
            if view.round and np.isfinite(group.half_width):  # side by side, or one would hide the other
                beside = view.round + view.horizon * (0.008 if colour == BLUE else 0.02)
                axes.errorbar(beside, group.mean, group.half_width, color=colour, capsize=3, linewidth=1.2)
        _time_axis(axes, view, "credits per owner")
        _legend(axes, 2)

    return _svg("utilities", draw)


def story_figure(story: Story) -> str:
    """Draw value, price and failure of every start a job could have had; '' if there was none."""
    reason = story.reason
    if not reason.starts.size:
        return ""

    def draw(axes: Axes) -> None:
        starts = reason.starts
        told = "value told" if story.strategy != "truthful" else "value"
        axes.step(starts, reason.values, where="mid", color=GREEN, label=told)
        if not np.allclose(story.truth_values, reason.values):
            look: dict[str, Any] = {"color": GREEN, "linewidth": 1.0, "linestyle": (0, (2, 1.5))}
            axes.step(starts, story.truth_values, where="mid", label="true value", **look)
        prices = np.where(np.isfinite(reason.prices), reason.prices, np.nan)
        if np.isfinite(prices).any():
            axes.step(starts, prices, where="mid", color=ORANGE, label="price")
        tallest = max(float(np.nanmax(x, initial=0.0)) for x in (reason.values, prices, story.truth_values))
        axes.set_ylim(0, 1.12 * tallest or 1.0)
        if np.isfinite(reason.failures).any():
            axes.set_position((LEFT, BOTTOM, 0.795, TOP - BOTTOM))
            other = axes.twinx()
            other.bar(starts, 100 * np.nan_to_num(reason.failures), width=0.9, color=RED, alpha=0.3)
            other.set_ylim(0, 100)
            other.set_ylabel("failure, %")
            axes.bar([starts[0]], [0.0], color=RED, alpha=0.3, label="failure")
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


def _time_axis(axes: Axes, view: View, label: str) -> None:
    axes.set_xlim(0, view.horizon)
    axes.set_xlabel("round")
    axes.set_ylabel(label)
    axes.xaxis.set_major_locator(MaxNLocator(8, integer=True))
    axes.yaxis.set_major_locator(MaxNLocator(4))
    axes.yaxis.set_major_formatter(FuncFormatter(_short))
    axes.grid(axis="y")


def _short(number: float, _: object = None) -> str:
    """Write a tick in a few characters."""
    return f"{number / 1000:,g}k" if abs(number) >= 10_000 else f"{number:,g}"


def _legend(axes: Axes, columns: int) -> None:
    axes.legend(loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=columns)
