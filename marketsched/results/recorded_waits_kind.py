"""Results of `marketsched waits`: how a log ran, why its jobs waited, and in which order they were started."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from rich.text import Text

from marketsched.results.kinds import ResultKind
from marketsched.results.panels import INK, MUTED, OKABE_ITO
from marketsched.results.recorded_view import HEADS, WORDS, as_it_ran
from marketsched.results.result import Result
from marketsched.results.views import Column, View, table_of

MOST_GROUPS, MOST_BARS = 12, 6  # of each kind that are shown; the table has all
NODES = {"ahead", "overtaken"}


class RecordedWaitsKind(ResultKind):
    """Tables ``causes``, ``jobs`` and, by user, queue or width, ``groups``."""

    title = "why recorded jobs waited"
    table = "causes"

    def view(self, result: Result) -> View:
        meta, row = result.meta, result.outcome
        waits = (row["mean_wait_hours"], row["q50_wait_hours"], row["q90_wait_hours"], row["longest_wait_hours"])
        lines = [f"{as_it_ran(*waits, row['utilisation'])}.", *filter(None, [meta["waits"]])]
        head = Text("\n".join(lines), style="bold")
        about = f"{meta['name']}: {row['jobs']:,} jobs, {row['nodes']:,} nodes"
        shown: list[Any] = [
            each for each in result.causes.to_dict("records") if each["share"] >= 0.0005 or each["placebo"] > 0
        ]
        columns = [
            Column("of all\nwaiting, %", lambda each: f"{100 * each['share']:.1f}"),
            Column("alone,\n%", lambda each: _percent(each["alone"])),
            Column("placebo,\n%", lambda each: _percent(each["placebo"])),
        ]
        table = table_of(shown, Column("", lambda each: WORDS[each["cause"]]), columns)
        notes = [
            "each moment of a wait has the first of these causes that suffices; the first minute is the scheduler's",
            "alone: what the cause would explain if it were the only one; placebo: what the same rule finds where "
            "users, queues, weeks or starts are shuffled. Below three placebos a cause is not believed",
        ]
        groups = result.tables.get("groups")
        more = [] if groups is None else [_group_table(own) for _, own in groups.groupby("by", sort=False)]
        return View(head, Text(about, style="dim"), table, Text(meta["order"]), *more, *map(_note, notes))

    def figures(self, result: Result) -> dict[str, Figure]:
        bars = [("all", result.causes.set_index("cause")["share"])]
        groups = result.tables.get("groups")
        if groups is not None:
            bars += [(f"{row['by']} {row['name']}", row) for _, row in groups.groupby("by").head(MOST_BARS).iterrows()]
        return {"figure": _figure(result, bars)} if result.meta["waits"] else {}


def _note(text: str) -> Text:
    return Text(f"- {text}")


def _cell(name: str, row: Mapping[str, Any]) -> str:
    return _percent(row[name])


def _percent(share: float) -> str:
    return f"{100 * share:.1f}" if math.isfinite(share) else "-"


def _group_table(groups: Any) -> Any:
    """Return the groups of one kind, a column for each cause that holds 5 % of one."""
    shown = groups.head(MOST_GROUPS)
    kept = [name for name in WORDS if name in shown and (shown[name] * shown["share"]).sum() >= 0.02]
    columns = [
        Column("jobs", lambda row: f"{row['jobs']:,}"),
        Column("mean wait,\nh", lambda row: f"{row['mean_wait_hours']:.2f}"),
        Column("of all\nwaiting, %", lambda row: _percent(row["share"])),
        *(Column(f"{HEADS[name]},\n%", partial(_cell, name)) for name in kept),
    ]
    return table_of(shown.to_dict("records"), Column(shown["by"].iloc[0], lambda row: str(row["name"])), columns)


def _figure(result: Result, bars: Any) -> Figure:
    """Draw shares of causes, a bar for all waiting and for each group."""
    names = [name for name in WORDS if any(bar[name] >= 0.005 for _, bar in bars)]
    figure = Figure(figsize=(12, 2.5 + 0.42 * len(bars)), facecolor="white")
    height = figure.get_figheight()
    axes = figure.add_axes((0.13, 0.62 / height, 0.85, 0.42 * len(bars) / height))
    figure.text(
        0.012, 1 - 0.1 / height, "why recorded jobs waited", fontsize=16, fontweight="bold", va="top", color=INK
    )
    left = np.zeros(len(bars))
    for place, name in enumerate(names):
        shares = np.array([bar[name] if math.isfinite(bar[name]) else 0.0 for _, bar in bars])
        colour = MUTED if name in NODES else OKABE_ITO[place % len(OKABE_ITO)]
        hatch = {"overtaken": "//", "unexplained": ".."}.get(name, "//" if place >= len(OKABE_ITO) else "")
        colour = "#e4e4e4" if name == "unexplained" else colour
        style: dict[str, Any] = {"color": colour, "hatch": hatch, "edgecolor": "white", "linewidth": 0.5}
        axes.barh(range(len(bars)), shares, left=left, label=WORDS[name], **style)
        left += shares
    axes.set_yticks(range(len(bars)), [label for label, _ in bars])
    axes.set_ylim(len(bars) - 0.5, -0.5)
    axes.set_xlim(0, 1)
    axes.xaxis.set_major_formatter(lambda x, _: f"{x:.0%}")
    axes.set_xlabel(f"of the waiting of {result.meta['name']}")
    look: dict[str, Any] = {"frameon": False, "fontsize": 10, "ncols": 2, "loc": "upper left"}
    figure.legend(bbox_to_anchor=(0.005, 1 - 0.42 / height), **look)
    return figure
