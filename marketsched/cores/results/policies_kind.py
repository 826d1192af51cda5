"""Results of policies in the same world: earnings, observations, and the best allocation.

Three kinds: a run of every policy (``cluster``), a comparison over seeds (``policies``), and comparisons
for several values of a key (``over``). A core's description (`marketsched.cores.core`) names its goal and reference.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from rich.console import Group
from rich.text import Text

from marketsched.cores import results
from marketsched.cores.core import CORES, Core, FigureColumn
from marketsched.results.kinds import ResultKind
from marketsched.results.result import Result
from marketsched.results.views import Column, WordTable, amount, decimals, number, percent, plain_table, table_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class _Policies(ResultKind):
    """What the three kinds have in common."""

    compared = "policies"
    by: ClassVar[tuple[str, ...]] = ("policy",)

    def core(self, result: Result) -> Core:
        return CORES[result.meta["core"]]


class RunKind(_Policies):
    """Tables ``slots``, and ``jobs`` of a core that tells jobs apart; one row of the summary per policy."""

    title = "cluster run"

    def how_far(self, result: Result) -> str:
        done, asked = len(result.summary), len(result.meta["policies"])
        best = self.core(result).reference
        return f"after {done} of {asked} policies" if done < asked else f"before the {best} was found"

    def view(self, result: Result) -> Group:
        meta, rows, core = result.meta, result.records(), self.core(result)
        done = "" if result.complete else f", INTERRUPTED after {len(rows)} of {len(meta['policies'])} policies"
        head = Text(f"{_world(meta, core)}, seed {meta['seed']}{done}", style="bold")
        seconds = meta["policy_seconds"]
        columns = [
            OBSERVES,
            _goal(core),
            *(Column(each.title, partial(_of_run, each)) for each in core.columns),
            Column(f"{meta['lead']}\nover this", lambda row: decimals(row["ratio"])),
            Column(f"{core.star} over\nthis", lambda row: decimals(row["reference_ratio"])),
            Column(f"regret\nto {core.star}", lambda row: number(row["regret"])),
            Column(f"in %\nof {core.star}", _regret_share),
            Column("time a\nslot, µs", lambda row: amount(1e6 * seconds[row["policy"]] / row["slots"])),
        ]
        remarks = [*_remarks(rows, core), "one seed says little: marketsched compare shows the spread over many"]
        return Group(head, _table(rows, columns), *(Text(f"- {remark}") for remark in remarks))

    def figures(self, result: Result) -> dict[str, Figure]:
        title = f"{result.meta['scenario']}, seed {result.meta['seed']}"
        return {"figure": results.policies_figure.run_figure(result, self.core(result)), **_jobs_figure(result, title)}


class ComparisonKind(_Policies):
    """Tables ``runs``, ``curves``, perhaps ``regrets`` and ``jobs``; one row of the summary per policy."""

    title = "comparison of policies"

    def how_far(self, result: Result) -> str:
        return f"after {result.meta['runs']} of {result.meta['runs_asked_for']} seeds"

    def view(self, result: Result) -> Group:
        meta, rows, core = result.meta, result.records(), self.core(result)
        runs, first = meta["runs"], meta["seed"]
        state = "" if result.complete else f", INTERRUPTED {result.how_far}"
        seeds = f"seeds {first} to {first + runs - 1}" if runs > 1 else f"seed {first}"
        parts: list[Any] = [Text(f"{_world(meta, core)}, {seeds}{state}", style="bold"), _earned(rows, core)]
        if len(rows) > 1:
            parts += ["", _ratio_table(meta, rows, core)]
        return Group(*parts, *(Text(f"- {remark}") for remark in _comparison_remarks(result, core)))

    def figures(self, result: Result) -> dict[str, Figure]:
        meta, core = result.meta, self.core(result)
        title = f"{meta['scenario']}, " + (f"{meta['runs']} seeds" if meta["runs"] > 1 else "one seed")
        found = {"figure": results.policies_figure.comparison_figure(result, core), **_jobs_figure(result, title)}
        if results.jobs_figure.steps_of(result.runs):
            found["migrations"] = results.jobs_figure.migration_figure(result.runs, title=title, baseline=core.baseline)
        return found


class OverKind(_Policies):
    """Table ``runs``; one row of the summary per value and policy."""

    title = "comparison of policies over a setting"
    by = ("value", "policy")

    def how_far(self, result: Result) -> str:
        return f"after {len(result.meta['finished'])} of {len(result.meta['values'])} values"

    def view(self, result: Result) -> Group:
        meta, core = result.meta, self.core(result)
        state = "" if result.complete else f", INTERRUPTED {result.how_far}"
        head = Text(f"{meta['scenario']} over {meta['key']}, {meta['runs']} seeds for each value{state}", style="bold")
        columns = [
            _goal(core),
            *_means(each for each in core.columns if each.kind != "total"),  # there is little room
            Column(f"{meta['lead']}\nover this", lambda row: decimals(row["ratio"])),
            Column("± sd", lambda row: decimals(row["ratio_deviation"])),
            Column(f"{core.star} over\nthis", lambda row: decimals(row["reference_ratio"])),
            Column(f"regret,\n% of {core.star}", _regret_share),
        ]
        table = plain_table(first=meta["key"].rpartition(".")[2], room=4)
        table.add_column("", overflow="fold", min_width=10)
        table.add_column(OBSERVES.title, no_wrap=True, min_width=8)
        for column in columns:
            table.add_column(column.title, justify="right", no_wrap=True)
        last = None
        for row in result.records():
            value = str(row["value"]) if row["value"] != last else ""
            table.add_row(value, row["policy"], OBSERVES.cell(row), *(column.cell(row) for column in columns))
            last = row["value"]
        return Group(head, table)

    def figures(self, result: Result) -> dict[str, Figure]:
        key, name, core = result.meta["key"].rpartition(".")[2], result.meta["scenario"], self.core(result)
        draw, runs = results.over_figure, result.runs
        if key == "gain":
            found = {"figure": draw.utility_figure(runs, title=f"{name}: utilities")}
        else:
            title = f"{name}: effect of {key}"
            found = {"figure": draw.sweep_figure(runs, key=key, title=title, goal=core.goal, star=core.star)}
        if core.pair:
            title = f"{name}: {' and '.join(core.pair)}"
            found["-".join(core.pair)] = draw.gain_overhead_figure(runs, key=key, title=title, pair=core.pair)
        return found


def _jobs_figure(result: Result, title: str) -> dict[str, Figure]:
    """Draw the ends of single jobs, where the core has single jobs."""
    if "jobs" not in result.tables:
        return {}
    return {"jobs": results.jobs_figure.jobs_figure(result.jobs, title=title, lead=result.meta["lead"])}


OBSERVES = Column("observes", lambda row: str(row["observes"]))


def _goal(core: Core) -> Column:
    return Column(f"{core.goal}\na slot", lambda row: number(row["reward_per_slot"]))


def _means(columns: Iterable[FigureColumn]) -> list[Column]:
    """Return the figures of a core as a summary over seeds has them."""
    return [Column(each.title, partial(_of_seeds, each)) for each in columns]


def _regret_share(row: Mapping[str, Any]) -> str:
    return percent(row["regret_share"]) if math.isfinite(row["regret_share"]) else "-"


def _earned(rows: Sequence[Mapping[str, Any]], core: Core) -> WordTable:
    """What every policy earned, and how its regret grows."""
    columns = [
        OBSERVES,
        _goal(core),
        Column("± sd", lambda row: number(row["reward_per_slot_deviation"])),
        *_means(core.columns),
    ]
    if any(math.isfinite(row["over_baseline"]) for row in rows):
        columns.append(Column(f"over\n{core.baseline}", partial(_plus_minus, name="over_baseline")))
    columns.append(Column(f"regret, %\nof {core.star}", partial(_percent_cell, name="regret_share")))
    if core.grows:
        columns.append(Column("regret\n~ T^x: x", _growth_cell))
    return _table(rows, columns)


def _table(rows: Sequence[Mapping[str, Any]], columns: Sequence[Column], first: str = "") -> WordTable:
    """Return a table of policies; in a narrow window cells are broken between words: no digit is lost."""
    policy = Column(first, lambda row: str(row["policy"]))
    table = table_of(rows, policy, columns, overflow="fold")
    table.padding = (0, 1, 0, 0)
    for column in table.columns:
        if column.title == OBSERVES.title:
            column.justify = "left"
    return table


def _ratio_table(meta: Mapping[str, Any], rows: Sequence[Mapping[str, Any]], core: Core) -> WordTable:
    """What the leading policy earns over every other one, and what the reference does."""
    columns = [
        Column("of mean\ntotals", lambda row: decimals(row["ratio_of_means"])),
        Column(f"{meta['confidence']:.0%}\ninterval", _interval),
        Column("seeds:\nmean ± sd", partial(_plus_minus, name="ratio")),
        Column("seeds:\nrange", _range),
        Column(f"{core.star} over\nthe same", partial(_plus_minus, name="reference_ratio")),
        Column(f"ahead, %\nof {core.star}", partial(_percent_cell, name="margin")),
    ]
    others = [row for row in rows if row["policy"] != meta["lead"]]
    return _table(others, columns, first=f"{meta['lead']} over ...")


def _interval(row: Mapping[str, Any]) -> str:
    known = math.isfinite(row["ratio_of_means_low"])
    return f"{row['ratio_of_means_low']:.3f} to {row['ratio_of_means_high']:.3f}" if known else "-"


def _range(row: Mapping[str, Any]) -> str:
    return f"{row['ratio_least']:.2f} to {row['ratio_most']:.2f}" if row["ratio_runs"] > 1 else "-"


def _comparison_remarks(found: Result, core: Core) -> list[str]:
    """Return the notes below a comparison, one sentence each."""
    meta, rows = found.meta, found.records()
    remarks = [
        f"ratios of mean totals have an interval; beside them the ratios of single seeds, each with "
        f"{core.seeds} of its own"
    ]
    if meta["runs"] < 20:
        remarks.append(
            f"{meta['runs']} seeds: ratios differ by tens of per cent between seeds, ask for --runs 20 or more"
        )
    missing = {row["policy"]: row["runs"] - row["ratio_runs"] for row in rows if row["runs"] > row["ratio_runs"]}
    if missing:
        counts = ", ".join(f"{policy} {count}" for policy, count in missing.items())
        remarks.append(
            f"no ratio where a total is not positive, in so many of {meta['runs']} seeds: {counts}; the means of the "
            "ratios leave these seeds out, how far ahead it is does not"
        )
    if any(row["ratio_deviation"] > 0.5 * row["ratio"] for row in rows):
        remarks.append("a total near zero makes a ratio as large as one likes: there look at the ratio of mean totals")
    grown = [row["policy"] for row in rows if math.isfinite(row["growth"])]
    if grown:
        counts = ", ".join(f"{slots:,}" for slots in meta["horizons"])
        knowing = meta.get("knows_horizon", False)
        anew = ", each played with the step of its own horizon" if knowing else ""
        remarks.append(
            f"x is fitted seed by seed over horizons of {counts} slots{anew} "
            f"({meta['confidence']:.0%} interval of the mean)"
        )
    return remarks + _remarks(rows, core)


def _remarks(rows: Sequence[Mapping[str, Any]], core: Core) -> list[str]:
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
        remarks.append(core.remark.format(gap=f"{100 * max(gaps):.2g}"))
    elif rows and core.baseline:
        remarks.append(
            f"no {core.reference}: not asked for, or its programs would be too large, or machines are shared"
        )
    shown = [row["policy"] for row in rows if row["observes"] == "state"]
    if shown:
        remarks.append(f"{', '.join(shown)} is shown which machines are available: an upper reference, no rival")
    for row in rows:
        if math.isfinite(row["regret_over_bound"]):
            held = "within" if row["regret_over_bound"] <= 1 else "BEYOND"
            unproven = "" if "step=theorem" in row["rules"] else "; it is proven for step=theorem, and not for this one"
            remarks.append(
                f"{row['policy']}: the regret is {held} the bound of {core.bound}, at most "
                f"{100 * max(row['regret_over_bound'], 0.0):.2g} % of it{unproven}"
            )
    return remarks


def _world(meta: Mapping[str, Any], core: Core) -> str:
    return f"{meta['scenario']}: {core.world.format(**meta)}"


def _of_run(column: FigureColumn, row: Mapping[str, Any]) -> str:
    return _shown(column, row[column.name], row["slots"])


def _of_seeds(column: FigureColumn, row: Mapping[str, Any]) -> str:
    return _shown(column, row[column.shown], 1)


def _shown(column: FigureColumn, x: float, slots: int) -> str:
    """Show a figure of a core: as it is, per slot, or in per cent."""
    if column.kind == "slot":
        return number(x / slots)
    if column.kind == "total" and abs(x) >= 1e5:
        return f"{x:.3g}"
    return number(x) if column.kind == "total" or not math.isfinite(x) else f"{100 * x:.1f}"


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
