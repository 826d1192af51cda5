"""The command `marketsched mechanisms`: the mechanisms, one line each."""

from __future__ import annotations

import inspect
from typing import Annotated

import typer

from marketsched.mechanisms.registry import get, mechanism_names, promises_of, standing_of
from marketsched.show.commands.tools import known_mechanisms, one_line_errors, print_view

STATUS = (
    "proved: what it promises is proven in docs/mathematics.md; tested: its rule is; baseline: to be compared with. "
    "`marketsched mechanisms NAME` describes one."
)


def mechanisms(
    name: Annotated[
        str | None,
        typer.Argument(help="Describe this one.", show_default=False, autocompletion=known_mechanisms),
    ] = None,
) -> None:
    """List the mechanisms, or describe one with its parameters. Those that installed packages add are listed, too."""
    with one_line_errors():
        if name is not None:
            typer.echo(_described(name))
            return
        from rich.table import Table

        table = Table("name", "status", "promises", "needs to know", box=None, header_style="dim", pad_edge=False)
        table.columns[0].no_wrap = True
        for each in mechanism_names():
            standing = standing_of(each)
            promises = promises_of(each) or _first_line(get("mechanism", each))
            table.add_row(each, standing.status, promises, standing.needs)
        print_view(table)
        typer.echo(STATUS)


def _first_line(maker: object) -> str:
    return (inspect.getdoc(maker) or "(not described)").splitlines()[0]


def _described(name: str) -> str:
    """Return the documentation of a mechanism, its promises, and how it is named in a command."""
    text = inspect.getdoc(get("mechanism", name)) or "(not described)"
    promises = promises_of(name)
    stated = f"Promises at its default parameters: {promises}.\n\n" if promises else ""
    return f"{text}\n\n{stated}Use: marketsched run SCENARIO -m {name}, with parameters -m {name}:KEY=VALUE"
