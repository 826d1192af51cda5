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
    "hurry": "no wait agreed to",
    "twin": "submitted twice, one withdrawn",
    "past": "all jobs of an owner at other values",
    "estimate": "another duration announced",
    "value": "one job at another value",
    "account": "one job from another account",
    "accounts": "all jobs of an owner from other accounts",
    "estimates": "all jobs of an owner at other durations",
    "parts": "all jobs of an owner in parts, from its own account",
    "ranks": "another order of importance of an owner's jobs",
    "slack": "all deadlines of an owner nearer or farther",
    "widths": "all jobs of an owner ask for more nodes",
    "ghosts": "every job of an owner brings one more",
    "lates": "all jobs of an owner declared late",
    "hoard": "some jobs of an owner are said to be worth nothing",
    "half": "half of an owner's jobs from another account",
    "trade": "two owners collude",
}


class ConductKind(ResultKind):
    """Table ``gains``; one row of the summary per mechanism and conduct."""

    title = "gains of conduct outside the model"
    table = "summary"
    compared = "conducts"
    by = ("mechanism", "family", "conduct")

    def view(self, result: Result) -> Group:
        meta, rows = result.meta, result.records()
        by_value = meta.get("utility") == "value"
        gains = "mean gain, % of\nwhat truth brings" if by_value else "mean gain, % of\nmean utility"
        table = plain_table(
            "looked\nat", gains, "of them\ngain", f"largest,\n{'%' if by_value else 'credits'}", room=20
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
            largest = f"{100 * row['largest']:.1f}" if by_value else amount(row["largest"])
            table.add_row(f"  {row['conduct']}", str(row["looked_at"]), gain, percent(row["paying"]), largest)
        notes = [
            "all other owners report truly; every conduct is played in the same market as the truth",
            f"± is half of a {meta['confidence']:.0%} interval over those looked at; the best in hindsight is no plan "
            "that an owner could have, a fixed conduct is one",
        ]
        if by_value:
            notes.append(
                "utility is the value of an owner's completed jobs, without payments; owners count alike, as their "
                "values have no common scale; knowing how long jobs will run is no lie"
            )
            paying = [f"{row['mechanism']}, {row['conduct']}" for row in rows if row["pays"]]
            notes.append(f"a gain clear of 0, all conducts together: {'; '.join(paying) or 'none'}")
        last = meta["seed"] + meta["runs"] - 1
        seeds = f"seeds {meta['seed']} to {last}" if meta["runs"] > 1 else f"seed {last}"
        outside = set(result.summary["family"]) <= {"delay", "split", "ghost", "twin", "past"}
        what = "conduct outside the model" if outside else "another report or account"
        head = Text(f"{meta['scenario']}, {seeds}: what {what} gains", style="bold")
        return Group(head, table, *(Text(f"- {note}") for note in notes))
