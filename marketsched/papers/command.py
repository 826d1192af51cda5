"""`marketsched reproduce`: the papers' tables and figures, with the papers' numbers beside ours."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from marketsched.show.commands.tools import (
    BAD_INPUT,
    INTERRUPTED,
    PROCESSES,
    DataOption,
    ForceOption,
    JsonOption,
    SchedulerOption,
    one_line_errors,
    print_view,
    progress_bar,
    stop,
)

if TYPE_CHECKING:
    from marketsched.papers.runs import Experiment
    from marketsched.results.result import Result


def reproduce(
    name: Annotated[str | None, typer.Argument(help="An experiment, as --list names it.", show_default=False)] = None,
    list_all: Annotated[bool, typer.Option("--list", help="List the experiments.")] = False,
    every: Annotated[bool, typer.Option("--all", help="Run every experiment.")] = False,
    full: Annotated[bool, typer.Option("--full", help="The papers' sizes; may take hours.")] = False,
    runs: Annotated[
        int | None, typer.Option(help="Seeds (default: 20, with few exceptions).", show_default=False)
    ] = None,
    slots: Annotated[
        int | None, typer.Option(help="Slots of cluster runs, in place of each one's own.", show_default=False)
    ] = None,
    seed: Annotated[int, typer.Option(help="The first seed.")] = 0,
    workers: Annotated[int, typer.Option(*PROCESSES, help="Processes, with --all.")] = 1,
    scheduler: SchedulerOption = None,
    out: Annotated[
        Path | None,
        typer.Option(help="Each experiment gets a folder in it (default: runs/reproduced).", show_default=False),
    ] = None,
    force: ForceOption = False,
    data: DataOption = None,
    as_json: JsonOption = False,
) -> None:
    """Run the papers' tables and figures. The papers' numbers stand beside ours, with a verdict.

    With --all, what the folder holds already of the same version, seeds and sizes is not run again.
    """
    with one_line_errors():
        # numba and pandas, which --help does without
        from marketsched.papers import experiments, folder, reproducing  # not for --help

        if list_all:
            _list(list(experiments.EXPERIMENTS.values()), as_json)
            return
        if every == (name is not None):
            stop("expected the name of an experiment, or --all, or --list", BAD_INPUT)
        target = Path("runs") / "reproduced" if out is None else out
        sizes: dict[str, Any] = {"full": full, "runs": runs, "slots": slots, "seed": seed, "data": data, "force": force}
        if name is None:
            options = {"workers": workers, "executor": scheduler, **sizes}
            found = _all(reproducing.reproduce_all, list(experiments.EXPERIMENTS), target, options)
        else:
            found = [_one(reproducing.reproduce, experiments.experiment_of(name).name, target, sizes)]
            folder.renew_overview(target)
        if as_json:
            typer.echo(json.dumps([each.to_dict() for each in found], indent=2, allow_nan=False))
        else:
            print_view(folder.overview(found, [str(each.meta["experiment"]) for each in found], {}).view())
        typer.echo(f"written to {target}", err=as_json)


def _one(run: Callable[..., Result], name: str, target: Path, sizes: dict[str, Any]) -> Result:
    with progress_bar() as tell:
        return run(name, out=target / name, progress=lambda what: tell(0, 1, f"{name}: {what}"), **sizes)


def _all(run: Callable[..., list[Result]], names: list[str], target: Path, options: dict[str, Any]) -> list[Result]:
    done = 0
    with progress_bar() as bar:

        def tell(finished: int, total: int, what: str) -> None:
            nonlocal done
            done = finished
            bar(finished, total, what)

        try:
            return run(names, out=target, progress=tell, **options)
        except KeyboardInterrupt:
            stop(
                f"interrupted: {target} has {done} of {len(names)} experiments; the same command goes on from there",
                INTERRUPTED,
            )


def _list(known: list[Experiment], as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps([{"name": e.name, "place": e.place, "shows": e.shows} for e in known], indent=2))
        return
    widths = [max(len(getattr(each, part)) for each in known) for part in ("name", "place")]
    for each in known:
        typer.echo(f"{each.name:{widths[0]}}  {each.place:{widths[1]}}  {each.shows}")
