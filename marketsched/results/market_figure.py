"""The picture of a run, for a talk or a paper.

One figure summarises a market: the use of the cluster by owner, with promised and requested nodes; which jobs were
removed on the way; and the price of a node, by hour and hours ahead.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import matplotlib
import numpy as np
import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter, Locator, LogLocator, MaxNLocator, MultipleLocator, NullFormatter
from numpy.typing import NDArray

from marketsched.agents.result import nodes_in_use
from marketsched.results.panels import GREY, INK, MUTED, OKABE_ITO, STYLE

CANCELLED, EVICTED = "#d98a00", "#a50f15"
# From the most important band, at the bottom of the stack, to the least: one hue, dark to light, so
# that the order reads without a legend and without colour vision.
BLUES = ("#08306b", "#2f7ab8", "#a6cde6")
DRAWN = ("start", "completion", "removed", "declared_concurrency", "band")  # columns of the jobs
BANDS = ("production", "middle", "free")
MOST_BANDS = len(OKABE_ITO)
LEFT = 0.078  # left edge of the panels, as a share of the width
COLOUR_RANGE = 2000.0  # range of the colours; cheaper slots are all as good as free
ROWS_AT_ONCE = 4096  # of a price surface that is looked through: one of a million jobs takes tens of megabytes
MOST_COLUMNS = 4096  # across a figure, more than there are pixels
MOST_BARS = 160  # bars across the figure; more would be thinner than a line


class _MarketTables(Protocol):
    """What is drawn: a `Result` of kind ``market``, or the tables of a market that has been played."""

    @property
    def jobs(self) -> pd.DataFrame: ...

    @property
    def rounds(self) -> pd.DataFrame: ...

    @property
    def outcome(self) -> Mapping[str, Any]: ...


def run_figure(
    result: _MarketTables,
    prices: NDArray[np.floating] | None = None,
    *,
    round_seconds: float | None = None,
    title: str = "",
    shared: bool = False,
) -> Figure:
    """Draw a run: load against capacity, removals, and prices hours ahead.

    The load is stacked by the jobs' tag ``band``, if they have one, under a thick line at capacity.
    The dashed line is the load expected by all launch plans, the thin grey one the load if every
    job had started at its arrival. Below, on a log scale, the jobs cancelled and evicted. At the bottom the
    price of a node: submission time across, hours ahead up, colour on a log scale; a busy slot
    comes nearer along a diagonal. Panels without anything to show are left out.

    Parameters
    ----------
    result : Result of kind ``market``, or `marketsched.agents.result.RunResult`
        Tables of the run; only finished rounds are drawn.
    prices : ndarray of float, shape (n_rounds, lookahead), optional
        Row ``t - 1``: prices of slots ``t, t + 1, ...`` at the start of round ``t``, as far as they are
        `worth_drawing`.
    round_seconds : float, optional
        Length of a round in seconds; without it time is counted in rounds.
    title : str
        Headline.
    shared : bool
        Whether jobs may share nodes: those in use are drawn, which no sum over jobs is, and nothing is stacked.

    Returns
    -------
    Figure
        12 x 6.75 inches, the shape of a slide.
    """
    clock = TimeAxis(len(result.rounds), round_seconds)
    removals = int(result.rounds[["cancelled", "evicted"]].to_numpy().sum())
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(12, 6.75), facecolor="white")
        # Rows of the grid, gaps included: the removals hang close below the load they come from.
        rows = [3.0] + [0.12, 1.0] * (removals > 0) + [0.3, 2.1] * (prices is not None)
        grid = figure.add_gridspec(
            len(rows),
            2,
            height_ratios=rows,
            width_ratios=[1, 0.014],
            wspace=0.025,
            hspace=0,
            left=LEFT,
            right=0.912,
            top=0.835,
            bottom=0.085,
        )
        panels = [figure.add_subplot(grid[0, 0])]
        panels += [figure.add_subplot(grid[i, 0], sharex=panels[0]) for i in range(2, len(rows), 2)]
        _draw_load(panels[0], result, result.outcome["capacity"], clock, shared)
        if removals:
            _draw_removals(panels[1], result.rounds, clock)
        if prices is not None:
            _draw_prices(panels[-1], figure.add_subplot(grid[-1, 1]), prices, clock)
        _share_time(panels, clock)
        _headline(figure, result.outcome, title, shared)
    return figure


class TimeAxis:
    """Rounds as minutes, hours or days, or as rounds where a round has no length."""

    def __init__(self, n_rounds: int, round_seconds: float | None) -> None:
        self.n_rounds = n_rounds
        self.seconds = round_seconds
        length = n_rounds * (round_seconds or 0.0)
        self.unit, seconds = "days", 86400.0
        if round_seconds is None:
            self.unit, seconds = "rounds", 1.0
        elif length < 3 * 3600:
            self.unit, seconds = "minutes", 60.0
        elif length < 10 * 86400:
            self.unit, seconds = "hours", 3600.0
        self.step = (round_seconds or 1.0) / seconds
        self.edges = np.arange(n_rounds + 1) * self.step  # round t lasts from edge t - 1 to edge t
        self._columns = np.arange(0, n_rounds, max(1, -(-n_rounds // MOST_COLUMNS)))  # their first rounds

    @property
    def corners(self) -> NDArray[np.float64]:
        """The edges between which a line has steps: those of all rounds, or of several where there are many."""
        return np.append(self.edges[self._columns], self.edges[-1])

    def steps(self, values: Any) -> NDArray[np.float64]:
        """Return the heights of a line at the corners, the last one twice; of several rounds the highest."""
        array = np.asarray(values, dtype=np.float64)
        heights = np.maximum.reduceat(array, self._columns) if array.size else array
        return np.append(heights, heights[-1:])

    def span(self, rounds: int) -> str:
        """Say how long some rounds are."""
        if self.seconds is None:
            return "round" if rounds == 1 else f"{rounds} rounds"
        for seconds, unit in ((3600.0, "h"), (60.0, "min"), (1.0, "s")):
            if rounds * self.seconds >= 1.5 * seconds or unit == "s":
                return f"{rounds * self.seconds / seconds:.3g} {unit}"
        raise AssertionError("the last unit always fits")

    def ticks(self, most: int = 15) -> Locator:
        """Place at most so many ticks, in hours at times that divide a day."""
        if self.unit != "hours":
            return MaxNLocator(min(12, most), steps=[1, 2, 5, 10], integer=self.unit == "rounds")
        return MultipleLocator(next(hours for hours in (1, 2, 3, 6, 12, 24, 48, 96) if self.edges[-1] <= most * hours))


def _draw_load(axes: Axes, result: _MarketTables, capacity: int, clock: TimeAxis, shared: bool) -> None:
    """Stack the busy nodes by band, under the lines for capacity, promises and demand.

    Where nodes are ``shared``, widths of jobs are tasks, which are no nodes: only nodes and capacity are drawn.
    """
    rounds = result.rounds
    handles: list[Artist] = []
    floor = np.zeros(clock.n_rounds)
    if shared:
        bands = [("nodes in use, at least in part", BLUES[1], rounds["load"].to_numpy())]
    else:
        bands = load_by_band(result.jobs, clock.n_rounds)
    taken_back = rounds["load"].to_numpy() - sum((load for _, _, load in bands), np.zeros(clock.n_rounds))
    if (
        not shared and "requeued" in rounds and rounds["requeued"].any()
    ):  # the jobs table knows the last run of each job
        bands.append(("taken back", MUTED, taken_back))
    for band, colour, load in bands:
        top = floor + load
        axes.fill_between(
            clock.corners, clock.steps(floor), clock.steps(top), step="post", color=colour, linewidth=0, label=band
        )
        handles.append(Patch(facecolor=colour, label=band))
        floor = top
    demand, promised = (rounds[name].to_numpy() for name in ("demand", "promised"))
    asked = 0 if shared or not demand.size else int(demand.max())
    lines: list[tuple[str, Any, dict[str, Any]]] = [
        (f"if all started at arrival (peak {asked:,})", demand, {"color": GREY, "linewidth": 0.8}),
        ("promised", promised, {"color": INK, "linewidth": 1.2, "linestyle": (0, (2.5, 1.5))}),
    ]
    for label, values, look in () if shared else lines:
        if not np.isnan(np.asarray(values, dtype=float)).all():
            axes.step(clock.corners, clock.steps(values), where="post", **look)
            handles.append(Line2D([], [], label=label, **look))
    axes.axhline(capacity, color=INK, linewidth=2.8, zorder=4)
    axes.set_ylim(0, max(1.15 * capacity, 1.04 * min(asked, 2.2 * capacity)))
    axes.yaxis.set_major_locator(MaxNLocator(5, integer=True))
    axes.set_ylabel("busy nodes")
    _label_outside(axes, capacity / axes.get_ylim()[1], f"capacity\n{capacity:,}", INK)
    axes.legend(
        handles=handles,
        loc="lower left",
        bbox_to_anchor=(-0.005, 1.0),
        ncols=len(handles),
        frameon=False,
        fontsize=11.5,
        handlelength=1.5,
        columnspacing=1.6,
        handletextpad=0.55,
        borderaxespad=0.3,
    )


def _draw_removals(axes: Axes, rounds: pd.DataFrame, clock: TimeAxis) -> None:
    """Hang bars of cancelled and evicted jobs from the axis above, on a log scale."""
    width = max(1, -(-clock.n_rounds // MOST_BARS))
    starts = np.arange(0, clock.n_rounds, width)
    most = 1
    for label, colour, share in (("cancelled", CANCELLED, 1.0), ("evicted", EVICTED, 0.5)):
        counts = np.add.reduceat(rounds[label].to_numpy(), starts)
        most = max(most, int(counts.max()))
        seen = counts > 0
        axes.bar(
            clock.edges[starts[seen]] + width * clock.step / 2,
            counts[seen],
            width=width * clock.step * share,
            bottom=0,
            color=colour,
            linewidth=0,
            label=label,
        )
    axes.set_yscale("log")
    axes.set_ylim(max(1.6 * most, 15), 0.6)
    axes.yaxis.set_major_locator(LogLocator(base=10, numticks=4))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:,.0f}"))
    axes.yaxis.set_minor_formatter(NullFormatter())
    axes.set_ylabel(f"removed\nper {clock.span(width)}", fontsize=10.5)
    axes.spines["top"].set_visible(True)
    axes.spines["bottom"].set_visible(False)
    axes.tick_params(axis="x", bottom=False)
    _label_outside(axes, 0.8, "cancelled", CANCELLED)
    _label_outside(axes, 0.5, "evicted", EVICTED)


def _draw_prices(axes: Axes, bar: Axes, surface: NDArray[np.floating], clock: TimeAxis) -> None:
    """Draw the price of a slot by the time at which it is asked for (across) and its distance (up)."""
    legal = surface[np.isfinite(surface) & (surface > 0)]
    highest = float(legal.max())
    lowest = max(float(legal.min()), highest / COLOUR_RANGE)
    columns = min(len(surface), MOST_COLUMNS)
    image = axes.imshow(
        surface[(np.arange(columns) * 2 + 1) * len(surface) // (2 * columns)].T,
        origin="lower",
        aspect="auto",
        interpolation="nearest",
        cmap="magma_r",
        norm=LogNorm(lowest, max(highest, 1.01 * lowest)),
        extent=(0.0, float(clock.edges[-1]), 0.0, surface.shape[1] * clock.step),
    )
    axes.set_ylabel(f"{clock.unit} ahead")
    axes.yaxis.set_major_locator(MaxNLocator(4, steps=[1, 2, 3, 5, 6, 10], integer=True))
    colours = axes.figure.colorbar(image, cax=bar, extend="min" if lowest > legal.min() else "neither")
    colours.set_label("price of a node-round", fontsize=11, labelpad=3)
    colours.outline.set_visible(False)
    bar.tick_params(labelsize=10.5, pad=2)
    bar.yaxis.set_major_locator(LogLocator(base=10, numticks=5))
    bar.yaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}"))


def _share_time(panels: Sequence[Axes], clock: TimeAxis) -> None:
    """Label the time axis once, at the bottom."""
    end = float(clock.edges[-1]) if clock.n_rounds else clock.step
    panels[0].set_xlim(0, end)
    panels[0].xaxis.set_major_locator(clock.ticks())
    for axes in panels[:-1]:
        axes.tick_params(labelbottom=False)
    panels[-1].set_xlabel(f"time, {clock.unit}")


def _headline(figure: Figure, summary: Mapping[str, Any], title: str, shared: bool) -> None:
    """Write the title, and what the run came to."""
    if not summary["complete"]:
        title = f"{title} (interrupted after round {summary['rounds']} of {summary['horizon']})".strip()
    figure.text(LEFT, 0.975, title, fontsize=17, fontweight="bold", color=INK, va="top")
    done = summary["completed"] / max(summary["jobs"], 1)
    parts = [
        f"{_short(summary['jobs'])} job{'s' * (summary['jobs'] != 1)}, {done:.0%} completed",
        f"{_short(summary['cancelled'])} cancelled",
        f"{_short(summary['evicted'])} evicted",
        f"{'nodes in use' if shared else 'utilisation'} {summary['utilisation']:.0%}",
        f"welfare {_short(summary['welfare'])}",
        f"revenue {_short(summary['revenue'])}",
    ]
    figure.text(LEFT, 0.918, "  ·  ".join(parts), fontsize=12, color=MUTED, va="top")


def _short(number: float) -> str:
    """Write a figure in a few characters."""
    if abs(number) < 1e6:
        return f"{number:,.0f}" if abs(number) >= 100 else f"{number:.3g}"
    return f"{number / 1e6:.4g} M" if abs(number) < 1e9 else f"{number:.3g}"


def _label_outside(axes: Axes, height: float, text: str, colour: str) -> None:
    """Write beside the right edge, at a height from 0 to 1: a label needs no legend and hides nothing."""
    axes.text(
        1.008,
        height,
        text,
        transform=axes.transAxes,
        color=colour,
        fontsize=11.5,
        fontweight="bold",
        va="center",
        linespacing=1.1,
    )


def load_by_band(jobs: pd.DataFrame, n_rounds: int) -> list[tuple[str, str, NDArray[np.int64]]]:
    """Return (band, colour, busy nodes per round), the most important band first."""
    jobs = jobs[[name for name in DRAWN if name in jobs]]
    ran = jobs[jobs["start"].notna()]
    first = ran["start"].to_numpy(dtype=np.int64)
    after = ran["completion"].fillna(ran["removed"]).fillna(n_rounds + 1).to_numpy(dtype=np.int64)
    nodes = ran["declared_concurrency"].to_numpy(dtype=np.int64)
    if "band" not in jobs or not jobs["band"].notna().any():
        return [("busy", BLUES[1], nodes_in_use(first, after, nodes, n_rounds))]
    bands = ran["band"].fillna("other").astype(str).to_numpy()
    names, colours = _ordered_bands(jobs["band"].dropna().astype(str).unique().tolist())
    found = []
    for i, (name, colour) in enumerate(zip(names, colours, strict=True)):
        mine = bands == name if i < MOST_BANDS - 1 or len(names) <= MOST_BANDS - 1 else ~np.isin(bands, names[:i])
        found.append((name, colour, nodes_in_use(first[mine], after[mine], nodes[mine], n_rounds)))
    return found


def _ordered_bands(names: list[str]) -> tuple[list[str], tuple[str, ...]]:
    """Order the bands, and choose their colours."""
    if set(names) <= set(BANDS):
        known = [name for name in BANDS if name in names]
        return known, tuple(BLUES[BANDS.index(name)] for name in known)
    names = sorted(names)
    if len(names) > MOST_BANDS:
        names = [*names[: MOST_BANDS - 1], "other"]
    return names, OKABE_ITO[: len(names)]


def worth_drawing(surface: NDArray[np.float32] | None) -> NDArray[np.float32] | None:
    """Cut off the far future in which slots are as good as free; None if no price ever moved."""
    if surface is None or not surface.size:
        return None
    lowest, tops = np.inf, np.zeros(surface.shape[1])  # what is free or sold out does not count
    for begin in range(0, len(surface), ROWS_AT_ONCE):
        part = surface[begin : begin + ROWS_AT_ONCE]
        legal = np.isfinite(part) & (part > 0)
        lowest = min(lowest, float(part.min(where=legal, initial=np.inf)))
        np.maximum(tops, part.max(axis=0, where=legal, initial=0), out=tops)
    moved = np.flatnonzero(tops > max(1.05 * lowest, tops.max() / COLOUR_RANGE))
    if not moved.size:
        return None
    shown = surface[:, : moved[-1] + 1]
    return np.where(np.isfinite(shown) & (shown > 0), shown, np.float32(np.nan))
