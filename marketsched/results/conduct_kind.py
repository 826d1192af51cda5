"""What conduct outside the model gains: per mechanism, every fixed conduct, and the best of them in hindsight."""

from __future__ import annotations

import math

from rich.console import Group
from rich.text import Text

from marketsched.results.kinds import ResultKind
from marketsched.results.result import Result
from marketsched.results.views import amount, percent, plain_table

WORDS = {
    "delay": "arrival declared late",
    "split": "split into identities",
    "ghost": "one more job arrives",
    "twin": "submitted twice, one withdrawn",
    "past": "all jobs of an owner at other values",
    "estimate": "another duration announced",
    "value": "one job at another value",
    "account": "one job from another account",
    "accounts": "all jobs of an owner from other accounts",
    "estimates": "all jobs of an owner at other durations",
    "parts": "all jobs of an owner in parts, from its own account",
}


class ConductKind(ResultKind):
    """Table ``gains``; one row of the summary per mechanism and conduct."""

    title = "gains of conduct outside the model"
    table = "summary"
    compared = "conducts"
    by = ("mechanism", "family", "conduct")

    def view(self, result: Result) -> Group:
        meta, rows = result.meta, result.records()
        table = plain_table(
            "looked\nat", "mean gain, % of\nmean utility", "of them\ngain", "largest,\ncredits", room=20
        )
        before: tuple[str, str] | None = None
        for row in rows:
            family = (row["mechanism"], row["family"])
            if family != before:
                table.add_row(f"{row['mechanism']}: {WORDS.get(row['family'], row['family'])}")
            before = family
            half = row["gain_high"] - row["gain"]
            gain = "-" if not math.isfinite(row["gain"]) else f"{100 * row['gain']:+.2f}"
            gain += f" ± {100 * half:.2f}" if math.isfinite(half) else ""
            table.add_row(
                f"  {row['conduct']}", str(row["looked_at"]), gain, percent(row["paying"]), amount(row["largest"])
            )
        notes = [
            "all other owners report truly; every conduct is played in the same market as the truth",
            f"± is half of a {meta['confidence']:.0%} interval over those looked at; the best in hindsight is no plan "
            "that an owner could have, a fixed conduct is one",
        ]
        last = meta["seed"] + meta["runs"] - 1
        seeds = f"seeds {meta['seed']} to {last}" if meta["runs"] > 1 else f"seed {last}"
        outside = set(result.summary["family"]) <= {"delay", "split", "ghost", "twin", "past"}
        what = "conduct outside the model" if outside else "another report or account"
        head = Text(f"{meta['scenario']}, {seeds}: what {what} gains", style="bold")
        return Group(head, table, *(Text(f"- {note}") for note in notes))
