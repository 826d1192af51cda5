"""The printed table of lies to the allocation cores."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from rich.console import Group
from rich.text import Text

from marketsched.results.kinds import ResultKind
from marketsched.results.views import WordTable

if TYPE_CHECKING:
    from marketsched.results.result import Result


UNDECIDED = "Seems to: its own interval lies above 0, but not for all lies together (more --worlds). "


class CoreLiesKind(ResultKind):
    """Gains from lying, one row per policy and payment: the best lie that was found."""

    title = "lies to an allocation core"
    table = "lies"
    compared = "policies"
    by = ("policy", "payment")

    def view(self, result: Result) -> Group:
        meta = result.meta
        table = WordTable()
        for title in ("policy", "payment", "best lie found"):
            table.add_column(title, overflow="fold")
        for title in ("gain, % of its\ntruthful utility", "others'\nvalue, %", "pays"):
            table.add_column(title, justify="right", no_wrap=True)
        for row in result.records():
            gain, others = _interval(row, "gain"), _interval(row, "others")
            pays = "yes" if row["pays"] else "seems to" if row.get("seems_to_pay") else "no"
            table.add_row(row["policy"], row["payment"], row["lie"], gain, others, pays)
        seems = any(row.get("seems_to_pay") for row in result.records())
        remark = (
            f"{meta['scenario']}: the first owner lies, all others tell the truth; "
            f"{meta['fresh_worlds']} fresh worlds, {meta['confidence']:.0%} intervals. "
            + UNDECIDED * seems
            + "What the search has not found proves nothing."
        )
        return Group(table, Text(f"\n{remark}", style="dim"))


def _interval(row: dict[str, Any], name: str) -> str:
    """Return a share with its interval; a dash where there is none."""
    mean, low, high = (row[f"{name}_{part}"] for part in ("percent", "low", "high"))
    if mean is None or math.isnan(mean):
        return "-"
    return f"{mean:.3g} [{low:.3g}, {high:.3g}]"
