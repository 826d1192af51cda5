"""The command `marketsched sites`: several markets side by side."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from marketsched import sites as side_by_side
from marketsched.results.output import file_name
from marketsched.show.commands.tools import (
    INTERRUPTED,
    DataOption,
    JsonOption,
    SchedulerOption,
    SeedOption,
    SetOption,
    one_line_errors,
    print_view,
    progress_bar,
    stop,
)


def sites(
    file: Annotated[Path, typer.Argument(help="A scenario for each site, YAML (docs/scale.md).", show_default=False)],
    seed: SeedOption = 0,
    jobs: Annotated[int, typer.Option(help="Processes that share the sites.", min=1)] = 1,
    scheduler: SchedulerOption = None,
    out: Annotated[
        Path | None,
        typer.Option(help="Each site gets a folder in it (default: under runs).", show_default=False),
    ] = None,
    data: DataOption = None,
    as_json: JsonOption = False,
    changes: SetOption = None,
) -> None:
    """Run several independent markets side by side. Finished sites are not run again."""
    with one_line_errors():
        from marketsched.sites.description import ALL, Sites  # pydantic, which --help does without

        target = Path("runs") / f"{file_name(Sites.load(file)[0].name)}-sites" if out is None else out
        with progress_bar() as tell:
            try:
                found = side_by_side.run_sites(
                    file,
                    target,
                    seed,
                    jobs=jobs,
                    executor=scheduler,
                    data=data,
                    changes=changes or [],
                    progress=tell,
                )
            except KeyboardInterrupt:
                stop(f"interrupted: {target} has the sites that are finished; start it again to go on", INTERRUPTED)
        if as_json:
            typer.echo(json.dumps(found.to_dict(), indent=2, allow_nan=False))
        else:
            print_view(found.view())
        typer.echo(f"written to {target}: a folder for each site, and {ALL}", err=as_json)
