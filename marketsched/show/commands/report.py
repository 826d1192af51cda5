"""The command `marketsched report`: a folder of results as one page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from marketsched.show import reports
from marketsched.show.cli import with_settings
from marketsched.show.commands.tools import one_line_errors


@with_settings(no_args_is_help=True)
def report(
    folder: Annotated[
        Path,
        typer.Argument(
            help="What a run, comparison, audit, sweep or reproduction has written.", metavar="DIR", show_default=False
        ),
    ],
    out: Annotated[
        Path | None, typer.Option(help="File to write (default: report.html in DIR).", show_default=False)
    ] = None,
) -> None:
    """Make one HTML page of a folder of results. It has figures, tables and scenario, and needs no network."""
    with one_line_errors():
        typer.echo(f"written to {reports.page.write_report(folder, out)}")
