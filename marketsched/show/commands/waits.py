"""The command `marketsched waits`: why the jobs of a log waited, as its recorded schedule tells."""

from __future__ import annotations

from typing import Annotated

import typer

from marketsched import config, recorded
from marketsched.mechanisms.errors import InvalidParameterError
from marketsched.show.cli import first_page, with_settings
from marketsched.show.commands.tools import (
    ColumnsOption,
    DataOption,
    ForceOption,
    JsonOption,
    NodesOption,
    OutOption,
    SeedOption,
    StrictOption,
    ZoneOption,
    file_name,
    finish,
    log_changes,
    one_line_errors,
    target_folder,
)

GROUPS = ("user", "queue", "width")


@with_settings(
    cls=first_page("by", "nodes", "columns", "out"), epilog="Try: marketsched waits jobs.txt --by user,queue"
)
def waits(
    log: Annotated[str, typer.Argument(help="A log that records starts (.swf, .csv, sacct -P).", show_default=False)],
    by: Annotated[
        str | None,
        typer.Option(help="Tell groups apart: any of user,queue,width.", metavar="NAME,...", show_default=False),
    ] = None,
    nodes: NodesOption = None,
    columns: ColumnsOption = None,
    strict: StrictOption = False,
    zone: ZoneOption = None,
    seed: SeedOption = 0,
    out: OutOption = None,
    force: ForceOption = False,
    data: DataOption = None,
    as_json: JsonOption = False,
) -> None:
    """Why did the jobs of a log wait? The causes of recorded waiting, each beside its placebo."""
    with one_line_errors():
        groups = [each.strip() for each in by.split(",")] if by else []
        for each in groups:
            if each not in GROUPS:
                raise InvalidParameterError(place="--by", value=each, legal=", ".join(GROUPS))
        content, source = config.scenario_file.read_scenario(log)
        if not config.scenario_file.is_log(content):
            raise InvalidParameterError(f"{log} is no log", legal="the file of one (docs/logs.md)")
        content = config.scenario_file.with_changes(content, log_changes(None, columns, strict, zone=zone))
        found, name = config.scenario.Scenario.from_dict(content, source=source).workload.recipe().read(data)
        folder = target_folder(out, f"{file_name(name)}-waits", force)
        finish(recorded.waits.waits_of(found, name, nodes=nodes, by=groups, seed=seed), folder, force, as_json)
