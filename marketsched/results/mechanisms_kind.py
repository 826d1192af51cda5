"""Mechanisms on the same jobs: who earns most, and how far from the best each can be."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from rich.text import Text

from marketsched import results
from marketsched.mechanisms.promises import VERDICTS
from marketsched.results.answers import answer_of
from marketsched.results.kinds import ResultKind
from marketsched.results.owners_view import owners_figure, owners_view
from marketsched.results.paired_statistics import what_may_be_missed
from marketsched.results.panels import GREY, INK, MUTED, OKABE_ITO, STYLE
from marketsched.results.pools_view import pools_remarks, pools_view
from marketsched.results.result import Result
from marketsched.results.views import View, amount, at_least_percent, percent, plain_table, ratio_text, told_of_log
from marketsched.results.waits_view import classes_view, waits_view
from marketsched.results.word_table import WordTable

RATIO, WELFARE, REVENUE = OKABE_ITO[0], OKABE_ITO[4], OKABE_ITO[1]
BOUNDS = {
    "exact": "the exact optimum",
    "milp": "the bound of a stopped search for it",
    "lp": "a linear program",
    "dual": "a dual bound",
}
FAR = 3.0  # a promised constant above so many times the largest ratio is a note, and not drawn


class MechanismsKind(ResultKind):
    """Table ``runs``, one row per seed and mechanism; one row of the summary per mechanism."""

    title = "comparison of mechanisms"
    compared = "mechanisms"
    by = ("mechanism",)

    def how_far(self, result: Result) -> str:
        return f"after {result.meta['runs']} of {result.meta['runs_asked_for']} seeds"

    def view(self, result: Result) -> View:
        meta, rows = result.meta, result.records()
        state = "" if result.complete else f", INTERRUPTED {result.how_far}"
        about = f"{meta['scenario']}: {len(rows)} mechanisms on the same jobs, {seeds_text(result)}{state}"
        answer = answer_of(rows, meta)
        head = Text(f"{answer}\n{about}" if answer else about, style="bold" if not answer else "")
        head.stylize("bold", 0, len(answer))
        log, more_of_log = told_of_log(meta)
        notes, more_notes = [*_remarks(result), *log], [*_ratio_remarks(result), *more_of_log]
        return View(
            head,
            _main_table(rows),
            *owners_view(rows),
            *waits_view(result),
            *pools_view(result),
            *(Text(f"- {remark}") for remark in notes),
            details=[
                Text("\nhow far from the best", style="dim"),
                _ratios_table(rows, meta),
                *classes_view(result),
                *pools_view(result, whole=True),
                *(Text(f"- {remark}") for remark in more_notes),
            ],
        )

    def figures(self, result: Result) -> dict[str, Figure]:
        found = {"figure": _figure(result), **drawn_owners(result)}
        if "schedules" in result.tables:
            about, title = result.meta["schedules"], result.meta["scenario"]
            found["schedules"] = results.schedules_figure.schedules_figure(result.schedules, about, title)
            found["gantt"] = results.schedules_figure.gantt_figure(result.schedules, about, title)
        return found


def drawn_owners(result: Result) -> dict[str, Figure]:
    """Return the figure of what owners get, by its name; none where too few owners have enough jobs."""
    if "owners" not in result.tables:
        return {}
    drawn = owners_figure(result.tables["owners"], result.meta["scenario"], seeds_text(result))
    return {} if drawn is None else {"owners": drawn}


def seeds_text(result: Result) -> str:
    """Say which seeds were played, as in ``seeds 0 to 19``."""
    seeds = sorted(result.runs["seed"].unique().tolist())
    if len(seeds) == 1:
        return f"seed {seeds[0]}"
    whole = len(seeds) == seeds[-1] - seeds[0] + 1
    return f"seeds {seeds[0]} to {seeds[-1]}" if whole else f"{len(seeds)} of the seeds {seeds[0]} to {seeds[-1]}"


def _main_table(rows: list[dict[str, Any]]) -> WordTable:
    """Show what each mechanism is worth, and paired differences to first-come at flat prices."""
    titles = ["welfare,\ncredits", "of best,\nat least", "jobs\ndone", "revenue,\ncredits"]
    titles += ["over first\ncome, points", "over its best\nflat price"]
    table = plain_table(*titles, room=10)
    for row in rows:
        table.add_row(
            row["mechanism"],
            amount(row["welfare"]),
            at_least_percent(row["welfare_share"]),
            percent(row["completed_share"]),
            amount(row["revenue"]),
            *(share_difference(row, name) for name in ("over_first_come", "over_best_flat")),
        )
    return table


def _ratios_table(rows: list[dict[str, Any]], meta: Mapping[str, Any]) -> WordTable:
    """Show ratios to the best schedule, and what a theorem promises of them."""
    interval = f"{meta['confidence']:.0%} interval"
    titles = [
        "behind the\nbest here",
        "E[OPT] /\nE[welfare]",
        interval,
        "proven\nratio",
        "against the best\nflat price that\nknows durations",
    ]
    table = plain_table(*titles, room=10)
    for row in rows:
        table.add_row(*_ratio_cells(row))
    return table


def share_difference(row: Mapping[str, Any], name: str) -> str:
    """Show a paired difference in points of the bound on OPT, with half the width of its interval if there is one."""
    if not math.isfinite(row[name]):
        return "-"
    half = row[f"{name}_high"] - row[name]
    return f"{100 * row[name]:+.2f}" + (f" ± {100 * half:.2f}" if math.isfinite(half) else "")


def flat_remark(meta: Mapping[str, Any]) -> str:
    """Return a remark that explains the differences to first-come at flat prices."""
    several = f"with {meta['confidence']:.0%} intervals over the seeds" if meta["runs"] > 1 else "of one run"
    return (
        f"points: differences in welfare on the same jobs, in percent of the bound on the best schedule, {several}; "
        "first come at price 0, and at its best flat price, which is known in hindsight alone"
    )


def truth_remark(rows: list[dict[str, Any]]) -> str:
    """Say of each mechanism what is known of truth-telling, with what the words mean."""
    parts = []
    for word, meaning in VERDICTS.items():
        named = [str(row["mechanism"]) for row in rows if row.get("truthful", "unknown") == word]
        if named:
            parts.append(f"{word}: {', '.join(named)} ({meaning})")
    return f"truthful, {'; '.join(parts)}"


def known_remarks(rows: list[dict[str, Any]]) -> list[str]:
    """Say what first-come that knows all durations is, where it is shown."""
    if not any(math.isfinite(row.get("over_best_flat_known", math.nan)) for row in rows):
        return []
    return ["durations are hidden here: first-come that knows them is a yardstick that cannot be run"]


def _ratio_cells(row: Mapping[str, Any]) -> list[str]:
    behind = "-"
    if row["behind"] > 0:
        behind = percent(row["behind"])
        if math.isfinite(row["behind_low"]):
            behind += f"\n{100 * row['behind_low']:.1f} to {100 * row['behind_high']:.1f}"
    interval = "-"
    if math.isfinite(row["interval_low"]):
        interval = f"{row['interval_low']:.3f} to {row['interval_high']:.3f}"
    promised = "-"
    if math.isfinite(row["promised_ratio"]):
        promised = f"{row['promised_ratio']:.2f}" if row["promise_holds"] else f"({row['promised_ratio']:.2f})"
    return [
        row["mechanism"],
        behind,
        ratio_text(row["ratio_low"], row["ratio_high"]),
        interval,
        promised,
        share_difference(row, "over_best_flat_known"),
    ]


def _remarks(comparison: Result) -> list[str]:
    """Return the notes below the main table, one sentence each."""
    meta, rows = comparison.meta, comparison.records()
    found = [flat_remark(meta), truth_remark(rows)]
    if meta["runs"] == 1:
        found.append("a single run has no interval: ask for more with --runs")
    found += pools_remarks(comparison)
    if str(meta.get("workload", {}).get("classes", "")).startswith("drawn"):
        found += [
            f"{row['mechanism']}: classes of this log are drawn with the values: a queue that no site could run"
            for row in rows
            if "order=class" in row["mechanism"]
        ]
    found += [
        f"{row['mechanism']}: owners paid more than what was done was worth to them"
        for row in rows
        if row["revenue"] > row["welfare"] * (1 + 1e-9)
    ]
    return found


def _ratio_remarks(comparison: Result) -> list[str]:
    """Return the notes below the ratios, one sentence each."""
    meta, rows = comparison.meta, comparison.records()
    kinds = Counter(comparison.runs.drop_duplicates("seed")["opt_kind"].tolist())
    told = ", ".join(f"{BOUNDS[kind]} in {count} of {meta['runs']}" for kind, count in kinds.items())
    found = [
        f"the best schedule in hindsight is bounded above by {told} runs"
        + ("" if set(kinds) == {"exact"} else "; below it by the best schedule known")
    ]
    if meta["runs"] > 1:
        found.append("ratios are ratios of means over paired runs; intervals cover both ends")
        found.append(
            f"{what_may_be_missed(meta['runs'])}: the intervals of ratios cover that such runs earn nothing; those of "
            "differences speak of what the runs show"
        )
    found += known_remarks(rows)
    without = [row["mechanism"] for row in rows if not math.isfinite(row["promised_ratio"])]
    for row in rows:
        if row["mechanism"] not in without:
            verdict = "proven" if row["promise_holds"] else "not proven here"
            conditions = _shortened(row["promise_conditions"])
            found.append(f"ratio of {row['mechanism']}: {row['promised_ratio']:.3g}, {verdict}: {conditions}")
    if without:
        found.append(f"no ratio to the best schedule is proven for {', '.join(without)}")
    return found


def _shortened(conditions: str) -> str:
    """Keep the first of several conditions; the tables hold all."""
    first, *more = conditions.split("; ")
    return f"{first} (and {len(more)} more)" if more else first


def _figure(comparison: Result) -> Figure:
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
            axes.text(1.0, y, "  earned nothing", va="center", color=MUTED, fontsize=11)
            continue
        if np.isfinite(row["interval_low"]):
            axes.plot([row["interval_low"], row["interval_high"]], [y, y], color=RATIO, linewidth=1.6, zorder=2)
        axes.plot(
            [row["ratio_low"], row["ratio_high"]], [y, y], color=RATIO, linewidth=9, zorder=3, solid_capstyle="butt"
        )
        axes.plot(row["ratio_high"], y, "o", color=RATIO, markersize=7, zorder=4)
        axes.text(
            row["ratio_high"], y - 0.2, ratio_text(row["ratio_low"], row["ratio_high"]), ha="center", va="bottom",
            fontsize=11, color=INK,
        )  # fmt: skip
        _draw_promise(axes, y, row, right, row["promised_ratio"] in drawn)
    axes.set_xlim(1 - 0.06 * (right - 1), right)
    axes.set_xlabel("E[OPT] / E[welfare]: 1 is the best schedule in hindsight")
    axes.tick_params(axis="y", length=0)
    handles: list[Any] = [Line2D([], [], color=RATIO, linewidth=9, label="left open by the bounds on OPT")]
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
    told = f"promised {alpha:.3g} ›" if holds else f"would be {alpha:.3g} › (conditions not met)"
    axes.text(right, y + 0.32, told, ha="right", va="center", fontsize=9.5, color="#a50f15")


def _draw_shares(axes: Axes, rows: list[dict[str, Any]]) -> None:
    y = np.arange(len(rows))
    for key, shift, colour in (("welfare_share", -0.17, WELFARE), ("revenue_share", 0.17, REVENUE)):
        shares = np.array([row[key] for row in rows])
        drawn = np.minimum(shares, 1.16)  # owners may pay more than all is worth: the figure beside it says so
        axes.barh(y + shift, drawn, height=0.3, color=colour)
        for place, share in zip(y + shift, shares, strict=True):
            text = f"{100 * share:.1f} %" if share < 10 else f"{share:.2g} times"
            axes.text(min(share, 1.0) + 0.012, place, text, va="center", fontsize=10, color=INK)
    axes.set_xlim(0, 1.16)
    axes.set_xticks([0, 0.25, 0.5, 0.75, 1], ["0", "25 %", "50 %", "75 %", "100 %"])
    axes.set_xlabel("share of the bound on OPT")
    handles = [Patch(color=WELFARE, label="welfare"), Patch(color=REVENUE, label="revenue")]
    axes.legend(handles=handles, loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=2, frameon=False, fontsize=10)


def _wrapped(label: str) -> str:
    return label.replace(":", ":\n", 1) if len(label) > 22 else label
