"""Mechanisms on the same jobs at several loads: what share of the best each earns, and against flat prices."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from rich.text import Text

from marketsched.results.answers import answer_of, rival_of
from marketsched.results.kinds import ResultKind
from marketsched.results.mechanisms_figure import MOST
from marketsched.results.mechanisms_kind import (
    BOUNDS,
    answer_head,
    drawn_owners,
    flat_remark,
    known_remarks,
    seeds_text,
    share_difference,
    sizes_remarks,
)
from marketsched.results.owners_view import owners_view
from marketsched.results.panels import GREY, MUTED, STYLE, frame, legend, look
from marketsched.results.result import Result
from marketsched.results.versus_view import versus_sentences
from marketsched.results.views import View, log_remarks, plain_table, warnings_of
from marketsched.results.waits_view import waits_view

MARKERS = "osD^vP*X"
# Titles and looks of the lines that all mechanisms are compared with.
FLAT: dict[str, tuple[str, Any]] = {
    "first_come": ("first-come at price 0", (0, (1, 1.6))),
    "best_flat": ("first-come at the best flat price", (0, (5, 2))),
    "best_flat_known": ("the same, knowing all durations", (0, (6, 1.5, 1, 1.5))),
}


def _flat_look(name: str) -> dict[str, Any]:
    return {"color": MUTED, "linewidth": 1.6, "linestyle": FLAT[name][1]}


class LoadsKind(ResultKind):
    """Table ``runs``, one row per seed, load and mechanism; one row of the summary per load and mechanism."""

    title = "comparison of mechanisms by load"
    compared = "mechanisms"
    by = ("load", "mechanism")

    def how_far(self, result: Result) -> str:
        return f"after {result.meta['runs']} of {result.meta['runs_asked_for']} seeds"

    def view(self, result: Result) -> View:
        meta, rows = result.meta, result.records()
        state = "" if result.complete else f", INTERRUPTED {result.how_far}"
        names = len(meta["mechanisms"])
        head = f"{meta['scenario']}: {names} mechanisms at {len(meta['loads'])} loads, {seeds_text(result)}{state}"
        known = any(math.isfinite(row.get("over_best_flat_known", math.nan)) for row in rows)
        rival = rival_of(meta)
        titles = ["welfare, %\nof bound", "against\nfirst-come at 0", "against best\nflat price"]
        columns = ["over_first_come", "over_best_flat"]
        if rival.column not in columns:
            titles.insert(1, f"against\n{rival.name}")
            columns.insert(0, rival.column)
        if known:
            titles.append("knowing all\ndurations")
            columns.append("over_best_flat_known")
        table = plain_table("nodes", "", *titles, first="load", room=4)
        names_column = table.columns[2]
        names_column.justify, names_column.no_wrap, names_column.overflow = "left", False, "fold"
        for place, row in enumerate(rows):
            first = not place or rows[place - 1]["load"] != row["load"]
            if first and place:
                table.add_row()
            if first:
                _flat_rows(table, row, known)
            table.add_row("", "", *_cells(row, columns))
        log, more = log_remarks(meta)
        log = [each for each in log if not each.startswith("load: ")]  # that of the log, not of these figures
        notes = [Text(f"- {remark}") for remark in (*_remarks(result), *log)]
        return View(
            *warnings_of(meta),
            answer_head(answer_of(rows, meta), versus_sentences(result), head),
            table,
            *owners_view(rows),
            *waits_view(result),
            *notes,
            details=[Text(f"- {remark}") for remark in more],
        )

    def figures(self, result: Result) -> dict[str, Figure]:
        found = {"figure": _loads_figure(result)} if result.summary["share"].notna().any() else {}
        return found | drawn_owners(result, result.meta["mechanisms"][:MOST])


def _flat_rows(table: Any, row: Mapping[str, Any], known: bool) -> None:
    """Show what first-come at flat prices earned at this load."""
    load, nodes = f"{row['load']:g}", f"{row['nodes']:,.4g}"
    if not math.isfinite(row.get("best_flat_share", math.nan)):
        table.add_row(load, nodes)
        return
    for name in FLAT if known else tuple(FLAT)[:2]:
        table.add_row(load, nodes, FLAT[name][0], share_difference(row, f"{name}_share").removeprefix("+"))
        load = nodes = ""


def _cells(row: Mapping[str, Any], columns: Sequence[str]) -> list[str]:
    if not row["runs"]:
        return [row["mechanism"], "refused"]
    share = share_difference(row, "share").removeprefix("+")
    return [row["mechanism"], share, *(share_difference(row, name) for name in columns)]


def _remarks(result: Result) -> list[str]:
    """Return the notes below the figures, one sentence each."""
    rows = result.records()
    kinds = result.runs["opt_kind"].dropna().unique().tolist() if "opt_kind" in result.runs else []
    bounds = " or ".join(BOUNDS[kind] for kind in kinds)
    of_log = "rule" in (result.meta.get("workload") or {})
    made = "gaps between the submissions of the log" if of_log else "the nodes of a seed"
    found = [f"welfare as a share of {bounds}, all seeds together; {made} make the load"]
    found += [flat_remark(result.meta), *known_remarks(rows)]
    if "opt_high" in result.runs:
        for load, runs in result.runs[result.runs["welfare"].notna()].groupby("load"):
            at_load = sizes_remarks(runs.drop_duplicates("seed")["opt_high"])
            found += [f"at load {load:g}: {remark}" for remark in at_load]
    for row in rows:
        if row["refused"]:
            of = f"{row['refused']} of {row['refused'] + row['runs']} seeds"
            found.append(f"{row['mechanism']} at load {row['load']:g}: no figures of {of}: {row['why']}")
    return found


def _loads_figure(result: Result) -> Figure:
    """Draw welfare over the bound against load, and the paired difference to the best flat price.

    Returns
    -------
    Figure
        12 x 5.2 inches; lines are intervals. Points of one load are drawn beside each other.
    """
    rows, meta = result.records(), result.meta
    rows = [row for row in rows if row["runs"]]
    labels: Sequence[str] = meta["mechanisms"]
    loads = sorted({row["load"] for row in rows})
    with matplotlib.rc_context(STYLE):
        about = f"{meta['runs']} seeds; lines: {meta['confidence']:.0%} intervals" if meta["runs"] > 1 else "one seed"
        flat = [name for name in FLAT if any(math.isfinite(row[f"{name}_share"]) for row in rows)]
        lines = -(-(len(labels) + len(flat)) // 4)  # of the legend
        top = 0.72 - 0.05 * max(0, lines - 2)
        figure, (left, right) = frame(2, meta["scenario"], about, wspace=0.2, top=top, bottom=0.13)
        figure.set_size_inches(12, 5.2)
        for name in flat:
            own = [next(row for row in rows if row["load"] == load) for load in loads]
            left.plot(range(len(loads)), [100 * row[f"{name}_share"] for row in own], **_flat_look(name))
        for name in flat:
            if name == "best_flat":
                continue
            own = [next(row for row in rows if row["load"] == load) for load in loads]
            gaps = [100 * (row[f"{name}_share"] - row["best_flat_share"]) for row in own]
            right.plot(range(len(loads)), gaps, **_flat_look(name))
        right.axhline(0.0, **_flat_look("best_flat"))
        for place, label in enumerate(labels):
            own = [row for row in rows if row["mechanism"] == label]
            x = [
                loads.index(row["load"]) + min(0.04, 0.3 / len(labels)) * (place - (len(labels) - 1) / 2) for row in own
            ]
            _line(left, x, own, "share", place)
            _line(right, x, own, "over_best_flat", place)
        left.set_title("welfare, % of the bound on the best schedule", fontsize=12, loc="left")
        right.set_title("less the best flat price, points of the bound", fontsize=12, loc="left")
        for axes in (left, right):
            axes.set_xticks(range(len(loads)), [f"{load:g}" for load in loads])
            axes.set_xlim(-0.4, len(loads) - 0.6)
            axes.set_xlabel("load: work asked for, over nodes")
            axes.grid(axis="y", color=GREY, alpha=0.25, linewidth=0.6)
        handles = [
            Line2D([], [], linewidth=2, marker=MARKERS[i % len(MARKERS)], markersize=5, label=label, **look(i))
            for i, label in enumerate(labels)
        ]
        handles += [Line2D([], [], label=FLAT[name][0], **_flat_look(name)) for name in flat]
        legend(figure, labels, handles=handles, rows=lines, handlelength=2.4)
    return figure


def _line(axes: Axes, x: Sequence[float], rows: Sequence[Mapping[str, Any]], name: str, place: int) -> None:
    """Draw one mechanism: a line through means, intervals where there are any."""
    y = [100 * row[name] for row in rows]
    below = [100 * (row[name] - row[f"{name}_low"]) for row in rows]
    above = [100 * (row[f"{name}_high"] - row[name]) for row in rows]
    lines = [[d if math.isfinite(d) else 0.0 for d in each] for each in (below, above)]
    axes.errorbar(x, y, yerr=lines, linewidth=1.8, elinewidth=1.4, capsize=2.5, marker=MARKERS[place % len(MARKERS)],
                  markersize=5, zorder=4, **look(place))  # fmt: skip
