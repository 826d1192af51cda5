"""Cluster runs and comparisons as a person reads them: who earned what, knowing what, beside y*."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich.console import Group
from rich.table import Table
from rich.text import Text

from marketsched.summary import amount, percent

if TYPE_CHECKING:
    from marketsched.cluster_comparing import ClusterComparison
    from marketsched.cluster_running import ClusterRun


def run_view(run: ClusterRun) -> Group:
    """Return the table and remarks of a run, ready to print with rich."""
    meta, rows = run.meta, run.records()
    done = f", INTERRUPTED after {len(rows)} of {len(meta['policies'])} policies" if not run.complete else ""
    head = Text(f"{_world(meta)}, seed {meta['seed']}{done}", style="bold")
    table = _table(
        "observes",
        "reward\na slot",
        "gain",
        "overhead",
        f"{meta['lead']}\nover this",
        "y* over\nthis",
        "regret\nto y*",
        "in %\nof y*",
        "time a\nslot, µs",
    )
    for row in rows:
        table.add_row(
            row["policy"],
            row["observes"],
            figure(row["reward_per_slot"]),
            figure(row["gain"] / row["slots"]),
            figure(row["overhead"] / row["slots"]),
            decimals(row["ratio"]),
            decimals(row["best_fixed_ratio"]),
            figure(row["regret"]),
            percent(row["regret_share"]) if math.isfinite(row["regret_share"]) else "-",
            amount(1e6 * meta["policy_seconds"][row["policy"]] / row["slots"]),
        )
    remarks = [*_remarks(rows, meta["lead"]), "one seed says little: marketsched compare shows the spread over many"]
    return Group(head, table, *(Text(f"- {remark}") for remark in remarks))


def comparison_view(found: ClusterComparison) -> Group:
    """Return the table and remarks of a comparison, ready to print with rich."""
    meta, rows = found.meta, found.records()
    runs = meta["runs"]
    state = "" if found.complete else f", INTERRUPTED after {runs} of {meta['runs_asked_for']} seeds"
    seeds = f"seeds {meta['seed']} to {meta['seed'] + runs - 1}" if runs > 1 else f"seed {meta['seed']}"
    earned = _table("observes", "reward\na slot", "± sd", "gain", "overhead", "regret, %\nof y*", "regret\n~ T^x: x")
    for row in rows:
        earned.add_row(
            row["policy"],
            row["observes"],
            figure(row["reward_per_slot"]),
            figure(row["reward_per_slot_deviation"]),
            figure(row["gain_per_slot"]),
            figure(row["overhead_per_slot"]),
            _percent_cell(row, "regret_share"),
            _growth_cell(row),
        )
    parts: list[Any] = [Text(f"{_world(meta)}, {seeds}{state}", style="bold"), earned]
    if len(rows) > 1:
        parts += ["", _ratio_table(meta, rows)]
    return Group(*parts, *(Text(f"- {remark}") for remark in comparison_remarks(found)))


def _ratio_table(meta: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> Table:
    """What the leading policy earns over every other one, and what y* does."""
    lead = meta["lead"]
    interval = f"{meta['confidence']:.0%} interval\nof the mean"
    table = _table("mean ± sd", "range", interval, "of mean\ntotals", "y* over\nthe same", "ahead, %\nof y*")
    table.columns[0].header = Text(f"{lead} over ...")
    for row in rows:
        if row["policy"] == lead:
            continue
        several = row["ratio_runs"] > 1
        table.add_row(
            row["policy"],
            _plus_minus(row, "ratio"),
            f"{row['ratio_least']:.2f} to {row['ratio_most']:.2f}" if several else "-",
            f"{row['ratio_low']:.3f} to {row['ratio_high']:.3f}" if several else "-",
            decimals(row["ratio_of_means"]),
            _plus_minus(row, "best_fixed_ratio"),
            _percent_cell(row, "margin"),
        )
    return table


def comparison_remarks(found: ClusterComparison) -> list[str]:
    """Return what a reader of a comparison must be told, one sentence each."""
    meta, rows = found.meta, found.records()
    remarks = ["ratios are ratios of totals, seed by seed; every seed has a cluster and arrivals of its own"]
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
        remarks.append(
            f"x is fitted seed by seed over horizons of {told} slots, each played with the step of its own horizon "
            f"({meta['confidence']:.0%} interval of the mean)"
        )
    return remarks + _remarks(rows, meta["lead"])


def _remarks(rows: Sequence[Mapping[str, Any]], lead: str) -> list[str]:
    """Return what holds for a run and for a comparison alike."""
    remarks = []
    seeing = [row["policy"] for row in rows if row["observes"] != "nothing"]
    blind = [row["policy"] for row in rows if row["observes"] == "nothing"]
    if seeing and blind:
        remarks.append(
            f"not the same game: {', '.join(blind)} decides before anything of the slot is known, "
            f"{', '.join(seeing)} after seeing who has arrived"
        )
    gaps = [row["best_fixed_gap_share"] for row in rows if math.isfinite(row["best_fixed_gap_share"])]
    if gaps:
        remarks.append(
            f"y* is the best allocation in hindsight that never changes, certified to {100 * max(gaps):.2g} %; whoever "
            "sees the arrivals may beat it"
        )
    for row in rows:
        if math.isfinite(row["regret_over_bound"]):
            held = "within" if row["regret_over_bound"] <= 1 else "BEYOND"
            remarks.append(
                f"{row['policy']}: the regret is {held} the bound of OgaSched (14), at most "
                f"{100 * max(row['regret_over_bound'], 0.0):.2g} % of it"
            )
    return remarks


def _world(meta: Mapping[str, Any]) -> str:
    return (
        f"{meta['scenario']}: {meta['ports']:,} ports, {meta['instances']:,} instances, {meta['types']} resources, "
        f"{meta['channels']:,} channels, {meta['slots']:,} slots, {meta['jobs_per_slot']:.3g} jobs a slot"
    )


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
