"""The command `marketsched compare`: mechanisms on the same jobs, or policies on the same clusters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from marketsched import comparisons, config
from marketsched.mechanisms.errors import InvalidParameterError
from marketsched.mechanisms.registry import get
from marketsched.results.output import KEPT
from marketsched.show.cli import first_page, with_settings
from marketsched.show.commands.tools import (
    PROCESSES,
    ColumnsOption,
    DataOption,
    DaysOption,
    DetailsOption,
    ForceOption,
    JsonOption,
    MechanismOption,
    NodesOption,
    OutOption,
    PartitionOption,
    SchedulerOption,
    SeedOption,
    SetOption,
    StrictOption,
    ZoneOption,
    file_name,
    finish,
    known_mechanisms,
    known_scenarios,
    log_changes,
    named_on_the_line,
    one_line_errors,
    progress_bar,
    target_folder,
)

RUNS, LOG_RUNS, WINDOW_RUNS = 20, 3, 2  # paired runs by default, of a log, of each of its windows

if TYPE_CHECKING:
    from marketsched.comparisons.plan import Plan
    from marketsched.config.scenario import Scenario
    from marketsched.results.result import Result


@with_settings(
    cls=first_page("mechanism", "runs", "loads", "days", "columns", "out", "details", "changes"),
    epilog="Try: marketsched compare stochastic-mix -m bid-price,vcg,first-come --runs 3",
)
def compare(
    scenario: Annotated[
        str | None,
        typer.Argument(
            help="A built-in scenario, a YAML file, or a log (.swf, .csv, sacct -P).",
            autocompletion=known_scenarios,
        ),
    ] = None,
    mechanism: MechanismOption = None,
    windows: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Of a log: on so many windows, spread over it; by default one for each thousand jobs, at most 8.",
            show_default=False,
        ),
    ] = None,
    values: Annotated[
        bool,
        typer.Option(
            "--values",
            help="Of a log: under six rules of value; does the lead hold? Six times as long.",
        ),
    ] = False,
    resample: Annotated[
        str | None,
        typer.Option(
            help="Of a log: users: draw who submits again, week by week, so that ± covers it. Twice as long.",
            metavar="users",
            show_default=False,
        ),
    ] = None,
    against: Annotated[
        str | None,
        typer.Option(
            help="Of a market: compare all with this mechanism, user by user, too. (default: of two the second)",
            metavar="NAME[:KEY=VALUE]",
            show_default=False,
            autocompletion=known_mechanisms,
        ),
    ] = None,
    runs: Annotated[
        int | None,
        typer.Option(
            help="Paired runs, with seeds from --seed on. (default: 20; of a log 3)", min=1, show_default=False
        ),
    ] = None,
    seed: SeedOption = 0,
    optimum_seconds: Annotated[
        float | None,
        typer.Option(
            help="How long the exact optimum of a run may take; 0: bounds alone (cluster: no best fixed allocation). "
            "(default: 10; 0 with --loads and of a log)",
            min=0.0,
            show_default=False,
        ),
    ] = None,
    loads: Annotated[
        str | None,
        typer.Option(
            help="Of a market: compare at each load, as in .5,1,2; fewer nodes make it, of a log closer arrivals.",
            metavar="LOAD,LOAD,...",
            show_default=False,
        ),
    ] = None,
    nodes: NodesOption = None,
    days: DaysOption = None,
    partition: PartitionOption = None,
    columns: ColumnsOption = None,
    strict: StrictOption = False,
    zone: ZoneOption = None,
    workers: Annotated[
        int | None,
        typer.Option(
            *PROCESSES,
            help="Processes, which share seeds and loads (default: 1; of a long log one per processor).",
            min=1,
            show_default=False,
        ),
    ] = None,
    scheduler: SchedulerOption = None,
    over: Annotated[
        str | None,
        typer.Option(
            help="Of a cluster: compare once for each value, as in cluster.instance.contention=0.1,1,10.",
            metavar="KEY=VALUE,VALUE,...",
            show_default=False,
        ),
    ] = None,
    out: OutOption = None,
    force: ForceOption = False,
    data: DataOption = None,
    as_json: JsonOption = False,
    details: DetailsOption = False,
    changes: SetOption = None,
) -> None:
    """Compare mechanisms on the same jobs, or policies on the same clusters."""
    with one_line_errors():
        names = named_on_the_line(mechanism)
        content, source = config.scenario_file.read_scenario(scenario) if scenario is not None else (None, "")
        content = (
            None
            if content is None
            else config.scenario_file.with_changes(
                content, log_changes(days, columns, strict, nodes, changes, content, zone, partition)
            )
        )
        if content is not None and config.scenario_file.is_log(content):
            content = config.scenario_file.with_whole_log(content)
        base = None if content is None else config.scenario.Scenario.from_dict(content, source=source)
        if over is not None and (base is None or base.kind == "market"):
            raise InvalidParameterError(f"--over {over}", legal="a cluster scenario")
        if loads is not None and base is not None and base.kind != "market":
            raise InvalidParameterError(f"--loads {loads}", legal="a scenario of jobs")
        if against is not None and over is not None:
            raise InvalidParameterError(f"--against {against}", legal="a market, without --over")
        if base is None:
            raise InvalidParameterError(
                "SCENARIO is missing",
                legal="the name of one, such as cluster-pai or stochastic-mix "
                "(`marketsched scenarios` lists them), or a YAML file",
            )
        options: dict[str, Any] = {"data": data, "optimum_seconds": optimum_seconds, "workers": workers or 1}
        options["executor"] = scheduler
        options["keep_interrupted"] = True
        options |= {} if loads is None else {"loads": _numbers(loads)}
        options |= {} if against is None else {"against": against}
        folder = target_folder(out, f"{file_name(base.name)}-compared", force)
        n_windows, log = 1, content is not None and config.scenario_file.is_log(content)
        if log:
            n_windows = comparisons.comparing.windows_for(base, windows, seed, data)
            few = WINDOW_RUNS if resample is None else comparisons.comparing.RESAMPLED_RUNS
            runs = (LOG_RUNS if n_windows == 1 else few) if runs is None else runs
            options["windows"] = n_windows
        options |= {} if resample is None else {"resample": resample}
        runs = RUNS if runs is None else runs
        if over is None and base.kind == "market":
            sizes = names, runs, len(options.get("loads", [None])), n_windows
            config.named_mechanisms.named_mechanisms(base, names or [config.named_mechanisms.OWN])  # slips come first
            limits: dict[str, Any] = {"data": data, "optimum_seconds": optimum_seconds, "workers": workers}
            plan = comparisons.plan.plan_of(base, *sizes, **limits)
            if values:
                plan = plan._replace(seconds=len(comparisons.value_rules.VALUE_RULES) * plan.seconds)
            options["workers"] = plan.workers
            if plan.is_long and scheduler is None:  # how many a cluster plays at a time is not known here
                _say_what_it_takes(plan, log)
        options["keep"] = folder.parent / KEPT
        options |= {"values": True} if values else {}
        found = _compare(base, content, source, names, runs, seed, over, options)
        finish(found, folder, force, as_json, details)


def _say_what_it_takes(plan: Plan, log: bool) -> None:
    """Say on standard error how long a comparison may take."""
    sizes = f"{plan.jobs:,} jobs, {plan.plays} plays of {plan.mechanisms} mechanisms, {plan.at_once} at a time"
    less = "--days or --set workload.most_jobs=10000 plays the last jobs" if log else "--runs plays fewer markets"
    more = f"with bounds and the best flat price some {plan.seconds / 60:.1f} minutes on a free processor"
    typer.echo(f"marketsched: {sizes}: {more} ({less}, --workers says how many processes)", err=True)


def _compare(
    base: Scenario,
    content: Any,
    source: str,
    names: list[str] | None,
    runs: int,
    seed: int,
    over: str | None,
    options: dict[str, Any],
) -> Result:
    with progress_bar() as tell:
        if options.pop("values", False):
            if over is not None:
                raise InvalidParameterError("--values", legal="without --over")
            return comparisons.value_rules.compare_values(base, names, runs, seed, progress=tell, **options)
        if over is None:
            return comparisons.comparing.compare(base, names, runs, seed, progress=tell, **options)
        key, values = config.scenario_file.values_over(over)
        found: Result = get("over", base.section)(
            content, key, values, names, runs, seed, source=source, progress=tell, **options
        )
        return found


def _numbers(text: str) -> list[float]:
    """Read the numbers of ``--loads``."""
    try:
        return [float(each) for each in text.split(",")]
    except ValueError:
        raise InvalidParameterError(place="--loads", value=text, legal="numbers above 0, as in .5,1,2") from None
