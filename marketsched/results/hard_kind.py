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
from marketsched.results.views import amount, plain_table, ratio_text

COLUMNS = ("OPT / welfare,\nworst found", "at the start", "promised", "jobs", "welfare", "tried", "seconds")


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
        table, notes = plain_table(*COLUMNS), []
        for label, each in by_label(result).items():
            alpha, start = each["alpha"], each["start_ratio"]
            promised = "-" if alpha is None else f"{alpha:.2f}" if each["conditions_hold"] else f"({alpha:.2f})"
            table.add_row(
                label,
                ratio_text(each["ratio"], each["ratio_bound"]),
                "-" if start is None else f"{start:.3f}",
                promised,
                str(each["n_jobs"]),
                amount(each["welfare"]),
                f"{each['evaluations']:,}",
                f"{each['seconds']:.1f}",
            )
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
