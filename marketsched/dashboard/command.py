"""The command `marketsched dashboard`: a live page of a market, on loopback."""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from marketsched import config
from marketsched.show.commands.tools import (
    DataOption,
    MechanismOption,
    SetOption,
    named_on_the_line,
    one_line_errors,
    one_mechanism,
)

FIRST_SCENARIO, FIRST_MECHANISM = "synthetic-pipelines", "bid-price"  # that the page shows if nothing is asked for


def dashboard(
    scenario: Annotated[
        str, typer.Argument(help="A built-in scenario (see: marketsched scenarios) or a YAML file.")
    ] = FIRST_SCENARIO,
    mechanism: MechanismOption = None,
    seed: Annotated[int, typer.Option(help="Root of all randomness, at first.", min=0)] = 0,
    port: Annotated[int, typer.Option(help="Port on loopback; 0: any that is free.", min=0, max=65_535)] = 8765,
    open_browser: Annotated[bool, typer.Option("--open", help="Open the page in a browser.")] = False,
    paused: Annotated[bool, typer.Option("--paused", help="Open before the first round, not playing.")] = False,
    data: DataOption = None,
    changes: SetOption = None,
) -> None:
    """Serve a live page of a market, on this machine alone. Ctrl-C ends it; it needs the extra viz."""
    with one_line_errors():
        from marketsched.dashboard.server import DashboardServer  # the extra `viz`

        asked = named_on_the_line(mechanism)
        if asked is None and scenario == FIRST_SCENARIO and not changes:
            asked = [FIRST_MECHANISM]
        changes = [*([] if asked is None else one_mechanism(asked)), *(changes or [])]
        content, source = config.scenario_file.read_scenario(scenario)
        chosen = config.scenario.Scenario.from_dict(
            config.scenario_file.with_changes(content, changes), source=source, kind="market"
        )
        server = DashboardServer(chosen, seed=seed, port=port, data=data, playing=not paused)
        server.start()
        typer.echo(f"{chosen.name}: {server.url} (Ctrl-C ends it)")
        if open_browser:
            import webbrowser

            webbrowser.open(server.url)
        try:
            server.wait()
        except KeyboardInterrupt:
            typer.echo("")  # the shell's ^C stands alone on its line
        finally:
            ended = server.stop()
        if not ended:  # an interpreter that ends under a running solver may crash
            sys.stdout.flush()
            os._exit(0)
