"""The command `marketsched scheduler`: a site's Slurm configuration as a scenario."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from marketsched import config
from marketsched.show.cli import with_settings
from marketsched.show.commands.tools import NodesOption, one_line_errors


@with_settings(
    epilog="Try: marketsched scheduler slurm.conf sshare.txt --log jobs.txt > site.yaml, then "
    "marketsched compare site.yaml -m scenario,easy-backfill"
)
def scheduler(
    conf: Annotated[Path, typer.Argument(help="slurm.conf.", exists=True, dir_okay=False, show_default=False)],
    sshare: Annotated[Path | None, typer.Argument(help="What `sshare -alP` prints.", show_default=False)] = None,
    qos: Annotated[Path | None, typer.Argument(help="What `sacctmgr show qos -P` prints.", show_default=False)] = None,
    log: Annotated[str | None, typer.Option(help="The log of the scenario.", show_default=False)] = None,
    nodes: NodesOption = None,
) -> None:
    """Write a site's own rule as a scenario, and list what of it is not modelled."""
    with one_line_errors():
        found = config.slurm_conf.site_rule(conf, sshare, qos)
        scenario: dict[str, Any] = {"mechanism": found.mechanism}
        if log is not None:
            content, _ = config.scenario_file.read_scenario(log)
            size = nodes or found.nodes
            scenario = {
                **content,
                "workload": {**content["workload"], **({"capacity": size} if size else {})},
                **scenario,
            }
        typer.echo(f"# The order of jobs of {conf.name}, for `marketsched compare FILE -m scenario,...`")
        for each in found.not_modelled:
            typer.echo(f"# not modelled: {each}")
        typer.echo(config.strict_yaml.dump_yaml(scenario), nl=False)
