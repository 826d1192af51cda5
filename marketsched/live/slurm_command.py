"""The commands `marketsched live slurm`, `slurm-plugin`, `slurm-cluster` and `sbatch`: a market in front of Slurm."""

from __future__ import annotations

import signal
import threading
from pathlib import Path
from typing import Annotated, Literal

import typer

from marketsched.live import command  # noqa: F401 - adds its commands, too
from marketsched.live.command import TokenOption, UrlOption, live_app, live_client, live_errors, live_statement
from marketsched.live.slurm import Slurm

PartitionOption = Annotated[str, typer.Option(help="Slurm's partition that the market has for itself.")]
OneUserOption = Annotated[
    bool, typer.Option("--one-user", help="Owners are no users of Slurm: one user runs everything, as in a trial.")
]
PoolsOption = Annotated[
    Literal["gres", "partition", "feature"],
    typer.Option(help="What makes the kinds of nodes of a cluster: types of GPUs, other partitions or features."),
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
    pools: PoolsOption = "gres",
    regular_qos: Annotated[str, typer.Option(help="QOS of regular nodes, in a market of credits.")] = "credit",
    free_qos: Annotated[str, typer.Option(help="QOS of free nodes, in a market of credits.")] = "free",
    no_qos: Annotated[bool, typer.Option("--no-qos", help="Set no QOS: Slurm keeps no account of them.")] = False,
    any_proctrack: Annotated[
        bool,
        typer.Option("--any-proctrack", help="Start although jobs can outlive their end, or take more (no cgroups)."),
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Do not print what is done.")] = False,
    url: UrlOption = None,
    token_file: TokenOption = None,
) -> None:
    """Run the jobs of a Slurm partition as the market decides. Starts, holds and evicts them until SIGTERM or Ctrl-C.

    It needs Slurm's commands (SLURM_CONF says which cluster), root or Slurm's own user, and an operator's token.
    """
    with live_errors(), live_client(url, token_file) as client, live_client(url, token_file) as stream:
        from marketsched.live.serving import ending_signals  # not for --help
        from marketsched.live.slurm_actions import BridgeRules  # not for --help
        from marketsched.live.slurm_bridge import SlurmBridge, wake_on_events  # not for --help

        wake, stop = threading.Event(), threading.Event()

        def end(*_: object) -> None:
            stop.set()
            wake.set()

        for number in ending_signals():
            signal.signal(number, end)
        qos = None if no_qos else (regular_qos, free_qos)
        rules = BridgeRules(partition, on_evict, not one_user, announced, node_patience, pools, qos)
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
    free_qos: Annotated[
        str | None,
        typer.Option(
            help="QOS in which jobs of a market of credits begin; users may name no other.", show_default=False
        ),
    ] = None,
) -> None:
    """Print the plugin job_submit.lua for Slurm's controller. It lies beside slurm.conf (JobSubmitPlugins=lua)."""
    with live_errors():
        from marketsched.live.slurm_plugin import plugin_text  # not for --help

        text = plugin_text(
            announced.absolute(),
            partition=partition,
            default=default,
            check_users=not one_user,
            operator=operator,
            free_qos=free_qos,
        )
        typer.echo(text, nl=False)


@live_app.command("slurm-cluster")
def cluster(partition: PartitionOption = "market", pools: PoolsOption = "gres") -> None:
    """Print the nodes of a Slurm partition as the cluster of a market's configuration."""
    with live_errors():
        from marketsched.config.strict_yaml import dump_yaml  # not for --help
        from marketsched.live.slurm_nodes import cluster_of  # not for --help

        found = cluster_of(Slurm().nodes(partition), pools, partition)
        typer.echo(dump_yaml({"cluster": found}), nl=False)


@live_app.command("sbatch", no_args_is_help=True, context_settings={"ignore_unknown_options": True})
def sbatch(
    work: Annotated[Path, typer.Argument(help="Value and arrival of the statement, YAML or JSON.")],
    script: Annotated[list[str], typer.Argument(help="Batch script, and what it is given.")],
    shape: Annotated[
        list[str],
        typer.Option(help="One way to run: '--nodes=2 --cpus-per-task=4 --mem=8G --gres=gpu:v100:2 --time=3:00:00'."),
    ],
    name: Annotated[str | None, typer.Option(help="Of the job, behind the owner's.", show_default=False)] = None,
    partition: PartitionOption = "market",
    url: UrlOption = None,
    token_file: TokenOption = None,
) -> None:
    """Submit a job that can run in several ways on a cluster: to the market, and held to Slurm once for each way.

    The market books one of them; that one is let go on the nodes booked, and the others are cancelled.
    """
    with live_errors(), live_client(url, token_file) as client:
        from marketsched.live.slurm_submitting import submit_ways, ways_of  # not for --help

        said, market = live_statement(work, client), client.market(rounds=0)
        ways = ways_of(said, shape, market)
        given = {"arrival": market["round"], **said}
        options = [f"--partition={partition}"]
        job, numbers = submit_ways(given, ways, script, client, Slurm(), name=name, options=options)
        listed = ", ".join(f"{number} (shape {i})" for i, number in enumerate(numbers))
        typer.echo(f"{job}: Slurm's jobs {listed}")
