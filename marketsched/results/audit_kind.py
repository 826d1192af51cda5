"""An audit: per mechanism what an owner could gain by lying, at least and at most, and every lie that was tried."""

from __future__ import annotations

import math
from typing import Any

import matplotlib
import numpy as np
from matplotlib.figure import Figure
from rich.console import Group
from rich.text import Text

from marketsched.results.kinds import Kind
from marketsched.results.panels import GREY, INK, OKABE_ITO, STYLE
from marketsched.results.result import Result
from marketsched.results.views import at_least, at_least_percent, at_most, exact_amount, plain_table

COLUMNS = (
    "gain: at\nleast",
    "at most",
    "certified\nowners",
    "of all, gain\nnothing",
    "searched\nowners",
    "plays",
)


class AuditKind(Kind):
    """Tables ``tried``, ``lies`` and ``certificates-LABEL``; one row of the summary per mechanism."""

    title = "audit of truthfulness"
    compared = "mechanisms"
    by = ("mechanism",)

    def view(self, result: Result) -> Group:
        meta, table, notes = result.meta, plain_table(*COLUMNS, room=10), []
        for row in result.records():
            share, known = row["certified_share"], row.get("audited", True)
            table.add_row(
                str(row["mechanism"]),
                _lower_end(row) if known else "not audited",
                at_most(row["regret_upper"]),
                str(row["certified_owners"]),
                "-" if math.isnan(share) else f">= {at_least_percent(share)}",
                str(row["searched_owners"]),
                f"{row['plays']:,}",
            )
            notes += _notes(row, meta["tolerance"])
        notes.append(
            "each certificate, and all confirmed lies of a mechanism together, hold with "
            f"{100 * meta['confidence']:.12g} % confidence; "
            f"gains up to {meta['tolerance']:g} credits do not count; a search that finds nothing proves nothing"
        )
        head = Text(f"{meta['scenario']}: what an owner could gain by lying, credits", style="bold")
        return Group(head, table, *(Text(f"- {note}") for note in notes))

    def figures(self, result: Result) -> dict[str, Figure]:
        return {"figure": _figure(result)}

    def data(self, result: Result) -> dict[str, Any]:
        profitable = bool((result.summary["regret_lower"] > result.meta["tolerance"]).any())
        unknown = [row["mechanism"] for row in result.records() if not row.get("audited", True)]
        return {**super().data(result), "profitable": profitable, "not_audited": unknown}

    def details(self, result: Result) -> dict[str, Any]:
        certificates = {name: each for name, each in result.tables.items() if name.startswith("certificates-")}
        return {**super().details(result), **certificates}


def _lower_end(row: dict[str, Any]) -> str:
    """Return a row's largest sure gain: exact figures as they are, others rounded down."""
    return exact_amount(row["regret_lower"]) if row.get("exact") else at_least(row["regret_lower"])


def _notes(row: dict[str, Any], tolerance: float) -> list[str]:
    """Return what is to be said of one mechanism."""
    name, notes = row["mechanism"], []
    if not row.get("audited", True):
        notes.append(f"{name}: not audited: nothing is known of it, neither that a lie pays nor that none does")
    if row["lie"] and row["regret_lower"] > tolerance:
        what = row.get("sentence") or f"{row['worst_job']} {row['lie']}"
        notes.append(f"{name}: a lie pays: {what}")
        if row.get("smallest_lie"):
            least = at_least(row["smallest_gain"])
            notes.append(f"{name}: the smallest that still pays: {row['smallest_lie']} gains at least {least}")
    if row.get("rests_on"):
        notes.append(f"{name}: its certificates are exact for what each owner faced, and rest on {row['rests_on']}")
    if row["outside_model"]:
        what = f"{row['outside_model']} gains at least {at_least(row['outside_gain'])}"
        notes.append(f"{name}: outside the model, of which no theorem speaks: {what}")
    return [*notes, f"{name}: {row['errors']}"] if row["errors"] else notes


def _figure(result: Result) -> Figure:
    """Draw, per mechanism, the gain of every lie tried against its size; the truth lies at the origin.

    The dashed line is the largest certificate: no lie of a certified owner gains more. Gains are those
    of the search, on the worlds it looked at: the best of many looks better than it is. A ring marks a lie that was
    confirmed on fresh worlds, at its lower end.
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
            for i, job in enumerate(own["job"].drop_duplicates()):
                colour = OKABE_ITO[i % len(OKABE_ITO)]
                points = own[own["job"] == job][["size", "gain"]].to_numpy()
                points = points[np.isfinite(points).all(axis=1)]
                if len(points):
                    axes.plot(*points.T, ".", color=colour, markersize=5, alpha=0.6, label=job)
                for lie in paying[paying["job"] == job].itertuples():
                    axes.plot(lie.size, lie.gain_low, "o", color=colour, markerfacecolor="none", markersize=11)
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
