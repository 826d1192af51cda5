"""The commands `marketsched live slurm ...`: the bridge to Slurm, and its plugin."""

from __future__ import annotations

import signal
import threading
from pathlib import Path
from typing import Annotated, Literal

import typer

from marketsched.live.command import TokenOption, UrlOption, live_app, live_client, live_errors

PartitionOption = Annotated[str, typer.Option(help="Slurm's partition that the market has for itself.")]
OneUserOption = Annotated[
    bool, typer.Option("--one-user", help="Owners are no users of Slurm: one user runs everything, as in a trial.")
]


@live_app.command("slurm")
def bridge(
    partition: PartitionOption = "market",
    on_evict: Annotated[
        Literal["requeue", "cancel"], typer.Option(help="What becomes of jobs that the market evicts.")
    ] = "requeue",
    announced: Annotated[
        Path | None, typer.Option(help="Table that is kept for the plugin.", show_default=False)
    ] = None,
    interval: Annotated[float, typer.Option(help="Seconds between two looks at Slurm.", min=0.05)] = 1.0,
    node_patience: Annotated[
        float, typer.Option(help="Seconds for which nodes are missing before jobs make room.", min=0.0)
    ] = 30.0,
    one_user: OneUserOption = False,
    any_proctrack: Annotated[
        bool, typer.Option("--any-proctrack", help="Start although processes can outlive their jobs (no cgroups).")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Do not print what is done.")] = False,
    url: UrlOption = None,
    token_file: TokenOption = None,
) -> None:
    """Run the jobs of a Slurm partition as the market decides. Starts, holds and evicts them until SIGTERM or Ctrl-C.

    It needs Slurm's commands (SLURM_CONF says which cluster), root or Slurm's own user, and an operator's token.
    """
    with live_errors(), live_client(url, token_file) as client, live_client(url, token_file) as stream:
        from marketsched.live.slurm_actions import BridgeRules  # not for --help
        from marketsched.live.slurm_bridge import SlurmBridge, wake_on_events  # not for --help
        from marketsched.slurm.commands import Slurm  # not for --help

        wake, stop = threading.Event(), threading.Event()

        def end(*_: object) -> None:
            stop.set()
            wake.set()

        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, end)
        rules = BridgeRules(partition, on_evict, not one_user, announced, node_patience)
        say = (lambda line: None) if quiet else (lambda line: typer.echo(f"marketsched: {line}", err=True))
        found = SlurmBridge(client, Slurm(), rules, say)
        found.check_market()
        if not any_proctrack:
            found.check_cluster()
        wake_on_events(stream, wake)
        found.run(wake, stop, interval)


@live_app.command("slurm-plugin", no_args_is_help=True)
def plugin(
    announced: Annotated[Path, typer.Argument(help="Table that the bridge keeps (its --announced).")],
    partition: PartitionOption = "market",
    default: Annotated[bool, typer.Option("--default", help="It is the partition of jobs that name none.")] = False,
    one_user: OneUserOption = False,
    operator: Annotated[
        int | None, typer.Option(help="Number of the bridge's user (default: yours).", show_default=False)
    ] = None,
) -> None:
    """Print the plugin job_submit.lua for Slurm's controller. It lies beside slurm.conf (JobSubmitPlugins=lua)."""
    with live_errors():
        from marketsched.live.slurm_plugin import plugin_text  # not for --help

        text = plugin_text(
            announced.absolute(), partition=partition, default=default, check_users=not one_user, operator=operator
        )
        typer.echo(text, nl=False)
