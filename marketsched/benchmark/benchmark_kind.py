"""Results of the benchmark: one row for each contestant, the best score first."""

from __future__ import annotations

from rich.console import Group
from rich.text import Text

from marketsched.results.kinds import ResultKind
from marketsched.results.result import Result
from marketsched.results.views import plain_table


class BenchmarkKind(ResultKind):
    """Table ``cells``, one row per contestant, task, load and seed; one row of the summary per contestant."""

    title = "benchmark"
    table = "cells"
    compared = "contestants"
    by = ("contestant",)

    def name(self, result: Result) -> str:
        return str(result.meta["benchmark"])

    def view(self, result: Result) -> Group:
        table = plain_table("score", "welfare, %\nof bound", "gain from\nlying, %", "by", first="contestant")
        for row in result.records():
            if row["refused"]:
                table.add_row(row["contestant"], "-", "-", "-", row["refused"])
                continue
            welfare = f"{100 * row['welfare_mean']:.1f}"
            gain = f"{100 * row['lying_gain']:.1f} ({100 * row['lying_low']:.1f} to {100 * row['lying_high']:.1f})"
            by = f"{row['lie']}, in {row['lie_in']}" if row["lie_in"] else row["lie"] or "no lie found"
            low = f"{100 * row['welfare_low']:.1f}"
            table.add_row(row["contestant"], low, welfare, gain if row["lie_in"] else "-", by)
        notes = [
            "- score: the lower end of the 95 % interval of welfare over runs",
            "- gain: of one lie, chosen on half of the runs and measured on the other, in % of a job's highest value",
        ]
        return Group(Text(self.name(result), style="bold"), table, *map(Text, notes))
