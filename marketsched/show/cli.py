"""The command line. Commands import what they need when they run, so that ``--help`` is instant."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from marketsched import __version__, config, play
from marketsched.mechanisms.errors import MarketschedError, MissingDataError
from marketsched.mechanisms.registry import get, names, plugin_names
from marketsched.results.output import whole_file
from marketsched.show.commands.audit import audit_app
from marketsched.show.commands.compare import compare
from marketsched.show.commands.learn import learn
from marketsched.show.commands.mechanisms import mechanisms
from marketsched.show.commands.pages import first_page
from marketsched.show.commands.report import report
from marketsched.show.commands.sweep import sweep
from marketsched.show.commands.tools import (
    INTERRUPTED,
    REPORTED,
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
    asked_mechanisms,
    file_name,
    finish,
    known_scenarios,
    log_changes,
    one_line_errors,
    one_mechanism,
    progress_bar,
    stop,
    target_folder,
)
from marketsched.worlds import traces as recorded

# What a newcomer types next; the \b at its head keeps click from filling its lines.
NEXT_STEPS = """\b
Start here: marketsched run synthetic-pipelines -m bid-price --set workload.utilisation=1.25
More:       marketsched scenarios                       what there is to run
            marketsched mechanisms                      the mechanisms, and what is proven about each
            marketsched compare LOG.swf                 your log under several of them
            marketsched audit synthetic-pipelines       who could gain by lying?
            marketsched learn                           do owners learn to tell the truth?
Worked examples: README.md and examples/README.md in the source."""

app = typer.Typer(
    help="Truthful markets for cluster jobs whose arrival and duration are uncertain.",
    epilog=NEXT_STEPS,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    add_completion=True,
    no_args_is_help=False,
)
traces_app = typer.Typer(help="List recorded traces, and verify their files.", rich_markup_mode=None)
app.add_typer(traces_app, name="traces")


@app.callback(invoke_without_command=True)
def root(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.", is_eager=True)] = False,
) -> None:
    """Truthful markets for cluster jobs whose arrival and duration are uncertain."""
    if version:
        typer.echo(f"marketsched {__version__}")
        raise typer.Exit()
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


@app.command(
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
        policies = asked_mechanisms(mechanism)
        own = [] if "cluster" in content else one_mechanism(policies)
        own += log_changes(days, columns, strict, nodes, changes, content)
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


app.command(
    cls=first_page("mechanism", "runs", "loads", "days", "columns", "out", "details", "changes"),
    epilog="Try: marketsched compare stochastic-mix -m bid-price,vcg,first-come --runs 3",
)(compare)
app.add_typer(audit_app, name="audit")
app.command()(mechanisms)
app.command(cls=first_page("mechanism", "learner", "owners", "nodes", "days", "seeds", "seed", "out"))(learn)
app.command(no_args_is_help=True)(sweep)
app.command(no_args_is_help=True)(report)


@app.command(no_args_is_help=True)
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


@app.command()
def scenarios(
    name: Annotated[
        str | None,
        typer.Argument(help="Print this one as YAML; of a file of sacct: the cluster it needs.", show_default=False),
    ] = None,
) -> None:
    """List the built-in scenarios, or print one. Those that installed packages add are listed, too.

    Of a file that `sacct -P` printed with ReqTRES, a scenario is proposed: the kinds of nodes that its jobs had.
    """
    with one_line_errors():
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


def _add_registered() -> None:
    """Add the commands of slices and plug-ins; one that cannot be loaded is a line, and the others are there.

    A name of two words, such as ``audit finite``, is a command of that group.
    """
    groups = {"": app, "audit": audit_app}
    for name in names("command"):
        try:
            made = get("command", name)
        except MarketschedError as error:
            typer.echo(f"marketsched: {error}", err=True)
            continue
        if isinstance(made, typer.Typer):
            app.add_typer(made, name=name)
        else:
            group, _, own = name.rpartition(" ")
            groups[group].command(own)(made)


_add_registered()


@traces_app.callback(invoke_without_command=True)
def traces(context: typer.Context, data: DataOption = None) -> None:
    """List recorded traces, and verify their files."""
    if context.invoked_subcommand is None:
        _list_traces(data)


@traces_app.command("list")
def _list_traces(data: DataOption = None) -> None:
    """List the known traces, and which of them are there."""
    with one_line_errors():
        folder = recorded.data_folder(data) if data is not None or os.environ.get("MARKETSCHED_DATA") else None
        for trace in recorded.known_traces():
            try:
                mark = "" if folder is None else f"{trace.path(folder)}: "
            except MissingDataError:
                mark = f"(missing: {trace.file}) "
            typer.echo(f"{trace.name:14} {mark}{trace.title}. {trace.licence}")


@traces_app.command("verify")
def _verify_traces(
    names: Annotated[list[str] | None, typer.Argument(help="Traces to verify (default: all that are there).")] = None,
    data: DataOption = None,
) -> None:
    """Compare trace files with their published statistics; exit status 1 if any differs."""
    with one_line_errors():
        folder = recorded.data_folder(data)
        wrong = 0
        for name in names or list(recorded.TRACES):
            trace = recorded.get_trace(name)
            try:
                trace.path(folder)
            except MissingDataError:
                if names:
                    raise
                typer.echo(f"{name:14} not there ({trace.file})")
                continue
            checked = recorded.verify(name, folder)
            bad = checked[~checked["ok"]]
            wrong += len(bad)
            typer.echo(f"{name:14} {len(checked) - len(bad)} of {len(checked)} statistics as published")
            for row in bad.itertuples():
                typer.echo(f"{'':14} {row.quantity}: {row.found!r}, expected {row.expected}")
    if wrong:
        raise typer.Exit(REPORTED)


@traces_app.command("series")
def _spot_series(
    files: Annotated[list[Path], typer.Argument(help="JSON files of skypilot-org/spot-traces, one for each zone.")],
    prices: Annotated[
        float | None,
        typer.Option(
            help="Print the prices of rounds of so many seconds instead, as rules of posted-price for a scenario.",
            metavar="SECONDS",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Say how available spot machines were in some zones, for how long and at what price."""
    with one_line_errors():
        from marketsched.worlds.traces.spot_series import read_spot_series, spot_prices, spot_statistics  # pandas

        for path in files:
            series = read_spot_series(path)
            if prices is not None:
                posted = ", ".join(f"{price:.6g}" for price in spot_prices(series, prices))
                typer.echo(
                    f"mechanism: {{name: posted-price, pricing: {{kind: posted, prices: [{posted}]}}}}  # {path}"
                )
                continue
            found = spot_statistics(series)
            typer.echo(f"{path}: " + ", ".join(f"{name} {x:.5g}" for name, x in found.items() if x == x))


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
