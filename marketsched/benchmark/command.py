"""The command `marketsched benchmark`: mechanisms on fixed tasks, with a score and the largest gain from lying."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from marketsched import benchmark as scores
from marketsched.results.output import KEPT
from marketsched.show.commands.tools import (
    PROCESSES,
    REPORTED,
    DataOption,
    ForceOption,
    JsonOption,
    MechanismOption,
    OutOption,
    finish,
    named_on_the_line,
    one_line_errors,
    progress_bar,
    stop,
    target_folder,
)


def benchmark(
    mechanism: MechanismOption = None,
    log: Annotated[
        list[Path] | None, typer.Option(help="A log that is a task, too: its last 2,000 jobs.", show_default=False)
    ] = None,
    runs: Annotated[int, typer.Option(help="Seeds of each task; lies are chosen on the first half.", min=2)] = 4,
    owners: Annotated[int, typer.Option(help="Jobs in each market whose owners lie.", min=1)] = 12,
    workers: Annotated[int, typer.Option(*PROCESSES, help="Processes, which share the contestants.", min=1)] = 1,
    out: OutOption = None,
    force: ForceOption = False,
    data: DataOption = None,
    as_json: JsonOption = False,
) -> None:
    """Score mechanisms on fixed markets. The lower end of welfare, and beside it the largest confirmed gain from lying.

    Writes one JSON file a contestant and the page table.md; the same versions write the same bytes.
    """
    with one_line_errors():
        folder = target_folder(out, "benchmark", force)
        with progress_bar() as tell:
            found = scores.benchmark(
                named_on_the_line(mechanism),
                logs=log or (),
                runs=runs,
                owners=owners,
                data=data,
                workers=workers,
                keep=folder.parent / KEPT,
                progress=tell,
            )
        finish(found, folder, force, as_json)
        if all(row["refused"] for row in found.records()):
            stop("every contestant failed in a market: reasons stand in the table", REPORTED)
