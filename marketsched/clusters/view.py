"""Cluster runs and comparisons as a person reads them: who earned what, knowing what, beside the yardstick."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich.console import Group
from rich.table import Table
from rich.text import Text

from marketsched.results.views import amount, percent

if TYPE_CHECKING:
    from marketsched.config.clusters.labels import Column, CoreLabels
    from marketsched.play.policies import ClusterRun
    from marketsched.study.comparisons.comparing import Comparison


def run_view(run: ClusterRun) -> Group:
    """Return the table and remarks of a run, ready to print with rich."""
    meta, rows, words = run.meta, run.records(), run.scenario.cluster.labels
    done = f", INTERRUPTED after {len(rows)} of {len(meta['policies'])} policies" if not run.complete else ""
    head = Text(f"{_world(meta, words)}, seed {meta['seed']}{done}", style="bold")
    table = _table(
        "observes",
        f"{words.goal}\na slot",
        *(column.title for column in words.columns),
        f"{meta['lead']}\nover this",
        f"{words.star} over\nthis",
        f"regret\nto {words.star}",
        f"in %\nof {words.star}",
        "time a\nslot, µs",
    )
    for row in rows:
        table.add_row(
            row["policy"],
            row["observes"],
            figure(row["reward_per_slot"]),
            *(cell(column, row[column.name], row["slots"]) for column in words.columns),
            decimals(row["ratio"]),
            decimals(row["reference_ratio"]),
            figure(row["regret"]),
            percent(row["regret_share"]) if math.isfinite(row["regret_share"]) else "-",
            amount(1e6 * meta["policy_seconds"][row["policy"]] / row["slots"]),
        )
    remarks = [*_remarks(rows, words), "one seed says little: marketsched compare shows the spread over many"]
    return Group(head, table, *(Text(f"- {remark}") for remark in remarks))


def comparison_view(found: Comparison) -> Group:
    """Return the table and remarks of a comparison, ready to print with rich."""
    meta, rows, words = found.meta, found.records(), found.scenario.cluster.labels
    runs = meta["runs"]
    state = "" if found.complete else f", INTERRUPTED after {runs} of {meta['runs_asked_for']} seeds"
    seeds = f"seeds {meta['seed']} to {meta['seed'] + runs - 1}" if runs > 1 else f"seed {meta['seed']}"
    based = any(math.isfinite(row["over_baseline"]) for row in rows)
    earned = _table(
        "observes",
        f"{words.goal}\na slot",
        "± sd",
        *(column.title for column in words.columns),
        *([f"over\n{words.baseline}"] if based else []),
        f"regret, %\nof {words.star}",
        *(["regret\n~ T^x: x"] if words.grows else []),
    )
    for row in rows:
        earned.add_row(
            row["policy"],
            row["observes"],
            figure(row["reward_per_slot"]),
            figure(row["reward_per_slot_deviation"]),
            *(cell(column, row[column.shown], 1) for column in words.columns),
            *([_plus_minus(row, "over_baseline")] if based else []),
            _percent_cell(row, "regret_share"),
            *([_growth_cell(row)] if words.grows else []),
        )
    parts: list[Any] = [Text(f"{_world(meta, words)}, {seeds}{state}", style="bold"), earned]
    if len(rows) > 1:
        parts += ["", _ratio_table(meta, rows, words)]
    return Group(*parts, *(Text(f"- {remark}") for remark in comparison_remarks(found)))


def _ratio_table(meta: Mapping[str, Any], rows: Sequence[Mapping[str, Any]], words: CoreLabels) -> Table:
    """What the leading policy earns over every other one, and what the yardstick does."""
    lead = meta["lead"]
    star = words.star
    interval = f"{meta['confidence']:.0%}\ninterval"
    seeds = ("seeds:\nmean ± sd", "seeds:\nrange")
    table = _table("of mean\ntotals", interval, *seeds, f"{star} over\nthe same", f"ahead, %\nof {star}")
    table.columns[0].header = Text(f"{lead} over ...")
    for row in rows:
        if row["policy"] == lead:
            continue
        several, known = row["ratio_runs"] > 1, math.isfinite(row["ratio_of_means_low"])
        table.add_row(
            row["policy"],
            decimals(row["ratio_of_means"]),
            f"{row['ratio_of_means_low']:.3f} to {row['ratio_of_means_high']:.3f}" if known else "-",
            _plus_minus(row, "ratio"),
            f"{row['ratio_least']:.2f} to {row['ratio_most']:.2f}" if several else "-",
            _plus_minus(row, "reference_ratio"),
            _percent_cell(row, "margin"),
        )
    return table


def comparison_remarks(found: Comparison) -> list[str]:
    """Return what a reader of a comparison must be told, one sentence each."""
    meta, rows, words = found.meta, found.records(), found.scenario.cluster.labels
    remarks = [
        f"ratios of mean totals have an interval; beside them the ratios of single seeds, each with "
        f"{words.seeds} of its own"
    ]
    if meta["runs"] < 20:
        remarks.append(
            f"{meta['runs']} seeds: ratios differ by tens of per cent between seeds, ask for --runs 20 or more"
        )
    missing = {row["policy"]: row["runs"] - row["ratio_runs"] for row in rows if row["runs"] > row["ratio_runs"]}
    if missing:
        told = ", ".join(f"{policy} {count}" for policy, count in missing.items())
        remarks.append(
            f"no ratio where a total is not positive, in so many of {meta['runs']} seeds: {told}; the means of the "
            "ratios leave these seeds out, how far ahead it is does not"
        )
    if any(row["ratio_deviation"] > 0.5 * row["ratio"] for row in rows):
        remarks.append("a total near zero makes a ratio as large as one likes: there look at the ratio of mean totals")
    grown = [row["policy"] for row in rows if math.isfinite(row["growth"])]
    if grown:
        told = ", ".join(f"{slots:,}" for slots in meta["horizons"])
        knowing = any(choice.knows_horizon for choice in found.scenario.cluster.choices(meta["policies"]))
        anew = ", each played with the step of its own horizon" if knowing else ""
        remarks.append(
            f"x is fitted seed by seed over horizons of {told} slots{anew} "
            f"({meta['confidence']:.0%} interval of the mean)"
        )
    return remarks + _remarks(rows, words)


def _remarks(rows: Sequence[Mapping[str, Any]], words: CoreLabels) -> list[str]:
    """Return what holds for a run and for a comparison alike."""
    remarks = []
    seeing = [row["policy"] for row in rows if row["observes"] != "nothing"]
    blind = [row["policy"] for row in rows if row["observes"] == "nothing"]
    if seeing and blind:
        remarks.append(
            f"not the same game: {', '.join(blind)} decides before anything of the slot is known, "
            f"{', '.join(seeing)} after seeing who has arrived"
        )
    gaps = [row["reference_gap_share"] for row in rows if math.isfinite(row["reference_gap_share"])]
    if gaps:
        remarks.append(words.remark.format(gap=f"{100 * max(gaps):.2g}"))
    elif rows and words.baseline:
        remarks.append(f"no {words.reference}: not asked for, or its programs would be too large")
    shown = [row["policy"] for row in rows if row["observes"] == "state"]
    if shown:
        remarks.append(f"{', '.join(shown)} is shown which machines are available: an upper reference, no rival")
    for row in rows:
        if math.isfinite(row["regret_over_bound"]):
            held = "within" if row["regret_over_bound"] <= 1 else "BEYOND"
            remarks.append(
                f"{row['policy']}: the regret is {held} the bound of {words.bound}, at most "
                f"{100 * max(row['regret_over_bound'], 0.0):.2g} % of it"
            )
    return remarks


def _world(meta: Mapping[str, Any], words: CoreLabels) -> str:
    return f"{meta['scenario']}: {words.world.format(**meta)}"


def cell(column: Column, x: float, slots: int) -> str:
    """Show a figure of a core: as it is, per slot, or in per cent."""
    if column.kind == "slot":
        return figure(x / slots)
    if column.kind == "total" and abs(x) >= 1e5:
        return f"{x:.3g}"
    return figure(x) if column.kind == "total" or not math.isfinite(x) else f"{100 * x:.1f}"


def _table(*titles: str) -> Table:
    table = Table(show_edge=False, pad_edge=False, box=None, header_style="dim", padding=(0, 1, 0, 0))
    table.add_column("", overflow="fold", min_width=10)
    for title in titles:  # in a narrow window cells are broken between words: no digit is lost
        table.add_column(Text(title), justify="left" if title == "observes" else "right", overflow="fold")
    return table


def figure(x: float) -> str:
    """Show a number with four digits or more; ``-`` where there is none."""
    if not math.isfinite(x):
        return "-"
    return f"{x:,.0f}" if abs(x) >= 1000 else f"{x:.4g}"


def decimals(x: float) -> str:
    """Show a ratio; ``-`` where there is none."""
    return f"{x:.3f}" if math.isfinite(x) else "-"


def _plus_minus(row: Mapping[str, Any], name: str) -> str:
    text = decimals(row[name])
    return f"{text} ± {row[f'{name}_deviation']:.3f}" if math.isfinite(row[f"{name}_deviation"]) else text


def _percent_cell(row: Mapping[str, Any], name: str) -> str:
    if not math.isfinite(row[name]):
        return "-"
    deviation = row[f"{name}_deviation"]
    return f"{100 * row[name]:.1f}" + (f" ± {100 * deviation:.1f}" if math.isfinite(deviation) else "")


def _growth_cell(row: Mapping[str, Any]) -> str:
    if not math.isfinite(row["growth"]):
        return "-"
    half = (row["growth_high"] - row["growth_low"]) / 2
    return f"{row['growth']:.2f}" + (f" ± {half:.2f}" if math.isfinite(half) else "")
