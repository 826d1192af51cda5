"""The command `marketsched scenarios`: the built-in scenarios, and the cluster that a log needs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from marketsched import config
from marketsched.mechanisms.registry import plugin_names
from marketsched.show.commands.tools import one_line_errors


def scenarios(
    name: Annotated[
        str | None,
        typer.Argument(
            help="Print this one as YAML; of a log with requests: the cluster it needs.", show_default=False
        ),
    ] = None,
    schema: Annotated[bool, typer.Option("--schema", help="Print the JSON Schema of a scenario, for editors.")] = False,
) -> None:
    """List the built-in scenarios, or print one. Those that installed packages add are listed, too.

    Of a log of Slurm (ReqTRES), PBS or Kubernetes, a scenario is proposed: the kinds of nodes that its jobs had.
    """
    with one_line_errors():
        if schema:
            typer.echo(json.dumps(config.json_schema.scenario_schema(), indent=1))
            return
        if name is not None:
            if name not in config.scenario_file.scenario_names() and Path(name).is_file():
                text = config.proposed_cluster.proposed_scenario(Path(name))
            else:
                text = config.scenario_file.built_in_text(name)
            typer.echo(text, nl=False)
            return
        known = {
            each: config.strict_yaml.parse_yaml(config.scenario_file.built_in_text(each), each)["description"]
            for each in config.scenario_file.scenario_names()
        }
        for each, description in known.items():
            typer.echo(f"{each:{max(map(len, known))}}  {description}")
        if added := ", ".join(f"{kind} {each}" for kind, each in plugin_names()):
            typer.echo(f"from installed packages: {added}")
