"""Several markets side by side: a row for each site, and their sums."""

from __future__ import annotations

from typing import Any

import pandas as pd
from rich.console import Group
from rich.table import Table
from rich.text import Text

from marketsched.results.kinds import ResultKind
from marketsched.results.result import Result

SUMMED = ("jobs", "completed", "welfare", "revenue", "bound")


class SitesKind(ResultKind):
    """No tables: each site has a folder of its own beside this one. The summary has one row per site."""

    title = "markets side by side"
    compared = "sites"
    by = ("site",)

    def view(self, result: Result) -> Group:
        rows = pd.DataFrame(result.summary)
        total = rows[list(SUMMED)].sum(min_count=len(rows))
        table = Table("site", "scenario", "mechanism", box=None, pad_edge=False)
        for name in ("jobs", "completed", "welfare", "of bound", "revenue"):
            table.add_column(name, justify="right")
        for row in rows.to_dict(orient="records"):
            table.add_row(row["site"], row["scenario"], row["mechanism"], *_figures(row))
        table.add_row("all", "", "", *_figures(total.to_dict()), style="bold")
        head = f"{self.name(result)}: {len(rows):,} independent markets"
        note = "of bound: welfare over what no schedule of the site can exceed; each site has a folder beside this one"
        return Group(Text(head, style="bold"), table, Text(f"- {note}", style="dim"))


def _figures(row: dict[Any, Any]) -> tuple[str, ...]:
    share = row["welfare"] / row["bound"] if pd.notna(row["bound"]) and row["bound"] > 0 else None
    counts = f"{row['jobs']:,.0f}", f"{row['completed']:,.0f}"
    return *counts, f"{row['welfare']:,.6g}", "" if share is None else f"{share:.1%}", f"{row['revenue']:,.6g}"
