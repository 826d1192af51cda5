"""A comparison as a person reads it: who earns most, and how far from the best each can be."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rich.console import Group
from rich.table import Table
from rich.text import Text

from marketsched.results.views import amount, percent, ratio_text

if TYPE_CHECKING:
    from marketsched.study.comparisons.comparing import Comparison


def comparison_view(comparison: Comparison) -> Group:
    """Return the table and remarks of a comparison, ready to print with rich."""
    meta, rows = comparison.meta, comparison.records()
    state = "" if comparison.complete else f", INTERRUPTED after {meta['runs']} of {meta['runs_asked_for']} seeds"
    seeds = f"seeds {meta['seed']} to {meta['seed'] + meta['runs'] - 1}" if meta["runs"] > 1 else f"seed {meta['seed']}"
    head = Text(f"{meta['scenario']}: {len(rows)} mechanisms on the same jobs, {seeds}{state}", style="bold")
    table = Table(show_edge=False, pad_edge=False, box=None, header_style="dim")
    table.add_column("", overflow="fold", min_width=10)
    for title in (
        "welfare",
        "behind the\nbest here",
        "revenue",
        "jobs\ndone",
        "E[OPT] /\nE[welfare]",
        f"{meta['confidence']:.0%} interval",
        "promised",
    ):
        table.add_column(Text(title), justify="right", no_wrap=True)  # Text: brackets are not markup
    for row in rows:
        table.add_row(*_cells(row))
    return Group(head, table, *(Text(f"- {remark}") for remark in remarks(comparison)))


def _cells(row: Mapping[str, Any]) -> list[str]:
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
        amount(row["welfare"]),
        behind,
        amount(row["revenue"]),
        percent(row["completed_share"]),
        ratio_text(row["ratio_low"], row["ratio_high"]),
        interval,
        promised,
    ]


def remarks(comparison: Comparison) -> list[str]:
    """Return what a reader of the figures must be told, one sentence each."""
    meta, rows = comparison.meta, comparison.records()
    kinds = Counter(comparison.runs.drop_duplicates("seed")["opt_kind"].tolist())
    what = {
        "exact": "the exact optimum",
        "milp": "the bound of a stopped search for it",
        "lp": "the linear program (11)",
        "dual": "the dual bound (29)",
    }
    told = ", ".join(f"{what[kind]} in {count} of {meta['runs']}" for kind, count in kinds.items())
    found = [
        f"the best schedule in hindsight is bounded above by {told} runs"
        + ("" if set(kinds) == {"exact"} else "; below it by the best schedule known")
    ]
    if meta["runs"] == 1:
        found.append("a single run has no interval: ask for more with --runs")
    else:
        found.append("ratios are ratios of means over paired runs; intervals cover both ends")
        unseen = [row["mechanism"] for row in rows if row["losses_seen"] == 0]
        if unseen:
            found.append(
                f"{', '.join(unseen)}: no loss seen in {meta['runs']} runs; the interval covers one of everything in a "
                "share of runs that so many speak for"
            )
    for row in rows:
        alpha = "no constant" if not math.isfinite(row["promised_ratio"]) else f"{row['promised_ratio']:.3g}"
        verdict = "proven" if row["promise_holds"] and math.isfinite(row["promised_ratio"]) else "not proven here"
        said = alpha if alpha == "no constant" else f"{alpha}, {verdict}"
        found.append(f"promised of {row['mechanism']}: {said}: {_shortened(row['promise_conditions'])}")
    return found


def _shortened(conditions: str) -> str:
    """Keep the first of several conditions; the tables hold all."""
    first, *more = conditions.split("; ")
    return f"{first} (and {len(more)} more)" if more else first
