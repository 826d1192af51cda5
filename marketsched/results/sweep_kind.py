"""A sweep: means over seeds with t intervals, and differences paired seed by seed."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Group
from rich.text import Text

from marketsched import results
from marketsched.config.strict_yaml import dump_yaml
from marketsched.results.kinds import ResultKind
from marketsched.results.paired_statistics import CONFIDENCE, spread
from marketsched.results.result import Result
from marketsched.results.views import WordTable, amount, cell, plain_table, value_text

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

# What a reader asks for first; the table shows the first few that a sweep has. No ratios of policies: the mean of
# ratios is not the ratio of means, and a total near zero would decide it.
MEASURES = (
    "welfare",
    "revenue",
    "completed_share",
    "utilisation",
    "share_of_best",
    "reward_per_slot",
    "regret_share",
)
MOST_MEASURES, MOST_GROUPS, MOST_DRAWN, MOST_DOCUMENTS = 5, 200, 30, 12
FIXED = ("case", "scenario", "seed", "run", "status", "error", "policy", "observes", "rules")


class SweepKind(ResultKind):
    """Table ``results``, one row for every run (and policy), as soon as the sweep has ended."""

    title = "sweep"
    table = "results"

    def found_in(self, folder: Path) -> dict[str, Any]:
        return {"kept": sum(1 for _ in (folder / "runs").glob("*.json"))}

    def view(self, result: Result) -> Group:
        meta, labels = result.meta, labels_of(result.meta)
        sizes = f"{len(labels):,} cases, {len(meta['seeds']):,} seeds, {meta['runs']:,} runs"
        parts: list[Any] = [Text(f"{self.name(result)}: {sizes}", style="bold")]
        notes = []
        if meta.get("failed"):
            notes.append(f"{meta['failed']:,} of {meta['runs']:,} runs failed; figures are of the others")
        if "results" in result.tables:
            means, how = sweep_table(result.results, labels)
            failed, more = _failures_table(result.results, labels)
            parts += [means, *([] if failed is None else [failed])]
            notes += [how, *more]
        else:
            kept = result.outcome.get("kept", 0)
            notes.append(f"{kept:,} of {meta['runs']:,} runs are kept; the table is written when the sweep ends")
        if len(meta["cases"]) > MOST_DOCUMENTS:
            notes.append(f"scenarios of the first {MOST_DOCUMENTS} cases are shown; meta.json holds all")
        return Group(*parts, *(Text(f"- {note}") for note in notes))

    def figures(self, result: Result) -> dict[str, Figure]:
        if "results" not in result.tables:
            return {}
        drawn = sweep_figure(result.results, labels_of(result.meta))
        return {} if drawn is None else {"means over seeds with 95 % intervals, one line for each case": drawn}

    def details(self, result: Result) -> dict[str, Any]:
        return {"Every run": result.results} if "results" in result.tables else {}

    def documents(self, result: Result) -> dict[str, str]:
        labels = labels_of(result.meta)
        cases = result.meta["cases"][:MOST_DOCUMENTS]
        return {f"scenario: {labels[int(each['case'])]}": dump_yaml(each["scenario"]) for each in cases}


def _measures_of(table: pd.DataFrame) -> list[str]:
    """Return the figures of a sweep's table that its summary shows."""
    numeric = [name for name in table.columns if name not in FIXED and table[name].dtype.kind in "if"]
    known = [name for name in MEASURES if name in numeric and table[name].notna().any()]
    return (known or [name for name in numeric if table[name].notna().any()])[:MOST_MEASURES]


def labels_of(meta: Mapping[str, Any]) -> dict[int, str]:
    """Return what makes each case different, in words: only what differs, by the last words of its keys."""
    cases = meta.get("cases", [])
    several = len({each["scenario"]["name"] for each in cases}) > 1
    parts: dict[str, list[Mapping[str, Any]]] = {}  # whole parts of a scenario, written as one value
    for each in cases:
        for name, value in each["labels"].items():
            if isinstance(value, Mapping):
                parts.setdefault(name, []).append(value)
    same = {name: {key for key in own[0] if all(x.get(key) == own[0][key] for x in own)} for name, own in parts.items()}
    values = [{name: _in_words(x, same.get(name, ())) for name, x in each["labels"].items()} for each in cases]
    keys = list(dict.fromkeys(name for own in values for name in own))
    keys = [name for name in keys if len(cases) == 1 or len({own.get(name) for own in values}) > 1]
    short = {name: name.removesuffix(".name").rpartition(".")[2] for name in keys}
    found = {}
    for each, own in zip(cases, values, strict=True):
        words = [each["scenario"]["name"]] if several or not any(name in own for name in keys) else []
        titles = {name: short[name] if [*short.values()].count(short[name]) == 1 else name for name in keys}
        words += [f"{titles[name]} = {own[name]}" for name in keys if name in own]
        found[int(each["case"])] = ", ".join(words)
    return found


def _in_words(value: Any, same: Collection[str] = ()) -> str:
    """Return a value as a label: a part of a scenario by its name, and by entries that are not the ``same`` in all."""
    if not isinstance(value, Mapping):
        return cell("value", value)
    title = next((str(value[key]) for key in ("name", "kind") if key in value), "")
    entries = {key: x for key, x in value.items() if key not in ("name", "kind", *same) and x not in ({}, None)}
    more = [_in_words(x) if key == "parameters" else f"{key}={_in_words(x)}" for key, x in entries.items()]
    return ":".join([title, *more]).removeprefix(":")


def groups_of(table: pd.DataFrame, labels: Mapping[int, str]) -> list[tuple[str, str, pd.DataFrame]]:
    """Return (case in words, policy or nothing, rows by seed) in the order of the sweep."""
    done = table[table["status"] == "done"]
    by = ["case", "policy"] if "policy" in done else ["case"]
    found = []
    for _, rows in done.groupby(by, sort=False):
        case = int(rows["case"].iloc[0])
        policy = str(rows["policy"].iloc[0]) if "policy" in done else ""
        found.append((labels.get(case, f"case {case}"), policy, rows.set_index("seed")))
    return found


def sweep_table(table: pd.DataFrame, labels: Mapping[int, str]) -> tuple[WordTable, str]:
    """Return a line for each case (and policy), and what its figures are.

    Means over seeds, and how much more of the first figure each case has than the first case.
    """
    measures, groups = _measures_of(table), groups_of(table, labels)
    policies = any(policy for _, policy, _ in groups)
    paired = bool(measures) and len({case for case, _, _ in groups}) > 1
    means = plain_table(first="case", room=10)
    if policies:
        means.add_column("policy")
    for title in ("runs", *measures, *([f"Δ {measures[0]}"] if paired else [])):
        means.add_column(title, justify="right")
    first: dict[str, pd.DataFrame] = {}
    last = None
    for case, policy, found in groups[:MOST_GROUPS]:
        base = first.setdefault(policy, found)
        line = [case if case != last else "", *([policy] if policies else []), str(len(found))]
        line += [_plus_minus(found[name]) for name in measures]
        if paired:
            line.append("" if base is found else _plus_minus((found[measures[0]] - base[measures[0]]).dropna()))
        means.add_row(*line)
        last = case
    how = f"means over seeds ± half of the {100 * CONFIDENCE:.0f} % t interval"
    how += "; Δ: more than in the first case, seed by seed" if paired else ""
    if len(groups) > MOST_GROUPS:
        how += f"; the first {MOST_GROUPS:,} of {len(groups):,} lines"
    return means, how


def _plus_minus(values: pd.Series[float]) -> str:
    found = spread(values)
    half = (found.high - found.low) / 2
    return value_text(found.mean) if math.isnan(half) else f"{value_text(found.mean)} ± {amount(float(f'{half:.2g}'))}"


def _failures_table(table: pd.DataFrame, labels: Mapping[int, str]) -> tuple[WordTable | None, list[str]]:
    """Return the runs that failed with their errors, or None if none did; and notes on them."""
    failed = table[table["status"] == "failed"]
    if failed.empty:
        return None, []
    shown = plain_table("seed", first="failed: case", room=10)
    shown.add_column("error", overflow="fold")
    for case, seed, error in failed[["case", "seed", "error"]].head(MOST_GROUPS).itertuples(index=False):
        shown.add_row(labels.get(int(case), f"case {case}"), str(seed), str(error))
    more = f"the first {MOST_GROUPS:,} of {len(failed):,} failed runs are shown"
    return shown, [more] if len(failed) > MOST_GROUPS else []


def sweep_figure(table: pd.DataFrame, labels: Mapping[int, str]) -> Figure | None:
    """Draw means and intervals, a panel for each figure; None if there is nothing to draw, or too much."""
    import matplotlib
    from matplotlib.figure import Figure

    measures, groups = _measures_of(table)[:4], groups_of(table, labels)
    cases = list(dict.fromkeys(case for case, _, _ in groups))
    policies = list(dict.fromkeys(policy for _, policy, _ in groups))
    if not measures or not cases or len(cases) > MOST_DRAWN or len(policies) > len(results.panels.OKABE_ITO):
        return None
    apart = 0.6 / max(1, len(policies))
    with matplotlib.rc_context(results.panels.STYLE):
        height = 1.3 + len(cases) * max(0.42, 0.16 * len(policies))
        figure = Figure(figsize=(12, height), facecolor="white", layout="constrained")
        panels = figure.subplots(1, len(measures), sharey=True, squeeze=False)[0]
        for axes, measure in zip(panels, measures, strict=True):
            for k, (policy, colour) in enumerate(zip(policies, results.panels.OKABE_ITO, strict=False)):
                chosen = [(case, spread(found[measure])) for case, each, found in groups if each == policy]
                y = [cases.index(case) + apart * (k - (len(policies) - 1) / 2) for case, _ in chosen]
                means = [each.mean for _, each in chosen]
                halves = [0.0 if math.isnan(each.low) else each.mean - each.low for _, each in chosen]
                axes.errorbar(means, y, xerr=halves, fmt="o", color=colour, markersize=5, capsize=2, label=policy)
            axes.set_xlabel(measure)
            axes.grid(axis="x", color="#e4e4e4")
            axes.set_axisbelow(True)
            axes.locator_params(axis="x", nbins=4)
        panels[0].set_yticks(range(len(cases)), [_wrapped(case) for case in cases], parse_math=False)
        panels[0].set_ylim(len(cases) - 0.4, -0.6)
        if policies != [""]:
            handles, names = panels[0].get_legend_handles_labels()
            figure.legend(handles, names, loc="outside upper left", ncols=len(policies), frameon=False)
    return figure


def _wrapped(words: str) -> str:
    """Break a label into at most three lines."""
    return textwrap.fill(words, 40, max_lines=3, placeholder=" …")
