"""Hard instances: the jobs on which each mechanism did worst, as scenarios that run again."""

from __future__ import annotations

from collections.abc import Mapping
from math import isnan
from typing import Any

from rich.console import Group
from rich.text import Text

from marketsched.results.kinds import ResultKind
from marketsched.results.output import file_name
from marketsched.results.result import Result
from marketsched.results.views import Column, amount, ratio_text, table_of

COLUMNS = (
    Column("OPT / welfare,\nworst found", lambda each: ratio_text(each["ratio"], each["ratio_bound"])),
    Column("at the start", lambda each: "-" if each["start_ratio"] is None else f"{each['start_ratio']:.3f}"),
    Column("promised", lambda each: _promised(each)),
    Column("jobs", lambda each: str(each["n_jobs"])),
    Column("welfare", lambda each: amount(each["welfare"])),
    Column("tried", lambda each: f"{each['evaluations']:,}"),
    Column("seconds", lambda each: f"{each['seconds']:.1f}"),
)
LABEL = Column("", lambda each: each["label"])


def _promised(each: Mapping[str, Any]) -> str:
    if each["alpha"] is None:
        return "-"
    return f"{each['alpha']:.2f}" if each["conditions_hold"] else f"({each['alpha']:.2f})"


def instance_file(label: str) -> str:
    """Return the name of the file that holds the instance found for a mechanism."""
    return f"hard-{file_name(label)}.yaml"


class HardKind(ResultKind):
    """No tables; one row per mechanism in the summary, and its instance among the texts."""

    title = "search for hard instances"

    def name(self, result: Result) -> str:
        return "hard instances"

    def how_far(self, result: Result) -> str:
        return f"at mechanism {len(result.summary)} of {result.meta.get('mechanisms_asked_for', len(result.summary))}"

    def view(self, result: Result) -> Group:
        found, notes = by_label(result), []
        table = table_of(({"label": label, **each} for label, each in found.items()), LABEL, COLUMNS, room=0)
        for label, each in found.items():
            known = "the optimum is exact" if each["proven"] else "the optimum lies between the two"
            notes.append(f"- {label}: {known}; {each['conditions']}")
            notes.append(
                f"- to run it, in the folder: marketsched run {instance_file(label)} --seed {each['seeds'][0]}"
            )
        return Group(Text("the hardest instances found", style="bold"), table, *map(Text, notes))

    def summary_data(self, result: Result) -> dict[str, Any]:
        return by_label(result)

    def data(self, result: Result) -> dict[str, Any]:
        return by_label(result)

    def details(self, result: Result) -> Mapping[str, Any]:
        return {f"All figures of {label}": each for label, each in by_label(result).items()}


def by_label(result: Result) -> dict[str, dict[str, Any]]:
    """Return the figures of each mechanism by its label; None where there is none."""
    found = {}
    for row in result.records():
        figures = {name: None if isinstance(each, float) and isnan(each) else each for name, each in row.items()}
        found[str(figures.pop("label"))] = figures
    return found
