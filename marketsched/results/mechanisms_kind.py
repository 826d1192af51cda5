"""Mechanisms on the same jobs: who earns most, and how far from the best each can be."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from matplotlib.figure import Figure
from rich.text import Text

from marketsched import results
from marketsched.mechanisms.promises import VERDICTS
from marketsched.results.answers import answer_of, question_of, rival_of, truth_sentence
from marketsched.results.causes_figure import causes_figure
from marketsched.results.kinds import ResultKind
from marketsched.results.mechanisms_figure import bounds_figure, differences_figure, drawn_names, windows_figure
from marketsched.results.owners_view import owners_figure, owners_view
from marketsched.results.paired_statistics import what_may_be_missed
from marketsched.results.pools_view import POOLS, pools_view
from marketsched.results.recorded_view import RECORDED, recorded_sentences
from marketsched.results.result import Result
from marketsched.results.versus_view import versus_figure, versus_sentences, versus_view
from marketsched.results.views import (
    Column,
    View,
    amount,
    at_least_percent,
    log_remarks,
    percent,
    ratio_text,
    table_of,
    warnings_of,
)
from marketsched.results.waits_view import classes_view, waits_view
from marketsched.results.windows import windows_words

if TYPE_CHECKING:
    import pandas as pd

BOUNDS = {
    "exact": "the exact optimum",
    "milp": "the bound of a stopped search for it",
    "lp": "a linear program",
    "dual": "a dual bound",
}


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
        what = f"{len(rows)} mechanism{'s' * (len(rows) != 1)}"
        about = f"{meta['scenario']}: {what} on the same jobs, {seeds_text(result)}{state}"
        rival, asked = rival_of(meta), question_of(rows, meta)
        words = windows_words(result.runs, asked, rival, meta)
        said = [f"{asked} is {words}." if words else "", str(meta.get("values", "")), truth_sentence(rows, meta)]
        more = [*(each for each in said if each), *([] if "unrepeatable" in meta else versus_sentences(result))]
        head = answer_head(answer_of(rows, meta), more, about, recorded_sentences(result))
        log, more_of_log = log_remarks(meta)
        on_cluster = "pools" in result.tables
        notes, more_notes = [*_remarks(result), *log], [*_ratio_remarks(result), *more_of_log]
        return View(
            *warnings_of(meta),
            head,
            table_of(rows, MECHANISM, _main_columns(meta)),
            *_values_view(result),
            *owners_view(rows),
            *waits_view(result),
            *versus_view(result),
            *(pools_view(result) if on_cluster else ()),
            *(Text(f"- {remark}") for remark in notes),
            details=[
                Text("\nhow far from the best", style="dim"),
                table_of(rows, MECHANISM, _ratio_columns(meta)),
                *classes_view(result),
                *(pools_view(result, whole=True) if on_cluster else ()),
                *(Text(f"- {remark}") for remark in more_notes),
            ],
        )

    def figures(self, result: Result) -> dict[str, Figure]:
        against = versus_figure(result)
        found = {"figure": differences_figure(result, seeds_text(result))}
        found |= {"windows": windows_figure(result)} if int(result.meta.get("windows", 1)) > 1 else {}
        found |= {} if against is None else {"against": against}
        found |= drawn_owners(result, drawn_names(result))
        found |= {"causes": causes_figure(result.causes, result.meta["scenario"])} if "causes" in result.tables else {}
        if "schedules" in result.tables:
            about, title = result.meta["schedules"], result.meta["scenario"]
            shown = result.schedules[result.schedules["mechanism"].isin(drawn_names(result))]
            found["schedules"] = results.schedules_figure.schedules_figure(shown, about, title)
            found["gantt"] = results.schedules_figure.gantt_figure(shown, about, title)
        found["bounds"] = bounds_figure(result)
        return found


def _values_view(result: Result) -> list[Any]:
    """Return the differences of each mechanism under each rule of value; nothing without them."""
    if "values" not in result.tables:
        return []
    table, rival = result.tables["values"], rival_of(result.meta)
    rules = list(dict.fromkeys(table["rule"]))
    rows: list[Any] = [
        {"mechanism": name, **own.set_index("rule").to_dict("index")}
        for name, own in table.groupby("mechanism", sort=False)
    ]
    columns = [Column(rule.replace(", ", ",\n"), partial(_under, rule, rival.column)) for rule in rules]
    return [
        Text(f"\nover {rival.name} under each rule of value, points", style="dim"),
        table_of(rows, MECHANISM, columns),
    ]


def _under(rule: str, column: str, row: Mapping[str, Any]) -> str:
    return share_difference(row[rule], column)


def answer_head(answer: str, more: Sequence[str], about: str, before: Sequence[str] = ()) -> Text:
    """Return the first lines of a comparison: what was recorded, the answer, more on it, and what was compared."""
    if not answer:
        return Text("\n".join([*before, about]), style="" if before else "bold")
    head = Text("\n".join([*before, answer, *more, about]))
    begin = sum(len(each) + 1 for each in before)
    head.stylize("bold", begin, begin + len(answer))
    return head


def drawn_owners(result: Result, named: Sequence[str]) -> dict[str, Figure]:
    """Return the figure of what owners get, by its name; none where too few owners have enough jobs."""
    if "owners" not in result.tables:
        return {}
    drawn = owners_figure(result.tables["owners"], result.meta["scenario"], seeds_text(result), named)
    return {} if drawn is None else {"owners": drawn}


def seeds_text(result: Result) -> str:
    """Say which seeds were played, as in ``seeds 0 to 19``."""
    seeds, windows = sorted(result.runs["seed"].unique().tolist()), int(result.meta.get("windows", 1))
    if windows > 1:
        users = ", users too in half of them" if result.meta.get("resample") else ""
        return f"{windows} windows of the log, values drawn {len(seeds) // windows} times for each{users}"
    if len(seeds) == 1:
        return f"seed {seeds[0]}"
    whole = len(seeds) == seeds[-1] - seeds[0] + 1
    return f"seeds {seeds[0]} to {seeds[-1]}" if whole else f"{len(seeds)} of the seeds {seeds[0]} to {seeds[-1]}"


MECHANISM = Column("", lambda row: str(row["mechanism"]))


def _main_columns(meta: Mapping[str, Any]) -> list[Column]:
    """Return what each mechanism is worth, and paired differences to a rival and to first-come at flat prices."""
    differences = {"over_first_come": "over first\ncome, points", "over_best_flat": "over its best\nflat price"}
    rival = rival_of(meta)
    if rival.column not in differences:
        name = rival.name.replace(":", ":\n")
        differences = {rival.column: f"over {name},\npoints", "over_first_come": "over first\ncome"}
    return [
        Column("welfare,\ncredits", lambda row: amount(row["welfare"])),
        Column("of best,\nat least", lambda row: at_least_percent(row["welfare_share"])),
        Column("jobs\ndone", lambda row: percent(row["completed_share"])),
        Column("revenue,\ncredits", lambda row: amount(row["revenue"])),
        *(Column(title, partial(share_difference, name=name)) for name, title in differences.items()),
        Column("truth\nbest?", lambda row: row.get("truthful") or "-"),
    ]


def _ratio_columns(meta: Mapping[str, Any]) -> list[Column]:
    """Return ratios to the best schedule, and what a theorem promises of them."""
    return [
        Column("behind the\nbest here", _behind),
        Column("E[OPT] /\nE[welfare]", lambda row: ratio_text(row["ratio_low"], row["ratio_high"])),
        Column(f"{meta['confidence']:.0%} interval", _interval),
        Column("proven\nratio", _promised),
        Column(
            "against the best\nflat price that\nknows durations",
            partial(share_difference, name="over_best_flat_known"),
        ),
    ]


def share_difference(row: Mapping[str, Any], name: str) -> str:
    """Show a paired difference in points of the bound on OPT, with half the width of its interval if there is one."""
    if not math.isfinite(row[name]):
        return "-"
    half = row[f"{name}_high"] - row[name]
    return f"{round(100 * row[name], 2) + 0.0:+.2f}" + (f" ± {100 * half:.2f}" if math.isfinite(half) else "")


def flat_remark(meta: Mapping[str, Any], flat: bool = True) -> str:
    """Return a remark that explains the differences, also those to first-come at its best flat price if shown."""
    several = f"with {meta['confidence']:.0%} intervals" if meta["runs"] > 1 else "of one run"
    return (
        "points: differences in welfare on the same jobs, all seeds together, in percent of the bound on the best "
        f"schedule, {several}; "
        f"first come at price 0{', and at its best flat price, which is known in hindsight alone' if flat else ''}"
    )


def truth_remark(rows: list[dict[str, Any]]) -> str:
    """Say of each mechanism what is known of truth-telling, with what the words mean."""
    parts = []
    for word, meaning in VERDICTS.items():
        named = [
            f"{row['mechanism']}" + (f" ({row['truthful_but']})" if row.get("truthful_but") else "")
            for row in rows
            if row.get("truthful", "unknown") == word
        ]
        if named:
            parts.append(f"{word} ({meaning}): {', '.join(named)}")
    return f"is truth best? {'; '.join(parts)}"


def known_remarks(rows: list[dict[str, Any]]) -> list[str]:
    """Say what first-come that knows all durations is, where it is shown."""
    if not any(math.isfinite(row.get("over_best_flat_known", math.nan)) for row in rows):
        return []
    return ["durations are hidden here: first-come that knows them is a yardstick that cannot be run"]


def _behind(row: Mapping[str, Any]) -> str:
    if row["behind"] <= 0:
        return "-"
    ends = f"\n{100 * row['behind_low']:.1f} to {100 * row['behind_high']:.1f}"
    return percent(row["behind"]) + (ends if math.isfinite(row["behind_low"]) else "")


def _interval(row: Mapping[str, Any]) -> str:
    low, high = row["interval_low"], row["interval_high"]
    return f"{low:.3f} to {high:.3f}" if math.isfinite(high) else f"{low:.3f} or more" if math.isfinite(low) else "-"


def _promised(row: Mapping[str, Any]) -> str:
    if not math.isfinite(row["promised_ratio"]):
        return "-"
    return f"{row['promised_ratio']:.2f}" if row["promise_holds"] else f"({row['promised_ratio']:.2f})"


LARGE = 3  # times the mean bound: a run that large stands for many


def sizes_remarks(bounds: pd.Series[float]) -> list[str]:
    """Say of the bounds of all runs that some are 0, or one is far above the others."""
    empty, found = int((bounds <= 0).sum()), []
    if empty:
        found.append(f"in {empty} of {len(bounds)} runs nothing could be earned: shares and points leave them out")
    if bounds.mean() > 0 and bounds.max() > LARGE * bounds.mean():
        found.append(
            f"runs differ in size: one has {bounds.max() / bounds.mean():.1f} times the mean bound; intervals speak of "
            "runs like those that were drawn, and cover no larger ones"
        )
    return found


def _taken_back(comparison: Result) -> list[str]:
    """Say how many runs each mechanism takes back, and what that loses; nothing where none does."""
    if "requeues" not in comparison.runs:
        return []
    means = comparison.runs.groupby("mechanism", sort=False)[["requeues", "lost_node_rounds"]].mean()
    counts = [
        f"{name} {row['requeues']:,.0f} ({row['lost_node_rounds']:,.0f} node-rounds)"
        for name, row in means[means["requeues"] > 0].iterrows()
    ]
    how = "runs taken back to begin again, mean of a seed, and what they and evictions lose: "
    return [how + "; ".join(counts)] if counts else []


MANY_WAITS = 5  # mean waits: a job that was overtaken for longer is named


def _overtaken(comparison: Result) -> list[str]:
    """Name the job of each mechanism that later arrivals kept waiting for very long."""
    runs = comparison.runs
    if "overtaken_job" not in runs:
        return []
    waits = comparison.waits[comparison.waits["by"] == "all"][["seed", "mechanism", "wait_rounds"]]
    runs = runs.merge(waits, on=["seed", "mechanism"])
    mean = runs["wait_rounds"] * comparison.meta["round_seconds"] / 3600
    runs = runs[runs["longest_overtaken_hours"] > MANY_WAITS * mean].sort_values("longest_overtaken_hours")
    return [
        f"{row['mechanism']}: later jobs kept job {row['overtaken_job']} (seed {row['seed']}) waiting for "
        f"{row['longest_overtaken_hours']:.1f} hours: marketsched explain FOLDER {row['overtaken_job']} "
        f"-m {row['mechanism']} --seed {row['seed']} says why"
        for row in runs[runs["mechanism"] != RECORDED].drop_duplicates("mechanism", keep="last").to_dict("records")
    ]


def _remarks(comparison: Result) -> list[str]:
    """Return the notes below the main table, one sentence each."""
    meta, rows = comparison.meta, comparison.records()
    found = [flat_remark(meta, rival_of(meta).column == "over_first_come")]
    if "alike" in meta:
        found.append(f"nothing is drawn here: all {meta['alike']} runs are equal, shown once")
    elif meta["runs"] == 1:
        found.append("a single run has no interval: ask for more with --runs")
    found += [
        f"{name} {why}: its figures are of these plays alone" for name, why in meta.get("unrepeatable", {}).items()
    ]
    found += sizes_remarks(comparison.runs.drop_duplicates("seed")["opt_high"])
    found += _taken_back(comparison) + _overtaken(comparison)
    if "pools" in comparison.tables:
        found.append(POOLS)
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
    seeds = comparison.runs.drop_duplicates("seed")
    kinds = Counter(seeds["opt_kind"].tolist())
    bounds = ", ".join(f"{BOUNDS[kind]} in {count} of {sum(kinds.values())}" for kind, count in kinds.items())
    found = [
        f"the best schedule in hindsight is bounded above by {bounds} runs"
        + ("" if set(kinds) == {"exact"} else "; below it by the best schedule known")
    ]
    if (seeds["opt_high"] > 0).sum() > 1:
        found.append("ratios are ratios of means over paired runs; intervals cover both ends")
        found.append(
            f"{what_may_be_missed(meta['runs'])}: the intervals of ratios cover that such runs earn nothing; those of "
            "differences speak of what the runs show"
        )
    if len(rows) > 2:
        found.append(
            "behind the best here: each interval is of that pair alone, and the best was chosen by these runs: of "
            "several alike one is often behind by luck"
        )
    found += [*known_remarks(rows), truth_remark(rows)]
    rows = [row for row in rows if row["mechanism"] != RECORDED]
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
