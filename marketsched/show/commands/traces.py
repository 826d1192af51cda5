"""The commands `marketsched traces`: recorded traces, and whether their files are the published ones."""

from __future__ import annotations

import os
from pathlib import Path
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
    """Compare trace files with their published statistics; exit status 1 if any differs."""
    with one_line_errors():
        folder = recorded.data_folder(data)
        wrong = 0
        for name in names or list(recorded.TRACES):
            trace = recorded.get_trace(name)
            try:
                trace.path(folder)
            except MissingDataError:
                if names:
                    raise
                typer.echo(f"{name:14} not there ({trace.file})")
                continue
            checked = recorded.verify(name, folder)
            bad = checked[~checked["ok"]]
            wrong += len(bad)
            typer.echo(f"{name:14} {len(checked) - len(bad)} of {len(checked)} statistics as published")
            for row in bad.itertuples():
                typer.echo(f"{'':14} {row.quantity}: {row.found!r}, expected {row.expected}")
    if wrong:
        raise typer.Exit(REPORTED)


@traces_app.command("series")
def _spot_series(
    files: Annotated[list[Path], typer.Argument(help="JSON files of skypilot-org/spot-traces, one for each zone.")],
    prices: Annotated[
        float | None,
        typer.Option(
            help="Print the prices of rounds of so many seconds instead, as rules of posted-price for a scenario.",
            metavar="SECONDS",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Say how available spot machines were in some zones, for how long and at what price."""
    with one_line_errors():
        from marketsched.worlds.traces.spot_series import read_spot_series, spot_prices, spot_statistics  # pandas

        for path in files:
            series = read_spot_series(path)
            if prices is not None:
                posted = ", ".join(f"{price:.6g}" for price in spot_prices(series, prices))
                typer.echo(
                    f"mechanism: {{name: posted-price, pricing: {{kind: posted, prices: [{posted}]}}}}  # {path}"
                )
                continue
            found = spot_statistics(series)
            typer.echo(f"{path}: " + ", ".join(f"{name} {x:.5g}" for name, x in found.items() if x == x))
