"""The commands `marketsched traces`: recorded traces, and whether their files are the published ones."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from marketsched.mechanisms.errors import MissingDataError
from marketsched.show.commands.tools import REPORTED, DataOption, one_line_errors
from marketsched.worlds import traces as recorded

traces_app = typer.Typer(help="List recorded traces, and verify their files.", rich_markup_mode=None)


@traces_app.callback(invoke_without_command=True)
def traces(context: typer.Context, data: DataOption = None) -> None:
    """List recorded traces, and verify their files."""
    if context.invoked_subcommand is None:
        _list_traces(data)


@traces_app.command("list")
def _list_traces(data: DataOption = None) -> None:
    """List the known traces, and which of them are there."""
    with one_line_errors():
        folder = recorded.data_folder(data) if data is not None or os.environ.get("MARKETSCHED_DATA") else None
        for trace in recorded.known_traces():
            try:
                mark = "" if folder is None else f"{trace.path(folder)}: "
            except MissingDataError:
                mark = f"(missing: {trace.file}) "
            typer.echo(f"{trace.name:14} {mark}{trace.title}. {trace.licence}")


@traces_app.command("verify")
def _verify_traces(
    names: Annotated[list[str] | None, typer.Argument(help="Traces to verify (default: all that are there).")] = None,
    data: DataOption = None,
) -> None:
    """Compare trace files with the published ones; exit status 1 if any differs."""
    with one_line_errors():
        folder = recorded.data_folder(data)
        wrong = 0
        for name in names or list(recorded.DIGESTS):
            try:
                equal = recorded.verify(name, folder)
            except MissingDataError:
                if names:
                    raise
                typer.echo(f"{name:16} not there ({recorded.get_trace(name).file})")
                continue
            wrong += not equal
            typer.echo(f"{name:16} {'as published' if equal else 'differs from the published file'}")
    if wrong:
        raise typer.Exit(REPORTED)
