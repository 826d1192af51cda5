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
            welfare = f"{100 * row['welfare_mean']:.1f}"
            gain = f"{100 * row['lying_gain']:.1f} ({100 * row['lying_low']:.1f} to {100 * row['lying_high']:.1f})"
            none = f"gain not measured: {row['lie']}" if row["lie"] else "no lie found"
            by = f"{row['lie']}, in {row['lie_in']}" if row["lie_in"] else row["refused"] or none
            low = f"{100 * row['welfare_low']:.1f}"
            table.add_row(row["contestant"], low, welfare, gain if row["lie_in"] else "-", by)
        runs, owners = result.meta["runs"], result.meta["owners"]
        notes = [
            f"- score: lower end of the 95 % interval of welfare over {runs} runs; a market in which it fails counts 0",
            f"- {owners} owners of each market were looked at; scores of other numbers of runs are not comparable",
            "- gain: of one lie, chosen on half of the runs and measured on the other, in % of a job's highest value",
        ]
        return Group(Text(self.name(result), style="bold"), table, *map(Text, notes))
