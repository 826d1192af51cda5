"""`marketsched reproduce`: the papers' tables and figures, with the papers' numbers beside ours."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from marketsched.command_tools import (
    BAD_INPUT,
    INTERRUPTED,
    DataOption,
    ForceOption,
    JsonOption,
    free_folder,
    one_line_errors,
    print_view,
    progress_bar,
    stop,
)

if TYPE_CHECKING:
    from marketsched.experiments.reproducing import Reproduced


def reproduce(
    name: Annotated[str | None, typer.Argument(help="An experiment, as --list names it.", show_default=False)] = None,
    list_all: Annotated[bool, typer.Option("--list", help="List the experiments.")] = False,
    every: Annotated[bool, typer.Option("--all", help="Run every experiment.")] = False,
    full: Annotated[bool, typer.Option("--full", help="The papers' sizes; may take hours.")] = False,
    runs: Annotated[
        int | None, typer.Option(help="Seeds (default: 20, with few exceptions).", min=2, show_default=False)
    ] = None,
    slots: Annotated[
        int | None, typer.Option(help="Slots of cluster runs, in place of each one's own.", min=8, show_default=False)
    ] = None,
    seed: Annotated[int, typer.Option(help="The first seed.", min=0)] = 0,
    out: Annotated[
        Path | None,
        typer.Option(help="Each experiment gets a folder in it (default: runs/reproduced).", show_default=False),
    ] = None,
    force: ForceOption = False,
    data: DataOption = None,
    as_json: JsonOption = False,
) -> None:
    """Run tables and figures of the four papers, with the papers' numbers beside ours and a verdict."""
    with one_line_errors():
        from marketsched.experiments.reproducing import EXPERIMENTS, experiment_of, reproduce_all
        from marketsched.output import check_target

        if list_all:
            _list(as_json)
            return
        if every == (name is not None):
            stop("expected the name of an experiment, or --all, or --list", BAD_INPUT)
        names = list(EXPERIMENTS) if name is None else [experiment_of(name).name]
        target = Path("runs") / "reproduced" if out is None else out
        if out is None and every:
            target = free_folder(target, force)
        for each in names:  # before anything is run
            check_target(target / each, force=force)
        sizes: dict[str, Any] = {"full": full, "runs": runs, "slots": slots, "seed": seed, "data": data}
        try:
            with progress_bar() as tell:
                found = reproduce_all(names, out=target, force=force, progress=tell, **sizes)
        except KeyboardInterrupt:
            stop(f"interrupted: {target} has the experiments that were finished", INTERRUPTED)
        if every:
            _write_all(target, found)
        if as_json:
            typer.echo(json.dumps([each.to_dict() for each in found], indent=2, allow_nan=False))
        else:
            print_view(reproduced_view(found))
        typer.echo(f"written to {target}", err=as_json)


def _list(as_json: bool) -> None:
    from marketsched.experiments.reproducing import EXPERIMENTS

    known = list(EXPERIMENTS.values())
    if as_json:
        typer.echo(json.dumps([{"name": e.name, "place": e.place, "shows": e.shows} for e in known], indent=2))
        return
    widths = [max(len(getattr(each, part)) for each in known) for part in ("name", "place")]
    for each in known:
        typer.echo(f"{each.name:{widths[0]}}  {each.place:{widths[1]}}  {each.shows}")


def _write_all(target: Path, found: list[Reproduced]) -> None:
    """Write the tables of all experiments as one."""
    import pandas as pd

    from marketsched.output import whole_file

    with whole_file(target / "table.csv") as partial:
        pd.concat([each.table for each in found], ignore_index=True).to_csv(partial, index=False)


def reproduced_view(found: list[Reproduced]) -> Any:
    """Return one table per experiment and a count of verdicts, ready to print with rich."""
    from rich.console import Group
    from rich.text import Text

    parts: list[Any] = []
    for each in found:
        meta = each.meta
        size = "the paper's sizes" if meta["full"] else "reduced sizes"
        about = f"{each.name}: {each.place}; {meta['sizes']}, {meta['runs']} seeds, {size}, {meta['seconds']:.0f} s"
        parts += [Text(about, style="bold"), _table(each), *_reasons(each), Text("")]
    counts = {word: sum(each.verdicts()[word] for each in found) for word in found[0].verdicts()}
    parts.append(Text(", ".join(f"{count} {word}" for word, count in counts.items())))
    parts.append(Text("[ ]: 95 % interval over seeds; the rule of the verdicts: docs/reproduce.md", style="dim"))
    return Group(*parts)


def _table(each: Reproduced) -> Any:
    from rich.table import Table

    table = Table(show_edge=False, pad_edge=False, box=None, header_style="dim")
    table.add_column("", overflow="fold", min_width=30)
    for title in ("paper", "ours", "[95 %]", "single seeds"):
        table.add_column(title.replace("[", r"\["), justify="right", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    signs = {"number": "", "above": "> ", "below": "< ", "at most": "<= ", "at least": ">= "}
    numbers = _reason_numbers(each)
    for row in each.rows:
        m, c = row.measured, row.claim
        interval, single = _pair(m.low, m.high), _pair(m.least, m.most)
        mark = f" ({numbers[row.reason]})" if row.reason else ""
        cells = (f"{signs[c.kind]}{_figure(c.value)}", _figure(m.value), interval, single, row.verdict + mark)
        table.add_row(c.quantity.replace("[", r"\["), *(cell.replace("[", r"\[") for cell in cells))
    return table


def _reason_numbers(each: Reproduced) -> dict[str, int]:
    """Return a number for each different reason, in the order of the rows."""
    return {reason: i for i, reason in enumerate(dict.fromkeys(row.reason for row in each.rows if row.reason), 1)}


def _reasons(each: Reproduced) -> list[Any]:
    from rich.text import Text

    return [Text(f"({i}) {reason}", style="dim") for reason, i in _reason_numbers(each).items()]


def _figure(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:.4g}" if abs(value) < 1e4 else f"{value:.3g}"


def _pair(low: float, high: float) -> str:
    return "-" if math.isnan(low) or math.isnan(high) else f"{_figure(low)} to {_figure(high)}"
