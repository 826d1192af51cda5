"""The command `marketsched audit`: what an owner could gain by lying."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from marketsched.show.commands.tools import (
    INTERRUPTED,
    DataOption,
    ForceOption,
    JsonOption,
    OutOption,
    SetOption,
    file_name,
    free_folder,
    one_line_errors,
    stop,
)

if TYPE_CHECKING:
    from marketsched.truthfulness.audited import Audit

PROFITABLE = 3  # exit status: a lie pays


def audit(
    scenario: Annotated[str, typer.Argument(help="A built-in scenario (see: marketsched scenarios) or a YAML file.")],
    mechanism: Annotated[
        list[str] | None,
        typer.Option(help="A mechanism, as in marketsched compare; may be repeated (default: the scenario's)."),
    ] = None,
    owners: Annotated[int, typer.Option(help="Owners that are certified, per mechanism.", min=1)] = 100,
    confidence: Annotated[float, typer.Option(help="Of certificates and findings.")] = 0.99,
    tolerance: Annotated[float, typer.Option(help="Gains up to so many credits do not count.", min=0.0)] = 0.0,
    budget: Annotated[float, typer.Option(help="Seconds of search per mechanism.")] = 60.0,
    seed: Annotated[int, typer.Option(help="Root of all randomness.", min=0)] = 0,
    out: OutOption = None,
    force: ForceOption = False,
    data: DataOption = None,
    as_json: JsonOption = False,
    changes: SetOption = None,
) -> None:
    """Certify owners and search for lies that pay; exit status 3 if one is confirmed."""
    with one_line_errors():
        from marketsched.config.scenario import Scenario
        from marketsched.config.scenario_file import read_scenario, with_changes
        from marketsched.results.output import check_target
        from marketsched.show.audit_results import write_audit
        from marketsched.truthfulness.audit import audit as audit_scenario

        content, source = read_scenario(scenario)
        base = Scenario.from_dict(with_changes(content, changes or []), source=source)
        folder = out if out is not None else free_folder(Path("runs") / f"{file_name(base.name)}-audited", force)
        check_target(folder, force=force)
        with _progress() as progress:
            found = audit_scenario(
                base,
                mechanism or ["scenario"],
                owners=owners,
                confidence=confidence,
                tolerance=tolerance,
                budget=budget,
                seed=seed,
                data=data,
                progress=progress,
                keep_interrupted=True,
            )
        write_audit(folder, found, force=force)
        _show(found, as_json)
        typer.echo(f"written to {folder}", err=as_json)
    if not found.complete:
        stop(f"interrupted: {folder} has what was finished and is marked INCOMPLETE", INTERRUPTED)
    if found.profitable:
        raise typer.Exit(PROFITABLE)


@contextmanager
def _progress() -> Iterator[Callable[[str, float], None]]:
    """Yield what shows the work in progress on standard error, if that is a terminal."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:.0f} %"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), disable=not sys.stderr.isatty(), transient=True) as bar:
        task = bar.add_task("", total=1.0)
        yield lambda what, share: bar.update(task, description=what, completed=share)


def _show(found: Audit, as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps(found.to_dict(), indent=2, allow_nan=False))
        return
    from rich.console import Console

    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = max(console.width, 110)
    console.print(audit_view(found))


def audit_view(found: Audit) -> Any:
    """Return the table and remarks of an audit, ready to print with rich."""
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    from marketsched.results.views import amount, percent

    meta = found.meta
    table = Table(show_edge=False, pad_edge=False, box=None, header_style="dim")
    table.add_column("", overflow="fold", min_width=10)
    for title in (
        "gain: at\nleast",
        "at most",
        "certified\nowners",
        "of all, gain\nnothing",
        "searched\nowners",
        "plays",
    ):
        table.add_column(Text(title), justify="right", no_wrap=True)
    notes = []
    for row in found.summary().to_dict(orient="records"):
        share = row["certified_share"]
        table.add_row(
            str(row["mechanism"]),
            amount(row["regret_lower"]),
            "-" if math.isnan(row["regret_upper"]) else amount(row["regret_upper"]),
            str(row["certified_owners"]),
            "-" if math.isnan(share) else f">= {percent(share)}",
            str(row["searched_owners"]),
            f"{row['plays']:,}",
        )
        if row["lie"] and row["regret_lower"] > meta["tolerance"]:
            notes.append(f"{row['mechanism']}: a lie pays: {row['worst_job']} {row['lie']}")
        if row["outside_model"]:
            notes.append(
                f"{row['mechanism']}: outside the model, of which no theorem speaks: {row['outside_model']} gains at "
                f"least {amount(row['outside_gain'])}"
            )
        if row["errors"]:
            notes.append(f"{row['mechanism']}: {row['errors']}")
    notes.append(
        "each certificate, and all confirmed lies of a mechanism together, hold with "
        f"{100 * meta['confidence']:.12g} % confidence; "
        f"gains up to {meta['tolerance']:g} credits do not count; a search that finds nothing proves nothing"
    )
    head = Text(f"{meta['scenario']}: what an owner could gain by lying, credits", style="bold")
    return Group(head, table, *(Text(f"- {note}") for note in notes))
