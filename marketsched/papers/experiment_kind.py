"""A table or figure of a paper that was run again: the paper's numbers and ours, drawn, printed, and many together."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import matplotlib
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator
from rich.console import Group
from rich.text import Text

from marketsched.results.kinds import Chapters, ResultKind
from marketsched.results.panels import GREY, INK, OKABE_ITO, STYLE
from marketsched.results.result import Result, load
from marketsched.results.views import ShownTable, WordTable, value_text

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

LETTERS = 10.5  # of the headline, an inch
COLOURS = {
    "reproduced": "#009e73",
    "same direction": "#0072b2",
    "direction only": "#e69f00",
    "not decided": GREY,
    "not reproduced": "#d55e00",
}
SIGNS = {"number": "", "above": "> ", "below": "< ", "at most": "<= ", "at least": ">= "}
MARKERS = {"number": "D", "above": ">", "at least": ">", "below": "<", "at most": "<"}


class ExperimentKind(ResultKind):
    """Tables ``table``, one row per claim, ``lines``, the drawn lines, and ``runs`` behind them."""

    title = "experiment of a paper"
    table = "table"

    def name(self, result: Result) -> str:
        return str(result.meta["experiment"])

    def view(self, result: Result) -> Group:
        return Group(Text(headline(result.meta), style="bold"), *_claims_printed(result.table))

    def figures(self, result: Result) -> dict[str, Figure]:
        return {"figure": _figure(result)}

    def data(self, result: Result) -> dict[str, Any]:
        about = {name: result.meta[name] for name in ("experiment", "place")}
        return {**about, "claims": result.table.to_dict(orient="records"), "meta": result.meta}

    def details(self, result: Result) -> Mapping[str, Any]:
        every = {"Every run": result.runs} if "runs" in result.tables else {}
        return {"All columns": result.table.drop(columns="experiment"), **every}


class ReproducedKind(ResultKind):
    """Several experiments: ``table`` has the claims of all; ``meta["headlines"]`` says how each was run."""

    title = "reproduction of papers"
    table = "table"

    def name(self, result: Result) -> str:
        return "The papers' tables and figures"

    def how_far(self, result: Result) -> str:
        done = len(result.meta["experiments"])
        return f"after {done} of {done + len(result.meta['missing'])} experiments"

    def view(self, result: Result) -> Group:
        parts: list[Any] = []
        for name, claims in result.table.groupby("experiment", sort=False):
            parts += [Text(result.meta["headlines"][name], style="bold"), *_claims_printed(claims), Text("")]
        parts.append(Text(", ".join(f"{count} {word}" for word, count in result.outcome.items())))
        parts.append(Text("[ ]: 95 % interval over seeds; the rule of the verdicts: docs/reproduce.md", style="dim"))
        return Group(*parts)

    def chapters(self, result: Result, folder: Path) -> Chapters:
        parts = [(name, load(folder / name)) for name in result.meta["experiments"]]
        notes = ["[95 %]: interval over seeds, from which the verdict follows by one rule (docs/reproduce.md)"]
        notes += [f"not run: {', '.join(result.meta['missing'])}"] if result.meta["missing"] else []
        return Chapters(
            head="the papers' numbers, ours, and a verdict on every claim",
            tables=_overview([each for _, each in parts]),
            notes=notes,
            parts=[(str(each.meta["place"]), name, each) for name, each in parts],
        )


def verdict_counts(table: pd.DataFrame) -> dict[str, int]:
    """Return how many claims of a table, measured at the paper's setting, have which verdict."""
    own = table["verdict"][table["setting"] == ""]
    return {word: int((own == word).sum()) for word in COLOURS}


def headline(meta: Mapping[str, Any]) -> str:
    """Return an experiment's title and settings in one line, from what is known of its result."""
    size = "the paper's sizes" if meta["full"] else "reduced sizes"
    return (
        f"{meta['experiment']}: {meta['place']}; {meta['sizes']}, {meta['runs']} seeds, {size}, {meta['seconds']:.0f} s"
    )


def _claims_printed(claims: pd.DataFrame) -> list[Any]:
    """Return the claims as tables, and each different reason once, with the number that the rows have for it.

    Those at another setting than the paper's have a table of their own for each.
    """
    reasons = {reason: i for i, reason in enumerate(dict.fromkeys(x for x in claims["reason"] if x), 1)}
    parts: list[Any] = []
    for setting, own in claims.groupby("setting", sort=False):
        parts += [Text("beside it, not counted: " + str(setting), style="bold")] if setting else []
        parts.append(_table_of(own, reasons))
    return [*parts, *(Text(f"({i}) {reason}", style="dim") for reason, i in reasons.items())]


def _table_of(claims: pd.DataFrame, reasons: Mapping[str, int]) -> WordTable:
    table = WordTable()
    table.add_column("", overflow="fold", min_width=30)
    for title in ("paper", "ours", "[95 %]", "single seeds"):
        table.add_column(title, justify="right", no_wrap=True)
    table.add_column("verdict")  # wraps: no mark is cut off
    for row in claims.to_dict(orient="records"):
        mark = f" ({reasons[row['reason']]})" if row["reason"] else ""
        cells = (
            f"{SIGNS[row['claim']]}{_amount(row['paper'])}",
            _amount(row["value"]),
            _pair(row["low"], row["high"]),
            _pair(row["least"], row["most"]),
            row["verdict"] + mark,
        )
        table.add_row(row["quantity"], *cells)
    return table


def _quantity(row: Mapping[Any, Any]) -> str:
    """Return what was measured, marked if not at the paper's setting: the table says at which."""
    return f"(beside it) {row['quantity']}" if row["setting"] else str(row["quantity"])


def _amount(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:.4g}" if abs(value) < 1e4 else f"{value:.3g}"


def _pair(low: float, high: float) -> str:
    return "-" if math.isnan(low) or math.isnan(high) else f"{_amount(low)} to {_amount(high)}"


def _figure(result: Result) -> Figure:
    """Return panels on the left, and on the right every claim with the paper's number."""
    claims, meta = result.table, result.meta
    panels = [each for _, each in result.lines.groupby("panel", sort=False)]
    with matplotlib.rc_context({**STYLE, "font.size": 9}):
        key = 0.2 * max(panel["line"].nunique() for panel in panels) + 0.2  # inches, below a panel
        height = max(key + 4.4, 0.34 * len(claims) + 1.6)
        figure = Figure(figsize=(5.2 * len(panels) + 8.0, height), layout="constrained")
        drawn = min(4.6, height - key)
        grid = figure.add_gridspec(
            2, len(panels) + 1, width_ratios=[*[1.0] * len(panels), 0.9], height_ratios=[drawn, height - drawn]
        )
        for column, panel in enumerate(panels):
            ax = figure.add_subplot(grid[0, column])
            _panel(ax, panel)
            below = figure.add_subplot(grid[1, column])
            below.axis("off")
            below.legend(*ax.get_legend_handles_labels(), loc="upper left", frameon=False, fontsize=8)
        _claims_drawn(figure.add_subplot(grid[:, -1]), claims)
        keys = [Line2D([], [], color=colour, linewidth=2, label=word) for word, colour in COLOURS.items()]
        paper = {"color": INK, "marker": "D", "fillstyle": "none", "linestyle": "none"}
        keys.append(Line2D([], [], label="paper (< >: a side)", **paper))  # type: ignore[arg-type]
        figure.legend(handles=keys, loc="outside lower right", ncols=6, frameon=False, fontsize=8)
        size = "the paper's sizes" if meta["full"] else "reduced"
        title = f"{meta['place']}: {meta['shows']} ({meta['sizes']}; {meta['runs']} seeds; {size})"
        figure.suptitle(textwrap.fill(title, int(LETTERS * figure.get_figwidth())))
    return figure


def _panel(ax: Axes, panel: pd.DataFrame) -> None:
    lines = list(panel.groupby("line", sort=False))
    for i, (label, line) in enumerate(lines):
        look: dict[str, Any] = {"color": OKABE_ITO[i % len(OKABE_ITO)], "label": label, "markersize": 3}
        banded = bool(line["low"].notna().all())
        if line["word"].notna().any():  # between words there is nothing to join; lines stand beside each other
            x = [k + 0.09 * (i - (len(lines) - 1) / 2) for k in range(len(line))]
            ax.plot(x, line["y"], "o", **look)
            if banded:
                ax.vlines(x, line["low"], line["high"], color=look["color"], linewidth=1.5)
            ax.set_xticks(range(len(line)), line["word"].tolist(), rotation=30)
            continue
        ax.plot(line["x"], line["y"], marker="o" if len(line) < 30 else None, **look)
        if banded:
            ax.fill_between(line["x"], line["low"], line["high"], color=look["color"], alpha=0.18, linewidth=0)
    first = panel.iloc[0]
    if (panel["x"] % 1 == 0).all():  # seeds and slots are whole
        ax.xaxis.set_major_locator(MaxNLocator(6, integer=True))
    ax.set(title=first["panel"], xlabel=first["x_label"], ylabel=first["y_label"])
    if first["log"]:
        ax.set_yscale("log")


def _claims_drawn(ax: Axes, claims: pd.DataFrame) -> None:
    """Draw every claim on a line of its own: our interval, and the paper's number or side."""
    for i, row in enumerate(claims.to_dict(orient="records")):
        colour = COLOURS[row["verdict"]]
        if math.isfinite(row["value"]):
            ax.plot([row["value"]], [i], "o", color=colour, markersize=4)
        if not math.isnan(row["low"]):
            ax.plot([row["low"], row["high"]], [i, i], color=colour, linewidth=2)
        ax.plot([row["paper"]], [i], MARKERS[row["claim"]], color=INK, markersize=5, fillstyle="none")
    ax.set_yticks(range(len(claims)), [_quantity(row) for row in claims.to_dict(orient="records")], fontsize=7)
    ax.set_ylim(len(claims) - 0.5, -0.5)
    values = claims[["value", "paper"]].abs().to_numpy()
    if (values[[math.isfinite(x) for x in values.max(axis=1)]] > 50).any():
        ax.set_xscale("symlog")
    ax.grid(axis="y", color=GREY, alpha=0.2)
    ax.set_title("claims")


def _overview(experiments: Sequence[Result]) -> list[ShownTable]:
    """Return the counts of verdicts: of every paper and of all, then of every experiment."""
    papers: dict[str, list[int]] = {}
    lines = []
    for found in experiments:
        counts = list(verdict_counts(found.table).values())
        meta = found.meta
        sizes = f"{meta['sizes']}{'' if meta['full'] else ' (reduced)'}"
        figures = (sum(counts), *counts)
        lines.append((str(meta["place"]), str(meta["shows"]), sizes, *map(value_text, (meta["runs"], *figures))))
        total = papers.setdefault(str(meta["place"]).partition(",")[0], [0] * (2 + len(COLOURS)))
        papers[str(meta["place"]).partition(",")[0]] = [x + y for x, y in zip(total, (1, *figures), strict=True)]
    if len(papers) > 1:
        papers["all"] = [sum(column) for column in zip(*papers.values(), strict=True)]
    words = ("claims", *COLOURS)
    above = tuple((paper, *map(value_text, counts)) for paper, counts in papers.items())
    return [
        ShownTable("Verdicts", ("", "experiments", *words), (False, *[True] * (1 + len(words))), above),
        ShownTable(
            "Experiments",
            ("", "shows", "sizes", "seeds", *words),
            (*[False] * 3, *[True] * (1 + len(words))),
            tuple(lines),
        ),
    ]
