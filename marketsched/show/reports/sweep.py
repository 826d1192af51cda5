"""A sweep in a report: means over seeds with t intervals, and differences paired seed by seed."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from marketsched.show.reports.tables import ReportTable, cell, told

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

CONFIDENCE = 0.95
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
MOST_MEASURES, MOST_GROUPS, MOST_DRAWN = 5, 200, 30
FIXED = ("case", "scenario", "seed", "run", "status", "error", "policy", "observes", "rules")


def interval(values: pd.Series[float]) -> tuple[float, float, int]:
    """Return mean, half width of the t interval (NaN for one value) and how many values there are.

    Examples
    --------
    >>> import pandas as pd
    >>> mean, half, n = interval(pd.Series([1.0, 2.0, 3.0]))
    >>> mean, round(half, 3), n
    (2.0, 2.484, 3)
    """
    from scipy import stats

    known = values.dropna()
    n = len(known)
    if not n:
        return math.nan, math.nan, 0
    half = math.nan
    if n > 1:
        half = float(stats.t.ppf(0.5 + CONFIDENCE / 2, n - 1) * known.std(ddof=1) / math.sqrt(n))
    return float(known.mean()), half, n


def measures_of(table: pd.DataFrame) -> list[str]:
    """Return the figures a table of a sweep is told by."""
    numeric = [name for name in table.columns if name not in FIXED and table[name].dtype.kind in "if"]
    known = [name for name in MEASURES if name in numeric and table[name].notna().any()]
    return (known or [name for name in numeric if table[name].notna().any()])[:MOST_MEASURES]


def labels_of(meta: Mapping[str, Any]) -> dict[int, str]:
    """Return what makes each case different, in words."""
    cases = meta.get("cases", [])
    several = len({each["scenario"]["name"] for each in cases}) > 1
    found = {}
    for each in cases:
        words = [each["scenario"]["name"]] if several or not each["labels"] else []
        words += [f"{name} = {cell('value', value)}" for name, value in each["labels"].items()]
        found[int(each["case"])] = ", ".join(words)
    return found


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


def sweep_table(table: pd.DataFrame, labels: Mapping[int, str]) -> ReportTable:
    """Return a line for each case (and policy): means over seeds, and what it earns more than the first case."""
    measures, groups = measures_of(table), groups_of(table, labels)
    policies = any(policy for _, policy, _ in groups)
    paired = bool(measures) and len({case for case, _, _ in groups}) > 1
    columns = ["case", *(["policy"] if policies else []), "runs", *measures]
    if paired:
        columns.append(f"Δ {measures[0]}")
    first: dict[str, pd.DataFrame] = {}
    rows, last = [], None
    for case, policy, found in groups[:MOST_GROUPS]:
        base = first.setdefault(policy, found)
        line = [case if case != last else "", *([policy] if policies else []), str(len(found))]
        line += [_plus_minus(found[name]) for name in measures]
        if paired:
            line.append("" if base is found else _plus_minus((found[measures[0]] - base[measures[0]]).dropna()))
        rows.append(tuple(line))
        last = case
    note = f"means over seeds ± half of the {100 * CONFIDENCE:.0f} % t interval"
    note += "; Δ: more than in the first case, seed by seed" if paired else ""
    if len(groups) > MOST_GROUPS:
        note += f"; the first {MOST_GROUPS:,} of {len(groups):,} lines"
    numeric = tuple(i > int(policies) for i in range(len(columns)))
    return ReportTable("Means", tuple(columns), numeric, tuple(rows), note)


def _plus_minus(values: pd.Series[float]) -> str:
    mean, half, _ = interval(values)
    return told(mean) if math.isnan(half) else f"{told(mean)} ± {told(float(f'{half:.2g}'))}"


def failures_table(table: pd.DataFrame, labels: Mapping[int, str]) -> ReportTable | None:
    """Return the runs that failed with their errors, or None if none did."""
    failed = table[table["status"] == "failed"]
    if failed.empty:
        return None
    rows = tuple(
        (labels.get(int(case), f"case {case}"), str(seed), str(error))
        for case, seed, error in zip(failed["case"], failed["seed"], failed["error"], strict=True)
    )
    note = f"the first {MOST_GROUPS:,} of {len(rows):,}" if len(rows) > MOST_GROUPS else ""
    return ReportTable("Failed runs", ("case", "seed", "error"), (False, True, False), rows[:MOST_GROUPS], note)


def sweep_figure(table: pd.DataFrame, labels: Mapping[int, str]) -> Figure | None:
    """Draw means and intervals, a panel for each figure; None if there is nothing to draw, or too much."""
    import matplotlib
    from matplotlib.figure import Figure

    from marketsched.results.panels import OKABE_ITO, STYLE

    measures, groups = measures_of(table)[:4], groups_of(table, labels)
    cases = list(dict.fromkeys(case for case, _, _ in groups))
    policies = list(dict.fromkeys(policy for _, policy, _ in groups))
    if not measures or not cases or len(cases) > MOST_DRAWN or len(policies) > len(OKABE_ITO):
        return None
    spread = 0.6 / max(1, len(policies))
    with matplotlib.rc_context(STYLE):
        height = 1.3 + len(cases) * max(0.42, 0.16 * len(policies))
        figure = Figure(figsize=(12, height), facecolor="white", layout="constrained")
        panels = figure.subplots(1, len(measures), sharey=True, squeeze=False)[0]
        for axes, measure in zip(panels, measures, strict=True):
            for k, (policy, colour) in enumerate(zip(policies, OKABE_ITO, strict=False)):
                chosen = [(case, interval(found[measure])) for case, each, found in groups if each == policy]
                y = [cases.index(case) + spread * (k - (len(policies) - 1) / 2) for case, _ in chosen]
                means = [mean for _, (mean, _, _) in chosen]
                halves = [0.0 if math.isnan(half) else half for _, (_, half, _) in chosen]
                axes.errorbar(means, y, xerr=halves, fmt="o", color=colour, markersize=5, capsize=2, label=policy)
            axes.set_xlabel(measure)
            axes.grid(axis="x", color="#e4e4e4")
            axes.set_axisbelow(True)
            axes.locator_params(axis="x", nbins=5)
        panels[0].set_yticks(range(len(cases)), [_clipped(case) for case in cases], parse_math=False)
        panels[0].set_ylim(len(cases) - 0.4, -0.6)
        if policies != [""]:
            handles, names = panels[0].get_legend_handles_labels()
            figure.legend(handles, names, loc="outside upper left", ncols=len(policies), frameon=False)
    return figure


def _clipped(words: str, most: int = 44) -> str:
    return words if len(words) <= most else words[: most - 1] + "…"
