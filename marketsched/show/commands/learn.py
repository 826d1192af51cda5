"""The command `marketsched learn`: the reports that owners learn under different mechanisms."""

from __future__ import annotations

from typing import Annotated

import typer

from marketsched.results.output import KEPT
from marketsched.show.cli import first_page, with_settings
from marketsched.show.commands.tools import (
    PROCESSES,
    ForceOption,
    JsonOption,
    MechanismOption,
    OutOption,
    SchedulerOption,
    SeedOption,
    finish,
    named_on_the_line,
    one_line_errors,
    progress_bar,
    target_folder,
)
from marketsched.study import learning


@with_settings(cls=first_page("mechanism", "learner", "owners", "nodes", "days", "seeds", "seed", "out"))
def learn(
    mechanism: MechanismOption = None,
    learner: Annotated[
        str, typer.Option(help="adahedge, hedge, exp3, ucb or best-response: how every owner learns.")
    ] = "adahedge",
    owners: Annotated[int, typer.Option(help="Owners, each with a new job every day.", min=1)] = 6,
    nodes: Annotated[int, typer.Option(help="Nodes.", min=1)] = 3,
    days: Annotated[int, typer.Option(help="Days of each run; the last quarter is what was learned.", min=4)] = 100,
    seeds: Annotated[int, typer.Option(help="Paired runs, with seeds from --seed on.", min=2)] = 20,
    seed: SeedOption = 0,
    workers: Annotated[
        int | None,
        typer.Option(*PROCESSES, help="Processes (default: one per processor).", min=1, show_default=False),
    ] = None,
    scheduler: SchedulerOption = None,
    out: OutOption = None,
    force: ForceOption = False,
    as_json: JsonOption = False,
) -> None:
    """Let owners learn, day after day, which report pays. Under one mechanism or several; no scenario is needed."""
    with one_line_errors():
        names = named_on_the_line(mechanism) or ["exponential", "pay-as-bid"]
        folder = target_folder(out, "learned", force)
        with progress_bar() as tell:
            found = learning.comparing.compare_learning(
                names,
                learner,
                owners=owners,
                nodes=nodes,
                days=days,
                runs=seeds,
                seed=seed,
                workers=workers,
                executor=scheduler,
                keep=folder.parent / KEPT,
                progress=lambda what, done, total: tell(done, total, what),
                keep_interrupted=True,
            )
        finish(found, folder, force, as_json)
