"""An audit: per mechanism lower and upper bounds on an owner's gain from lying, and every lie that was tried."""

from __future__ import annotations

import math
from typing import Any

import matplotlib
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from rich.console import Group
from rich.text import Text

from marketsched.results.kinds import ResultKind
from marketsched.results.panels import GREY, INK, OKABE_ITO, STYLE
from marketsched.results.result import Result
from marketsched.results.views import at_least, at_least_percent, at_most, exact_amount, plain_table

*COLOURS, OTHERS = OKABE_ITO  # of owners that are told apart; grey for all others

COLUMNS = (
    "gain: at\nleast",
    "at most",
    "certified\nowners",
    "of all, gain\nnothing",
    "screened\nowners",
    "searched\nowners",
    "plays",
)


KINDS_OF_GAIN = {  # what the largest sure gain is
    "ex post": "an exact gain in this market: a counterexample to truth as a best reply in every case",
    "own law": "an exact gain on average over the owner's own law, with all else as in this market",
    "expected": "a gain on average over the random outcomes, with the stated confidence",
}
PROMISES = {
    "ex post": "that no lie gains in any case",
    "in expectation": "that no lie gains on average over the outcomes of the owner's job",
    "up to regret": "that no lie gains more on average than a bound",
    "none": "nothing about truth-telling",
}


class AuditKind(ResultKind):
    """Tables ``tried``, ``lies`` and ``certificates-LABEL``; one row of the summary per mechanism."""

    title = "audit of truthfulness"
    compared = "mechanisms"
    by = ("mechanism",)

    def view(self, result: Result) -> Group:
        meta, table, notes = result.meta, plain_table(*COLUMNS, room=10), []
        for row in result.records():
            share, known = row["certified_share"], row.get("audited", True)
            unknown = "truth fails" if row.get("truth_fails") else "not audited"
            table.add_row(
                str(row["mechanism"]),
                _lower_end(row) if known else unknown,
                at_most(row["regret_upper"]),
                str(row["certified_owners"]),
                "-" if math.isnan(share) else f">= {at_least_percent(share)}",
                str(row.get("screened_owners", "-")),
                str(row["searched_owners"]),
                f"{row['plays']:,}",
            )
            notes += _notes(row, meta["tolerance"])
        notes.append(
            "each certificate, and all confirmed lies of a mechanism together, hold with "
            f"{100 * meta['confidence']:.12g} % confidence; "
            f"gains up to {meta['tolerance']:g} credits do not count; a search that finds nothing proves nothing"
        )
        status = f" (exit status {meta['status']}: {meta['status_words']})" if "status" in meta else ""
        head = Text(f"{meta['scenario']}: what an owner could gain by lying, credits{status}", style="bold")
        return Group(head, table, *(Text(f"- {note}") for note in notes))

    def figures(self, result: Result) -> dict[str, Figure]:
        return {"figure": _figure(result)}

    def data(self, result: Result) -> dict[str, Any]:
        pays = result.summary["regret_lower"] > result.meta["tolerance"]
        profitable = bool(pays.any())
        undecided = [row["mechanism"] for row in result.records() if row.get("seems_to_pay")]
        failing = [row["mechanism"] for row in result.records() if row.get("truth_fails")]
        unknown = [row["mechanism"] for row in result.records() if not row.get("audited", True)]
        unknown = [name for name in unknown if name not in failing]
        cut = [row["mechanism"] for row in result.records() if row.get("cut")]
        lists: dict[str, Any] = {"not_audited": unknown, "truth_fails": failing, "seems_to_pay": undecided, "cut": cut}
        lists["status"] = result.meta.get("status")
        return {**super().data(result), "profitable": profitable, **lists}

    def details(self, result: Result) -> dict[str, Any]:
        certificates = {name: each for name, each in result.tables.items() if name.startswith("certificates-")}
        return {**super().details(result), **certificates}


def _lower_end(row: dict[str, Any]) -> str:
    """Return a row's largest sure gain: exact figures as they are, others rounded down."""
    return exact_amount(row["regret_lower"]) if row.get("exact") else at_least(row["regret_lower"])


def _notes(row: dict[str, Any], tolerance: float) -> list[str]:
    """Return the notes on one mechanism."""
    name, notes = row["mechanism"], []
    if row.get("irreproducible"):
        notes.append(f"{name}: not audited: {row['irreproducible']}")
    elif row.get("truth_fails"):
        notes.append(
            f"{name}: no lie could be compared, because it fails under the truthful reports of every owner examined: "
            f"{row['truth_fails']}"
        )
    elif not row.get("audited", True):
        notes.append(f"{name}: not audited: it is not known whether a lie pays")
    if row["lie"] and row["regret_lower"] > tolerance:
        what = row.get("sentence") or f"{row['worst_job']} {row['lie']}"
        notes.append(f"{name}: a lie pays: {what}")
        if row.get("kind") in KINDS_OF_GAIN:
            promise = PROMISES.get(row["promise"], f"truth-telling ({row['promise']})")
            notes.append(f"{name}: {KINDS_OF_GAIN[row['kind']]}; it promises {promise}")
    if row.get("free_of_charge") and (row["regret_lower"] > tolerance or row.get("gained_ex_post")):
        notes.append(
            f"{name}: it takes no money, and gains are those of one job: what the owner's other jobs lose by it does "
            "not count; `--utility value` counts all jobs of an owner"
        )
    if row.get("rests_on"):
        notes.append(f"{name}: its certificates are exact for the menu of each owner; checks: {row['rests_on']}")
    if row.get("seems_to_pay"):
        notes.append(f"{name}: seems to pay, not confirmed: {row['seems_to_pay']}")
    clean = row.get("audited", True) and not row["regret_lower"] > tolerance and not row.get("seems_to_pay")
    if clean and row.get("screened_owners"):
        notes.append(f"{name}: {could_have_found(row)}")
    if row.get("gained_ex_post"):
        counts = "" if row["regret_lower"] > tolerance else "; that breaks no promise"
        notes.append(
            f"{name}: in hindsight, in this one market, at least {row['gained_ex_post']} of {row['screened_owners']} "
            f"screened owners would have gained, up to {exact_amount(row['most_ex_post'])} credits, by lies that were "
            f"played until one counted{counts}"
        )
    if row.get("mischarged"):
        notes.append(f"{name}: a payment is not that of its menu, although it promises something: {row['mischarged']}")
    if row.get("joint"):
        notes.append(f"{name}: {row['joint']}")
    if row.get("refused") or row.get("failed"):
        notes.append(
            f"{name}: not compared: {row['refused']} reports that it refused, {row['failed']} under which it failed"
        )
    if row.get("cut"):
        notes.append(f"{name}: the seconds cut off {row['cut']}")
    return [*notes, f"{name}: {row['errors']}"] if row["errors"] else notes


def could_have_found(row: dict[str, Any]) -> str:
    """Return the size of gain that a clean result would have detected."""
    said = []
    if row["promise"] != "up to regret":
        said.append(f"no lie that was played of {row['screened_owners']} owners {_counted(row)} in this market")
    if math.isfinite(row["detectable_share"]) and not row.get("gained_ex_post"):
        share = at_most(100 * row["detectable_share"])
        said.append(
            f"each of {row['detectable_by']} was played for all of them: that one of these gains for {share} % of the "
            "owners would have been seen with 90 % probability; this says nothing of other lies"
        )
    if math.isfinite(row["power"]):
        said.append(
            f"{row['power_of']}: {row['power_worlds']} fresh worlds would have confirmed a gain by this one lie of "
            f"{at_most(100 * row['power'])} % of its job's value on average with 90 % probability"
        )
    return "; ".join(said) or "too few plays to state the gain that would have been detected"


def _counted(row: dict[str, Any]) -> str:
    """Return what a lie that counts does: where nothing is promised there is no promise to break."""
    promised = {promise != "none" for promise in row["promise"].split(", ")}
    broken, gained = "breaks its promise", "gains on average over the owner's own law"
    if promised == {True, False}:
        return f"{broken}, or {gained} where nothing is promised,"
    return broken if promised == {True} else gained


def _owners_with_colours(tried: pd.DataFrame, paying: pd.DataFrame) -> list[str]:
    """Return the owners that are distinguished: those of confirmed lies, then those with the largest gains."""
    most = tried.groupby("job", sort=False)["gain"].max().sort_values(ascending=False, kind="stable")
    return list(dict.fromkeys([*paying["job"], *most.index]))[: len(COLOURS)]


def _plot_lies(axes: Axes, tried: pd.DataFrame, paying: pd.DataFrame, colour: str, label: str) -> None:
    points = tried[["size", "gain"]].to_numpy()
    points = points[np.isfinite(points).all(axis=1)]
    if len(points):
        below = 1.5 if colour == OTHERS else 2
        axes.plot(*points.T, ".", color=colour, markersize=5, alpha=0.6, label=label, zorder=below)
    axes.plot(*paying[["size", "gain_low"]].to_numpy().T, "o", color=colour, markerfacecolor="none", markersize=11)


def _figure(result: Result) -> Figure:
    """Draw, per mechanism, the gain of every lie tried against its size; the truth lies at the origin.

    The dashed line is the largest certificate: no lie of a certified owner gains more. Gains are those
    of the search, on the worlds it looked at: the best of many looks better than it is. A ring marks a lie that was
    confirmed on fresh worlds, at its lower end. Owners beyond the number of colours, those that gain least, are grey.
    """
    rows, tried, lies = result.records(), result.tables["tried"], result.tables["lies"]
    n = len(rows)
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(12, 0.9 + 3.1 * n), facecolor="white")
        panels = figure.subplots(n, 1, squeeze=False)[:, 0]
        figure.subplots_adjust(left=0.09, right=0.97, top=1 - 0.75 / (0.9 + 3.1 * n), bottom=0.16 / n, hspace=0.45)
        for axes, row in zip(panels, rows, strict=True):
            axes.axhline(0, color=GREY, linewidth=1)
            own, paying = (table[table["mechanism"] == row["mechanism"]] for table in (tried, lies))
            named = _owners_with_colours(own, paying)
            for job, colour in zip(named, COLOURS, strict=False):
                _plot_lies(axes, own[own["job"] == job], paying[paying["job"] == job], colour, job)
            others = own[~own["job"].isin(named)]
            if n_others := others["job"].nunique():
                label = f"{n_others} other owner{'s' if n_others > 1 else ''}"
                _plot_lies(axes, others, paying[~paying["job"].isin(named)], OTHERS, label)
            axes.plot(0, 0, "D", color=INK, markersize=7, zorder=5)
            if np.isfinite(row["regret_upper"]):
                axes.axhline(row["regret_upper"], color="#a50f15", linewidth=1.4, linestyle="--")
            axes.set_xscale("symlog", linthresh=0.1)
            axes.set_yscale("symlog", linthresh=1.0)
            axes.set_xlim(left=-0.02)
            axes.set_title(row["mechanism"], loc="left", fontsize=12, color=INK)
            axes.set_ylabel("gain, credits")
            if axes.get_legend_handles_labels()[0]:
                axes.legend(loc="lower right", bbox_to_anchor=(1, 1), frameon=False, fontsize=9, ncols=4)
            axes.margins(y=0.08)
        panels[-1].set_xlabel("size of the lie; the truth is the diamond, the dashed line the largest certificate")
        figure.text(0.012, 0.985, result.meta["scenario"], fontsize=15, fontweight="bold", va="top", color=INK)
    return figure
