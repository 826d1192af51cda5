"""Who loses and who gains from one mechanism to another: sentences, a table and a figure of owners."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import matplotlib
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray
from rich.text import Text

from marketsched.results.answers import question_of
from marketsched.results.panels import GREY, MUTED, OKABE_ITO, STYLE, frame
from marketsched.results.result import Result
from marketsched.results.versus import FEW, SAME, directions, versus_table
from marketsched.results.views import WordTable, amount, plain_table
from marketsched.results.waits_view import round_length, wait_unit

MOST = 10  # losers, and winners, that a table has
NAMED = 3  # losers in the figure
LARGE = 1 / 3  # of a difference, of one user
LETTERS = 0.06  # height of a name, of the axes
LOSS, GAIN, OPEN = OKABE_ITO[5], OKABE_ITO[0], GREY
HEADINGS = {  # of users for whom it rises, and falls: clear of 0, and where runs are few
    "wait_rounds": (("wait longer", "wait less"), ("waited longer, in so few runs", "waited less, in so few runs")),
    "own": (
        ("get more of their own value", "get less of it"),
        ("got more, in so few runs", "got less, in so few runs"),
    ),
}


def versus_sentences(result: Result) -> list[str]:
    """Say how many owners wait longer or get less under the mechanism that is asked about; empty without a rival.

    Parameters
    ----------
    result : Result
        Of kind ``mechanisms`` or ``loads``, with ``against`` in its meta and as a table.
    """
    found = _one_user(result)
    for load, table in _tables(result).items():
        where = "" if load is None else f"At load {load:g}: "
        if result.meta["runs"] < FEW:
            return [f"With fewer than {FEW} runs nothing is claimed of single {_who(result.meta)}."]
        found += [where + each for each in _said(table, result)]
    return found


def _one_user(result: Result) -> list[str]:
    """Name the user of a log who makes more than a third of the difference; empty where none does."""
    pairs = result.tables.get("against")
    if pairs is None or _who(result.meta) == "owners" or "load" in pairs or "gain" not in pairs:
        return []
    pairs = pairs[pairs["mechanism"] == question_of(result.records(), result.meta)]
    gains = pairs.groupby("owner")["gain"].sum()
    if gains.size < FEW or abs(gains.sum()) < SAME:
        return []
    shares = gains / gains.sum()
    if not shares.max() > LARGE:
        return []
    return [f"User {shares.idxmax()} alone makes {shares.max():.0%} of this difference."]


def versus_view(result: Result) -> list[Text | WordTable]:
    """Return the table of the largest losers and winners, ready to print with rich; none without a rival."""
    table = _tables(result).get(None)
    if table is None:
        return []
    unit, per = _unit(table, result.meta)
    asked, rival, who = question_of(result.records(), result.meta), result.meta["against"], _who(result.meta)
    shown = plain_table("jobs", f"wait,\n{unit}", "change", "own value,\n%", "change", first=who[:-1], room=10)
    for title, rows in _losers_and_winners(table, result.meta["runs"] < FEW).items():
        if len(rows):
            shown.add_row(title)
        for row in _records(rows):
            shown.add_row(
                f"  {row['owner']}",
                amount(round(float(row["jobs"]), 1)),
                _number(per * row["first_wait_rounds"]),
                _change(row, "wait_rounds", per),
                _number(100 * row["first_own"]),
                _change(row, "own", 100.0),
            )
    about = f"{asked} against {rival}, by {who[:-1]}: mean wait of jobs that both start, and share of own value"
    return [Text(f"\n{about}", style="dim"), shown] if shown.rows else []


def versus_figure(result: Result) -> Figure | None:
    """Draw the change of each owner's wait and own value, from the largest loss to the largest gain.

    Returns
    -------
    Figure or None
        12 x 4.6 inches; lines are intervals, grey where these hold 0. None without a rival, or with several loads.
    """
    table = _tables(result).get(None)
    if table is None:
        return None
    unit, per = _unit(table, result.meta)
    few = result.meta["runs"] < FEW
    if few:  # intervals over two seeds are wider than the figure
        table[[f"{name}_{end}" for name in HEADINGS for end in ("low", "high")]] = np.nan
    asked, rival = question_of(result.records(), result.meta), result.meta["against"]
    with matplotlib.rc_context(STYLE):
        colours = (
            f"fewer than {FEW} runs: nothing is claimed" if few else "red: loses, blue: gains, grey: not clear of 0"
        )
        about = f"{result.meta['scenario']}; {colours}"
        figure, (left, right) = frame(2, f"{asked} against {rival}", about, top=0.78, bottom=0.15, wspace=0.2)
        figure.set_size_inches(12, 4.6)
        _draw(left, table, "wait_rounds", per, f"change of the mean wait, {unit}", loss=1)
        _draw(right, table, "own", 100.0, "change of own value, points", loss=-1)
        for axes in (left, right):
            axes.set_xticks([])
            axes.set_xlabel(f"{_who(result.meta)}, the largest loss first")
    return figure


def _tables(result: Result) -> dict[float | None, pd.DataFrame]:
    """Return what changes for owners under the mechanism of the answer, by load; none where no owner has two jobs."""
    if "against" not in result.tables:
        return {}
    pairs = result.tables["against"]
    pairs = pairs[pairs["mechanism"] == question_of(result.records(), result.meta)]
    if pairs.empty or pairs["jobs"].max() <= 1:
        return {}
    loads: list[float | None] = sorted(pairs["load"].unique().tolist()) if "load" in pairs else [None]
    parts = {load: pairs if load is None else pairs[pairs["load"] == load] for load in loads}
    found = {load: versus_table(part, result.meta["confidence"]) for load, part in parts.items()}
    return {load: table for load, table in found.items() if len(table) > 1}


def _records(table: pd.DataFrame) -> list[dict[str, Any]]:
    return [{str(name): value for name, value in row.items()} for row in table.to_dict("records")]


def _said(table: pd.DataFrame, result: Result) -> list[str]:
    unit, per = _unit(table, result.meta)
    asked, rival = question_of(result.records(), result.meta), result.meta["against"]
    who, everyone = _who(result.meta), f"{len(table):,}"
    waits, own = directions(table, "wait_rounds"), directions(table, "own")
    longer, less = table[waits > 0], table[own < 0]
    quicker, more = int((waits < 0).sum()), int((own > 0).sum())
    return [
        f"{quicker:,} of {everyone} {who} {'waits' if quicker == 1 else 'wait'} less under {asked} than under {rival}, "
        f"{len(longer):,} longer{_worst(longer, 'wait_rounds', per, unit, who)}, by jobs that both start.",
        f"{more:,} {'gets' if more == 1 else 'get'} more of the value of their own jobs, "
        f"{len(less):,} less{_worst(less, 'own', 100.0, 'points', who)}.",
    ]


def _worst(losers: pd.DataFrame, name: str, per: float, unit: str, who: str) -> str:
    if losers.empty:
        return ""
    row = losers.iloc[losers[name].abs().argmax()]
    half = per * (row[f"{name}_high"] - row[name])
    return f" (most {who[:-1]} {row['owner']}, {per * row[name]:+,.1f} ± {half:,.1f} {unit})"


def _losers_and_winners(table: pd.DataFrame, few: bool) -> dict[str, pd.DataFrame]:
    """Return those with the largest changes by wait, then others by own value, clear of 0 unless runs are few."""
    found, shown = {}, np.zeros(len(table), bool)
    for name, words in HEADINGS.items():
        clear = np.sign(np.nan_to_num(table[name].to_numpy())).astype(np.int64) if few else directions(table, name)
        for sign, word in zip((1, -1), words[few], strict=True):
            rows = table[(clear == sign) & ~shown]
            found[word] = rows.loc[rows[name].abs().nlargest(MOST).index]
            shown |= table.index.isin(found[word].index)
    return found


def _draw(axes: Axes, table: pd.DataFrame, name: str, per: float, title: str, loss: int) -> None:
    """Draw one change of all owners, the largest loss first; ``loss``: the sign of one."""
    found = table[table[name].notna()]
    found = found.iloc[np.argsort(-loss * found[name].to_numpy(), kind="stable")]
    y = per * found[name].to_numpy()
    ends = [
        np.nan_to_num(per * np.abs(found[f"{name}{end}"].to_numpy() - found[name].to_numpy()))
        for end in ("_low", "_high")
    ]
    clear = loss * directions(found, name)
    axes.axhline(0, color=MUTED, linewidth=1)
    for sign, colour in ((1, LOSS), (-1, GAIN), (0, OPEN)):
        at = np.flatnonzero(clear == sign)
        lines = [each[at] for each in ends]
        axes.errorbar(at + 1, y[at], yerr=lines, fmt="o", markersize=5, color=colour, linewidth=1.2)
    low, high = axes.get_ylim()
    named = [x for x in range(min(NAMED, len(found))) if clear[x] > 0]
    for x, height in zip(named, _apart(loss * y[named], LETTERS * (high - low)), strict=True):
        axes.text(x + 1 + 0.015 * len(found), loss * height, found["owner"].iloc[x], fontsize=10, va="center")
    axes.set_title(title, fontsize=12, loc="left")
    axes.grid(axis="y", color=GREY, alpha=0.25, linewidth=0.6)


def _apart(heights: NDArray[np.float64], gap: float) -> list[float]:
    """Return falling heights, each as near below its own as the one before leaves room for it."""
    found: list[float] = []
    for height in heights.tolist():
        found.append(min(height, found[-1] - gap) if found else height)
    return found


def _unit(table: pd.DataFrame, meta: Mapping[str, Any]) -> tuple[str, float]:
    return wait_unit(np.nanmax(table[["first_wait_rounds", "second_wait_rounds"]].to_numpy()), round_length(meta))


def _who(meta: Mapping[str, Any]) -> str:
    return "users" if "rule" in (meta.get("workload") or {}) else "owners"


def _number(x: float) -> str:
    return f"{x:,.1f}" if math.isfinite(x) else "-"


def _change(row: Mapping[str, Any], name: str, per: float) -> str:
    if not math.isfinite(row[name]):
        return "-"
    half = per * (row[f"{name}_high"] - row[name])
    return f"{per * row[name]:+,.1f}" + (f" ± {half:,.1f}" if math.isfinite(half) else "")
