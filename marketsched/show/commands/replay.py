"""The command `marketsched replay`: the decisions of a mechanism on a log of events."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from marketsched import play
from marketsched.results.output import whole_file
from marketsched.show.cli import with_settings
from marketsched.show.commands.tools import REPORTED, one_line_errors


@with_settings(no_args_is_help=True)
def replay(
    config: Annotated[Path, typer.Argument(help="Configuration of the mechanism, YAML.", show_default=False)],
    events: Annotated[str, typer.Argument(help="Log of events, JSON lines; - reads standard input.")],
    out: Annotated[Path | None, typer.Option(help="Write the decisions here.", show_default=False)] = None,
    strict: Annotated[bool, typer.Option("--strict", help="Stop at the first faulty line.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace the file of --out.")] = False,
) -> None:
    """Feed a log of events to a mechanism; print its decisions. Each is a JSON object on a line of its own."""
    with one_line_errors():
        if out is not None and out.is_file() and not force:
            raise FileExistsError(f"--out {out} exists: expected a new file, or --force to replace it")
        decisions = play.replaying.replay(config, sys.stdin.buffer if events == "-" else Path(events), strict=strict)
        if out is None:
            faults = _write_lines(decisions, sys.stdout.write, sys.stdout.flush if events == "-" else None)
            sys.stdout.flush()
        elif events == "-":  # a live log: what is decided is there at once
            with out.open("w", encoding="utf-8") as file:
                faults = _write_lines(decisions, file.write, file.flush)
        else:
            with whole_file(out) as partial, partial.open("w", encoding="utf-8") as file:
                faults = _write_lines(decisions, file.write, None)
    if faults:
        raise typer.Exit(REPORTED)


def _write_lines(
    decisions: Iterator[dict[str, Any]], write: Callable[[str], Any], flush: Callable[[], Any] | None
) -> int:
    """Write decisions as they come; return how many of them are errors."""
    faults = 0
    for decision in decisions:
        write(json.dumps(decision) + "\n")
        if flush is not None:
            flush()
        faults += decision["event"] == "error"
    return faults
