"""The commands `marketsched audit`: the gains of owners from lying, and from conduct outside the promises."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from marketsched import config
from marketsched.mechanisms.errors import InvalidParameterError
from marketsched.mechanisms.registry import get
from marketsched.results.output import KEPT
from marketsched.show.cli import first_page, registered_group
from marketsched.show.commands.tools import (
    PROCESSES,
    ColumnsOption,
    DataOption,
    ForceOption,
    JsonOption,
    MechanismOption,
    OutOption,
    SchedulerOption,
    SeedOption,
    SetOption,
    StrictOption,
    file_name,
    finish,
    known_scenarios,
    log_changes,
    named_on_the_line,
    one_line_errors,
    progress_bar,
    target_folder,
)
from marketsched.truthfulness.statuses import CLEAN, PROFITABLE, UNDECIDED

if TYPE_CHECKING:
    import pandas as pd

ScenarioArgument = Annotated[
    str,
    typer.Argument(
        help="A built-in scenario (see: marketsched scenarios), a YAML file, or a log.",
        show_default=False,
        autocompletion=known_scenarios,
    ),
]
UtilityOption = Annotated[
    Literal["money", "value"],
    typer.Option(help="What owners care for: value less payments, or value alone, over all jobs of an owner."),
]
audit_app = typer.Typer(
    help="Find out who gains by lying. `lies` may be left out: marketsched audit synthetic-pipelines",
    rich_markup_mode=None,
    cls=registered_group("audit ", usual="lies"),
)


@audit_app.command(
    "lies",
    no_args_is_help=True,
    cls=first_page("mechanism", "owners", "confidence", "budget", "plays", "seed", "out", "changes"),
    epilog="\b\nTry: marketsched audit synthetic-pipelines\nAlso: audit conduct, audit finite, audit published",
)
def audit(
    scenario: ScenarioArgument,
    mechanism: MechanismOption = None,
    owners: Annotated[int, typer.Option(help="Owners that are certified, per mechanism.", min=1)] = 100,
    confidence: Annotated[float, typer.Option(help="Of certificates and findings.")] = 0.99,
    tolerance: Annotated[float, typer.Option(help="Gains up to so many credits do not count.", min=0.0)] = 0.0,
    budget: Annotated[
        float | None,
        typer.Option(
            help="Limit of search per mechanism, seconds of the processor (default: none); status 7: it cut the search."
        ),
    ] = None,
    plays: Annotated[
        int, typer.Option(help="Plays of search per mechanism: equal results on any machine, busy or idle.", min=100)
    ] = 2000,
    menu_lies: Annotated[
        int,
        typer.Option(
            help="Menus at arrival: misreports tried to check that they do not change menus.",
            min=1,
        ),
    ] = 24,
    call_seconds: Annotated[
        float, typer.Option(help="A call of a mechanism that works longer is interrupted, and is its fault.")
    ] = 60.0,
    per_owner: Annotated[
        bool, typer.Option("--per-owner", help="Also: joint reports of owners with several jobs.")
    ] = False,
    worlds: Annotated[
        int, typer.Option(help="Of a cluster scenario: fresh worlds on which lies to its policies are scored.", min=20)
    ] = 20,
    search_worlds: Annotated[
        int, typer.Option(help="Of a cluster scenario: worlds in which lies to its policies are searched.", min=4)
    ] = 4,
    utility: UtilityOption = "money",
    runs: Annotated[int, typer.Option(help="With --utility value: markets, with seeds from --seed on.", min=1)] = 3,
    seed: SeedOption = 0,
    workers: Annotated[int, typer.Option(*PROCESSES, help="Processes that share the plays.", min=1)] = 1,
    scheduler: SchedulerOption = None,
    out: OutOption = None,
    force: ForceOption = False,
    data: DataOption = None,
    as_json: JsonOption = False,
    changes: SetOption = None,
    columns: ColumnsOption = None,
    strict: StrictOption = False,
) -> None:
    """Certify owners and search for lies that pay; exit status 3: one is found.

    8: a payment is not that of its menu; 5: a lie seems to pay; 7: the seconds cut the search, and nothing was found;
    4: not audited, or two plays of the truth with one seed differ; 6: the mechanism fails under the truth.
    """
    with one_line_errors():
        asked = named_on_the_line(mechanism)
        base = _read(scenario, changes, columns, strict)
        if utility == "value":
            raise typer.Exit(_lies_without_money(base, asked, owners, runs, seed, data, out, force, as_json))
        if base.kind != "market":
            if workers > 1 or scheduler is not None:
                raise InvalidParameterError("--workers or --scheduler", legal="a scenario of jobs, not a cluster")
            folder = target_folder(out, f"{file_name(base.name)}-audited", force)
            with progress_bar() as tell:
                lies = get("audit", base.section)(
                    base,
                    asked,
                    seed=seed,
                    search_worlds=search_worlds,
                    fresh_worlds=worlds,
                    confidence=confidence,
                    data=data,
                    progress=lambda what, plays: tell(0.0, 1.0, f"{what}: {plays} games"),
                )
            finish(lies, folder, force, as_json)
            raise typer.Exit(status_of_lies(lies.lies))
        from marketsched.truthfulness.audit import audit as audit_scenario  # not for --help

        folder = target_folder(out, f"{file_name(base.name)}-audited", force)
        with progress_bar() as tell:
            found = audit_scenario(
                base,
                asked or ["scenario"],
                owners=owners,
                confidence=confidence,
                tolerance=tolerance,
                budget=budget,
                plays=plays,
                seed=seed,
                menu_lies=menu_lies,
                call_seconds=call_seconds,
                per_owner=per_owner,
                data=data,
                workers=workers,
                executor=scheduler,
                keep=folder.parent / KEPT,
                progress=lambda what, share: tell(share, 1.0, what),
                keep_interrupted=True,
            )
        finish(found.result(), folder, force, as_json)
    if found.status:
        raise typer.Exit(found.status)


def status_of_lies(lies: pd.DataFrame) -> int:
    """Return the exit status of an audit of a core, by its columns ``pays`` and ``seems_to_pay``."""
    return PROFITABLE if lies["pays"].any() else UNDECIDED if lies["seems_to_pay"].any() else CLEAN


def _lies_without_money(
    base: config.scenario.Scenario,
    asked: list[str] | None,
    owners: int,
    runs: int,
    seed: int,
    data: Path | None,
    out: Path | None,
    force: bool,
    as_json: bool,
) -> int:
    """Play what owners may do with all of their jobs where they care for value alone; return the exit status."""
    from marketsched.truthfulness.conduct.conduct_audit import audit_conduct  # not for --help

    folder = target_folder(out, f"{file_name(base.name)}-audited", force)
    with progress_bar() as tell:
        found = audit_conduct(
            base,
            asked or ["scenario"],
            owners=1,
            past_owners=owners,
            runs=runs,
            utility="value",
            seed=seed,
            data=data,
            progress=lambda what, share: tell(share, 1.0, what),
        )
    finish(found, folder, force, as_json)
    return PROFITABLE if found.summary["pays"].any() else 0


@audit_app.command(
    no_args_is_help=True,
    cls=first_page("mechanism", "owners", "past_owners", "families", "runs", "seed", "out", "changes"),
)
def conduct(
    scenario: ScenarioArgument,
    mechanism: MechanismOption = None,
    owners: Annotated[int, typer.Option(help="Owners whose conduct is tried, per mechanism.", min=1)] = 100,
    past_owners: Annotated[int, typer.Option(help="Owners whose jobs are all reported at other values.", min=0)] = 10,
    families: Annotated[
        str | None,
        typer.Option(
            help="Which, of delay,split,ghost,twin,past,estimate,value,account,accounts,estimates,parts (default: the "
            "first five; of mechanisms that promise no truthfulness all), hurry,ranks,slack,widths,ghosts,lates,hoard,"
            "half,trade.",
            show_default=False,
        ),
    ] = None,
    utility: UtilityOption = "money",
    runs: Annotated[int, typer.Option(help="Markets, with seeds from --seed on.", min=1)] = 1,
    seed: SeedOption = 0,
    out: OutOption = None,
    force: ForceOption = False,
    data: DataOption = None,
    as_json: JsonOption = False,
    changes: SetOption = None,
    columns: ColumnsOption = None,
    strict: StrictOption = False,
) -> None:
    """Measure what delays, identities, ghosts and an owner's past gain: conduct that breaks no promise."""
    with one_line_errors():
        from marketsched.truthfulness.conduct.conduct_audit import audit_conduct  # not for --help

        base = _read(scenario, changes, columns, strict)
        folder = target_folder(out, f"{file_name(base.name)}-conduct", force)
        with progress_bar() as tell:
            found = audit_conduct(
                base,
                named_on_the_line(mechanism) or ["scenario"],
                owners=owners,
                past_owners=past_owners,
                runs=runs,
                families=None if families is None else [name.strip() for name in families.split(",")],
                utility=utility,
                seed=seed,
                data=data,
                progress=lambda what, share: tell(share, 1.0, what),
            )
        finish(found, folder, force, as_json)


def _read(scenario: str, changes: list[str] | None, columns: str | None, strict: bool) -> config.scenario.Scenario:
    """Return the scenario that is audited."""
    content, source = config.scenario_file.read_scenario(scenario)
    asked = log_changes(None, columns, strict, changes=changes)
    return config.scenario.Scenario.from_dict(config.scenario_file.with_changes(content, asked), source=source)
