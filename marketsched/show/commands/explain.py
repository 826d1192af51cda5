"""The command `marketsched explain`: why a job waited."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from marketsched import config, explanations, play, results
from marketsched.mechanisms.errors import InvalidParameterError
from marketsched.results.output import META, plain
from marketsched.results.result import Result, load
from marketsched.show.cli import with_settings
from marketsched.show.commands.tools import (
    DataOption,
    JsonOption,
    MechanismOption,
    SeedOption,
    SetOption,
    named_on_the_line,
    one_line_errors,
    one_mechanism,
    progress_bar,
)


@with_settings(no_args_is_help=True, epilog="Try: marketsched explain LOG.swf 4711 -m easy-backfill")
def explain(
    where: Annotated[
        str,
        typer.Argument(help="A folder of run or compare, a scenario or a log.", metavar="WHERE", show_default=False),
    ],
    job: Annotated[str, typer.Argument(help="Its name in the table jobs, or number in the log.", show_default=False)],
    mechanism: MechanismOption = None,
    seed: SeedOption = 0,
    data: DataOption = None,
    as_json: JsonOption = False,
    changes: SetOption = None,
) -> None:
    """Explain why a job waited. Of a comparison, a scenario or a log -m says under which mechanism."""
    with one_line_errors():
        own = one_mechanism(named_on_the_line(mechanism)) + (changes or [])
        found = explanations.explaining.Explainer(_market(where, own, seed, data), data).explain(job)
        if as_json:
            typer.echo(json.dumps(plain(found.data()), indent=2, allow_nan=False))
        else:
            typer.echo(str(found))


def _market(where: str, changes: list[str], seed: int, data: Path | None) -> Result:
    """Return the market of a folder, or play that of a comparison, a scenario or a log."""
    content: Any
    if (Path(where) / META).is_file():
        result = load(where)
        if result.kind == "market":
            if changes:
                raise InvalidParameterError(place="-m and --set", value=changes, legal="none: the folder is of one run")
            return result
        if not changes:
            raise InvalidParameterError(place="-m", value=None, legal="one of the mechanisms that were compared")
        source, text = where, result.texts.get("scenario.yaml", "")
        content = config.strict_yaml.parse_yaml(text, f"{where}/scenario.yaml")
        if (windows := int(result.meta.get("windows", 1))) > 1:  # each seed is of one
            content["workload"] |= {"windows": windows, "window": results.windows.window_of(seed, windows)}
    else:
        content, source = config.scenario_file.read_scenario(where)
    changed = config.scenario_file.with_changes(content, changes)
    scenario = config.scenario.Scenario.from_dict(changed, source=source, kind="market")
    with progress_bar() as tell:
        return play.running.run(scenario, seed, data=data, progress=tell)
