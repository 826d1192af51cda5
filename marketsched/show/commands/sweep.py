"""`marketsched sweep`: many runs, resumed where they were interrupted."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from marketsched.show.cli import with_settings
from marketsched.show.commands.tools import (
    INTERRUPTED,
    PROCESSES,
    REPORTED,
    DataOption,
    JsonOption,
    SchedulerOption,
    SetOption,
    file_name,
    one_line_errors,
    stop,
)
from marketsched.study import sweeps

if TYPE_CHECKING:
    from marketsched.study.sweeps.sweeping import Progress, SweepResult

LOG_SECONDS = 60.0  # between lines of progress where no terminal shows a bar


@with_settings(no_args_is_help=True)
def sweep(
    spec: Annotated[Path, typer.Argument(help="What to run, YAML (see docs/sweeps.md).", show_default=False)],
    out: Annotated[
        Path | None,
        typer.Option(help="Folder of the sweep; its finished runs count (default: under runs).", show_default=False),
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option(*PROCESSES, help="Processes (default: one per processor).", min=1, show_default=False),
    ] = None,
    scheduler: SchedulerOption = None,
    retry_failed: Annotated[bool, typer.Option("--retry-failed", help="Make failed runs again.")] = False,
    seed: Annotated[int, typer.Option(help="Added to every seed of the sweep.", min=0)] = 0,
    data: DataOption = None,
    as_json: JsonOption = False,
    changes: SetOption = None,
) -> None:
    """Run scenarios with many changes and seeds. It goes on where an earlier sweep was interrupted."""
    with one_line_errors():
        found, folder = sweeps.runs.read_spec(spec)
        runs = sweeps.runs.runs_of(found, folder=folder, source=str(spec), changes=changes or [], first_seed=seed)
        target = out if out is not None else Path("runs") / f"{file_name(found.name)}-sweep"
        with _progress() as tell:
            try:
                result = sweeps.sweeping.sweep(
                    runs,
                    target,
                    scheduler,
                    workers=workers,
                    retry_failed=retry_failed,
                    data=data,
                    progress=tell,
                    keep_interrupted=True,
                    name=found.name,
                )
            except KeyboardInterrupt:  # before the first run, or while the table is written
                stop("interrupted: finished runs are kept; start the sweep again to go on", INTERRUPTED)
        _show(result, as_json)


def _show(result: SweepResult, as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps(result.to_dict(), indent=2))
    else:
        kept = result.finished - result.made
        earlier = f", {kept:,} of them earlier" if kept else ""
        typer.echo(f"{result.finished:,} of {result.runs:,} runs finished{earlier}, in {result.seconds:.1f} s")
        _show_failed(result)
    shows = f": marketsched report {result.out} shows its figures" if result.finished else ""
    typer.echo(f"written to {result.out}{shows}", err=as_json)
    if not result.complete:
        left = result.runs - result.finished
        to_go = f" with {left:,} runs to go" if left else ""  # failed ones that were to be made again are finished
        stop(f"interrupted{to_go}: start the sweep again to go on", INTERRUPTED)
    if result.failed:
        stop(f"{len(result.failed):,} runs failed: --retry-failed makes them again", REPORTED)


def _show_failed(result: SweepResult) -> None:
    """Print each error once, with the number of runs it ended."""
    counts: dict[str, int] = {}
    for error in result.failed.values():
        counts[error] = counts.get(error, 0) + 1
    for error, count in sorted(counts.items(), key=lambda item: -item[1])[:10]:
        typer.echo(f"  {count:,} failed: {error}")


@contextmanager
def _progress() -> Iterator[Progress]:
    """Give a function that shows a bar on standard error, and in a file a line every minute."""
    if sys.stderr is None or not sys.stderr.isatty():
        yield _log()
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bar

    columns = (BarColumn(), MofNCompleteColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=None)
        yield lambda done, total, what: bar.update(task, completed=done, total=total, description=what)


def _log() -> Progress:
    last = time.monotonic()

    def tell(done: int, total: int, what: str) -> None:
        nonlocal last
        if time.monotonic() - last >= LOG_SECONDS:
            last = time.monotonic()
            typer.echo(f"marketsched: {done:,} of {total:,} runs finished, {what}", err=True)

    return tell
