"""Pictures of schedules: utilisation over time, the distribution of slowdowns, and who is on which node."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import matplotlib
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter
from numpy.typing import NDArray

from marketsched.results.market_figure import BLUES, TimeAxis
from marketsched.results.panels import GREY, INK, MUTED, STYLE, look, short
from marketsched.results.schedules import busiest_window, busy_nodes, node_rows, own_rows

MOST_POINTS = 90  # of a line over time
WINDOW = 72  # rounds of a Gantt chart
ACROSS = 2  # charts of one mechanism beside each other
CLASSES = {0: ("patient", BLUES[2]), 1: ("middle", BLUES[1]), 2: ("urgent", BLUES[0]), -1: ("no class", GREY)}


def schedules_figure(schedules: pd.DataFrame, about: Mapping[str, Any], title: str) -> Figure:
    """Draw the share of nodes that is busy over time, and how many jobs are done with what bounded slowdown.

    Parameters
    ----------
    schedules : DataFrame
        As of `marketsched.results.schedules.schedule_table`, mechanisms below each other (six at most are legible).
    about : mapping
        ``capacity``, ``rounds``, ``last_birth``, ``round_seconds`` and ``seed`` of the market.
    title : str
        Headline.

    Returns
    -------
    Figure
        12 inches wide. A panel of busy nodes for each mechanism; a line on the right ends at the share of all jobs that
        was done.
    """
    names = list(dict.fromkeys(schedules["mechanism"]))
    rounds = min(int(about["rounds"]), int(about["last_birth"]) + WINDOW)
    clock = TimeAxis(rounds, about["round_seconds"])
    rows = -(-len(names) // ACROSS)
    with matplotlib.rc_context(STYLE):
        height = 2.6 + 1.1 * max(rows, 2)
        figure = Figure(figsize=(12, height), facecolor="white")
        grid = figure.add_gridspec(
            rows, ACROSS + 1, width_ratios=[*[1.0] * ACROSS, 1.5], left=0.06, right=0.985, top=1 - 1.25 / height,
            bottom=0.6 / height, wspace=0.2, hspace=0.45,
        )  # fmt: skip
        right = figure.add_subplot(grid[:, ACROSS])
        first: Axes | None = None
        for place, name in enumerate(names):
            axes = figure.add_subplot(grid[place // ACROSS, place % ACROSS], sharex=first, sharey=first)
            first = first or axes
            own = schedules[schedules["mechanism"] == name]
            _draw_busy(axes, busy_nodes(own, rounds) / about["capacity"], clock, look(place)["color"])
            axes.axvline(
                clock.edges[min(int(about["last_birth"]), rounds)], color=GREY, linewidth=0.8, linestyle=(0, (2, 2))
            )
            axes.set_title(name, fontsize=10.5, loc="left", pad=3)
            below = place + ACROSS < len(names)
            axes.tick_params(labelbottom=not below, labelleft=place % ACROSS == 0)
            axes.set_xlabel("" if below else clock.unit)
            slow = np.sort(own["bounded_slowdown"].dropna().to_numpy())
            right.step(
                slow, 100 * np.arange(1, slow.size + 1) / len(own_rows(own)), where="post", linewidth=1.8, **look(place)
            )
        right.set_xscale("log")
        right.set_xlim(left=0.97)
        right.xaxis.set_major_formatter(FuncFormatter(short))
        right.set_ylim(0, 104)
        right.set_title("jobs done within this bounded slowdown, %", fontsize=12, loc="left")
        right.set_xlabel("bounded slowdown")
        right.grid(color=GREY, alpha=0.25, linewidth=0.6)
        handles = [Line2D([], [], linewidth=2, label=name, **look(place)) for place, name in enumerate(names)]
        right.legend(handles=handles, loc="lower right", frameon=False, fontsize=9.5)
        figure.text(0.012, 1 - 0.15 / height, title, fontsize=15, fontweight="bold", va="top", color=INK)
        figure.text(0.985, 1 - 0.17 / height, f"seed {about['seed']}", fontsize=11, va="top", ha="right", color=MUTED)
        busy = "busy nodes, %; dotted: the last submission"
        figure.text(0.06, 1 - 0.7 / height, busy, fontsize=12, va="top", color=INK)
    return figure


def _draw_busy(axes: Axes, shares: NDArray[np.float64], clock: TimeAxis, colour: str) -> None:
    """Draw the share of busy nodes over time, means over blocks of rounds."""
    width = -(-shares.size // MOST_POINTS)
    middles = clock.edges[:-1:width] + width * clock.step / 2
    axes.fill_between(middles, 100 * _means(shares, width), color=colour, alpha=0.45, linewidth=0)
    axes.plot(middles, 100 * _means(shares, width), color=colour, linewidth=1.1)
    axes.set_ylim(0, 104)
    axes.set_yticks([0, 50, 100])
    axes.xaxis.set_major_locator(clock.ticks(most=7))
    axes.grid(color=GREY, alpha=0.25, linewidth=0.6)


def _means(values: NDArray[np.float64], width: int) -> NDArray[np.float64]:
    """Return means over blocks of ``width`` rounds; the last may be shorter."""
    starts = np.arange(0, values.size, width)
    return np.asarray(np.add.reduceat(values, starts) / np.diff(np.r_[starts, values.size]))


def gantt_figure(schedules: pd.DataFrame, about: Mapping[str, Any], title: str) -> Figure:
    """Draw who is on which node in the window in which jobs for most nodes wait, one chart for each mechanism.

    A job takes the lowest nodes that are free when it starts, so that it may be in several pieces; neighbours
    differ in brightness.

    Parameters
    ----------
    schedules, about, title
        As of `schedules_figure`.

    Returns
    -------
    Figure
        12 inches wide.
    """
    names = list(dict.fromkeys(schedules["mechanism"]))
    length = min(WINDOW, int(about["rounds"]))
    first = busiest_window(schedules, length, int(about["rounds"]))
    clock = TimeAxis(int(about["rounds"]), about["round_seconds"])
    rows = -(-len(names) // ACROSS)
    with matplotlib.rc_context(STYLE):
        height = 1.55 + 2.3 * rows
        figure = Figure(figsize=(12, height), facecolor="white")
        panels = figure.subplots(rows, ACROSS, sharex=True, sharey=True, squeeze=False).ravel()
        top = 1 - 1.1 / height
        figure.subplots_adjust(left=0.06, right=0.985, top=top, bottom=0.55 / height, wspace=0.05, hspace=0.22)
        ends = (float(clock.edges[first - 1]), float(clock.edges[first - 1] + length * clock.step))
        for axes, name in zip(panels, names, strict=False):
            _draw_nodes(axes, schedules[schedules["mechanism"] == name], int(about["capacity"]), first, length, ends)
            axes.set_title(name, fontsize=11, loc="left", pad=3)
        for axes in panels[len(names) :]:
            axes.set_visible(False)
        for axes in panels[max(0, len(names) - ACROSS) : len(names)]:
            axes.set_xlabel(clock.unit)
            axes.tick_params(labelbottom=True)
        for axes in panels[::ACROSS]:
            axes.set_ylabel("node")
        seen = sorted(schedules["class"].unique().tolist())
        handles = [Patch(color=CLASSES[each][1], label=CLASSES[each][0]) for each in seen if each in CLASSES]
        figure.text(0.012, 1 - 0.15 / height, title, fontsize=15, fontweight="bold", va="top", color=INK)
        about_text = f"seed {about['seed']}, {length} rounds in which jobs for most nodes wait"
        figure.text(0.985, 1 - 0.17 / height, about_text, fontsize=11, va="top", ha="right", color=MUTED)
        place: dict[str, Any] = {"loc": "upper left", "bbox_to_anchor": (0.005, 1 - 0.42 / height)}
        figure.legend(handles=handles, ncols=len(handles), frameon=False, fontsize=11, **place)
    return figure


def _draw_nodes(
    axes: Axes, schedule: pd.DataFrame, capacity: int, first: int, length: int, ends: tuple[float, float]
) -> None:
    """Draw the nodes of one mechanism as an image, one colour for each class."""
    grid = node_rows(schedule, capacity, first, length)
    classes = schedule["class"].to_numpy()
    colours = np.array([to_rgb(CLASSES.get(int(each), CLASSES[-1])[1]) for each in classes]).reshape(-1, 3)
    brightness = 0.75 + 0.25 * ((np.arange(len(schedule)) * 7919) % 5) / 4  # neighbours differ
    tones = 1 - (1 - colours) * brightness[:, None]
    image = np.ones((*grid.shape, 3))
    image[grid >= 0] = tones[grid[grid >= 0]]
    axes.imshow(image, aspect="auto", interpolation="nearest", origin="lower", extent=(*ends, 0, capacity))
