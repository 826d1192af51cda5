"""The command `marketsched run`: one run of a scenario or a log."""

from __future__ import annotations

from typing import Annotated

import typer

from marketsched import config, play
from marketsched.show.cli import first_page, with_settings
from marketsched.show.commands.tools import (
    INTERRUPTED,
    ColumnsOption,
    DataOption,
    DaysOption,
    DetailsOption,
    ForceOption,
    JsonOption,
    MechanismOption,
    NodesOption,
    OutOption,
    SeedOption,
    SetOption,
    StrictOption,
    ZoneOption,
    file_name,
    finish,
    known_scenarios,
    log_changes,
    named_on_the_line,
    one_line_errors,
    one_mechanism,
    progress_bar,
    stop,
    target_folder,
)


@with_settings(
    no_args_is_help=True,
    cls=first_page("mechanism", "seed", "days", "columns", "out", "as_json", "details", "changes"),
    epilog="Try: marketsched run synthetic-pipelines -m bid-price",
)
def run(
    scenario: Annotated[
        str,
        typer.Argument(
            help="A built-in scenario (see: marketsched scenarios), a YAML file, or a log (.swf, .csv, sacct -P).",
            autocompletion=known_scenarios,
        ),
    ],
    mechanism: MechanismOption = None,
    seed: SeedOption = 0,
    nodes: NodesOption = None,
    days: DaysOption = None,
    columns: ColumnsOption = None,
    strict: StrictOption = False,
    zone: ZoneOption = None,
    out: OutOption = None,
    force: ForceOption = False,
    data: DataOption = None,
    as_json: JsonOption = False,
    details: DetailsOption = False,
    model: Annotated[
        bool,
        typer.Option("--model", help="Owners are agents of a Mesa model: the same tables; of a core, owners, too."),
    ] = False,
    changes: SetOption = None,
) -> None:
    """Run a scenario or a log. It prints a summary, and writes tables and a figure."""
    with one_line_errors():
        content, source = config.scenario_file.read_scenario(scenario)
        policies = named_on_the_line(mechanism)
        own = [] if "cluster" in content else one_mechanism(policies)
        own += log_changes(days, columns, strict, nodes, changes, content, zone)
        changed = config.scenario_file.with_changes(content, own)
        chosen = config.scenario.Scenario.from_dict(changed, source=source)
        folder = target_folder(out, f"{file_name(chosen.name)}-seed{seed}", force)
        with progress_bar() as tell:
            rivals = None if chosen.kind == "market" else policies
            result = play.running.run(
                chosen, seed, policies=rivals, data=data, model=model, progress=tell, keep_interrupted=True
            )
        if chosen.kind == "market" and not result.outcome["rounds"]:
            stop("interrupted before the first round was over: nothing is written", INTERRUPTED)
        finish(result, folder, force, as_json, details)
