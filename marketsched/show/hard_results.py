"""Hard instances as a person reads them, and what a search for them leaves on disk."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Group
from rich.table import Table
from rich.text import Text

from marketsched.results.output import META, whole_folder, write_json
from marketsched.results.views import amount
from marketsched.show.comparison_view import ratio_text

if TYPE_CHECKING:
    from marketsched.study.comparisons.adversary import HardInstance

NOT_FIGURES = ("history", "instance")


def hard_instance_data(found: HardInstance) -> dict[str, Any]:
    """Return the figures of a hard instance as plain data."""
    return {field.name: getattr(found, field.name) for field in fields(found) if field.name not in NOT_FIGURES}


def instance_file(label: str) -> str:
    """Return the name of the file that holds the instance found for a mechanism."""
    return "hard-" + "".join(x if x.isalnum() or x in "._-" else "-" for x in label) + ".yaml"


def write_hard_instances(folder: Path, found: Mapping[str, HardInstance], *, seed: int, force: bool = False) -> None:
    """Write one scenario per mechanism that runs again, and ``summary.json``; whole or not at all.

    Raises
    ------
    InvalidParameterError
        If the folder may not be written.
    OSError
        If the disk does not take it; nothing is left then.
    """
    from marketsched.play.running import versions

    with whole_folder(folder, force=force) as partial:
        for label, each in found.items():
            each.save(partial / instance_file(label))
        write_json({label: hard_instance_data(each) for label, each in found.items()}, partial / "summary.json")
        write_json({"mechanisms": list(found), "seed": seed, "versions": versions()}, partial / META)


def hard_instances_view(found: Mapping[str, HardInstance], folder: Path) -> Group:
    """Return the table of what was found, ready to print with rich."""
    table = Table(show_edge=False, pad_edge=False, box=None, header_style="dim")
    table.add_column("")
    titles = ("OPT / welfare,\nworst found", "at the start", "promised", "jobs", "welfare", "tried", "seconds")
    for title in titles:
        table.add_column(Text(title), justify="right", no_wrap=True)
    notes = []
    for label, each in found.items():
        promised = "-" if each.alpha is None else f"{each.alpha:.2f}" if each.conditions_hold else f"({each.alpha:.2f})"
        table.add_row(
            label,
            ratio_text(each.ratio, each.ratio_bound),
            "-" if each.start_ratio is None else f"{each.start_ratio:.3f}",
            promised,
            str(each.n_jobs),
            amount(each.welfare),
            f"{each.evaluations:,}",
            f"{each.seconds:.1f}",
        )
        known = "the optimum is exact" if each.proven else "the optimum lies between the two"
        notes.append(Text(f"- {label}: {known}; {each.conditions}"))
        notes.append(Text(f"- marketsched run {folder / instance_file(label)} --seed {each.seeds[0]}"))
    return Group(Text("the hardest instances found", style="bold"), table, *notes)
